import pytest
from gpu_work import run_kernel
from serving.queue import Server


@pytest.mark.parametrize("number", [0, 1, -3, 10**12])
def test_double(number: int) -> None:
    assert Server().answer(number) == 2 * number


def test_requests_are_counted() -> None:
    run_kernel(0.1)
    server = Server()
    for number in range(3):
        server.answer(number)
    assert server.answered == 3
