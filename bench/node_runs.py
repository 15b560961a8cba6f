"""What the benches of the node share: trees of test files, a run of one on this machine, a table.

Not a program. `gpuci` is the node alone here (keeper, starter, test processes), without planning.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CLONE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CLONE / "scripts"))

from gpuci.config.model import Config, Node  # noqa: E402
from gpuci.execution import jobs  # noqa: E402
from gpuci.execution.local.devices import Devices  # noqa: E402
from gpuci.execution.local.run import LocalRun, Options  # noqa: E402
from gpuci.model import Plan, Root, Shard, Unit  # noqa: E402

# Writes "monotonic seconds, worker, pid, node id" before each test, under whatever runs it. That clock is one
# for all processes of a machine (Linux, clock_gettime(2)), and nobody sets it.
CONFTEST = """\
import os, pathlib, time
LOG = str(pathlib.Path(__file__).with_name("begun.log"))
def pytest_runtest_setup(item):
    worker = os.environ.get("PYTEST_XDIST_WORKER", "-")
    fd = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(fd, ("%.6f %s %d %s\\n" % (time.monotonic(), worker, os.getpid(), item.nodeid)).encode())
    os.close(fd)
"""
LIMIT_SECONDS = 300.0


@dataclass(frozen=True)
class File:
    """A test file of a tree, and how the node is to run it; `root` is a directory of the tree."""

    path: str
    text: str
    mode: str = "normal"
    gpus: int = 1
    seconds: float = 1.0
    root: str = "."


@dataclass(frozen=True)
class Ran:
    """Wall seconds of a run; outcomes of each test (more than one would be a fault); seconds from the
    start until the last of the slots that ran a test began its first; how many slots that were."""

    seconds: float
    outcomes: dict[str, list[str]]
    start_up: float
    slots: int
    hung: bool = False

    def count(self, outcome: str) -> int:
        """How many tests ended so."""
        return sum(seen == [outcome] for seen in self.outcomes.values())


class _Nobody:
    def feed(self, shard: int, record: dict[str, Any]) -> None:
        """Nothing to show."""

    def tick(self, now: float) -> None:
        """Nothing to redraw."""


@contextmanager
def tree(files: Sequence[File], more: dict[str, str]) -> Iterator[Path]:
    """A directory with these files, in which each root has a pytest.ini; removed at the end."""
    with tempfile.TemporaryDirectory(prefix="node-bench-") as directory:
        root = Path(directory).resolve() / "tree"
        texts = {f"{place}/pytest.ini": "[pytest]\n" for place in {file.root for file in files}}
        texts |= {"conftest.py": CONFTEST, **more, **{file.path: file.text for file in files}}
        for path, text in texts.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        yield root


def on_node(root: Path, files: Sequence[File], python: str, *, gpus: int, preload: Sequence[str] = ()) -> Ran:
    """Run the files on one node with this many pretended GPUs; `lib/` of the tree is on the path."""
    (root / "begun.log").unlink(missing_ok=True)
    config = Config(node=Node(preload=tuple(preload)), container={"pythonpath": ["lib"]})
    devices = Devices((tuple(map(str, range(gpus))),), pretended=True)
    with tempfile.TemporaryDirectory(prefix="node-bench-") as directory:
        out = Path(directory) / "out"
        out.mkdir()
        options = Options(root, out, "bench", python, devices, 2, Path(directory) / "scratch")
        started = time.monotonic()
        (run,) = LocalRun(_plan(files), config, options, _Nobody()).run()
        seconds = time.monotonic() - started
    if run.problem:
        raise SystemExit(f"the run broke: {run.problem}")
    outcomes: dict[str, list[str]] = defaultdict(list)
    for record in run.records:
        if record["kind"] == "end":
            outcomes[record["nodeid"]].append(record["outcome"])
    return Ran(seconds, dict(outcomes), *_start_up(root, started))


def job_document(files: Sequence[File], *, gpus: int) -> dict[str, Any]:
    """What a node with so many GPUs is told of these files."""
    return jobs.job_document(
        _plan(files),
        Config(node=Node()),
        1,
        run="bench",
        token="",
        node=jobs.NodeFacts("node", tuple(map(str, range(gpus)))),
        paths=jobs.Paths("/tree", "/out", "/scratch"),
        python=["python"],
    )


def _plan(files: Sequence[File]) -> Plan:
    units = [
        Unit(f"u{i}", f.root, f.path, "all", f.mode, f.gpus, "default", f.seconds, LIMIT_SECONDS)
        for i, f in enumerate(files)
    ]
    roots = sorted({file.root for file in files})
    configs = {root: "pytest.ini" if root == "." else f"{root}/pytest.ini" for root in roots}
    return Plan(
        config={},
        sha=None,
        event="manual",
        roots=tuple(Root(root, config_file=configs[root], gpu_isolation="mask") for root in roots),
        targets=(),
        units=tuple(units),
        shards=(Shard(1, "default", tuple(unit.id for unit in units), 1.0),),
        cpu_units=(),
        skipped=(),
        makespan_seconds=1.0,
        lower_bound_seconds=1.0,
        unknown_durations=0,
    )


def with_pytest(
    root: Path, python: str, arguments: Sequence[str], limit: float = LIMIT_SECONDS
) -> tuple[Ran, str]:
    """Run plain pytest in the tree; returns no outcomes of its own, but what it printed.

    What does not end within `limit` seconds is killed with all that it started, and `hung` is set.
    """
    (root / "begun.log").unlink(missing_ok=True)
    environ = {**os.environ, "PYTHONPATH": str(root / "lib"), "PYTHONHASHSEED": "0"}
    started = time.monotonic()
    with tempfile.TemporaryFile("w+") as printed:
        process = subprocess.Popen(
            [python, "-m", "pytest", *arguments],
            cwd=root,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        hung = _ends(process, limit)
        seconds = time.monotonic() - started
        printed.seek(0)
        return Ran(seconds, {}, *_start_up(root, started), hung), printed.read()


def _ends(process: subprocess.Popen[bytes], limit: float) -> bool:
    """Wait for a process; whether it had to be killed. Nothing of it stays when we are interrupted."""
    try:
        process.wait(timeout=limit)
    except subprocess.TimeoutExpired:
        return True
    finally:
        # By the session that it leads: xdist's workers are in it.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return False


def _start_up(root: Path, started: float) -> tuple[float, int]:
    first: dict[str, float] = {}
    log = root / "begun.log"
    for line in log.read_text().splitlines() if log.exists() else ():
        seconds, worker, _pid, _nodeid = line.split(" ", 3)
        first.setdefault(worker, float(seconds) - started)
    return max(first.values(), default=0.0), len(first)


def parser(description: str | None, *, needs_torch: bool) -> argparse.ArgumentParser:
    """The command line that the benches have in common."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--rounds", type=int, default=3, help="how often each is measured (default: 3)")
    if needs_torch:
        made.add_argument("--python", default=_torch_python(), help="a Python with torch, pytest and xdist")
    return made


def _torch_python() -> str | None:
    made = CLONE / ".venvs" / "torch" / "bin" / "python"
    return os.environ.get("GPUCI_TORCH_PYTHON") or (str(made) if made.exists() else None)


def check_torch(python: str | None) -> str:
    """The Python if it imports torch; else ends the program with a reason."""
    if python is None:
        raise SystemExit("no Python with torch: `scripts/test --torch` makes one, or name one with --python")
    done = subprocess.run([python, "-c", "import torch, pytest, xdist"], capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"{python} does not import torch, pytest and xdist")
    found = shutil.which(python)
    return os.path.abspath(found or python)  # runs start elsewhere


def spread(values: Sequence[float], unit: str = "s") -> str:
    """Median and range in words."""
    if len(values) == 1:
        return f"{values[0]:.2f} {unit}"
    return f"{statistics.median(values):.2f} {unit} ({min(values):.2f} to {max(values):.2f})"


def versions(python: str) -> str:
    """What the tests run with."""
    code = (
        "import sys, torch, pytest, xdist; print('Python %d.%d,' % sys.version_info[:2], 'torch', "
        "torch.__version__ + ', pytest', pytest.__version__ + ', xdist', xdist.__version__)"
    )
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
