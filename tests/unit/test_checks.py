"""scripts/test's own arithmetic: what it counts and what it calls a failure."""

import sys
from pathlib import Path

import pytest
from tests.cluster.bed import build, packages

import checks
from gpuci import environment
from gpuci.errors import GpuciError

CASES = {
    "nothing": ("", (0, 0, 0)),
    "passed": ("<testcase/><testcase/>", (2, 0, 0)),
    "failed": ("<testcase><failure/></testcase><testcase/>", (1, 1, 0)),
    "failed and error in teardown are one": ("<testcase><failure/><error/></testcase>", (0, 1, 0)),
    "skipped": ('<testcase><skipped type="pytest.skip"/></testcase>', (0, 0, 1)),
    "expected failure": ('<testcase><skipped type="pytest.xfail"/></testcase>', (1, 0, 0)),
    "output is not a failure": ("<testcase><system-out>failure</system-out></testcase>", (1, 0, 0)),
}


@pytest.mark.parametrize(("cases", "expected"), CASES.values(), ids=CASES)
def test_count(cases: str, expected: tuple[int, int, int]) -> None:
    assert checks.count(f"<testsuites><testsuite>{cases}</testsuite></testsuites>") == expected


@pytest.mark.parametrize(
    ("outcomes", "line"),
    [
        ([checks.Outcome("a", 1.0, passed=2)], "2 passed, 0 failed"),
        ([checks.Outcome("a", 1.0, failed=1), checks.Outcome("b", 1.0, passed=3)], "3 passed, 1 failed"),
        ([checks.Outcome("a", 1.0, 1, 0, 4)], "1 passed, 0 failed, 4 skipped"),
    ],
    ids=["passed", "failed", "skipped"],
)
def test_closing_line(outcomes: list[checks.Outcome], line: str) -> None:
    assert checks.closing_line(outcomes) == line


@pytest.mark.parametrize(
    ("arguments", "quick", "for_pytest"),
    [
        ([], False, []),
        (["--quick", "-k", "x", "tests/unit"], True, ["-k", "x", "tests/unit"]),
        (["--cluster", "--torch", "-x"], False, ["-x"]),
        (["--qui"], False, ["--qui"]),
    ],
    ids=["none", "quick", "more", "no-abbreviation"],
)
def test_flags_and_arguments_for_pytest(arguments: list[str], quick: bool, for_pytest: list[str]) -> None:
    options, rest = checks.parse(arguments)
    assert (options.quick, rest) == (quick, for_pytest)
    assert (options.torch, options.cluster) == ("--torch" in arguments, "--cluster" in arguments)


