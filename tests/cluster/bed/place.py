"""Where a bed keeps its files and which ports it takes. Values only."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

GPU_NODES = tuple(f"gpu{number:03d}" for number in range(1, 15))
CPU_NODES = ("cpu001", "cpu002")
NODES = (*GPU_NODES, *CPU_NODES)
GPUS = 8
USER = "ci"
# Two login hosts on one port, as a cluster has them: the loopback network is a /8.
LOGIN_HOSTS = ("127.0.0.1", "127.0.0.2")
# Socket paths below it must stay under the kernel's 108 bytes; Slurm splits the path of its configuration.
DIRECTORY = re.compile(r"/[\w./-]{1,59}", re.ASCII)


@dataclass(frozen=True)
class Place:
    """The bed below `top`, an absolute path that matches DIRECTORY."""

    top: Path
    base_port: int = 17000

    def __truediv__(self, name: str) -> Path:
        return self.top / name

    @property
    def slurm_conf(self) -> Path:
        """What SLURM_CONF must name for every daemon and client."""
        return self / "etc/slurm.conf"

    @property
    def home(self) -> Path:
        """The home of the user `ci`."""
        return self / "home"

    @property
    def munge_socket(self) -> Path:
        """Where munged listens."""
        return self / "run/munge/socket"

    @property
    def database_socket(self) -> Path:
        """Where MariaDB listens, for root."""
        return self / "run/mysql/socket"

    @property
    def controller_port(self) -> int:
        """Of slurmctld."""
        return self.base_port

    @property
    def accounting_port(self) -> int:
        """Of slurmdbd."""
        return self.base_port + 1

    @property
    def database_port(self) -> int:
        """Of MariaDB."""
        return self.base_port + 2

    @property
    def ssh_port(self) -> int:
        """Of both login hosts."""
        return self.base_port + 22

    @property
    def registry_port(self) -> int:
        """Of the container registry."""
        return self.base_port + 50

    def node_port(self, node: str) -> int:
        """Of a node's slurmd."""
        return self.base_port + 100 + NODES.index(node)

    def devices(self) -> tuple[Path, ...]:
        """The pretended GPUs, which all nodes share."""
        return tuple(self / f"dev/nvidia{number}" for number in range(GPUS))
