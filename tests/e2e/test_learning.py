"""A first run learns what its tests need; its report plans the second, which has nothing left to learn."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

GPUCI = Path(__file__).parents[2] / "scripts" / "gpuci"
FILES = {
    ".github/gpuci.yml": json.dumps(
        {"node": {"python": sys.executable, "env": {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}}}
    ),
    "pytest.ini": "[pytest]\nmarkers =\n    require_cuda_8gpu\n    sequential\n",
    "conftest.py": (
        "import pytest\n"
        "def pytest_collection_modifyitems(items):\n"
        "    for item in items:\n"
        "        if 'hooked' in item.name: item.add_marker('require_cuda_8gpu')\n"
        "        if 'lonely' in item.name: item.add_marker('sequential')\n"
    ),
    "test_read.py": (
        "import os, pytest\n"
        "def gpus(): return len(os.environ['GPUCI_GPUS'].split(','))\n"
        "def test_hooked(): assert gpus() == 8\n"
        "def test_lonely(): pass\n"
        "@pytest.mark.parametrize('n', [1, pytest.param(8, marks=pytest.mark.require_cuda_8gpu)])\n"
        "def test_parameters(n): assert gpus() == n\n"
        "def test_skips():\n"
        "    if gpus() < 2: pytest.skip('needs 2 GPUs')\n"
        "def test_never(): pytest.skip('this GPU is too old')\n"
        "def test_plain(): assert gpus() == 1\n"
    ),
    "test_made.py": (
        "import os\n"
        "for name in ('hooked', 'plain'):\n"
        "    exec(f'def test_{name}(): pass')\n"
        "def test_source(): assert os.environ['GPUCI_GPUS'].count(',') == 0\n"
    ),
}
LEARNED = {
    "test_made.py::test_hooked": (8, False, "require_cuda_8gpu", "mark require_cuda_8gpu seen on the node"),
    "test_read.py::test_hooked": (8, False, "require_cuda_8gpu", "mark require_cuda_8gpu seen on the node"),
    "test_read.py::test_lonely": (1, True, "sequential", "mark sequential seen on the node"),
    "test_read.py::test_parameters[8]": (
        8, False, "require_cuda_8gpu", "mark require_cuda_8gpu seen on the node",
    ),
    "test_read.py::test_skips": (8, False, "", "skipped on 1 of 8 GPUs (needs 2 GPUs)"),
}  # fmt: skip
NOTES = {"need_differs", "gpu_skip"}


def gpuci(*args: str) -> str:
    command = [sys.executable, "-I", str(GPUCI), *args]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def run(tree: Path, out: Path, *args: str) -> str:
    return gpuci("run", str(tree), "--gpus", "8", "--out", str(out), *args)


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def notes(out: Path) -> dict[str, str]:
    """Topic by node id of the notes that teach."""
    lines = (out / "shard-1" / "journal.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    return {
        record["nodeid"]: record["topic"]
        for record in records
        if record["kind"] == "note" and record.get("topic") in NOTES
    }


def needs(out: Path) -> dict[str, tuple[int, bool, str, str]]:
    found = read(out / "report.json")["needs"]
    return {
        nodeid: (need["gpus"], need["alone"], need.get("mark", ""), need["because"])
        for nodeid, need in found.items()
    }


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree and its first run: `tree` and `first`, and its terminal summary in `shown`."""
    path = tmp_path_factory.mktemp("learning")
    for name, text in FILES.items():
        (path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (path / "tree" / name).write_text(text)
    (path / "shown").write_text(run(path / "tree", path / "first"))
    return path


def test_the_first_run_learns(place: Path) -> None:
    assert needs(place / "first") == LEARNED
    assert notes(place / "first").keys() == LEARNED.keys() | {"test_read.py::test_never"}
    shown = (place / "shown").read_text()
    assert f"Needs differ from the plan ({len(LEARNED)} tests)" in shown
    assert "  test_read.py::test_lonely\n    1 -> the node alone: mark sequential seen on the node\n" in shown
    assert "skipped for lack of GPUs, even with all of the node's (1 test)" in " ".join(shown.split())


def test_the_second_run_has_nothing_to_learn(place: Path) -> None:
    report = str(place / "first" / "report.json")
    shown = run(place / "tree", place / "second", "--durations", report)
    assert notes(place / "second") == {"test_read.py::test_never": "gpu_skip"}
    assert "Needs differ" not in shown
    assert needs(place / "second") == LEARNED
    first, second = read(place / "first" / "report.json"), read(place / "second" / "report.json")
    assert second["counts"] == first["counts"] == {"passed": 9, "skipped": 1}
    plan = json.loads(
        gpuci("plan", str(place / "tree"), "--json", "--durations", str(place / "second" / "report.json"))
    )
    wide = {
        nodeid: (unit["gpus"], unit["mode"])
        for unit in plan["units"]
        if isinstance(unit["select"], list)
        for nodeid in unit["select"]
    }
    assert wide == {
        nodeid: (8, "serial" if nodeid == "test_read.py::test_lonely" else "normal") for nodeid in LEARNED
    }


@pytest.mark.parametrize(
    ("nodeid", "says"),
    [
        ("test_read.py::test_hooked", "GPUs:      8 (learned: mark require_cuda_8gpu seen on the node)"),
        ("test_read.py::test_skips", "GPUs:      8 (learned: skipped on 1 of 8 GPUs (needs 2 GPUs))"),
        ("test_read.py::test_lonely", "mode:      serial (learned: mark sequential seen on the node)"),
        ("test_read.py::test_plain", "GPUs:      1 (the default)"),
        (
            "test_read.py::test_parameters[8]",
            "learned:   [8] 8 GPUs (mark require_cuda_8gpu seen on the node), unit ",
        ),
    ],
)
def test_explain_says_what_was_learned(place: Path, nodeid: str, says: str) -> None:
    report = str(place / "first" / "report.json")
    assert says in gpuci("explain", nodeid, str(place / "tree"), "--durations", report)
