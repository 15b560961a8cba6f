"""A run against a cluster of shell scripts: what becomes of its jobs, whatever happens on the way."""

import contextlib
import hashlib
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuci.config.load import load_config
from gpuci.execution.delivery.archive import Archive
from gpuci.execution.slurm import attempt as attempt_module
from gpuci.execution.slurm import finish, follow, remote
from gpuci.execution.slurm import run as run_module
from gpuci.execution.slurm.interrupts import Interrupted
from gpuci.execution.slurm.launch import Identity
from gpuci.execution.slurm.run import Options, SlurmRun
from gpuci.execution.transport.connection import Answer, LinkLost
from gpuci.model import Plan, Root, Shard, ShardRun, ShardState, Unit

# A job is a file with its row in $HOME/queue. Those that begin do so by $HOME/job ID DIRECTORY.
PROGRAMS = {
    "sbatch": r"""
        [ ! -e "$HOME/refuse" ] || { cat "$HOME/refuse" >&2; exit 1; }
        for script; do :; done
        name=$(sed -n 's/^#SBATCH --job-name=//p' "$script")
        comment=$(sed -n 's/^#SBATCH "--comment=\(.*\)"/\1/p' "$script")
        id=$(($(ls "$HOME/queue" | wc -l) + 101))
        echo "$name" >>"$HOME/submitted"
        printf '%s|%s|%s|%s|%s|%s\n' "$id" "$name" PENDING Resources '' "$comment" >"$HOME/queue/$id"
        echo "$id"
        [ ! -e "$HOME/job" ] || . "$HOME/job"
    """,
    "squeue": r"""
        [ ! -e "$HOME/down" ] || { cat "$HOME/down" >&2; exit 1; }
        case "$*" in
            *'-t all'*'%j|%i'*) cat "$HOME"/queue/* 2>/dev/null | awk -F'|' '{ print $2 "|" $1 "|" $6 }' ;;
            *'-t all'*) cat "$HOME"/queue/* 2>/dev/null ;;
            *) cat "$HOME"/queue/* 2>/dev/null | grep -Ev '[|](CANCELLED|COMPLETED|FAILED)[|]' ;;
        esac
        exit 0
    """,
    "scancel": r"""
        shift
        for id; do
            echo "$id" >>"$HOME/cancelled"
            sed -i 's/|PENDING|/|CANCELLED|/; s/|RUNNING|/|CANCELLED|/' "$HOME/queue/$id"
        done
    """,
    "scontrol": r"""
        [ ! -e "$HOME/down" ] || { cat "$HOME/down" >&2; exit 1; }
        for id; do :; done
        IFS='|' read -r id name state reason node comment 2>/dev/null <"$HOME/queue/$id" ||
            { echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1; }
        printf 'JobId=%s JobName=%s JobState=%s ' "$id" "$name" "$state"
        printf 'Reason=None ExitCode=0:0 NodeList=%s Comment=%s\n' "$node" "$comment"
    """,
    "sacct": "exit 1",
}
# It passes at once.
PASSES = r"""
    dir=${script%/*}
    read -r token <"$dir/token"
    mkdir "$dir/claim" && echo "$id" >"$dir/claim/job"
    printf '{"kind":"job"}\n' >"$dir/out/journal.jsonl"
    sum=$(sha256sum <"$dir/out/journal.jsonl")
    sum=$(printf '"journal":{"lines":1,"sha256":"%s"}' "${sum%% *}")
    printf '{"verdict":"passed","exit_code":0,%s}' "$sum" >"$dir/out/verdict.json"
    printf 'gpuci-frame %s {"kind":"over","code":0}\n' "$token" >"$dir/slurm.out"
    sed -i 's/|PENDING|Resources||/|COMPLETED|None|gpu001|/' "$HOME/queue/$id"
"""


