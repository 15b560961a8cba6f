"""A registry of images on loopback: OCI distribution 1.1, with refusals like real ones, and faults on demand.

State in memory. With `token_users` it wants a token from its own `/token` as GHCR does, with `users` a
password as distribution does; with neither it is open.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

_PATH = re.compile(r"/v2/(?P<name>.+?)/(?P<kind>manifests|blobs)/(?P<rest>.+)")


@dataclass
class Fake:
    """`faults`: answers for the next requests in turn; a status, "close", or None for a good one."""

    port: int = 0
    token_users: dict[str, str] = field(default_factory=dict)
    users: dict[str, str] = field(default_factory=dict)
    readers: set[str] = field(default_factory=set)  # users that may not write
    realm: str = ""
    uploads: str = ""  # another place that takes uploads, `http://host:port`
    faults: deque[int | str | None] = field(default_factory=deque)
    blobs: dict[tuple[str, str], bytes] = field(default_factory=dict)
    manifests: dict[tuple[str, str], tuple[bytes, str]] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    authorizations: list[str] = field(default_factory=list)
    tokens: dict[str, str] = field(default_factory=dict)  # token -> scope
    before_manifest: list[object] = field(default_factory=list)  # called once, for races

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def tag(self, name: str, tag: str) -> str | None:
        """The digest behind a tag."""
        found = self.manifests.get((name, tag))
        return found and f"sha256:{hashlib.sha256(found[0]).hexdigest()}"

    def count(self, method: str, part: str) -> int:
        """How many requests of a method have this in their path."""
        return sum(1 for verb, path in self.requests if verb == method and part in path)


@contextmanager
def serving(fake: Fake) -> Iterator[Fake]:
    """Serve until the end of the block."""

    class Handler(_Handler):
        state = fake

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    state: Fake
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        """Nothing: standard error is the tests'."""

    def do_GET(self) -> None:
        self._serve()

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

    def _serve(self) -> None:
        self.state.requests.append((self.command, self.path))
        self.state.authorizations.append(self.headers.get("Authorization", ""))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.state.faults.popleft() if self.state.faults else None
        if fault == "close":
            self.close_connection = True
        elif isinstance(fault, int):
            self._error(fault, "FAULT")
        elif self.path.startswith("/token"):
            self._token()
        elif self._allowed():
            self._act(body)

    # --- who is asking

    def _token(self) -> None:
        query = {key: value[0] for key, value in parse_qs(urlsplit(self.path).query).items()}
        user = self._basic(self.state.token_users)
        if user is None and self.state.token_users:
            self._error(401, "UNAUTHORIZED")
            return
        scope = query["scope"].removesuffix(",push") if user in self.state.readers else query["scope"]
        token = f"token{len(self.state.tokens)}"
        self.state.tokens[token] = scope
        self._answer(200, json.dumps({"token": token}).encode())

    def _basic(self, users: dict[str, str]) -> str | None:
        kind, _, text = self.headers.get("Authorization", "").partition(" ")
        if kind != "Basic":
            return None
        user, _, password = base64.b64decode(text).decode().partition(":")
        return user if users.get(user) == password else None

    def _allowed(self) -> bool:
        state = self.state
        writes = self.command not in ("GET", "HEAD")
        if state.users:
            user = self._basic(state.users)
            if user is None:
                self._error(401, "UNAUTHORIZED", challenge='Basic realm="fake"')
            elif writes and user in state.readers:
                self._error(403, "DENIED")
            else:
                return True
            return False
        if not state.token_users:
            return True
        scope = state.tokens.get(self.headers.get("Authorization", "").removeprefix("Bearer "), "")
        name = urlsplit(self.path).path.removeprefix("/v2/")
        _, granted, actions = scope.split(":") if scope else ("", "", "")
        if not scope:
            realm = state.realm or f"http://{state.host}/token"
            self._error(401, "UNAUTHORIZED", challenge=f'Bearer realm="{realm}",service="fake"')
        elif not name.startswith(f"{granted}/") or (writes and "push" not in actions.split(",")):
            self._error(403, "DENIED")
        else:
            return True
        return False

    # --- what is asked

    def _act(self, body: bytes) -> None:
        url = urlsplit(self.path)
        match = _PATH.fullmatch(url.path)
        if match is None:
            self._error(404, "NAME_UNKNOWN")
        elif match["kind"] == "manifests":
            self._manifest(match["name"], match["rest"], body)
        else:
            self._blob(match["name"], match["rest"], parse_qs(url.query), body)

    def _manifest(self, name: str, reference: str, body: bytes) -> None:
        state = self.state
        if self.command != "PUT":
            if state.before_manifest and not reference.startswith("sha256:"):
                state.before_manifest.pop(0)()  # type: ignore[operator]
            found = state.manifests.get((name, reference))
            if found is None:
                self._error(404, "MANIFEST_UNKNOWN")
            else:
                self._answer(200, found[0], kind=found[1])
            return
        document = json.loads(body)
        parts = [document["config"], *document["layers"]]
        if any((name, part["digest"]) not in state.blobs for part in parts):
            self._error(400, "MANIFEST_BLOB_UNKNOWN")
            return
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        for key in (reference, digest):
            state.manifests[name, key] = (body, self.headers["Content-Type"])
        self._answer(201, b"")

    def _blob(self, name: str, rest: str, query: dict[str, list[str]], body: bytes) -> None:
        blobs = self.state.blobs
        if self.command == "HEAD":
            self._answer(200 if (name, rest) in blobs else 404, b"")
        elif self.command == "POST":
            self._answer(202, b"", location=f"{self.state.uploads}/v2/{name}/blobs/uploads/1?state=x")
        elif hashlib.sha256(body).hexdigest() == query["digest"][0].removeprefix("sha256:"):
            blobs[name, query["digest"][0]] = body
            self._answer(201, b"")
        else:
            self._error(400, "DIGEST_INVALID")

    # --- answers

    def _error(self, status: int, code: str, *, challenge: str = "") -> None:
        self._answer(status, json.dumps({"errors": [{"code": code}]}).encode(), challenge=challenge)

    def _answer(
        self,
        status: int,
        body: bytes,
        *,
        kind: str = "application/json",
        challenge: str = "",
        location: str = "",
    ) -> None:
        self.send_response(status)
        told = {"Content-Type": kind, "WWW-Authenticate": challenge, "Location": location}
        for name, value in told.items():
            if value:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
