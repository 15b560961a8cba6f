"""What must be true after any run, whatever was done to it; and what is compared with the expected column."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.cluster.faulting.scene import TRIES, Scene
from tests.cluster.faulting.trees import Seen

from gpuci.results.ownership import shard_folder
from gpuci_node.contract import EXIT_CODES

# A test that ended in the last moments of a job: its record may not have reached the journal.
MOMENT_SECONDS = 1.5


def observed(scene: Scene, report: Mapping[str, Any] | None) -> dict[str, Any]:
    """The columns of a run: verdict, exit code, which tests have a result, tries, what came of the log."""
    shards = report["shards"] if report else [{"tries": 0}]
    return {
        "verdict": report["verdict"] if report else None,
        "exit": scene.runner.code,
        "tests": tests_column(scene.planned, report["tests"] if report else []),
        "tries": sum(shard["tries"] for shard in shards),
        "log": log_column(scene),
        **({} if report else {"node": node_column(scene)}),
    }


def node_column(scene: Scene) -> str:
    """The verdict that the node left when there is nobody to report it; empty if it left none."""
    try:
        document = json.loads((scene.directory() / "out/verdict.json").read_bytes())
    except (OSError, ValueError):
        return ""
    return str(document["verdict"])


def tests_column(planned: Sequence[str], tests: Sequence[Mapping[str, Any]]) -> str:
    """all: each has a result. part: some are not_finished. none: all are."""
    finished = [test for test in tests if test["outcome"] != "not_finished"]
    return "none" if not finished else "all" if len(finished) == len(planned) else "part"


def log_column(scene: Scene) -> str:
    """The log here against the cluster's, all tries: equal, part (a beginning of it), none, WRONG."""
    words = []
    for number, name in zip(TRIES, scene.names(), strict=True):
        here = scene.runner.out / shard_folder(1, number) / "log"
        there = scene.watch.log(name)
        if there is None and not here.exists():
            continue
        words.append(_compared(here.read_bytes() if here.exists() else b"", there or b""))
    order = ("WRONG", "part", "none", "equal")
    return min(words, key=order.index, default="none")


def _compared(here: bytes, there: bytes) -> str:
    if here == there:
        return "equal"
    if not here:
        return "none"
    return "part" if there.startswith(here) else "WRONG"


def problems(scene: Scene, report: Mapping[str, Any] | None) -> list[str]:
    """What is never right."""
    return [
        *scene.notes,
        *_report(scene, report),
        *_twice(scene),
        *_submitted(scene),
        *(f"secret: {text}" for text in _secrets(scene)),
    ]


def _report(scene: Scene, report: Mapping[str, Any] | None) -> Iterator[str]:
    if report is None:
        return
    if report["verdict"] in EXIT_CODES and EXIT_CODES[report["verdict"]] != scene.runner.code:
        yield f"report: verdict {report['verdict']} with exit code {scene.runner.code}"
    counts = Counter(test["nodeid"] for test in report["tests"])
    for nodeid in sorted({*scene.planned, *counts}):
        if counts[nodeid] != 1 or nodeid not in scene.planned:
            yield f"report: {nodeid} is there {counts[nodeid]} times"
    yield from _wrong_outcomes(scene, report["tests"])


def _wrong_outcomes(scene: Scene, tests: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """All tests pass if they run to their end. What ended and is not reported is lost."""
    ends = {line.nodeid: line for line in scene.seen("end")}
    last: dict[str, float] = {}
    for line in (*scene.seen("start"), *scene.seen("end")):
        last[line.job] = max(last.get(line.job, 0.0), line.time)
    for test in tests:
        nodeid, outcome = test["nodeid"], test["outcome"]
        end = ends.get(nodeid)
        if outcome == "passed" and end is None:
            yield f"report: {nodeid} passed, and never ended"
        elif outcome == "not_finished" and end is not None and last[end.job] - end.time > MOMENT_SECONDS:
            if "results" not in scene.leaves:
                yield f"report: {nodeid} ended, and its result is lost"
        elif outcome not in ("passed", "not_finished") and not _was_in_flight(scene, nodeid):
            yield f"report: {nodeid} is {outcome}"


def _was_in_flight(scene: Scene, nodeid: str) -> bool:
    """Whether it began more often than it ended: then what ended its job can be its outcome, too."""
    return len(_of(scene.seen("start"), nodeid)) > len(_of(scene.seen("end"), nodeid))


def _of(lines: Sequence[Seen], nodeid: str) -> list[Seen]:
    return [line for line in lines if line.nodeid == nodeid]


def _twice(scene: Scene) -> Iterator[str]:
    """A test runs again only if it was in flight when its job died."""
    last: dict[str, float] = {}
    for line in (*scene.seen("start"), *scene.seen("end")):
        last[line.job] = max(last.get(line.job, 0.0), line.time)
    for nodeid in scene.planned:
        starts = _of(scene.seen("start"), nodeid)
        jobs = [line.job for line in starts]
        if len(set(jobs)) < len(jobs):
            yield f"twice: {nodeid} ran twice in one job"
        ended = [
            line for line in _of(scene.seen("end"), nodeid) if last[line.job] - line.time > MOMENT_SECONDS
        ]
        if len(starts) > 1 and ended and any(line.time > ended[0].time for line in starts):
            yield f"twice: {nodeid} had ended in job {ended[0].job}, and ran again"
        if len(starts) > len(TRIES):
            yield f"twice: {nodeid} ran {len(starts)} times"


def _submitted(scene: Scene) -> Iterator[str]:
    jobs = Counter(job.name for job in scene.jobs() or [])
    for name, count in jobs.items():
        if count > 1:
            yield f"submitted: {count} jobs are called {name}"


def _secrets(scene: Scene) -> Iterator[str]:
    """Nonces of logs and keys are printed nowhere; private files are private."""
    key = (scene.place / "keys/ci").read_text().splitlines()[2]
    texts = [runner.said for runner in scene.runners]
    if any(token in text for token in scene.watch.tokens for text in texts):
        yield "the nonce of the log was printed"
    files = [path for runner in scene.runners for path in runner.out.rglob("*") if path.is_file()]
    if any(key in text for text in (*texts, *map(_text, files))):
        yield "the key was printed"
    yield from (f"{name} is open to others" for name in sorted(scene.watch.open_to_others))
    for runner in scene.runners:
        left = [path for path in (runner.out.parent / "t").rglob("*") if key in _text(path)]
        yield from (f"{path.name} is left with the key in it" for path in left)


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.is_file() and path.stat().st_size < 1 << 20 else ""


_COMMAND = re.compile(
    r"(?m)(?:^|[\r\x0b\x0c\x85\u2028])\s*::(?!group|endgroup|stop-commands|[0-9a-f]{16,}::)|##\["
)


def commands_of_tests(text: str, mark: str) -> list[str]:
    """Workflow commands with the mark of a test in them, outside of what stopped them."""
    found, stopped = [], ""
    for line in re.split(r"[\n\r]", text):
        stop = re.match(r"\s*::stop-commands::(\S+)", line)
        if stopped:
            stopped = "" if line.strip() == f"::{stopped}::" else stopped
        elif stop:
            stopped = stop[1]
        elif mark in line and _COMMAND.search(line):
            found.append(line)
    return found
