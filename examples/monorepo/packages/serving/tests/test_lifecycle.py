import os

import faults
import pytest
from gpu_work import run_kernel
from serving.queue import Server


def test_open_after_start() -> None:
    assert Server().open


def test_shutdown_by_the_last_client() -> None:
    """The switch `exit` ends the process here, with a success that nobody should believe."""
    if faults.planted("exit"):
        os._exit(0)
    server = Server()
    server.close()
    assert not server.open


def test_counts_answers() -> None:
    run_kernel(0.1)
    server = Server()
    server.answer(1)
    assert server.answered == 1


def test_shutdown_by_the_operator() -> None:
    """The switch `exit` ends the session here, as a test that knows pytest can."""
    if faults.planted("exit"):
        pytest.exit("planted exit", returncode=0)
    server = Server()
    server.close()
    server.close()
    assert not server.open


def test_closed_server_refuses() -> None:
    server = Server()
    server.close()
    with pytest.raises(ConnectionError, match="closed"):
        server.answer(1)


def test_answers_are_not_counted_after_close() -> None:
    server = Server()
    server.close()
    assert server.answered == 0
