"""No container: the same functions, with the node's Python."""

import subprocess

import pytest
from tests.unit.execution.containers.nodes import SHELLS, Node, section


def test_the_rendered_text_defines_the_four_functions_whatever_the_runtime(node: Node) -> None:
    for runtime in ("none", "podman", "docker", "pyxis"):
        image = {} if runtime == "none" else {"image": "/images/x"}
        for name in ("run", "pull", "remove", "check"):
            done = node.call(
                node.text(section(runtime=runtime, **image)), "command", "-v", f"container_{name}"
            )
            assert done.stdout == f"container_{name}\n", runtime


@pytest.mark.parametrize("shell", SHELLS)
def test_python_runs_with_the_arguments_as_they_are(node: Node, shell: str) -> None:
    node.program("a python", "#!/bin/sh\nprintf '%s\\0' \"$@\"; cat; exit 9\n")
    arguments = ["-c", "", "a\nb", "$(echo '*')"]
    container = section(runtime="none", python=str(node.bin / "a python"))
    done = node.call(node.text(container), "container_run", *arguments, shell=shell, stdin="in")
    assert (done.returncode, done.stdout) == (9, "".join(f"{word}\0" for word in arguments) + "in")


@pytest.mark.parametrize("shell", SHELLS)
def test_it_can_be_started_in_a_session_of_its_own(node: Node, shell: str) -> None:
    container = section(runtime="none", python="sh")
    script = node.job_dir / "job.sh"
    script.write_text(f'set -eu\n{node.text(container)}\ncontainer_run "$@"\n')
    done = subprocess.run(
        ["setsid", "-w", shell, script, "-c", 'cat; exit 3'],
        input="in", capture_output=True, text=True, env=node.environ, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (3, "in", "")


@pytest.mark.parametrize("function", ["container_pull", "container_remove", "container_check"])
def test_there_is_nothing_else_to_do(node: Node, function: str) -> None:
    done = node.call(node.text(section(runtime="none", image=None, python="sh")), function)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
