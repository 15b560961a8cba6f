"""Requests over HTTP, to the fake GitHub."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fakes.github.faults import Fault
from tests.fakes.github.server import Server
from tests.fakes.github.state import Pull, Repository, State, Token

from gpuci.errors import GpuciError
from gpuci.github import http, retry
from gpuci.github.api import Api
from gpuci.github.messages import ApiError

TOKEN = "ghs_16C7e42F292c6912E7710c838347Ae178B4a"
SHA = "a" * 40
STATUS = {"context": "gpuci", "state": "pending"}


class Client:
    """An Api, what it said and how long it would have slept."""

    def __init__(
        self, url: str, *, budget: int = 30, token: str = TOKEN, repository: str = "octo/shop"
    ) -> None:
        self.said: list[str] = []
        self.slept: list[float] = []
        self.api = Api(
            url,
            token,
            repository,
            action="find-changed",
            say=self.said.append,
            budget=budget,
            sleep=self.slept.append,
            now=lambda: 1000.0,
            jitter=lambda: 0.5,
        )


@pytest.fixture
def server() -> Iterator[Server]:
    shop = Repository("octo/shop", pulls={3: Pull(3, SHA)}, renamed_from="octo/old")
    with Server(State([shop], {TOKEN: Token()})) as fake:
        yield fake


def test_a_request_says_who_asks(server: Server) -> None:
    assert Client(server.url).api.get("pulls/3")["number"] == 3
    (seen,) = server.requests
    assert (seen.method, seen.path) == ("GET", "/repos/octo/shop/pulls/3")
    assert seen.agent.startswith("gpuci/")
    assert seen.agent.endswith(" (find-changed)")
    assert seen.token == TOKEN


def test_the_api_may_live_below_a_path(server: Server) -> None:
    assert Client(server.url + "/api/v3/").api.get("pulls/3")["number"] == 3


def test_absence_is_an_answer_where_asked_for(server: Server) -> None:
    client = Client(server.url)
    assert client.api.get("environments/gpu", missing=None) is None
    with pytest.raises(ApiError) as caught:
        client.api.get("environments/gpu")
    assert caught.value.status == 404
    assert client.slept == []


# --- repeats


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=502),
        Fault(status=500),
        Fault(status=429, headers={"Retry-After": "1"}),
        Fault(status=403, headers={"Retry-After": "1"}),
        Fault(status=403, body='{"message": "You have exceeded a secondary rate limit."}'),
        Fault(close=True),
        Fault(cut=True),
    ],
    ids=["502", "500", "429", "403 retry-after", "403 secondary", "closed", "cut off"],
)
def test_what_passes_by_is_waited_for_and_said(server: Server, fault: Fault) -> None:
    server.faults = [fault]
    client = Client(server.url)
    assert client.api.get("pulls/3")["number"] == 3
    assert len(server.requests) == 2
    assert len(client.slept) == len(client.said) == 1
    assert client.said[0].endswith(f"to GET pulls/3; again in {client.slept[0]:.1f} s")


def test_pauses_grow_and_end(server: Server) -> None:
    server.faults = [Fault(status=503, times=-1)]
    client = Client(server.url)
    with pytest.raises(ApiError, match="answered 503") as caught:
        client.api.get("pulls/3")
    assert client.slept == [1, 2, 4, 8]
    assert len(server.requests) == retry.ATTEMPTS
    assert caught.value.exit_code == 4


def test_a_run_does_not_wait_for_long_in_all(server: Server) -> None:
    server.faults = [Fault(status=429, headers={"Retry-After": "50"}, times=-1)]
    client = Client(server.url)
    with pytest.raises(ApiError, match=r"limits our requests .* pause of 50 s"):
        client.api.get("pulls/3")
    assert sum(client.slept) <= retry.WAIT_SECONDS
    with pytest.raises(ApiError, match="limits our requests"):
        client.api.get("pulls/3")
    assert sum(client.slept) <= retry.WAIT_SECONDS


def test_a_limit_that_ends_in_half_an_hour_is_not_waited_for(server: Server) -> None:
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "2800"}
    server.faults = [Fault(status=403, headers=headers, body='{"message": "API rate limit exceeded"}')]
    client = Client(server.url)
    with pytest.raises(ApiError, match="30 min"):
        client.api.get("pulls/3")
    assert client.slept == []


def test_what_can_be_twice_is_sent_again_when_its_answer_is_lost(server: Server) -> None:
    server.faults = [Fault(method="POST", close=True, done=True)]
    Client(server.url).api.post(f"statuses/{SHA}", STATUS, harmless=True)
    assert len(server.state.repositories[0].statuses[SHA]) == 2


@pytest.mark.parametrize(
    "fault",
    [Fault(close=True, done=True), Fault(status=502, done=True), Fault(cut=True, done=True)],
    ids=["closed", "502", "cut off"],
)
def test_what_must_not_be_twice_is_not_sent_again(server: Server, fault: Fault) -> None:
    server.faults = [fault]
    client = Client(server.url)
    with pytest.raises(ApiError) as caught:
        client.api.post("issues/3/comments", {"body": "hello"})
    assert caught.value.unsure
    assert len(server.requests) == 1
    assert len(server.state.repositories[0].comments[3]) == 1


def test_what_was_surely_not_done_is_sent_again(server: Server) -> None:
    server.faults = [Fault(status=429, headers={"Retry-After": "1"})]
    Client(server.url).api.post("issues/3/comments", {"body": "hello"})
    assert len(server.state.repositories[0].comments[3]) == 1


def test_a_deletion_whose_answer_is_lost(server: Server) -> None:
    server.state.repositories[0].pulls[3].labels = ["gpu"]
    server.faults = [Fault(method="DELETE", close=True, done=True)]
    Client(server.url).api.delete("issues/3/labels/gpu")
    assert server.state.repositories[0].pulls[3].labels == []


def test_a_server_that_is_not_there(server: Server) -> None:
    url = server.url
    server.stop()
    client = Client(url)
    with pytest.raises(ApiError, match="did not answer: Connection refused") as caught:
        client.api.post("issues/3/comments", {"body": "hello"})
    assert not caught.value.unsure
    assert len(client.slept) == retry.ATTEMPTS - 1


def test_a_connection_that_breaks_while_it_sends_may_have_been_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepted = threading.Thread(target=lambda: listener.accept()[0].close())
        accepted.start()
        client = Client(f"http://127.0.0.1:{listener.getsockname()[1]}")
        with pytest.raises(ApiError, match="did not answer") as caught:
            client.api.post("issues/3/comments", {"body": "x" * 9_000_000})
        accepted.join()
    assert caught.value.unsure
    assert client.slept == []


def test_a_server_that_is_silent(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "SILENCE_SECONDS", 0.01)
    server.faults = [Fault(hold=True, times=-1)]
    with pytest.raises(ApiError, match="did not answer: timed out"):
        Client(server.url).api.get("pulls/3")


# --- the budget


def test_at_most_so_many_requests(server: Server) -> None:
    client = Client(server.url, budget=3)
    for _ in range(3):
        client.api.get("pulls/3")
    with pytest.raises(ApiError, match="request 4"):
        client.api.get("pulls/3")
    assert len(server.requests) == 3


def test_repeats_count(server: Server) -> None:
    server.faults = [Fault(status=502, times=-1)]
    client = Client(server.url, budget=3)
    with pytest.raises(ApiError, match="answered 502"):
        client.api.get("pulls/3")
    assert len(server.requests) == 3


# --- pages


def pages_of(server: Server, count: int) -> list[int]:
    server.state.repositories[0].comments[3] = [{"id": n, "body": "x", "user": None} for n in range(count)]
    return list(range(count))


@pytest.mark.parametrize(("count", "requests"), [(0, 1), (1, 1), (100, 1), (101, 2), (250, 3)])
def test_all_pages(server: Server, count: int, requests: int) -> None:
    expected = pages_of(server, count)
    assert [one["id"] for one in Client(server.url).api.items("issues/3/comments")] == expected
    assert len(server.requests) == requests


def test_pages_that_nobody_reads_are_not_fetched(server: Server) -> None:
    pages_of(server, 250)
    assert next(Client(server.url).api.items("issues/3/comments"))["id"] == 0
    assert len(server.requests) == 1


def test_a_list_that_would_be_cut_is_an_error(server: Server) -> None:
    pages_of(server, 250)
    with pytest.raises(ApiError, match="more than 2 pages"):
        list(Client(server.url).api.items("issues/3/comments", limit_pages=2))


def test_pages_with_a_key(server: Server) -> None:
    server.state.repositories[0].check_suites[SHA] = [f"2026-11-20T10:00:{n % 60:02d}Z" for n in range(130)]
    path = f"commits/{SHA}/check-suites"
    assert len(list(Client(server.url).api.items(path, "check_suites"))) == 130


@pytest.mark.parametrize(
    "body",
    ['{"items": []}', '{"check_suites": 1}', "[]", "null", "1"],
    ids=["no key", "number", "list", "null", "1"],
)
def test_pages_that_are_no_lists(server: Server, body: str) -> None:
    server.faults = [Fault(status=200, body=body)]
    with pytest.raises(ApiError, match="not what GitHub's API gives"):
        list(Client(server.url).api.items(f"commits/{SHA}/check-suites", "check_suites"))


# --- other hosts


@pytest.fixture
def other() -> Iterator[Server]:
    """Another host (another port is one), which must never see the token."""
    with Server(State()) as fake:
        yield fake


def test_a_next_page_on_another_host_is_not_asked_for(server: Server, other: Server) -> None:
    link = f'<{other.url}/repos/octo/shop/issues/3/comments?page=2>; rel="next"'
    server.faults = [Fault(status=200, body="[]", headers={"Link": link})]
    with pytest.raises(ApiError, match="another host"):
        list(Client(server.url).api.pages("issues/3/comments"))
    assert other.requests == []


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_redirect_to_another_host_is_not_followed(
    server: Server, other: Server, status: int, method: str
) -> None:
    server.faults = [Fault(status=status, headers={"Location": f"{other.url}/x"})]
    api = Client(server.url).api
    with pytest.raises(ApiError, match=r"another host|elsewhere"):
        api.get("pulls/3") if method == "GET" else api.post("issues/3/comments", {"body": "x"})
    assert other.requests == []


def test_a_renamed_repository_is_found(server: Server) -> None:
    api = Client(server.url, repository="octo/old").api
    assert api.get("pulls/3")["number"] == 3
    api.post("issues/3/comments", {"body": "moved"})
    assert [one["body"] for one in server.state.repositories[0].comments[3]] == ["moved"]


def test_a_write_that_would_become_a_read_is_not_followed(server: Server) -> None:
    server.faults = [Fault(status=301, headers={"Location": f"{server.url}/repos/octo/shop/pulls/3"})]
    with pytest.raises(ApiError, match="elsewhere"):
        Client(server.url).api.post("issues/3/comments", {"body": "x"})
    assert len(server.requests) == 1


def test_a_circle_ends(server: Server) -> None:
    server.faults = [Fault(status=302, times=-1, headers={"Location": "/repos/octo/shop/pulls/3"})]
    with pytest.raises(ApiError, match="elsewhere"):
        Client(server.url).api.get("pulls/3")
    assert len(server.requests) == 4


def test_no_proxy_is_asked_for_this_machine(
    server: Server, other: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, other.url)
    assert Client(server.url).api.get("pulls/3")["number"] == 3
    assert other.requests == []


def test_the_proxy_of_the_environment_is_asked_for_others(
    other: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", other.url)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    client = Client("https://api.example.org")
    with pytest.raises(ApiError, match="did not answer: Tunnel connection failed: 501"):
        client.api.get("pulls/3")


# --- answers that are none


@pytest.mark.parametrize(
    "body", ["", "<html>", "[" * 100_000, '"\xff', "{"], ids=["empty", "html", "deep", "bytes", "half"]
)
def test_an_answer_that_is_no_json(server: Server, body: str) -> None:
    server.faults = [Fault(status=200, body=body)]
    with pytest.raises(ApiError, match="not what GitHub's API gives"):
        Client(server.url).api.get("pulls/3")


def test_an_answer_without_end(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "BODY_BYTES", 1000)
    server.faults = [Fault(status=200, body="x" * 1001, times=-1)]
    with pytest.raises(ApiError, match="more than 1000 bytes"):
        Client(server.url).api.get("pulls/3")
    assert len(server.requests) == 1


CHUNKED = {"Transfer-Encoding": "chunked"}


def test_an_answer_in_chunks(server: Server) -> None:
    server.faults = [Fault(status=200, headers=CHUNKED, body='6\r\n{"a": \r\n2\r\n1}\r\n0\r\n\r\n')]
    assert Client(server.url).api.get("pulls/3") == {"a": 1}


@pytest.mark.parametrize("body", ['6\r\n{"a"', "zz\r\n{}"], ids=["early end", "no number"])
def test_chunks_that_are_none(server: Server, body: str) -> None:
    server.faults = [Fault(status=200, headers=CHUNKED, body=body)]
    client = Client(server.url)
    assert client.api.get("pulls/3")["number"] == 3
    assert "IncompleteRead" in client.said[0]


def test_an_answer_that_drips(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "WHOLE_SECONDS", -1.0)
    with pytest.raises(ApiError, match="took more than"):
        Client(server.url).api.get("pulls/3")


# --- the token


def echoing(status: int) -> Fault:
    return Fault(status=status, body=json.dumps({"message": f"bad token {TOKEN}"}), times=-1)


@pytest.mark.parametrize("status", [401, 403, 404, 422, 500])
def test_the_token_is_nowhere(server: Server, status: int) -> None:
    server.faults = [echoing(status)]
    client = Client(server.url)
    with pytest.raises(ApiError) as caught:
        client.api.get("pulls/3")
    told = [caught.value.page(), repr(caught.value), repr(client.api), *client.said]
    assert [text for text in told if TOKEN in text] == []


def test_a_missing_permission_is_named(server: Server) -> None:
    server.state.tokens["weak"] = Token({"contents": "read"})
    with pytest.raises(ApiError, match="Resource not accessible by integration") as caught:
        Client(server.url, token="weak").api.post(f"statuses/{SHA}", STATUS)
    assert "`statuses: write`" in caught.value.page()
    assert caught.value.exit_code == 2


# --- TLS


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for localhost that nobody signed, with its key."""
    path = tmp_path / "localhost.pem"
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(
        [*make, *names, "-days", "2", "-keyout", path, "-out", tmp_path / "cert"],
        check=True,
        capture_output=True,
    )
    path.write_bytes(path.read_bytes() + (tmp_path / "cert").read_bytes())
    return path


@pytest.fixture
def encrypted(server: Server, certificate: Path) -> Server:
    """The server behind TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.encrypt(context)
    return server


def test_a_certificate_that_is_not_trusted_ends_it(encrypted: Server) -> None:
    client = Client(encrypted.url.replace("http://127.0.0.1", "https://localhost"))
    with pytest.raises(ApiError, match=r"its certificate: self.signed") as caught:
        client.api.get("pulls/3")
    assert "SSL_CERT_FILE" in caught.value.page()
    assert client.slept == []
    assert encrypted.requests == []


def test_a_certificate_of_the_system_is_trusted(
    encrypted: Server, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    client = Client(encrypted.url.replace("http://127.0.0.1", "https://localhost"))
    assert client.api.get("pulls/3")["number"] == 3


def test_a_failure_is_a_help_page(server: Server) -> None:
    server.stop()
    with pytest.raises(GpuciError):
        Client(server.url, budget=1).api.get("pulls/3")
