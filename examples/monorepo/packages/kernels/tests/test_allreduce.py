"""The conftest marks the ring tests: planned for one GPU, they go to a slot of eight."""

import torch
from gpu_work import run_kernel
from kernels.reduce import ring_allreduce


def test_one_device_keeps_its_values() -> None:
    assert ring_allreduce([[1.0, 2.0]]) == [[1.0, 2.0]]


def test_ring_sums_everything() -> None:
    devices = torch.cuda.device_count()
    run_kernel(0.2)
    assert devices == 8
    assert ring_allreduce([[1.0]] * devices) == [[float(devices)]] * devices


def test_two_devices() -> None:
    assert ring_allreduce([[1.0], [2.0]]) == [[3.0], [3.0]]


def test_ring_gives_every_device_the_same() -> None:
    assert torch.cuda.device_count() == 8
    sums = ring_allreduce([[float(device)] for device in range(8)])
    assert sums == [[28.0]] * 8
