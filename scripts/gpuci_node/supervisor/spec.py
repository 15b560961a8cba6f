"""What a process is told: the file that `worker.main` reads, and its environment. Pure.

Runs on the compute node (Python >= 3.8, standard library only).
"""

import posixpath
from typing import Any, Dict, List, Optional

from gpuci_node import contract
from gpuci_node.supervisor.crew import Crew
from gpuci_node.supervisor.process import Process, Task

NO_DATA = 5  # exit code of a merge that found nothing to merge

Json = Dict[str, Any]


def base(job: Json) -> Json:
    """The specification of the warm parent of all, but for its scratch directory."""
    return {
        "role": "base",
        "root_dir": job["paths"]["root"],
        "root": ".",
        "pythonpath": job["settings"]["pythonpath"],
        "preload": job["settings"]["preload"],
    }


def template(job: Json, root: Json, files: List[str]) -> Json:
    """The specification of a process that collects these files and forks workers for them."""
    seat = {"gpus": [], "alone": False, "mask_from_start": False}
    return {**_session(job, root, files), **seat, "role": "template", "unit": None, "more": True}


def worker(job: Json, root: Json, process: Process, files: List[str], first: Optional[Json]) -> Json:
    """The specification of a process that runs units, the unit `first` to begin with."""
    return {
        **_session(job, root, files),
        "role": "worker",
        "unit": first,
        "more": process.shared,
        "gpus": list(process.slot.gpus),
        "alone": process.first.task.alone,
        "mask_from_start": process.mask_from_start,
    }


def xdist(job: Json, root: Json, crew: Crew) -> Json:
    """The specification of a process that runs units by pytest-xdist, a worker for each seat."""
    return {
        **_session(job, root, crew.files),
        "role": "xdist",
        "run": job["run"],
        "seats": [list(slot.gpus) for slot in crew.seats],
        "units": [unit(job, assignment.task) for assignment in crew.assignments.values()],
        "alone": False,
        "mask_from_start": crew.mask_from_start,
    }


def _session(job: Json, root: Json, files: List[str]) -> Json:
    settings = job["settings"]
    no_gpus = not job["node"]["gpus"]
    return {
        "root_dir": job["paths"]["root"],
        "root": root["path"],
        "config_file": root["config_file"],
        "args": root["args"],
        "pytest_args": settings["pytest_args"],
        "pythonpath": settings["pythonpath"],
        "markers": job["markers"],
        "event": job["event"],
        "files": files,
        "job_gpus": job["node"]["gpus"],
        "isolation": "mask" if no_gpus else root["gpu_isolation"],
        "coverage": posixpath.join(job["paths"]["out"], parts(root["path"])),
    }


def merge(job: Json, root: str) -> Json:
    """The specification of a process that merges what pytest-cov measured in a root."""
    out = job["paths"]["out"]
    return {
        "role": "coverage",
        "root_dir": job["paths"]["root"],
        "root": root,
        "pythonpath": job["settings"]["pythonpath"],
        "coverage": posixpath.join(out, parts(root)),
        "data": posixpath.join(out, contract.coverage_file(root)),
    }


def parts(root: str) -> str:
    """Where the test processes of a root leave coverage data, relative to the job's `out`."""
    return posixpath.normpath("coverage/%s/coverage.parts" % root)


def unit(job: Json, task: Task) -> Json:
    """What a worker is told of a task."""
    one_by_one = task.unit["mode"] == "isolated" and job["settings"]["isolate"] == "test"
    return {
        "task": task.sequence,
        "file": task.file,
        "select": task.unit["select"],
        "only": task.only,
        "timeout": task.unit["timeout_seconds"],
        "limit": 1 if one_by_one else None,
    }


def environment(job: Json, workers: int) -> Dict[str, str]:
    """What a process that starts from nothing finds in its environment besides that of the job itself."""
    return {
        **job["settings"]["env"],
        "CUDA_VISIBLE_DEVICES": ",".join(job["node"]["gpus"]),
        "GPUCI_NODE": job["node"]["name"],
        "GPUCI_GPUS": "",
        "PYTEST_XDIST_WORKER": "gw0",
        "PYTEST_XDIST_WORKER_COUNT": str(workers),
        "PYTEST_XDIST_TESTRUNUID": job["run"],
    }


def xdist_environment(job: Json) -> Dict[str, str]:
    """The same for the controller of pytest-xdist, which tells its workers by itself who they are."""
    env = environment(job, 1)
    return {name: value for name, value in env.items() if not name.startswith("PYTEST_XDIST_")}


def seat_environment(process: Process) -> Dict[str, str]:
    """What is set on top of that, or of a parent's environment, for a process that runs tests."""
    own = ",".join(process.slot.gpus)
    masked = {"CUDA_VISIBLE_DEVICES": own} if process.mask_from_start else {}
    return {"GPUCI_GPUS": own, "PYTEST_XDIST_WORKER": process.slot.name, **masked}
