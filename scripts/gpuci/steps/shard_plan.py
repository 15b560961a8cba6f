"""The plan of a step's shards, with the configuration that they run by."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from gpuci.config import document as config_document
from gpuci.config.model import Config
from gpuci.errors import ConfigError
from gpuci.execution.transport.login import SECRETS
from gpuci.github.step import Step
from gpuci.model import Plan
from gpuci.steps.plan_file import read_plan
from gpuci.steps.shard_input import ShardInput

_BY_DIGEST = re.compile(r"[A-Za-z0-9][^@\s]*@sha256:[0-9a-f]{64}")


def with_secrets(step: Step) -> Mapping[str, str]:
    """The step's variables with the login's secrets, which nothing that we start inherits."""
    given = {name: step.secret(name.removeprefix("GPUCI_")) for name in SECRETS}
    return {**step.environ, **{name: secret for name, secret in given.items() if secret}}


def plan_and_config(given: ShardInput) -> tuple[Plan, Config]:
    """The plan, with nothing but the shards that are ours; raises ConfigError."""
    plan = read_plan(Path(given.plan), given.plan_digest, then="run calculate-shards first")
    if given.sha and plan.sha and given.sha != plan.sha:
        raise ConfigError(
            f"the plan is for the commit {plan.sha}, and {given.sha} is to be tested",
            why="plan.json is from another run, or of another attempt",
            then="make the plan again, for this commit",
        )
    config = with_image(config_document.from_document(plan.config), given.image)
    if not given.shard:
        return plan, config
    if given.shard not in {shard.index for shard in plan.shards}:
        raise ConfigError(f"there is no shard {given.shard}: the plan has {len(plan.shards)}")
    return plan.only(given.shard), config


def with_image(config: Config, image: str) -> Config:
    """The configuration with another image, which has to be named by digest; raises ConfigError."""
    if not image or image == config.container["image"]:
        return config
    if config.container["runtime"] == "none":
        raise ConfigError(
            f"there is an image, {image!a}, and container.runtime is none",
            then="name the runtime that starts it, or leave the image out",
        )
    if not _BY_DIGEST.fullmatch(image):
        raise ConfigError(
            f"{image!a} does not name an image by digest",
            why="a tag can come to mean another image between two shards",
            then="write it as name@sha256:DIGEST; build-image and `podman image inspect` tell the digest",
        )
    return replace(config, container={**config.container, "image": image})
