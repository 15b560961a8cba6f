"""The record of an approval stands on one commit, and the newest one counts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fakes.github.server import Server
from tests.fakes.github.state import Repository, State, Token

from gpuci.github import record
from gpuci.github.client import Client
from gpuci.github.record import Approval, Unauthorized

SHA, OTHER = "a" * 40, "b" * 40
SCRIPTS = Path(record.__file__).resolve().parents[2]


@pytest.fixture
def server() -> Iterator[Server]:
    repository = Repository("org/mono", commits=[SHA, OTHER])
    with Server(State([repository], {"t": Token({"statuses": "write"})})) as found:
        yield found


@pytest.fixture
def client(server: Server) -> Client:
    return Client(server.url, "t", "org/mono", action="test", say=lambda text: None)


def test_an_approval_is_read_back_on_its_commit_alone(client: Client) -> None:
    assert record.approved(client, SHA) is None
    record.approve(client, SHA, "ada-l", "label")
    found = record.require(client, SHA)
    assert (found.sha, found.login, found.door) == (SHA, "ada-l", "label")
    assert found.at
    assert record.approved(client, OTHER) is None


def test_the_newest_record_counts(client: Client) -> None:
    record.approve(client, SHA, "ada", "label")
    client.set_status(SHA, "gpuci", "failure")
    assert record.revoke(client, SHA, "bob")
    assert record.approved(client, SHA) is None
    record.approve(client, SHA, "eve", "dispatch")
    assert record.require(client, SHA).login == "eve"


def test_nothing_is_written_where_nothing_can_be_taken_back(client: Client, server: Server) -> None:
    assert not record.revoke(client, SHA, "bob")
    assert {seen.method for seen in server.requests} == {"GET"}


def test_a_commit_without_approval_is_refused_with_what_to_do(client: Client) -> None:
    client.set_status(SHA, "gpuci", "success")  # another context approves nothing
    with pytest.raises(Unauthorized) as caught:
        record.require(client, SHA)
    assert caught.value.exit_code == 8
    assert f"gpuci approve PR {SHA}" in caught.value.page()


@pytest.mark.parametrize(
    ("description", "login", "door"),
    [
        ("approved by @ada (label)", "ada", "label"),
        ("approved by @ada_corp (dispatch), 3 shards", "ada_corp", "dispatch"),
        ("approved by @a`b` (label)", "", ""),
        ("LGTM", "", ""),
        ("", "", ""),
    ],
    ids=["label", "dispatch", "hostile", "other-words", "none"],
)
def test_who_approved_is_told_if_the_record_is_ours(
    client: Client, description: str, login: str, door: str
) -> None:
    client.set_status(SHA, "gpuci/approved", "success", description)
    found = record.approved(client, SHA)
    assert found is not None
    assert found == Approval(SHA, login, door, found.at)


def test_it_needs_the_standard_library_only() -> None:
    """`run-gpu-shard` asks for the record, and installs nothing."""
    program = f"import sys; sys.path.insert(0, {str(SCRIPTS)!r}); import gpuci.github.record"
    subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True)
