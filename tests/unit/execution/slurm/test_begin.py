"""What becomes of a submission, by what the cluster answers."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from gpuci.errors import GpuciError
from gpuci.execution.log import LogReader
from gpuci.execution.slurm.answers import Garbled, Held, Submitted
from gpuci.execution.slurm.attempt import Attempt, Do, Step
from gpuci.execution.slurm.begin import HEARD_SECONDS, Beginning
from gpuci.execution.slurm.interrupts import Interrupted
from gpuci.execution.slurm.names import key_of
from gpuci.execution.transport.connection import LinkLost

SOCKET = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"
CONTACT = "Unable to contact slurm controller (connect failure)"
DOWN = f"sbatch: error: Batch job submission failed: {CONTACT}"
LIMIT = (
    "sbatch: error: QOSMaxSubmitJobPerUserLimit\n"
    "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy "
    "(job submit limit, user's size and/or time limits)"
)
PARTITION = (
    "sbatch: error: invalid partition specified: nosuch\n"
    "sbatch: error: Batch job submission failed: Invalid partition name specified"
)
TOKENS = {"mine": "1" * 32, "theirs": "2" * 32}


def attempt(name: str, token: str = TOKENS["mine"]) -> Attempt:
    asked = ("--partition=nosuch", "--time=0:30:00")
    return Attempt(1, 1, name, token, key_of(token), (), LogReader(token), asked=asked)


class Cluster:
    """Answers as it is told."""

    owner = "me"

    def __init__(self, submission: Any = (), held: Sequence[Held] = (), adopts: bool = True) -> None:
        self.submission = submission
        self.held = {each.name: each for each in held}
        self.adopts = adopts
        self.made: list[str] = []

    def create(
        self, tree: str, node: str, jobs: Mapping[str, Mapping[str, str]]
    ) -> tuple[frozenset[str], tuple[Held, ...]]:
        met = False
        created = set()
        for name in jobs:
            if name in self.held:
                met = met or self.held[name].holder != self.owner
            elif not met:
                created.add(name)
        self.made += sorted(created)
        return frozenset(created), tuple(self.held[name] for name in jobs if name in self.held)

    def adopt(self, held: Held) -> bool:
        self.held[held.name] = Held(held.name, self.owner, 0, held.token)
        return self.adopts

    def submit(self, names: Sequence[str]) -> Any:
        if isinstance(self.submission, BaseException):
            raise self.submission
        return self.submission


class Launch:
    tree = "0" * 64

    def files(self, attempt: Attempt) -> dict[str, str]:
        return {"token": attempt.token}

    def adopted(self, before: Attempt, token: str) -> Attempt:
        return attempt(before.name, token)


def beginning(cluster: Cluster) -> tuple[Beginning, list[str]]:
    said: list[str] = []
    return Beginning(cluster, Launch(), "1" * 64, said.append), said  # type: ignore[arg-type]


def submit(answer: Any) -> tuple[Attempt, list[str]]:
    begin, said = beginning(Cluster(answer))
    one = attempt("one")
    begin.submit([one], 100.0)
    return one, said


@pytest.mark.parametrize(
    "answer",
    [
        ([Submitted("one", 0, "17")], None),
        ([Submitted("one", None, "")], None),
        ([Submitted("one", 1, SOCKET)], None),
        LinkLost("the link is gone"),
        Garbled("half an answer"),
        ([Submitted("another", 0, "17"), Submitted("one", 0, "18")], None),
    ],
    ids=["taken", "known", "ambiguous", "link lost", "garbled", "with a name that nobody asked for"],
)
def test_a_job_that_may_exist_is_looked_for_and_not_submitted_again(answer: Any) -> None:
    one, _said = submit(answer)
    assert (one.submit_at, one.submitted, one.submissions, one.ending) == (None, 100.0, 1, None)


@pytest.mark.parametrize(
    "answer",
    [
        ([], f"slurm_load_jobs error: {CONTACT}"),
        ([Submitted("one", 1, DOWN)], None),
        ([Submitted("one", 1, LIMIT)], None),
    ],
    ids=["queue down", "controller down", "limit of jobs"],
)
def test_what_is_not_taken_now_is_asked_again_later(answer: Any) -> None:
    one, said = submit(answer)
    assert one.submit_at is not None
    assert one.submit_at > 100.0
    assert (one.submitted, one.submissions, one.ending) == (None, 0, None)
    assert said


def test_what_is_refused_ends_with_words() -> None:
    one, _said = submit(([Submitted("one", 1, PARTITION)], None))
    assert one.ending is not None
    assert (one.ending.do, one.ending.verdict) == (Do.FINISH, "config_error")
    assert one.ending.reason.startswith("the partition does not exist (asked for --partition=nosuch); ")


def test_a_queue_that_can_never_be_asked_is_no_reason_to_wait() -> None:
    one, _said = submit(([], "squeue: fatal: Could not establish a configuration source"))
    assert one.ending is not None
    assert (one.submit_at, one.ending.verdict) == (None, "config_error")
    assert "slurm.conf" in one.ending.reason


def test_what_was_surely_not_sent_is_still_due() -> None:
    one, said = submit(LinkLost("no login node can be reached", sent=False))
    assert (one.submit_at, one.submissions, said) == (0.0, 0, [])


def test_a_submission_that_a_signal_cut_short_may_have_made_a_job() -> None:
    begin, _said = beginning(Cluster(Interrupted()))
    one = attempt("one")
    with pytest.raises(Interrupted):
        begin.submit([one], 100.0)
    assert (one.submit_at, one.submitted, one.submissions) == (None, 100.0, 1)


def test_what_is_to_end_is_not_submitted() -> None:
    begin, _said = beginning(Cluster(AssertionError()))
    one = attempt("one")
    one.ending = Step(Do.CANCEL, "the run was cancelled", "cancelled")
    begin.submit([one], 100.0)


def test_nothing_is_asked_while_nothing_is_due() -> None:
    begin, _said = beginning(Cluster(AssertionError()))
    waiting, submitted = attempt("one"), attempt("two")
    waiting.submit_at, submitted.submit_at = 200.0, None
    begin.submit([waiting, submitted], 100.0)


def test_what_a_runner_that_is_gone_began_is_taken_over_with_its_token() -> None:
    held = [Held("one", "other", HEARD_SECONDS, TOKENS["theirs"])]
    begin, said = beginning(Cluster(held=held))
    one, two = begin.create([attempt("one"), attempt("two")])
    assert (one.token, two.token) == (TOKENS["theirs"], TOKENS["mine"])
    assert "goes on from there" in said[0]


@pytest.mark.parametrize(
    ("age", "adopts"),
    [(HEARD_SECONDS - 1, True), (HEARD_SECONDS, False)],
    ids=["heard", "a third was quicker"],
)
def test_a_shard_that_another_runner_follows_is_left_alone(age: int, adopts: bool) -> None:
    begin, _said = beginning(Cluster(held=[Held("one", "other", age, TOKENS["theirs"])], adopts=adopts))
    with pytest.raises(GpuciError, match="is followed by another runner"):
        begin.create([attempt("one")])


def test_a_creation_that_is_repeated_knows_its_own() -> None:
    begin, _said = beginning(Cluster(held=[Held("one", "me", 0, TOKENS["mine"])]))
    (one,) = begin.create([attempt("one")])
    assert one.token == TOKENS["mine"]
