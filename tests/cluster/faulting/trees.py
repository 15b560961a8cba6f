"""Small trees of tests that leave a trace outside of gpuci: which test ran, where, how often."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

CONFIG = """\
packages: [.]
profiles:
  node: {gpus: 2}
node: {timeout: 300, fork: never}
"""
# Written with one call to a file opened for appending: lines of several nodes don't mix.
CONFTEST = """\
import os
import time

import pytest


def _write(word, nodeid):
    where = os.environ.get("SLURM_JOB_ID", "-"), os.environ.get("SLURMD_NODENAME", "-")
    line = "%s %s %s %.3f %s\\n" % (word, *where, time.time(), nodeid)
    fd = os.open({witness!r}, os.O_WRONLY | os.O_APPEND)
    os.write(fd, line.encode())
    os.close(fd)


@pytest.fixture(autouse=True)
def witness(request):
    _write("start", request.node.nodeid)
    yield
    _write("end", request.node.nodeid)
"""
HEAD = "import os\nimport time\n\nimport pytest\n\npytestmark = pytest.mark.gpu\n"


@dataclass(frozen=True)
class TreeSpec:
    """What a tree holds: files of tests that sleep, and `extra` files with the names of their tests.

    `ballast` are bytes of a file that nobody reads and that don't compress.
    """

    files: int = 3
    tests: int = 6
    seconds: tuple[float, float] = (0.2, 1.0)
    extra: Mapping[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    ballast: int = 0


def write_tree(directory: Path, spec: TreeSpec, witness: Path, rng: random.Random) -> list[str]:
    """Write a tree as a git repository; return the ids of its tests, all of which pass."""
    texts, planned = {}, []
    for file in range(spec.files):
        path = f"tests/test_{'abcdefghijkl'[file]}.py"
        waits = [rng.uniform(*spec.seconds) for _ in range(spec.tests)]
        texts[path] = HEAD + "".join(_test(number, seconds) for number, seconds in enumerate(waits))
        planned += [f"{path}::test_{number}" for number in range(spec.tests)]
    for path, (text, names) in spec.extra.items():
        texts[path] = HEAD + text
        planned += [f"{path}::{name}" for name in names]
    texts["conftest.py"] = CONFTEST.format(witness=str(witness))
    texts[".github/gpuci.yml"] = CONFIG
    for path, text in texts.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)
    if spec.ballast:
        (directory / "ballast.bin").write_bytes(rng.randbytes(spec.ballast))
    _commit(directory)
    return planned


def _test(number: int, seconds: float) -> str:
    return f"\n\ndef test_{number}():\n    time.sleep({seconds:.3f})\n"


def _commit(directory: Path) -> None:
    who = ["-c", "user.name=faults", "-c", "user.email=faults@example.invalid"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "tests"]):
        subprocess.run(["git", *words], cwd=directory, check=True, capture_output=True)


@dataclass(frozen=True)
class Seen:
    """A line of the witness."""

    word: str
    job: str
    node: str
    time: float
    nodeid: str


def read_witness(path: Path) -> list[Seen]:
    """What ran, in order; a line that is not whole is left out."""
    seen = []
    for line in path.read_text().split("\n")[:-1]:
        word, job, node, time, nodeid = line.split(" ", 4)
        seen.append(Seen(word, job, node, float(time), nodeid))
    return seen
