import threading

import faults
import pytest
from gpu_work import run_kernel

pytestmark = pytest.mark.timeout(3)


def test_answers_in_time() -> None:
    run_kernel(0.05)
    assert not threading.Event().is_set()


def test_waits_for_a_neighbour() -> None:
    """The switch `hang` makes it wait for ever."""
    answered = threading.Event()
    if not faults.planted("hang"):
        answered.set()
    assert answered.wait()


def test_wait_can_be_limited() -> None:
    assert not threading.Event().wait(timeout=0.05)


def test_answer_before_the_wait() -> None:
    answered = threading.Event()
    answered.set()
    assert answered.wait(timeout=0)
