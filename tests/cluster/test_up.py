"""What `up` refuses, in words, before it touches the machine."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from tests.cluster.bed import build, packages
from tests.cluster.bed.place import NODES, Place
from tests.cluster.bed.slurm_conf import settings, slurm_conf

from gpuci.errors import ConfigError, GpuciError


@pytest.mark.parametrize("top", ["/tmp/bed", "/var/lib/gpuci-cluster-0a1b2c3d", "/" + "x" * 59])
def test_a_directory_that_every_daemon_can_live_with(top: str) -> None:
    assert build.place_at(Path(top)).top == Path(top)


@pytest.mark.parametrize(
    "top", ["/tmp/two words", "/" + "x" * 60, "/tmp/b%n", "/tmp/b[1-2]", "/tmp/b;id", "/tmp/ä"]
)
def test_a_directory_that_sockets_or_slurm_would_misread(top: str) -> None:
    with pytest.raises(ConfigError, match="can't live in"):
        build.place_at(Path(top))


@pytest.mark.parametrize(
    ("uid", "tools", "reason"),
    [
        (0, {"apt-get", "dpkg-query"}, None),
        (1000, {"apt-get", "dpkg-query"}, "needs root"),
        (0, set(), "needs Debian"),
    ],
    ids=["fit", "not root", "not Debian"],
)
def test_a_machine_that_can_have_no_bed_is_told_why(
    uid: int, tools: set[str], reason: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if name in tools else None)
    said = packages.unfit()
    assert (said is None) == (reason is None)
    assert (reason or "") in (said or "")


def test_a_second_bed_is_refused_and_taking_it_down_leaves_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(build, "CURRENT", tmp_path / "current")
    monkeypatch.setattr(build, "_current", lambda: Path("/tmp/first"))
    monkeypatch.setattr(packages, "unfit", lambda: None)
    with pytest.raises(GpuciError, match="a test bed runs in /tmp/first"):
        build.up(Path("/tmp/second"), {})
    build.down(Path("/tmp/second"))
    assert "none runs in /tmp/second (one does in /tmp/first)" in capsys.readouterr().err


def test_the_list_of_packages_holds_names_only() -> None:
    names = packages.wanted(packages.LIST.read_text())
    assert {"slurmctld", "podman", "openssh-server"} <= set(names)
    assert all(name.replace("-", "").isalnum() for name in names)


def test_settings_can_be_changed_and_nodes_have_ports_of_their_own() -> None:
    place = Place(Path("/tmp/bed"))
    lines = slurm_conf(place, {"KillWait": "5", "JobAcctGatherParams": "OverMemoryKill"}).splitlines()
    assert settings(place)["KillWait"] == "30"
    assert {"KillWait=5", "JobAcctGatherParams=OverMemoryKill"} <= set(lines)
    assert "KillWait=30" not in lines
    assert len({place.node_port(node) for node in NODES}) == len(NODES)
