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
from gpuci_node import nvidia, torch_memory, usage
import torch
nvidia._CONTROL_FILES = ("/dev/null",)
watch, memory = usage.Usage(), torch_memory.Memory()
watch.before()
torch.ones(300, 300) @ torch.ones(300, 300)
watch.sample()
said = list(watch.after().values())
cuda, words = torch.cuda, inspect.getdoc(torch.cuda.memory_stats)
for function in (cuda.memory_stats, cuda.reset_peak_memory_stats, cuda.synchronize, cuda.get_device_properties):
    inspect.signature(function).bind(0)
for function in (cuda.is_initialized, cuda.device_count, cuda.empty_cache):
    inspect.signature(function).bind()
keys = {name: name + ".{all,large_pool,small_pool}.{current,peak,allocated,freed}" in words
        for name in ("allocation", "allocated_bytes", "reserved_bytes")}
print(json.dumps([said, memory.returned("a.py"), cuda.is_initialized(), keys]))
"""


def test_torch_has_what_is_asked_of_it(torch_python: str) -> None:
    command = [torch_python, "-c", ASK, str(SCRIPTS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    names = {"allocation": True, "allocated_bytes": True, "reserved_bytes": True}
    assert json.loads(done.stdout) == [[0, False], None, False, names]
