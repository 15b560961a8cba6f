"""What stands in for the public actions that our workflow uses."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.harness.product import CLONE

STAND_INS = Path(__file__).resolve().parents[1] / "stand_ins"
# Only our own ci.yml and release.yml use these, which act doesn't run.
NOT_RUN = {"actions/checkout", "actions/setup-python"}


def locked() -> dict[str, tuple[str, str]]:
    """Action -> (commit, release), from actions.lock."""
    lines = (CLONE / "actions.lock").read_text().splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return {name: (commit, release) for name, commit, release in rows}


def directories() -> dict[str, Path]:
    """`owner/name@commit` -> the directory of its stand-in."""
    return {
        f"{name}@{commit}": STAND_INS / name.partition("/")[2]
        for name, (commit, _) in locked().items()
        if name not in NOT_RUN
    }
