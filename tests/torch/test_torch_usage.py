"""The real torch has what `torch_memory` asks of it, under these names; without CUDA nothing is claimed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import gpuci_node

SCRIPTS = Path(gpuci_node.__file__).parents[1]
ASK = """
import inspect, json, sys
sys.path.insert(0, sys.argv[1])
from gpuci_node.worker import nvidia, torch_memory, usage
import torch
nvidia._CONTROL_FILES = ("/dev/null",)
watch, memory = usage.Usage(), torch_memory.Memory()
watch.before()
torch.ones(300, 300) @ torch.ones(300, 300)
watch.sample()
said = list(watch.after().values())
cuda = torch.cuda
for name in ("memory_stats", "reset_peak_memory_stats", "synchronize", "get_device_properties"):
    inspect.signature(getattr(cuda, name)).bind(0)
for name in ("is_initialized", "device_count", "empty_cache"):
    inspect.signature(getattr(cuda, name)).bind()
# The figures exist on a GPU only; this reads them all. (The documentation calls the first one "allocated".)
summary = inspect.getsource(cuda.memory_summary)
keys = [name for name in ("allocation", "allocated_bytes", "reserved_bytes") if f'("{name}", ' in summary]
print(json.dumps([said, memory.returned("a.py"), cuda.is_initialized(), keys]))
"""


def test_torch_has_what_is_asked_of_it(torch_python: str) -> None:
    command = [torch_python, "-c", ASK, str(SCRIPTS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    keys = ["allocation", "allocated_bytes", "reserved_bytes"]
    assert json.loads(done.stdout) == [[0, False], None, False, keys]
