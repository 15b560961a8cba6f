"""Archives of images in OCI layout, whole and in parts, to make wrong in one way each."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def described(data: bytes, kind: str, **more: Any) -> dict[str, Any]:
    """A descriptor."""
    return {"mediaType": kind, "digest": digest_of(data), "size": len(data), **more}


@dataclass
class Layout:
    """What goes into an archive; change a part, then `write`."""

    layers: list[bytes] = field(default_factory=lambda: [b"one", b"two"])
    config: dict[str, Any] = field(default_factory=lambda: {"os": "linux", "architecture": "amd64"})
    layer: dict[str, Any] = field(default_factory=dict)
    manifest: dict[str, Any] = field(default_factory=dict)
    index: dict[str, Any] = field(default_factory=dict)
    files: dict[str, bytes | None] = field(default_factory=dict)

    def members(self) -> Mapping[str, bytes]:
        config = json.dumps(self.config).encode()
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": described(config, CONFIG),
            "layers": [described(data, LAYER, **self.layer) for data in self.layers],
            **self.manifest,
        }
        text = json.dumps(manifest).encode()
        index = {"schemaVersion": 2, "manifests": [described(text, MANIFEST)], **self.index}
        blobs = {f"blobs/sha256/{digest_of(data)[7:]}": data for data in [*self.layers, config, text]}
        found: dict[str, bytes | None] = {
            "oci-layout": b'{"imageLayoutVersion": "1.0.0"}',
            "index.json": json.dumps(index).encode(),
            **blobs,
            **self.files,
        }
        return {name: data for name, data in found.items() if data is not None}

    def write(self, path: Path) -> Path:
        with tarfile.open(path, "w") as tar:
            for name, data in self.members().items():
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
        return path
