"""What the real marks of an item ask of the node.

Runs in the test process (Python >= 3.8, standard library only). Pure.
"""

import re
from fnmatch import fnmatchcase
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

# A skip reason with one of these words may be for lack of GPUs: such a test runs again with all of them.
_GPU_WORDS = re.compile(r"(?i)(gpu|cuda|nccl|device|accelerator|world.?size)")


class Need(NamedTuple):
    """What an item needs: GPUs (None: no mark says), the node for itself, not to run at all (`skip`: why)."""

    gpus: Optional[int]
    alone: bool
    skip: Optional[str]
    because: str


def need(marks: Iterable[str], rules: Sequence[Dict[str, Any]], event: str) -> Need:
    """Combine the marker rules (`{name, gpus, mode, when}`) that fit the names of an item's marks.

    The most demanding number of GPUs wins; `because` names the mark that decided it.
    """
    gpus: Optional[int] = None
    alone = False
    skip = None
    because = ""
    for mark, rule in _fitting(marks, rules):
        if rule.get("when") == "schedule" and event != "schedule":
            skip = "mark %s: on schedule only" % mark
        if rule.get("mode") == "skip":
            skip = "mark %s" % mark
        if rule.get("mode") == "serial":
            alone, because = True, because or mark
        if rule.get("gpus") is not None and (gpus is None or rule["gpus"] > gpus):
            gpus, because = rule["gpus"], mark
    return Need(gpus, alone, skip, because)


def _fitting(marks: Iterable[str], rules: Sequence[Dict[str, Any]]) -> List[Tuple[str, Dict[str, Any]]]:
    return [(mark, rule) for mark in marks for rule in rules if fnmatchcase(mark, rule["name"])]


def is_masked_later(spec: Dict[str, Any]) -> bool:
    """Whether a process sees fewer devices when it runs tests than when it collected them."""
    masks = spec["isolation"] == "mask" and len(spec["gpus"]) < len(spec["job_gpus"])
    return masks and not spec["mask_from_start"]


def skipped_for_lack_of_gpus(record: Dict[str, Any], by_mark: bool, spec: Dict[str, Any]) -> bool:
    """Whether a test (its `end` record) skipped because its process sees fewer GPUs than the node has."""
    if record["outcome"] != "skipped" or spec["isolation"] != "mask":
        return False
    if len(spec["gpus"]) >= len(spec["job_gpus"]) or not is_gpu_skip(record["message"]):
        return False
    # A condition that collection evaluated saw all devices, unless they were masked by then.
    return bool(spec["mask_from_start"]) or not by_mark


def is_gpu_skip(reason: str) -> bool:
    """Whether a skip reason speaks of GPUs."""
    return _GPU_WORDS.search(reason) is not None
