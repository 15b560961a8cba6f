"""`skip` by path has the last word, also over tests that only pytest knows of; exceptions from it run."""

from pathlib import Path

import pytest

from gpuci.config.model import DEFAULT_MARKERS, Config, Node
from gpuci.discovery.discover import discover
from gpuci.planning.plan import make_plan
from gpuci_node.contract import selects

DOCTEST = '"""\n>>> 1\n1\n"""\n'
TWO = "def test_a(): ...\ndef test_b(): ...\n"
UNSEEN = "globals()['test_c'] = lambda: None\nTestD = make()\n"
SERIAL = "import pytest\nclass TestA:\n def test_a(self): ...\n @pytest.mark.serial\n def test_b(self): ...\n"


@pytest.mark.parametrize(
    ("source", "modes", "runs", "skipped"),
    [
        pytest.param(TWO, {"t.py": "skip", "t.py::test_b": "cpu"}, ["test_b"], ["test_a"], id="exception"),
        pytest.param(
            TWO + UNSEEN,
            {"t.py": "skip", "t.py::test_b": "normal"},
            ["test_b"],
            ["test_a", "test_c", "TestD::test_d"],
            id="exception in an opaque file",
        ),
        pytest.param(
            DOCTEST + TWO,
            {"t.py": "skip", "t.py::test_b": "normal"},
            ["test_b"],
            ["test_a", "t"],
            id="exception beside doctests",
        ),
        pytest.param(
            TWO + UNSEEN,
            {"t.py": "skip", "t.py::TestD": "serial"},
            ["TestD::test_d"],
            ["test_a", "test_b", "test_c"],
            id="exception that nobody saw",
        ),
        pytest.param(
            SERIAL,
            {"t.py": "skip", "t.py::TestA": "normal"},
            ["TestA::test_a", "TestA::test_b"],
            ["test_c"],
            id="exception in two modes",
        ),
        pytest.param(
            TWO + UNSEEN,
            {"t.py::test_c": "skip", "t.py::TestD": "skip"},
            ["test_a", "test_b", "test_e"],
            ["test_c", "TestD::test_d"],
            id="skipped ones that nobody saw",
        ),
        pytest.param(
            TWO, {"t.py::test_b[1]": "skip"}, ["test_a", "test_b[2]"], ["test_b[1]"], id="skipped parameter"
        ),
        pytest.param(
            SERIAL,
            {"t.py::TestA": "skip", "t.py::TestA::test_a": "normal"},
            ["TestA::test_a", "test_c"],
            ["TestA::test_b"],
            id="exception of an exception",
        ),
    ],
)
def test_what_runs(
    tmp_path: Path, source: str, modes: dict[str, str], runs: list[str], skipped: list[str]
) -> None:
    """Each of `runs` in one unit, each of `skipped` in none."""
    (tmp_path / "t.py").write_text(source)
    node = Node(pytest_args=("--doctest-modules",))
    config = Config(packages=("t.py",), markers=DEFAULT_MARKERS, modes=tuple(modes.items()), node=node)
    plan = make_plan(discover(tmp_path, config), config)
    times = {
        name: sum(selects(unit.select, f"t.py::{name}") for unit in plan.units) for name in [*runs, *skipped]
    }
    assert times == {**dict.fromkeys(runs, 1), **dict.fromkeys(skipped, 0)}
