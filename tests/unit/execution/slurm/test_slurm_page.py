"""The tables of docs/slurm.md are those of the code."""

from __future__ import annotations

from pathlib import Path

from gpuci.execution.slurm.fate import OF_STATE
from gpuci.execution.slurm.reasons import FOR_EVER
from gpuci_node.contract import VERDICTS

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "slurm.md").read_text("utf-8")


def rows(table: str) -> list[str]:
    """The rows of a table between its comments, without its head."""
    _, _, rest = PAGE.partition(f"<!-- table: {table} -->\n")
    return rest.partition("\n<!-- end -->")[0].split("\n")[2:]


def test_the_reasons_that_do_not_pass() -> None:
    assert rows("waiting") == [
        f"| `{reason}` | `{verdict}` | {words} |" for reason, (verdict, words) in FOR_EVER.items()
    ]


def test_what_becomes_of_a_job_by_its_state() -> None:
    expected = []
    for state, end in OF_STATE.items():
        stand = ", ".join(f"`{verdict}`" for verdict in VERDICTS if verdict in end.stands)
        retry, elsewhere = ("yes" if flag else "no" for flag in (end.retry, end.leave_out))
        expected.append(f"| `{state}` | `{end.verdict}` | {retry} | {elsewhere} | {stand} |")
    assert rows("fate") == expected
