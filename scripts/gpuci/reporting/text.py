"""Untrusted text -> text that is harmless on a terminal, in a job log, in Markdown and in HTML. Pure.

Three facts decide what is done here. A runner of GitHub Actions takes `::name::` as a command if only
blanks stand before it, and `##[name]` anywhere in a line; its lines end at CR too. A terminal obeys
control characters. A reader is misled by characters that change the order or are not seen.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple

# CSI (colours, cursor), OSC and other strings (titles, OSC 8 links), and two-byte escapes; also as C1 bytes.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_COMMAND = re.compile(r"((?:^|(?<=[\r\n]))[^\S\r\n]*)::")
_MARKDOWN = re.compile(r"[^A-Za-z0-9 \-/,;\u0080-\U0010ffff]")
# docs.python.org/3/library/faulthandler.html: frames, heads of threads, C frames (3.14), loaded extensions.
_DUMP_HEAD = "(most recent call first)"
_DUMP_LINE = re.compile(r"\s*(?:(?:Binary f|F)ile \"|(?:Current t|T)hread|Extension modules|<|\.\.\.|$)")
_RUNNER = re.compile(r"/(?:_pytest|pluggy)/")
_PLACE = re.compile(r"\s*(?:File \"|\S+:\d+: )")
ELLIPSIS = "..."
GUTTER = "│ "
LINE_WIDTH = 400  # of a line in Markdown


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


def clip_output(text: str, width: int) -> str:
    """Cut one clean line of a test's output: a place (`FILE:LINE: ...`) in its middle, else at the end."""
    return clip_middle(text, width) if _PLACE.match(text) else clip(text, width)


def gutter(lines: Iterable[str], width: int, mark: str = GUTTER) -> list[str]:
    """Clean lines of a test's output, each behind `mark` and cut to `width` columns with it.

    Whoever reads the log sees what the tests wrote, and no line of it starts with what they chose.
    """
    return [f"{mark}{clip_output(line, width - len(mark))}".rstrip() for line in lines]


def _head(text: str, width: int) -> str:
    used = 0
    for place, char in enumerate(text):
        used += _char_width(char)
        if used > width:
            return text[:place]
    return text


def wrap(text: str, width: int, *, first: str = "", rest: str = "", whole: bool = False) -> list[str]:
    """Break one clean line at blanks into lines of at most `width` columns.

    A longer word is cut, behind a `/` or `::` if it has one there; with `whole` it stays as it is, so that
    a path can be copied. `first` and `rest` are put before the first and the other lines, and count.
    """
    lines: list[str] = []
    line = first
    empty = True
    room = max(8, width - max(len(first), len(rest)))
    for word in text.split() if whole else _pieces(text, room):
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
            head = _whole_names(_head(left, width))
            pieces.append(head)
            left = left[len(head) :]
        pieces.append(left)
    return pieces


def _whole_names(head: str) -> str:
    """The head of a path or node id up to its last whole name, if that is not much less."""
    end = max(head.rfind("/") + 1, head.rfind("::") + 2)
    return head[:end] if end > len(head) // 2 else head


class Excerpt(NamedTuple):
    """Some lines of a text, and how many were left out before and behind them."""

    lines: list[str]
    above: int
    below: int

    def told(self) -> list[str]:
        """The lines, and what was left out in words."""
        above = [f"({plural(self.above, 'line')} above)"] if self.above else []
        below = [f"({plural(self.below, 'line')} below)"] if self.below else []
        return [*above, *self.lines, *below]


def excerpt(text: str, count: int | None) -> Excerpt:
    """The `count` lines of a test's output that say most (None: all of them): the last ones.

    But if it ends in a dump of Python's faulthandler, whose newest call comes first: the first ones of that,
    down to where pytest called the test.
    """
    lines = _trimmed(text.split("\n"))
    if count is None:
        return Excerpt(lines, 0, 0)
    start = _dump_start(lines)
    if start is None:
        start = max(0, len(lines) - count)
        return Excerpt(lines[start:], start, 0)
    last = min(start + count, len(lines))
    end = next((place for place in range(start + 2, last) if _RUNNER.search(lines[place])), last)
    return Excerpt(lines[start:end], start, len(lines) - end)


def _dump_start(lines: Sequence[str]) -> int | None:
    heads = [place for place, line in enumerate(lines) if _DUMP_HEAD in line]
    if not heads or not all(_DUMP_LINE.match(line) for line in lines[heads[0] + 1 :]):
        return None
    return next((place for place in heads if "Current thread" in lines[place]), heads[0])


def _trimmed(lines: list[str]) -> list[str]:
    """The lines without blank ones at the ends."""
    told = [place for place, line in enumerate(lines) if line.strip()]
    return lines[told[0] : told[-1] + 1] if told else []


def inline_code(text: str) -> str:
    """Untrusted text -> one line of inline code, for Markdown (tables, lists, summaries too) and HTML.

    Everything that Markdown could read is a character reference, which is never structure
    (CommonMark 0.31, 2.5); in code GitHub makes no links, mentions or emoji.
    """
    return f"<code>{_referenced(one_line(text)) or '&#32;'}</code>"


def short_code(text: str, width: int = LINE_WIDTH) -> str:
    """`inline_code` of a text that is cut to `width` columns."""
    return inline_code(clip(one_line(text), width))


def utf8_size(text: str) -> int:
    """Bytes of a text that goes to GitHub."""
    return len(text.encode("utf-8", "replace"))


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


def about(seconds: float) -> str:
    """Seconds that are an estimate, for people: `3 s`, `41 s`, `3 min`, `1 h 02 min`."""
    if seconds < 99.5:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def size(count: int) -> str:
    """Bytes for people: `12.3 GiB`, `512 MiB`, `1 MiB` for less."""
    mebibytes = max(1, round(count / 2**20))
    return f"{mebibytes} MiB" if mebibytes < 1024 else f"{count / 2**30:.1f} GiB"


def plural(count: int, noun: str) -> str:
    """`1 test`, `2 tests`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
