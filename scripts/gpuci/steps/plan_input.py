"""The inputs of calculate-shards -> values, and what they change of the configuration. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from gpuci.config.model import Config
from gpuci.config.paths import path_fault, tidy_path, unique
from gpuci.errors import ConfigError
from gpuci.github.events import full_sha
from gpuci.planning.keyword_expression import expression_fault
from gpuci.planning.shards import MAX_SHARDS
from gpuci.steps import config_input

VARIABLES: Mapping[str, str] = {
    **config_input.VARIABLE,
    "GPUCI_SHA": "the full SHA to plan for",
    "GPUCI_ROOT": "the directory of the repository that holds .github/gpuci.yml",
    "GPUCI_CHANGES": "path of changes.json; empty: every test is due",
    "GPUCI_CHANGES_DIGEST": "sha256:… of changes.json; another file is refused then",
    "GPUCI_PACKAGES": "directories or globs, separated by spaces or as a JSON list",
    "GPUCI_TEST_EXPRESSION": "as pytest -k",
    "GPUCI_SHARDS": "number of shards; 0: the plan decides",
    "GPUCI_MAX_SHARDS": "most shards; 0: the configuration's",
    "GPUCI_TOKEN": "token for fetching the commit",
}


@dataclass(frozen=True)
class PlanInput:
    """What is to be planned. `shards` None: the plan decides how many. `changes` is a path, or empty."""

    config: Config
    sha: str
    root: str
    changes: str
    changes_digest: str
    shards: int | None
    event: str


def read(environ: Mapping[str, str]) -> PlanInput:
    """Raises ConfigError: all inputs that make no sense."""
    values = {name.removeprefix("GPUCI_"): environ.get(name, "").strip() for name in VARIABLES}
    problems: list[str] = []
    shards = _number("shards", values["SHARDS"], problems)
    most = _number("max-shards", values["MAX_SHARDS"], problems)
    packages = _packages(values["PACKAGES"], problems)
    fault = expression_fault(values["TEST_EXPRESSION"])
    problems += [f"test-expression is {values['TEST_EXPRESSION']!a}: {fault}"] if fault else []
    if problems:
        raise ConfigError("; ".join(problems), then="correct these inputs of calculate-shards")
    config = config_input.config_of(values["CONFIGURATION"])
    return PlanInput(
        config=_changed(config, packages, values["TEST_EXPRESSION"], most),
        sha=full_sha(values["SHA"]),
        root=values["ROOT"] or ".",
        changes=values["CHANGES"],
        changes_digest=values["CHANGES_DIGEST"],
        shards=shards or None,
        event=environ.get("GITHUB_EVENT_NAME") or "manual",
    )


def _number(name: str, text: str, problems: list[str]) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdecimal() and len(text) < 4 and int(text) <= MAX_SHARDS):
        problems.append(f"{name} is {text!a}: a number from 1 to {MAX_SHARDS}, or 0 to leave it open")
        return 0
    return int(text)


def _packages(text: str, problems: list[str]) -> tuple[str, ...]:
    """The entries, as in `packages` of the configuration; empty: those of the configuration."""
    entries = text.split()
    if text.startswith("["):
        try:
            entries = json.loads(text)
        except (ValueError, RecursionError):
            entries = [text]
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        problems.append("packages is no list of texts")
        return ()
    faults = {entry: path_fault(entry) for entry in entries}
    problems += [f"packages: {entry!a} {fault}" for entry, fault in faults.items() if fault]
    return unique(map(tidy_path, entries))


def _changed(config: Config, packages: tuple[str, ...], expression: str, most: int) -> Config:
    """The configuration with what a person asked for of this run."""
    node, shards = config.node, config.shards
    if expression:
        node = replace(node, pytest_args=(*node.pytest_args, "-k", expression))
    if most:
        shards = replace(shards, max=most)
    return replace(config, packages=packages or config.packages, node=node, shards=shards)
