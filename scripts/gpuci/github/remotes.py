"""A remote's URL in git -> host and repository. Pure."""

from __future__ import annotations

import re

# git-scm.com/docs/git-clone, "GIT URLS": with a scheme, or as scp writes it.
_WITH_SCHEME = re.compile(r"(?:https?|ssh|git)://(?:[^@/]*@)?(?P<host>[A-Za-z0-9.-]+)(?::\d+)?/(?P<path>.+)")
_AS_SCP = re.compile(r"(?:[^@/]*@)?(?P<host>[A-Za-z0-9.-]+):(?P<path>[^/].*)")
_NAME = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")


def parse(url: str) -> tuple[str, str]:
    """(host, owner/name); two empty texts for what is no repository on a host."""
    found = _WITH_SCHEME.fullmatch(url) or _AS_SCP.fullmatch(url)
    if not found:
        return "", ""
    name = found["path"].strip("/").removesuffix(".git")
    host = found["host"].lower().removeprefix("ssh.")  # ssh.github.com serves port 443
    return (host, name) if _NAME.fullmatch(name) else ("", "")
