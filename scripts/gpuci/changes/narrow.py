"""What is due -> the part of a manifest that is. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from gpuci.model import Manifest, Root
from gpuci.repository.globs import above


def narrowed(manifest: Manifest, packages: Sequence[str]) -> Manifest:
    """The tests at and below some directories or files, in their order; roots without any go."""
    due = frozenset(packages)
    roots = tuple(_root(root, due) for root in manifest.roots)
    return Manifest(
        targets=tuple(target for target in manifest.targets if _is_due(target.test_path, due)),
        roots=tuple(root for root in roots if root.files),
        errors=tuple(error for error in manifest.errors if _is_due(error.path, due)),
    )


def _root(root: Root, due: Collection[str]) -> Root:
    files = tuple(file for file in root.files if _is_due(file, due))
    return replace(
        root, files=files, opaque={file: root.opaque[file] for file in files if file in root.opaque}
    )


def _is_due(path: str, due: Collection[str]) -> bool:
    return any(directory in due for directory in above(path))
