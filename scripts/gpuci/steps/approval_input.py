"""The inputs of wait-for-label -> values. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpuci.config import document as config_document
from gpuci.errors import ConfigError
from gpuci.github.step import Step

VARIABLES: Mapping[str, str] = {
    "GPUCI_CONFIGURATION": "the resolved configuration, as find-changed leaves it",
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
    settings = _label_settings(step.value("CONFIGURATION"))
    wait = step.number("WAIT_SECONDS", 0) or _number(settings, "wait-seconds")
    return ApprovalInput(
        label=step.value("LABEL") or str(settings.get("name", "")),
        quiet_seconds=_number(settings, "quiet-seconds"),
        wait_seconds=min(wait, MOST_WAIT_SECONDS),
        remove_on_push=settings.get("remove-on-push") is not False,
        affected=step.flag("AFFECTED", True),
        environment=step.value("ENVIRONMENT", "gpu"),
        accept_unprotected=step.flag("ACCEPT_UNPROTECTED_ENVIRONMENT"),
        pull_request=step.value("PULL_REQUEST"),
        sha=step.value("SHA"),
    )


def _label_settings(text: str) -> Mapping[str, Any]:
    """The section `label` of the configuration, its defaults filled in."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            "the input configuration is no JSON document",
            then="pass the output `configuration` of find-changed as it is",
        ) from error
    settings = config_document.from_document(document).label
    if not settings.get("name"):
        raise ConfigError(
            "the configuration names no label",
            then="pass the output `configuration` of find-changed as it is",
        )
    return settings


def _number(settings: Mapping[str, Any], name: str) -> float:
    value = settings.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        raise ConfigError(f"label.{name} of the configuration is {value!r}", then="give a number of seconds")
    return value
