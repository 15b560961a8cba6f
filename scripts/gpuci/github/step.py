"""One run of an action: what GitHub gives it, and where it answers. I/O, standard library only."""

from __future__ import annotations

import json
import os
import secrets
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpuci.errors import ConfigError, GpuciError
from gpuci.github import commands
from gpuci.reporting.live_log import MATCHERS
from gpuci.reporting.text import clean, plural

# docs.github.com, "Workflow commands": 10 errors, 10 warnings and 10 notices a step.
ANNOTATIONS = 10
_FLAGS = {"true": True, "false": False}


class Step:
    """What an action reads and writes. `environ` holds no secret; `secret` has those that were taken out."""

    def __init__(self, action: str, environ: Mapping[str, str], hidden: Mapping[str, str]) -> None:
        self.action = action
        self.environ = environ
        self._hidden = dict(hidden)
        self._told: Counter[str] = Counter()
        self._outputs = 0
        self._summary_is_full = False
        self._scratch: Path | None = None

    @property
    def on_actions(self) -> bool:
        """Whether a runner of GitHub Actions reads what we print."""
        return self.environ.get("GITHUB_ACTIONS") == "true"

    def value(self, name: str, default: str = "") -> str:
        """The input `GPUCI_<name>` without white space around it."""
        return self.environ.get(f"GPUCI_{name}", "").strip() or default

    def flag(self, name: str, default: bool = False) -> bool:
        """The input as true or false; raises ConfigError for any other word."""
        text = self.value(name).lower()
        if text and text not in _FLAGS:
            raise ConfigError(f"{_kebab(name)} is {text!r}", then="give true or false")
        return _FLAGS.get(text, default)

    def number(self, name: str, default: int, *, low: int = 0, high: int = 2**31) -> int:
        """The input as a whole number from `low` to `high`; raises ConfigError."""
        text = self.value(name)
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and len(text) < 12 and low <= int(text) <= high):
            raise ConfigError(f"{_kebab(name)} is {text!r}", then=f"give a whole number from {low} to {high}")
        return int(text)

    def secret(self, name: str) -> str:
        """A secret input such as `TOKEN`; empty if it was not given."""
        return self._hidden.get(f"GPUCI_{name}", "")

    def output(self, name: str, value: str) -> None:
        """Set an output of the action; raises GpuciError if all outputs are more than GitHub takes."""
        self._outputs += commands.output_size(name, value)
        if self._outputs > commands.OUTPUT_BYTES:
            raise GpuciError(
                f"the output {name} has {len(value):,} characters: too long",
                why="GitHub takes at most 1 MB of outputs from a job",
                then="name less at once: fewer packages, files or shards",
            )
        self._append("GITHUB_OUTPUT", commands.key_value(name, value, f"gpuci-{secrets.token_hex(16)}"))

    def summary(self, markdown: str) -> None:
        """Add to the step's summary; what GitHub has no room for is left out, and that is said in it."""
        if self._summary_is_full:
            return
        path = self.environ.get("GITHUB_STEP_SUMMARY")
        used = os.path.getsize(path) if path and os.path.exists(path) else 0
        fitting, whole = commands.summary_that_fits(markdown, commands.SUMMARY_BYTES - used - 1)
        self._summary_is_full = not whole
        self._append("GITHUB_STEP_SUMMARY", fitting + "\n")

    def annotate(self, kind: str, text: str, *, title: str = "", file: str = "", line: int = 0) -> None:
        """An annotation: `error`, `warning` or `notice`; beyond GitHub's limit a line of the log."""
        self._told[kind] += 1
        if self._told[kind] <= ANNOTATIONS:
            self._write(commands.annotation(kind, text, title=title, file=file, line=line))
        else:
            place = f"{file}:{line}: " if file else ""
            self.say(f"{kind}: {place}{text}")

    def error(self, text: str, title: str = "", file: str = "", line: int = 0) -> None:
        """An annotation in red."""
        self.annotate("error", text, title=title, file=file, line=line)

    def warning(self, text: str, title: str = "", file: str = "", line: int = 0) -> None:
        """An annotation in yellow."""
        self.annotate("warning", text, title=title, file=file, line=line)

    def notice(self, text: str, title: str = "", file: str = "", line: int = 0) -> None:
        """An annotation without a colour."""
        self.annotate("notice", text, title=title, file=file, line=line)

    def say(self, text: str) -> None:
        """A line or more of the log, never a command, and harmless on a terminal."""
        self._write(clean(text))

    def begin(self) -> None:
        """Before anything else is printed: problem matchers of the caller's job see nothing of ours."""
        if self.on_actions:
            self._write(commands.remove_matchers(MATCHERS))

    def close(self) -> None:
        """Say what was counted only."""
        for kind, count in self._told.items():
            if count > ANNOTATIONS:
                left = plural(count - ANNOTATIONS, f"more {kind}")
                self.say(f"{left} stand in this log only: GitHub shows {ANNOTATIONS} of a kind in a step")

    def event(self) -> dict[str, Any]:
        """The payload of the event; raises ConfigError."""
        path = self.environ.get("GITHUB_EVENT_PATH", "")
        if not path:
            raise ConfigError("GITHUB_EVENT_PATH is not set", why="GitHub sets it in every step")
        try:
            payload = json.loads(Path(path).read_bytes())
        except (OSError, ValueError, RecursionError) as error:
            raise ConfigError(
                f"GITHUB_EVENT_PATH is {path!r}: {error}", why="GitHub sets it in every step"
            ) from error
        if not isinstance(payload, dict):
            raise ConfigError("the event's payload is no mapping", why="GITHUB_EVENT_PATH was replaced")
        return payload

    def scratch(self) -> Path:
        """A directory of this step's own below RUNNER_TEMP, which the runner empties behind the job."""
        if self._scratch is None:
            base = self.environ.get("RUNNER_TEMP") or None
            self._scratch = Path(tempfile.mkdtemp(prefix=f"gpuci-{self.action}-", dir=base))
        return self._scratch

    def _append(self, variable: str, text: str) -> None:
        path = self.environ.get(variable)
        if not path:
            self.say(f"{variable} is not set; it would get:\n{text}")
            return
        with open(path, "ab") as stream:
            stream.write(text.encode("utf-8", "backslashreplace"))

    def _write(self, text: str) -> None:
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        sys.stdout.flush()


def _kebab(name: str) -> str:
    """The input that a variable carries, as the workflow's author writes it."""
    return name.lower().replace("_", "-")
