"""Untrusted text -> text that is harmless on a terminal, in a job log, in Markdown and in HTML. Pure.

Three facts decide what is done here. A runner of GitHub Actions takes `::name::` as a command if only
blanks stand before it, and `##[name]` anywhere in a line. A terminal obeys control characters. A
reader is misled by characters that change the order or are not seen.
"""

from __future__ import annotations

import re
import unicodedata

# CSI (colours, cursor), OSC and other strings (titles, OSC 8 links), and two-byte escapes; also as C1 bytes.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_COMMAND = re.compile(r"^([^\S\n]*)::", re.MULTILINE)
_MARKDOWN = re.compile(r"[^A-Za-z0-9 \-/,;\u0080-\U0010ffff]")
ELLIPSIS = "..."


def clean(text: str, *, tab: int = 4) -> str:
    """Make text harmless, keeping its lines: no escapes, no control or unseen character, no command.

    A carriage return shows what a terminal would show: the text after it. Any other unseen character
    becomes its Python escape.
    """
    plain = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    lines = (_after_return(line).expandtabs(tab) for line in plain.split("\n"))
    return guard("\n".join(_visible(line) for line in lines))


def one_line(text: str) -> str:
    """Like `clean`, on one line: line ends and runs of blanks become one blank."""
    return guard(" ".join(clean(text).split()))


def guard(text: str) -> str:
    """Break every workflow command in a text of any number of lines; other text is unchanged."""
    return _COMMAND.sub(r"\1|::", text.replace("##[", "## ["))


def _after_return(line: str) -> str:
    """What a terminal leaves of a line with carriage returns, roughly: the last piece that is not empty."""
    pieces = [piece for piece in line.split("\r") if piece]
    return pieces[-1] if pieces else ""


def _visible(line: str) -> str:
    if line.isascii() and line.isprintable():
        return line
    return "".join(_escaped(char) if unicodedata.category(char) in _UNSEEN else char for char in line)


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def width_of(text: str) -> int:
    """Columns of one clean line on a terminal, at most: wide East Asian characters take two.

    Combining characters count as one, so that no text is longer than its width.
    """
    if text.isascii():
        return len(text)
    return sum(map(_char_width, text))


def _char_width(char: str) -> int:
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def clip(text: str, width: int) -> str:
    """Cut one clean line to at most `width` columns, the end marked."""
    if width_of(text) <= width:
        return text
    if width <= len(ELLIPSIS):
        return ELLIPSIS[: max(0, width)]
    return _head(text, width - len(ELLIPSIS)) + ELLIPSIS


def clip_middle(text: str, width: int) -> str:
    """Cut one clean line to at most `width` columns in its middle: of a node id both ends tell something."""
    if width_of(text) <= width or width <= len(ELLIPSIS):
        return clip(text, width)
    tail = (width - len(ELLIPSIS)) * 2 // 3
    head = width - len(ELLIPSIS) - tail
    return _head(text, head) + ELLIPSIS + _head(text[::-1], tail)[::-1]


def _head(text: str, width: int) -> str:
    used = 0
    for place, char in enumerate(text):
        used += _char_width(char)
        if used > width:
            return text[:place]
    return text


def wrap(text: str, width: int, *, first: str = "", rest: str = "") -> list[str]:
    """Break one clean line at blanks into lines of at most `width` columns; a longer word is cut.

    `first` and `rest` are put before the first and the other lines, and count.
    """
    lines: list[str] = []
    line = first
    empty = True
    for word in _pieces(text, max(8, width - max(len(first), len(rest)))):
        if not empty and width_of(line) + 1 + width_of(word) > width:
            lines.append(line)
            line, empty = rest, True
        line = line + word if empty else f"{line} {word}"
        empty = False
    return [*lines, line]


def _pieces(text: str, width: int) -> list[str]:
    """The words of a text, each cut to at most `width` columns."""
    pieces: list[str] = []
    for word in text.split():
        left = word
        while width_of(left) > width:
            head = _head(left, width)
            pieces.append(head)
            left = left[len(head) :]
        pieces.append(left)
    return pieces


def last_lines(text: str, count: int) -> tuple[list[str], int]:
    """The last `count` lines of a text without blank lines at its ends, and how many stand before them."""
    lines = text.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    while lines and not lines[0].strip():
        lines.pop(0)
    kept = lines[max(0, len(lines) - count) :]
    return kept, len(lines) - len(kept)


def inline_code(text: str) -> str:
    """Untrusted text -> one line of inline code, for Markdown (tables, lists, summaries too) and HTML.

    Everything that Markdown could read is a character reference, which is never structure
    (CommonMark 0.31, 2.5); in code GitHub makes no links, mentions or emoji.
    """
    return f"<code>{_referenced(one_line(text)) or '&#32;'}</code>"


def _referenced(text: str) -> str:
    return _MARKDOWN.sub(lambda match: f"&#{ord(match.group())};", text)


def fence(text: str) -> str:
    """Untrusted text of any number of lines -> a code block that nothing in it can close."""
    body = clean(text)
    longest = max((len(run) for run in re.findall(r"`+", body)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}text\n{body}\n{ticks}"


def duration(seconds: float) -> str:
    """Seconds for people: `0.42 s`, `41.2 s`, `3 min 05 s`, `1 h 02 min`."""
    if seconds < 9.995:
        return f"{seconds:.2f} s"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def plural(count: int, noun: str) -> str:
    """`1 test`, `2 tests`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
