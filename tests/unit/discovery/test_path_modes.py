"""The mode that a path has, and what in a file is treated otherwise than the file."""

import pytest

from gpuci.discovery.modes import path_modes


@pytest.mark.parametrize(
    ("path", "mode"),
    [
        ("a/test_1.py", "serial"),
        ("a/b/test_1.py", "isolated"),
        ("a/b/test_2.py", "normal"),
        ("ab/test_1.py", "normal"),
        ("c/test_1.py", "cpu"),
        ("test_1.py", "normal"),
    ],
)
def test_the_longest_path_gives_the_mode(path: str, mode: str) -> None:
    modes = (
        ("a/b/test_2.py", "normal"),
        ("a", "serial"),
        ("a/b/", "isolated"),
        ("./c", "skip"),
        ("c", "cpu"),
    )
    assert path_modes((*modes, ("c/test_1.py::f", "serial"))).mode(path) == mode


@pytest.mark.parametrize(
    ("modes", "exceptions"),
    [
        pytest.param([], [], id="none"),
        pytest.param([("a/t.py::A", "skip")], ["a/t.py::A"], id="a skipped class"),
        pytest.param([("./a//t.py::A", "skip")], ["a/t.py::A"], id="written otherwise"),
        pytest.param([("a/t.py::f[1]", "skip")], ["a/t.py::f[1]"], id="a skipped parameter"),
        pytest.param([("a/t.py::A", "serial"), ("b/t.py::A", "skip"), ("a/t.py", "cpu")], [], id="no skip"),
        pytest.param([("a", "skip")], [], id="all skipped"),
        pytest.param([("a", "skip"), ("a/t.py::A", "normal")], ["a/t.py::A"], id="a class runs"),
        pytest.param([("a", "skip"), ("a/t.py", "cpu"), ("a/t.py::A", "normal")], [], id="the file runs"),
        pytest.param(
            [("a/t.py::A", "skip"), ("a/t.py::A::f", "normal"), ("a/t.py::B", "skip")],
            ["a/t.py::B"],
            id="an exception of the exception",
        ),
    ],
)
def test_exceptions(modes: list[tuple[str, str]], exceptions: list[str]) -> None:
    """Skipped ids of a file that runs, live ids of one that is skipped."""
    assert path_modes(tuple(modes)).exceptions("a/t.py") == exceptions
