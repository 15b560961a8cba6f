"""What has to come before the first test: the starter's word, a healthy node, the image's set-up. Pure.

Runs on the compute node (Python >= 3.8, standard library only).
"""

from typing import Any, Dict, List, Optional

from gpuci_node.supervisor.effects import Stop
from gpuci_node.supervisor.verdicts import Judged

START_SECONDS = 300.0  # for a container to start from an image that is there
_HEALTH_SECONDS = 30.0

Json = Dict[str, Any]


class Opening:
    """Steps that a job waits for before its tests. Times are monotonic seconds."""

    def __init__(self, job: Json, now: float) -> None:
        self._due: Dict[str, float] = {}
        if job["link"] is not None:
            self._due["start"] = now + START_SECONDS
        if job["health"] is not None:
            self._due["health"] = now + _HEALTH_SECONDS
        self._setup: Optional[Json] = job["setup"]

    @property
    def open(self) -> bool:
        """Whether tests may begin."""
        return not self._due and self._setup is None

    def waits_for(self, step: str) -> bool:
        """Whether a step is still to come."""
        return step in self._due

    def passed(self, step: str) -> None:
        """A step is done."""
        self._due.pop(step, None)

    def next_setup(self, now: float) -> Optional[Json]:
        """The set-up, once all before it is done; it has to end in its time."""
        if self._due or self._setup is None:
            return None
        setup, self._setup = self._setup, None
        self._due["setup"] = now + setup["seconds"]
        return setup

    @property
    def deadline(self) -> Optional[float]:
        """When the next step is late, or None."""
        return min(self._due.values(), default=None)

    def late(self, now: float) -> List[str]:
        """The steps that are late; they are waited for no longer."""
        late = [step for step, due in self._due.items() if now >= due]
        for step in late:
            del self._due[step]
        return late


def not_started(code: Optional[int], said: str) -> Judged:
    """The command that was to start the starter ended, or did not get there in time (`code` is None)."""
    last = said.strip().splitlines()[-1:]
    words = ": " + last[0] if last else ""
    if code == 127:  # podman, docker and sh: no such command
        then = "; container.python names the image's Python"
        return Judged("config_error", "the container has no such Python%s%s" % (words, then))
    how = "did not start within %g s" % START_SECONDS if code is None else "ended with exit code %d" % code
    reason = "the container %s%s" % (how, words)
    return Judged("infra", reason, reason)


def no_pytest(said: str) -> Stop:
    """The first test process could not import pytest; `said` names its Python."""
    then = "name the Python that has pytest, such as /opt/venv/bin/python, or install pytest for this one"
    return Stop("config_error", "container.python: %s; %s" % (said, then))


def lost_devices(outside: int, inside: int) -> Optional[Judged]:
    """The job's NVIDIA GPUs on the node, and the device files in the container."""
    if inside >= outside:
        return None
    text = "of the %d GPUs of this job the container sees %d: see to it with container.extra-options"
    return Judged("config_error", text % (outside, inside))


def bad_setup(event: Json, seconds: float) -> Optional[Judged]:
    """How container.setup ended: {code, signal, tail}; {} if it did not."""
    if event and event["code"] == 0:
        return None
    if not event:
        return Judged("config_error", "container.setup did not end within %g s" % seconds)
    how = "exit code %s" % event["code"] if event["signal"] is None else event["signal"]
    last = event["tail"].strip().splitlines()[-3:]
    return Judged("config_error", "container.setup failed (%s): %s" % (how, " | ".join(last)))
