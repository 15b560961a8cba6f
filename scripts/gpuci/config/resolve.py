"""Validated data -> Config, with the rules that a schema can't express. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from gpuci.config.explain import SECRET_ADVICE, dotted, is_secret_name, one_of
from gpuci.config.model import DEFAULT_MARKERS, Config, MarkerRule, Node, Profile, Shards
from gpuci.config.paths import path_fault, tidy_node_id, tidy_path, unique
from gpuci.config.tree import Path, Place, Problem, quoted
from gpuci.config.validate import Schema, resolved
from gpuci_node.contract import MODE_ALIASES

_PLAIN_SECTIONS = ("container", "slurm", "durations", "label", "cost", "changes")
# Settings that name files or directories below ROOT.
_BUILD: Path = ("container", "build")
_PATHS_BELOW_ROOT: tuple[Path, ...] = (
    ("container", "pythonpath"),
    (*_BUILD, "file"),
    (*_BUILD, "context"),
    (*_BUILD, "inputs"),
    ("durations", "file"),
)
# What a test process learns about its slot (docs/node.md): a value from here would be overwritten.
_SET_BY_THE_NODE = r"CUDA_VISIBLE_DEVICES|GPUCI_\w+|PYTEST_XDIST_(WORKER(_COUNT)?|TESTRUNUID)"

Locate = Callable[[Path], Place]


class Resolver:
    """One resolution: takes the data apart, section by section, and collects the problems."""

    def __init__(self, data: Mapping[str, Any], schema: Schema, locate: Locate) -> None:
        self.schema = schema
        self.locate = locate
        self.data = {key: value for key, value in data.items() if value is not None}
        self.problems: list[Problem] = []

    def config(self) -> Config:
        """The configuration; complete only if `problems` is empty afterwards."""
        profiles = self._profiles()
        self._check_container(self.data.get("container") or {})
        return Config(
            packages=self._packages(),
            modes=self._modes(),
            markers=self._markers(profiles),
            profiles=tuple(profiles.values()),
            node=self._node(),
            shards=Shards(**_fields(self.data.get("shards", {}))),
            **{name: self._section(name) for name in _PLAIN_SECTIONS},
        )

    def _report(self, path: Path, message: str) -> None:
        self.problems.append(Problem(self.locate(path), f"{dotted(path)}: {message}"))

    def _packages(self) -> tuple[str, ...]:
        given = self.data.get("packages", ["."])
        entries: list[str] = given.split() if isinstance(given, str) else given
        if not entries:
            self._report(("packages",), "must not be empty")
        for index, entry in enumerate(entries):
            self._check_path(("packages", index), entry)
            if any("**" in part and part != "**" for part in entry.split("/")):
                self._report(("packages", index), f"{quoted(entry)}: `**` stands alone between slashes")
        return unique(tidy_path(entry) for entry in entries)

    def _check_path(self, path: Path, text: str) -> None:
        fault = path_fault(text)
        if fault:
            self._report(path, f"{quoted(text)} {fault}")

    def _modes(self) -> tuple[tuple[str, str], ...]:
        modes: dict[str, str] = {}
        places: dict[str, Place] = {}
        for name, entries in self.data.get("modes", {}).items():
            mode = MODE_ALIASES.get(name, name)
            for index, entry in enumerate(entries or []):
                path = ("modes", name, index)
                self._check_path(path, entry.partition("::")[0])
                if re.search(r"[*?]", entry.partition("::")[0]):
                    self._report(path, f"{quoted(entry)} is a glob: name a directory, a file or a node id")
                if mode != "skip" and "[" in entry.partition("::")[2]:
                    self._report(path, f"{quoted(entry)} names parameters: a function has one mode")
                key = tidy_node_id(entry)
                if modes.get(key, mode) != mode:
                    self._report(path, f"{quoted(key)} has the mode {modes[key]} already, by {places[key]}")
                    continue
                modes[key] = mode
                places[key] = self.locate(path)
        return tuple(modes.items())

    def _profiles(self) -> dict[str, Profile]:
        """The profiles by name; a profile with a problem in it is there with what is right of it."""
        given = {key: value for key, value in self.data.get("profiles", {}).items() if value is not None}
        made = {}
        for name, settings in given.items():
            fields = _fields(settings)
            fields["slurm"] = self._given(fields.get("slurm", {}), ("profiles", name, "slurm"))
            made[name] = Profile(name, **fields)
        return made or {"default": Profile("default")}

    def _markers(self, profiles: Mapping[str, Profile]) -> tuple[MarkerRule, ...]:
        rules = {rule.name: rule for rule in DEFAULT_MARKERS}
        for name, settings in self.data.get("markers", {}).items():
            if settings is None:
                rules.pop(name, None)
                continue
            fields = _fields({"gpus": settings} if isinstance(settings, int) else settings)
            if "mode" in fields:
                fields["mode"] = MODE_ALIASES.get(fields["mode"], fields["mode"])
            rules[name] = replace(rules.get(name, MarkerRule(name)), **fields)
            self._check_marker(rules[name], profiles, isinstance(settings, int))
        return tuple(rules.values())

    def _check_marker(self, rule: MarkerRule, profiles: Mapping[str, Profile], short: bool) -> None:
        path: Path = ("markers", rule.name)
        if rule.profile is not None and rule.profile not in profiles:
            self._report((*path, "profile"), one_of(rule.profile, list(profiles)))
            return
        profile = profiles[rule.profile] if rule.profile is not None else next(iter(profiles.values()))
        if rule.gpus is not None and rule.gpus > profile.gpus:
            message = f"{rule.gpus} GPUs are more than the {profile.gpus} of profile {quoted(profile.name)}"
            self._report(path if short else (*path, "gpus"), message)

    def _node(self) -> Node:
        fields = _fields(self._given(self.data.get("node", {}), ("node",)))
        env = {key: value for key, value in fields.get("env", {}).items() if value is not None}
        for name in env:
            if is_secret_name(name):
                self._report(("node", "env", name), SECRET_ADVICE)
            elif re.fullmatch(_SET_BY_THE_NODE, name):
                self._report(("node", "env", name), "gpuci sets this variable itself, for each test process")
        for name in ("pytest_args", "preload"):
            fields[name] = tuple(fields.get(name, ()))
        return Node(**{**fields, "env": env})

    def _check_container(self, container: Mapping[str, Any]) -> None:
        build = container.get("build")
        if build is None:
            return
        if build.get("repository") is None:
            self._report((*_BUILD, "repository"), "must be set: a built image has to be kept somewhere")
        if container.get("image") is not None:
            self._report(_BUILD, "container.image names an image already: leave one of the two empty")
        if container.get("runtime") in (None, "none"):
            self._report(_BUILD, "nothing runs in the image without container.runtime")
        for name in build.get("args") or {}:
            if is_secret_name(name):
                self._report((*_BUILD, "args", name), f"an image keeps its args; {SECRET_ADVICE}")

    def _section(self, name: str) -> dict[str, Any]:
        """A section that stays a mapping, with the schema's defaults where nothing is set."""
        return self._filled(self.data.get(name, {}), (name,))

    def _filled(self, section: Mapping[str, Any], path: Path) -> dict[str, Any]:
        given = self._given(section, path)
        properties = self._schema_at(path)["properties"]
        defaults = {key: resolved(below, self.schema)["default"] for key, below in properties.items()}
        return {key: given.get(key, _copy(default)) for key, default in defaults.items()}

    def _given(self, section: Mapping[str, Any] | None, path: Path) -> dict[str, Any]:
        """What is set in a section, with lists where a single text may stand for one."""
        return {
            key: self._value(value, (*path, key))
            for key, value in (section or {}).items()
            if value is not None
        }

    def _value(self, value: Any, path: Path) -> Any:
        if path in _PATHS_BELOW_ROOT:
            return self._below_root(value, path)
        if path == _BUILD:
            return self._filled(value, path)
        if path == (*_BUILD, "args"):
            return {key: item for key, item in value.items() if item is not None}
        if isinstance(value, str) and "array" in self._schema_at(path)["type"]:
            return self._words(value, path)
        return value

    def _schema_at(self, path: Path) -> Schema:
        below = self.schema
        for step in path:
            below = resolved(below, self.schema)
            below = below.get("properties", {}).get(step) or below["additionalProperties"]
        return resolved(below, self.schema)

    def _below_root(self, value: Any, path: Path) -> Any:
        if isinstance(value, str):
            self._check_path(path, value)
            return tidy_path(value)
        for index, item in enumerate(value):
            self._check_path((*path, index), item)
        return [tidy_path(item) for item in value]

    def _words(self, text: str, path: Path) -> list[str]:
        try:
            return shlex.split(text)
        except ValueError as error:
            self._report(path, f"can't be split like a shell's words: {str(error).lower()}")
            return []


def _fields(section: Mapping[str, Any] | None) -> dict[str, Any]:
    """The section under the names of a dataclass, without what is not set."""
    return {key.replace("-", "_"): value for key, value in (section or {}).items() if value is not None}


def _copy(value: Any) -> Any:
    return list(value) if isinstance(value, list) else value
