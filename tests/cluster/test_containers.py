"""The rendered functions with real rootless podman, as the user of a job."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.bed import registry
from tests.cluster.bed.handle import Bed, Done
from tests.cluster.bed.image import IMAGE_PYTHON
from tests.cluster.bed.processes import wait_for

from gpuci.execution.containers.credential import pull_auth
from gpuci.execution.containers.messages import explain
from gpuci.execution.containers.render import render
from gpuci.execution.slurm.fate import NO_IMAGE, judge
from gpuci.execution.slurm.states import JobFacts

SHM = 64 * 2**30
SYS_NICE = 23  # capabilities(7), linux/capability.h
# What a process knows of where it is.
FACTS = """
import json, os, sys
shm = os.statvfs("/dev/shm")
lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
facts = {"argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd(), "uid": os.getuid(),
         "pid": os.getpid(), "shm": shm.f_bsize * shm.f_blocks, "capabilities": int(lines["CapEff"], 16),
         "interfaces": sorted(line.split(":")[0].strip() for line in open("/proc/net/dev") if ":" in line),
         "stdin": sys.stdin.read(), "here": sorted(os.listdir(".")), "dev": os.listdir("/dev")}
for path in ("written", "/workspace/written", os.environ.get("SCRATCH", "/tmp") + "/written"):
    open(path, "w").close()
print(json.dumps(facts))
"""
STUBBORN = """
import os, signal, time
for number in (1, 2, 3, 10, 12, 15):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    time.sleep(1000)
print("lives", flush=True)
time.sleep(1000)
"""


@dataclass
class Job:
    """A job's two directories and the text that it would source; `number` is its Slurm id."""

    bed: Bed
    top: Path
    number: int

    @property
    def scratch(self) -> Path:
        return self.top / "scratch"

    @property
    def directory(self) -> Path:
        return self.top / "job"

    @property
    def script(self) -> Path:
        return self.top / "job.sh"

    def make(self) -> None:
        for path in (self.scratch / "tree", self.scratch / "tmp", self.directory / "out"):
            path.mkdir(parents=True, exist_ok=True)
        (self.scratch / "gpuci_node.pyz").write_text("code")
        (self.scratch / "tree/test_x.py").write_text("")
        (self.directory / "job.json").write_text("{}")
        self.own()

    def own(self) -> None:
        for path in [self.top, *self.top.rglob("*")]:
            shutil.chown(path, "ci", "ci")

    def render(self, **settings: Any) -> None:
        section = {
            "runtime": "podman",
            "image": self.bed.image,
            "python": IMAGE_PYTHON,
            "mounts": [],
            "env": [],
            "workdir": "/workspace",
            "network": "host",
            "shm-size": "64g",
            "cap-add": ["SYS_NICE"],
            "extra-options": [],
            "pull-credential-command": [],
        }
        section.update({name.replace("_", "-"): value for name, value in settings.items()})
        text = render(section, gpus=8, job_dir=str(self.directory))
        self.script.write_text(f'set -eu\n{text}\n"$@"\n')

    def words(self, *words: str, environ: dict[str, str] | None = None) -> list[str]:
        variables = {"GPUCI_SCRATCH": str(self.scratch), "SLURM_JOB_ID": str(self.number), **(environ or {})}
        return [
            "env",
            *(f"{name}={value}" for name, value in variables.items()),
            "sh",
            str(self.script),
            *words,
        ]

    def call(self, *words: str, environ: dict[str, str] | None = None, stdin: str = "") -> Done:
        return self.bed.as_ci(*self.words(*words, environ=environ), stdin=stdin)

    def facts(self, *, environ: dict[str, str] | None = None, stdin: str = "") -> dict[str, Any]:
        done = self.call("container_run", "-c", FACTS, "a b", environ=environ, stdin=stdin)
        assert done.returncode == 0, done.stderr
        facts: dict[str, Any] = json.loads(done.stdout)
        return facts

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start in the background; wait for its first line."""
        command = ["runuser", "-u", "ci", "--", "env", f"HOME={self.bed.place.home}", *self.words(*words)]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd="/")
        assert running.stdout
        assert running.stdout.readline() == "lives\n"
        return running

    def processes(self) -> list[str]:
        """Command lines of processes that belong to this job's container."""
        name, found = f"gpuci-{self.number}", []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().split(b"\0")
            except OSError:
                continue  # it has ended
            if name.encode() in words or any(b'print("lives"' in word for word in words):
                found.append(b" ".join(words).decode(errors="replace"))
        return [line for line in found if line]


