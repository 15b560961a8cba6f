"""The names by which a path of a tree is reached: its own, and those by way of symbolic links. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpuci.repository.globs import above, holds

MOST = 100  # names of one path; links that lead to each other in a circle make any number


class Aliases:
    """Of two trees' links (link -> where it leads, None: out of the tree)."""

    def __init__(self, *sides: Mapping[str, str | None]) -> None:
        self._links: dict[str, list[str]] = {}
        self._all: list[tuple[str, str]] = []
        for link, target in sorted({item for links in sides for item in links.items() if item[1]}):
            assert target is not None
            self._links.setdefault(target, []).append(link)
            self._all.append((link, target))

    def of(self, path: str, *, submodule: bool = False) -> list[str]:
        """The path first; at most `MOST`, each link taken once on the way. A link that leads into a submodule
        is a name of it."""
        into = (link for link, target in self._all if holds(path, target)) if submodule else ()
        found: dict[str, tuple[str, ...]] = {path: (), **{link: (link,) for link in into}}
        waiting = list(found)
        while waiting and len(found) < MOST:
            name = waiting.pop()
            for link, further in self._one_link_away(name):
                if link not in found[name] and further not in found:
                    found[further] = (*found[name], link)
                    waiting.append(further)
        return list(found)[:MOST]

    def _one_link_away(self, name: str) -> Iterator[tuple[str, str]]:
        for directory in above(name):
            rest = name if directory == "." else name[len(directory) + 1 :]
            for link in self._links.get(directory, ()):
                yield link, f"{link}/{rest}" if rest else link
