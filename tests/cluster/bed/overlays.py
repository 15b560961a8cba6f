"""The configuration files with which `gpuci run --backend slurm` uses the bed. Values in, text out."""

from __future__ import annotations

import json
from typing import Any

from tests.cluster.bed.image import IMAGE_PYTHON
from tests.cluster.bed.place import LOGIN_HOSTS, USER, Place


def overlay(place: Place, container: dict[str, Any]) -> str:
    """An overlay for `--config`; JSON is YAML."""
    slurm = {
        "login": list(LOGIN_HOSTS),
        "user": USER,
        "port": place.ssh_port,
        "known-hosts": str(place / "sshd/known_hosts"),
        "identity-file": str(place / "keys/ci"),
        "shared-dir": str(place / "shared"),
        "scratch-dir": str(place / "scratch"),
        "partition": "gpu",
    }
    return json.dumps({"slurm": slurm, "container": container}, indent=2) + "\n"


def plain(place: Place) -> dict[str, Any]:
    """No container: the node's own Python with pytest."""
    return {"runtime": "none", "python": str(place / "python/bin/python3")}


def podman(place: Place, image: str) -> dict[str, Any]:
    """Rootless podman, with the devices that a GPU runtime would bring into the container."""
    devices = [f"--device={device}:/dev/{device.name}" for device in place.devices()]
    return {
        "runtime": "podman",
        "image": image,
        "python": IMAGE_PYTHON,
        "network": "host",
        "mounts": [f"{place / 'nodes/nvidia-smi'}:/usr/bin/nvidia-smi:ro"],
        "extra-options": devices,
    }