class Login:
    """A login node here. `before` is called with the name of each text that is about to run."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.before: Callable[[str], None] = lambda text: None

    def __enter__(self) -> "Login":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        self.before("open")

    def close(self) -> None:
        pass

    def run(self, text: str, *args: str, stdin: Any = b"", timeout: float = 60.0) -> Answer:
        head = text.rpartition("# shellcheck shell=sh\n")[2].splitlines()[:2]
        words = [line.split()[1] for line in head if ": " in line]
        self.before(words[0])
        done = subprocess.run(
            ["sh", "-c", text, "gpuci", *args],
            input=stdin if isinstance(stdin, bytes) else stdin.read(),
            capture_output=True,
            env={"HOME": str(self.home), "PATH": f"{self.home}/bin:{os.environ['PATH']}"},
            start_new_session=True,
            check=False,
        )
        return Answer(done.returncode, done.stdout, done.stderr.decode())

    def lines(self, name: str) -> list[str]:
        path = self.home / name
        return path.read_text().splitlines() if path.exists() else []


class Quiet:
    def feed(self, shard: int, record: dict[str, Any]) -> None: ...
    def state(self, shard: int, state: ShardState) -> None: ...
    def tick(self, now: float) -> None: ...


@pytest.fixture
def login(tmp_path: Path) -> Login:
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    (home / "queue").mkdir()
    for name, body in PROGRAMS.items():
        path = home / "bin" / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
    return Login(home)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIRST_SECONDS", "LONGEST_SECONDS", "RUNNING_SECONDS", "ENDING_SECONDS"):
        monkeypatch.setattr(follow, name, 0.1)
    monkeypatch.setattr(finish, "_SETTLE_SECONDS", 1.0)
    monkeypatch.setattr(run_module, "_CANCEL_AGAIN_SECONDS", 0.5)


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def queue_seconds() -> int:
    """How long a job may wait: longer than any test takes, but for those that are about it."""
    return 600


@pytest.fixture
def slurm_run(
    login: Login, tmp_path: Path, said: list[str], queue_seconds: int
) -> Callable[[], list[ShardRun]]:
    """Runs one shard of one unit."""
    root, out = tmp_path / "tree", tmp_path / "out"
    (root / ".github").mkdir(parents=True)
    out.mkdir()
    (root / ".github/gpuci.yml").write_text(
        f"container: {{runtime: none}}\nslurm: {{queue-timeout: {queue_seconds}}}\n"
    )
    config = load_config(root)
    unit = Unit("u", ".", "test_a.py", "all", "normal", 1, "default", 1.0, 60.0)
    shard = Shard(1, config.profiles[0].name, ("u",), 1.0)
    plan = Plan({}, None, "manual", (Root("."),), (), (unit,), (shard,), (), (), 1.0, 1.0, 0)
    tar = tmp_path / "tree.tar"
    tar.write_bytes(b"tar")
    packed = Archive(tar, hashlib.sha256(b"tar").hexdigest(), 3, "0" * 40)
    options = Options(out, Identity("o/r", "1", 1, ""), (1,))

    def run() -> list[ShardRun]:
        made = SlurmRun(plan, config, options, login, Quiet(), said.append)  # type: ignore[arg-type]
        return made.run(packed)

    return run


def on(text: str, act: Callable[[], None], times: int = 1) -> Callable[[str], None]:
    """Act the first so many times that a text is about to run."""
    left = [times]

    def before(name: str) -> None:
        if name == text and left[0]:
            left[0] -= 1
            act()

    return before


def cancel() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def no_link() -> None:
    raise LinkLost("the link is gone")


Run = Callable[[], list[ShardRun]]


def fate(runs: list[ShardRun]) -> str:
    (run,) = runs
    return run.fate or str((run.verdict or {}).get("verdict"))


def test_a_shard_that_passes(login: Login, slurm_run: Run) -> None:
    (login.home / "job").write_text(PASSES)
    assert fate(slurm_run()) == "passed"


@pytest.mark.parametrize("moment", ["open", "prepare", "clean", "create", "submit", "poll"])
def test_after_a_cancellation_nothing_is_in_the_queue_and_nothing_was_submitted_for_it(
    moment: str, login: Login, slurm_run: Run, monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    monkeypatch.setattr(attempt_module, "SETTLE_SECONDS", 0.5)
    login.before = on(moment, cancel)
    assert fate(slurm_run()) == "cancelled"
    assert len(login.lines("submitted")) == (1 if moment == "poll" else 0)
    assert len(login.lines("cancelled")) == len(login.lines("submitted"))
    maybe = moment in ("submit", "poll")
    assert (run_module.NOTHING_SUBMITTED in said) is not maybe
    assert ("cancelling the jobs of this run" in said) is maybe
    assert ("nothing of this run is in the queue any more" in said) is maybe


def test_a_job_that_comes_up_after_its_cancellation_is_cancelled(
    login: Login, slurm_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The submission was cut short; the controller makes its job a while later."""
    monkeypatch.setattr(attempt_module, "SETTLE_SECONDS", 60.0)
    polls: list[str] = []

    def before(text: str) -> None:
        if text == "submit":
            cancel()
        if text == "poll":
            polls.append(text)
            if len(polls) == 4:
                script = next(login.home.glob(".local/share/gpuci/jobs/gpuci-*/job.sh"))
                environ = {"HOME": str(login.home), "PATH": os.environ["PATH"]}
                subprocess.run([login.home / "bin/sbatch", "--parsable", script], env=environ, check=True)

    login.before = before
    assert fate(slurm_run()) == "cancelled"
    assert login.lines("cancelled") == ["101"]


