"""One run of an action: what GitHub gives it, and where it answers. I/O, standard library only."""

from __future__ import annotations

import json
import secrets
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpuci.errors import ConfigError
from gpuci.github import commands

# docs.github.com, "Workflow commands": a step's summary above 1 MiB is dropped whole; the limits of
# annotations are 10 errors, 10 warnings and 10 notices a step.
SUMMARY_BYTES = 1024 * 1024
ANNOTATIONS = 10


class Step:
    """What an action reads and writes. `environ` holds no secret; `secret` has those that were taken out."""

    def __init__(self, action: str, environ: Mapping[str, str], hidden: Mapping[str, str]) -> None:
        self.action = action
        self.environ = environ
        self._hidden = dict(hidden)
        self._told: Counter[str] = Counter()
        self._scratch: Path | None = None

    def value(self, name: str, default: str = "") -> str:
        """The input `GPUCI_<name>` without white space around it."""
        return self.environ.get(f"GPUCI_{name}", "").strip() or default

    def secret(self, name: str) -> str:
        """A secret input such as `TOKEN`; empty if it was not given."""
        return self._hidden.get(f"GPUCI_{name}", "")

    def output(self, name: str, value: str) -> None:
        """Set an output of the action."""
        self._append("GITHUB_OUTPUT", commands.key_value(name, value, f"gpuci-{secrets.token_hex(16)}"))

    def summary(self, markdown: str) -> None:
        """Add to the job's summary."""
        data = markdown.encode("utf-8", "replace")[: SUMMARY_BYTES - 1].decode("utf-8", "ignore")
        self._append("GITHUB_STEP_SUMMARY", data + "\n")

    def annotate(self, kind: str, text: str, *, title: str = "", file: str = "", line: int = 0) -> None:
        """An annotation: `error`, `warning` or `notice`; beyond GitHub's limit it is only counted."""
        self._told[kind] += 1
        if self._told[kind] <= ANNOTATIONS:
            cut = text[: commands.ANNOTATION_CHARACTERS]
            self._write(commands.command(kind, cut, title=title, file=file, line=line))

    def say(self, text: str) -> None:
        """A line or more of the log, never a command."""
        self._write(commands.break_commands(text))

    def event(self) -> dict[str, Any]:
        """The payload of the event; raises ConfigError."""
        path = self.environ.get("GITHUB_EVENT_PATH", "")
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
        with open(path, "a", encoding="utf-8") as stream:
            stream.write(text)

    def _write(self, text: str) -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
