"""A container dies with its job: also one that is only about to start."""

import os
import signal
import subprocess

import pytest
from tests.unit.execution.containers.nodes import SHELLS, Node, section

RM = ["podman", "--cgroup-manager=cgroupfs", "rm", "--force", "--ignore", "--time=0", "gpuci-77"]


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def remove(node: Node, shell: str, *, tries: int = 30) -> None:
    text = node.text(section()).replace("-lt 30 ]", f"-lt {tries} ]")  # each of a tenth of a second
    done = node.call(text, "container_remove", shell=shell)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_it_removes_by_name_and_the_credential_too(node: Node, shell: str) -> None:
    (node.job_dir / "pull-auth").write_text("{}")
    remove(node, shell)
    assert node.calls_of("rm") == [RM]
    assert not (node.job_dir / "pull-auth").exists()


def test_it_never_fails(node: Node, shell: str) -> None:
    node.runs("podman-rm", "echo noise; echo noise >&2; exit 125")
    node.environ["GPUCI_SCRATCH"] = "/nonexistent"
    remove(node, shell)


def test_its_session_is_its_own(node: Node, shell: str) -> None:
    node.runs("podman-rm", 'cut -d " " -f 6 "/proc/$$/stat" >"$here/session"')
    remove(node, shell)
    assert int((node.bin / "session").read_text()) != os.getsid(0)


def start(node: Node, shell: str, *, background: bool = False) -> "subprocess.Popen[str]":
    """A job that runs a container, once the runtime's client lives."""
    script = node.job_dir / "running.sh"
    run = "container_run &\nwait" if background else "container_run"
    script.write_text(f"set -eu\n{node.text(section())}\n{run}\n")
    job = subprocess.Popen([shell, script], env=node.environ, stdout=subprocess.PIPE, text=True)
    assert job.stdout
    assert job.stdout.readline() == "lives\n"
    return job


@pytest.mark.parametrize("background", [False, True], ids=["exec", "in the background"])
def test_a_client_that_starts_is_waited_for(node: Node, shell: str, background: bool) -> None:
    # The container is there only at the third look; the client ends when it is removed.
    node.runs("podman-run", 'echo $$ >"$here/client"; echo lives; exec sleep 1000')
    node.runs(
        "podman-rm",
        'echo >>"$here/looks"; [ "$(wc -l <"$here/looks")" -lt 3 ] || kill "$(cat "$here/client")"',
    )
    job = start(node, shell, background=background)
    remove(node, shell)
    job.communicate()
    assert len(node.calls_of("rm")) >= 3


def test_a_client_that_hangs_is_killed(node: Node, shell: str) -> None:
    node.runs("podman-run", "trap '' TERM; echo lives; exec sleep 1000")
    job = start(node, shell)
    remove(node, shell, tries=3)
    job.communicate()
    assert job.returncode == -signal.SIGKILL


def test_a_process_id_that_is_anothers_by_now_is_left_alone(node: Node, shell: str) -> None:
    with subprocess.Popen(["sleep", "1000"]) as other:
        (node.scratch / "container-client").write_text(f"{other.pid} 1\n")
        remove(node, shell)
        assert other.poll() is None
        other.kill()
    assert node.calls_of("rm") == [RM]


def test_after_it_no_container_starts(node: Node, shell: str) -> None:
    remove(node, shell)
    done = node.call(node.text(section()), "container_run", shell=shell)
    assert done.returncode != 0
    assert node.calls_of("run") == []


def test_the_client_is_the_process_that_was_started(node: Node, shell: str) -> None:
    node.runs("podman-run", "echo lives; exec sleep 1000")
    job = start(node, shell)
    pid, _started = (node.scratch / "container-client").read_text().split()
    assert int(pid) == job.pid
    job.kill()
    job.communicate()
