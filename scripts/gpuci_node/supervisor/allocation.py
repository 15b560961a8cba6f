"""A job document made for any node -> one for this node: name, devices, places. Pure.

Runs on the compute node (Python >= 3.8, standard library only). The variables are those of sbatch(1) and of
our batch script.
"""

import posixpath
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

# The first that is set and not empty counts. A step of srun has the last in place of the second.
_DEVICES = ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_GPUS", "GPU_DEVICE_ORDINAL", "SLURM_STEP_GPUS")
_NO_DEVICES = "NoDevFiles"  # Slurm's word for none
_LEAVE_SECONDS = 30.0  # before Slurm's own end, in case its signal does not come

Json = Dict[str, Any]


class Here(NamedTuple):
    """This process: its node's name, its Python, the time (epoch seconds)."""

    host: str
    python: str
    now: float


def complete(job: Json, environ: Mapping[str, str], here: Here) -> Json:
    """Fill in what only the node knows; raises KeyError without GPUCI_SCRATCH."""
    root = job["paths"]["root"] or posixpath.join(environ["GPUCI_SCRATCH"], "tree")
    temporary = posixpath.join(environ["GPUCI_SCRATCH"], "tmp")
    node, settings, is_inside = job["node"], job["settings"], inside(environ)
    pythonpath = [posixpath.join(root, directory) for directory in settings["pythonpath"]]
    return {
        **job,
        "node": {
            **node,
            "name": environ.get("SLURMD_NODENAME") or here.host,
            "gpus": devices(environ)[: node["expect_gpus"]],
        },
        "paths": {**job["paths"], "root": root, "scratch": posixpath.join(temporary, "processes")},
        "settings": {**settings, "pythonpath": pythonpath},
        "python": [here.python] if is_inside else job["python"],
        "link": posixpath.join(temporary, "link"),
        "lease": None if is_inside else job["lease"],  # out of sight there: the batch script watches it
        "lifeline": True,
        "deadline_seconds": _deadline(job["deadline_seconds"], environ, here.now),
    }


def inside(environ: Mapping[str, str]) -> bool:
    """Whether the keeper runs inside the container, because the node has no Python for it."""
    return environ.get("GPUCI_INSIDE") == "1"


def contained(environ: Mapping[str, str]) -> bool:
    """Whether a container's runtime runs below the keeper; the batch script ends that."""
    return environ.get("GPUCI_RUNTIME", "none") != "none" and not inside(environ)


def devices(environ: Mapping[str, str]) -> List[str]:
    """The ids of the job's GPUs: numbers, or UUIDs as NVIDIA's runtime writes them."""
    text = next((environ[name] for name in _DEVICES if environ.get(name)), "")
    ids = [part.strip() for part in text.split(",")]
    return list(dict.fromkeys(part for part in ids if part and part != _NO_DEVICES))


def fault(job: Json) -> str:
    """What is wrong with the allocation of a completed job, or ""."""
    given, wanted = len(job["node"]["gpus"]), job["node"]["expect_gpus"]
    return "" if given >= wanted else "Slurm gave this job %d of %d GPUs" % (given, wanted)


def _deadline(seconds: Optional[float], environ: Mapping[str, str], now: float) -> Optional[float]:
    """Seconds until the job ends itself: its own limit, or Slurm's (told since 23.02)."""
    end = environ.get("SLURM_JOB_END_TIME", "")
    if not end.isdigit():
        return seconds
    left = max(1.0, int(end) - now - _LEAVE_SECONDS)
    return left if seconds is None else min(seconds, left)
