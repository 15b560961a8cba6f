"""The section `container.build` as a frozen value. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpuci.errors import ConfigError


@dataclass(frozen=True)
class Build:
    """How an image is built; paths are relative to ROOT, an empty text is a setting not made."""

    repository: str
    file: str
    context: str
    inputs: tuple[str, ...]
    args: tuple[tuple[str, str], ...]
    target: str
    platform: str


def build_of(container: Mapping[str, Any]) -> Build | None:
    """The build of a resolved section `container`, None if it has none; raises ConfigError."""
    section = container.get("build")
    if section is None:
        return None
    try:
        return Build(
            repository=str(section["repository"]),
            file=str(section["file"]),
            context=str(section["context"]),
            inputs=tuple(map(str, section["inputs"])),
            args=tuple(sorted((str(name), str(value)) for name, value in section["args"].items())),
            target=str(section["target"] or ""),
            platform=str(section["platform"] or ""),
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise ConfigError(
            "the configuration in the document is broken: container.build lacks a setting or has a wrong one",
            why="the document was edited, or written by another version",
        ) from error
