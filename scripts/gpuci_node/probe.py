"""The node's own tools and disks are asked: `health`, one JSON document in, one out.

Runs on the compute node (Python >= 3.8, standard library only), as a process of its own: a driver that hangs
can't be waited for, and its tools can't always be killed. The keeper judges by the exit status.

    in   {"when": "before" | "after", "gpus", "expect_gpus", "memory_mib", "free_mib", "seconds", "since",
          "directories": {name: path}}
    out  before: {"faults": [text], "unchecked": [text], "gpus": number or null, "uptime": seconds}
         after: {"left": [text], "xids": [text]}
"""

import json
import os
import re
import subprocess
import sys
import time
from typing import Any, Dict, List

from gpuci_node import health

_BLOCK = b"gpuci" * 2048
_LOG_BYTES = 1 << 20

Json = Dict[str, Any]


def main() -> int:
    """Answer the document on standard input."""
    asked = json.load(sys.stdin)
    answers = ask(health.QUERIES, asked["seconds"]) if asked["expect_gpus"] else {}
    log, uptime = _kernel_log(), time.clock_gettime(time.CLOCK_BOOTTIME)
    if asked["when"] == "after":
        found: Json = health.after(asked, answers, _is_own, log, asked["since"])._asdict()
    else:
        report = health.before(asked, answers, device_files(), log, uptime)
        disks = [disk_fault(name, path, asked["free_mib"]) for name, path in asked["directories"].items()]
        faults = [*filter(None, disks), *report.faults]
        found = {**report._asdict(), "faults": faults, "uptime": uptime}
    sys.stdout.write(json.dumps(found))
    sys.stdout.flush()
    os._exit(0)  # a tool that can't be killed is not waited for


def ask(queries: Any, seconds: float) -> Dict[str, health.Answer]:
    """Run all queries at once; empty without nvidia-smi."""
    end = time.monotonic() + seconds
    running = {}
    for name, query in queries.items():
        try:
            running[name] = subprocess.Popen(
                ["nvidia-smi", query, health.FORMAT],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError:
            return {}
    return {name: _answer(process, end - time.monotonic()) for name, process in running.items()}


def _answer(process: "subprocess.Popen[bytes]", seconds: float) -> health.Answer:
    try:
        out, _ = process.communicate(timeout=max(0.0, seconds))
    except subprocess.TimeoutExpired:
        process.kill()
        return health.Answer("", "nvidia-smi did not end in time")
    text, code = out.decode("utf-8", "replace"), process.returncode
    return health.Answer(text, "nvidia-smi left with exit code %d" % code if code else "", code)


def device_files() -> int:
    """The number of NVIDIA's device files; devices of others, or pretended ones, have none."""
    return sum(re.fullmatch("nvidia[0-9]+", name) is not None for name in os.listdir("/dev"))


def root_of_files() -> str:
    """Tells apart who sees other files than we: the mount namespace, which each container has for itself."""
    try:
        return os.readlink("/proc/self/ns/mnt")
    except OSError:
        return ""


def disk_fault(name: str, path: str, free_mib: int) -> str:
    """Write, sync, read and delete; what went wrong, or ""."""
    file = os.path.join(path, ".gpuci-health-%d" % os.getpid())
    try:
        with open(file, "xb+") as stream:
            stream.write(_BLOCK)
            stream.flush()
            os.fsync(stream.fileno())
            stream.seek(0)
            whole = stream.read() == _BLOCK
        os.unlink(file)
    except OSError as error:
        return "%s %s can't be written: %s" % (name, path, error.strerror or error)
    if not whole:
        return "%s %s does not give back what was written" % (name, path)
    stat = os.statvfs(path)
    free = stat.f_bavail * stat.f_frsize >> 20
    if name == "scratch" and free < free_mib:
        return "scratch %s has %d MiB left, %d are needed" % (path, free, free_mib)
    return ""


def _kernel_log() -> List[str]:
    """The kernel's messages where a user may read them; most often none."""
    parts: List[bytes] = []
    try:
        fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return []
    try:
        while sum(len(part) for part in parts) < _LOG_BYTES:
            parts.append(os.read(fd, 8192))  # one message
    except OSError:  # EAGAIN: that was the last
        pass
    finally:
        os.close(fd)
    return b"".join(parts).decode("utf-8", "replace").splitlines()


def _is_own(pid: int) -> bool:
    try:
        return os.stat("/proc/%d" % pid).st_uid == os.getuid()
    except OSError:
        return False
