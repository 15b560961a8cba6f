"""The inputs of wait-for-label -> values. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpuci.errors import ConfigError
from gpuci.github.step import Step
from gpuci.steps import config_input
from gpuci.steps.config_input import AS_IT_IS

VARIABLES: Mapping[str, str] = {
    **config_input.VARIABLE,
    "GPUCI_AFFECTED": "whether the change can break a test",
    "GPUCI_LABEL": "the label, in place of label.name of the configuration",
    "GPUCI_ENVIRONMENT": "the environment of the job that has the cluster's key",
    "GPUCI_ACCEPT_UNPROTECTED_ENVIRONMENT": "take an environment without protection",
    "GPUCI_PULL_REQUEST": "for workflow_dispatch, the number of the pull request",
    "GPUCI_SHA": "for workflow_dispatch, the full SHA of its head",
    "GPUCI_WAIT_SECONDS": "how long to wait for an approval; 0: label.wait-seconds of the configuration",
    "GPUCI_TOKEN": "token for GitHub's API",
}
MOST_WAIT_SECONDS = 3600


@dataclass(frozen=True)
class ApprovalInput:
    """What a run of wait-for-label is told."""

    label: str
    quiet_seconds: float
    wait_seconds: float
    remove_on_push: bool
    affected: bool
    environment: str
    accept_unprotected: bool
    pull_request: str
    sha: str


def read(step: Step) -> ApprovalInput:
    """Raises ConfigError for what makes no sense. A run waits an hour at most: it occupies a runner."""
    config = config_input.config_of(step.value("CONFIGURATION"))
    name = config.label.get("name")
    if not isinstance(name, str) or not name:
        raise ConfigError("label.name of the configuration is empty", then=AS_IT_IS)
    quiet = _seconds("quiet-seconds", config.label.get("quiet-seconds"))
    wait = _seconds("wait-seconds", config.label.get("wait-seconds"))
    return ApprovalInput(
        label=step.value("LABEL") or name,
        quiet_seconds=quiet,
        wait_seconds=min(step.number("WAIT_SECONDS", 0) or wait, MOST_WAIT_SECONDS),
        remove_on_push=config.label.get("remove-on-push") is not False,
        affected=step.flag("AFFECTED", True),
        environment=step.value("ENVIRONMENT", "gpu"),
        accept_unprotected=step.flag("ACCEPT_UNPROTECTED_ENVIRONMENT"),
        pull_request=step.value("PULL_REQUEST"),
        sha=step.value("SHA"),
    )


def _seconds(name: str, value: Any) -> float:
    """A time that the configuration's defaults fill in; infinity and what is no number are refused."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise ConfigError(f"label.{name} of the configuration is {value!r}", then=AS_IT_IS)
    return value
