"""What becomes of a try that is over: what came with others is taken, what lacks is fetched."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from gpuci.errors import GpuciError
from gpuci.execution.log import LogReader
from gpuci.execution.slurm.answers import Brought, Details
from gpuci.execution.slurm.attempt import Attempt, Do, Step
from gpuci.execution.slurm.finish import MOST_UNANSWERED, NOTHING, Finish, Unanswered
from gpuci.execution.slurm.states import QueueRow
from gpuci.execution.transport.connection import LinkLost

TOKEN = "0123456789abcdef" * 2
JOURNAL = b'{"kind":"note","t":1.0,"text":"x"}\n'
SUM = hashlib.sha256(JOURNAL).hexdigest()
VERDICT = {
    "schema": "gpuci/verdict/1",
    "verdict": "passed",
    "exit_code": 0,
    "reason": "",
    "fault": None,
    "journal": {"lines": 1, "sha256": SUM},
}
DETAILS = Details(0, "JobId=17 JobState=COMPLETED ExitCode=0:0 Reason=None NodeList=gpu001", "")


def packed(**files: bytes) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name.replace("_", "."))
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return stream.getvalue()


WHOLE = packed(journal_jsonl=JOURNAL, verdict_json=json.dumps(VERDICT).encode())


class Login:
    """Stands for the cluster: what it is asked, and a tar that is whole after `late` looks."""

    def __init__(self, late: int = 0) -> None:
        self.asked: list[str] = []
        self.late = late

    def fetch(self, name: str) -> bytes:
        self.asked.append("fetch")
        self.late -= 1
        return packed() if self.late >= 0 else WHOLE

    def details(self, job_id: str, name: str) -> Details:
        self.asked.append("details")
        return DETAILS

    def bring(self, jobs: dict[str, str]) -> dict[str, Brought]:
        self.asked.append(f"bring {jobs}")
        raise LinkLost("the link broke")


def over() -> Attempt:
    attempt = Attempt(1, 1, "job", TOKEN, "", (), LogReader(TOKEN))
    attempt.row = QueueRow("17", "job", "COMPLETED", "None", "gpu001", "")
    frame = json.dumps({"kind": "verdict", **VERDICT})
    attempt.take_log(f"gpuci-frame {TOKEN} {frame}\n".encode(), 0.0)
    return attempt


@pytest.mark.parametrize(
    ("brought", "late", "asked"),
    [
        pytest.param(Brought(WHOLE, DETAILS), 0, [], id="all came"),
        pytest.param(NOTHING, 0, ["fetch", "details"], id="nothing came"),
        pytest.param(Brought(None, DETAILS), 0, ["fetch"], id="it was too large"),
        pytest.param(Brought(WHOLE, None), 0, ["details"], id="the controller has forgotten it"),
        pytest.param(Brought(packed(), DETAILS), 0, ["fetch"], id="the login node did not see it yet"),
        pytest.param(Brought(packed(), DETAILS), 2, ["fetch"] * 3, id="for longer"),
        pytest.param(Brought(WHOLE[:600], DETAILS), 0, ["fetch"], id="half a tar"),
    ],
)
def test_what_lacks_is_fetched(tmp_path: Path, brought: Brought, late: int, asked: list[str]) -> None:
    login = Login(late)
    pauses: list[float] = []
    ended = Finish(login, pauses.append).collect(  # type: ignore[arg-type]
        over(), Step(Do.FINISH), tmp_path, 0.0, brought
    )
    assert (ended.fate.verdict, ended.run.problem, login.asked) == ("passed", "", asked)
    assert len(pauses) == late


def test_a_link_that_breaks_meanwhile_leaves_it_to_be_fetched() -> None:
    login = Login()
    assert Finish(login, lambda seconds: None).bring([over()]) == {}  # type: ignore[arg-type]
    assert login.asked == ["bring {'job': '17'}"]


def test_without_a_try_that_is_over_nothing_is_asked() -> None:
    login = Login()
    assert Finish(login, lambda seconds: None).bring([]) == {}  # type: ignore[arg-type]
    assert login.asked == []


def test_a_cluster_that_does_not_answer_leaves_what_the_log_brought(tmp_path: Path) -> None:
    class Away(Login):
        def fetch(self, name: str) -> bytes:
            raise GpuciError("no answer")

        def details(self, job_id: str, name: str) -> Details:
            raise GpuciError("no answer")

    ended = Finish(Away(), lambda seconds: None).collect(  # type: ignore[arg-type]
        over(), Step(Do.FINISH), tmp_path, 0.0
    )
    assert ended.run.verdict is not None
    assert "its results can't be brought here: no answer" in ended.run.problem


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ('"started":1.0,"ended":3.5', 2.5),
        ('"started":0,"ended":1e999', 90.0),
        (f'"started":0,"ended":{"9" * 400}', 90.0),
        ('"started":NaN,"ended":true', 90.0),
        ('"started":9,"ended":1', 0.0),
    ],
    ids=["as it says", "infinite", "no float", "no numbers", "backwards"],
)
def test_times_that_a_test_forged_are_no_times(tmp_path: Path, times: str, expected: float) -> None:
    forged = packed(verdict_json=f'{{"verdict":"passed",{times}}}'.encode())
    attempt = over()
    attempt.began = 10.0
    finish = Finish(Login(), lambda seconds: None)  # type: ignore[arg-type]
    (tmp_path / "journal.jsonl").touch()
    attempt.log.verdict = None
    ended = finish.collect(attempt, Step(Do.FINISH), tmp_path, 100.0, Brought(forged, DETAILS))
    assert ended.run.wall_seconds == expected


class Gone(Login):
    def fetch(self, name: str) -> bytes:
        raise LinkLost("the link broke")


def test_a_lost_link_is_no_answer_a_few_times(tmp_path: Path) -> None:
    finish, attempt = Finish(Gone(), lambda seconds: None), over()  # type: ignore[arg-type]
    for _ in range(MOST_UNANSWERED):
        with pytest.raises(Unanswered):
            finish.collect(attempt, Step(Do.FINISH), tmp_path, 0.0)
    ended = finish.collect(attempt, Step(Do.FINISH), tmp_path, 0.0)
    assert "its results can't be brought here: the link broke" in ended.run.problem


def test_a_cancelled_try_does_not_wait_for_a_link(tmp_path: Path) -> None:
    finish, attempt = Finish(Gone(), lambda seconds: None), over()  # type: ignore[arg-type]
    attempt.ending = Step(Do.CANCEL, "the run was cancelled", "cancelled")
    assert finish.collect(attempt, Step(Do.FINISH), tmp_path, 0.0).fate.verdict == "cancelled"
