"""The inputs of wait-for-label -> values. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from gpuci.errors import ConfigError
from gpuci.github.step import Step
from gpuci.github.use import Use, use_of
from gpuci.steps import config_input
from gpuci.steps.config_input import AS_IT_IS

VARIABLES: Mapping[str, str] = {
    "GPUCI_NAME": "the name of this use, where a repository has several",
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
    """What a run of wait-for-label is told. `label` is empty if no configuration tells it."""

    use: Use
    configured: bool
    label: str
    quiet_seconds: float
    wait_seconds: float
    remove_on_push: bool
    affected: bool
    environment: str
    accept_unprotected: bool
    pull_request: str
    sha: str


class _Label(NamedTuple):
    """What a configuration says of the label; without one nothing is known of it."""

    name: str = ""
    quiet_seconds: float = 0.0
    wait_seconds: float = 0.0
    remove_on_push: bool = False


def read(step: Step) -> ApprovalInput:
    """Raises ConfigError for what makes no sense. A run waits an hour at most: it occupies a runner.

    When a label is taken off there may be no configuration, as find-changed failed: an approval has to end
    nevertheless.
    """
    text = step.value("CONFIGURATION")
    configured = text != "" or step.event().get("action") != "unlabeled"
    label = _label(text) if configured else _Label()
    return ApprovalInput(
        use=use_of(step.value("NAME")),
        configured=configured,
        label=step.value("LABEL") or label.name,
        quiet_seconds=label.quiet_seconds,
        wait_seconds=min(step.number("WAIT_SECONDS", 0) or label.wait_seconds, MOST_WAIT_SECONDS),
        remove_on_push=label.remove_on_push,
        affected=step.flag("AFFECTED", True),
        environment=step.value("ENVIRONMENT", "gpu"),
        accept_unprotected=step.flag("ACCEPT_UNPROTECTED_ENVIRONMENT"),
        pull_request=step.value("PULL_REQUEST"),
        sha=step.value("SHA"),
    )


def _label(text: str) -> _Label:
    config = config_input.config_of(text)
    name = config.label.get("name")
    if not isinstance(name, str) or not name:
        raise ConfigError("label.name of the configuration is empty", then=AS_IT_IS)
    quiet = _seconds("quiet-seconds", config.label.get("quiet-seconds"))
    wait = _seconds("wait-seconds", config.label.get("wait-seconds"))
    return _Label(name, quiet, wait, config.label.get("remove-on-push") is not False)


def _seconds(name: str, value: Any) -> float:
    """A time that the configuration's defaults fill in; infinity and what is no number are refused."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise ConfigError(f"label.{name} of the configuration is {value!r}", then=AS_IT_IS)
    return value
