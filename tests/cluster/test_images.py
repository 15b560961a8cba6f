"""An image of a commit with real rootless podman and a real registry: built, pushed, pulled, found again."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.cluster.bed import registry
from tests.cluster.bed.handle import Bed, Done

from gpuci.config import document as config_document
from gpuci.config.model import Config

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
LOADER = Path("/sbin/ldconfig")  # on Debian linked statically: it runs in an image that holds nothing else
DOCKERFILE = (
    'FROM scratch\nARG NOTE\nCOPY ldconfig /ldconfig\nCOPY stamp /stamp\nRUN ["/ldconfig", "--version"]\n'
)
CONTEXT = {"docker/Dockerfile": DOCKERFILE, "docker/stamp": "one\n", "docker/secret": "not an input\n"}


@dataclass
class Runner:
    """A runner whose user is `ci`: a repository octo/tests, programs of the actions, a registry."""

    bed: Bed
    top: Path
    # Not the directory's name: that is random too, and `g-_x` names no repository.
    image: str = field(default_factory=lambda: secrets.token_hex(6))

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.bed.place.registry_port}"

    @property
    def origin(self) -> Path:
        return self.top / "octo/tests"

    def git(self, *words: str) -> str:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        done = self.bed.as_ci("git", "-C", str(self.origin), *identity, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, **files: str) -> str:
        for name, text in files.items():
            (self.origin / "docker" / name).write_text(text)
        self.own()
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "x")
        return self.git("rev-parse", "HEAD")

    def configuration(self) -> str:
        build = {
            "repository": f"{self.host}/team/{self.image}",
            "file": "docker/Dockerfile",
            "context": "docker",
            "inputs": ["docker/stamp", "docker/ldconfig", "docker/Dockerfile"],
            "args": {"NOTE": "a b"},
            "target": None,
            "platform": "linux/amd64",
        }
        return json.dumps(config_document.to_document(Config(container={"image": None, "build": build})))

    def own(self) -> None:
        self.bed.get("chown", "-R", "ci:ci", str(self.top))

    def run(
        self, program: str, sha: str, *, password: str = registry.PASSWORD, temp: str = "temp", **inputs: str
    ) -> Done:
        """A step as the composite action runs it."""
        (self.top / temp).mkdir(exist_ok=True)
        for name in ("output", "summary"):
            (self.top / name).write_text("")
        self.own()
        given = {"sha": sha, "configuration": self.configuration(), "registry_user": registry.USER, **inputs}
        environ = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": "",
            "CONTAINERS_CONF": str(self.top / "containers.conf"),
            "GITHUB_ACTIONS": "true",
            "GITHUB_REPOSITORY": "octo/tests",
            "GITHUB_SERVER_URL": self.top.as_uri(),
            "GITHUB_EVENT_PATH": str(self.top / "event.json"),
            "GITHUB_EVENT_NAME": "push",
            "GITHUB_SHA": self.git("rev-parse", "HEAD"),
            "GITHUB_REF": "refs/heads/main",
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_OUTPUT": str(self.top / "output"),
            "GITHUB_STEP_SUMMARY": str(self.top / "summary"),
            "RUNNER_TEMP": str(self.top / temp),
            "GPUCI_TOKEN": "ghs_token",
            "GPUCI_REGISTRY_PASSWORD": password,
            **{f"GPUCI_{name.upper()}": value for name, value in given.items()},
        }
        words = [f"{name}={value}" for name, value in environ.items()]
        script = [
            str(self.top / "scripts/with_python.sh"),
            "python3",
            "-I",
            str(self.top / f"scripts/{program}.py"),
        ]
        return self.bed.as_ci("env", *words, "sh", *script, timeout=180)

    def outputs(self) -> dict[str, str]:
        lines = (self.top / "output").read_text().splitlines()
        starts = [number for number, line in enumerate(lines) if "<<gpuci-" in line]
        return {lines[number].partition("<<")[0]: lines[number + 1] for number in starts}

    def good(self, program: str, sha: str, **inputs: str) -> dict[str, str]:
        done = self.run(program, sha, **inputs)
        assert done.returncode == 0, done.stdout + done.stderr
        return self.outputs()

    def podman(self, *words: str) -> Done:
        """podman as a node has it."""
        done = self.bed.as_ci("podman", *words)
        assert done.returncode == 0, done.stderr
        return done


@pytest.fixture
def runner(bed: Bed, tmp_path: Path) -> Iterator[Runner]:
    bed.changed.add("registry")
    bed.start("registry")
    tmp_path.chmod(0o755)
    found = Runner(bed, tmp_path)
    shutil.copytree(SCRIPTS, tmp_path / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "event.json").write_text('{"repository": {"default_branch": "main"}}')
    # Containers of a build have no network of their own where /dev/net/tun is not for everybody.
    own = (bed.place.home / ".config/containers/containers.conf").read_text()
    (tmp_path / "containers.conf").write_text(own.replace("[containers]", '[containers]\nnetns = "host"'))
    (found.origin / "docker").mkdir(parents=True)
    shutil.copy(LOADER, found.origin / "docker/ldconfig")
    for name, text in CONTEXT.items():
        (found.origin / name).write_text(text)
    found.own()
    found.git("init", "-q", "-b", "main")
    for setting in ("allowFilter", "allowAnySHA1InWant"):
        found.git("config", f"uploadpack.{setting}", "true")
    yield found
    bed.daemon("registry").stop()


def test_built_pushed_pulled_run_and_found_again(runner: Runner) -> None:
    sha = runner.commit()
    done = runner.run("build_image", sha)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "│ ldconfig (Debian GLIBC" in done.stdout
    built = runner.outputs()
    assert (built["image"], built["built"], built["push"]) == ("", "true", "true")
    image = runner.good("push_image", sha, archive=str(Path(built["archive"]).parent))["image"]
    credential = f"--creds={registry.USER}:{registry.PASSWORD}"
    runner.podman("pull", "--quiet", credential, image)
    told = runner.podman("run", "--rm", "--network=none", image, "/ldconfig", "--version")
    assert told.stdout.startswith("ldconfig (Debian GLIBC")
    again = runner.good("build_image", sha)
    assert (again["image"], again["push"]) == (image, "false")
    runner.good("tag_image", sha, image=image)
    tagged = runner.podman("pull", "--quiet", credential, image.partition("@")[0] + ":main").stdout.strip()
    assert tagged == runner.podman("image", "inspect", "--format={{.Id}}", image).stdout.strip()
    runner.podman("image", "rm", "--force", image)


def test_a_second_build_of_the_same_inputs_is_not_needed_and_one_of_others_is(runner: Runner) -> None:
    first = runner.commit()
    runner.good("push_image", first, archive=runner.good("build_image", first)["archive"])
    unrelated = runner.commit(secret="changed, and no input\n")
    assert runner.good("build_image", unrelated)["push"] == "false"
    assert runner.good("build_image", runner.commit(stamp="two\n"))["push"] == "true"


def test_a_build_leaves_nothing_behind(runner: Runner) -> None:
    before = runner.podman("image", "ls", "--all", "--quiet").stdout
    scratches = temporary()
    built = runner.good("build_image", runner.commit())
    scratch = Path(built["archive"]).parents[1]
    assert sorted(path.name for path in scratch.iterdir()) == ["home", "image", "repository"]
    assert runner.podman("image", "ls", "--all", "--quiet").stdout == before
    assert runner.bed.containers() == []
    assert temporary() == scratches


def temporary() -> set[Path]:
    """Where podman keeps the state of a build."""
    return set(Path("/tmp").glob("gpuci-podman-*"))


FAILING = [
    ("a step", 'RUN ["/ldconfig", "--nosuch"]\n', 1, "the Dockerfile's step failed: RUN /ldconfig --nosuch"),
    ("no input", "COPY secret /x\n", 1, "the Dockerfile copies a file that the build doesn't see"),
    ("an unknown word", "RUM true\n", 1, "the Dockerfile can't be read"),
    ("a base that is nowhere", "FROM 127.0.0.1:1/a/b:1\n", 4, "a host that the build needs can't be reached"),
    ("a base by a short name", "FROM nosuch-base:1\n", 1, "the base image nosuch-base:1 names no registry"),
]


@pytest.mark.parametrize(
    ("line", "code", "what"), [row[1:] for row in FAILING], ids=[row[0] for row in FAILING]
)
def test_a_build_that_fails_is_explained(runner: Runner, line: str, code: int, what: str) -> None:
    done = runner.run("build_image", runner.commit(Dockerfile=DOCKERFILE + line))
    assert (done.returncode, what in done.stdout) == (code, True), done.stdout + done.stderr
    assert "::error title=gpuci build-image::" in done.stdout
    assert runner.outputs().keys() == {"problem"}  # for the gate; no image


def test_no_image_and_no_file_of_the_runner_gets_into_the_build(runner: Runner) -> None:
    """podman takes a base image from anywhere, and a Dockerfile.in through cpp, if it is let."""
    there = runner.top / "images"
    there.mkdir()
    (there / "Dockerfile").write_text("FROM scratch\nCOPY stamp /\n")
    (there / "stamp").write_text("of another team\n")
    runner.own()
    runner.podman("build", "--quiet", "--tag=localhost/other:1", str(there))
    runner.podman(
        "save", "--quiet", "--format=oci-archive", f"--output={there}/other.tar", "localhost/other:1"
    )
    store = runner.podman(
        "info", "--format=[{{.Store.GraphDriverName}}@{{.Store.GraphRoot}}+{{.Store.RunRoot}}]"
    )
    for base in (
        f"oci-archive:{there}/other.tar",
        f"containers-storage:{store.stdout.strip()}localhost/other:1",
    ):
        done = runner.run("build_image", runner.commit(Dockerfile=f"FROM {base}\nCOPY stamp /x\n"))
        assert done.returncode == 1, done.stdout + done.stderr
        assert "the Dockerfile's base image is refused" in done.stdout
    runner.podman("image", "rm", "--force", "localhost/other:1")


def test_a_full_disk_is_explained(runner: Runner) -> None:
    sha = runner.commit(stamp="x" * 20_000_000)
    small = runner.top / "small"
    small.mkdir()
    runner.bed.get("mount", "-t", "tmpfs", "-o", "size=40m,mode=0755", "tmpfs", str(small))
    try:
        done = runner.run("build_image", sha, temp="small")
    finally:
        runner.bed.get("umount", "--lazy", str(small))
    assert done.returncode == 4, done.stdout + done.stderr
    assert "the disk of the runner is full" in done.stdout or "the disk is full" in done.stdout


def test_a_wrong_password_finds_nothing_and_pushes_nothing(runner: Runner) -> None:
    sha = runner.commit()
    done = runner.run("build_image", sha, password="wrong")
    assert "can't be looked into (401): taken as empty" in done.stdout
    done = runner.run("push_image", sha, password="wrong", archive=runner.outputs()["archive"])
    assert done.returncode == 4, done.stdout + done.stderr
    assert "pass `registry-user` and `registry-password`" in done.stdout
    assert "wrong" not in done.stdout.replace("missing, wrong,", "")
