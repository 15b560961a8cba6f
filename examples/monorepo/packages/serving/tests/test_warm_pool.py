"""The switch `leak` leaves a process behind that ignores SIGTERM."""

import subprocess
import sys

import faults
import pytest
import torch
from gpu_work import run_kernel
from serving.queue import Server

STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(300)
"""
left_behind: "list[subprocess.Popen[str]]" = []


def test_warm_server_answers() -> None:
    run_kernel(0.1)
    assert Server().answer(4) == 8


def test_pool_is_closed() -> None:
    if faults.planted("leak"):
        child = subprocess.Popen(
            [sys.executable, "-c", STUBBORN],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        left_behind.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    assert Server().open


def test_servers_are_independent() -> None:
    first, second = Server(), Server()
    first.close()
    assert second.open


@pytest.mark.gpus_2
def test_one_server_per_device() -> None:
    run_kernel(0.8)
    assert torch.cuda.device_count() >= 2


@pytest.mark.require_cuda_4gpu
def test_one_model_over_four_devices() -> None:
    run_kernel(0.2)
    assert torch.cuda.device_count() >= 4
