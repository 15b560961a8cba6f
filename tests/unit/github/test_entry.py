"""What is behind every action: its programs as the runner starts them, in a copy of the scripts."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.runner_log import read_log, read_values

from gpuci.github import entry
from gpuci.github.needs import read_problem
from gpuci_node.contract import EXIT_CODES

CLONE = Path(__file__).resolve().parents[3]
SECRETS = {name: f"secret of {name}" for name in entry.SECRETS}
PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, str(Path(__file__).resolve().parent))
from gpuci.github.entry import main
sys.exit(main("probe", needs_packages={needs}))
"""
# The line of an action.yml, with a directory in place of $GITHUB_ACTION_PATH/../../scripts.
RUN = 'exec sh "$SCRIPTS/with_python.sh" python3 -I "$SCRIPTS/probe.py"\n'
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Start an action whose step has the given body, as the runner starts a composite's `run`."""
    scripts = tmp_path / "a clone; 'é" / "scripts"
    for package in ("gpuci", "gpuci_node"):
        shutil.copytree(
            CLONE / "scripts" / package, scripts / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(CLONE / "scripts/with_python.sh", scripts)
    (scripts / "requirements.txt").write_text("# none\n")
    (tmp_path / "run.sh").write_text(RUN)
    (tmp_path / "tools").mkdir()

    def begin(body: str, *, needs: bool = False, **environ: str) -> subprocess.Popen[str]:
        (scripts / "gpuci/steps/probe.py").write_text(f"def run(step):\n    {body}\n    return 0\n")
        (scripts / "probe.py").write_text(PROGRAM.format(needs=needs))
        files = {name: str(tmp_path / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        base = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "GITHUB_ACTIONS": "true"}
        return subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(tmp_path / "run.sh")],
            env={
                **base,
                "SCRIPTS": str(scripts),
                "PYTHONPATH": "",
                "RUNNER_TEMP": str(tmp_path),
                **files,
                **environ,
            },
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return begin


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    output, _ = process.communicate(timeout=120)
    return process.returncode, output


@pytest.mark.parametrize("needs", [False, True], ids=["standard library", "environment"])
def test_secrets_reach_the_step_and_nobody_else(start: Start, tmp_path: Path, needs: bool) -> None:
    body = (
        "import os; step.output('seen', repr([step.secret(n[6:]) for n in %r])); "
        "step.output('environment', repr([dict(os.environ), dict(step.environ)]))"
    )
    code, output = finish(start(body % (list(SECRETS),), needs=needs, **SECRETS))
    assert code == 0, output
    values = read_values((tmp_path / "GITHUB_OUTPUT").read_text())
    assert values["seen"] == repr(list(SECRETS.values()))
    assert "secret of" not in values["environment"]


def test_what_needs_packages_runs_in_an_environment_that_a_cache_can_keep(
    start: Start, tmp_path: Path
) -> None:
    code, output = finish(start("import sys; step.say(sys.prefix)", needs=True))
    (made,) = (tmp_path / "gpuci").glob("gpuci-*")
    assert (code, output.splitlines()[-1]) == (0, str(made))
    code, output = finish(start("import sys; step.say(sys.prefix)", needs=True))
    assert "setting up" not in output


@pytest.mark.parametrize(
    ("body", "code", "told"),
    [
        (
            "from gpuci.errors import ConfigError; raise ConfigError('a\\n::error::b', then='c')",
            2,
            "a\n|::error::b",
        ),
        ("from gpuci.errors import GpuciError; raise GpuciError('a')", 4, "a"),
        (
            "raise OSError(28, 'No space left on device', '/x\\n::error::b')",
            4,
            "the disk of the runner is full\n",
        ),
        ("raise KeyError('::error::x')", 4, "this is a defect of gpuci; the log has the traceback"),
    ],
    ids=["configuration", "infrastructure", "full disk", "defect"],
)
def test_an_error_is_one_annotation(start: Start, body: str, code: int, told: str) -> None:
    returned, output = finish(start(body))
    log = read_log(output)
    assert returned == code
    (error,) = log.beside("remove-matcher")
    assert (error.name, error.properties["title"]) == ("error", "gpuci probe")
    assert error.data.startswith(told)


def test_an_error_is_an_output_for_the_gate(start: Start, tmp_path: Path) -> None:
    error = "ConfigError('a\\nx=y' + 'b' * 900, then='c\\nd')"
    finish(start(f"from gpuci.errors import ConfigError; raise {error}"))
    values = read_values((tmp_path / "GITHUB_OUTPUT").read_text())
    assert values.keys() == {"problem"}
    problem = read_problem(values["problem"])
    assert (problem.verdict, problem.then) == ("config_error", "c d")
    assert problem.what.startswith("a x=yb")
    assert len(problem.what) == 500


def test_an_error_stands_in_the_summary(start: Start, tmp_path: Path) -> None:
    finish(start("from gpuci.errors import ConfigError; raise ConfigError('</details>```@all')"))
    summary = (tmp_path / "GITHUB_STEP_SUMMARY").read_text()
    assert summary.startswith("### gpuci probe stopped\n\n````text\nerror: </details>```@all\n````\n")


def test_an_error_on_a_full_disk_is_told_without_the_summary(start: Start) -> None:
    body = "step.output('x', 'y')"
    returned, output = finish(start(body, GITHUB_OUTPUT="/dev/full", GITHUB_STEP_SUMMARY="/dev/full"))
    (error,) = read_log(output).beside("remove-matcher")
    assert (returned, error.data.partition("\n")[0]) == (4, "the disk of the runner is full")
    assert "Traceback" not in output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["int", "term"])
