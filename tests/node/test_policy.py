"""What the real marks of an item ask of the node."""

from __future__ import annotations

from typing import Any

import pytest

from gpuci_node.worker.policy import Need, is_gpu_skip, need

RULES: list[dict[str, Any]] = [
    {"name": "gpu", "gpus": 1, "mode": None, "when": "always"},
    {"name": "require_cuda_8gpu", "gpus": 8, "mode": None, "when": "always"},
    {"name": "sequential", "gpus": None, "mode": "serial", "when": "always"},
    {"name": "cpu", "gpus": 0, "mode": "cpu", "when": "always"},
    {"name": "broken", "gpus": None, "mode": "skip", "when": "always"},
    {"name": "*_nightly", "gpus": None, "mode": None, "when": "schedule"},
]
SCHEDULE_ONLY = "mark slow_nightly: on schedule only"


@pytest.mark.parametrize(
    ("marks", "event", "expected"),
    [
        ([], "manual", Need(None, False, None, "")),
        (["slow", "parametrize"], "manual", Need(None, False, None, "")),
        (["gpu"], "manual", Need(1, False, None, "gpu")),
        (["gpu", "require_cuda_8gpu"], "manual", Need(8, False, None, "require_cuda_8gpu")),
        (["require_cuda_8gpu", "gpu"], "manual", Need(8, False, None, "require_cuda_8gpu")),
        (["sequential"], "manual", Need(None, True, None, "sequential")),
        (["sequential", "gpu"], "manual", Need(1, True, None, "gpu")),
        (["cpu"], "manual", Need(0, False, None, "cpu")),
        (["broken"], "manual", Need(None, False, "mark broken", "")),
        (["slow_nightly"], "manual", Need(None, False, SCHEDULE_ONLY, "")),
        (["slow_nightly", "gpu"], "schedule", Need(1, False, None, "gpu")),
    ],
    ids=lambda value: ",".join(value) or "none" if isinstance(value, list) else None,
)
def test_need(marks: list[str], event: str, expected: Need) -> None:
    assert need(marks, RULES, event) == expected


@pytest.mark.parametrize(
    ("reason", "speaks_of_gpus"),
    [
        ("needs 4 GPUs", True),
        ("test requires multiple CUDA devices", True),
        ("NCCL backend not available", True),
        ("world_size 4 is too large", True),
        ("Need at least 2 CUDA devices", True),
        ("slow", False),
        ("could not import 'transformers'", False),
        ("", False),
    ],
)
def test_gpu_skips(reason: str, speaks_of_gpus: bool) -> None:
    assert is_gpu_skip(reason) is speaks_of_gpus
