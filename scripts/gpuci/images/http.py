"""One HTTP request to a registry, and when it is sent again. I/O, standard library only.

No redirect is followed: none of our requests needs one, and a credential must not go where an answer says.
"""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, TypeVar
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import HTTPErrorProcessor, ProxyHandler, Request, build_opener

import gpuci
from gpuci.images.login import is_loopback
from gpuci.images.manifest import DOCUMENT_BYTES

_T = TypeVar("_T")
_TIMEOUT = 120.0  # seconds without a byte
_PAUSES = (1.0, 4.0, 15.0)
_LONGEST_PAUSE = 60.0
_AGAIN = (408, 429, 500, 502, 503, 504)
USER_AGENT = f"gpuci/{gpuci.__version__}"


@dataclass(frozen=True)
class Answer:
    """What came back; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def pause(self) -> float | None:
        """Seconds that the server asks to wait, None if it doesn't."""
        text = self.headers.get("retry-after", "")
        return float(text) if text.isascii() and text.isdigit() else None


class NoAnswer(Exception):
    """The request may or may not have arrived."""


class _AsItIs(HTTPErrorProcessor):
    """Every answer is one: no exception for 4xx, no redirect."""

    def http_response(self, request: Request, response: http.client.HTTPResponse) -> http.client.HTTPResponse:
        return response

    https_response = http_response


def send(method: str, url: str, headers: Mapping[str, str], data: bytes | IO[bytes] | None = None) -> Answer:
    """Send one request, `data` with the Content-Length of the headers; raises NoAnswer.

    At most 4 MiB of the answer are read.
    """
    direct = (ProxyHandler({}),) if is_loopback(urlsplit(url).netloc) else ()
    request = Request(url, data=data, method=method, headers={"User-Agent": USER_AGENT, **headers})
    try:
        with build_opener(_AsItIs, *direct).open(request, timeout=_TIMEOUT) as response:
            told = {name.lower(): value for name, value in response.headers.items()}
            return Answer(response.status, told, response.read(DOCUMENT_BYTES + 1))
    except (OSError, http.client.HTTPException, ValueError) as error:
        cause = error.reason if isinstance(error, URLError) else error
        raise NoAnswer(str(cause) or type(cause).__name__) from error


def persistently(
    attempt: Callable[[], Answer],
    *,
    say: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> Answer:
    """Do it up to four times, while the server is in trouble or does not answer; raises NoAnswer."""
    for pause in _PAUSES:
        try:
            answer = attempt()
        except NoAnswer as error:
            because = str(error)
        else:
            if answer.status not in _AGAIN:
                return answer
            because, pause = f"status {answer.status}", min(answer.pause or pause, _LONGEST_PAUSE)
        say(f"the registry: {because}; again in {pause:.0f} s")
        sleep(pause)
    return attempt()
