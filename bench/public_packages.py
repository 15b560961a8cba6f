"""The suites of three public packages: does gpuci say of each test what plain `pytest` says?

    python3 bench/public_packages.py [--torch] [--work DIR]

Downloads the source distributions of more-itertools, packaging and einops (pinned by hash) and installs
them into an environment with pytest. Runs each suite with plain `pytest` and with `./gpuci run` in 3
shards, then all three side by side as a monorepo in 3 shards. Prints a line per suite and each outcome
that differs, with what plain `pytest` says when it runs that file alone. Exit code 1 if any differs.
Seconds are the wall time of the whole command, measured in this run, one run each.

With --torch einops' tests run on numpy and torch (a large download where pip finds no CPU build), else on
numpy only. With it, one of them calls `numpy.in1d`, which numpy 2.4 no longer has: red in every run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

CLONE = Path(__file__).resolve().parents[1]
RECORDER = CLONE / "tests" / "truth" / "plain_pytest.py"
SHARDS = 3
LISTED = 20  # differences that are listed per suite
ABSENT = "absent"
PACKAGES = {
    "more-itertools": ("10.8.0", "f638ddf8a1a0d134181275fb5d58b086ead7c6a72429ad725c67503f13ba30bd"),
    "packaging": ("25.0", "d443872c98d677bf60f6a1f2f8c1cb748e8fe762d2bf9d3148b5599295b0fc4f"),
    "einops": ("0.8.1", "de5d960a7a761225532e0f1959e5315ebeafc0cd43394732f103ca44b9837e84"),
}
DIRECTORIES = {name: f"packages/{name}" for name in PACKAGES}  # in the monorepo
TOOLS = (
    "pytest==9.1.0",
    "pretend==1.0.9",  # for packaging's tests
    'numpy==2.4.6; python_version >= "3.11"',
    'numpy==2.2.6; python_version < "3.11"',
)
TORCH = "torch==2.13.0"


@dataclass(frozen=True, eq=False)
class Bench:
    """The three packages alone (`trees/NAME`) and side by side, where results go, what runs the tests."""

    trees: Path
    monorepo: Path
    results: Path
    python: Path
    environ: Mapping[str, str]


@dataclass(frozen=True)
class Run:
    """What a command said of each node id, its exit code (0 and 1 mean the same to both) and wall time."""

    outcomes: Mapping[str, str]
    code: int
    seconds: float
    warnings: tuple[str, ...] = ()


def main() -> int:
    """Run every suite in every way; 1 if anything differs."""
    arguments = parse_arguments()
    with work_directory(arguments.work) as work:
        bench = prepare(work, arguments.torch)
        print(f"{'':16}{'tests':>7}{'equal':>7}{'differ':>7}{'pytest':>10}{'gpuci':>10}  outcomes of pytest")
        plain = {name: run_plain(bench, name) for name in PACKAGES}
        same = [show(bench, name, plain[name], run_gpuci(bench, name, ".")) for name in PACKAGES]
        side_by_side = run_gpuci(bench, "side by side", "packages/*")
        same.append(show(bench, "side by side", merge(plain), side_by_side))
    return 0 if all(same) else 1


def parse_arguments() -> argparse.Namespace:
    """The command line; refuses a --work below the clone."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--torch", action="store_true", help=f"also run einops on {TORCH}")
    parser.add_argument("--work", type=Path, metavar="DIR", help="keep everything here (default: temporary)")
    arguments = parser.parse_args()
    if arguments.work and arguments.work.resolve().is_relative_to(CLONE):
        parser.error("--work must be outside of the clone: pytest would read its pyproject.toml")
    return arguments


@contextmanager
def work_directory(asked: Path | None) -> Iterator[Path]:
    """The directory of --work, or one that is removed at the end."""
    if asked is not None:
        asked.mkdir(parents=True, exist_ok=True)
        yield asked.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="public-packages-") as directory:
        yield Path(directory).resolve()