@pytest.fixture
def job(bed: Bed) -> Iterator[Job]:
    # Slurm's own jobs count from 1.
    made = Job(
        bed, bed.place / f"scratch/containers-{os.getpid()}-{time.monotonic_ns()}", os.getpid() + 10**8
    )
    made.make()
    made.render()
    yield made
    made.call("container_remove")
    shutil.rmtree(made.top)
    assert f"gpuci-{made.number}" not in bed.containers()


def test_what_the_tests_find_inside(job: Job) -> None:
    job.render(env=["NCCL_DEBUG", "UNSET", "SCRATCH"])
    environ = {
        "NCCL_DEBUG": "IN FO",
        "SECRET": "s",
        "http_proxy": "http://me:secret@x",
        "SCRATCH": f"{job.scratch}/tmp",
    }
    facts = job.facts(environ=environ, stdin="protocol")
    assert (facts["argv"], facts["stdin"], facts["cwd"]) == (["a b"], "protocol", "/workspace")
    assert facts["here"] == ["test_x.py"]
    assert facts["shm"] == SHM
    assert facts["capabilities"] >> SYS_NICE & 1
    assert facts["pid"] == 1
    assert facts["env"]["NCCL_DEBUG"] == "IN FO"
    unknown = facts["env"].keys() - {"NCCL_DEBUG", "SCRATCH", "PATH", "HOME", "HOSTNAME", "TERM", "LC_CTYPE"}
    assert {name for name in unknown if not name.startswith("NVIDIA_")} == {"container"}
    for path in (job.scratch / "tree/written", job.scratch / "tmp/written"):
        assert path.owner() == "ci"


def test_what_the_tests_do_not_find_inside(job: Job) -> None:
    paths = [str(job.directory / "job.json"), str(job.script)]
    look = f"import os; print(*(os.path.exists(path) for path in {paths}))"
    assert job.call("container_run", "-c", look).stdout == "False False\n"
    write = f"open({str(job.scratch / 'gpuci_node.pyz')!r}, 'w')"
    assert "Read-only file system" in job.call("container_run", "-c", write).stderr


def test_the_keeper_inside_is_told_of_its_job_and_finds_no_more(job: Job) -> None:
    environ = {"GPUCI_INSIDE": "1", "SLURMD_NODENAME": "gpu007", "SLURM_JOB_GPUS": "0,1"}
    facts = job.facts(environ=environ)
    assert {name: facts["env"][name] for name in environ} == environ
    assert facts["env"]["GPUCI_SCRATCH"] == str(job.scratch)
    look = f"import os; print(os.listdir({str(job.directory)!r}))"
    assert job.call("container_run", "-c", look, environ=environ).stdout == "['out']\n"


@pytest.mark.parametrize(("network", "more"), [("none", False), ("host", True)])
def test_network(job: Job, network: str, more: bool) -> None:
    job.render(network=network)
    here = sorted(
        line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines() if ":" in line
    )
    assert job.facts()["interfaces"] == (here if more else ["lo"])


def test_mounts_and_devices(job: Job, tmp_path: Path) -> None:
    data = job.top / "da ta"
    data.mkdir()
    (data / "file").write_text("data")
    devices = [f"--device={path}:/dev/{path.name}" for path in job.bed.place.devices()]
    job.render(mounts=[f"{data}:/data:ro"], extra_options=devices)
    done = job.call(
        "container_run", "-c", "import os; print(open('/data/file').read(), len(os.listdir('/dev')))"
    )
    assert done.stdout.startswith("data "), done.stderr
    assert {path.name for path in job.bed.place.devices()} <= set(job.facts()["dev"])
    assert "Read-only" in job.call("container_run", "-c", "open('/data/x', 'w')").stderr


