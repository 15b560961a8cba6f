"""Each GPU test proves that its devices are the ones it was given, and that no other test uses them.

gpuci tells a test process the name of its node (`GPUCI_NODE`), its worker's name
(`PYTEST_XDIST_WORKER`) and the devices of its slot (`GPUCI_GPUS`, as in the `start` record of the
journal). While a test runs it holds an exclusive lock on each device that it may use. Outside gpuci
nothing is checked.
"""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Iterator

import pytest
import torch

NODE_GPUS = 8
NEEDS = {
    "cpu": 0,
    "gpus_2": 2,
    "require_cuda_2gpu": 2,
    "require_cuda_4gpu": 4,
    "require_cuda_8gpu": 8,
    "serial": NODE_GPUS,
    "sequential": NODE_GPUS,
}
LOCKS = Path(tempfile.gettempdir()) / f"gpuci-example-locks-{os.getuid()}"


def devices_needed(item: pytest.Item) -> int:
    """How many devices the marks of a test ask for; one if they say nothing."""
    return max((NEEDS[mark.name] for mark in item.iter_markers() if mark.name in NEEDS), default=1)


@contextmanager
def own_devices(item: pytest.Item, *, by_worker: bool = False) -> Iterator[None]:
    """Hold the devices of a test as long as it runs; fails if they are not its own.

    `by_worker`: all devices are visible and the test starts at the current one, as it does in
    packages that choose their device by worker number. Otherwise the visible ones are its own.
    """
    if "GPUCI_NODE" not in os.environ:
        yield
        return
    own_worker()
    needed = devices_needed(item)
    devices = visible_devices() if needed == 0 else devices_in_use(by_worker)
    check(devices, needed)
    with ExitStack() as locks:
        for device in devices:
            locks.enter_context(locked(device, item.nodeid))
        yield


def no_devices() -> None:
    """Fail if a test of the cpu pool sees a device."""
    if "GPUCI_NODE" in os.environ:
        own_worker()
        check(visible_devices(), needed=0)


def own_worker() -> None:
    """Fail if the worker's number is none of the node's, or its device has another number.

    A replacement for a worker that crashed may get a new number, or a device by it. Whoever finds
    a device by the number would then take another worker's, or skip for want of one.
    """
    if "GPUCI_NODE" not in os.environ:
        return
    name, count = os.environ["PYTEST_XDIST_WORKER"], int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    workers = [f"gw{number}" for number in range(count)]
    if name not in workers:
        pytest.fail(f"worker {name} is none of the {count} of this node", pytrace=False)
    first, own = granted_devices()[:1], torch.cuda.MACHINE[workers.index(name) % NODE_GPUS]
    if first and first[0] in torch.cuda.MACHINE and first[0] != own:
        pytest.fail(f"worker {name} belongs to device {own}, its slot has {first[0]}", pytrace=False)


def visible_devices() -> tuple[str, ...]:
    return _ids(os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(torch.cuda.MACHINE)))


def granted_devices() -> tuple[str, ...]:
    return _ids(os.environ.get("GPUCI_GPUS", ""))


def devices_in_use(by_worker: bool) -> tuple[str, ...]:
    """Return the ids of the devices that the running test may use."""
    visible = visible_devices()
    if not by_worker or not visible:
        return visible
    first = torch.cuda.current_device()
    return visible[first : first + len(granted_devices())]


def check(devices: tuple[str, ...], needed: int) -> None:
    """Compare the devices in use with the ones granted and the number needed."""
    granted = granted_devices()
    if devices != granted:
        pytest.fail(f"the test uses the devices {devices}, its slot has {granted}", pytrace=False)
    if needed == 0 and devices:
        pytest.fail(f"a cpu test sees the devices {devices}", pytrace=False)
    if len(devices) < needed:
        pytest.fail(f"the test needs {needed} devices, its slot has {granted}", pytrace=False)


@contextmanager
def locked(device: str, holder: str) -> Iterator[None]:
    """Hold the exclusive lock of a device; fails with the name of the other holder if there is one.

    The lock ends with the process, however that ends. The files stay: removing one would race.
    """
    LOCKS.mkdir(exist_ok=True)
    name = re.sub(r"[^A-Za-z0-9.-]", "_", "{}-{}".format(os.environ["GPUCI_NODE"], device))
    with open(LOCKS / name, "a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            pytest.fail(f"device {device} is in use by {file.read()}", pytrace=False)
        file.truncate(0)
        file.write(holder)
        file.flush()
        yield


def _ids(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())
