"""The body of `scripts/test`: environments, checks, pytest, a table, and one closing line.

Standard library only, Python >= 3.10.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

SCRIPTS = Path(__file__).resolve().parent
ROOT = SCRIPTS.parent
sys.path[:0] = [str(SCRIPTS), str(ROOT)]

from tests.cluster.bed import build, packages  # noqa: E402

from gpuci import environment  # noqa: E402
from gpuci.errors import GpuciError  # noqa: E402

# Each truth test runs against these.
PYTESTS = {
    "7.4.4": SCRIPTS / "requirements-pytest-7.4.4.txt",
    "8.4.2": SCRIPTS / "requirements-pytest-8.4.2.txt",
    "9.2.0": SCRIPTS / "gpuci" / "requirements-pytest.txt",
}
TORCH = SCRIPTS / "requirements-torch.txt"
TORCH_PYTHON = (3, 11)
BED_TESTS = ROOT / "tests" / "cluster"
# One more than processors: tests of what hangs wait for most of their time.
WORKERS = str((os.cpu_count() or 1) + 1)
# A finding of actionlint, as a regular expression -> why it is none.
ACTIONLINT_IGNORES = {
    'call "org/gpuci/[^"]*" has no explicit cache access limit': (
        "`cache-mode` of a job is that of all events: with `read` runs on the default branch could not fill "
        "the cache. Under pull_request_target it is `read` by itself, and gpu.yml asks for no more."
    ),
}
# Where the test bed lives: the user `ci` must reach it, and nobody else may make it first.
CLUSTER = Path("/var/lib") / f"gpuci-cluster-{hashlib.sha256(os.fsencode(ROOT)).hexdigest()[:8]}"


@dataclass(frozen=True)
class Outcome:
    """A row of the table. `passed`, `failed` and `skipped` count tests; a check is one test."""

    name: str
    seconds: float
    passed: int = 0
    failed: int = 0
    skipped: int = 0


def main(arguments: list[str]) -> int:
    """Run what the flags ask for; return 1 if anything failed."""
    # Ignored in what a shell starts in the background, and all that we start would inherit it; tests send it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    options, pytest_arguments = parse(arguments)
    try:
        outcomes = everything(options, pytest_arguments)
    except GpuciError as error:
        print(error.page(), file=sys.stderr)
        outcomes = [Outcome("environments", 0.0, failed=1)]
    print(table(outcomes), closing_line(outcomes), sep="\n", flush=True)
    return 1 if any(outcome.failed for outcome in outcomes) else 0


def parse(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Split our flags from those for pytest."""
    parser = argparse.ArgumentParser(
        prog="scripts/test", description=__doc__, epilog="Other arguments go to pytest.", allow_abbrev=False
    )
    parser.add_argument("--quick", action="store_true", help="unit and meta tests, and the quick checks")
    parser.add_argument("--torch", action="store_true", help="also tests with a real torch (CPU)")
    parser.add_argument(
        "--cluster",
        action="store_true",
        help="also a real Slurm, sshd and containers, which it brings up on this machine (root, Debian 12)",
    )
    return parser.parse_known_args(arguments)


