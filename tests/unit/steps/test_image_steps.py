"""A commit asks for an image: found, or built in one job and pushed by another, which trusts it in nothing.

The builder here is a stand-in that writes down what it was given; the real one is in tests/cluster.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from tests.fakes.github.server import Server
from tests.fakes.github.state import Repository, State, Token
from tests.fakes.oci import Layout
from tests.fakes.registry import Fake, serving

from gpuci.config import document as config_document
from gpuci.config.model import Config
from gpuci.errors import ConfigError, GpuciError
from gpuci.github.record import Unauthorized
from gpuci.github.step import Step
from gpuci.images.answers import RegistryError
from gpuci.images.manifest import BrokenImage
from gpuci.images.messages import BuildFailed
from gpuci.steps import build_image, push_image, tag_image

STAND_IN = f"""#!{sys.executable} -I
import json, os, pathlib, shutil, sys
options = dict(word.partition("=")[::2] for word in sys.argv[1:])
notes = pathlib.Path(__file__).parent
if "build" in sys.argv:
    context = pathlib.Path(sys.argv[-1])
    seen = sorted(str(path.relative_to(context)) for path in context.rglob("*") if not path.is_dir())
    text = pathlib.Path(options["--file"]).read_text()
    facts = {{"argv": sys.argv[1:], "environ": dict(os.environ), "seen": seen, "dockerfile": text}}
    (notes / "facts").write_text(json.dumps(facts))
    print("STEP 1/1: FROM scratch\\n::error::forged\\n  ##[error]forged\\r::set-output name=image::evil")
    if "FAIL" in text:
        print('Error: building at STEP "RUN false": while running runtime: exit status 1')
        sys.exit(1)
else:
    shutil.copy(notes / "image.tar", options["--output"])
