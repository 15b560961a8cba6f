"""Whether a node is fit for tests, from what its tools say: texts in, findings out. Pure.

Runs on the compute node (Python >= 3.8, standard library only). The fields are those of
`nvidia-smi --help-query-gpu` and `--help-query-compute-apps`. A tool that fails, hangs or says what can't be
understood condemns no node: that part is "not checked".
"""

import re
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

QUERIES: Mapping[str, str] = {
    "memory": "--query-gpu=index,uuid,pci.bus_id,memory.used",
    "processes": "--query-compute-apps=gpu_uuid,pid,used_gpu_memory,process_name",
    "ECC": "--query-gpu=index,uuid,ecc.errors.uncorrected.volatile.total",
    "retired pages": "--query-gpu=index,uuid,retired_pages.pending",
    "remapped rows": "--query-gpu=index,uuid,remapped_rows.failure",
}
FORMAT = "--format=csv,noheader,nounits"

# Xids that mean the device (NVIDIA, "Xid Errors"): double bit ECC, NVLink, row remapping, off the bus,
# contained and uncontained ECC, GSP. Others (13, 31, 43) are most often the program's.
_DEVICE_XIDS = frozenset({48, 64, 74, 79, 94, 95, 119, 120})
_RECENT_SECONDS = 900.0
_XID = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): (\d+)")
# Exit codes of nvidia-smi that are about the devices, not itself (its manual, "Return value").
_NOT_FOUND = 6
_LOST = 15
# Serves other processes' kernels, and holds little itself.
_HARMLESS = ("nvidia-cuda-mps-server",)

Json = Dict[str, Any]


class Answer(NamedTuple):
    """What a tool said, or why that is not known."""

    text: str
    problem: str = ""
    code: int = 0  # that nvidia-smi left with


class Gpu(NamedTuple):
    """A device of this job; memory in MiB."""

    number: str
    uuid: str
    bus: str
    used: Optional[int]


class App(NamedTuple):
    """A process that computes on a device of this job; memory in MiB."""

    number: str
    pid: int
    used: Optional[int]
    name: str


class Report(NamedTuple):
    """Why the node is not fit (empty: it is), what was not checked, how many of the job's GPUs are there."""

    faults: List[str]
    unchecked: List[str]
    gpus: Optional[int] = None


def before(
    job: Json, answers: Mapping[str, Answer], device_files: int, log: Sequence[str], uptime: float
) -> Report:
    """Judge the devices of a job ({gpus, expect_gpus, memory_mib}) before its tests; the kernel's `log`."""
    if not job["expect_gpus"]:
        return Report([], [])
    if any(name.startswith("MIG-") for name in job["gpus"]):
        return Report([], ["parts of GPUs (MIG)"])
    if "memory" not in answers:
        return _by_files(job, device_files)
    report = Report([], [])
    if any(answer.code == _LOST for answer in answers.values()):
        report.faults.append("nvidia-smi: a GPU has fallen off the bus, or can't be reached")
    gpus = _parsed("memory", answers, lambda text: own_gpus(text, job["gpus"]), report)
    if gpus is None:
        return report
    if len(gpus) < job["expect_gpus"]:
        text = "nvidia-smi knows %d of the %d GPUs of this job"
        report.faults.append(text % (len(gpus), job["expect_gpus"]))
    report.faults.extend(_full(gpus, job["memory_mib"]))
    apps = _parsed("processes", answers, lambda text: own_apps(text, gpus), report) or []
    report.faults.extend("GPU %s is in use by another process, %d (%s)" % _who(app) for app in apps)
    for name, meaning in _COUNTERS.items():
        report.faults.extend(_parsed(name, answers, _Bad(gpus, meaning).read, report) or [])
    report.faults.extend(xids(log, gpus, uptime - _RECENT_SECONDS, devices_only=True))
    return report._replace(gpus=len(gpus))


class Rest(NamedTuple):
    """What is left on the devices after the tests, and the Xids that came meanwhile; in words."""

    left: List[str]
    xids: List[str]


def after(
    job: Json, answers: Mapping[str, Answer], own: Callable[[int], bool], log: Sequence[str], since: float
) -> Rest:
    """Look at the devices of a job after its tests; `own` tells this user's processes by pid."""
    report = Report([], [])
    gpus = _parsed("memory", answers, lambda text: own_gpus(text, job["gpus"]), report) or []
    apps = _parsed("processes", answers, lambda text: own_apps(text, gpus), report) or []
    whose = {True: "of this user", False: "of another user"}
    left = ["GPU %s: process %d (%s)" % _who(app) + " " + whose[own(app.pid)] for app in apps]
    return Rest(left + _full(gpus, job["memory_mib"]), xids(log, gpus, since, devices_only=False))


def _by_files(job: Json, device_files: int) -> Report:
    """Without nvidia-smi the device files are counted, if the node has NVIDIA's at all."""
    if not device_files:
        return Report([], ["GPUs (neither nvidia-smi nor NVIDIA's device files are here)"])
    if device_files < job["expect_gpus"]:
        text = "the node has %d NVIDIA device files, this job was to get %d GPUs"
        return Report([text % (device_files, job["expect_gpus"])], [])
    return Report([], ["memory, processes and errors of GPUs (no nvidia-smi)"], job["expect_gpus"])


