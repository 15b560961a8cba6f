"""Whatever an isolated file does to torch or its process, the next one finds what a fresh process finds."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

# `state` is what a file may soil; `check` holds it to what a fresh Python said (fresh.json).
CLEAN = """\
import json, os, pathlib, signal, sys
import torch

HERE = pathlib.Path(__file__).parent


def state():
    return {
        "dtype": str(torch.get_default_dtype()),
        "device": str(torch.get_default_device()),
        "threads": torch.get_num_threads(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "grad": torch.is_grad_enabled(),
        "precision": torch.get_float32_matmul_precision(),
        "seed": torch.initial_seed() == 1234,  # a fresh process has one by chance
        "handlers": [str(signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGUSR1)],
        "variable": os.environ.get("SOILED"),
        "path": "/soiled" in sys.path,
        "module": "soiled" in sys.modules,
        "directory": pathlib.Path.cwd() == HERE,
        "mask": oct(os.umask(0o22)),
        "recursion": sys.getrecursionlimit() > 100_000,
    }


def check():
    fresh = json.loads((HERE / "fresh.json").read_text())
    assert [(name, value) for name, value in state().items() if value != fresh[name]] == []
"""
FILE = """\
import ctypes, os, pathlib, signal, sys, threading, types
import torch
from clean import check

def test_1_is_fresh():
    check()

def test_2_soils():
    {statement}

def test_3_is_there():
    pass
"""
SOILS = {
    "dtype": "torch.set_default_dtype(torch.float64)",
    "device": "torch.set_default_device('meta')",
    "threads": "torch.set_num_threads(torch.get_num_threads() + 3)",
    "deterministic": "torch.use_deterministic_algorithms(True)",
    "grad": "torch.set_grad_enabled(False)",
    "precision": "torch.set_float32_matmul_precision('medium')",
    "seed": "torch.manual_seed(1234)",
    "variable": "os.environ['SOILED'] = '1'",
    "path": "sys.path.insert(0, '/soiled')",
    "module": "sys.modules['soiled'] = types.ModuleType('soiled')",
    "directory": "os.chdir('/')",
    "handlers": "[signal.signal(n, signal.SIG_IGN) for n in (signal.SIGTERM, signal.SIGUSR1)]",
    "mask": "os.umask(0o77)",
    "recursion": "sys.setrecursionlimit(200_000)",
    "thread": "threading.Thread(target=threading.Event().wait, daemon=True).start()",
    "pool": "(torch.ones(900, 900) @ torch.ones(900, 900)).sum()",
    "segfault": "ctypes.string_at(0)",
    "exit": "os._exit(0)",
    "abort": "os.abort()",
}
DEATHS = {
    "segfault": "killed by SIGSEGV",
    "exit": "the test process left with exit code 0",
    "abort": "killed by SIGABRT",
}


@pytest.fixture
def fresh(tmp_path: Path, torch_python: str) -> dict[str, Any]:
    """The state of a Python that did nothing but import torch."""
    (tmp_path / "clean.py").write_text(CLEAN)
    code = "import clean, json; print(json.dumps(clean.state()))"
    done = subprocess.run(
        [torch_python, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    state: dict[str, Any] = json.loads(done.stdout)
    return state


def soiling_files(names: Iterable[str]) -> dict[str, str]:
    """A file for each of these, and one that is fresh and comes last."""
    files = {f"test_{name}.py": FILE.format(statement=SOILS[name]) for name in names}
    return {**files, "test_zz_last.py": FILE.format(statement="pass")}


def test_every_soiling_shows_where_nothing_is_isolated(
    tmp_path: Path, torch_python: str, fresh: dict[str, Any]
) -> None:
    """The check itself can fail: for each state that it holds there is a statement that changes it."""
    code = "import clean, os, sys, signal, types, torch, json\nbefore = clean.state()\n"
    code += "".join(f"{SOILS[name]}\n" for name in fresh if name in SOILS)
    code += "print(json.dumps([name for name, value in clean.state().items() if value == before[name]]))"
    done = subprocess.run(
        [torch_python, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == []


@pytest.mark.parametrize(
    ("preload", "names"),
    [(("torch",), tuple(SOILS)), ((), ("dtype", "variable", "pool", "segfault"))],
    ids=["warm", "cold"],
)
def test_nothing_of_an_isolated_file_reaches_the_next(
    run_torch: Any, fresh: dict[str, Any], preload: tuple[str, ...], names: tuple[str, ...]
) -> None:
    soiling = soiling_files(names)
    files = {"clean.py": CLEAN, "fresh.json": json.dumps(fresh), **soiling}
    ran = run_torch(files, mode="isolated", gpus=1, preload=preload)
    expected = {
        f"{path}::{test}": "failed" if test == "test_2_soils" and path[5:-3] in DEATHS else "passed"
        for path in soiling
        for test in ("test_1_is_fresh", "test_2_soils", "test_3_is_there")
    }
    assert ran.outcomes == expected, ran.complaints
    for name in DEATHS.keys() & set(names):
        assert ran.tests[f"test_{name}.py::test_2_soils"].message == DEATHS[name]
    assert len(ran.records("end")) == len(expected)


DRAWS = """\
import json, pathlib, random
import numpy, torch
def test_draws():
    drawn = [random.random(), float(numpy.random.rand()), torch.rand(1).item()]
    pathlib.Path(__file__).with_suffix(".json").write_text(json.dumps(drawn))
"""


@pytest.mark.parametrize("preload", [("torch",), ("numpy", "torch"), ()], ids=",".join)
def test_isolated_files_draw_numbers_of_their_own(
    run_torch: Any, tmp_path: Path, preload: tuple[str, ...]
) -> None:
    ran = run_torch({f"test_{name}.py": DRAWS for name in "abc"}, mode="isolated", preload=preload)
    assert set(ran.outcomes.values()) == {"passed"}, ran.complaints
    drawn = [json.loads(path.read_text()) for path in (tmp_path / "tree").glob("*.json")]
    assert [len(set(column)) for column in zip(*drawn, strict=True)] == [3, 3, 3]
