#!/usr/bin/python3 -IS
"""Stands for nvidia-smi on the bed's nodes: eight H100s, and what a test plants in DIR/faults/NODE/.

    missing   indexes of GPUs that the driver does not see
    memory    lines `INDEX MIB`: memory in use
    process   lines `INDEX PID NAME MIB`: processes on a GPU
    ecc       lines `INDEX COUNT`: uncorrected errors since the driver was loaded
    hang      never answers
    exit      fails with this code
    rubbish   prints this text instead

In a container, where the bed's devices are not, it shows those of /dev. Standard library only.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

TOP = "@TOP@"  # the bed's directory, filled in by `up`
TOTAL_MIB = 81559
UUID = "GPU-{:08x}-0000-4000-8000-000000000000"


def node() -> str:
    """The node's name: of the folder that holds this program, or as Slurm says it."""
    folder = Path(sys.argv[0]).absolute().parent.parent
    name = folder.name if folder.parent == Path(TOP, "nodes") else os.environ.get("SLURMD_NODENAME", "")
    return name or "-"


def fault(name: str) -> list[list[str]] | None:
    """Words of each line of a planted fault, None without it."""
    try:
        text = Path(TOP, "faults", node(), name).read_text()
    except OSError:
        return None
    return [line.split() for line in text.splitlines() if line.split()]


def numbers(name: str) -> dict[int, int]:
    """{index: number} of a fault with lines `INDEX NUMBER`."""
    return {int(words[0]): int(words[1]) for words in fault(name) or []}


def present() -> list[int]:
    """Indexes of the GPUs that the driver sees."""
    bed = Path(TOP, "dev")
    devices = (bed if bed.is_dir() else Path("/dev")).glob("nvidia[0-9]*")
    gone = {int(word) for words in fault("missing") or [] for word in words}
    return sorted({int(path.name[len("nvidia") :]) for path in devices} - gone)


def gpus() -> Iterator[dict[str, Any]]:
    """One dict a GPU, by the names of --query-gpu."""
    used, ecc = numbers("memory"), numbers("ecc")
    uncorrected = "ecc.errors.uncorrected.volatile.total"
    for index in present():
        memory = used.get(index, 0)
        yield {
            "index": index,
            "uuid": UUID.format(index),
            "gpu_uuid": UUID.format(index),
            "name": "NVIDIA H100 80GB HBM3",
            "gpu_name": "NVIDIA H100 80GB HBM3",
            "count": len(present()),
            "driver_version": "550.54.15",
            "pci.bus_id": f"00000000:{index:02X}:00.0",
            "memory.total": f"{TOTAL_MIB} MiB",
            "memory.used": f"{memory} MiB",
            "memory.free": f"{TOTAL_MIB - memory} MiB",
            "utilization.gpu": "0 %",
            "ecc.mode.current": "Enabled",
            uncorrected: ecc.get(index, 0),
        }


def processes() -> Iterator[dict[str, str]]:
    """One dict a process, by the names of --query-compute-apps."""
    for index, pid, name, memory in fault("process") or []:
        if int(index) in present():
            yield {
                "gpu_uuid": UUID.format(int(index)),
                "gpu_name": "NVIDIA H100 80GB HBM3",
                "pid": pid,
                "process_name": name,
                "name": name,
                "used_gpu_memory": f"{memory} MiB",
                "used_memory": f"{memory} MiB",
            }


def table(rows: Iterable[dict[str, Any]], fields: list[str], known: Iterable[str], style: list[str]) -> int:
    """The lines of a query, or the complaint about a field (exit code 2)."""
    for field in fields:
        if field not in known:
            print(f'Field "{field}" is not a valid field to query.\n')
            return 2
    units = "nounits" not in style
    if "noheader" not in style:
        print(", ".join(fields))
    for row in rows:
        values = [str(row[field]) for field in fields]
        print(", ".join(value if units else value.replace(" MiB", "").replace(" %", "") for value in values))
    return 0


PROCESS_FIELDS = ("gpu_uuid", "gpu_name", "pid", "process_name", "name", "used_gpu_memory", "used_memory")


def answer(arguments: list[str]) -> int:
    """Do what the arguments ask for; return the exit code."""
    options = dict(argument.partition("=")[::2] for argument in arguments)
    style = options.get("--format", "").split(",")
    if not present():
        print("No devices were found")
        return 6
    if "--query-gpu" in options:
        rows = list(gpus())
        return table(rows, options["--query-gpu"].split(","), rows[0], style)
    if "--query-compute-apps" in options:
        return table(processes(), options["--query-compute-apps"].split(","), PROCESS_FIELDS, style)
    for gpu in gpus():
        print("GPU {index}: {name} (UUID: {uuid})".format(**gpu))
    return 0


def main() -> int:
    """The faults of the program as a whole come first."""
    if fault("hang") is not None:
        signal.pause()
    code = fault("exit")
    if code is not None:
        print("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.")
        return int(code[0][0])
    rubbish = fault("rubbish")
    if rubbish is not None:
        sys.stdout.buffer.write(Path(TOP, "faults", node(), "rubbish").read_bytes())
        return 0
    return answer(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
