"""Where an import leads below the root. Pure: the caller passes a function that lists directories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

# The names in a directory below the root, none if there is no such directory.
Listing = Callable[[str], frozenset[str]]


class ImportFinder:
    """Finds the file of a module by name, as pytest's import modes and usual layouts would.

    `bases` are further directories that modules are looked for in (`pythonpath`, roots, their `src`).
    """

    def __init__(self, names: Listing, bases: Sequence[str] = ()) -> None:
        self._names = names
        self._bases = tuple(bases)
        self._cached = lru_cache(maxsize=None)(self._find)
        self._search = lru_cache(maxsize=None)(self._list_search)

    def find(self, module: str, level: int, importer: str) -> str | None:
        """The file (`a/b.py` or `a/b/__init__.py`) of a module that `importer` imports, or None."""
        return self._cached(module, level, importer.rpartition("/")[0])

    def _find(self, module: str, level: int, directory: str) -> str | None:
        tail = module.replace(".", "/")
        if level:
            for _ in range(level - 1):
                directory = directory.rpartition("/")[0]
            return self._module(directory, tail)
        top = tail.partition("/")[0]
        for base in self._search(directory):
            names = self._names(base)
            if top in names or f"{top}.py" in names:
                found = self._module(base, tail)
                if found is not None:
                    return found
        return None

    def _list_search(self, directory: str) -> tuple[str, ...]:
        """The importer's directory and those above it, then the other bases.

        A directory inside a package is left out: only the one above the package is on `sys.path`.
        """
        above = [directory]
        while above[-1]:
            above.append(above[-1].rpartition("/")[0])
        outside = [base for base in above if "__init__.py" not in self._names(base)]
        return tuple(dict.fromkeys([*outside, *self._bases]))

    def _module(self, base: str, tail: str) -> str | None:
        parent, _, last = join(base, tail).rpartition("/")
        if last and f"{last}.py" in self._names(parent):
            return join(parent, f"{last}.py")
        package = join(base, tail)
        if tail and last not in self._names(parent):
            return None
        return join(package, "__init__.py") if "__init__.py" in self._names(package) else None


def join(base: str, name: str) -> str:
    """Join two parts of a POSIX path below the root; "" and "." are the root."""
    if base in ("", "."):
        return name
    return f"{base}/{name}" if name else base
