"""Signals: counted, ending waits, cutting short what can be repeated."""

import os
import signal
import threading

import pytest

from gpuci.execution.slurm.interrupts import Interrupted, Interrupts


def hit(number: signal.Signals = signal.SIGTERM) -> None:
    os.kill(os.getpid(), number)


def test_signals_are_counted_and_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Interrupts() as interrupts:
        hit(signal.SIGTERM)
        hit(signal.SIGINT)
        assert interrupts.count == 2
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_signal_cuts_short_what_may_be_cut_once() -> None:
    def twice() -> None:
        with interrupts.cutting():
            try:
                hit()
            finally:
                hit()  # while it unwinds

    with Interrupts() as interrupts:
        with pytest.raises(Interrupted):
            twice()
        hit()  # outside
        assert interrupts.count == 3


def test_a_signal_ends_a_wait() -> None:
    ticks: list[int] = []

    def tick() -> None:
        ticks.append(1)
        hit()

    with Interrupts() as interrupts:
        interrupts.wait(60.0, tick)
    assert (ticks, interrupts.count) == ([1], 1)


def test_a_signal_shortly_before_a_wait_ends_it_and_the_next_wait_is_whole() -> None:
    ticks: list[int] = []
    with Interrupts() as interrupts:
        hit()
        interrupts.wait(60.0, lambda: ticks.append(1))
        assert ticks == []
        interrupts.wait(0.1, lambda: ticks.append(1))
        assert ticks == [1]


def test_a_handler_takes_no_lock_that_a_wait_could_hold() -> None:
    locks = (type(threading.Lock()), type(threading.RLock()), threading.Condition, threading.Event)
    assert not [value for value in vars(Interrupts()).values() if isinstance(value, locks)]


def test_what_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            hit(signal.SIGHUP)
            assert interrupts.count == 0
    finally:
        signal.signal(signal.SIGHUP, before)