"""
DOCKERFILE = {"docker/Dockerfile": "FROM scratch\n", "uv.lock": "1\n", "src/a.py": "x = 1\n"}
PASSWORD = "hunter2-registry"


@dataclass
class Scene:
    """A repository octo/tests, a registry, a runner with a builder."""

    directory: Path
    fake: Fake
    github: Server
    commits: dict[str, str] = field(default_factory=dict)  # branch -> sha

    @property
    def origin(self) -> Path:
        return self.directory / "octo/tests"

    def git(self, *words: str) -> str:
        command = [
            "git",
            "-C",
            str(self.origin),
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            *words,
        ]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, branch: str, **files: str | None) -> str:
        """Put files (their `/` as `__`, dots as `_dot_`) on top of a branch of main."""
        self.git("checkout", "-q", "-B", branch, *(["main"] if branch != "main" and self.commits else []))
        for name, text in files.items():
            path = self.origin / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is not None:
                path.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "x")
        self.commits[branch] = self.git("rev-parse", "HEAD")
        return self.approved(self.commits[branch])

    def approved(self, sha: str, state: str = "success") -> str:
        """Record that somebody approved a commit, or took that back."""
        status = {"context": "gpuci/approved", "state": state, "description": "approved by @maria (label)"}
        statuses = self.github.state.repositories[0].statuses.setdefault(sha, [])
        statuses.append({**status, "created_at": "2026-11-20T12:00:00Z"})
        return sha

    def configuration(self, **build: Any) -> str:
        section = {
            "repository": f"{self.fake.host}/team/train",
            "file": "docker/Dockerfile",
            "context": ".",
            "inputs": ["docker/**", "uv.lock"],
            "args": {},
            "target": None,
            "platform": "linux/amd64",
            **build,
        }
        return json.dumps(config_document.to_document(Config(container={"image": None, "build": section})))

    def step(
        self, action: str, sha: str, *, ref: str = "refs/heads/main", own: str = "", **inputs: str
    ) -> Step:
        """`own` is GITHUB_SHA; inputs by their names with `_`."""
        for name in ("output", "summary"):
            (self.directory / name).write_text("")
        (self.directory / "event.json").write_text('{"repository": {"default_branch": "main"}}')
        given = {"sha": sha, "configuration": self.configuration(), "registry_user": "bot", **inputs}
        secrets = {"GPUCI_TOKEN": "ghs_token", "GPUCI_REGISTRY_PASSWORD": PASSWORD}
        environ = {
            "GITHUB_REPOSITORY": "octo/tests",
            "GITHUB_SERVER_URL": self.directory.as_uri(),
            "GITHUB_EVENT_PATH": str(self.directory / "event.json"),
            "GITHUB_EVENT_NAME": "push",
            "GITHUB_SHA": own or self.commits["main"],
            "GITHUB_REF": ref,
            "GITHUB_API_URL": self.github.url,
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_OUTPUT": str(self.directory / "output"),
            "GITHUB_STEP_SUMMARY": str(self.directory / "summary"),
            "RUNNER_TEMP": str(self.directory),
            "HOME": str(self.directory),
            "PATH": f"{self.directory / 'bin'}:/usr/bin:/bin",
            **{f"GPUCI_{name.upper()}": value for name, value in given.items()},
        }
        return Step(action, environ, secrets)

    def build(self, sha: str, **inputs: Any) -> dict[str, str]:
        assert build_image.run(self.step("build-image", sha, **inputs)) == 0
        return self.outputs()

    def push(self, sha: str, archive: str, **inputs: Any) -> str:
        assert push_image.run(self.step("push-image", sha, archive=archive, **inputs)) == 0
        return self.outputs()["image"]

    def outputs(self) -> dict[str, str]:
        lines = (self.directory / "output").read_text().splitlines()
        starts = [number for number, line in enumerate(lines) if "<<gpuci-" in line]
        return {lines[number].partition("<<")[0]: lines[number + 1] for number in starts}

    def facts(self) -> dict[str, Any]:
        """What the builder was given."""
        found: dict[str, Any] = json.loads((self.directory / "bin/facts").read_text())
        return found

    @property
    def builds(self) -> bool:
        return (self.directory / "bin/facts").exists()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/podman"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    Layout().write(tmp_path / "bin/image.tar")
    state = State([Repository("octo/tests")], {"ghs_token": Token({"statuses": "read"})})
    with serving(Fake(users={"bot": PASSWORD})) as fake, Server(state) as github:
        found = Scene(tmp_path, fake, github)
        found.origin.mkdir(parents=True)
        found.git("init", "-q", "-b", "main")
        found.git("config", "uploadpack.allowFilter", "true")
        found.git("config", "uploadpack.allowAnySHA1InWant", "true")
        found.commit(
            "main",
            **{name.replace("/", "__").replace(".", "_dot_"): text for name, text in DOCKERFILE.items()},
        )
        yield found


def test_built_pushed_and_found_again(scene: Scene) -> None:
    main = scene.commits["main"]
    built = scene.build(main)
    assert (built["image"], built["built"], built["push"]) == ("", "true", "true")
    image = scene.push(main, built["archive"])
    name, _, digest = image.partition("@")
    assert name == f"{scene.fake.host}/team/train"
    assert ("team/train", digest) in scene.fake.manifests
    again = scene.build(main)
    assert again == {"image": image, "built": "true", "push": "false", "archive": ""}


def test_the_job_that_builds_has_written_nothing(scene: Scene) -> None:
    scene.build(scene.commits["main"])
    assert {verb for verb, _ in scene.fake.requests} == {"GET"}


def test_the_job_that_pushes_runs_nothing(scene: Scene) -> None:
    built = scene.build(scene.commits["main"])
    (scene.directory / "bin/facts").unlink()
    scene.push(scene.commits["main"], built["archive"])
    assert not scene.builds


def test_the_builder_gets_the_inputs_and_no_secret(scene: Scene) -> None:
    scene.build(scene.commits["main"])
    facts = scene.facts()
    assert facts["seen"] == ["docker/Dockerfile", "uv.lock"]
    text = json.dumps(facts)
    assert PASSWORD not in text
    assert "ghs_token" not in text
    assert not [name for name in facts["environ"] if name.startswith(("GITHUB_", "GPUCI_", "ACTIONS_"))]


REJECT, ACCEPT = [{"type": "reject"}], [{"type": "insecureAcceptAnything"}]


def test_the_builder_takes_base_images_as_the_runners_user_trusts_registries(scene: Scene) -> None:
    policy = scene.directory / ".config/containers/policy.json"
    policy.parent.mkdir(parents=True)
    transports = {"docker": {"docker.io": REJECT}, "oci-archive": {"": ACCEPT}}
    policy.write_text(json.dumps({"default": ACCEPT, "transports": transports}))
    scene.build(scene.commits["main"])
    home = Path(scene.facts()["environ"]["HOME"])
    found = json.loads((home / ".config/containers/policy.json").read_text())
    assert found["default"] == REJECT
    assert found["transports"]["docker"]["docker.io"] == REJECT
    assert "oci-archive" not in found["transports"]


@pytest.mark.parametrize("text", ["{", "[]", '{"transports": [1]}', '{"transports": {"docker": 1}}'])
def test_a_broken_policy_is_named_and_nothing_left(
    scene: Scene, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def make(**options: str) -> str:
        made.append(mkdtemp(**options))
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", make)
    policy = scene.directory / ".config/containers/policy.json"
    policy.parent.mkdir(parents=True)
    policy.write_text(text)
    with pytest.raises(ConfigError, match=r"policy\.json can't be read"):
        scene.build(scene.commits["main"])
    assert [path for path in made if "gpuci-podman-" in path and Path(path).exists()] == []
    assert "gpuci-podman-" in made[-1]


def test_docker_builds_where_it_is_asked_for(scene: Scene) -> None:
    """Its archive is the output option's; nothing else is run."""
    program = scene.directory / "bin/docker"
    program.write_text(
        f"#!{sys.executable} -I\nimport pathlib, shutil, sys\n"
        "notes = pathlib.Path(__file__).parent\n(notes / 'argv').write_text(' '.join(sys.argv[1:]))\n"
        "output = next(word for word in sys.argv if word.startswith('--output='))\n"
        "shutil.copy(notes / 'image.tar', output.partition('dest=')[2])\n"
    )
    program.chmod(0o755)
    built = scene.build(scene.commits["main"], builder="docker")
    assert scene.push(scene.commits["main"], built["archive"])
    assert (scene.directory / "bin/argv").read_text().startswith("buildx build ")
    assert not scene.builds


