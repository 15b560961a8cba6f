"""What a credential command printed -> the file that the pull reads. Pure.

The runner runs the command, and the file lies in the job's directory (0600) until the pull has ended: before
the first test starts. The form is containers-auth.json(5), which docker's config.json shares.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from gpuci.errors import ConfigError

_THEN = (
    "let it print `USER:PASSWORD` on one line, the JSON of a docker credential helper "
    "(`Username`, `Secret`), or an auth.json"
)


def registry_of(image: str) -> str:
    """The registry that an image's name means, as auth.json spells it; docker.io if it names none."""
    first, slash, _rest = image.partition("/")
    named = slash and ("." in first or ":" in first or first == "localhost")
    return first if named else "docker.io"


def pull_auth(image: str, printed: str) -> str:
    """The text of auth.json; raises ConfigError, which says nothing of what was printed."""
    text = printed.strip()
    if text.startswith("{"):
        return _from_json(image, text)
    user, colon, password = text.partition(":")
    if not (user and colon and password) or "\n" in text:
        raise ConfigError("container.pull-credential-command did not print a credential", then=_THEN)
    return _auth(image, user, password)


def _from_json(image: str, text: str) -> str:
    try:
        document: Any = json.loads(text)
    except ValueError:
        document = None
    if isinstance(document, Mapping):
        if isinstance(document.get("auths"), Mapping):
            return json.dumps({"auths": document["auths"]})
        user, secret = document.get("Username"), document.get("Secret")
        if isinstance(user, str) and isinstance(secret, str):
            return _auth(image, user, secret)
    # No cause: it would show what was printed.
    raise ConfigError("container.pull-credential-command printed JSON without a credential", then=_THEN)


def _auth(image: str, user: str, password: str) -> str:
    auth = base64.b64encode(f"{user}:{password}".encode()).decode()
    registry = registry_of(image)
    # docker knows its own registry by this name only.
    names = [registry, "https://index.docker.io/v1/"] if registry == "docker.io" else [registry]
    return json.dumps({"auths": {name: {"auth": auth} for name in names}})
