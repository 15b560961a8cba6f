"""Workflow commands and the files of a step as text. Pure.

Source: docs.github.com, "Workflow commands for GitHub Actions"; actions/runner 2.336 (ActionCommand.cs,
FileCommandManager.cs): a line is a command if `::name::` stands at its start, behind white space too, or
`##[name]` anywhere in it; lines end at CR and LF; a heredoc ends at the first line that is its delimiter.
"""

from __future__ import annotations

from collections.abc import Iterable

from gpuci.reporting.text import clean, clip

ANNOTATION_CHARACTERS = 4096  # where the runner cuts (ExecutionContext.cs, _maxIssueMessageLength)
TITLE_CHARACTERS = 255
# docs.github.com, "Workflow syntax", jobs.<job_id>.outputs: 1 MB a job, counted as UTF-16.
OUTPUT_BYTES = 1_000_000
# A summary of more is dropped whole (FileCommandManager.cs, AttachmentSizeLimit).
SUMMARY_BYTES = 1024 * 1024
SUMMARY_CUT = "\n\n(The rest is left out: GitHub shows no summary of more than 1 MiB.)\n"


def escape_data(text: str) -> str:
    """The text behind `::name::` in one line."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """A property's value between `::name ` and `::`."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")


def command(name: str, text: str, **properties: str | int) -> str:
    """One line that the runner obeys; properties that are empty or 0 are left out."""
    told = ",".join(f"{key}={escape_property(str(value))}" for key, value in properties.items() if value)
    return f"::{name}{' ' if told else ''}{told}::{escape_data(text)}"


def annotation(kind: str, text: str, *, title: str = "", file: str = "", line: int = 0) -> str:
    """The command of an annotation: `error`, `warning` or `notice`; its text is made harmless and cut.

    A file whose name can't be shown is left out.
    """
    shown = clean(text)
    if len(shown) > ANNOTATION_CHARACTERS:
        shown = shown[: ANNOTATION_CHARACTERS - 3] + "..."
    place: dict[str, str | int] = {"file": file, "line": line} if file.isprintable() else {}
    return command(kind, shown, title=clip(clean(title), TITLE_CHARACTERS), **place)


def remove_matchers(owners: Iterable[str]) -> str:
    """Lines that take away problem matchers, which would make annotations of what we print."""
    return "\n".join(command("remove-matcher", "", owner=owner) for owner in owners)


def key_value(name: str, value: str, delimiter: str) -> str:
    """An entry of GITHUB_OUTPUT or GITHUB_ENV; raises ValueError if a text holds the (random) delimiter."""
    if delimiter in value or delimiter in name:
        raise ValueError("the delimiter stands in the value")
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"


def output_size(name: str, value: str) -> int:
    """Bytes of an output as GitHub counts them."""
    return len((name + value).encode("utf-16-le", "surrogatepass"))


def summary_that_fits(markdown: str, room: int) -> tuple[str, bool]:
    """The text and True, or the lines that fit into `room` bytes with a remark that more is left out.

    A text that fits leaves room for that remark, for the next one that doesn't.
    """
    data = markdown.encode("utf-8", "backslashreplace")
    left = room - len(SUMMARY_CUT)
    if len(data) <= left:
        return data.decode(), True
    head = data[: max(0, left)].decode("utf-8", "ignore")
    return head[: head.rfind("\n") + 1].rstrip("\n") + SUMMARY_CUT, False
