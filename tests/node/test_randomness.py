"""Random generators in forked processes: seeded ones go on, others are no copies of each other."""

from __future__ import annotations

import os
import random
import subprocess
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

PASSES = "def test_1(): pass\n"
FIRST = random.Random(0).random()
SEEDED = f"def test_1(): assert random.random() == {FIRST!r}\n"
# What a file does when it is imported, and what its test then finds, as in a process of its own.
FILES = {
    "seeded by the file": "import random\nrandom.seed(0)\n" + SEEDED,
    "by name": "from random import seed\nimport random\nseed(a=0)\n" + SEEDED,
    "by a helper": "import helper, random\n" + SEEDED,
    "by a state": "import random\nrandom.setstate(random.Random(0).getstate())\n" + SEEDED,
    "seeded with a word": (
        "import random\nrandom.seed('gpuci')\n"
        "def test_1(): assert random.random() == random.Random('gpuci').random()\n"
    ),
}


def all_forked(ran: Any) -> bool:
    topics = {note["topic"] for note in ran.records("note")}
    return not topics & {"own_process", "not_forked", "no_base"}


@pytest.mark.parametrize("body", FILES.values(), ids=FILES)
def test_a_seed_counts_in_forked_processes(run_tree: Any, body: str) -> None:
    files = {"helper.py": "import random\nrandom.seed(0)\n", "test_a.py": body, "test_b.py": PASSES}
    ran = run_tree(files, gpus=2)
    assert Counter(ran.outcomes.values()) == {"passed": 2}
    assert all_forked(ran)


@pytest.mark.parametrize("mode", ["normal", "isolated"])
def test_a_seed_counts_where_the_base_set_it(run_tree: Any, mode: str) -> None:
    files = {"lib/heavy.py": "import random\nrandom.seed(0)\n", "test_b.py": PASSES}
    files["test_a.py"] = "import heavy, random\n" + SEEDED
    node = replace(run_tree.config.node, preload=("heavy",))
    config = replace(run_tree.config, node=node, container={"pythonpath": ["lib"]})
    ran = run_tree(files, gpus=2, config=config, units={"test_a.py": {"mode": mode}})
    assert Counter(ran.outcomes.values()) == {"passed": 2}
    assert all_forked(ran)


# Four files whose tests run at one time, so each in a process of its own.
DRAWS = """
import time
def test_1():
    with open("DRAWN", "a") as stream:
        stream.write("%r\\n" % {})
    while len(open("DRAWN").readlines()) < 4:
        time.sleep(0.01)
"""


def drawn(run_tree: Any, body: str, mode: str, *preload: str, **files: str) -> list[str]:
    """What each of the four draws."""
    units = {f"test_{name}.py": {"mode": mode} for name in "abcd"}
    config = replace(run_tree.config, node=replace(run_tree.config.node, preload=preload))
    modules = {f"{name}.py": text for name, text in files.items()}
    ran = run_tree({**modules, **dict.fromkeys(units, body)}, gpus=4, config=config, units=units)
    assert Counter(ran.outcomes.values()) == {"passed": 4}
    assert all_forked(ran)
    drawn: str = (run_tree.root / "DRAWN").read_text()
    return drawn.split()


@pytest.mark.parametrize("mode", ["normal", "isolated"])
@pytest.mark.parametrize("seed", ["", "random.seed()\n"], ids=["nobody seeds", "seeded with entropy"])
def test_no_two_processes_draw_the_same(run_tree: Any, seed: str, mode: str) -> None:
    body = "import random\n" + seed + DRAWS.format("random.random()")
    assert len(set(drawn(run_tree, body, mode))) == 4


NUMPY = "import numpy.random\n" + DRAWS.format("int(numpy.random.randint(10**9))")


@pytest.fixture
def run_with_numpy(run_tree: Any) -> Any:
    """As `run_tree`, by a Python that has numpy."""
    python = os.environ.get("GPUCI_TORCH_PYTHON")
    if not python:
        pytest.skip("GPUCI_TORCH_PYTHON names no Python with numpy: scripts/test --torch makes one")
    if subprocess.run([python, "-c", "import numpy"], capture_output=True, timeout=120).returncode != 0:
        pytest.skip(f"{python} has no numpy")
    return replace(run_tree, python=python)


@pytest.mark.parametrize("mode", ["normal", "isolated"])
@pytest.mark.parametrize("preload", [(), ("numpy",), ("numpy.random",)], ids=str)
def test_numpy_draws_other_numbers_in_each_process(
    run_with_numpy: Any, preload: tuple[str, ...], mode: str
) -> None:
    assert len(set(drawn(run_with_numpy, NUMPY, mode, *preload))) == 4


@pytest.mark.parametrize("preload", [(), ("numpy.random",)], ids=str)
@pytest.mark.parametrize("where", ["file", "helper"])
def test_numpy_keeps_its_seed(run_with_numpy: Any, where: str, preload: tuple[str, ...]) -> None:
    seed = "import numpy.random\nnumpy.random.seed(0)\n"
    body = (seed if where == "file" else "import helper\n") + NUMPY
    assert len(set(drawn(run_with_numpy, body, "normal", *preload, helper=seed))) == 1
