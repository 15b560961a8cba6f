"""What a test process is told: the file that `worker.main` reads, and its environment. Pure.

Runs on the compute node (Python >= 3.8, standard library only).
"""

from typing import Any, Dict

from gpuci_node.process import Process


def worker(job: Dict[str, Any], root: Dict[str, Any], process: Process) -> Dict[str, Any]:
    """The specification of a test process, but for its scratch directory."""
    task, settings = process.task, job["settings"]
    unit = task.unit
    one_by_one = unit["mode"] == "isolated" and settings["isolate"] == "test"
    return {
        "root_dir": job["paths"]["root"],
        "root": root["path"],
        "config_file": root["config_file"],
        "args": root["args"],
        "pytest_args": settings["pytest_args"],
        "pythonpath": settings["pythonpath"],
        "markers": job["markers"],
        "event": job["event"],
        "file": unit["file"],
        "select": unit["select"],
        "only": task.only,
        "timeout": unit["timeout_seconds"],
        "limit": 1 if one_by_one else None,
        "gpus": list(process.slot.gpus),
        "job_gpus": job["node"]["gpus"],
        "alone": task.alone,
        "isolation": "mask" if unit["mode"] == "cpu" else root["gpu_isolation"],
        "mask_from_start": task.mask_from_start,
    }


def environment(job: Dict[str, Any], process: Process, workers: int) -> Dict[str, str]:
    """What differs from the environment of the job itself."""
    own = list(process.slot.gpus)
    masked = process.task.mask_from_start or process.task.unit["mode"] == "cpu"
    return {
        **job["settings"]["env"],
        "CUDA_VISIBLE_DEVICES": ",".join(own if masked else job["node"]["gpus"]),
        "GPUCI_NODE": job["node"]["name"],
        "GPUCI_GPUS": ",".join(own),
        "PYTEST_XDIST_WORKER": process.slot.name,
        "PYTEST_XDIST_WORKER_COUNT": str(workers),
        "PYTEST_XDIST_TESTRUNUID": job["run"],
    }
