"""No mark: modes.yml makes the file serial."""

import torch
from gpu_work import run_kernel
from serving.queue import Server


def test_many_requests() -> None:
    run_kernel(0.2)
    server = Server()
    assert [server.answer(number) for number in range(100)][-1] == 198


def test_all_devices_are_there() -> None:
    assert torch.cuda.device_count() == 8
