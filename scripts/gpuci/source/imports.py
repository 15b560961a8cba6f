"""Where an import leads below the root. Pure: existence is a function that the caller passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

Exists = Callable[[str], bool]


class ImportFinder:
    """Finds the file of a module by name, as pytest's import modes and usual layouts would.

    `bases` are further directories that modules are looked for in (`pythonpath`, roots, their `src`).
    """

    def __init__(self, exists: Exists, bases: Sequence[str] = ()) -> None:
        self._exists = exists
        self._bases = tuple(bases)
        self._cached = lru_cache(maxsize=None)(self._find)

    def find(self, module: str, level: int, importer: str) -> str | None:
        """The file (`a/b.py` or `a/b/__init__.py`) of a module that `importer` imports, or None."""
        return self._cached(module, level, importer.rpartition("/")[0])

    def _find(self, module: str, level: int, directory: str) -> str | None:
        tail = module.replace(".", "/")
        if level:
            for _ in range(level - 1):
                directory = directory.rpartition("/")[0]
            return self._module(directory, tail)
        for base in self._search(directory):
            found = self._module(base, tail)
            if found is not None:
                return found
        return None

    def _search(self, directory: str) -> Iterator[str]:
        """The importer's directory and those above it, then the other bases.

        A directory inside a package is left out: only the one above the package is on `sys.path`.
        """
        base = directory
        while True:
            if not self._exists(join(base, "__init__.py")):
                yield base
            if not base:
                break
            base = base.rpartition("/")[0]
        yield from self._bases

    def _module(self, base: str, tail: str) -> str | None:
        path = join(base, tail)
        candidates = (path + ".py", join(path, "__init__.py")) if tail else (join(path, "__init__.py"),)
        return next((candidate for candidate in candidates if self._exists(candidate)), None)


def join(base: str, name: str) -> str:
    """Join two parts of a POSIX path below the root; "" and "." are the root."""
    if base in ("", "."):
        return name
    return f"{base}/{name}" if name else base
