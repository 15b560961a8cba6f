import pytest
from gpu_work import run_kernel
from serving.queue import Server


def test_call_before_the_deadline() -> None:
    run_kernel(0.05)
    assert Server().answer(1) == 2


@pytest.mark.xfail(strict=True, raises=ConnectionError, reason="a closed server has no deadline")
def test_call_after_close() -> None:
    server = Server()
    server.close()
    server.answer(1)
