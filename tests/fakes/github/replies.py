"""What a handler is asked and answers, and the refusals in GitHub's own words."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.github.state import Repository, State, Token

DOCS = "https://docs.github.com/rest"


@dataclass
class Reply:
    """An answer; `body` is JSON unless it is bytes."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    def data(self) -> bytes:
        """The body as it is sent."""
        if self.body is None:
            return b""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass
class Asked:
    """A request to the API below a repository that the token can see, with the permission it takes."""

    state: State
    repository: Repository
    token: Token
    base: str  # URL of the server
    path: str
    parts: dict[str, str]  # named pieces of the path, decoded
    query: dict[str, str]
    body: dict[str, Any]
    accept: str = ""


def refusal(status: int, message: str, **headers: str) -> Reply:
    """An error as GitHub words it."""
    body = {"message": message, "documentation_url": DOCS, "status": str(status)}
    return Reply(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


def invalid(resource: str, name: str, message: str) -> Reply:
    """422 for a field."""
    body: dict[str, Any] = {"message": "Validation Failed", "documentation_url": DOCS, "status": "422"}
    body["errors"] = [{"resource": resource, "code": "custom", "field": name, "message": message}]
    return Reply(422, body)


NOT_FOUND = refusal(404, "Not Found")


def paged(asked: Asked, items: list[Any], key: str = "") -> Reply:
    """A page of a list, 30 items unless `per_page` says otherwise (at most 100), with a Link header."""
    size = max(1, min(int(asked.query.get("per_page", 30)), 100))
    page = int(asked.query.get("page", 1))
    part = items[(page - 1) * size : page * size]
    headers = {}
    if page * size < len(items):
        query = "&".join(f"{k}={v}" for k, v in {**asked.query, "page": str(page + 1)}.items())
        last = -(-len(items) // size)
        where = f"{asked.base}{asked.path}?"
        headers["Link"] = f'<{where}{query}>; rel="next", <{where}per_page={size}&page={last}>; rel="last"'
    return Reply(200, {"total_count": len(items), key: part} if key else part, headers)
