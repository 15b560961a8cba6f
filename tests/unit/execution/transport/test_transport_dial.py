"""What is told while no login node lets us in, by a clock that stands for the real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuci.execution.transport import dial as module
from gpuci.execution.transport.dial import Counts, Dialer, LinkLost
from gpuci.execution.transport.login import Host, Login, facts_of
from gpuci.execution.transport.messages import LATER, REFUSED, Message, explain

DENIED = "root@login1: Permission denied (publickey)."
CHANGED = "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key for login1 has changed"


class Clock:
    """Each attempt, and each pause, takes five seconds."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += 5.0


def told(monkeypatch: pytest.MonkeyPatch, answer: Message, *hosts: str) -> list[str]:
    """What is said in a minute in which every attempt gets the same answer."""
    clock, said = Clock(), list[str]()
    dialer = Dialer(Login(hosts, known_hosts_text="x y z"), Path("/nosuch"), said.append, Counts())
    monkeypatch.setattr(module, "time", clock)

    def attempt(host: Host, end: float) -> Message:
        clock.sleep(5.0)
        return answer

    monkeypatch.setattr(dialer, "_attempt", attempt)
    with pytest.raises(LinkLost, match=answer.what):
        dialer.connect(clock.now + 60.0)
    return said


def test_what_stays_as_it_is_is_told_again_with_the_time_that_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = told(monkeypatch, Message(LATER, "no address for it"), "login1")
    head = "ssh to login1:22: no address for it; trying again, for up to"
    assert said == [f"{head} 55 s", f"{head} 35 s", f"{head} 15 s"]


def test_the_error_alone_tells_of_the_only_host_that_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Message(REFUSED, "no entry")
    assert told(monkeypatch, refused, "login1") == []
    assert told(monkeypatch, refused, "one", "two") == ["ssh to one:22: no entry", "ssh to two:22: no entry"]


def test_where_every_host_refuses_the_first_line_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """It alone reaches the status of a commit and the comment."""
    login = Login(("one", "two"), known_hosts_text="x y z")
    dialer = Dialer(login, Path("/nosuch"), lambda line: None, Counts())

    def attempt(host: Host, end: float) -> Message:
        return Message(REFUSED, f"{host.name} does not let us in", "offered: a key", "add the key")

    monkeypatch.setattr(dialer, "_attempt", attempt)
    with pytest.raises(LinkLost) as caught:
        dialer.connect(0.0)
    assert caught.value.what == "no login node can be reached: one does not let us in"
    assert caught.value.why == "offered: a key\n        two:22: two does not let us in"
    assert caught.value.then == "add the key"


@pytest.mark.parametrize(
    ("login", "said", "words"),
    [
        (
            Login(("login1",), identity_file="/k"),
            DENIED,
            "slurm.identity-file /k, as the name of this machine's",
        ),
        (
            Login(("login1",), "ci", identity_file="/k", key="K"),
            DENIED,
            "offered: GPUCI_SSH_PRIVATE_KEY, as user ci;",
        ),
        (Login(("login1",), "ci", agent="/s"), DENIED, "offered: the keys of the ssh-agent, as user ci;"),
        (
            Login(("login1",), "ci", identity_file="/k", credential_command=("make",)),
            DENIED,
            "offered: the key of slurm.credential-command or slurm.identity-file /k, as user ci;",
        ),
        (Login(("login1",), known_hosts="/kn"), CHANGED, "is not the one in /kn"),
        (Login(("login1",), known_hosts_text="x"), CHANGED, "is not the one in GPUCI_SSH_KNOWN_HOSTS"),
        (
            Login(("login1",), known_hosts="/{0}", known_hosts_text="x"),
            CHANGED,
            "in /{0} and GPUCI_SSH_KNOWN_HOSTS",
        ),
    ],
    ids=["file", "secret", "agent", "command", "known_hosts", "text", "both"],
)
def test_what_was_offered_and_where_host_keys_are_from_is_told(login: Login, said: str, words: str) -> None:
    message = explain(said, "login1", facts_of(login, login.targets[0]))
    assert words in f"{message.what} {message.why}"
