"""The CUDA driver and NVML as C libraries with the real names, layouts and codes, failing on demand.

Each case runs in a process of its own: a library that is loaded stays loaded.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuci_node.worker import nvidia

SCRIPTS = Path(nvidia.__file__).parents[2]
GIB = 2**30

CUDA = """
int initialised, devices = 3, active[3], state_code;
static int code(void) { return initialised ? 0 : 3; } /* CUDA_ERROR_NOT_INITIALIZED */
int cuDeviceGetCount(int *count) { *count = code() ? -1 : devices; return code(); }
int cuDeviceGet(int *device, int ordinal) { *device = 10 + ordinal; return code(); }
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *is_active) {
    *flags = 0; *is_active = active[device - 10]; return state_code;
}
"""
NVML = """
struct info { unsigned pid; unsigned long long used; unsigned gpu, compute; };
struct longer { struct info info; unsigned long long protected; };
int inits, init_code, list_code, longer;
unsigned counts[2], pids[2][300]; unsigned long long used[2][300];
int nvmlInit_v2(void) { inits++; return init_code; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = &counts[index]; return 0; }
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, void *infos) {
    unsigned d = (unsigned *)device - counts, room = *count;
    *count = counts[d];
    if (list_code) return list_code;
    if (counts[d] > room) return 7; /* NVML_ERROR_INSUFFICIENT_SIZE */
    for (unsigned i = 0; i < counts[d]; i++) {
        struct longer full = {{pids[d][i], used[d][i], -1, -1}, 0};
        if (longer) ((struct longer *)infos)[i] = full; else ((struct info *)infos)[i] = full.info;
    }
    return 0;
}
"""
# What each case begins with: the libraries as a process would have them, and their knobs.
PRELUDE = """
import ctypes, json, os, sys
from gpuci_node.worker import nvidia, usage
def load(name):
    return ctypes.CDLL(os.path.join(os.environ["FAKES"], name))
def knob(library, name, value, at=0, kind=ctypes.c_int):
    ctypes.cast(getattr(library, name), ctypes.POINTER(kind))[at] = value
def processes(library, device, listed):
    for i, (pid, used) in enumerate(listed):
        knob(library, "pids", pid, 300 * device + i, ctypes.c_uint)
        knob(library, "used", used, 300 * device + i, ctypes.c_ulonglong)
    knob(library, "counts", len(listed), device, ctypes.c_uint)
def show(value):
    print(json.dumps(value))
