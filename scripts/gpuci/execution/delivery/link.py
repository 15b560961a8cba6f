"""What delivery needs of a connection to the login node, and how answers of its texts read. Pure."""

from __future__ import annotations

from typing import IO, Protocol


class Answer(Protocol):
    """Exit code and output of a text."""

    @property
    def code(self) -> int: ...
    @property
    def out(self) -> bytes: ...
    @property
    def err(self) -> str: ...


class Link(Protocol):
    """Runs a `sh` text on the login node: `transport.connection.Connection`."""

    def run(self, text: str, *args: str, stdin: bytes | IO[bytes] = b"", timeout: float = 60.0) -> Answer: ...


def marked(out: bytes, mark: str) -> list[tuple[str, str]]:
    """The (word, rest) of each line that our text marked; a login script may print lines of its own."""
    lines = (line for line in out.decode("utf-8", "replace").splitlines() if line.startswith(mark + " "))
    words = (line.removeprefix(mark + " ").partition(" ") for line in lines)
    return [(word, rest) for word, _, rest in words]
