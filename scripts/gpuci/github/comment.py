"""The one comment that a pull request gets, kept in place: which one is ours, and what stands in it. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import NamedTuple

from gpuci.github.client import Comment
from gpuci.reporting.links import Links

# docs.github.com: a comment has at most 65,536 characters.
COMMENT_BYTES = 50_000
_MARKER = re.compile(r"<!-- gpuci workflow=([0-9a-f]{8}) run=([0-9]{1,20}) attempt=([0-9]{1,9}) -->\n")


class Marker(NamedTuple):
    """Which workflow's comment it is (of which use in it), and of which run; a later run is greater."""

    workflow: str
    run: int
    attempt: int

    def __str__(self) -> str:
        return f"<!-- gpuci workflow={self.workflow} run={self.run} attempt={self.attempt} -->\n"


def marker(workflow: str, use: str, run: str, attempt: str) -> Marker:
    """The marker of a run; the workflow's name may hold anything. Raises ValueError for no numbers."""
    whole = f"{workflow}\0{use}" if use else workflow  # no variable holds a NUL
    digest = hashlib.sha256(whole.encode("utf-8", "surrogateescape")).hexdigest()
    return Marker(digest[:8], int(run), int(attempt))


def read_marker(body: str) -> Marker | None:
    """The marker at the head of a comment, None for a comment that is not of this kind."""
    found = _MARKER.match(body.replace("\r\n", "\n"))
    return Marker(found[1], int(found[2]), int(found[3])) if found else None


def find(comments: Iterable[Comment], own: Marker, author: str) -> tuple[Comment, Marker] | None:
    """Our comment of an earlier run of this workflow; a marker that somebody else wrote is not taken."""
    for comment in comments:
        found = read_marker(comment.body) if comment.author == author else None
        if found is not None and found.workflow == own.workflow:
            return comment, found
    return None


def body(own: Marker, page: str, links: Links) -> str:
    """The text of the comment: the page, and what it is about. `page` is Markdown that is harmless."""
    commit = f"[`{links.sha[:12]}`]({links.commit_url})"
    return f"{own}{page}\nFor {commit}, by [this run]({links.run_url}).\n"
