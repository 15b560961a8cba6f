"""Devices as CUDA shows them: `CUDA_VISIBLE_DEVICES` is read until the first use, and stands from then on."""

from __future__ import annotations

import os

MACHINE = tuple(str(number) for number in range(8))

_devices: tuple[str, ...] | None = None
_current = 0


def visible_devices() -> tuple[str, ...]:
    """Return the ids of the visible devices; all eight if the variable is not set."""
    if _devices is not None:
        return _devices
    value = os.environ.get("CUDA_VISIBLE_DEVICES")
    if value is None:
        return MACHINE
    return tuple(part.strip() for part in value.split(",") if part.strip())


def init() -> None:
    """Fix the visible devices, as the first real call into CUDA does."""
    global _devices
    _devices = visible_devices()


def is_initialized() -> bool:
    return _devices is not None


def device_count() -> int:
    return len(visible_devices())


def is_available() -> bool:
    return device_count() > 0


def current_device() -> int:
    """Return the number of the current device among the visible ones."""
    init()
    if not is_available():
        raise RuntimeError("no CUDA-capable device is detected")
    return _current


def set_device(number: int) -> None:
    """Make a visible device the current one; raises RuntimeError if there is no such device."""
    global _current
    init()
    if not 0 <= number < device_count():
        raise RuntimeError("CUDA error: invalid device ordinal")
    _current = number
