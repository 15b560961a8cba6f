"""Addresses of the API: what may stand in one, and what a Link header says. Computes only (urllib.parse)."""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

from gpuci.errors import ConfigError
from gpuci.github import http


def join(*segments: str | int) -> str:
    """Names -> a path in which each is one piece, whatever it holds. Raises ConfigError for `.` and `..`."""
    for segment in segments:
        if str(segment) in ("", ".", ".."):
            raise ConfigError(f"{str(segment)!r} is no name that GitHub gives")
    return "/".join(quote(str(segment), safe="", errors="replace") for segment in segments)


def next_link(header: str) -> str:
    """The address of the next page in a Link header (RFC 8288), "" on the last one."""
    links = re.finditer(r"<([^<>]*)>((?:\s*;\s*[^,;<>]*)*)", header)
    return next((one[1] for one in links if re.search(r";\s*rel=\"?next\"?\s*(?:;|$)", one[2])), "")


def checked_url(url: str) -> str:
    """The API's URL without a slash at its end. Raises ConfigError."""
    try:
        parts = urlsplit(url)
        plain = not (parts.username or parts.password or parts.query or parts.fragment)
        fits = bool(parts.hostname) and plain and (parts.port or True)
    except ValueError:
        fits = False
    if not fits or not re.fullmatch(r"[\x21-\x7e]+", url) or parts.scheme not in ("https", "http"):
        raise ConfigError(
            f"{url!r} is no address of GitHub's API", then="GITHUB_API_URL: https://HOST[/PATH]"
        )
    if parts.scheme == "http" and not http.is_loopback(url):
        raise ConfigError(f"the token would go to {url} in clear text", then="GITHUB_API_URL: use https")
    return url.rstrip("/")


def login_host(api_url: str) -> str:
    """The host that one logs in at: api.github.com is github.com's API, a server has its own at /api/v3."""
    return (urlsplit(api_url).hostname or "").removeprefix("api.")


def checked_repository(name: str) -> str:
    """`owner/name`. Raises ConfigError."""
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*/(?!\.\.?$)[\w.-]+", name, re.ASCII):
        raise ConfigError(f"{name!r} is no repository", then="write OWNER/NAME")
    return name


def checked_token(token: str) -> str:
    """A token without what can't stand in a header. Raises ConfigError, which doesn't show it."""
    if not re.fullmatch(r"[\x21-\x7e]*", token):
        raise ConfigError(
            "the token holds blanks, line ends or other characters that no token has",
            then="check the secret: only the token itself belongs in it",
        )
    return token


def origin(url: str) -> tuple[str, str | None, int | None]:
    """Scheme, host and port; the port is -1 if it can't be one."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = -1
    return parts.scheme, parts.hostname, port or {"https": 443, "http": 80}.get(parts.scheme)