def _parsed(name: str, answers: Mapping[str, Answer], parse: Callable[[str], Any], report: Report) -> Any:
    """What an answer means, None if it means nothing; that is added to the report."""
    answer = answers.get(name, Answer("", "not asked"))
    problem = answer.problem
    if not problem or (answer.code == _NOT_FOUND and _is_none(answer.text)):
        try:
            return parse(answer.text)
        except (ValueError, IndexError):
            problem = "an answer of nvidia-smi that can't be read"
    report.unchecked.append("%s (%s)" % (name, problem))
    return None


def _rows(text: str, columns: int) -> List[List[str]]:
    rows = [[cell.strip() for cell in line.split(",", columns - 1)] for line in text.splitlines() if line]
    if any(len(row) != columns for row in rows):
        raise ValueError("a row of another length")
    return rows


def _number(text: str) -> Optional[int]:
    """A count; `[N/A]` and `[Not Supported]` are None. Raises ValueError."""
    if text.strip("[]").upper() in ("N/A", "NOT SUPPORTED", "UNKNOWN ERROR", "NO", "YES"):
        return {"NO": 0, "YES": 1}.get(text.strip("[]").upper())
    return int(text)


def _is_none(text: str) -> bool:
    return text.strip() == "No devices were found"


def own_gpus(text: str, ids: Sequence[str]) -> List[Gpu]:
    """The devices of the job among those of the node; raises ValueError.

    In a cgroup of its own a job sees its devices only, counted from 0; without one it sees all of the node.
    """
    if _is_none(text):
        return []
    gpus = [Gpu(number, uuid, bus, _number(used)) for number, uuid, bus, used in _rows(text, 4)]
    if any(not gpu.number.isdigit() for gpu in gpus):
        raise ValueError("an index that is no number")
    if len(gpus) == len(ids):
        return gpus
    return [gpu for gpu in gpus if gpu.number in ids or gpu.uuid in ids]


def own_apps(text: str, gpus: Sequence[Gpu]) -> List[App]:
    """What computes on these devices; raises ValueError."""
    numbers = {gpu.uuid: gpu.number for gpu in gpus}
    rows = [row for row in _rows(text, 4) if row[0] in numbers]
    apps = [App(numbers[uuid], int(pid), _number(used), name) for uuid, pid, used, name in rows]
    return [app for app in apps if not app.name.endswith(_HARMLESS)]


def _who(app: App) -> Tuple[str, int, str]:
    return app.number, app.pid, app.name


def _full(gpus: Iterable[Gpu], most: int) -> List[str]:
    over = [gpu for gpu in gpus if gpu.used is not None and gpu.used > most]
    return ["GPU %s: %d MiB of memory are in use" % (gpu.number, gpu.used or 0) for gpu in over]


# What is wrong when a counter is not 0.
_COUNTERS: Mapping[str, str] = {
    "ECC": "%d uncorrected memory errors",
    "retired pages": "pages of memory wait to be retired (%d)",
    "remapped rows": "remapping of memory rows failed (%d)",
}


class _Bad(NamedTuple):
    """Reads an answer of counters: what is wrong with these devices."""

    gpus: Sequence[Gpu]
    meaning: str

    def read(self, text: str) -> List[str]:
        """What is wrong, in words; raises ValueError."""
        ours = {gpu.uuid for gpu in self.gpus}
        counts = [(number, _number(count)) for number, uuid, count in _rows(text, 3) if uuid in ours]
        if len(counts) != len(ours):
            raise ValueError("not about these devices")
        return ["GPU %s: %s" % (number, self.meaning % count) for number, count in counts if count]


def xids(lines: Iterable[str], gpus: Iterable[Gpu], since: float, devices_only: bool) -> List[str]:
    """The Xids of these devices in /dev/kmsg since that time (seconds since boot), in words, each once.

    A line is `priority,number,microseconds,flags;text` (kernel's Documentation/ABI/testing/dev-kmsg).
    """
    numbers = {_slot(gpu.bus): gpu.number for gpu in gpus}
    found = []
    for line in lines:
        head, _, text = line.partition(";")
        match, fields = _XID.search(text), head.split(",")
        if match is None or len(fields) < 3 or not fields[2].isdigit() or int(fields[2]) / 1e6 < since:
            continue
        is_device = int(match.group(2)) in _DEVICE_XIDS
        if _slot(match.group(1)) in numbers and (is_device or not devices_only):
            found.append("GPU %s: Xid %s" % (numbers[_slot(match.group(1))], match.group(2)))
    return list(dict.fromkeys(found))


def _slot(bus: str) -> str:
    """Bus and device of a PCI address: the driver and its tools write the domain in different lengths."""
    return ":".join(bus.lower().partition(".")[0].split(":")[-2:])
