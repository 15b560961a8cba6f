"""Who we are at a registry, and where it sends us for a token. Pure.

Source: distribution's "Token Authentication Specification"; RFC 9110, 11.6.1 (WWW-Authenticate).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit

from gpuci.errors import GpuciError
from gpuci.images.names import Repository

_FIELD = re.compile(r'([A-Za-z]+)="([^"]*)"')
_LOOPBACK = ("localhost", "127.0.0.1")


@dataclass(frozen=True)
class Credential:
    """A user and password for one registry."""

    user: str
    password: str = field(repr=False)

    @property
    def basic(self) -> str:
        """The value of the header Authorization."""
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()


@dataclass(frozen=True)
class Challenge:
    """What a 401 asks for: a password at once (no realm), or a token that `realm` gives."""

    scheme: str
    realm: str = ""
    service: str = ""


def github_registry(server_url: str) -> str:
    """The registry of a GitHub: ghcr.io, `containers.HOST` elsewhere.

    Source: docs.github.com, "Working with the Container registry", of Enterprise Server too.
    """
    host = urlsplit(server_url).netloc
    return "ghcr.io" if host in ("", "github.com") else f"containers.{host}"


def credential_for(
    repository: Repository, *, user: str, password: str, token: str, environ: Mapping[str, str]
) -> Credential | None:
    """What is given for the registry; else GitHub's token, which only GitHub's own registry gets."""
    if password:
        return Credential(user or "gpuci", password)
    if token and repository.registry == github_registry(environ.get("GITHUB_SERVER_URL", "")):
        return Credential(environ.get("GITHUB_ACTOR") or "x-access-token", token)
    return None


def is_loopback(host: str) -> bool:
    """Whether a registry (`host`, `host:port`) is on this machine: no TLS, as with docker and podman."""
    return urlsplit(f"//{host}").hostname in _LOOPBACK


def challenge_of(header: str) -> Challenge:
    """A header WWW-Authenticate -> what it asks for."""
    scheme, _, rest = header.strip().partition(" ")
    found = {name.lower(): value for name, value in _FIELD.findall(rest)}
    if scheme.lower() == "bearer":
        return Challenge("bearer", found.get("realm", ""), found.get("service", ""))
    return Challenge(scheme.lower())


def token_url(challenge: Challenge, repository: Repository, *, write: bool) -> str:
    """Where to ask for a token; raises GpuciError for a place that no password may go to."""
    parts = urlsplit(challenge.realm)
    plain = parts.scheme == "http" and is_loopback(repository.registry) and is_loopback(parts.netloc)
    if not parts.netloc or not (parts.scheme == "https" or plain):
        raise GpuciError(
            f"the registry {repository.registry} wants a password at {challenge.realm[:200]!r}",
            why="that is no https address, so that others could read it",
        )
    # The scope is ours, whatever the registry asked for.
    actions = "pull,push" if write else "pull"
    query = {"service": challenge.service, "scope": f"repository:{repository.path}:{actions}"}
    joint = "&" if parts.query else "?"
    return f"{challenge.realm}{joint}{urlencode({key: value for key, value in query.items() if value})}"
