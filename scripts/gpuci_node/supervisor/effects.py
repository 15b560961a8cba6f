"""What the engine asks for, and how it is told that a test process ended. Values only.

Runs on the compute node (Python >= 3.8, standard library only).
"""

from typing import Any, Dict, List, NamedTuple, Optional, Union


class Write(NamedTuple):
    """Append this record to the journal (the keeper adds the time)."""

    record: Dict[str, Any]


class Start(NamedTuple):
    """Start a test process: `spec` is what `worker.main` reads, `env` what it finds in its environment.

    With a `parent` it is forked by that process.
    """

    id: str
    spec: Dict[str, Any]
    env: Dict[str, str]
    parent: Optional[str] = None


class Tell(NamedTuple):
    """Pass a message on to a process: {"do": "run", "unit": {...}} or {"do": "end"}."""

    id: str
    message: Dict[str, Any]


class Dump(NamedTuple):
    """Ask a test process for the stacks of its threads."""

    id: str


class Kill(NamedTuple):
    """Kill a test process and all its descendants."""

    id: str


class Stop(NamedTuple):
    """End the job with this verdict."""

    verdict: str
    reason: str


class Exit(NamedTuple):
    """How a test process ended: an exit code or a signal's name, and the last of what it printed.

    One that was not `born` should have been forked, and was not.
    """

    code: Optional[int]
    signal: Optional[str]
    tail: str
    left_over: int = 0
    born: bool = True


Effect = Union[Write, Start, Tell, Dump, Kill, Stop]
Effects = List[Effect]
