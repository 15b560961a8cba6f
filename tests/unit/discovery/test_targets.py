"""Marks, modes and conditions -> the fields of a target."""

import pytest

from gpuci.config.model import DEFAULT_MARKERS, Config, MarkerRule
from gpuci.discovery.members import Item
from gpuci.discovery.targets import TargetMaker
from gpuci.discovery.values import Mark
from gpuci.model import TestTarget

RULES = (
    *DEFAULT_MARKERS,
    MarkerRule("require_cuda_2gpu", gpus=2),
    MarkerRule("hopper", profile="condor"),
    MarkerRule("broken", mode="skip"),
)


def make(*marks: Mark, modes: tuple[tuple[str, str], ...] = (), classes: tuple[str, ...] = ()) -> TestTarget:
    """The target of test_a in a/b/test_m.py."""
    maker = TargetMaker(Config(markers=RULES, modes=modes))
    return maker.make(Item(classes, "test_a", 7, marks), "a/b/test_m.py", "a")


@pytest.mark.parametrize(
    ("marks", "mode", "gpus", "kind"),
    [
        pytest.param([], "normal", 1, "unknown", id="none"),
        pytest.param(["gpu"], "normal", 1, "gpu", id="gpu"),
        pytest.param(
            ["gpu", "require_cuda_8gpu", "require_cuda_2gpu"], "normal", 8, "gpu", id="most demanding"
        ),
        pytest.param(["cpu"], "cpu", 0, "cpu", id="cpu"),
        pytest.param(["gpu", "cpu"], "normal", 1, "gpu", id="gpu on a test of a cpu class"),
        pytest.param(["cpu", "gpu"], "cpu", 0, "cpu", id="cpu on a test of a gpu module"),
        pytest.param(["serial", "isolated"], "serial", 1, "unknown", id="closest mode"),
        pytest.param(["sequential", "require_cuda_2gpu"], "serial", 2, "gpu", id="serial keeps its need"),
        pytest.param(["slow_nightly"], "normal", 1, "unknown", id="schedule decides elsewhere"),
        pytest.param(["broken"], "skip", 1, "unknown", id="a mark may skip"),
    ],
)
def test_marks(marks: list[str], mode: str, gpus: int, kind: str) -> None:
    """Closest mark for the mode, most demanding one for the GPUs."""
    target = make(*(Mark(name) for name in marks))
    assert (target.run_mode, target.gpus, target.kind) == (mode, gpus, kind)
    assert (target.skip is not None) == (mode == "skip")


@pytest.mark.parametrize(
    ("modes", "marks", "mode", "skip"),
    [
        pytest.param([("a", "serial")], [], "serial", None, id="directory"),
        pytest.param([("a/b/test_m.py", "isolated"), ("a", "serial")], [], "isolated", None, id="longest"),
        pytest.param([("a/b/test_m.py::TestC", "cpu")], [], "cpu", None, id="class"),
        pytest.param(
            [("a/b/test_m.py::TestC::test_a", "cpu"), ("a/b/test_m.py::TestC", "serial")],
            [],
            "cpu",
            None,
            id="method",
        ),
        pytest.param([("a/b/test_m.py::Test", "serial")], [], "normal", None, id="whole parts only"),
        pytest.param([("a/bb", "serial"), ("b", "serial")], [], "normal", None, id="other paths"),
        pytest.param([("a", "serial")], ["isolated"], "isolated", None, id="a mark beats a path"),
        pytest.param([("a", "skip")], ["serial"], "skip", "modes: skip a", id="skip by path beats a mark"),
        pytest.param(
            [("a", "skip"), ("a/b/test_m.py", "normal")], ["gpu"], "normal", None, id="exception from a skip"
        ),
        pytest.param(
            [("a", "skip"), ("a/b", "serial")], ["isolated"], "isolated", None, id="mark inside the exception"
        ),
        pytest.param([(".", "serial")], [], "serial", None, id="everything"),
        pytest.param([("a/", "serial")], [], "serial", None, id="trailing slash"),
    ],
)
def test_authority_over_the_mode(
    modes: list[tuple[str, str]], marks: list[str], mode: str, skip: str | None
) -> None:
    """Skip by path, a mark, the longest path, normal."""
    target = make(*(Mark(name) for name in marks), modes=tuple(modes), classes=("TestC",))
    assert (target.run_mode, target.skip) == (mode, skip)


@pytest.mark.parametrize(
    ("mark", "runs_on", "timeout", "gpus"),
    [
        pytest.param(Mark("runs_on", (), (("node", "'condor'"),)), "condor", None, 1, id="runs_on"),
        pytest.param(Mark("runs_on", ("'condor'",)), "condor", None, 1, id="runs_on positional"),
        pytest.param(Mark("runs_on", (), (("node", "NODE"),)), None, None, 1, id="runs_on computed"),
        pytest.param(Mark("hopper"), "condor", None, 1, id="profile of a rule"),
        pytest.param(Mark("timeout", ("30",)), None, 30.0, 1, id="timeout"),
        pytest.param(Mark("timeout", (), (("timeout", "1.5"),)), None, 1.5, 1, id="timeout named"),
        pytest.param(Mark("timeout", ("0",)), None, None, 1, id="no timeout"),
        pytest.param(Mark("timeout", ("True",)), None, None, 1, id="timeout of a bool"),
        pytest.param(Mark("timeout", ("9" * 400,)), None, 1e12, 1, id="timeout that no float holds"),
        pytest.param(Mark("timeout", ("LIMIT * 2",)), None, None, 1, id="timeout computed"),
        pytest.param(Mark("skipif", ("n < 4",), gpus=4), None, None, 4, id="skip condition"),
        pytest.param(Mark("unittest.skipIf", gpus=2, hidden=True), None, None, 2, id="unittest's"),
        pytest.param(Mark("require_cuda_8gpu", some=True), None, None, 1, id="of some parameters"),
    ],
)
def test_fields_of_marks(mark: Mark, runs_on: str | None, timeout: float | None, gpus: int) -> None:
    """runs_on, timeout and conditions; a mark of some parameters raises nothing."""
    target = make(mark)
    assert (target.runs_on, target.timeout, target.gpus) == (runs_on, timeout, gpus)
    assert [marker.name for marker in target.markers] == ([] if mark.hidden else [mark.name])


def test_names_of_a_target() -> None:
    """A function has no class, a method no function."""
    function, method = make(), make(classes=("TestA", "TestB"))
    assert (function.nodeid, function.test_function, function.test_method) == (
        "a/b/test_m.py::test_a",
        "test_a",
        None,
    )
    assert method.nodeid == "a/b/test_m.py::TestA::TestB::test_a"
    assert (method.test_class, method.test_function, method.test_method) == ("TestA::TestB", None, "test_a")