def test_what_the_builder_prints_is_no_command(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    scene.build(scene.commits["main"])
    printed = capsys.readouterr().out
    assert "forged" in printed
    assert not [line for line in printed.splitlines() if line.lstrip().startswith("::") or "##[" in line]
    assert "image<<" in (scene.directory / "output").read_text()
    assert "evil" not in (scene.directory / "output").read_text()


OTHER_RUNS = [
    ("a pull request", {"ref": "refs/pull/1/merge"}),
    ("pull_request_target", {"ref": "refs/heads/main"}),
    ("another branch", {"ref": "refs/heads/feature", "own": "PR"}),
    ("the merge queue", {"ref": "refs/heads/gh-readonly-queue/main/pr-1", "own": "PR"}),
]


@pytest.mark.parametrize("run", [case[1] for case in OTHER_RUNS], ids=[case[0] for case in OTHER_RUNS])
def test_another_commit_pushes_beside_and_the_default_branch_never_takes_it(
    scene: Scene, run: dict[str, str]
) -> None:
    """The pull request's Dockerfile is merged: the same tag, and yet the default branch builds it itself."""
    head = scene.commit("feature", docker__Dockerfile="FROM scratch\n# changed\n")
    run = {**run, "own": head if run.get("own") else ""}
    built = scene.build(head, **run)
    image = scene.push(head, built["archive"], **run)
    assert image.startswith(f"{scene.fake.host}/team/train/pr@")
    assert {name for name, _ in scene.fake.manifests} == {"team/train/pr"}
    assert scene.build(head, **run)["image"] == image
    merged = scene.commit("main", docker__Dockerfile="FROM scratch\n# changed\n")
    scene.fake.requests.clear()
    assert scene.build(merged)["push"] == "true"
    assert not [path for _, path in scene.fake.requests if "/pr/" in path]


def test_a_pull_request_that_changes_no_input_takes_the_default_branchs_image(scene: Scene) -> None:
    image = scene.push(scene.commits["main"], scene.build(scene.commits["main"])["archive"])
    head = scene.commit("feature", src__a_dot_py="x = 2\n")
    assert scene.build(head, ref="refs/pull/1/merge")["image"] == image


def test_a_forged_archive_gets_no_tag(scene: Scene) -> None:
    built = scene.build(scene.commits["main"])
    Layout(layer={"size": 2}).write(Path(built["archive"]))
    with pytest.raises(BrokenImage):
        scene.push(scene.commits["main"], built["archive"])
    assert scene.fake.manifests == {}
    assert scene.fake.blobs == {}


def test_an_image_of_another_platform_is_not_pushed(scene: Scene) -> None:
    built = scene.build(scene.commits["main"])
    Layout(config={"os": "linux", "architecture": "riscv64"}).write(Path(built["archive"]))
    with pytest.raises(BrokenImage, match=r"container\.build\.platform is linux/amd64"):
        scene.push(scene.commits["main"], built["archive"])


def test_an_archive_gets_the_tag_of_the_commit_whatever_it_says(scene: Scene) -> None:
    """An archive built from another Dockerfile is pushed under the inputs of the commit that is named."""
    head = scene.commit("feature", docker__Dockerfile="FROM scratch\n# other\n")
    archive = scene.build(head, ref="refs/pull/1/merge")["archive"]
    scene.push(head, archive, ref="refs/pull/1/merge")
    tags = {tag for _, tag in scene.fake.manifests if not tag.startswith("sha256:")}
    assert len(tags) == 1
    assert scene.build(scene.commits["main"])["push"] == "true"


def test_nothing_is_built_of_a_commit_whose_approval_was_taken_back(scene: Scene) -> None:
    """A re-run of this job alone: wait-for-label passed once, and is not asked again."""
    head = scene.approved(scene.commit("feature", docker__Dockerfile="FROM scratch\n# evil\n"), "failure")
    with pytest.raises(Unauthorized):
        scene.build(head, ref="refs/pull/1/merge")
    assert not scene.builds
    assert scene.outputs() == {}


def test_a_failed_build_has_no_image(scene: Scene) -> None:
    head = scene.commit("feature", docker__Dockerfile="FAIL")
    with pytest.raises(BuildFailed) as caught:
        scene.build(head, ref="refs/pull/1/merge")
    assert caught.value.what == "the Dockerfile's step failed: RUN false"
    assert caught.value.exit_code == 1
    assert scene.outputs() == {}


GIVEN = "ghcr.io/team/train@sha256:" + "1" * 64


def test_a_given_image_is_taken_as_it_is(scene: Scene) -> None:
    assert scene.build("1" * 40, image=GIVEN) == {
        "image": GIVEN,
        "built": "false",
        "push": "false",
        "archive": "",
    }
    assert scene.fake.requests == []
    assert not scene.builds


@pytest.mark.parametrize(
    "image", [None, GIVEN, "/shared/train.sqsh", "sha256:" + "2" * 64], ids=["none", "digest", "file", "id"]
)
def test_the_image_of_the_configuration(scene: Scene, image: str | None) -> None:
    configuration = json.dumps(config_document.to_document(Config(container={"image": image, "build": None})))
    found = scene.build("1" * 40, configuration=configuration)
    assert found == {"image": image or "", "built": "false", "push": "false", "archive": ""}


BAD = [
    ("an image by tag", {"image": "ghcr.io/team/train:main"}, "names no image by its digest"),
    ("a short commit", {"sha": "abc"}, "no full commit id"),
    ("no configuration", {"configuration": ""}, "configuration is empty"),
    ("half a configuration", {"configuration": '{"schema": "gpuci/config/1"}'}, "is broken"),
    ("an unknown builder", {"builder": "kaniko"}, "builder is 'kaniko'"),
    ("another root", {"root": "../x"}, "has no directory"),
]


@pytest.mark.parametrize(("inputs", "what"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_inputs_that_make_no_sense(scene: Scene, inputs: dict[str, str], what: str) -> None:
    sha = inputs.pop("sha", scene.commits["main"])
    with pytest.raises(ConfigError) as caught:
        scene.build(sha, **inputs)
    assert what in caught.value.what


def test_a_runner_without_a_builder(scene: Scene) -> None:
    (scene.directory / "bin/podman").unlink()
    step = scene.step("build-image", scene.commits["main"])
    environ = {**step.environ, "PATH": str(scene.directory / "bin")}
    with pytest.raises(BuildFailed) as caught:
        build_image.run(Step("build-image", environ, {"GPUCI_REGISTRY_PASSWORD": PASSWORD}))
    assert caught.value.what.startswith("the runner has no podman or docker")


def test_a_submodule_and_a_link_out_of_the_tree_are_not_there_for_the_build(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.git("checkout", "-q", "-b", "links")
    (scene.origin / "docker/key").symlink_to("/etc/passwd")
    (scene.origin / "docker/lock").symlink_to("../uv.lock")
    scene.git("update-index", "--add", "--cacheinfo", f"160000,{scene.commits['main']},docker/sub")
    scene.git("add", "docker/key", "docker/lock")
    scene.git("commit", "-q", "-m", "links")
    scene.build(scene.approved(scene.git("rev-parse", "HEAD")), ref="refs/pull/1/merge")
    assert scene.facts()["seen"] == ["docker/Dockerfile", "docker/lock", "uv.lock"]
    printed = capsys.readouterr().out
    assert "docker/key: a link out of the tree" in printed
    assert "the submodule docker/sub counts by its commit" in printed


def test_nothing_is_left_but_the_archive(scene: Scene) -> None:
    built = scene.build(scene.commits["main"])
    scratch = Path(built["archive"]).parents[1]
    assert sorted(path.name for path in scratch.iterdir()) == ["home", "image", "repository"]
    assert os.listdir(Path(built["archive"]).parent) == ["image.tar"]
    options = dict(word.partition("=")[::2] for word in scene.facts()["argv"])
    assert not Path(options["--runroot"]).exists()


def test_a_registry_that_refuses_is_empty_for_the_lookup_and_an_error_for_the_push(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.fake.users["bot"] = "another"
    built = scene.build(scene.commits["main"])
    assert built["push"] == "true"
    assert "can't be looked into (401): taken as empty" in capsys.readouterr().out
    with pytest.raises(RegistryError) as caught:
        scene.push(scene.commits["main"], built["archive"])
    assert caught.value.status == 401
    assert PASSWORD not in caught.value.page()


# -- a tag for people ----------------------------------------------------------------------------------------


def pushed(scene: Scene) -> str:
    return scene.push(scene.commits["main"], scene.build(scene.commits["main"])["archive"])


def test_the_default_branchs_image_gets_the_tag(scene: Scene) -> None:
    image = pushed(scene)
    assert tag_image.run(scene.step("tag-image", scene.commits["main"], image=image)) == 0
    assert scene.fake.tag("team/train", "main") == image.partition("@")[2]
    assert scene.outputs() == {"moved": "true"}


@pytest.mark.parametrize("run", [case[1] for case in OTHER_RUNS], ids=[case[0] for case in OTHER_RUNS])
def test_another_run_moves_no_tag(
    scene: Scene, run: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    image = pushed(scene)
    head = scene.commit("feature")
    run = {**run, "own": head if run.get("own") else ""}
    assert tag_image.run(scene.step("tag-image", head, image=image, **run)) == 0
    assert scene.fake.tag("team/train", "main") is None
    assert scene.outputs() == {"moved": "false"}
    assert "main stays where it is" in capsys.readouterr().out


def test_an_image_of_others_gets_no_tag(scene: Scene) -> None:
    image = pushed(scene).replace("train@", "train/pr@")
    assert tag_image.run(scene.step("tag-image", scene.commits["main"], image=image)) == 0
    assert scene.fake.count("PUT", "/manifests/main") == 0


def test_an_image_that_was_deleted(scene: Scene) -> None:
    image = pushed(scene)
    scene.fake.manifests.clear()
    with pytest.raises(GpuciError) as caught:
        tag_image.run(scene.step("tag-image", scene.commits["main"], image=image))
    assert "has no image sha256:" in caught.value.what


@pytest.mark.parametrize("tag", ["inputs-1", "a/b", "-x"])
def test_a_tag_that_can_not_be(scene: Scene, tag: str) -> None:
    with pytest.raises(ConfigError):
        tag_image.run(scene.step("tag-image", scene.commits["main"], image=GIVEN, tag=tag))


# -- cancellation --------------------------------------------------------------------------------------------

HANGING = f"""#!{sys.executable} -I
import os, pathlib, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
pathlib.Path(__file__).with_name(f"pid-{{os.getpid()}}").touch()
print("hangs", flush=True)
time.sleep(1000)
"""
ENTRY = Path(__file__).resolve().parents[3] / "scripts/build_image.py"


def ends(pid: int) -> bool:
    """Wait for the end of a process that is not ours; one that was killed dies when it gets a processor."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], 60)[0])
    finally:
        os.close(fd)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_build_ends_with_its_step(scene: Scene, sent: signal.Signals) -> None:
    """The runner signals the step's process only; a builder that ignores everything goes too."""
    (scene.directory / "bin/podman").write_text(HANGING)
    step = scene.step("build-image", scene.commits["main"])
    with subprocess.Popen(
        [sys.executable, "-I", str(ENTRY)],
        env=dict(step.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        shown = 0
        while shown < 2:
            line = process.stdout.readline()
            assert line, "the step ended by itself"
            shown += "│ hangs" in line
        process.send_signal(sent)
        assert process.wait(60) == 7
    pids = [int(path.name.removeprefix("pid-")) for path in (scene.directory / "bin").glob("pid-*")]
    assert len(pids) == 2
    assert all(map(ends, pids))
    assert not list(scene.directory.glob("gpuci-build-image-*/store"))
