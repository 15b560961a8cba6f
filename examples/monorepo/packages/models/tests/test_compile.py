"""Compiling keeps state that can't be undone: the file asks for a process of its own."""

import os

import pytest
from gpu_work import run_kernel

pytestmark = [pytest.mark.isolated]

_compiled_by: "list[int]" = []


def test_first_compilation() -> None:
    assert _compiled_by == []
    run_kernel(0.2)
    _compiled_by.append(os.getpid())


def test_second_compilation_is_cached() -> None:
    assert _compiled_by == [os.getpid()]


def test_cache_stays_in_its_process() -> None:
    assert _compiled_by == [os.getpid()]
