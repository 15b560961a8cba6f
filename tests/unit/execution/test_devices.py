"""Which devices a shard gets on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuci.errors import ConfigError
from gpuci.execution.local.devices import Devices, detect, share_out

FOUR = ("0", "1", "2", "3")


@pytest.mark.parametrize(
    ("names", "visible", "found"),
    [
        ([], None, ()),
        ([], "0,1", ()),
        (["nvidiactl", "nvidia-uvm"], None, ()),
        (["nvidia0", "nvidia1", "nvidia10", "nvidia2", "nvidiactl"], None, ("0", "1", "2", "10")),
        (["nvidia0", "nvidia1"], "1", ("1",)),
        (["nvidia0", "nvidia1"], " 1, 0 ", ("1", "0")),
        (["nvidia0"], "", ()),
    ],
)
def test_detect(tmp_path: Path, names: list[str], visible: str | None, found: tuple[str, ...]) -> None:
    for name in names:
        (tmp_path / name).touch()
    assert detect(tmp_path, visible) == found


@pytest.mark.parametrize(
    ("real", "wanted", "asked", "jobs", "expected"),
    [
        ((), 8, None, 1, Devices((tuple("01234567"),), pretended=True)),
        ((), 8, 2, 2, Devices((("0", "1"),) * 2, pretended=True)),
        (FOUR, 8, None, 1, Devices((FOUR,), pretended=False)),
        (FOUR, 2, None, 1, Devices((("0", "1"),), pretended=False)),
        (FOUR, 8, None, 2, Devices((("0", "1"), ("2", "3")), pretended=False)),
        (FOUR, 8, 1, 3, Devices((("0",), ("1",), ("2",)), pretended=False)),
    ],
)
def test_share_out(
    real: tuple[str, ...], wanted: int, asked: int | None, jobs: int, expected: Devices
) -> None:
    assert share_out(real, wanted=wanted, asked=asked, jobs=jobs) == expected


@pytest.mark.parametrize(("asked", "jobs"), [(8, 1), (3, 2), (None, 5)])
def test_real_devices_are_never_shared_by_two_shards(asked: int | None, jobs: int) -> None:
    with pytest.raises(ConfigError, match="too many for the 4 GPUs"):
        share_out(FOUR, wanted=8, asked=asked, jobs=jobs)