GIB = 2**30
ME = os.getpid()
"""


@pytest.fixture(scope="session")
def fakes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `libcuda.so.1` and `libnvidia-ml.so.1`."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler (cc) to build the libraries with")
    folder = tmp_path_factory.mktemp("libraries")
    for name, text in (("libcuda.so.1", CUDA), ("libnvidia-ml.so.1", NVML)):
        command = ["cc", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", name, "-x", "c", "-"]
        subprocess.run(command, input=text.encode(), cwd=folder, check=True)
    return folder


@pytest.fixture
def run(fakes: Path) -> Callable[[str], Any]:
    """Run a case, return what it showed."""

    def run_case(body: str) -> Any:
        env = {**os.environ, "FAKES": str(fakes), "PYTHONPATH": str(SCRIPTS)}
        command = [sys.executable, "-c", PRELUDE + body]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run_case


# -- the driver ----------------------------------------------------------------------------------------


def test_contexts_are_counted_and_the_driver_is_not_loaded_for_it(run: Any) -> None:
    seen = run(
        "driver, seen = nvidia.Driver(), []\n"
        "seen.append(driver.contexts())\n"
        "cuda = load('libcuda.so.1')\n"
        "seen.append(driver.contexts())\n"
        "knob(cuda, 'active', 1, 2)\n"
        "seen.append(driver.contexts())\n"
        "knob(cuda, 'initialised', 1)\n"
        "seen.append(driver.contexts())\n"
        "knob(cuda, 'active', 1, 0)\n"
        "seen.append(driver.contexts())\n"
        "knob(cuda, 'state_code', 710)\n"
        "seen.append(driver.contexts())\n"
        "show(seen)\n"
    )
    assert seen == [0, 0, 0, 1, 2, 0]


# -- NVML ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "asked", "expected"),
    [
        ("[(7, GIB), (8, 2 * GIB)]", "[(7, 4 * GIB)]", "[7]", 5 * GIB),
        ("[(7, GIB), (8, 2 * GIB)]", "[]", "[7, 8]", 3 * GIB),
        ("[(8, GIB)]", "[]", "[7]", None),
        ("[(7, 2**64 - 1)]", "[]", "[7]", None),
        ("[(7, 2**64 - 1)]", "[(7, GIB)]", "[7]", GIB),
        ("[(i, GIB) for i in range(1, 251)]", "[]", "[250]", GIB),
    ],
    ids=["both devices", "two processes", "not ours", "not available", "partly available", "many processes"],
)
def test_memory_of_processes(run: Any, first: str, second: str, asked: str, expected: int | None) -> None:
    assert (
        run(
            "nvml = load('libnvidia-ml.so.1')\n"
            f"processes(nvml, 0, {first})\n"
            f"processes(nvml, 1, {second})\n"
            f"show(nvidia.Nvml().used_memory({asked}))\n"
        )
        == expected
    )


def test_nvml_is_initialised_once_and_not_before_it_is_asked(run: Any) -> None:
    assert run(
        "nvml, seen = load('libnvidia-ml.so.1'), []\n"
        "inits = ctypes.c_int.in_dll(nvml, 'inits')\n"
        "reader = nvidia.Nvml()\n"
        "seen.append(inits.value)\n"
        "for _ in range(2):\n"
        "    reader.used_memory([7])\n"
        "    seen.append(inits.value)\n"
        "show(seen)\n"
    ) == [0, 1, 1]


@pytest.mark.parametrize(
    "fault",
    [
        "",
        "nvml = load('libnvidia-ml.so.1'); knob(nvml, 'init_code', 9)",
        "nvml = load('libnvidia-ml.so.1'); knob(nvml, 'list_code', 999)",
        "nvml = load('libnvidia-ml.so.1'); knob(nvml, 'list_code', 7)",
    ],
    ids=["no library", "driver not loaded", "unknown error", "a list without end"],
)
def test_a_broken_nvml_is_an_os_error(run: Any, fault: str) -> None:
    said = run(
        f"{fault}\ntry:\n    nvidia.Nvml().used_memory([7])\nexcept OSError as error:\n    show(str(error))\n"
    )
    assert "NVML" in said or "libnvidia-ml" in said


def test_a_driver_with_longer_entries_writes_into_our_room_only(run: Any) -> None:
    """64 entries fit by count; a heap that was written over would end the process."""
    assert (
        run(
            "nvml = load('libnvidia-ml.so.1')\n"
            "knob(nvml, 'longer', 1)\n"
            "processes(nvml, 0, [(7, GIB)] * 64)\n"
            "reader = nvidia.Nvml()\n"
            "for _ in range(200):\n"
            "    assert reader.used_memory([7]) >= GIB\n"
            "show('alive')\n"
        )
        == "alive"
    )


# -- both, as a test process uses them -------------------------------------------------------------------

NODE_WITH_GPUS = "nvidia._CONTROL_FILES = ('/dev/null',)\n"


def test_a_library_without_torch_is_seen_by_its_context_and_measured_by_nvml(run: Any) -> None:
    assert run(
        f"{NODE_WITH_GPUS}"
        "use, seen = usage.Usage(), []\n"
        "cuda, nvml = load('libcuda.so.1'), load('libnvidia-ml.so.1')\n"
        "knob(cuda, 'initialised', 1)\n"  # it asked for the number of devices
        "use.before(); use.sample(); seen.append(use.after())\n"
        "use.before()\n"
        "knob(cuda, 'active', 1)\n"
        "processes(nvml, 0, [(ME, 3 * GIB), (1, GIB)])\n"
        "use.sample()\n"
        "processes(nvml, 0, [(ME, 2 * GIB), (1, GIB)])\n"
        "seen.append(use.after())\n"
        "use.before(); seen.append(use.after())\n"
        "processes(nvml, 0, [])\n"
        "use.before(); seen.append(use.after())\n"
        "show([[each['cuda_used'], each['peak_memory_bytes']] for each in seen])\n"
    ) == [[False, 0], [True, 3 * GIB], [None, 2 * GIB], [None, None]]


def test_child_processes_are_seen_by_the_files_that_they_opened(run: Any, tmp_path: Path) -> None:
    device = tmp_path / "nvidia-uvm"
    device.touch()
    assert run(
        f"{NODE_WITH_GPUS}"
        f"nvidia._COMPUTE_FILES = ({str(device)!r},)\n"
        "import subprocess\n"
        f"CHILD = 'import sys; f = open(%r); print(1, flush=True); sys.stdin.read()' % {str(device)!r}\n"
        "use, seen, nvml = usage.Usage(), [], load('libnvidia-ml.so.1')\n"
        "def start(*command):\n"
        "    child = subprocess.Popen(command, stdin=-1, stdout=-1)\n"
        "    return child if child.stdout.read(1) else None\n"
        "def judge(): seen.append(list(use.after().values()))\n"
        "use.before()\n"
        "idle = start('sh', '-c', 'echo 1; read x'); judge()\n"  # lives, and has opened nothing
        "use.before()\n"
        "server = start('sh', '-c', '\"$0\" -c \"$1\"; true', sys.executable, CHILD)\n"  # a grandchild
        "grandchild = next(pid for pid in usage._children() if nvidia.computes(pid))\n"
        "processes(nvml, 1, [(grandchild, GIB)]); judge()\n"
        "use.before(); judge()\n"  # it may work for this test too
        "use.before(); server.communicate(); judge()\n"  # ended meanwhile
        "use.before(); judge()\n"
        "idle.communicate()\n"
        "show(seen)\n"
    ) == [[0, False], [GIB, True], [GIB, None], [None, None], [0, False]]


def test_a_process_that_is_gone_computes_nothing() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert not nvidia.computes(gone.pid)
