"""A container registry on loopback that asks for a password: Debian's docker-registry. Values only."""

from __future__ import annotations

import json

from tests.cluster.bed.place import Place

USER = "reader"
PASSWORD = "loopback"
# bcrypt, which is what the registry reads.
HTPASSWD = f"{USER}:$2b$05$qtyZ3e3PNMEtOf1ru0Hvv.1LyJkzWzACsL24DKJwcHUbi0QQpjnYG\n"


def config(place: Place) -> str:
    """The registry's configuration; JSON is YAML."""
    settings = {
        "version": "0.1",
        "log": {"level": "warn"},
        "storage": {"filesystem": {"rootdirectory": str(place / "registry")}},
        "http": {"addr": f"127.0.0.1:{place.registry_port}"},
        "auth": {"htpasswd": {"realm": "bed", "path": str(place / "etc/registry.htpasswd")}},
    }
    return json.dumps(settings, indent=2) + "\n"
