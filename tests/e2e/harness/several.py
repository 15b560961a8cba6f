"""Several scenarios at a time: most of a scenario is waiting, for the cluster or for programs to start."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Thread

from tests.e2e.harness.scenario import SCENARIOS, Scenario

AT_ONCE = 3  # on two cores; more of them take as long
Lines = list[str]
Outcomes = Mapping[str, Future[Lines]]
Player = Callable[[Scenario], Lines]


def begin(names: Iterable[str], play: Player) -> Outcomes:
    """Start playing these; each future becomes what `play` returned or raised.

    The first one goes ahead, since it makes gpuci's environment; those that have to be alone come last.
    """
    chosen = [SCENARIOS[name] for name in names]
    outcomes: dict[str, Future[Lines]] = {one.name: Future() for one in chosen}

    def settle(one: Scenario) -> None:
        if not outcomes[one.name].set_running_or_notify_cancel():
            return
        try:
            outcomes[one.name].set_result(play(one))
        except BaseException as error:  # whoever asks for the outcome gets it
            outcomes[one.name].set_exception(error)

    def go() -> None:
        shared = [one for one in chosen if not one.alone]
        for one in shared[:1]:
            settle(one)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            pool.map(settle, shared[1:])
        for one in chosen:
            if one.alone:
                settle(one)

    Thread(target=go, daemon=True).start()
    return outcomes


def end(outcomes: Outcomes) -> None:
    """Begin no more of them, and wait until those that began have ended."""
    wait([future for future in outcomes.values() if not future.cancel()])
