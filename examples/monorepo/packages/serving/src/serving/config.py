"""Where the server listens."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Address:
    """Host and port."""

    host: str
    port: int


def parse(text: str, *, default_port: int = 8000) -> Address:
    """Read `host`, `host:port` or `:port`; raises ValueError for a port that is none."""
    host, separator, port = text.partition(":")
    number = int(port) if separator else default_port
    if not 0 <= number < 65536:
        raise ValueError(f"{number} is no port")
    return Address(host or "localhost", number)
