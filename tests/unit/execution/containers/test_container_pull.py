"""The image comes to the node once, and the credential goes at once, whatever happens."""

import subprocess
from typing import Any

import pytest
from tests.unit.execution.containers.nodes import DIGEST, SHELLS, Node, section

# An image that is there once it was pulled, as files beside the fake.
IMAGES = 'case "$2 $3" in "image exists") [ -e "$here/present" ] || exit 1 ;; esac'
PULL = 'touch "$here/present"'
ID = "sha256:" + "b" * 64
NO_IMAGE = f"the node has no image {ID} (container.image); an id without a registry is never pulled"

NO_FILE = "the node can't read /nonexistent/x.tar (container.image)"


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def pulling(node: Node) -> None:
    node.runs("podman-image", IMAGES)
    node.runs("podman-pull", PULL)


def pull(node: Node, container: dict[str, Any], shell: str) -> "subprocess.CompletedProcess[str]":
    (node.job_dir / "pull-auth").write_text("{}")
    done = node.call(node.text(container), "container_pull", shell=shell)
    assert not (node.job_dir / "pull-auth").exists()
    return done


def test_by_digest_with_the_credential(node: Node, shell: str) -> None:
    pulling(node)
    done = pull(node, section(), shell)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    auth = f"--authfile={node.job_dir}/pull-auth"
    assert node.calls_of("pull") == [["podman", "--cgroup-manager=cgroupfs", "pull", "--quiet", auth, DIGEST]]


def test_what_is_there_is_not_pulled(node: Node, shell: str) -> None:
    (node.bin / "present").touch()
    pulling(node)
    assert pull(node, section(), shell).returncode == 0
    assert node.calls_of("pull") == []


def test_without_a_credential_none_is_named(node: Node, shell: str) -> None:
    pulling(node)
    assert node.call(node.text(section()), "container_pull", shell=shell).returncode == 0
    assert node.calls_of("pull") == [["podman", "--cgroup-manager=cgroupfs", "pull", "--quiet", DIGEST]]


def test_a_pull_that_fails(node: Node, shell: str) -> None:
    node.runs("podman-image", IMAGES)
    node.runs("podman-pull", "echo 'Error: unauthorized' >&2; exit 125")
    done = pull(node, section(), shell)
    assert (done.returncode, done.stderr) == (125, "Error: unauthorized\n")


def test_jobs_at_once_pull_once(node: Node, shell: str) -> None:
    pulling(node)
    node.runs("podman-pull", f"sleep 0.2; {PULL}")
    script = node.job_dir / "job.sh"
    script.write_text(f"set -eu\n{node.text(section())}\ncontainer_pull\n")
    jobs = [subprocess.Popen([shell, script], env=node.environ) for _ in range(3)]
    assert [job.wait() for job in jobs] == [0, 0, 0]
    assert len(node.calls_of("pull")) == 1


def test_what_podman_leaves_running_does_not_hold_the_lock(node: Node, shell: str) -> None:
    pulling(node)
    node.runs("podman-pull", '[ ! -e "/proc/$$/fd/9" ] || exit 1; touch "$here/present"')
    assert pull(node, section(), shell).returncode == 0


@pytest.mark.parametrize("runtime", ["none", "pyxis"])
def test_a_credential_that_is_not_used_goes_too(node: Node, shell: str, runtime: str) -> None:
    done = pull(node, section(runtime=runtime, image="/images/x.sqsh"), shell)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_id_is_never_pulled(node: Node, shell: str) -> None:
    pulling(node)
    done = pull(node, section(image=ID), shell)
    assert done.returncode == 125
    assert done.stderr == f"gpuci: {NO_IMAGE}\n"
    assert node.calls_of("pull") == []


def test_a_file_is_loaded_and_found_again(node: Node, shell: str) -> None:
    archive = node.job_dir / "image of '95.tar"
    archive.write_text("one")
    node.runs("podman-image", IMAGES)
    node.runs("podman-load", 'echo "Loaded image: localhost/team/train:1"')
    node.runs("podman-tag", PULL)
    container = section(image=str(archive))
    assert pull(node, container, shell).returncode == 0
    (load,), (tag,) = node.calls_of("load"), node.calls_of("tag")
    assert load[2:] == ["load", "--quiet", "--input", str(archive)]
    name = tag[-1]
    assert tag[2:] == ["tag", "localhost/team/train:1", name]
    assert name.startswith("localhost/gpuci-file:")
    assert name in node.run(container)
    archive.write_text("another")
    assert name not in node.run(container)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param({}, "", id="all is there"),
        pytest.param({"image": ID}, NO_IMAGE, id="an id that another node has"),
        pytest.param({"image": "/nonexistent/x.tar"}, NO_FILE, id="no such file"),
    ],
)
def test_the_check_names_what_lacks(node: Node, shell: str, change: dict[str, Any], says: str) -> None:
    node.runs("podman-image", IMAGES)
    done = node.call(node.text(section(**change)), "container_check", shell=shell)
    assert done.returncode == (1 if says else 0)
    assert done.stdout == (f"{says}\n" if says else "")
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("runtime", "says"),
    [
        ("podman", "has no podman (container.runtime is podman)"),
        ("docker", "has no docker (container.runtime is docker)"),
        ("pyxis", "has no srun"),
        ("none", "has no /nonexistent/python (container.python)"),
    ],
)
def test_the_check_misses_the_program(node: Node, shell: str, runtime: str, says: str) -> None:
    for program in ("podman", "docker", "srun"):
        (node.bin / program).unlink()
    # Another one may be installed: nothing else is on PATH.
    container = section(runtime=runtime, python="/nonexistent/python")
    done = node.call(
        node.text(container), "container_check", shell=f"/bin/{shell}", environ={"PATH": str(node.bin)}
    )
    assert (done.returncode, done.stdout) == (1, f"the node {says}\n")


def test_the_check_wants_a_scratch_directory_that_can_be_mounted(node: Node, shell: str) -> None:
    done = node.call(node.text(section()), "container_check", shell=shell, environ={"GPUCI_SCRATCH": "/a:b"})
    assert (done.returncode, done.stdout.split(":")[0]) == (1, "/a")