@pytest.mark.parametrize(("user", "uid"), [("root", 0), ("1234", 1234), ("1234:1234", 1234), ("daemon", 1)])
def test_whoever_it_is_inside_writes_as_the_jobs_user(job: Job, user: str, uid: int) -> None:
    job.render(user=user)
    assert job.facts()["uid"] == uid
    assert (job.scratch / "tree/written").owner() == "ci"


@pytest.mark.parametrize("code", [0, 1, 7, 124, 255])
def test_exit_codes_pass_through(job: Job, code: int) -> None:
    assert job.call("container_run", "-c", f"raise SystemExit({code})").returncode == code


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"python": "/nosuch"}, "the image has no /nosuch"),
        ({"python": "/tmp"}, "the image's /tmp can't be executed"),
        ({"user": "nosuch"}, "the image has no user nosuch"),
        ({"mounts": ["/nonexist:/x"]}, "the mount /nonexist does not exist on this node"),
        ({"mounts": ["/etc:/workspace"]}, "two mounts have the same place inside"),
        ({"extra_options": ["--device=/dev/nosuch"]}, "the device /dev/nosuch does not exist on this node"),
        ({"extra_options": ["--nosuch"]}, "the runtime does not know --nosuch"),
        ({"extra_options": ["--runtime=nvidia"]}, "the node has no OCI runtime nvidia"),
        ({"image": "sha256:" + "0" * 64}, "the image is not on this node"),
    ],
    ids=str,
)
def test_what_goes_wrong_is_explained(job: Job, settings: dict[str, Any], what: str) -> None:
    job.render(**settings)
    done = job.call("container_run", "-c", "print('ran')")
    assert done.returncode != 0
    assert done.stdout == ""
    assert explain(done.stderr, done.returncode).what == what


def test_an_image_that_only_another_node_has(job: Job) -> None:
    image = "sha256:" + "0" * 64
    job.render(image=image)
    done = job.call("container_check")
    assert done.returncode == 1
    assert f" has no image {image} (container.image)" in done.stdout
    assert job.call("container_pull").returncode == 125
    job.render()
    for function in ("container_check", "container_pull"):
        done = job.call(function)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# -- the end of a container ----------------------------------------------------------------------------------


def test_a_container_that_ignores_everything_is_not_given_podmans_ten_seconds(job: Job) -> None:
    running = job.start("container_run", "-c", STUBBORN)
    before = time.monotonic()
    assert job.call("container_remove").returncode == 0
    assert time.monotonic() - before < 10
    running.communicate()
    assert wait_for(lambda: not job.processes(), 20), job.processes()


@pytest.mark.parametrize("step", range(12))
def test_a_container_that_is_about_to_start_is_gone_too(job: Job, step: int) -> None:
    """Removal meets the start at another point each time; a start takes about 0.3 s."""
    job.script.write_text(job.script.read_text().removesuffix('"$@"\n') + 'echo lives\n"$@"\n')
    running = job.start("container_run", "-c", STUBBORN)
    time.sleep(step * 0.03)
    job.call("container_remove")
    running.communicate()
    assert wait_for(lambda: not job.processes(), 20), job.processes()
    assert f"gpuci-{job.number}" not in job.bed.containers()


def test_nothing_is_there_to_remove(job: Job) -> None:
    done = job.call("container_remove")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("payload", [STUBBORN, STUBBORN.replace("signal.SIG_IGN", "signal.SIG_DFL")])
