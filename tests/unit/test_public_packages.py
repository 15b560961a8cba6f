"""The comparison of bench/public_packages.py: a difference of any kind is shown and fails the bench."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "bench" / "public_packages.py"


@pytest.fixture(scope="module")
def public_packages() -> Iterator[ModuleType]:
    """The bench as a module."""
    spec = importlib.util.spec_from_file_location("public_packages", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


A, B = "tests/test_a.py::test_one[x]", "tests/test_a.py::test_two"


@pytest.mark.parametrize(
    ("plain", "gpuci", "expected"),
    [
        pytest.param({A: "passed", B: "failed"}, {B: "failed", A: "passed"}, [], id="equal-in-any-order"),
        pytest.param({A: "failed"}, {A: "passed"}, [(A, "failed", "passed")], id="another-outcome"),
        pytest.param({A: "skipped"}, {A: "xfailed"}, [(A, "skipped", "xfailed")], id="neither-is-red"),
        pytest.param({A: "passed", B: "passed"}, {A: "passed"}, [(B, "passed", "absent")], id="lost"),
        pytest.param({A: "passed"}, {A: "passed", B: "passed"}, [(B, "absent", "passed")], id="too-many"),
    ],
)
@pytest.mark.parametrize("title", ["packaging", "side by side"])
def test_every_difference_is_listed_and_fails(
    public_packages: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    title: str,
    plain: dict[str, str],
    gpuci: dict[str, str],
    expected: list[tuple[str, str, str]],
) -> None:
    asked = []

    def alone(_bench: object, name: str, file: str) -> dict[str, str]:
        asked.append((name, file))
        return {A: "error", B: "error"}

    monkeypatch.setattr(public_packages, "outcomes_of_file", alone)
    prefix = "" if title == "packaging" else "packages/packaging/"
    runs = [
        public_packages.Run({prefix + nodeid: outcome for nodeid, outcome in outcomes.items()}, 0, 1.0)
        for outcomes in (plain, gpuci)
    ]

    assert public_packages.show(None, title, *runs) is not bool(expected)

    lines = capsys.readouterr().out.splitlines()[1:]
    assert lines == [
        f"    {prefix + nodeid!a}: pytest {one}, its file alone error, gpuci {other}"
        for nodeid, one, other in expected
    ]
    assert asked == [("packaging", "tests/test_a.py")] * len(expected)


def test_exit_codes_that_differ_fail(public_packages: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    plain, gpuci = (public_packages.Run({A: "passed"}, code, 1.0) for code in (0, 4))

    assert public_packages.show(None, "packaging", plain, gpuci) is False

    assert "exit codes differ: pytest 0, gpuci 4" in capsys.readouterr().out


def test_the_runs_of_the_packages_make_up_the_monorepo(public_packages: ModuleType) -> None:
    merged = public_packages.merge(
        {
            "more-itertools": public_packages.Run({A: "passed"}, 0, 1.5),
            "einops": public_packages.Run({A: "failed"}, 1, 2.0),
        }
    )

    assert merged.outcomes == {f"packages/more-itertools/{A}": "passed", f"packages/einops/{A}": "failed"}
    assert (merged.code, merged.seconds) == (1, 3.5)