@pytest.mark.parametrize(
    ("quick", "torch", "cluster", "expected"),
    [
        (False, False, False, ["tests"]),
        (False, True, True, ["tests"]),
        (True, False, False, ["tests/unit", "tests/meta"]),
        (True, True, False, ["tests/unit", "tests/meta", "tests/torch"]),
        (True, False, True, ["tests/unit", "tests/meta", "tests/cluster"]),
    ],
)
def test_which_directories(quick: bool, torch: bool, cluster: bool, expected: list[str]) -> None:
    assert checks.directories(quick, torch, cluster) == expected


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is done to the test bed, on a machine that can have one."""
    done: list[str] = []
    monkeypatch.delenv("GPUCI_CLUSTER", raising=False)
    monkeypatch.setattr(packages, "unfit", lambda: None)
    monkeypatch.setattr(build, "up", lambda top, changes: done.append(f"up {top}"))
    monkeypatch.setattr(build, "down", lambda top: done.append(f"down {top}"))
    return done


def test_a_bed_is_there_while_the_tests_run(calls: list[str]) -> None:
    def interrupted() -> None:
        with checks.bed(True) as (outcomes, environ):
            calls.append("tests")
            assert environ == {"GPUCI_CLUSTER": str(checks.CLUSTER)}
            assert [(outcome.name, outcome.passed) for outcome in outcomes] == [("cluster", 1)]
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert calls == [f"up {checks.CLUSTER}", "tests", f"down {checks.CLUSTER}"]


@pytest.mark.parametrize(
    ("wanted", "unfit", "reason"),
    [(False, None, "needs --cluster"), (True, "the test bed needs root", "the test bed needs root")],
    ids=["not asked for", "not root"],
)
def test_without_a_bed_its_tests_get_the_reason(
    wanted: bool,
    unfit: str | None,
    reason: str,
    calls: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(packages, "unfit", lambda: unfit)
    with checks.bed(wanted) as found:
        assert found == ([], {"GPUCI_NO_CLUSTER": reason})
    assert calls == []
    assert (reason in capsys.readouterr().err) == wanted


def test_a_bed_that_does_not_come_up_is_a_failure_and_is_taken_down(
    calls: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_arguments: object) -> None:
        raise GpuciError("slurmctld died", why="its port is taken")

    monkeypatch.setattr(build, "up", fails)
    with checks.bed(True) as (outcomes, environ):
        assert environ == {"GPUCI_NO_CLUSTER": "slurmctld died"}
    assert checks.closing_line(outcomes) == "0 passed, 1 failed"
    assert "its port is taken" in capsys.readouterr().err
    assert calls == [f"down {checks.CLUSTER}"]


def test_a_bed_that_runs_already_is_used_and_stays(calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUCI_CLUSTER", "/srv/bed")
    with checks.bed(True) as (outcomes, _):
        assert outcomes == []
    assert calls == []


def test_this_python_is_found_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert checks.find_python((sys.version_info[0], sys.version_info[1])) == sys.executable


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (None, None),
        ("echo no such version >&2; exit 127", None),
        ("exit 1", None),
        ("echo /opt/other/bin/python9.9", "/opt/other/bin/python9.9"),
    ],
    ids=["none", "a shim without that version", "another version behind the name", "found"],
)
def test_another_python_is_looked_for_on_path(
    script: str | None, expected: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if script is not None:
        (tmp_path / "python9.9").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "python9.9").chmod(0o755)
    assert checks.find_python((9, 9)) == expected


def test_torch_goes_into_an_environment_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def ensure(base: Path, name: str, requirements: Path, *, python: str, hashes: bool) -> Path:
        asked.append((base, name, requirements.name, python, hashes))
        return Path("/made/bin/python")

    monkeypatch.setattr(environment, "ensure", ensure)
    monkeypatch.setattr(checks, "find_python", lambda version: f"/opt/{version}")
    assert checks.torch_environment() == {"GPUCI_TORCH_PYTHON": "/made/bin/python"}
    assert asked == [(checks.ROOT, ".venvs/torch", "requirements-torch.txt", "/opt/(3, 11)", False)]


@pytest.mark.parametrize(
    ("python", "reason"),
    [(None, "no Python 3.11 on PATH, which torch is tested with"), ("/bin/python", "pip can't install")],
    ids=["no Python", "no network"],
)
def test_without_torch_its_tests_get_the_reason(
    python: str | None,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fails(*_args: object, **_more: object) -> Path:
        raise GpuciError("pip can't install", why="no network", then="set HTTPS_PROXY")

    monkeypatch.setattr(checks, "find_python", lambda version: python)
    monkeypatch.setattr(environment, "ensure", fails)
    assert checks.torch_environment() == {"GPUCI_NO_TORCH": reason}
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ["tests"]),
        (["-k", "no such path"], ["tests"]),
        (["tests/unit/planning", "-x"], []),
        (["tests/unit/test_checks.py::test_count"], []),
    ],
    ids=["none", "expression", "directory", "test"],
)
def test_a_path_replaces_the_default_ones_wherever_one_stands(
    arguments: list[str], expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert checks.missing_paths(arguments, ["tests"]) == expected


@pytest.mark.parametrize(
    ("code", "expected"), [("pass", (1, 0)), ("raise SystemExit(3)", (0, 1))], ids=["0", "3"]
)
def test_a_check_counts_as_one_test(
    code: str, expected: tuple[int, int], capfd: pytest.CaptureFixture[str]
) -> None:
    outcome = checks.run_check("name", [sys.executable, "-c", f"print('said'); {code}"], {})
    assert (outcome.passed, outcome.failed) == expected
    assert ("said\n" in capfd.readouterr().out) == bool(outcome.failed)


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (b"#!/bin/sh\n", True),
        (b"#!/usr/bin/env bash\n", True),
        (b"#!/usr/bin/env python3\n", False),
        (b"", False),
        (b"\x7fELF\0\0", False),
    ],
    ids=["sh", "bash", "python", "empty", "binary"],
)
def test_is_shell(tmp_path: Path, first: bytes, expected: bool) -> None:
    (tmp_path / "file").write_bytes(first)
    assert checks.is_shell(tmp_path / "file") == expected


def test_the_shell_files_of_the_repository_are_found() -> None:
    found = {Path(path).relative_to(checks.ROOT).as_posix() for path in checks.shell_files()}
    assert {
        "gpuci",
        "scripts/test",
        "scripts/lock",
        "scripts/find_python.sh",
        ".ci/run",
        "tests/cluster/up",
    } <= found


IGNORE = f"--ignore={checks.BED_TESTS}"


@pytest.mark.parametrize(
    ("arguments", "has_bed", "expected"),
    [
        (["-x", "tests"], False, {"pytest": ["-n", checks.WORKERS, "-x", "tests"]}),
        (["tests/unit"], True, {"pytest": ["-n", checks.WORKERS, "tests/unit"]}),
        (
            ["-x", "tests"],
            True,
            {
                "pytest": ["-n", checks.WORKERS, IGNORE, "-x", "tests"],
                "pytest, cluster": ["-x", str(checks.BED_TESTS)],
            },
        ),
        (
            ["tests/cluster/test_bed.py::test_a", "-k", "x"],
            True,
            {"pytest, cluster": ["-k", "x", "tests/cluster/test_bed.py::test_a"]},
        ),
        (
            ["tests/unit", "tests/cluster"],
            True,
            {"pytest": ["-n", checks.WORKERS, IGNORE, "tests/unit"], "pytest, cluster": ["tests/cluster"]},
        ),
    ],
    ids=["no bed", "not about it", "all", "one of it", "both"],
)
def test_what_uses_the_bed_runs_by_itself(
    arguments: list[str], has_bed: bool, expected: dict[str, list[str]]
) -> None:
    assert checks.pytest_steps(arguments, has_bed) == expected
