"""What a person is told about a tree that is delivered."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

SHOWN = 5


@dataclass(frozen=True)
class Dirty:
    """Paths in which the delivered tree differs from the commit that is checked out."""

    changed: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changed or self.new or self.removed)


def dirty_note(dirty: Dirty) -> tuple[str, ...]:
    """One line on what is delivered beside the commit, none if that is nothing."""
    found = [
        f"{len(paths)} {word}"
        for paths, word in ((dirty.changed, "changed"), (dirty.new, "new"), (dirty.removed, "removed"))
        if paths
    ]
    if not found:
        return ()
    counts = found[0] if len(found) == 1 else f"{', '.join(found[:-1])} and {found[-1]}"
    paths = dirty_paths(dirty)
    noun = "file" if len(paths) == 1 else "files"
    return (f"delivered as here, not as committed: {counts} {noun} ({shown(paths)})",)


def dirty_paths(dirty: Dirty) -> list[str]:
    """All of them, sorted."""
    return sorted((*dirty.changed, *dirty.new, *dirty.removed))


def nested_note(paths: Collection[str]) -> tuple[str, ...]:
    """Repositories inside of the tree that are not part of it."""
    if not paths:
        return ()
    return (f"not delivered, being git repositories of their own: {shown(sorted(paths))}",)


def sparse_note(count: int) -> tuple[str, ...]:
    """Files of the commit that the sparse checkout left out."""
    return (f"not delivered: {count} files outside of the sparse checkout",) if count else ()


def contents_note(count: int) -> tuple[str, ...]:
    """Files of Git LFS whose content is here."""
    return (f"{count} files of Git LFS are delivered with their content",) if count else ()


def missing_warnings(submodules: Collection[str], pointers: Collection[str]) -> tuple[str, ...]:
    """What the delivered tree lacks, with what to do."""
    warnings = []
    if submodules:
        warnings.append(
            f"submodules without content are delivered as empty directories: {shown(sorted(submodules))}. "
            "Check them out first (on a laptop `git submodule update --init`, "
            "in a workflow `submodules:` of the checkout)"
        )
    if pointers:
        warnings.append(
            f"files of Git LFS are delivered as pointers: {shown(sorted(pointers))}. "
            "Fetch their content first (on a laptop `git lfs pull`, in a workflow `lfs:` of the checkout)"
        )
    return tuple(warnings)


def undelivered(delivered: Collection[str], planned: Iterable[str]) -> tuple[str, ...]:
    """Planned files that the delivered tree lacks, as one warning; the usual reason is .gitignore."""
    lost = sorted(set(planned) - set(delivered))
    if not lost:
        return ()
    return (
        f"planned, but not delivered since git ignores them or a repository inside has them: {shown(lost)}",
    )


def shown(paths: list[str]) -> str:
    """The first few of many paths, safe to print."""
    few = [path if path.isprintable() else ascii(path) for path in paths[:SHOWN]]
    return ", ".join(few) + (f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else "")
