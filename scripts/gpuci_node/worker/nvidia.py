"""What the CUDA driver and NVML know of this process and of those below it, without waking either.

Runs in the test process, inside the container (Python >= 3.8, standard library only). Layouts and names
are those of the CUDA Driver API and NVML of CUDA 12 (docs.nvidia.com: "CUDA Driver API", "NVML API").
"""

import ctypes
import os
from typing import Any, Iterable, List, Optional

# A node with GPUs that a process can use has one of these: NVIDIA's control device, AMD's.
_CONTROL_FILES = ("/dev/nvidiactl", "/dev/kfd")
# A process opens these when it initialises CUDA or ROCm; one that only asks NVML does not.
_COMPUTE_FILES = ("/dev/nvidia-uvm", "/dev/kfd")

_INSUFFICIENT_SIZE = 7  # NVML_ERROR_INSUFFICIENT_SIZE
_NOT_AVAILABLE = 2**64 - 1  # NVML_VALUE_NOT_AVAILABLE


def present() -> bool:
    """Whether this node has GPUs that this process may open."""
    return any(map(os.path.exists, _CONTROL_FILES))


def computes(pid: int) -> bool:
    """Whether a living process has initialised CUDA or ROCm, by its open files; False for one that is gone.

    Raises PermissionError for another user's process.
    """
    folder = "/proc/%d/fd" % pid
    try:
        return any(_link(folder, name) in _COMPUTE_FILES for name in os.listdir(folder))
    except (FileNotFoundError, ProcessLookupError):
        return False


def _link(folder: str, name: str) -> str:
    try:
        return os.readlink(os.path.join(folder, name))
    except FileNotFoundError:  # closed meanwhile
        return ""


class Driver:
    """`libcuda.so.1`, once something in this process has loaded it: neither loaded nor initialised here."""

    def __init__(self) -> None:
        self._library: Any = None

    def contexts(self) -> int:
        """The number of devices on which this process has its primary context: what works on a GPU makes one.

        torch, CuPy, JAX, Numba and all that use the CUDA runtime share it. Asking for the number of devices
        (`torch.cuda.is_available`) makes none, nor does this question. About 30 us without the driver.
        """
        library = self._loaded()
        count = ctypes.c_int()
        # Before cuInit, and in a child forked after it, all calls say CUDA_ERROR_NOT_INITIALIZED.
        if library is None or library.cuDeviceGetCount(ctypes.byref(count)) != 0:
            return 0
        return sum(self._is_active(ordinal) for ordinal in range(count.value))

    def _loaded(self) -> Any:
        if self._library is None:
            try:
                self._library = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
            except OSError:
                return None
        return self._library

    def _is_active(self, ordinal: int) -> bool:
        device, flags, active = ctypes.c_int(), ctypes.c_uint(), ctypes.c_int()
        if self._library.cuDeviceGet(ctypes.byref(device), ordinal) != 0:
            return False
        code = self._library.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(active))
        return bool(code == 0 and active.value)


class _ProcessInfo(ctypes.Structure):
    """`nvmlProcessInfo_t`, the version 2 layout, which the functions `_v2` and `_v3` fill."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("used_memory", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class Nvml:
    """NVML, loaded and initialised when it is asked for the first time."""

    def __init__(self) -> None:
        self._library: Any = None
        self._devices: List[ctypes.c_void_p] = []

    def used_memory(self, pids: Iterable[int]) -> Optional[int]:
        """Bytes that these processes hold now on the node's devices, contexts included: no peak.

        None if NVML names none of them: in a container with process ids of its own it may know them by
        others. Raises OSError if NVML is missing or broken.
        """
        self._initialise()
        wanted = set(pids)
        found = [
            info.used_memory
            for device in self._devices
            for info in self._processes(device)
            if info.pid in wanted and info.used_memory != _NOT_AVAILABLE
        ]
        return sum(found) if found else None

    def _initialise(self) -> None:
        if self._library is not None:
            return
        library = ctypes.CDLL("libnvidia-ml.so.1")
        count = ctypes.c_uint()
        _check(library.nvmlInit_v2())
        _check(library.nvmlDeviceGetCount_v2(ctypes.byref(count)))
        devices = [ctypes.c_void_p() for _ in range(count.value)]
        for index, device in enumerate(devices):
            _check(library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)))
        self._library, self._devices = library, devices

    def _processes(self, device: ctypes.c_void_p) -> List[_ProcessInfo]:
        ask = self._library.nvmlDeviceGetComputeRunningProcesses_v3
        room = 64
        for _ in range(3):  # the number can grow between two calls
            count = ctypes.c_uint(room)
            # Twice the room: some drivers of 2023 (535) fill a longer structure under this name.
            infos = (_ProcessInfo * (2 * room))()
            code = ask(device, ctypes.byref(count), infos)
            if code != _INSUFFICIENT_SIZE:
                _check(code)
                return infos[: count.value]
            room = 2 * max(room, count.value)
        raise OSError("NVML: the list of processes does not end")


def _check(code: int) -> None:
    if code != 0:
        raise OSError("NVML error %d" % code)
