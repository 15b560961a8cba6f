"""Expected seconds: items add up to functions, and an unknown function is estimated from its neighbours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.planning.estimate import learn

DURATIONS = {
    "a/x/test_1.py::A::f[1]": 1.0,
    "a/x/test_1.py::A::f[2-x::y]": 2.0,
    "a/x/test_1.py::A::g": 5.0,
    "a/x/test_1.py::h": 10.0,
    "a/x/test_2.py::f": 30.0,
    "a/y/test_3.py::f": 100.0,
    "test_0.py::f": 2.0,
}


@pytest.mark.parametrize(
    ("nodeid", "seconds"),
    [
        ("a/x/test_1.py::A::f", 3.0),
        ("a/x/test_1.py::A::new", (3 + 5) / 2),
        ("a/x/test_1.py::A::Inner::new", (3 + 5) / 2),
        ("a/x/test_1.py::new", (3 + 5 + 10) / 3),
        ("a/x/test_1.py::B::new", (3 + 5 + 10) / 3),
        ("a/x/test_9.py::new", (3 + 5 + 10 + 30) / 4),
        ("a/x/deep/er/test_9.py::new", (3 + 5 + 10 + 30) / 4),
        ("a/z/test_9.py::new", (3 + 5 + 10 + 30 + 100) / 5),
        ("b/test_9.py::new", (3 + 5 + 10 + 30 + 100 + 2) / 6),
        ("a/xx/test_9.py::new", (3 + 5 + 10 + 30 + 100) / 5),
    ],
    ids=[
        "known: the sum of its items",
        "its class",
        "the class around its class",
        "its file",
        "a new class: its file",
        "its directory",
        "the directory above",
        "two above",
        "all",
        "a name that only begins alike",
    ],
)
def test_functions(nodeid: str, seconds: float) -> None:
    assert learn(DURATIONS, 1.0).function(nodeid) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("path", "seconds"),
    [("a/x/test_1.py", 18.0), ("a/x/test_9.py", 24.0), ("a/new/test_9.py", 148 / 3), ("test_9.py", 150 / 4)],
    ids=["measured", "mean file of its directory", "of the directory above", "of all"],
)
def test_whole_files(path: str, seconds: float) -> None:
    assert learn(DURATIONS, 1.0).file(path) == pytest.approx(seconds)
    assert learn(DURATIONS, 1.0).function(path) == pytest.approx(seconds)


def test_without_durations_there_is_the_default() -> None:
    nothing = learn({}, 2.5)
    assert nothing.function("a.py::f") == nothing.function("a.py") == nothing.file("a.py") == 2.5
    assert not nothing.knows("a.py::f")


@pytest.mark.parametrize(
    ("nodeid", "known"),
    [("a/x/test_1.py::h", True), ("a/x/test_1.py", True), ("a/x/test_1.py::new", False)],
)
def test_what_is_known(nodeid: str, known: bool) -> None:
    assert learn(DURATIONS, 1.0).knows(nodeid) is known


def test_the_seconds_of_a_whole_file_say_nothing_of_its_functions() -> None:
    estimates = learn({"a/test_1.py": 60.0, "a/test_2.py::f": 3.0}, 1.0)
    assert estimates.function("a/test_1.py") == 60.0
    assert estimates.function("a/test_1.py::new") == 3.0


@given(st.lists(st.floats(0, 1e4), min_size=1))
def test_the_order_of_durations_does_not_matter(seconds: list[float]) -> None:
    """Not even in the last digit, where sums of floats depend on their order."""
    items = [(f"d/t{i % 2}.py::f{i % 3}[{i}]", value) for i, value in enumerate(seconds)]
    assert learn(dict(items), 1.0) == learn(dict(reversed(items)), 1.0)


@given(st.lists(st.floats(0.01, 1e4), min_size=1))
def test_an_estimate_lies_within_what_was_measured(seconds: list[float]) -> None:
    estimates = learn({f"d{i % 3}/t{i % 2}.py::f{i}": value for i, value in enumerate(seconds)}, 1.0)
    for path in ("d0/t0.py", "d1/new.py", "new/new.py"):
        value = estimates.function(f"{path}::new")
        assert min(seconds) * (1 - 1e-9) <= value <= max(seconds) * (1 + 1e-9)


def test_a_very_deep_path_is_estimated() -> None:
    assert learn(DURATIONS, 1.0).function("a/x/" + "d/" * 5000 + "t.py::f") == pytest.approx(48 / 4)