def test_a_signal_to_the_pid_of_the_shell_is_a_cancellation(start: Start, number: signal.Signals) -> None:
    process = start("step.say('ready'); import time; time.sleep(600)")
    assert process.stdout is not None
    while "ready" not in (line := process.stdout.readline()):
        assert line, process.wait()
    process.send_signal(number)
    code, output = finish(process)
    assert (code, output) == (EXIT_CODES["cancelled"], "cancelled\n")


def fake_python(directory: Path, name: str, version: tuple[int, int]) -> None:
    """A Python that says it is of that version."""
    lines = [
        f"#!{sys.executable}",
        "import platform, sys",
        f"sys.version_info = {(*version, 0)}",
        "platform.python_version = lambda: '{}.{}.0'".format(*version),
        "exec(sys.argv[3]) if sys.argv[2] == '-c' else print('ran', sys.argv[1:])",
    ]
    (directory / name).write_text("\n".join(lines))
    (directory / name).chmod(0o755)


@pytest.mark.parametrize(
    ("pythons", "code", "told"),
    [
        ({}, 2, "::error title=gpuci::python3 is missing, and gpuci needs Python 3.10 or newer"),
        ({"python3": (3, 8)}, 2, "::error title=gpuci::python3 is Python 3.8.0, and gpuci needs Python 3.10"),
        ({"python3": (3, 10)}, 0, "ran ['-I', 'x.py', 'a b', '']"),
        ({"python3": (3, 6), "python3.12": (3, 12)}, 0, "ran ['-I', 'x.py', 'a b', '']"),
    ],
    ids=["none", "old", "new enough", "another one"],
)
def test_python_is_found_or_one_line_says_what_is_missing(
    tmp_path: Path, pythons: dict[str, tuple[int, int]], code: int, told: str
) -> None:
    for name, version in pythons.items():
        fake_python(tmp_path, name, version)
    done = subprocess.run(
        ["/bin/sh", str(CLONE / "scripts/with_python.sh"), "python3", "-I", "x.py", "a b", ""],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (code, "")
    assert done.stdout.startswith(told)
    assert done.stdout.count("\n") == 1
