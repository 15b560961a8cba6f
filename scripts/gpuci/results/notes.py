"""Why processes of tests were not forked, or a file ran in one of its own: slower, but no warning. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gpuci.model import ShardRun

TOPICS = frozenset({"not_forked", "own_process"})


def find_notes(runs: Sequence[ShardRun]) -> tuple[str, ...]:
    """One line per root or file, equal ones of several shards once; without escaping: untrusted text."""
    lines = (
        _line(record.get("root", ""), record["text"])
        for run in sorted(runs, key=lambda run: (run.index, run.attempt))
        for record in run.records
        if record["kind"] == "note" and record.get("topic") in TOPICS and record.get("level") == "info"
    )
    return tuple(dict.fromkeys(lines))


def _line(root: str, text: str) -> str:
    """The node names files from the tree's top; what names none is about the root as a whole."""
    return text if root in ("", ".") or text.startswith(f"{root}/") else f"{root}: {text}"
