"""A small GitHub over HTTP on the loopback: the API that gpuci uses, and git.

    server = Server(State([Repository("octo/shop")], {"token": Token()}))
    with server: ... server.url ... server.requests ... server.state

As GitHub it wants a User-Agent, hides private repositories, refuses what a token may not do, and names the
permission in a header. It serves git below `/OWNER/NAME(.git)`. For other processes: `GET /_fake/requests`,
`GET` and `PUT /_fake/state`, `PUT /_fake/faults` (a list of `Fault`).
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import threading
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.fakes.github import git
from tests.fakes.github.endpoints import ROUTES, Route
from tests.fakes.github.faults import Fault
from tests.fakes.github.replies import NOT_FOUND, Asked, Reply, refusal
from tests.fakes.github.state import Repository, State, Token, from_document

_LIMIT = 1000  # requests an hour and repository, for a GITHUB_TOKEN


@dataclass(frozen=True)
class Seen:
    """A request that came. `permissions`: one of these it takes. `token`: the key in State.tokens."""

    method: str
    path: str
    query: str
    permissions: tuple[str, ...]
    agent: str
    token: str
    status: int  # 0: no answer was given


class Server:
    """The fake. Everything it answers is computed under one lock."""

    def __init__(self, state: State, port: int = 0) -> None:
        self.state = state
        self.requests: list[Seen] = []
        self.faults: list[Fault] = []
        self.lock = threading.RLock()
        self.released = threading.Event()
        handler = type("BoundHandler", (Handler,), {"fake": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._http.daemon_threads = True
        self._http.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that leave
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`, for the API and for git."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.released.set()
        self._http.shutdown()
        self._http.server_close()

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def encrypt(self, context: ssl.SSLContext) -> None:
        """Speak TLS from now on; the handshake is made by the connection's own thread."""
        self._http.socket = context.wrap_socket(
            self._http.socket, server_side=True, do_handshake_on_connect=False
        )

    def fault(self, method: str, path: str) -> Fault | None:
        """The first fault that strikes a request."""
        with self.lock:
            return next((fault for fault in self.faults if fault.takes(method, path)), None)

    def limits(self) -> dict[str, str]:
        left = max(0, _LIMIT - len(self.requests))
        return {"x-ratelimit-limit": str(_LIMIT), "x-ratelimit-remaining": str(left)}


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    fake: Server

    def handle_one(self) -> None:
        """Answer a request of any method."""
        url = urlsplit(self.path)
        path = url.path.removeprefix("/api/v3")
        body = self.read_body()
        if path.startswith("/_fake/"):
            return self.send(self.control(path, body))
        fault = self.fake.fault(self.command, path)
        if fault and fault.hold:
            self.fake.released.wait()
        if git.is_git(path):
            wanted: tuple[str, ...] = ("contents: read",)
            reply = self.git_reply(path, url.query, body)
        else:
            wanted, reply = self.api(path, url.query, body, carried_out=fault is None or fault.done)
        if fault and fault.status:
            reply = Reply(fault.status, fault.body.encode(), fault.headers)
        lost = fault is not None and fault.close
        self.note(path, url.query, wanted, 0 if lost else reply.status)
        if fault and (fault.close or fault.cut):
            return self.break_off(reply, nothing=fault.close)
        return self.send(reply)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = handle_one

    def api(self, path: str, query: str, body: bytes, *, carried_out: bool) -> tuple[tuple[str, ...], Reply]:
        """Permissions of an endpoint, and its answer (an empty one if it is not to be carried out)."""
        with self.fake.lock:
            match = re.fullmatch(r"/repos/([^/]+/[^/]+)(?:/(.*))?", path)
            if path == "/user":
                return ("metadata: read",), self.whoami()
            if match is None:
                return (), NOT_FOUND
            found = find_route(self.command, match[2] or "")
            if found is None:
                return (), NOT_FOUND
            route, parts = found
            repository = self.fake.state.repository(unquote(match[1]))
            if refused := self.refused(route, repository, match[1], match[2] or ""):
                return route.permissions, refused
            assert repository is not None
            if not carried_out:
                return route.permissions, Reply(200)
            return route.permissions, self.carry_out(route, repository, path, parts, query, body)

    def refused(self, route: Route, repository: Repository | None, name: str, rest: str) -> Reply | None:
        """What GitHub says before it looks at what is asked."""
        if not self.headers.get("User-Agent"):
            return refusal(403, "Request forbidden by administrative rules.")
        token = self.token()
        if token is None and self.headers.get("Authorization"):
            return refusal(401, "Bad credentials")
        if repository is None:
            return self.moved(name, rest)
        if token is None:
            needs_token = repository.private or route.method != "GET"
            return (
                (NOT_FOUND if repository.private else refusal(401, "Requires authentication"))
                if (needs_token)
                else None
            )
        if repository.private and token.repositories and repository.name not in token.repositories:
            return NOT_FOUND
        if not any(token.may(*one.split(": ")) for one in route.permissions):
            accepted = "; ".join(one.replace("-", "_").replace(": ", "=") for one in route.permissions)
            return refusal(
                403, "Resource not accessible by integration", x_accepted_github_permissions=accepted
            )
        return None

    def moved(self, name: str, rest: str) -> Reply:
        """A renamed repository is found at its new place, with 301, or 307 where a body is sent."""
        new = next((one for one in self.fake.state.repositories if one.renamed_from == name), None)
        if new is None:
            return NOT_FOUND
        status = 301 if self.command == "GET" else 307
        query = urlsplit(self.path).query
        where = f"{self.fake.url}/repos/{new.name}/{rest}{'?' if query else ''}{query}"
        return Reply(status, {"message": "Moved Permanently", "url": where}, {"Location": where})

    def carry_out(
        self, route: Route, repository: Repository, path: str, parts: dict[str, str], query: str, body: bytes
    ) -> Reply:
        try:
            document = json.loads(body) if body else {}
        except ValueError:
            document = None
        if not isinstance(document, dict):
            return refusal(400, "Problems parsing JSON")
        asked = Asked(
            self.fake.state,
            repository,
            self.token() or Token({}),
            self.fake.url,
            path,
            parts,
            dict(parse_qsl(query)),
            document,
            self.headers.get("Accept", ""),
        )
        return route.handler(asked)

    def whoami(self) -> Reply:
        token = self.token()
        if token is None:
            return refusal(401, "Bad credentials")
        if token.login.endswith("[bot]"):
            return refusal(403, "Resource not accessible by integration")
        kind = self.fake.state.kinds.get(token.login, "User")
        return Reply(200, {"login": token.login, "type": kind})

    def git_reply(self, path: str, query: str, body: bytes) -> Reply:
        repository = self.fake.state.repository(git.repository_of(path))
        token, asks = self.token(), self.headers.get("Authorization")
        if (token is None and asks) or (token is None and (repository is None or repository.private)):
            return Reply(401, b"Repository not found.", {"WWW-Authenticate": 'Basic realm="GitHub"'})
        hidden = repository and token and token.repositories and repository.name not in token.repositories
        if repository is None or not repository.git or (hidden and repository.private):
            return Reply(404, b"Repository not found.")
        if token is not None and not token.may("contents", "read"):
            return Reply(403, b"Write access to repository not granted.")
        return git.answer(repository.git, self.command, path, query, dict(self.headers.items()), body)

    def token_key(self) -> str:
        """The token that the request brought; git sends it as a password."""
        kind, _, value = self.headers.get("Authorization", "").partition(" ")
        if kind.lower() == "basic":
            return base64.b64decode(value).decode("utf-8", "replace").partition(":")[2]
        return value.strip() if kind.lower() in ("bearer", "token") else ""

    def token(self) -> Token | None:
        return self.fake.state.tokens.get(self.token_key())

    def note(self, path: str, query: str, permissions: tuple[str, ...], status: int) -> None:
        key = self.token_key()
        known = key if key in self.fake.state.tokens else ""
        agent = self.headers.get("User-Agent", "")
        with self.fake.lock:
            self.fake.requests.append(Seen(self.command, path, query, permissions, agent, known, status))

    def control(self, path: str, body: bytes) -> Reply:
        """For another process: what was asked, what is known, what is to fail."""
        with self.fake.lock:
            if (self.command, path) == ("GET", "/_fake/requests"):
                return Reply(200, [asdict(seen) for seen in self.fake.requests])
            if (self.command, path) == ("GET", "/_fake/state"):
                return Reply(200, self.fake.state.to_document())
            if (self.command, path) == ("PUT", "/_fake/state"):
                self.fake.state = from_document(json.loads(body))
                return Reply(204)
            if (self.command, path) == ("PUT", "/_fake/faults"):
                self.fake.faults = [Fault(**fault) for fault in json.loads(body)]
                return Reply(204)
        return NOT_FOUND

    def read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        pieces = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def send(self, reply: Reply) -> None:
        data = reply.data()
        self.send_response(reply.status)
        headers = {"Content-Type": "application/json; charset=utf-8", **self.fake.limits(), **reply.headers}
        for name, value in headers.items():
            self.send_header(name, value)
        if reply.status not in (204, 304):
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def break_off(self, reply: Reply, *, nothing: bool) -> None:
        """End the connection: with no answer, or in the middle of the body."""
        self.close_connection = True
        if nothing:
            return
        self.send_response(reply.status)
        self.send_header("Content-Length", str(len(reply.data()) + 1))
        self.end_headers()
        self.wfile.write(reply.data())

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the tests look at `requests`."""


def anonymous(method: str) -> Reply | None:
    """What is refused to those without a token, in a public repository."""
    return None if method == "GET" else refusal(401, "Requires authentication")


def find_route(method: str, rest: str) -> tuple[Route, dict[str, str]] | None:
    """The endpoint of a path below the repository, and the named pieces of the path, decoded."""
    for route in ROUTES:
        if route.method == method and (match := re.fullmatch(route.path, rest)):
            return route, {name: unquote(value) for name, value in match.groupdict().items()}
    return None
