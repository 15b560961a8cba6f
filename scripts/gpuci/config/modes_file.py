"""The file that a configuration's `modes` names. Pure."""

from __future__ import annotations

from gpuci.config.parse import parse
from gpuci.config.paths import path_fault, tidy_path
from gpuci.config.tree import Branch, ProblemsFound, Scalar


def modes_file(data: bytes) -> str | None:
    """The path, if `modes` is one in this text; what is wrong with the text is told when it is loaded."""
    try:
        tree, _ = parse(data, "")
    except ProblemsFound:
        return None
    modes = tree.entries.get("modes") if isinstance(tree, Branch) else None
    if not isinstance(modes, Scalar) or not isinstance(modes.value, str) or path_fault(modes.text):
        return None
    return tidy_path(modes.text)