@pytest.mark.parametrize("queue_seconds", [2])
def test_a_directory_whose_owner_cannot_be_read_was_not_taken_over(
    login: Login, slurm_run: Run, said: list[str]
) -> None:
    """A file server that fails for a moment."""

    def before(text: str) -> None:
        for owner in login.home.glob(".local/share/gpuci/jobs/*/owner.01"):
            owner.rename(owner.with_name("away"))

    login.before = before
    assert fate(slurm_run()) == "queue_timeout"
    assert login.lines("cancelled") == ["101"]
    assert not [line for line in said if "another runner" in line]


@pytest.mark.parametrize(
    "refusal",
    [
        "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
        "sbatch: error: MaxJobCount limit reached",
    ],
    ids=["controller down", "no more jobs"],
)
@pytest.mark.parametrize("queue_seconds", [2])
def test_a_job_that_is_never_taken_has_the_queue_time_too(
    refusal: str, login: Login, slurm_run: Run, said: list[str]
) -> None:
    (login.home / "refuse").write_text(refusal)
    (run,) = slurm_run()
    assert (run.fate, "could not be submitted for 2 s" in run.reason) == ("queue_timeout", True)
    assert len([line for line in said if "asked again" in line]) == 1
    assert not [line for line in said if line.startswith("submitted")]


