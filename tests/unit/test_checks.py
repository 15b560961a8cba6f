"""scripts/test's own arithmetic: what it counts and what it calls a failure."""

import sys
from pathlib import Path

import pytest

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
    ids=["none", "quick", "later", "no-abbreviation"],
)
def test_flags_and_arguments_for_pytest(arguments: list[str], quick: bool, for_pytest: list[str]) -> None:
    options, rest = checks.parse(arguments)
    assert (options.quick, rest) == (quick, for_pytest)
    assert options.torch == ("--torch" in arguments)


@pytest.mark.parametrize(
    ("quick", "torch", "expected"),
    [
        (False, False, ["tests"]),
        (False, True, ["tests"]),
        (True, False, ["tests/unit", "tests/meta"]),
        (True, True, ["tests/unit", "tests/meta", "tests/torch"]),
    ],
)
def test_which_directories(quick: bool, torch: bool, expected: list[str]) -> None:
    assert checks.directories(quick, torch) == expected


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
    assert {"gpuci", "scripts/test", "scripts/lock", "scripts/find_python.sh", ".ci/run"} <= found
