"""How long a manifest takes: `python bench/manifest.py [--files N] [--jobs N] [--rounds N]`.

Generates test files in a temporary directory, then measures in one run: one process that reads and
`ast.parse`s each of them, and the manifest of the same files, without and with a cache. The target for the
ratio is 1.3. Rounds alternate, the best of each counts: other load on the machine only adds time.
"""

from __future__ import annotations

import argparse
import ast
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "scripts"))

from gpuci.config.model import DEFAULT_MARKERS, Config  # noqa: E402
from gpuci.discovery.discover import discover  # noqa: E402
from gpuci.source.read import cores  # noqa: E402

TARGET = 1.3
FILE = '''"""Numerics of block {n}."""

import math
import os

import pytest
import torch

from helpers.marks import multi_gpu, needs
from package.block_{n} import Block{n}, make_config

pytestmark = [pytest.mark.gpu, needs("block")]
DEVICES = ["cuda:0", pytest.param("cuda:1", marks=pytest.mark.require_cuda_8gpu)]


@pytest.fixture(scope="module")
def config():
    return make_config(hidden=64 * {n}, layers=[1, 2, 3], seed=os.environ.get("SEED", "0"))


def reference(x, scale=1.0):
    total = 0.0
    for index, value in enumerate(x):
        total += math.sqrt(abs(value)) * scale if index % 2 else value * scale
    return total


@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("device", DEVICES)
def test_forward_{n}(config, size, device):
    block = Block{n}(config).to(device)
    x = torch.ones(size, 64, device=device)
    y = block(x)
    assert y.shape == (size, 64)
    assert torch.allclose(y.sum(), torch.tensor(reference([1.0] * size)), atol=1e-3)


@multi_gpu(2)
def test_two_devices_{n}(config):
    blocks = [Block{n}(config).to(f"cuda:{{i}}") for i in range(2)]
    results = {{i: block(torch.ones(1, 64, device=f"cuda:{{i}}")) for i, block in enumerate(blocks)}}
    assert len(results) == 2 and all(r.isfinite().all() for r in results.values())


class TestBlock{n}:
    @pytest.mark.timeout(60)
    def test_gradient(self, config):
        block = Block{n}(config).cuda()
        loss = block(torch.ones(4, 64).cuda()).pow(2).mean()
        loss.backward()
        for name, parameter in block.named_parameters():
            assert parameter.grad is not None, name

    @pytest.mark.skipif(torch.cuda.device_count() < 4, reason="four devices")
    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_low_precision(self, config, dtype):
        block = Block{n}(config).cuda().to(dtype)
        assert block(torch.ones(4, 64, dtype=dtype).cuda()).dtype is dtype
'''
MARKS = """import pytest


def needs(name):
    return pytest.mark.needs(name)


def multi_gpu(count):
    def apply(function):
        function = pytest.mark.gpus(count)(function)
        return pytest.mark.distributed(function)
    return apply
"""


def generate(root: Path, files: int) -> list[Path]:
    """Write the test files, 100 in a directory, and the helpers that they import."""
    (root / "helpers").mkdir()
    (root / "helpers" / "__init__.py").touch()
    (root / "helpers" / "marks.py").write_text(MARKS)
    (root / "pytest.ini").write_text("[pytest]\n")
    paths = [root / "tests" / f"group_{n // 100:03}" / f"test_block_{n}.py" for n in range(files)]
    for n, path in enumerate(paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FILE.format(n=n))
    return paths


def read_and_parse(paths: list[Path]) -> float:
    """Seconds in which one process reads and parses all files."""
    started = time.perf_counter()
    for path in paths:
        ast.parse(path.read_bytes())
    return time.perf_counter() - started


def manifest(root: Path, jobs: int | None, cache: Path | None) -> tuple[float, int]:
    """Seconds and number of targets of one manifest."""
    started = time.perf_counter()
    found = discover(root, Config(markers=DEFAULT_MARKERS), jobs=jobs, cache_dir=cache)
    return time.perf_counter() - started, len(found.targets)


def cpu_seconds() -> float:
    """CPU time of this process and of the workers that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def in_fresh_process(*arguments: str) -> str:
    """The output of this script for one measurement: nothing is warm but the disk."""
    command = [sys.executable, __file__, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def measure(root: Path, options: argparse.Namespace) -> None:
    """Print the measurements of one run: wall seconds (and CPU seconds) of the best round."""
    place = ["--root", str(root)]
    jobs = ["--jobs", str(options.jobs)] if options.jobs else []
    cached = ["--cache", str(root.parent / "cache")]
    in_fresh_process("--measure", "manifest", *place, *jobs, *cached)
    rounds = [
        [
            in_fresh_process("--measure", "parse", *place).split(),
            in_fresh_process("--measure", "manifest", *place, *jobs).split(),
            in_fresh_process("--measure", "manifest", *place, *jobs, *cached).split(),
        ]
        for _ in range(options.rounds)
    ]
    names = (
        "read and ast.parse, one process",
        f"manifest, {options.jobs or cores()} worker processes",
        "manifest, from the cache",
    )
    print(f"{options.files} files, {rounds[0][1][2]} targets, {cores()} cores, best of {options.rounds}")
    best = [min((float(wall), float(cpu)) for wall, cpu, _ in column) for column in zip(*rounds, strict=True)]
    for name, (wall, cpu) in zip(names, best, strict=True):
        print(f"{name + ':':34}{wall:7.2f} s  (CPU {cpu:.2f} s)")
    ratio = best[1][0] / best[0][0]
    print(f"ratio: {ratio:.2f} ({'within' if ratio <= TARGET else 'ABOVE'} {TARGET})")


def main() -> int:
    """Measure, or take one measurement for the measuring process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", choices=["parse", "manifest"], help=argparse.SUPPRESS)
    parser.add_argument("--root", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--cache", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure == "parse":
        paths = sorted(options.root.glob("tests/*/*.py"))
        print(read_and_parse(paths), cpu_seconds(), len(paths))
    elif options.measure == "manifest":
        seconds, targets = manifest(options.root, options.jobs, options.cache)
        print(seconds, cpu_seconds(), targets)
    else:
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory) / "tree"
            root.mkdir()
            generate(root, options.files)
            measure(root, options)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
