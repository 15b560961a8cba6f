"""What the sh texts in `texts/` print -> values. Pure.

Answers come from a machine that other people use: a text that does not read as expected raises Garbled, and
is then no answer at all.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace

LINE_SEPARATOR = "\x1e"  # stands for a line end inside one line of an answer


class Garbled(ValueError):
    """An answer that does not have its shape."""


@dataclass(frozen=True)
class Site:
    """The login node: the shared folder as it names it, and the programs that are missing."""

    shared: str
    host: str
    missing: tuple[str, ...]


@dataclass(frozen=True)
class Held:
    """A job directory that was there already: who follows it, and the seconds since that one was heard."""

    name: str
    holder: str
    age: int
    token: str


@dataclass(frozen=True)
class Submitted:
    """What sbatch said about one job; `code` None: it was not called, because the queue knows the job."""

    name: str
    code: int | None
    text: str


@dataclass(frozen=True)
class LogPart:
    """News of one job directory: its owner, the job id that runs there, and new bytes of the log."""

    name: str
    holder: str
    claim: str
    size: int
    data: bytes


@dataclass(frozen=True)
class Poll:
    """One round trip. `queue` is what squeue said; None: it was not asked, or failed with `error`."""

    parts: tuple[LogPart, ...]
    queue: str | None
    error: str = ""


@dataclass(frozen=True)
class Details:
    """What Slurm says of one job: the text of scontrol (with its exit code) and lines of sacct."""

    code: int
    text: str
    accounting: str


@dataclass(frozen=True)
class Brought:
    """What came of a job in one round trip with others: a tar of what it left, and Slurm's words; or not."""

    data: bytes | None = None
    details: Details | None = None


def parse_site(out: bytes) -> Site:
    """Read the answer of prepare.sh; raises Garbled."""
    pairs = [line.partition("=")[::2] for line in _lines(out) if "=" in line]
    values = dict(pairs)
    if not values.get("shared", "").startswith("/"):
        raise Garbled(_text(out)[:200])
    missing = tuple(value for name, value in pairs if name == "missing")
    return Site(values["shared"], values.get("host", ""), missing)


def parse_created(out: bytes) -> tuple[frozenset[str], tuple[Held, ...]]:
    """Read the answer of create.sh: names that were made, and those that were there; others were left out.

    Raises Garbled.
    """
    created, held = set(), []
    for line in _lines(out):
        match line.split(" "):
            case ["created", name]:
                created.add(name)
            case ["left", _name]:
                continue
            case ["exists", name, holder, age, token] if _counts(age.lstrip("-")):
                held.append(Held(name, holder, int(age), token))
            case _:
                raise Garbled(line[:200])
    return frozenset(created), tuple(held)


def parse_submitted(out: bytes) -> tuple[tuple[Submitted, ...], str | None]:
    """Read the answer of submit.sh: what became of each job, or what squeue failed with; raises Garbled."""
    submitted = []
    for line in _lines(out):
        word, _, rest = line.partition(" ")
        if word == "queue":
            return (), rest.replace(LINE_SEPARATOR, "\n").strip()
        name, _, rest = rest.partition(" ")
        code, _, text = rest.partition(" ")
        if word == "known":
            submitted.append(Submitted(name, None, ""))
        elif word == "answer" and _counts(code):
            submitted.append(Submitted(name, int(code), text.replace(LINE_SEPARATOR, "\n").strip()))
        else:
            raise Garbled(line[:200])
    return tuple(submitted), None


def parse_poll(out: bytes, *, queue: bool = True) -> Poll:
    """Read the answer of poll.sh, whose end is the queue's if it was asked; raises Garbled.

    Also when bytes are missing.
    """
    parts: list[LogPart] = []
    at = 0
    while queue or at < len(out):
        end = out.find(b"\n", at)
        if end < 0:
            raise Garbled(f"the answer ends at byte {at}")
        words = _text(out[at:end]).split(" ")
        at = end + 1
        match words:
            case ["log", name, holder, claim, size, count] if _counts(size) and _counts(count):
                data = out[at : at + int(count)]
                at += int(count) + 1
                if out[at - 1 : at] != b"\n":
                    raise Garbled(f"bytes of {name} are missing")
                parts.append(LogPart(name, holder, claim, int(size), data))
            case ["queue", code] if _counts(code):
                text = _text(out[at:])
                return Poll(tuple(parts), text) if code == "0" else Poll(tuple(parts), None, text.strip())
            case _:
                raise Garbled(" ".join(words)[:200])
    return Poll(tuple(parts), None)


def parse_details(out: bytes) -> Details:
    """Read the answer of details.sh; raises Garbled."""
    first, *others = _lines(out) or [""]
    word, _, rest = first.partition(" ")
    code, _, text = rest.partition(" ")
    if word != "scontrol" or not _counts(code):
        raise Garbled(first[:200])
    accounting = [line.removeprefix("sacct ") for line in others if line.startswith("sacct ")]
    return Details(int(code), text.replace(LINE_SEPARATOR, "\n").strip(), "\n".join(accounting))


def parse_brought(out: bytes) -> dict[str, Brought]:
    """Read the answer of bring.sh: by name; raises Garbled."""
    brought: dict[str, Brought] = {}
    name = ""
    for line in _lines(out):
        word, _, rest = line.partition(" ")
        if word == "job":
            name = rest
            brought[name] = Brought()
        elif word == "scontrol" and name:
            brought[name] = replace(brought[name], details=parse_details(line.encode()))
        elif word == "tar" and name:
            brought[name] = replace(brought[name], data=_decoded(rest))
        else:
            raise Garbled(line[:200])
    return brought


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise Garbled(f"no base64: {text[:80]}") from error


def _counts(text: str) -> bool:
    """Whether it is a number that int() takes: it refuses one of more than 4,300 digits."""
    return text.isascii() and text.isdecimal() and len(text) < 19


def _lines(out: bytes) -> list[str]:
    """Not `splitlines`, which takes LINE_SEPARATOR for an end of line."""
    return [line for line in _text(out).split("\n") if line]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