def test_a_container_dies_with_its_job(job: Job, payload: str) -> None:
    """By scancel, whether the payload co-operates or not; as a job's trap does it."""
    program = job.scratch / "tmp/payload.py"
    program.write_text(payload)
    job.own()
    enter = f"sh {job.top}/enter.sh"
    (job.top / "enter.sh").write_text(f"export GPUCI_SCRATCH={job.scratch}\n{job.script.read_text()}")
    text = f"""
trap '{enter} container_remove; exit 143' TERM
{enter} container_run {program} >{job.top}/log 2>&1 &
wait
"""
    shutil.chown(job.top, "ci")
    identifier = job.bed.submit(text, f"--job-name={job.top.name}")
    job.number = int(identifier)
    log = job.top / "log"
    assert wait_for(lambda: log.exists() and log.read_text() == "lives\n", 60)
    assert f"gpuci-{identifier}" in job.bed.containers()
    job.bed.root("scancel", identifier)
    job.bed.await_state(identifier, "CANCELLED")
    job.bed.wait_empty(name=job.top.name)
    assert f"gpuci-{identifier}" not in job.bed.containers()
    assert wait_for(lambda: not job.processes(), 20), job.processes()


# -- the image -----------------------------------------------------------------------------------------------


@pytest.fixture
def small(bed: Bed, job: Job) -> Iterator[str]:
    """The name in `ci`'s storage of an image of a few KB that runs the node's /usr."""
    archive = job.top / "root.tar"
    skeleton = job.top / "root"
    for name in ("etc", "tmp", "root", "usr", "workspace", "dev", "proc", "sys"):
        (skeleton / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (skeleton / name).symlink_to(f"usr/{name}")
    (skeleton / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    (skeleton / "etc/stamp").write_text(str(job.number))
    with tarfile.open(archive, "w") as tar:
        tar.add(skeleton, "/")
    shutil.rmtree(skeleton)
    name = f"localhost/gpuci-small:{job.number}"
    entry = 'ENTRYPOINT ["/bin/false"]'  # which must not come before our Python
    assert bed.as_ci("podman", "import", "--quiet", "--change", entry, str(archive), name).returncode == 0
    yield name
    bed.as_ci("podman", "image", "rm", "--force", name)


@pytest.fixture
def pushed(bed: Bed, job: Job, small: str) -> Iterator[str]:
    """The same, by digest in a registry that wants a password, and no longer on the node."""
    bed.changed.add("registry")
    bed.start("registry")
    remote = f"127.0.0.1:{bed.place.registry_port}/team/train"
    credential = f"--creds={registry.USER}:{registry.PASSWORD}"
    digest = job.top / "digest"
    done = bed.as_ci(
        "podman", "push", "--quiet", credential, f"--digestfile={digest}", small, f"docker://{remote}:1"
    )
    assert done.returncode == 0, done.stderr
    bed.as_ci("podman", "image", "rm", small)
    name = f"{remote}@{digest.read_text()}"
    yield name
    bed.as_ci("podman", "image", "rm", "--force", name)
    bed.daemon("registry").stop()


def small_image(job: Job, image: str, **settings: Any) -> None:
    job.render(image=image, python="/usr/bin/python3", mounts=["/usr:/usr:ro"], **settings)


def give_credential(job: Job, image: str, printed: str) -> Path:
    path = job.directory / "pull-auth"
    path.write_text(pull_auth(image, printed))
    path.chmod(0o600)
    job.own()
    return path


LOGIN = f"{registry.USER}:{registry.PASSWORD}"
STAMP = "print(open('/etc/stamp').read())"


def test_by_digest_with_a_credential_that_no_test_sees(job: Job, pushed: str) -> None:
    small_image(job, pushed)
    credential = give_credential(job, pushed, LOGIN)
    done = job.call("container_pull")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not credential.exists()
    job.bed.daemon("registry").stop()  # from here on nothing can be pulled
    assert job.call("container_pull").returncode == 0
    assert job.call("container_run", "-c", STAMP).stdout == f"{job.number}\n"
    secret = json.loads(pull_auth(pushed, LOGIN))["auths"].popitem()[1]["auth"]
    # The patterns come by standard input: podman keeps the words that a container was started with.
    look, patterns = ["grep", "-rlsF", "-f", "-"], f"{LOGIN}\n{secret}\n"
    inside = [*look, str(job.directory), str(job.scratch)]
    assert (
        job.call("container_run", "-c", f"import subprocess; subprocess.run({inside})", stdin=patterns).stdout
        == ""
    )
    logins = [str(job.bed.place.home / ".config"), f"/tmp/podman-run-{job.scratch.stat().st_uid}"]
    assert job.bed.root(*look, *inside[4:], *logins, stdin=patterns).stdout == ""


@pytest.mark.parametrize(
    ("printed", "change", "what", "verdict"),
    [
        ("", "", "the registry refused the credential", "config_error"),
        ("reader:wrong", "", "the registry refused the credential", "config_error"),
        (LOGIN, "digest", "the registry has no such image", "config_error"),
        (LOGIN, "name", "the registry has no such image", "config_error"),
        (LOGIN, "registry", "the registry {host} can't be reached from this node", "infra"),
    ],
)
def test_a_pull_that_fails_is_explained(
    job: Job, pushed: str, printed: str, change: str, what: str, verdict: str
) -> None:
    image = pushed
    if change == "digest":
        image = pushed.partition("@")[0] + "@sha256:" + "0" * 64
    elif change == "name":
        image = pushed.replace("train", "nosuch")
    elif change == "registry":
        job.bed.daemon("registry").stop()
    small_image(job, image)
    credential = give_credential(job, image, printed) if printed else job.directory / "pull-auth"
    done = job.call("container_pull")
    assert done.returncode == 125
    what = what.format(host=image.partition("/")[0])
    assert explain(done.stderr, 125).what == what
    assert not credential.exists()
    # What the job's script repeats of it: the last line that says something.
    reason = NO_IMAGE + [line for line in done.stderr.splitlines() if line.strip()][-1]
    told = {"verdict": "infra", "exit_code": 4, "reason": reason, "fault": {"node": "gpu1", "reason": reason}}
    fate = judge(JobFacts("17", "job", "FAILED", "NonZeroExitCode", 4, 0, node="gpu1"), told, "")
    refused = verdict == "config_error"
    assert (fate.verdict, fate.retry, fate.exclude) == (verdict, not refused, None if refused else "gpu1")
    assert fate.reason.startswith(f"{what}; " if refused else NO_IMAGE)


def test_three_jobs_at_once_pull_once(job: Job, pushed: str) -> None:
    log = job.bed.daemon("registry").output
    before = log.read_text(errors="replace").count("GET /v2/team/train/manifests/")
    jobs = [Job(job.bed, job.top / f"job{number}", job.number + number) for number in (1, 2, 3)]
    for each in jobs:
        each.make()
        small_image(each, pushed)
        give_credential(each, pushed, LOGIN)
    base = ["runuser", "-u", "ci", "--", "env", f"HOME={job.bed.place.home}"]
    pulls = [subprocess.Popen([*base, *each.words("container_pull")], cwd="/") for each in jobs]
    assert [pull.wait() for pull in pulls] == [0, 0, 0]
    # One pull asks twice: without the credential, which is refused, and with it.
    after = log.read_text(errors="replace").count("GET /v2/team/train/manifests/")
    assert 1 <= after - before <= 2
    assert not [each for each in jobs if (each.directory / "pull-auth").exists()]


def test_an_image_file_is_loaded_once(job: Job, small: str) -> None:
    archive = job.top / "an image.tar"
    done = job.bed.as_ci("podman", "save", "--quiet", f"--output={archive}", small)
    assert done.returncode == 0, done.stderr
    job.bed.as_ci("podman", "image", "rm", small)
    small_image(job, str(archive))
    assert job.call("container_pull").returncode == 0
    job.bed.as_ci("podman", "image", "rm", small)
    assert job.call("container_run", "-c", STAMP).stdout == f"{job.number}\n"
    name = job.call("container_image").stdout.strip()
    assert name.startswith("localhost/gpuci-file:")
    job.bed.as_ci("podman", "image", "rm", "--force", name)


def test_a_file_that_is_no_image(job: Job) -> None:
    archive = job.top / "image.tar"
    archive.write_text("no image")
    job.own()
    job.render(image=str(archive))
    done = job.call("container_pull")
    assert done.returncode == 125
    assert "is of another kind" in explain(done.stderr, 125).what
