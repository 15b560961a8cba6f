"""What an archive of an image says it holds, checked before any of it is pushed. Pure.

Whoever wrote the Dockerfile may have written the archive. Format: OCI image specification 1.1
(image-layout.md, manifest.md, config.md); an image of exactly one platform, without layers elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuci.errors import GpuciError
from gpuci.images.names import is_digest

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYERS = tuple(f"application/vnd.oci.image.layer.v1.tar{kind}" for kind in ("", "+gzip", "+zstd"))
# What registries take at least and, by and large, at most (distribution 2.8 and 3: 4 MiB).
DOCUMENT_BYTES = 4 * 1024 * 1024
MAX_LAYERS = 512
# A layer of more is refused by GHCR (docs.github.com, "Working with the Container registry").
LAYER_BYTES = 10_000_000_000


# Go's encoding/json, which registries and runtimes read with, takes a key in any case, and the last of two.
_KEYS = {
    key.casefold(): key
    for key in ("schemaVersion", "mediaType", "manifests", "config", "layers", "digest", "size", "urls")
}


class BrokenImage(GpuciError):
    """The archive is no image that we would push."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"the archive of the image can't be pushed: {what}",
            why="the builder wrote another kind of image, or the disk was full, or the archive was forged",
            then="look at the log of build-image; docs/images.md says which images are pushed",
        )


@dataclass(frozen=True)
class Blob:
    """A part of an image: `sha256:…` and its bytes."""

    digest: str
    size: int


@dataclass(frozen=True)
class Manifest:
    """An image: its configuration and layers, in the order of the manifest."""

    config: Blob
    layers: tuple[Blob, ...]


def document_of(data: bytes, what: str, *, exact: bool = True) -> Mapping[str, Any]:
    """JSON that holds a mapping; raises BrokenImage, if `exact` also where Go would read something else."""
    try:
        document = json.loads(data, object_pairs_hook=_exact if exact else None)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise BrokenImage(f"{what} is no JSON mapping")
    return document


def only_manifest(index: Mapping[str, Any]) -> Blob:
    """The one image that `index.json` names; raises BrokenImage."""
    manifests = index.get("manifests")
    if index.get("schemaVersion") != 2 or not isinstance(manifests, list):
        raise BrokenImage("index.json lists no manifests")
    if len(manifests) != 1:
        raise BrokenImage(f"it holds {len(manifests)} images instead of one")
    found = _blob(manifests[0], (MANIFEST,), "index.json")
    if found.size > DOCUMENT_BYTES:
        raise BrokenImage("its manifest is too big")
    return found


def manifest_of(document: Mapping[str, Any]) -> Manifest:
    """The parts of an image; raises BrokenImage for what a node could not take, or from elsewhere."""
    layers = document.get("layers")
    if document.get("schemaVersion") != 2 or document.get("mediaType", MANIFEST) != MANIFEST:
        raise BrokenImage("its manifest is of another kind")
    if not isinstance(layers, list) or len(layers) > MAX_LAYERS:
        raise BrokenImage(f"its manifest has no list of at most {MAX_LAYERS} layers")
    config = _blob(document.get("config"), (_CONFIG,), "the manifest's config")
    if config.size > DOCUMENT_BYTES:
        raise BrokenImage("its configuration is too big")
    return Manifest(config, tuple(_blob(layer, _LAYERS, "a layer") for layer in layers))


def platform_fault(config: Mapping[str, Any], wanted: str) -> str | None:
    """Why the image's configuration is not of the platform `linux/amd64[/v1]`; None where it is."""
    system, architecture, *variant = [*wanted.split("/")]
    found = (config.get("os"), config.get("architecture"))
    if found != (system, architecture) or (variant and config.get("variant") not in (None, *variant)):
        return f"it is for {found[0]}/{found[1]}, and container.build.platform is {wanted}"
    return None


def _exact(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs) or any(_KEYS.get(key.casefold(), key) != key for key in found):
        raise BrokenImage("a document in it has a key twice, or in another case")
    return found


def _blob(descriptor: Any, kinds: tuple[str, ...], where: str) -> Blob:
    if not isinstance(descriptor, dict):
        raise BrokenImage(f"{where} describes nothing")
    if descriptor.get("mediaType") not in kinds:
        raise BrokenImage(f"{where} has the media type {str(descriptor.get('mediaType'))[:100]!r}")
    if descriptor.get("urls"):
        raise BrokenImage(f"{where} lies elsewhere")
    digest, size = descriptor.get("digest"), descriptor.get("size")
    if not isinstance(digest, str) or not is_digest(digest):
        raise BrokenImage(f"{where} has no sha256 digest")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= LAYER_BYTES:
        raise BrokenImage(f"{where} has no size from 0 to {LAYER_BYTES:,} bytes")
    return Blob(digest, size)
