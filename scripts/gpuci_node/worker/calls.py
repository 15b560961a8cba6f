"""Functions that tell when they are called.

Runs in the process that collects the tests (Linux, Python >= 3.8, standard library only).
"""

import copy
import functools
import os
import random
import sys
import tempfile
import uuid
from typing import Any, Callable, List, Tuple

_DRAWS = "draws from os.urandom() (a UUID, a secret)"
# What makes a name that no other process has. `random._urandom` is what `secrets` and SystemRandom call.
_NAMES: Tuple[Tuple[Any, str, str], ...] = (
    (os, "getpid", "asks for its process id"),
    (os, "urandom", _DRAWS),
    (os, "getrandom", _DRAWS),
    (random, "_urandom", _DRAWS),
    (tempfile, "mktemp", "makes a temporary name"),
    (uuid, "uuid1", "makes a UUID"),
)
# Called by the tree they call the above for it; other libraries do so for themselves (a record of `logging`
# has the process id).
FOR_OTHERS = ("random", "secrets", "uuid", __name__)
# What numpy's generators call for their entropy, from code without frames: what they draw is data, no name.
FOR_DATA = "getrandbits"


class Told:
    """Stands for a function and tells of each call, with the arguments.

    An object, as functions of C are: in a class it is no method. A pickle or a copy of it is the function.
    """

    def __init__(self, function: Callable[..., Any], tell: Callable[..., None]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._tell = tell

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._tell(*args, **kwargs)
        return self._function(*args, **kwargs)

    def __reduce__(self) -> Tuple[Any, ...]:
        return copy.copy, (self._function,)


def told_method(function: Callable[..., Any], tell: Callable[..., None]) -> Callable[..., Any]:
    """As `Told`, for a method of a class."""

    @functools.wraps(function)
    def method(*args: Any, **kwargs: Any) -> Any:
        tell(*args, **kwargs)
        return function(*args, **kwargs)

    return method


class Places:
    """Attributes that were replaced for a while."""

    def __init__(self) -> None:
        self._places: List[Tuple[Any, str, Any, Any]] = []

    def put(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Put what `make` makes of an attribute in its place; an attribute that is not there stays away."""
        original = getattr(owner, name, None)
        if original is not None:
            standin = make(original)
            self._places.append((owner, name, original, standin))
            setattr(owner, name, standin)

    def restore(self) -> None:
        """Put back what was there; what somebody else has replaced meanwhile is theirs."""
        for owner, name, original, standin in self._places:
            if getattr(owner, name, None) is standin:
                setattr(owner, name, original)
        self._places.clear()


def listen(on_name: Callable[[str], None], on_cleanup: Callable[[], None]) -> Places:
    """Have names that are made told, with what is done, and cleanups that are left to pytest's config."""
    places = Places()
    for module, name, reason in _NAMES:
        tell = _without_arguments(functools.partial(on_name, reason))
        places.put(module, name, functools.partial(Told, tell=tell))
    config = getattr(sys.modules.get("_pytest.config"), "Config", None)
    cleanup = functools.partial(told_method, tell=_without_arguments(on_cleanup))
    places.put(config, "add_cleanup", cleanup)
    return places


def _without_arguments(tell: Callable[[], None]) -> Callable[..., None]:
    return lambda *args, **kwargs: tell()
