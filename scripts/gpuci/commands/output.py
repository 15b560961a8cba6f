"""What the commands say to people and programs. Writes to the standard streams, and fails for no reader.

In a step of GitHub Actions the runner reads along: no line of ours is a workflow command, wherever it was
broken, but those of `show_log`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from gpuci.errors import GpuciError
from gpuci.reporting.text import guard, one_line, wrap


def say(text: str) -> None:
    """Tell people something, on standard error: standard output is for documents.

    Nothing fails because nobody listens.
    """
    with suppress(OSError):
        _write(sys.stderr, "\n".join(lines_of(text)) + "\n")


def lines_of(text: str) -> list[str]:
    """The lines of `say`, for a writer of its own on standard error."""
    lines = wrap(one_line(text), page_style(sys.stderr)["width"], rest="  ", whole=True)
    return [guard(line) for line in lines]


def complain(error: GpuciError) -> None:
    """Show an error's page on standard error; what it quotes is made harmless."""
    for line in error.page().split("\n"):
        indent, text = _label(line)
        rest = "  " if indent.startswith("error:") else " " * len(indent)
        lines = wrap(one_line(text), page_style(sys.stderr)["width"], first=indent, rest=rest, whole=True)
        with suppress(OSError):
            _write(sys.stderr, guard("\n".join(lines)) + "\n")


def _label(line: str) -> tuple[str, str]:
    """What a line of an error's page starts with, and the rest of it."""
    text = line.lstrip(" ")
    for label in ("error:", "why:", "then:"):
        text = text.removeprefix(label)
    text = text.lstrip(" ")
    return line[: len(line) - len(text)], text


def show(text: str) -> None:
    """Write a whole text to standard output; workflow commands in it are broken.

    A reader that left (`| head`) has what it wanted, and the exit code still counts. Raises GpuciError if
    it can't be written for another reason, such as a full disk.
    """
    _show(guard(text))


def show_log(lines: Sequence[str]) -> None:
    """Write lines for a job's log as they are: their maker put commands among what it made harmless.

    Raises GpuciError as `show` does.
    """
    _show("".join(f"{line}\n" for line in lines))


def _show(text: str) -> None:
    try:
        _write(sys.stdout, text)
    except BrokenPipeError:
        return
    except OSError as error:
        raise GpuciError(f"standard output can't be written: {error.strerror}") from error


def _write(stream: TextIO, text: str) -> None:
    """Write and flush; a stream that broke is led to nowhere, or Python would fail again at its exit."""
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except OSError:
        with suppress(OSError), open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())
        raise


def show_document(document: dict[str, Any]) -> None:
    """A document alone on standard output, the same one for who parses it whatever its texts hold."""
    # Outside of texts JSON has no `#`, and no line of it starts with a colon.
    _show(json.dumps(document, indent=1).replace("##[", "#\\u0023[") + "\n")


def short(path: Path) -> str:
    """A path as a person standing here would write it."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def page_style(stream: TextIO) -> dict[str, Any]:
    """Width and colour that fit a stream: colour only on a terminal that has it and without NO_COLOR."""
    terminal = stream.isatty()
    colour = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return {"width": min(_columns(stream), 120) if terminal else 80, "colour": colour}


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
