"""One HTTP request and its answer. I/O, standard library only.

Nothing is followed, repeated or explained here: `retry`, `messages` and `api` do that. Proxies come from the
environment, the certificates that are trusted from the system (SSL_CERT_FILE names others).
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

# A page of 100 pull requests is about 2 MB; what is larger is no answer to a question of ours.
BODY_BYTES = 10 * 1024 * 1024
SILENCE_SECONDS = 30.0
WHOLE_SECONDS = 90.0


@dataclass(frozen=True)
class Reply:
    """What a server answered; the names of `headers` are in lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class NoAnswer(Exception):
    """The connection failed. `sent`: the request may have arrived. `hopeless`: again would be the same."""

    def __init__(self, reason: str, *, sent: bool, hopeless: bool = False) -> None:
        super().__init__(reason)
        self.sent = sent
        self.hopeless = hopeless


def send(method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Reply:
    """Ask once; any status is an answer. Raises NoAnswer, whose text holds nothing of `headers`."""
    request = urllib.request.Request(url, data=body, method=method)
    for name, value in headers.items():
        request.add_unredirected_header(name, value)
    try:
        response: http.client.HTTPResponse = _opener(url).open(request, timeout=SILENCE_SECONDS)
    except urllib.error.URLError as error:
        raise _not_connected(error.reason) from None
    except (OSError, UnicodeError, http.client.HTTPException) as error:
        raise NoAnswer(_reason(error), sent=True) from None
    with response:
        found = {name.lower(): value for name, value in response.headers.items()}
        return Reply(response.status, found, _body(response))


def is_loopback(url: str) -> bool:
    """Whether a URL's host is this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _opener(url: str) -> urllib.request.OpenerDirector:
    """As urllib's own, but without redirects, errors by status, and file:, ftp: and data: URLs."""
    opener = urllib.request.OpenerDirector()
    proxies: dict[str, str] | None = (
        {} if is_loopback(url) else None
    )  # no proxy reaches our own loopback; None: the environment's
    handlers = (urllib.request.ProxyHandler(proxies), urllib.request.HTTPHandler())
    for handler in (*handlers, urllib.request.HTTPSHandler(), urllib.request.UnknownHandler()):
        opener.add_handler(handler)
    return opener


def _body(response: http.client.HTTPResponse) -> bytes:
    """The body, piece by piece: a server that drips must not hold a job for hours."""
    end = time.monotonic() + WHOLE_SECONDS
    pieces, size = [], 0
    try:
        while piece := response.read1(65536):
            pieces.append(piece)
            size += len(piece)
            if size > BODY_BYTES:
                raise NoAnswer(f"the answer has more than {BODY_BYTES} bytes", sent=True, hopeless=True)
            if time.monotonic() > end:
                raise NoAnswer(f"the answer took more than {WHOLE_SECONDS:.0f} s", sent=True)
    except (OSError, http.client.HTTPException) as error:
        raise NoAnswer(_reason(error), sent=True) from None
    if response.length:  # read1 does not complain about an early end
        raise NoAnswer("the answer ended early", sent=True)
    return b"".join(pieces)


def _not_connected(reason: object) -> NoAnswer:
    """urllib wraps what fails up to the end of the request, which may have left by then."""
    if isinstance(reason, ssl.SSLCertVerificationError):
        return NoAnswer(f"its certificate: {reason.verify_message}", sent=False, hopeless=True)
    not_sent = isinstance(reason, (ConnectionRefusedError, socket.gaierror, ssl.SSLError))
    return NoAnswer(_reason(reason), sent=not not_sent)


def _reason(error: object) -> str:
    """In words; the texts of http.client's errors may quote headers, so they give their name only."""
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, http.client.RemoteDisconnected):
        return "the connection was closed without an answer"
    if isinstance(error, OSError):
        return error.strerror or str(error)[:200] or type(error).__name__  # such as a proxy's refusal
    return type(error).__name__ if isinstance(error, Exception) else str(error)[:200]