# -- preparing -------------------------------------------------------------------------------------


def prepare(work: Path, with_torch: bool) -> Bench:
    """Download, install and unpack; nothing of this is timed."""
    environment = work / "environment"
    say("setting up: environment, source distributions")
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    archives = download(python, work / "downloads")
    pip(python, "install", *TOOLS, *([TORCH] if with_torch else []))
    pip(python, "install", "--no-deps", *map(str, archives.values()))
    # Makes gpuci's own environment on first use.
    subprocess.run([CLONE / "gpuci", "--version"], stdout=subprocess.DEVNULL, check=True)
    here = Path(tempfile.mkdtemp(prefix="run-", dir=work))
    unpack(archives, here)
    backends = "numpy,torch" if with_torch else "numpy"
    say(f"einops is tested on {backends}" + ("" if with_torch else " (--torch adds torch)"))
    (here / "results").mkdir()
    environ = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    environ |= {"VIRTUAL_ENV": str(environment), "EINOPS_TEST_BACKENDS": backends}
    return Bench(here / "alone", here / "side-by-side", here / "results", python, environ)


def download(python: Path, directory: Path) -> dict[str, Path]:
    """The source distribution of each package; pip refuses one with another hash."""
    directory.mkdir(exist_ok=True)
    lines = [f"{name}=={version} --hash=sha256:{hash_}\n" for name, (version, hash_) in PACKAGES.items()]
    requirements = directory / "requirements.txt"
    requirements.write_text("".join(lines))
    # Not `:all:`, which would also build the packages' build tools from source.
    sources = ("--no-deps", "--no-binary", ",".join(PACKAGES), "--require-hashes", "-r", str(requirements))
    pip(python, "download", *sources, "-d", str(directory))
    return {
        name: directory / f"{name.replace('-', '_')}-{version}.tar.gz"
        for name, (version, _) in PACKAGES.items()
    }


def unpack(archives: Mapping[str, Path], here: Path) -> None:
    """Lay the trees: each alone, and all below one directory."""
    for name, archive in archives.items():
        shutil.unpack_archive(archive, here / "unpacked")
        tree = here / "unpacked" / archive.name.removesuffix(".tar.gz")
        shutil.copytree(tree, here / "alone" / name)
        shutil.copytree(tree, here / "side-by-side" / DIRECTORIES[name])


def pip(python: Path, command: str, *arguments: str) -> None:
    """Run pip; its output is shown when it fails."""
    subprocess.run([python, "-m", "pip", "-q", "--no-input", command, *arguments], check=True)


# -- running ---------------------------------------------------------------------------------------


def run_plain(bench: Bench, name: str, *files: str) -> Run:
    """Plain `pytest` in the package's tree, or on some of its files."""
    say(f"pytest {' '.join([name, *files])}")
    out = bench.results / "plain.json"
    out.unlink(missing_ok=True)
    tree = bench.trees / name
    done, seconds = timed([bench.python, RECORDER, out, *files], bench, tree)
    if not out.is_file():
        raise SystemExit(f"pytest left no results (exit code {done.returncode})\n{done.stdout}{done.stderr}")
    return Run(json.loads(out.read_text()), done.returncode, seconds)


def run_gpuci(bench: Bench, title: str, packages: str) -> Run:
    """`gpuci run` on a package's tree or, with more than one package, on the monorepo."""
    say(f"gpuci run: {title}")
    tree = bench.trees / title if title in PACKAGES else bench.monorepo
    choice = [
        "--packages",
        packages,
        "--shards",
        str(SHARDS),
        "--out",
        bench.results / title.replace(" ", "-"),
    ]
    done, seconds = timed([CLONE / "gpuci", "run", tree, *choice, "--json"], bench, bench.results)
    if not done.stdout:
        raise SystemExit(f"gpuci made no report (exit code {done.returncode})\n{done.stderr}")
    report: dict[str, Any] = json.loads(done.stdout)
    shards = sum(shard["index"] > 0 and shard["tests"] > 0 for shard in report["shards"])
    if shards != SHARDS:
        raise SystemExit(f"{title}: tests ran in {shards} shards, not in {SHARDS}")
    outcomes = {test["nodeid"]: test["outcome"] for test in report["tests"]}
    return Run(outcomes, done.returncode, seconds, tuple(report["warnings"]))


