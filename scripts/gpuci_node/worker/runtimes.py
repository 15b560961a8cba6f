"""Whether a GPU runtime is initialised in this process; a copy of such a process can't use its GPUs.

Runs in the process that collected the tests (Linux, Python >= 3.8, standard library only).
"""

import contextlib
import ctypes
import os
import sys
from typing import Iterable, Iterator, List, Optional, Tuple

# CUresult in cuda.h: "If cuInit() has not been called, any function from the driver API will return
# CUDA_ERROR_NOT_INITIALIZED" (CUDA driver API, Initialization); 34 is the library to link against, no driver.
_NOT_INITIALISED = (3, 34)
# What a GPU runtime opens and NVML does not. NVML, by which torch counts devices when it is told
# PYTORCH_NVML_BASED_CUDA_CHECK=1, opens /dev/nvidiactl and /dev/nvidia0... and leaves them open; a copy may
# initialise CUDA after it (pytorch/pytorch#85951, #83973). CUDA opens /dev/nvidia-uvm besides, graphics
# /dev/nvidia-modeset. AMD's runtime opens /dev/kfd; its management library reads sysfs and /dev/dri.
_DEVICES = ("/dev/nvidia-uvm", "/dev/nvidia-modeset", "/dev/kfd")


def initialised(files: Optional[Iterable[str]] = None) -> List[str]:
    """Say which GPU runtime is initialised in this process; initialises none.

    `files`: what `open_files` says, for who knows it already.
    """
    found = []
    if _torch_is_initialised():
        found.append("torch has initialised CUDA")
    if _driver_is_initialised():
        found.append("the CUDA driver is initialised")
    return found + open_devices(open_files() if files is None else files)


def _torch_is_initialised() -> bool:
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    with contextlib.suppress(Exception):  # torch that is being imported
        return cuda is not None and bool(cuda.is_initialized())
    return False


def _driver_is_initialised() -> bool:
    """Ask the CUDA driver's library if it is loaded (dlopen(3), RTLD_NOLOAD); in doubt it is."""
    try:
        driver = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return False  # not loaded
    try:
        return driver.cuDeviceGetCount(ctypes.byref(ctypes.c_int())) not in _NOT_INITIALISED
    except AttributeError:
        return True


def open_devices(paths: Iterable[str]) -> List[str]:
    """Say which of these open files mean that a GPU runtime is in use."""
    return sorted({"%s is open" % path for path in paths if path.startswith(_DEVICES)})


def open_files() -> Iterator[str]:
    """What each descriptor of this process leads to, as proc(5) names it: a path, `pipe:[123]`."""
    return (link for _, link in descriptors())


def descriptors() -> Iterator[Tuple[int, str]]:
    """The descriptors of this process, with what they lead to."""
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            yield int(fd), os.readlink("/proc/self/fd/" + fd)
