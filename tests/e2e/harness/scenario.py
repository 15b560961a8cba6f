"""What a scenario is, and what holds after each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.bed.handle import Bed
from tests.e2e.harness import requests
from tests.e2e.harness.act import Job, Ran
from tests.e2e.harness.product import Product, token_of
from tests.e2e.harness.stage import Stage, build

Play = Callable[[Stage], list[Ran]]


@dataclass(frozen=True)
class Scenario:
    """`play` acts and asserts; it returns the runs. `workflow` is the path of the caller's.

    `alone`: it breaks or changes what the others need, so none may run at the same time.
    """

    name: str
    about: str
    workflow: str
    overlay: Mapping[str, Any]
    play: Play
    alone: bool = False


LABEL = "examples/workflows/label.yml"
DISPATCH = "examples/workflows/dispatch.yml"
ROOT_ACTION = "examples/workflows/self-hosted.yml"
ONE_BY_ONE = "tests/e2e/consumer/gpu.yml"
WITH_IMAGE = "tests/e2e/consumer/image.yml"
TRUSTED = "tests/e2e/consumer/trusted.yml"
TWO_USES = "tests/e2e/consumer/two-uses.yml"
SCENARIOS: dict[str, Scenario] = {}


def scenario(
    name: str, workflow: str = LABEL, *, alone: bool = False, **overlay: Any
) -> Callable[[Play], Play]:
    """Register a function as a scenario; its docstring says what happens. `overlay` is configuration."""

    def register(play: Play) -> Play:
        SCENARIOS[name] = Scenario(name, (play.__doc__ or "").strip(), workflow, overlay, play, alone)
        return play

    return register


def act_out(one: Scenario, bed: Bed, product: Product, directory: Path) -> list[str]:
    """Play a scenario below `directory`; the lines of what it asked. Raises AssertionError."""
    directory.mkdir(parents=True)
    stage = build(directory, bed, product, one.workflow, one.overlay)
    with stage.server:
        runs = one.play(stage)
        for ran in runs:
            nothing_leaked(stage, ran)
        asked = asked_as_allowed(stage, len(runs))
        print(f"{one.name}: {asked} requests to the API, runs: {len(runs)}", flush=True)
        return stage.requests()


def nothing_leaked(stage: Stage, ran: Ran) -> None:
    """No secret and no defect of ours in what people can read."""
    key = (stage.bed.place / "keys/ci").read_text().splitlines()[1]
    for job in ran.jobs:
        text = readable(job)
        assert key not in text, f"the key is in the log of {job.name}"
        assert token_of(job.name) not in text, f"the token is in the log of {job.name}"
        assert "Traceback (most recent call last)" not in text, text


def readable(job: Job) -> str:
    """All that a job shows."""
    return "\n".join([job.log, job.summary, *(text for _, text in job.annotations)])


def asked_as_allowed(stage: Stage, runs: int) -> int:
    """Each request by a job's own token and a client that names itself; none refused for a permission.

    Returns how many requests to the API there were, of all jobs.
    """
    seen = stage.server.requests
    assert requests.foreign(seen, list(stage.jobs)) == []
    assert [one for one in seen if one.status in (401, 403)] == []
    of_all = sum(not requests.is_git(one) for one in seen)
    assert of_all <= runs * requests.LIMIT, f"{of_all} requests to the API"
    return of_all