def everything(options: argparse.Namespace, pytest_arguments: Sequence[str]) -> list[Outcome]:
    """Make the environments, run the checks side by side, then pytest."""
    started = time.monotonic()
    python = environment.ensure(ROOT, ".venvs/test", SCRIPTS / "requirements-dev.txt")
    checks = quick_checks(python.parent)
    environ = clean_environment(python.parent)
    if not options.quick:
        checks |= thorough_checks(python.parent)
        environ["GPUCI_TEST_PYTHONS"] = ":".join(str(path) for path in pytest_pythons())
    if options.torch:
        environ |= torch_environment()
    outcomes = [Outcome("environments", time.monotonic() - started, passed=1)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes += pool.map(lambda item: run_check(item[0], item[1], environ), checks.items())
    looks = missing_paths(pytest_arguments, directories(options.quick, options.torch, options.cluster))
    with bed(options.cluster) as (rows, more):
        environ |= more
        outcomes += rows
        for name, arguments in pytest_steps([*pytest_arguments, *looks], "GPUCI_CLUSTER" in environ).items():
            outcomes.append(run_pytest(name, python, arguments, environ))
    return outcomes


def directories(quick: bool, torch: bool, cluster: bool) -> list[str]:
    """Where pytest looks by default."""
    if not quick:
        return ["tests"]
    asked_for = {"tests/torch": torch, "tests/cluster": cluster}
    return ["tests/unit", "tests/meta", *(path for path, asked in asked_for.items() if asked)]


@contextmanager
def bed(wanted: bool) -> Iterator[tuple[list[Outcome], dict[str, str]]]:
    """A test bed while pytest runs: rows for the table, and what tests/cluster reads.

    That is the bed's directory, or why there is none (they are skipped with it). A bed that runs already
    and is named in GPUCI_CLUSTER is used and stays.
    """
    if "GPUCI_CLUSTER" in os.environ:
        yield [], {}
        return
    if reason := packages.unfit() if wanted else "needs --cluster":
        if wanted:
            print(f"tests/cluster will be skipped: {reason}", file=sys.stderr)
        yield [], {"GPUCI_NO_CLUSTER": reason}
        return
    started = time.monotonic()
    try:
        build.up(CLUSTER, {})
    except GpuciError as error:
        print(error.page(), file=sys.stderr)
        yield [Outcome("cluster", time.monotonic() - started, failed=1)], {"GPUCI_NO_CLUSTER": error.what}
    else:
        yield [Outcome("cluster", time.monotonic() - started, passed=1)], {"GPUCI_CLUSTER": str(CLUSTER)}
    finally:
        build.down(CLUSTER)


def clean_environment(tools: Path) -> dict[str, str]:
    """The environment of checks and tests: our tools first, no settings of a user's Python or pytest."""
    foreign = ("PYTHONPATH", "PYTHONHOME", "PYTEST_ADDOPTS", "PYTEST_PLUGINS", "VIRTUAL_ENV")
    environ = {name: value for name, value in os.environ.items() if name not in foreign}
    return {**environ, "PATH": f"{tools}:{os.environ.get('PATH', os.defpath)}"}


def pytest_pythons() -> list[Path]:
    """One Python for each pytest that the truth tests compare with; one that can't be made is named."""
    pythons = []
    for version, requirements in PYTESTS.items():
        try:
            pythons.append(environment.ensure(ROOT, f".venvs/pytest-{version}", requirements))
        except GpuciError as error:
            print(f"no pytest {version}, its tests will be skipped:\n{error.page()}", file=sys.stderr)
    return pythons


def torch_environment() -> dict[str, str]:
    """What tests/torch reads: the Python that has torch, or why there is none (they are skipped with it)."""
    base = find_python(TORCH_PYTHON)
    if base is None:
        reason = "no Python {}.{} on PATH, which torch is tested with".format(*TORCH_PYTHON)
        print(f"tests/torch will be skipped: {reason}", file=sys.stderr)
        return {"GPUCI_NO_TORCH": reason}
    try:
        python = environment.ensure(ROOT, ".venvs/torch", TORCH, python=base, hashes=False)
    except GpuciError as error:
        print(f"tests/torch will be skipped:\n{error.page()}", file=sys.stderr)
        return {"GPUCI_NO_TORCH": error.what}
    return {"GPUCI_TORCH_PYTHON": str(python)}


def find_python(version: tuple[int, int]) -> str | None:
    """The executable of a Python (major, minor) that can make environments: this one, or one on PATH."""
    if sys.version_info[:2] == version:
        return sys.executable
    name = "python{}.{}".format(*version)
    code = f"import ensurepip, sys; assert sys.version_info[:2] == {version}; print(sys.executable)"
    try:
        # It may be a program that looks for one and finds none (pyenv's).
        done = subprocess.run([name, "-I", "-c", code], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def quick_checks(tools: Path) -> dict[str, list[str]]:
    """Name -> command of the checks that take seconds."""
    return {
        "ruff check": [f"{tools}/ruff", "check"],
        "ruff format": [f"{tools}/ruff", "format", "--check"],
        "mypy": [f"{tools}/mypy"],
        "shellcheck": [f"{tools}/shellcheck", "--external-sources", *shell_files()],
    }


def thorough_checks(tools: Path) -> dict[str, list[str]]:
    """Name -> command of the others: the node's Python, workflows, actions and schemas."""
    workflows = sorted(map(str, ROOT.glob(".github/workflows/*.yml")))
    callers = (*ROOT.glob("examples/workflows/*.yml"), *ROOT.glob("tests/e2e/consumer/*.yml"))
    examples = sorted(map(str, callers))
    actions = sorted(map(str, [*ROOT.glob("action.yml"), *ROOT.glob("actions/*/action.yml")]))
    schemas = sorted(map(str, ROOT.glob("schemas/*.json")))
    by_schema = [f"{tools}/check-jsonschema", "--builtin-schema"]
    zizmor = [f"{tools}/zizmor", "--offline", "--no-progress"]
    ignored = [option for finding in ACTIONLINT_IGNORES for option in ("-ignore", finding)]
    actionlint = [f"{tools}/actionlint", f"-shellcheck={tools}/shellcheck", "-pyflakes=", *ignored]
    mypy = environment.ensure(ROOT, ".venvs/mypy-py38", SCRIPTS / "requirements-mypy-py38.txt")
    checks = {
        "mypy, Python 3.8": [str(mypy), "-m", "mypy", "--python-version=3.8", str(SCRIPTS / "gpuci_node")],
        "zizmor": [*zizmor, "--pedantic", str(ROOT / ".github"), *actions],
        # Short, as a person would begin; what pedantry asks for beyond that is theirs.
        "zizmor, examples": [*zizmor, *examples],
        "actionlint": [*actionlint, *workflows, *examples],
        "workflow schema": [*by_schema, "vendor.github-workflows", *workflows, *examples],
        "dependabot schema": [*by_schema, "vendor.dependabot", str(ROOT / ".github" / "dependabot.yml")],
        "action schema": [*by_schema, "vendor.github-actions", *actions],
        "metaschema": [f"{tools}/check-jsonschema", "--check-metaschema", *schemas],
    }
    files = {"action schema": actions, "metaschema": schemas}
    return {name: command for name, command in checks.items() if files.get(name, True)}


def shell_files() -> list[str]:
    """The files of the repository that a shell runs, by their first line."""
    places: list[Iterable[Path]] = [
        ROOT.iterdir(),
        *(ROOT.glob(f"{d}/**/*") for d in (".ci", "scripts", "bench", "tests/cluster", "tests/e2e")),
    ]
    files = (path for place in places for path in place if path.is_file())
    return sorted(str(path) for path in files if is_shell(path))


def is_shell(path: Path) -> bool:
    """Whether a file starts like a shell script, or says of itself that it is a part of one."""
    with path.open("rb") as stream:
        first = stream.readline(80).split()
    return first[:1] == [b"#!/bin/sh"] or first[:2] in (
        [b"#!/usr/bin/env", b"bash"],
        [b"#", b"shellcheck"],
    )


def run_check(name: str, command: list[str], environ: Mapping[str, str]) -> Outcome:
    """Run one check; its output is shown only when it fails."""
    started = time.monotonic()
    done = subprocess.run(
        command, cwd=ROOT, env=environ, stdin=subprocess.DEVNULL, stdout=-1, stderr=-2, text=True, check=False
    )
    if done.returncode:
        print(f"\n== {name}: {' '.join(command)}\n{done.stdout}", flush=True)
    failed = int(done.returncode != 0)
    return Outcome(name, time.monotonic() - started, passed=1 - failed, failed=failed)


def pytest_steps(arguments: Sequence[str], has_bed: bool) -> dict[str, list[str]]:
    """Name -> pytest's arguments. What uses the bed runs by itself, in one process: its tests stop daemons.

    (A group of pytest-xdist would do; 3.8 does not see the group under pytest 9.2.)
    """
    names = {a: (ROOT / a.partition("::")[0]).resolve() for a in arguments}
    inside = [a for a, path in names.items() if path == BED_TESTS or BED_TESTS in path.parents]
    around = [a for a, path in names.items() if path in BED_TESTS.parents]
    parallel = ["-n", WORKERS]
    if not has_bed or (not inside and not around):
        return {"pytest": [*parallel, *arguments]}
    options = [a for a, path in names.items() if not path.exists()]
    others = [a for a in arguments if a not in inside]
    steps = {"pytest": [*parallel, f"--ignore={BED_TESTS}", *others]} if len(others) > len(options) else {}
    return {**steps, "pytest, cluster": [*options, *(inside or [str(BED_TESTS)])]}


def run_pytest(name: str, python: Path, arguments: Sequence[str], environ: Mapping[str, str]) -> Outcome:
    """Run the tests that `arguments` name."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        junit = Path(directory) / "junit.xml"
        shown = ["-q", "-rs", "--durations=10", "--durations-min=5"]  # what CI's time goes to
        command = [str(python), "-m", "pytest", *shown, f"--junitxml={junit}", *arguments]
        done = subprocess.run(command, cwd=ROOT, env=environ, check=False)
        xml = junit.read_text(encoding="utf-8") if junit.exists() else "<testsuites/>"
    passed, failed, skipped = count(xml)
    # An internal error or an empty run fails no test, and is a failure all the same.
    failed = max(failed, int(done.returncode != 0))
    return Outcome(name, time.monotonic() - started, passed, failed, skipped)


def missing_paths(arguments: Sequence[str], directories: Sequence[str]) -> Sequence[str]:
    """The default directories, unless the arguments name a path (from the clone's top, where pytest runs)."""
    return [] if any((ROOT / a.partition("::")[0]).exists() for a in arguments) else directories


def count(junit: str) -> tuple[int, int, int]:
    """Count passed, failed and skipped tests in pytest's JUnit XML; an expected failure has passed."""
    passed = failed = skipped = 0
    for case in ElementTree.fromstring(junit).iter("testcase"):
        kinds = {child.tag: child.get("type") for child in case}
        if kinds.keys() & {"failure", "error"}:
            failed += 1
        elif kinds.get("skipped") == "pytest.skip":
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def table(outcomes: Sequence[Outcome]) -> str:
    """The steps with their seconds, in columns."""
    rows = [f"{o.name:20} {_counts(o):40} {o.seconds:8.1f} s" for o in outcomes]
    return "\n".join(["", *rows, ""])


def closing_line(outcomes: Sequence[Outcome]) -> str:
    """`N passed, N failed`, and `, N skipped` if any was."""
    return _counts(
        Outcome(
            "all",
            0.0,
            sum(o.passed for o in outcomes),
            sum(o.failed for o in outcomes),
            sum(o.skipped for o in outcomes),
        )
    )


def _counts(outcome: Outcome) -> str:
    skipped = f", {outcome.skipped} skipped" if outcome.skipped else ""
    return f"{outcome.passed} passed, {outcome.failed} failed{skipped}"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
