"""Looking an image up, pushing an archive, moving a tag. I/O by the registry alone: nothing is run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from functools import partial

from gpuci.errors import GpuciError
from gpuci.images.answers import REFUSED, RegistryError
from gpuci.images.archive import Archive
from gpuci.images.manifest import MANIFEST
from gpuci.images.registry import Registry

Say = Callable[[str], None]


def find(registries: Iterable[Registry], tag: str, say: Say) -> str | None:
    """`registry/name@sha256:…` of the first repository that has the tag; None if none has.

    A refusal counts as "not there": registries give it for names that don't exist yet (GHCR before the first
    push, Artifactory's virtual repositories; google/go-containerregistry#1691). Pushing tells the difference.
    """
    for registry in registries:
        try:
            digest = registry.digest_of(tag)
        except RegistryError as error:
            if error.status not in REFUSED:
                raise
            say(f"{registry.repository} can't be looked into ({error.status}): taken as empty")
            continue
        if digest:
            return f"{registry.repository}@{digest}"
    return None


def push(archive: Archive, registry: Registry, tag: str, say: Say) -> str:
    """Push a checked archive under a tag; returns its digest, or that of whoever was faster.

    Two runs can build the same image at once. No registry takes "only if the tag is free", so the tag is
    looked at again right before; should both write it, both images stay, and each run uses its own digest.
    A registry whose tags never move refuses the second.
    """
    for blob in archive.blobs:
        if registry.has(blob):
            say(f"{blob.digest} is there already")
            continue
        say(f"pushes {blob.digest}, {blob.size:,} bytes")
        registry.upload(blob, partial(archive.open, blob))
    faster = registry.digest_of(tag)
    if faster:
        say("another run pushed this image in the meantime: that one is used")
        return faster
    try:
        registry.put_manifest(tag, archive.manifest, MANIFEST)
    except RegistryError:
        faster = registry.digest_of(tag)
        if not faster:
            raise
        return faster
    return archive.digest


def move_tag(registry: Registry, digest: str, tag: str) -> None:
    """Let a tag name an image that is there; raises GpuciError if it isn't, or is another one."""
    found = registry.manifest(digest)
    if found is None or f"sha256:{hashlib.sha256(found[0]).hexdigest()}" != digest:
        raise GpuciError(
            f"{registry.repository} has no image {digest}",
            why="it was deleted since the tests began",
            then="run the workflow again: it builds the image anew",
        )
    registry.put_manifest(tag, *found)
