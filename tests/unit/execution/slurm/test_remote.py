"""The texts for the login node, run by a shell here, with programs that stand in for Slurm's."""

import io
import os
import shutil
import subprocess
import tarfile
import time
from pathlib import Path

import pytest

from gpuci.errors import ConfigError, GpuciError
from gpuci.execution.slurm import answers, remote
from gpuci.execution.slurm.remote import Cluster
from gpuci.execution.transport.connection import Answer, LinkLost

PROGRAMS = {
    "squeue": 'cat "$HOME/queue" || { echo "slurm_load_jobs error: down" >&2; exit 1; }',
    "sbatch": 'echo "$2" >>"$HOME/submitted"\ncat "$HOME/sbatch"\nexit "$(cat "$HOME/sbatch-code")"',
    "scontrol": 'cat "$HOME/scontrol" || { echo "slurm_load_jobs error: Invalid job id specified"; exit 1; }',
    "sacct": 'cat "$HOME/sacct"',
    "scancel": 'echo "$@" >>"$HOME/cancelled"',
}
TREE, NODE = "a" * 64, "b" * 64


class Here:
    """Runs texts on this machine; loses the link as often as it is told."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.path = f"{home}/bin:{os.environ['PATH']}"
        self.environ: dict[str, str] = {}
        self.lose = 0
        self.sent: list[str] = []

    def run(self, text: str, *args: str, stdin: bytes = b"", timeout: float = 60.0) -> Answer:
        self.sent.append(text.rpartition("# shellcheck shell=sh\n")[2].split()[1])
        if self.lose:
            self.lose -= 1
            raise LinkLost("the link is gone")
        done = subprocess.run(
            ["sh", "-c", text, "gpuci", *args],
            input=stdin,
            capture_output=True,
            env={**self.environ, "HOME": str(self.home), "PATH": self.path},
            timeout=timeout,
            check=False,
        )
        return Answer(done.returncode, done.stdout, done.stderr.decode())


@pytest.fixture
def here(tmp_path: Path) -> Here:
    (tmp_path / "bin").mkdir()
    for name, body in PROGRAMS.items():
        path = tmp_path / "bin" / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
    for name, text in {"queue": "", "sbatch": "17\n", "sbatch-code": "0"}.items():
        (tmp_path / name).write_text(text)
    return Here(tmp_path)


def cluster_of(here: Here, owner: str = "me") -> Cluster:
    cluster = Cluster(here, owner, pause=lambda seconds: None)
    site = cluster.prepare(None)
    (Path(site.shared) / "trees" / f"{TREE}.tar").write_bytes(b"tar")
    (Path(site.shared) / "nodes" / f"{NODE}.pyz").write_bytes(b"zip")
    return cluster


@pytest.fixture
def cluster(here: Here) -> Cluster:
    return cluster_of(here)


def create(cluster: Cluster, *names: str, token: str = "t" * 32) -> tuple[frozenset[str], list[answers.Held]]:
    files = {"token": f"{token}\n", "job.json": "{}", "job.sh": "#!/bin/sh\n"}
    created, held = cluster.create(TREE, NODE, dict.fromkeys(names, files))
    return created, list(held)


def job(cluster: Cluster, name: str) -> Path:
    return Path(cluster.shared) / "jobs" / name


def test_prepare_makes_private_folders_below_home(here: Here) -> None:
    cluster = cluster_of(here)
    assert cluster.shared == f"{here.home}/.local/share/gpuci"
    assert {path.name for path in Path(cluster.shared).iterdir()} == {"jobs", "trees", "nodes"}
    assert Path(cluster.shared).stat().st_mode & 0o077 == 0


def test_prepare_names_the_programs_that_are_missing(here: Here) -> None:
    (here.home / "bin" / "scancel").unlink()
    for name in ("sh", "mkdir", "uname", "sha256sum", "tar"):
        (here.home / "bin" / name).symlink_to(shutil.which(name) or name)
    here.path = f"{here.home}/bin"
    with pytest.raises(ConfigError, match="has no scancel"):
        Cluster(here, "me").prepare(None)


@pytest.mark.parametrize(
    ("words", "is_config"),
    [
        ("Permission denied", True),
        ("Not a directory", True),
        ("No such file or directory", True),
        ("No space left on device", False),
        ("Disk quota exceeded", False),
        ("Read-only file system", False),
    ],
)
def test_a_shared_folder_that_can_not_be_made_is_named_with_the_user(
    words: str, is_config: bool, here: Here
) -> None:
    for name, body in {"mkdir": f'echo "mkdir: /data: {words}" >&2; exit 1', "id": "echo ci"}.items():
        (here.home / "bin" / name).write_text(f"#!/bin/sh\n{body}\n")
        (here.home / "bin" / name).chmod(0o755)
    with pytest.raises(GpuciError) as raised:
        Cluster(here, "me").prepare("/data/it's")
    assert raised.value.verdict == ("config_error" if is_config else "infra")
    assert words in f"{raised.value.what} {raised.value.why}"
    if is_config:
        assert raised.value.what == "slurm.shared-dir: /data/it's is not writable for user ci"


def test_a_job_directory_holds_all_or_is_not_there(cluster: Cluster) -> None:
    assert create(cluster, "one", "two") == (frozenset({"one", "two"}), [])
    found = {path.name for path in job(cluster, "one").iterdir()}
    assert found == {"token", "job.json", "job.sh", "tree.tar", "gpuci_node.pyz", "owner.01", "lease", "out"}
    assert job(cluster, "one").joinpath("tree.tar").stat().st_nlink == 3
    assert job(cluster, "one").joinpath("job.json").stat().st_mode & 0o077 == 0
    (Path(cluster.shared) / "trees" / f"{TREE}.tar").unlink()
    with pytest.raises(GpuciError, match="`create` failed"):
        create(cluster, "three")
    assert sorted(path.name for path in job(cluster, "").iterdir()) == ["one", "two"]


def test_a_second_runner_is_told_who_follows_a_job(here: Here, cluster: Cluster) -> None:
    create(cluster, "one")
    os.utime(job(cluster, "one") / "lease", (time.time() - 500,) * 2)
    _created, (held,) = create(cluster_of(here, "other"), "one", token="u" * 32)
    assert (held.name, held.holder, held.token) == ("one", "me", "t" * 32)
    assert 495 <= held.age <= 510


def test_of_two_runners_that_begin_at_once_one_gets_all(here: Here, cluster: Cluster) -> None:
    create(cluster, "one")
    created, held = create(cluster_of(here, "other"), "one", "two")
    assert (created, [each.name for each in held]) == (frozenset(), ["one"])
    assert create(cluster, "one", "two")[0] == {"two"}


def test_only_one_runner_takes_a_job_over(here: Here, cluster: Cluster) -> None:
    create(cluster, "one")
    first, second = cluster_of(here, "first"), cluster_of(here, "second")
    _created, (held,) = create(first, "one")
    assert first.adopt(held)
    assert not second.adopt(held)
    (part,) = cluster.poll({"one": 0}).parts
    assert part.holder == "first"


def test_takeovers_can_go_on(here: Here, cluster: Cluster) -> None:
    create(cluster, "one")
    for number in range(12):
        runner = cluster_of(here, f"runner{number}")
        _created, (held,) = create(runner, "one")
        assert runner.adopt(held)
    assert cluster.poll({"one": 0}).parts[0].holder == "runner11"


def test_what_the_queue_knows_is_not_submitted_again(here: Here, cluster: Cluster) -> None:
    create(cluster, "one", "two", "one2")
    (here.home / "queue").write_text("one2|15|gpuci key=k3\none|14|gpuci key=of-an-earlier-directory\n")
    submitted, error = cluster.submit({"one": "k1", "two": "k2", "one2": "k3"})
    assert error is None
    assert [(each.name, each.code, each.text) for each in submitted] == [
        ("one", 0, "17"),
        ("two", 0, "17"),
        ("one2", None, ""),
    ]
    jobs = (here.home / "submitted").read_text().split()
    assert jobs == [str(job(cluster, name) / "job.sh") for name in ("one", "two")]


@pytest.mark.parametrize(("claim", "code"), [("17", None), ("withdrawn", 0)])
def test_what_began_and_is_forgotten_is_not_submitted_again(
    claim: str, code: int | None, here: Here, cluster: Cluster
) -> None:
    create(cluster, "one")
    (job(cluster, "one") / "claim").mkdir()
    (job(cluster, "one") / "claim" / "job").write_text(f"{claim}\n")
    (answer,), _error = cluster.submit({"one": "k1"})
    assert answer.code == code


def fetched(data: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return archive.getnames()


def test_what_counts_is_fetched_and_nothing_else(cluster: Cluster) -> None:
    create(cluster, "one")
    out = job(cluster, "one") / "out"
    assert fetched(cluster.fetch("one")) == []
    (out / "coverage" / "1").mkdir(parents=True)
    for name in ("verdict.json", "journal.jsonl", "coverage/1/coverage.data"):
        (out / name).write_bytes(b"x")
    with (out / "large").open("wb") as stream:
        stream.truncate(1 << 40)
    names = ["verdict.json", "journal.jsonl", "coverage", "coverage/1", "coverage/1/coverage.data"]
    assert fetched(cluster.fetch("one")) == names
    assert cluster.bring({"one": ""})["one"].data is None


def test_what_is_too_large_is_cut(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "MOST_FETCHED_BYTES", 20_000)
    create(cluster, "one")
    with (job(cluster, "one") / "out" / "journal.jsonl").open("wb") as stream:
        stream.truncate(1 << 40)
    assert len(cluster.fetch("one")) == 20_000


def test_settings_of_the_login_environment_do_not_reach_a_job(here: Here, cluster: Cluster) -> None:
    (here.home / "bin" / "sbatch").write_text('#!/bin/sh\nenv >"$HOME/environment"\n')
    here.environ = {"SBATCH_QOS": "high", "SSH_CONNECTION": "192.0.2.1 1 2", "SLURM_CONF": "kept"}
    cluster.submit({"one": "k1"})
    names = {line.partition("=")[0] for line in (here.home / "environment").read_text().splitlines()}
    assert "SLURM_CONF" in names
    assert not {name for name in names if name.startswith(("SBATCH_", "SSH_"))}


def test_a_queue_that_does_not_answer_submits_nothing(here: Here, cluster: Cluster) -> None:
    (here.home / "queue").unlink()
    submitted, error = cluster.submit({"one": "k1"})
    assert submitted == ()
    assert error is not None
    assert "slurm_load_jobs error: down" in error
    assert not (here.home / "submitted").exists()


def test_what_sbatch_says_keeps_its_lines(here: Here, cluster: Cluster) -> None:
    (here.home / "sbatch").write_text("sbatch: error: one\nsbatch: error: two\n")
    (here.home / "sbatch-code").write_text("1")
    (answer,), _error = cluster.submit({"one": "k1"})
    assert (answer.code, answer.text) == (1, "sbatch: error: one\nsbatch: error: two")


def test_a_poll_renews_the_lease_and_brings_new_bytes(here: Here, cluster: Cluster) -> None:
    create(cluster, "one", "two")
    log = b"a\n\0\xff\xe4 log 1 2 3\nqueue 0\n"
    (job(cluster, "one") / "slurm.out").write_bytes(log)
    (job(cluster, "two") / "claim").mkdir()
    (job(cluster, "two") / "claim" / "job").write_text("17\n")
    (here.home / "queue").write_text("17|two|RUNNING|None|gpu001|gpuci key=x\n")
    poll = cluster.poll({"one": 2, "two": 0})
    assert poll.queue == "17|two|RUNNING|None|gpu001|gpuci key=x\n"
    assert poll.parts == (
        answers.LogPart("one", "me", "-", len(log), log[2:]),
        answers.LogPart("two", "me", "17", 0, b""),
    )
    assert (job(cluster, "one") / "lease").read_text() == "000000000001"
    cluster.poll({"one": 0})
    assert (job(cluster, "one") / "lease").read_text() == "000000000002"


def test_a_poll_leaves_the_lease_of_another_runner_alone(here: Here, cluster: Cluster) -> None:
    create(cluster, "one")
    _created, (held,) = create(cluster_of(here, "other"), "one")
    cluster_of(here, "other").adopt(held)
    (part,) = cluster.poll({"one": 0}).parts
    assert part.holder == "other"
    assert (job(cluster, "one") / "lease").read_text() == "000000000000"


def test_a_poll_brings_the_logs_also_when_slurm_does_not_answer(here: Here, cluster: Cluster) -> None:
    create(cluster, "one")
    (job(cluster, "one") / "slurm.out").write_bytes(b"text")
    (here.home / "queue").unlink()
    poll = cluster.poll({"one": 0})
    assert (poll.parts[0].data, poll.queue) == (b"text", None)
    assert "slurm_load_jobs error" in poll.error


def test_a_poll_can_leave_slurm_alone(here: Here, cluster: Cluster) -> None:
    create(cluster, "one")
    (job(cluster, "one") / "slurm.out").write_bytes(b"log 1\nqueue 0\n")
    (here.home / "queue").unlink()
    poll = cluster.poll({"one": 0}, queue=False)
    assert (poll.parts[0].data, poll.queue, poll.error) == (b"log 1\nqueue 0\n", None, "")
    assert (job(cluster, "one") / "lease").read_text() == "000000000001"


def test_a_poll_of_a_directory_that_is_gone_says_so(cluster: Cluster) -> None:
    (part,) = cluster.poll({"gone": 0}).parts
    assert (part.holder, part.size) == ("-", 0)


def test_withdrawn_jobs_can_not_begin(cluster: Cluster) -> None:
    create(cluster, "one", "two")
    (job(cluster, "two") / "claim").mkdir()
    (job(cluster, "two") / "claim" / "job").write_text("17\n")
    for name in ("one", "two"):
        (job(cluster, name) / "pull-auth").touch()
    cluster.withdraw(["one", "two"])
    assert not (job(cluster, "one") / "pull-auth").exists()
    assert (job(cluster, "two") / "pull-auth").exists()  # its job may be about to pull
    assert [part.claim for part in cluster.poll({"one": 0, "two": 0}).parts] == ["withdrawn", "17"]


def test_details_come_from_the_accounting_when_the_controller_forgot(here: Here, cluster: Cluster) -> None:
    (here.home / "sacct").write_text("17|one|COMPLETED|gpu001|gpuci key=x\n")
    details = cluster.details("17", "one")
    assert (details.code, details.accounting) == (1, "17|one|COMPLETED|gpu001|gpuci key=x")
    assert "Invalid job id" in details.text
    (here.home / "scontrol").write_text("JobId=17 JobState=COMPLETED Comment=a b\n")
    assert cluster.details("17", "one") == answers.Details(0, "JobId=17 JobState=COMPLETED Comment=a b", "")


def test_several_jobs_are_brought_in_one_round_trip(here: Here, cluster: Cluster) -> None:
    create(cluster, "one", "two", "large")
    (job(cluster, "one") / "out" / "verdict.json").write_bytes(b"{}")
    (job(cluster, "large") / "out" / "coverage.data").write_bytes(bytes(5_000_000))
    (here.home / "scontrol").write_text("JobId=17 JobState=COMPLETED Comment=a b\n")
    brought = cluster.bring({"one": "17", "two": "", "large": "17", "gone": "17"})
    assert list(brought) == ["one", "two", "large", "gone"]
    assert brought["one"].details == answers.Details(0, "JobId=17 JobState=COMPLETED Comment=a b", "")
    with tarfile.open(fileobj=io.BytesIO(brought["one"].data or b"")) as archive:
        assert archive.getnames() == [".", "./verdict.json"]
    assert brought["large"].data is None
    assert brought["gone"].data is None


def test_what_slurm_does_not_know_is_not_brought(cluster: Cluster) -> None:
    create(cluster, "one")
    assert cluster.bring({"one": "17"})["one"].details is None


@pytest.mark.parametrize(
    "out", [b"tar eA==\n", b"job one\ntar e=A\n", b"job one\nscontrol x\n", b"job one\nelse\n"]
)
def test_what_is_brought_garbled_is_no_answer(out: bytes) -> None:
    with pytest.raises(answers.Garbled):
        answers.parse_brought(out)


def test_only_own_directories_are_removed(here: Here, cluster: Cluster) -> None:
    create(cluster, "one")
    create(cluster_of(here, "other"), "two")
    cluster.remove(["one", "two", "three"])
    assert [path.name for path in job(cluster, "").iterdir()] == ["two"]


def test_a_lost_link_is_tried_again_but_for_a_submission(here: Here, cluster: Cluster) -> None:
    here.lose = 2
    assert create(cluster, "one")[0] == {"one"}
    here.lose = 1
    with pytest.raises(LinkLost):
        cluster.submit({"one": "k1"})


def test_what_will_not_change_by_itself_is_not_tried_again(here: Here) -> None:
    def refuse(text: str, *args: str, stdin: bytes = b"", timeout: float = 60.0) -> Answer:
        tries.append(text)
        raise LinkLost("the login shell ended", sent=False, retry=False)

    tries: list[str] = []
    here.run = refuse  # type: ignore[method-assign]
    with pytest.raises(LinkLost, match="the login shell ended"):
        Cluster(here, "me", pause=lambda seconds: None).prepare(None)
    assert len(tries) == 1


def test_a_repeated_creation_finds_its_own(here: Here, cluster: Cluster) -> None:
    create(cluster, "one")
    _created, (held,) = create(cluster, "one")
    assert held.holder == cluster.owner


@pytest.mark.parametrize(
    "out",
    [
        b"",
        b"log one me - 5 5\nab",
        b"log one me - x 5\n",
        b"log one me - 1 " + b"9" * 5000 + b"\n",
        b"queue\n",
        b"log one me - 2 2\nabXqueue 0\n",
    ],
    ids=["empty", "cut", "no number", "a number without end", "no code", "no line end"],
)
def test_a_garbled_poll_is_no_answer(out: bytes) -> None:
    with pytest.raises(answers.Garbled):
        answers.parse_poll(out)


@pytest.mark.parametrize("out", [b"log one me - 5 5\nab", b"log one me - x 5\n", b"log"])
def test_without_the_queue_too(out: bytes) -> None:
    with pytest.raises(answers.Garbled):
        answers.parse_poll(out, queue=False)


def test_a_poll_that_leaves_out_a_job_is_no_answer() -> None:
    class Nothing:
        def run(self, text: str, *args: str, stdin: bytes = b"", timeout: float = 60.0) -> Answer:
            return Answer(0, b"", "")

    with pytest.raises(answers.Garbled):
        Cluster(Nothing(), "me").poll({"one": 0}, queue=False)


def test_programs_that_only_a_login_shell_finds_are_found(here: Here, tmp_path: Path) -> None:
    """`. /etc/profile` in the text is led to a file of ours: the machine's own is not ours to write."""
    profile = tmp_path / "profile"
    profile.write_text(f"PATH={tmp_path}/bin:$PATH\n")
    plain = tmp_path / "plain"
    plain.mkdir()
    for name in ("sh", "mkdir", "uname", "sha256sum", "tar"):
        (plain / name).symlink_to(shutil.which(name) or name)
    here.path = str(plain)
    run = here.run
    here.run = lambda text, *args, **more: run(  # type: ignore[method-assign]
        text.replace("/etc/profile", str(profile)), *args, **more
    )
    assert Cluster(here, "me").prepare(None).missing == ()
