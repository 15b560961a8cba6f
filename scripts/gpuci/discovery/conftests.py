"""What a conftest.py says of collection: ignored paths, hooks that make items. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from gpuci.source.facts import FileFacts
from gpuci.source.imports import join

# Hooks by which other things than functions and classes become tests.
ITEM_HOOKS = ("pytest_pycollect_makeitem", "pytest_pycollect_makemodule", "pytest_collect_file")


@dataclass(frozen=True)
class Conftest:
    """One conftest.py; `ignore` and `ignore_glob` are None where it says nothing, else ROOT-relative.

    `hook` names a hook that makes items, `collects` the strings in its `pytest_collect_file`.
    """

    path: str
    ignore: tuple[str, ...] | None = None
    ignore_glob: tuple[str, ...] | None = None
    hook: str | None = None
    collects: tuple[str, ...] = ()


def read_conftest(path: str, facts: FileFacts, plugins: tuple[FileFacts, ...] = ()) -> Conftest:
    """Read a conftest.py with the plugin modules of the tree that it names."""
    directory = path.rpartition("/")[0]
    hook = next((name for part in (facts, *plugins) if (name := _item_hook(part))), None)
    return Conftest(
        path,
        _paths(facts, "collect_ignore", directory),
        _paths(facts, "collect_ignore_glob", directory),
        hook,
        tuple(text for part in (facts, *plugins) for text in part.collects),
    )


def plugin_modules(facts: FileFacts) -> list[tuple[str, int]]:
    """(module, level) of those that `pytest_plugins` names or that hooks are imported from."""
    named = [(module, 0) for module in _literals(facts, "pytest_plugins") or ()]
    imports = [binding for binding in facts.bindings if binding.kind == "from" and binding.name in ITEM_HOOKS]
    return named + [binding.value[:2] for binding in imports]


def _item_hook(facts: FileFacts) -> str | None:
    names = [binding.name for binding in facts.bindings if binding.kind in ("def", "from", "assign")]
    return next((name for name in names if name in ITEM_HOOKS), None)


def _paths(facts: FileFacts, name: str, directory: str) -> tuple[str, ...] | None:
    literals = _literals(facts, name)
    return None if literals is None else tuple(join(directory, text.rstrip("/")) for text in literals)


def _literals(facts: FileFacts, name: str) -> tuple[str, ...] | None:
    """The strings that a name certainly holds; whatever is bound by a condition may be missing from it.

    Lists only grow by what isn't understood, and a longer list ignores more: leaving that out plans too
    many files, never too few. A conditional assignment could make it shorter: then nothing is certain.
    """
    found: tuple[str, ...] | None = None
    for binding in facts.bindings:
        if binding.kind == "call" and binding.name.startswith(name + ".") and _shrinks(binding.name):
            return None
        if binding.name != name or binding.kind not in ("assign", "augment", "del", "from"):
            continue
        literal = binding.value if binding.kind in ("assign", "augment") else ("other", "")
        known = literal[1] if literal[0] == "constant" and isinstance(literal[1], tuple) else None
        if binding.kind == "augment":
            found = (*(found or ()), *(known if known and not binding.conditional else ()))
        elif binding.conditional or known is None:
            found = None
        else:
            found = known
    return found


def _shrinks(call: str) -> bool:
    return call.rpartition(".")[2] not in ("append", "extend", "insert")


@dataclass(frozen=True)
class Ignoring:
    """What applies at a directory: the nearest conftest that says something counts, not all of them."""

    ignore: tuple[str, ...] = ()
    ignore_glob: tuple[str, ...] = ()
    hook: str | None = None
    collects: tuple[str, ...] = ()

    def below(self, conftest: Conftest) -> Ignoring:
        """What applies from a directory with this conftest on."""
        return Ignoring(
            self.ignore if conftest.ignore is None else conftest.ignore,
            self.ignore_glob if conftest.ignore_glob is None else conftest.ignore_glob,
            self.hook if conftest.hook is None else f"{conftest.path} defines {conftest.hook}",
            self.collects + conftest.collects,
        )

    def ignores(self, path: str) -> bool:
        """Whether pytest passes a file or directory by."""
        return path in self.ignore or any(fnmatchcase(path, pattern) for pattern in self.ignore_glob)

    def collected_by_hook(self, name: str) -> bool:
        """Whether a `pytest_collect_file` seems to look for files of this name."""
        return any(_looks_for(text, name) for text in self.collects)


def _looks_for(text: str, name: str) -> bool:
    if any(character in text for character in "*?["):
        return fnmatchcase(name, text)
    return text == name or (text.startswith((".", "_")) and len(text) > 1 and name.endswith(text))
