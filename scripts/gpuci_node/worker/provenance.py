"""Whether tests test the tree: packages that the tree has, and Python finds elsewhere.

An image often holds an installed copy of what is under test, of the day when it was built.

Runs in the test process, inside the container (Python >= 3.8, standard library only).
"""

import os
import sys
from importlib.machinery import PathFinder
from typing import Any, Dict, Iterator, List, Optional, Tuple

# Names that each project has, and the standard library or an image too.
_COMMON = frozenset(
    {"test", "tests", "testing", "docs", "doc", "examples", "scripts", "tools", "build", "bin"}
)


def elsewhere(spec: Dict[str, Any]) -> List[str]:
    """A line for each package of the root that is imported from outside of the tree, or would be."""
    tree = os.path.realpath(spec["root_dir"])
    lines = []
    for name, path in packages(spec["here"]):
        found = _location(name)
        if found is not None and os.path.commonpath([tree, os.path.realpath(found)]) != tree:
            lines.append("tests get %s from %s, not from the tree's %s" % (name, found, _shown(tree, path)))
    return lines


def packages(root: str) -> Iterator[Tuple[str, str]]:
    """Name and directory of the packages in a root and its `src`."""
    for parent in (root, os.path.join(root, "src")):
        if not os.path.isdir(parent):
            continue
        for entry in sorted(os.scandir(parent), key=lambda entry: entry.name):
            is_package = entry.name.isidentifier() and os.path.isfile(os.path.join(entry.path, "__init__.py"))
            if is_package and entry.name not in _COMMON:
                yield entry.name, entry.path


def _location(name: str) -> Optional[str]:
    """The file that a package is imported from, or would be by `sys.path` as pytest left it."""
    module = sys.modules.get(name)
    if module is not None:
        return getattr(module, "__file__", None)
    found = PathFinder.find_spec(name, sys.path)
    return found.origin if found is not None else None


def _shown(tree: str, path: str) -> str:
    return os.path.relpath(os.path.realpath(path), tree)
