"""What a job says of itself: the first record of its journal, and its verdict. Pure.

Runs on the compute node (Python >= 3.8, standard library only).
"""

from typing import Any, Dict, Iterable, NamedTuple, Optional

from gpuci_node import contract

Json = Dict[str, Any]


class Judged(NamedTuple):
    """A verdict and why; with a `fault` this node is to blame, and not what ran on it."""

    verdict: str
    reason: str = ""
    fault: str = ""


class Sums(NamedTuple):
    """What a job came to: epoch seconds, GPUs times seconds that were held, the journal's size and hash."""

    started: float
    ended: float
    gpu_seconds: float
    lines: int
    digest: str


def header(job: Json) -> Json:
    """The first record: who runs what, where."""
    node = job["node"]
    return {
        "kind": "job",
        "schema": contract.SCHEMAS["journal"],
        "run": job["run"],
        "shard": job["shard"],
        "try": job["try"],
        "node": node["name"],
        "gpus": node["gpus"],
        "slots": len(node["gpus"]) * node["workers_per_gpu"] or node["cpu_workers"],
    }


def of_tests(outcomes: Iterable[str]) -> Judged:
    """The verdict of a job that ran to its end."""
    red = sum(outcome in contract.RED_OUTCOMES for outcome in outcomes)
    return Judged("failed", "red tests: %d" % red) if red else Judged("passed")


def document(job: Json, judged: Judged, outcomes: Iterable[str], sums: Sums) -> Json:
    """verdict.json."""
    node = job["node"]
    fault: Optional[Json] = {"node": node["name"], "reason": judged.fault} if judged.fault else None
    return {
        "schema": contract.SCHEMAS["verdict"],
        "verdict": judged.verdict,
        "exit_code": contract.EXIT_CODES[judged.verdict],
        "reason": judged.reason,
        "fault": fault,
        "counts": contract.count_outcomes(outcomes),
        "node": node["name"],
        "shard": job["shard"],
        "try": job["try"],
        "started": round(sums.started, 3),
        "ended": round(sums.ended, 3),
        "journal": {"lines": sums.lines, "sha256": sums.digest},
        "gpu_seconds": {
            "used": round(sums.gpu_seconds, 3),
            "total": round((sums.ended - sums.started) * len(node["gpus"]), 3),
        },
    }
