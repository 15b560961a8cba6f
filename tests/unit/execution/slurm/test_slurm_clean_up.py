"""Ending what is left of a run, with nothing but the names of its jobs."""

from __future__ import annotations

import pytest

from gpuci.execution.slurm import clean_up as module
from gpuci.execution.slurm.clean_up import clean_up
from gpuci.execution.transport.connection import Answer, LinkLost

NAMES = ["gpuci-o.r-1-a1-s1-t1", "gpuci-o.r-1-a1-s1-t2"]


class Login:
    """A login node with one job; `lose` and `fail` say how often a text loses the link, and scancel fails."""

    def __init__(self, lose: str = "", fail: int = 0, down: int = 0) -> None:
        self.queue = [f"17|{NAMES[0]}|RUNNING|None|gpu001|x", "18|gpuci-o.r-2-a1-s1-t1|RUNNING|None|gpu001|x"]
        self.asked: list[str] = []
        self.lose, self.fail, self.down = lose, fail, down

    def run(self, text: str, *args: str, stdin: bytes = b"", timeout: float = 60.0) -> Answer:
        word = text.rpartition("# shellcheck shell=sh\n")[2].split()[1].rstrip(":")
        self.asked.append(word)
        if word == self.lose:
            self.lose = ""
            raise LinkLost("the link is gone")
        if word == "prepare":
            return Answer(0, b"shared=/shared\nhost=login\n", "")
        if word == "queue":
            self.down -= 1
            return Answer(int(self.down >= 0), "\n".join(self.queue).encode(), "")
        if word == "cancel":
            assert args == ("17",)
            self.fail -= 1
            if self.fail >= 0:
                return Answer(1, b"", "scancel: error: Kill job error on job id 17")
            self.queue = self.queue[1:]
        return Answer(0, b"", "")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(module, "_CANCEL_AGAIN_SECONDS", 0.0)


@pytest.mark.parametrize(
    "login",
    [
        Login(),
        *(Login(lose=text) for text in ("prepare", "withdraw", "queue", "cancel")),
        Login(fail=2),
        Login(down=2),
    ],
    ids=["at once", "prepare", "withdraw", "queue", "cancel", "scancel fails", "Slurm does not answer"],
)
def test_what_carries_the_name_ends_whatever_is_lost_on_the_way(
    login: Login, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpuci.execution.slurm.remote._PAUSE_SECONDS", 0.0)
    said: list[str] = []
    assert clean_up(login, None, NAMES, said.append)
    assert len(login.queue) == 1
    assert "withdraw" in login.asked
    assert said[-1] == "nothing of these shards is in the queue"


@pytest.mark.parametrize(("fail", "down"), [(10**6, 0), (0, 10**6)], ids=["no scancel", "no answer"])
def test_what_does_not_end_is_told(fail: int, down: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0.05)
    said: list[str] = []
    assert not clean_up(Login(fail=fail, down=down), None, NAMES, said.append)
    assert said[-1].startswith("still in the queue: " + ("17" if fail else "unknown"))
