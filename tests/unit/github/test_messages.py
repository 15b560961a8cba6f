"""What a refusal of GitHub's tells a person."""

import re

import pytest
from tests.fakes.github.endpoints import ROUTES, Route

from gpuci.github.messages import PERMISSIONS, Refusal, message_of, page, permission_of
from gpuci.github.retry import Kind

SHA = "a" * 40
SAMPLES = {
    r"(?P<sha>[0-9a-f]{40})": SHA,
    r"(?P<number>\d+)": "12",
    "(?P<path>.+)": "docs/a.md",
    **{f"(?P<{name}>[^/]+)": name for name in ("ref", "user", "name", "workflow")},
}
# What the fake serves for others: act and the scenarios.
NOT_OURS = {
    ("GET", "commits/ref"),
    ("GET", "issues/12/labels"),
    ("GET", "actions/runs/12/artifacts"),
    ("GET", "contents/docs/a.md"),
}


def sample(route: Route) -> str:
    """A path of an endpoint."""
    path = route.path
    for pattern, text in SAMPLES.items():
        path = path.replace(pattern, text)
    return path


def ask(method: str, path: str, status: int, text: str = "", **more: object) -> str:
    refusal = Refusal(method, path, status, Kind.FINAL, text, **more)  # type: ignore[arg-type]
    return "\n".join(page(refusal))


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {sample(route)}")
def test_the_permission_is_the_one_that_github_asks_for(route: Route) -> None:
    permission = permission_of(route.method, sample(route))
    if (route.method, sample(route)) in NOT_OURS:
        assert permission == ""
    else:
        assert permission in route.permissions


def test_each_permission_is_of_an_endpoint_of_the_fake() -> None:
    asked = [(route.method, sample(route)) for route in ROUTES]
    unknown = [
        rule for rule in PERMISSIONS if not any(m == rule[0] and re.fullmatch(rule[1], p) for m, p in asked)
    ]
    assert unknown == []


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (ask("GET", "pulls/3", 401, "Bad credentials"), ["does not accept the token", "github.token"]),
        (ask("POST", f"statuses/{SHA}", 403, "Resource not accessible"), ["`statuses: write`", "caller"]),
        (ask("GET", "new/endpoint", 403, accepted="code_scanning=read; x=y"), ["`code-scanning: read`"]),
        (ask("DELETE", "issues/3/labels/x", 403, accepted="issues=write"), ["`pull-requests: write`"]),
        (ask("GET", "new/endpoint", 403), ["the token may not do this"]),
        (ask("GET", "environments/gpu", 404), ["finds nothing", "`actions: read`"]),
        (
            ask("POST", f"statuses/{SHA}", 422, "Validation Failed: too long"),
            ["422: Validation Failed: too long"],
        ),
        (ask("GET", "pulls/3", 502), ["answered 502", "githubstatus.com"]),
        (ask("GET", "pulls/3", 0, "timed out"), ["did not answer: timed out", "HTTPS_PROXY"]),
    ],
    ids=[
        "401",
        "403 by table",
        "403 by header",
        "403 by both",
        "403 unknown",
        "404",
        "422",
        "502",
        "no answer",
    ],
)
def test_a_page_says_what_to_do(told: str, words: list[str]) -> None:
    assert [word for word in words if word not in told] == []


@pytest.mark.parametrize("status", [403, 404])
@pytest.mark.parametrize(
    ("path", "writes", "wanted"),
    [
        (f"commits/{SHA}/statuses", (), "statuses: read"),
        (f"commits/{SHA}/statuses", ("statuses",), "statuses: write"),
        (f"commits/{SHA}/check-suites", ("statuses",), "checks: read"),
        ("issues/3/comments", ("statuses", "pull-requests"), "pull-requests: write"),
    ],
    ids=["reads", "writes too", "another scope", "comments"],
)
def test_a_page_asks_for_all_that_the_job_needs(
    status: int, path: str, writes: tuple[str, ...], wanted: str
) -> None:
    assert f"`{wanted}`" in ask("GET", path, status, writes=writes)


def test_a_limit_is_no_missing_permission() -> None:
    told = page(Refusal("GET", "pulls/3", 403, Kind.LIMITED, pause=1800.0))
    assert "30 min" in told.what
    assert "permission" not in "".join(told)


@pytest.mark.parametrize(
    ("status", "verdict"),
    [(401, "config_error"), (403, "config_error"), (404, "config_error"), (422, "infra"), (502, "infra")],
)
def test_the_verdict_tells_who_can_help(status: int, verdict: str) -> None:
    assert page(Refusal("GET", "pulls/3", status, Kind.FINAL)).verdict == verdict


HOSTILE = "x\r\n::error::no\n##[add-matcher]/tmp/x\n\x1b[31m" + "y" * 5000


@pytest.mark.parametrize("status", [0, 403, 404, 422, 500])
def test_what_a_server_says_is_one_short_line(status: int) -> None:
    told = page(Refusal("GET", f"branches/{HOSTILE}", status, Kind.FINAL, HOSTILE, accepted=HOSTILE))
    for text in told:
        assert len(text) < 700
        assert "\n" not in text
        assert "\x1b" not in text
        assert "##[" not in text


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"message": "Not Found"}', "Not Found"),
        (
            b'{"message": "Validation Failed", "errors": [{"message": "too long"}, "x", {}]}',
            "Validation Failed: too long",
        ),
        (b'{"message": null, "errors": "x"}', ""),
        (b"<html>", ""),
        (b"[1]", ""),
        (b"", ""),
        (b"[" * 60000, ""),
        (b"\xff\xfe\x00", ""),
    ],
    ids=["message", "fields", "odd", "html", "list", "empty", "deep", "bytes"],
)
def test_message_of(body: bytes, message: str) -> None:
    assert message_of(body) == message