@pytest.mark.parametrize("text", ["bring", "fetch", "details"])
def test_a_link_that_is_lost_while_results_are_brought_changes_no_result(
    text: str, login: Login, slurm_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_PATIENCE_SECONDS", 0.0)
    (login.home / "job").write_text(PASSES)

    def lose() -> None:
        left.append(text)
        raise LinkLost("the link is gone")

    left: list[str] = []
    lost = on(text, lose, times=2)

    def before(name: str) -> None:
        lost(name)
        if name == "bring" and text != "bring":
            raise LinkLost("the link is gone")

    login.before = before
    assert fate(slurm_run()) == "passed"
    assert left


def test_a_controller_that_goes_away_at_the_end_changes_no_result(login: Login, slurm_run: Run) -> None:
    (login.home / "job").write_text(PASSES)
    texts: list[str] = []

    def before(text: str) -> None:
        texts.append(text)
        if text == "bring":
            (login.home / "down").write_text("slurm_load_jobs error: Unable to contact slurm controller\n")
        if text == "poll" and texts.count("poll") > 3:
            (login.home / "down").unlink(missing_ok=True)
            login.before = lambda text: None

    login.before = before
    assert fate(slurm_run()) == "passed"
    assert "details" in texts


def test_results_that_can_never_be_brought_are_given_up(
    login: Login, slurm_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_PATIENCE_SECONDS", 0.0)
    (login.home / "job").write_text(PASSES)

    def before(text: str) -> None:
        if text in ("bring", "fetch"):
            raise LinkLost("the link is gone")

    login.before = before
    (run,) = slurm_run()
    assert (run.fate, "can't be brought here" in run.problem) == ("infra", True)


def test_a_disk_that_is_full_here_leaves_no_job_alone(
    login: Login, slurm_run: Run, tmp_path: Path, said: list[str]
) -> None:
    (login.home / "job").write_text(PASSES)

    def full() -> None:
        (log,) = (tmp_path / "out").glob("shard-*")
        (log / "log").symlink_to("/dev/full")

    login.before = on("submit", full)
    assert fate(slurm_run()) == "passed"
    assert len([line for line in said if "can't be written: No space left" in line]) == 1


def test_of_two_signals_at_once_the_first_still_cancels(
    login: Login, slurm_run: Run, said: list[str]
) -> None:
    def twice() -> None:
        with contextlib.suppress(Interrupted):
            cancel()
        cancel()
        raise Interrupted

    login.before = on("poll", twice)
    assert fate(slurm_run()) == "cancelled"
    assert login.lines("cancelled") == ["101"]
    assert "nothing of this run is in the queue any more" not in said


def test_a_job_that_began_and_that_slurm_forgot_is_not_submitted_again_by_who_takes_it_over(
    login: Login, slurm_run: Run
) -> None:
    """The runner was killed; another one comes when the queue has forgotten the job."""
    (login.home / "job").write_text(PASSES)

    class Killed(BaseException):
        pass

    def killed() -> None:
        raise Killed

    login.before = on("poll", killed)
    with pytest.raises(Killed):
        slurm_run()
    (folder,) = login.home.glob(".local/share/gpuci/jobs/gpuci-*")
    os.utime(folder / "lease", (0, 0))
    (row,) = (login.home / "queue").iterdir()
    id_, name, state, _reason, node, comment = row.read_text().rstrip("\n").split("|")
    row.unlink()
    sacct = login.home / "bin" / "sacct"
    sacct.write_text(f"#!/bin/sh\necho '{id_}|{name}|{state}|{node}|{comment}'\n")
    login.before = lambda text: None
    assert fate(slurm_run()) == "passed"
    assert len(login.lines("submitted")) == 1


def test_what_was_never_submitted_can_not_begin_later(login: Login, slurm_run: Run) -> None:
    (login.home / "refuse").write_text("sbatch: error: invalid partition specified: nosuch\n")
    assert fate(slurm_run()) == "config_error"
    (claim,) = login.home.glob(".local/share/gpuci/jobs/gpuci-*/claim/job")
    assert claim.read_text() == "withdrawn\n"


def test_a_login_node_without_the_settings_of_slurm_ends_the_run(login: Login, slurm_run: Run) -> None:
    (login.home / "down").write_text("squeue: fatal: Could not establish a configuration source\n")
    assert fate(slurm_run()) == "config_error"


def test_signals_that_cut_every_cancellation_short_leave_no_job(login: Login, slurm_run: Run) -> None:
    """A second signal means to leave at once, but jobs that are known are cancelled."""
    login.before = after_a_poll(on("withdraw", cancel), on("poll", cancel))
    assert fate(slurm_run()) == "cancelled"
    assert login.lines("cancelled") == ["101"]


def test_nothing_is_asked_for_any_more_after_a_second_signal(login: Login, slurm_run: Run) -> None:
    """GitHub leaves 2.5 s from the second one on."""
    sent: list[str] = []
    login.before = after_a_poll(sent.append, on("withdraw", cancel), on("poll", cancel))
    assert fate(slurm_run()) == "cancelled"
    assert sent[-1] == "cancel"


def after_a_poll(*acts: Callable[[str], None]) -> Callable[[str], None]:
    """All of them, from the second poll on, when the queue has told of the job."""
    polls: list[str] = []

    def before(text: str) -> None:
        polls.extend([text] if text == "poll" else [])
        for act in acts if len(polls) > 1 else ():
            act(text)

    return before
