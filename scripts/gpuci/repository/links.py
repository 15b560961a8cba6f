"""Where symbolic links of a tree lead, by text alone. Pure.

A hostile tree can point a link at any file of the machine that unpacks it, also by way of other links. So a
link is followed here, in the tree's own terms, before it is made.
"""

from __future__ import annotations

from collections.abc import Mapping

# Linux follows 40 links in one path (path_resolution(7)).
MAX_LINKS = 40


def destination(path: str, links: Mapping[str, str]) -> str | None:
    """The path, relative to the tree, that a link of it comes to; `.` is the tree itself.

    `links` maps the path of each link of the tree to its text. None for a link that leaves the tree, even on
    the way, and for one that never ends.
    """
    here: list[str] = []
    due = path.split("/")[::-1]
    followed = 0
    while due:
        part = due.pop()
        if part == "..":
            if not here:
                return None
            here.pop()
        elif part not in ("", "."):
            here.append(part)
            text = links.get("/".join(here))
            if text is not None:
                followed += 1
                if text.startswith("/") or followed > MAX_LINKS:
                    return None
                here.pop()
                due += text.split("/")[::-1]
    return "/".join(here) or "."
