"""GitHub's REST API: a budget, repeats, pages, help pages. I/O, standard library only.

Requests go to one host, with a token that is sent nowhere else and stands in no text.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

from gpuci import __version__
from gpuci.github import http, retry
from gpuci.github.addresses import checked_repository, checked_token, checked_url, next_link, origin
from gpuci.github.messages import ApiError, Page, Refusal, message_of, page
from gpuci.reporting.text import clip, one_line

# All jobs of a repository share 1,000 requests an hour (docs.github.com, "Rate limits for the REST API",
# GITHUB_TOKEN in GitHub Actions): a run of 12 shards takes 24 of them.
BUDGET = 30
_REDIRECTS = 3
_REQUIRED: Any = object()
# docs.github.com, "Best practices": 301 and 302 may change the method, 307 and 308 don't.
_MOVED = {301: ("GET",), 302: ("GET",), 307: (), 308: ()}


class Api:
    """Requests about one repository. A path is below /repos/OWNER/NAME; one that starts with `/` is not.

    `action` stands in the User-Agent, `say` is told of each repeat. At most `budget` requests are sent,
    repeats and redirects included. `writes`: scopes (`statuses`) that the caller needs to write to, for help
    pages.
    """

    def __init__(
        self,
        api_url: str,
        token: str,
        repository: str,
        *,
        action: str,
        say: Callable[[str], None],
        writes: tuple[str, ...] = (),
        budget: int = BUDGET,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.url = checked_url(api_url)
        self.repository = checked_repository(repository)
        self._headers = _headers(checked_token(token), action)
        self._token = token
        self._say, self._sleep, self._now, self._jitter = say, sleep, now, jitter
        self._writes = writes
        self._budget = budget
        self._left = budget
        self._wait = retry.WAIT_SECONDS

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r}, {self.repository!r})"

    def get(self, path: str, *, missing: Any = _REQUIRED, **query: str | int) -> Any:
        """The document at a path; `missing` is the answer to a 404. Raises ApiError."""
        reply = self._ask("GET", self._address(path, query), path, allowed=_allowed(missing))
        return missing if reply.status == 404 else _document(reply, path)

    def pages(self, path: str, *, limit_pages: int = 10, **query: str | int) -> Iterator[Any]:
        """The document of each page, of 100 items unless `per_page` says otherwise.

        Raises ApiError also when there are more than `limit_pages` and the caller has not stopped by then:
        a list that was cut is no answer.
        """
        address = self._address(path, {"per_page": 100, **query})
        for _ in range(limit_pages):
            reply = self._ask("GET", address, path)
            yield _document(reply, path)
            following = next_link(reply.headers.get("link", ""))
            if not following:
                return
            address = self._same_host(address, following, path)
        raise ApiError(Page(f"GitHub has more than {limit_pages} pages of {path}"))

    def items(self, path: str, key: str = "", *, limit_pages: int = 10, **query: str | int) -> Iterator[Any]:
        """The items of all pages; `key` is where the pages hold them if they are no plain lists."""
        for one in self.pages(path, limit_pages=limit_pages, **query):
            found = (one.get(key) if isinstance(one, dict) else None) if key else one
            if not isinstance(found, list):
                raise _unexpected(path)
            yield from found

    def post(self, path: str, body: Mapping[str, Any], *, harmless: bool = False) -> Any:
        """Create something. Only what is `harmless` twice is sent again after an answer that was lost.

        Raises ApiError; `unsure` tells that it may have been done.
        """
        return self._write("POST", path, body, harmless=harmless)

    def patch(self, path: str, body: Mapping[str, Any]) -> Any:
        """Change something to a state that `body` gives whole: twice is as good as once. Raises ApiError."""
        return self._write("PATCH", path, body, harmless=True)

    def delete(self, path: str) -> bool:
        """Whether it was there. Raises ApiError."""
        return self._ask("DELETE", self._address(path, {}), path, allowed=(404,)).status != 404

    def _write(self, method: str, path: str, body: Mapping[str, Any], *, harmless: bool) -> Any:
        data = json.dumps(body).encode()
        reply = self._ask(method, self._address(path, {}), path, data=data, harmless=harmless)
        return _document(reply, path) if reply.body else None

    def _address(self, path: str, query: Mapping[str, str | int]) -> str:
        below = path if path.startswith("/") else f"/repos/{self.repository}/{path}".rstrip("/")
        return f"{self.url}{below}" + (f"?{urlencode(query)}" if query else "")

    def _ask(
        self,
        method: str,
        address: str,
        path: str,
        *,
        data: bytes | None = None,
        harmless: bool = True,
        allowed: tuple[int, ...] = (),
    ) -> http.Reply:
        """An answer of 2xx, or of a status that is `allowed`."""
        for _ in range(_REDIRECTS + 1):
            reply = self._repeatedly(method, address, path, data, harmless, allowed)
            if reply.status not in _MOVED:
                return reply
            if _MOVED[reply.status] and method not in _MOVED[reply.status]:
                break
            address = self._same_host(address, reply.headers.get("location", ""), path)
        what = f"GitHub sends {method} {path} elsewhere"
        raise ApiError(Page(what, why="the repository was renamed", then="use its new name"), status=301)

    def _repeatedly(
        self,
        method: str,
        address: str,
        path: str,
        data: bytes | None,
        harmless: bool,
        allowed: tuple[int, ...],
    ) -> http.Reply:
        for attempt in range(1, retry.ATTEMPTS + 1):
            reply, outcome = self._once(method, address, data, path)
            if outcome.status in allowed or retry.kind_of(outcome) is retry.Kind.DONE:
                return reply
            again = retry.decide(
                outcome,
                attempt=attempt,
                harmless=harmless,
                left=self._wait,
                now=self._now(),
                jitter=self._jitter(),
            )
            if again is None or not self._left:
                raise self._failure(method, path, outcome, attempt, harmless=harmless)
            self._pause(again.seconds, f"{method} {path}", outcome)
        raise AssertionError("the last attempt is never repeated")

    def _once(
        self, method: str, address: str, data: bytes | None, path: str
    ) -> tuple[http.Reply, retry.Outcome]:
        if not self._left:
            raise ApiError(
                Page(
                    f"{method} {path} would be request {self._budget + 1} to GitHub",
                    why=f"a step sends at most {self._budget}: all jobs of a repository share 1,000 an hour",
                    then="re-run the failed jobs; if it comes again it is a defect of gpuci",
                )
            )
        self._left -= 1
        try:
            reply = http.send(method, address, self._headers, data)
        except http.NoAnswer as error:
            text = self._without_token(str(error))
            return http.Reply(0), retry.Outcome(0, {}, text, sent=error.sent, hopeless=error.hopeless)
        return reply, retry.Outcome(reply.status, reply.headers, self._without_token(message_of(reply.body)))

    def _pause(self, seconds: float, request: str, outcome: retry.Outcome) -> None:
        happened = f"answered {outcome.status}" if outcome.status else f"did not answer ({outcome.text})"
        self._say(f"GitHub {happened} to {request}; again in {seconds:.1f} s")
        self._wait -= seconds
        self._sleep(seconds)

    def _failure(
        self, method: str, path: str, outcome: retry.Outcome, attempt: int, *, harmless: bool
    ) -> ApiError:
        kind = retry.kind_of(outcome)
        pause = retry.pause(outcome, attempt=attempt, now=self._now(), jitter=0.0)
        refusal = Refusal(
            method,
            path,
            outcome.status,
            kind,
            outcome.text,
            accepted=outcome.headers.get("x-accepted-github-permissions", ""),
            pause=pause if kind is retry.Kind.LIMITED else 0.0,
            writes=self._writes,
        )
        unsure = kind is retry.Kind.UNSURE and method != "GET"
        return ApiError(page(refusal), status=outcome.status, unsure=unsure)

    def _same_host(self, address: str, target: str, path: str) -> str:
        """Where a redirect or a Link leads; another host never gets the token."""
        whole = urljoin(address, target)
        if not target or origin(whole) != origin(self.url):
            host = urlsplit(whole).hostname or "nowhere"
            raise ApiError(
                Page(
                    f"GitHub sends GET {path} to another host: {clip(one_line(host), 100)}",
                    why="a proxy answers in its place, or GITHUB_API_URL is not the API's own address",
                )
            )
        return whole

    def _without_token(self, text: str) -> str:
        return text.replace(self._token, "***") if self._token else text


def _headers(token: str, action: str) -> dict[str, str]:
    headers = {
        "User-Agent": f"gpuci/{__version__} ({action})",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
        "Content-Type": "application/json",
    }
    return {**headers, "Authorization": f"Bearer {token}"} if token else headers


def _allowed(missing: Any) -> tuple[int, ...]:
    return () if missing is _REQUIRED else (404,)


def _document(reply: http.Reply, path: str) -> Any:
    try:
        return json.loads(reply.body)
    except (ValueError, RecursionError):
        raise _unexpected(path) from None


def _unexpected(path: str) -> ApiError:
    return ApiError(
        Page(
            f"the answer to {path} is not what GitHub's API gives",
            why="a proxy answers in its place, or GITHUB_API_URL is not the API's address",
        )
    )
