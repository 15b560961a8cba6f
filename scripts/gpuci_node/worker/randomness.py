"""Random generators across a fork: who was seeded stays seeded, all others get entropy of their own.

Runs in the test process, inside the container (Python >= 3.8, standard library only).

Python seeds `random` anew in each forked process; numpy and torch do not, and take entropy when they are
imported. A process that imports for itself has what the tree seeded, and else what no other process has.
"""

import contextlib
import functools
import random
import sys
from typing import Any

from gpuci_node.worker import calls


class Seeds:
    """Notes from `start` to `stop`, in a parent, whether Python's generator was seeded."""

    def __init__(self) -> None:
        self._seeded = False
        self._state: Any = None
        self._places = calls.Places()

    def start(self) -> None:
        """Begin to note; what was noted before, in the parent's parent, stays."""
        for name, tell in (("seed", self._on_seed), ("setstate", self._on_state)):
            self._places.put(random, name, functools.partial(calls.Told, tell=tell))

    def stop(self) -> None:
        """End noting, and keep the state for the copies that will be made now."""
        self._places.restore()
        self._state = random.getstate() if self._seeded else None

    def renew(self) -> None:
        """To be called in a new copy."""
        if self._state is not None:
            random.setstate(self._state)
        _renew_numpy()
        _renew_torch()

    def _on_seed(self, a: Any = None, version: int = 2) -> None:
        self._seeded = self._seeded or a is not None

    def _on_state(self, _state: Any) -> None:
        self._seeded = True


def _renew_numpy() -> None:
    """New entropy for numpy's own generator, if numpy is loaded and nobody has seeded it.

    `seed_seq` (from numpy 1.17 on, before 1.25 `_seed_seq`) is where its entropy came from. numpy.random.seed
    sets it to None, and giving it a state does not.
    """
    module: Any = sys.modules.get("numpy.random")
    generator = getattr(getattr(module, "mtrand", None), "_rand", None)
    bits = getattr(generator, "_bit_generator", None)
    if getattr(bits, "seed_seq", None) is None and getattr(bits, "_seed_seq", None) is None:
        return
    with contextlib.suppress(Exception):  # half imported, or no Mersenne Twister any more
        module.set_state(module.MT19937().state)


def _renew_torch() -> None:
    """New entropy for torch's generator of the CPU, if torch is loaded and nobody has seeded it.

    It starts with 53 bits of entropy (c10::detail::getNonDeterministicRandom, torch 2.13). A seed below 2**32
    is one that somebody chose; once in two million times it is not, and copies draw the same numbers.
    """
    generator: Any = getattr(sys.modules.get("torch"), "default_generator", None)
    with contextlib.suppress(Exception):  # half imported, or another module of that name
        if generator is not None and generator.initial_seed() >= 2**32:
            generator.seed()
