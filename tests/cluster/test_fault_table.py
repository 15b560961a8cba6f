"""The fault table's own parts: ledger, table, mutants; what must hold before its rows mean anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.faulting import checks, ledger, main, mutants, table
from tests.cluster.faulting.neighbour import FILES
from tests.cluster.faulting.rows import ROWS

EXPECTED: dict[str, dict[str, Any]] = {
    "a": {"verdict": "passed", "tests": "all"},
    "b:x": {"verdict": ["failed", "passed"], "tests": "part"},
}


def result(row: str = "a", variant: str = "", **changes: Any) -> dict[str, Any]:
    known = {"commit": "c", "mutant": "", "row": row, "variant": variant, "seed": 1, "seconds": 2.0}
    observed = {"verdict": "passed", "tests": "all", **changes.pop("observed", {})}
    return {**known, "planted": "now", "problems": [], "observed": observed, **changes}


@pytest.mark.parametrize(
    ("given", "found"),
    [
        pytest.param(result(), [], id="as expected"),
        pytest.param(result(problems=["p"]), ["p"], id="what is never right is red whatever was expected"),
        pytest.param(
            result(observed={"tests": "none"}), ["tests none, expected all"], id="another value in a column"
        ),
        pytest.param(result("b", "x", observed={"tests": "part"}), [], id="one of several"),
        pytest.param(result("z"), ["no expected column for z"], id="a row that nobody expected"),
    ],
)
def test_a_run_differs_from_its_expected_column(given: dict[str, Any], found: list[str]) -> None:
    assert table.differences(given, EXPECTED) == found


def test_a_table_has_80_columns_and_ends_with_what_is_red() -> None:
    long = result("a" * 60, "b" * 60, planted="a fault")
    lines = table.render([result(), long], EXPECTED).splitlines()
    assert lines[2] == f"{'a':34}{1:5}{1:5}{2.0:9.1f}  passed, all"
    assert max(map(len, lines[:5])) <= 80
    assert lines[5] == "2 runs, 1 as expected"
    assert lines[-1] == f"  no expected column for {'a' * 60}:{'b' * 60}"


def test_a_ledger_goes_on_behind_a_torn_line(tmp_path: Path) -> None:
    book = ledger.Ledger(tmp_path / "results")
    assert book.read() == []
    book.append(result())
    with (tmp_path / "results").open("a") as stream:
        stream.write('{"commit": "c", "row')
    book.append(result(seconds=3.0))
    assert [one["seconds"] for one in book.read()] == [2.0, 3.0]
    assert [one["seconds"] for one in ledger.latest(book.read()).values()] == [3.0]


@pytest.mark.parametrize("name", mutants.MUTANTS)
def test_a_mutant_still_finds_what_it_breaks(name: str, tmp_path: Path) -> None:
    mutants.copy(tmp_path, name)
    assert set(mutants.MUTANTS[name].rows) <= ROWS.keys()


def test_each_row_and_variant_has_an_expected_column() -> None:
    labels = {
        table.label({"row": row.name, "variant": variant})
        for row in ROWS.values()
        for variant in row.variants
    }
    assert main.expected().keys() == labels


def test_each_row_says_what_it_plants() -> None:
    assert [name for name, row in ROWS.items() if not row.plant.__doc__] == []


def test_twenty_repetitions_are_those_of_the_ten_rows_that_race() -> None:
    often = {name for name, row in ROWS.items() if row.times == 20}
    assert often == {
        "master-killed", "session-killed", "runner-killed", "two-runners", "submit-ambiguous",
        "controller-killed", "scancelled", "journal-torn", "link-silent", "cancel-in-delivery",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("::error::M", ["::error::M"]),
        ("  ::set-output name=M::", ["  ::set-output name=M::"]),
        ("x\r::add-mask::M", ["::add-mask::M"]),
        ("x ##[group]M", ["x ##[group]M"]),
        ("│ ::error::M", []),
        ("::stop-commands::t\n::error::M\n::t::\nM", []),
        ("::stop-commands::t\n::t::\n::error::M", ["::error::M"]),
    ],
)
def test_commands_of_tests_are_found_where_the_runner_would_obey(text: str, found: list[str]) -> None:
    assert checks.commands_of_tests(text, "M") == found


def test_the_neighbour_has_one_file_of_each_kind() -> None:
    assert {Path(name).name for name in FILES} >= {"token", "owner.01", "lease", "job.json", "journal.jsonl"}
    assert json.loads(FILES[next(name for name in FILES if name.endswith("job.json"))]) == {}