def timed(
    command: list[Any], bench: Bench, directory: Path
) -> tuple[subprocess.CompletedProcess[str], float]:
    """Run a command in a directory; its result and wall seconds."""
    started = time.monotonic()
    done = subprocess.run(
        command, cwd=directory, env=bench.environ, capture_output=True, text=True, errors="replace"
    )
    return done, time.monotonic() - started


# -- comparing -------------------------------------------------------------------------------------


def merge(plain: Mapping[str, Run]) -> Run:
    """What plain `pytest` would say of the monorepo if it could run it: the sum of its runs."""
    outcomes = {
        f"{DIRECTORIES[name]}/{nodeid}": outcome
        for name, run in plain.items()
        for nodeid, outcome in run.outcomes.items()
    }
    return Run(outcomes, max(run.code for run in plain.values()), sum(run.seconds for run in plain.values()))


def differences(plain: Run, gpuci: Run) -> list[tuple[str, str, str]]:
    """(node id, pytest's outcome, gpuci's outcome) of all tests that differ, those of one side included."""
    return [
        (nodeid, plain.outcomes.get(nodeid, ABSENT), gpuci.outcomes.get(nodeid, ABSENT))
        for nodeid in dict.fromkeys([*plain.outcomes, *gpuci.outcomes])
        if plain.outcomes.get(nodeid) != gpuci.outcomes.get(nodeid)
    ]


def show(bench: Bench, title: str, plain: Run, gpuci: Run) -> bool:
    """Print a suite's line and its differences; whether there are none and the exit codes agree."""
    differing = differences(plain, gpuci)
    equal = sum(gpuci.outcomes.get(nodeid) == outcome for nodeid, outcome in plain.outcomes.items())
    counts = ", ".join(f"{count} {name}" for name, count in Counter(plain.outcomes.values()).most_common())
    print(
        f"{title:16}{len(plain.outcomes):7}{equal:7}{len(differing):7}"
        f"{plain.seconds:8.1f} s{gpuci.seconds:8.1f} s  {counts}",
        flush=True,
    )
    for nodeid, expected, got in differing[:LISTED]:
        alone = file_alone(bench, title, nodeid)
        print(f"    {nodeid!a}: pytest {expected}, its file alone {alone}, gpuci {got}", flush=True)
    if len(differing) > LISTED:
        print(f"    and {len(differing) - LISTED} more")
    for warning in gpuci.warnings:
        print(f"    gpuci warns: {warning!a}")
    if plain.code != gpuci.code:
        print(f"    exit codes differ: pytest {plain.code}, gpuci {gpuci.code}")
    return not differing and plain.code == gpuci.code


def file_alone(bench: Bench, title: str, nodeid: str) -> str:
    """What plain `pytest` says of a test when it runs the test's file only.

    If that is gpuci's outcome, the test depends on tests of other files.
    """
    name, inner = (title, nodeid) if title in PACKAGES else of_package(nodeid)
    return outcomes_of_file(bench, name, inner.partition("::")[0]).get(inner, ABSENT)


def of_package(nodeid: str) -> tuple[str, str]:
    """A node id of the monorepo -> package and node id there."""
    _packages, name, inner = nodeid.split("/", 2)
    return name, inner


@cache
def outcomes_of_file(bench: Bench, name: str, file: str) -> Mapping[str, str]:
    """Plain `pytest` on one file of a package."""
    return run_plain(bench, name, file).outcomes


def say(text: str) -> None:
    """A line of progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
