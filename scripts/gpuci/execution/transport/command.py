"""A constant `sh` text -> a command line for any login shell; what it printed -> the answer. Pure.

Two facts decide the form. sshd gives the command line to the user's login shell, which may be a csh or
fish; only single-quoted printable ASCII without `'`, `!` and a backslash means the same to all of them.
And the exit status 255 of ssh says nothing of the command: so it is told on both streams, in a line with
a nonce. An answer is whole when both have come; what login scripts print stands before the first line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpuci.errors import ConfigError

# Linux: MAX_ARG_STRLEN is 131072 (execve(2)); sshd passes the whole command line as one argument.
LONGEST = 120_000

_WRAPPER = (
    "gpuci_n=$1; shift; "
    'for gpuci_a do shift; set -- "$@" "$(printf %b "$gpuci_a")"; done; '
    "gpuci_t=$1; shift; "
    'echo "gpuci-start $gpuci_n"; echo "gpuci-start $gpuci_n" >&2; '
    '(eval "$gpuci_t"); gpuci_c=$?; '
    'echo "gpuci-end $gpuci_n $gpuci_c"; echo "gpuci-end $gpuci_n $gpuci_c" >&2'
)
_PLAIN = frozenset(b" ") | (frozenset(range(0x21, 0x7F)) - frozenset(b"'!\\"))


@dataclass(frozen=True)
class Answer:
    """What a remote text gave: its exit code (128 + n if signal n ended it), all of its output."""

    code: int
    out: bytes
    err: str


def remote_command(text: str, args: Sequence[str], nonce: str) -> str:
    """Return the command line that runs `text` with $1, $2, … = `args`, between lines with the nonce.

    Raises ConfigError for an argument with a line end or NUL, and for more than fits into one command line.
    """
    for value in args:
        if any(char in value for char in "\0\n\r"):
            raise ConfigError(f"{value!a} can't be sent to the login node: it holds a line end or a NUL")
    words = ["exec", "sh", "-c", f"'{_WRAPPER}'", "gpuci", nonce, *map(_quoted, (text, *args))]
    line = " ".join(words)
    if len(line) > LONGEST:
        raise ConfigError(
            f"a command for the login node has {len(line)} characters; {LONGEST} fit",
            then="this is a mistake in gpuci: long lists go over standard input; please report it",
        )
    return line


def _quoted(word: str) -> str:
    """A word for any shell; `printf %b` of the wrapper turns `\\0NNN` (POSIX) back into bytes."""
    return "'" + "".join(_octal(word.encode("utf-8", "surrogateescape"))) + "'"


def _octal(word: bytes) -> Iterator[str]:
    return (chr(byte) if byte in _PLAIN else f"\\0{byte:03o}" for byte in word)


def answer_of(nonce: str, out: bytes, err: bytes) -> Answer | None:
    """Return the answer that two streams hold, None if it is not whole."""
    answered, told = _between(nonce, out), _between(nonce, err)
    if answered is None or told is None:
        return None
    return Answer(answered[1], answered[0], told[0].decode("utf-8", "replace"))


def started(nonce: str, out: bytes, err: bytes) -> bool:
    """Whether the remote text was reached."""
    start = b"gpuci-start " + nonce.encode()
    return start in out or start in err


def _between(nonce: str, stream: bytes) -> tuple[bytes, int] | None:
    """What a stream holds between its two lines, and the exit code of the second."""
    start = b"gpuci-start %s\n" % nonce.encode()
    first = stream.find(start)
    last = stream.rfind(b"gpuci-end %s " % nonce.encode())
    if first < 0 or last < first:
        return None
    # A killed shell can leave half a line: it counts with its line end only.
    code = re.match(rb"gpuci-end [^ ]+ ([0-9]{1,3})\n", stream[last:])
    return (stream[first + len(start) : last], int(code[1])) if code else None
