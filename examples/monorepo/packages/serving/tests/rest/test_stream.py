import pytest
from gpu_work import run_kernel
from serving.queue import Server


def test_answers_come_in_order() -> None:
    server = Server()
    assert [server.answer(number) for number in (3, 1, 2)] == [6, 2, 4]


@pytest.mark.gpus_2
def test_two_streams() -> None:
    run_kernel(0.8)
    assert [Server().answer(1), Server().answer(2)] == [2, 4]
