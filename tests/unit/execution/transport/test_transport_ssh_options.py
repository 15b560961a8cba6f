"""What ssh is told: nothing of a user's own configuration, and no check that could be off."""

import shutil
import subprocess
from pathlib import Path

import pytest

from gpuci.execution.transport.login import Host, Login
from gpuci.execution.transport.ssh_options import (
    check_arguments,
    config_text,
    master_arguments,
    session_arguments,
)

LOGIN = Login(("login1",), key="KEY", known_hosts="kh", connect_timeout=7, keep_alive=9)
needs_ssh = pytest.mark.skipif(shutil.which("ssh") is None, reason="ssh is not installed")


def effective(directory: Path, login: Login, *, key: bool, host: str = "login1") -> dict[str, str]:
    """The settings as ssh itself understands them."""
    (directory / "config").write_text(config_text(login, str(directory), key=key))
    command = master_arguments(Host(host, 2200, "ci"), (), str(directory), f"{directory}/m1")
    done = subprocess.run(["ssh", "-G", *command[1:]], capture_output=True, text=True, check=True)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)


@needs_ssh
def test_ssh_reads_what_is_meant(tmp_path: Path) -> None:
    settings = effective(tmp_path, LOGIN, key=True)
    expected = {
        "hostname": "login1",
        "port": "2200",
        "user": "ci",
        "batchmode": "yes",
        "stricthostkeychecking": "true",
        "userknownhostsfile": f"{tmp_path}/known_hosts",
        "globalknownhostsfile": "/dev/null",
        "updatehostkeys": "false",
        "identityfile": f"{tmp_path}/keys/key",
        "identitiesonly": "yes",
        "forwardagent": "no",
        "clearallforwardings": "yes",
        "connecttimeout": "7",
        "serveraliveinterval": "9",
        "serveralivecountmax": "3",
        "controlmaster": "true",
        "controlpersist": "no",
        "controlpath": f"{tmp_path}/m1",
    }
    assert {name: settings.get(name) for name in expected} == expected


@needs_ssh
@pytest.mark.parametrize(
    ("login", "key", "agent", "only"),
    [
        (LOGIN, True, "none", "yes"),
        (Login(("a",), key="KEY", agent="/agent"), True, "none", "yes"),
        (Login(("a",), identity_file="k", agent="/agent"), True, "SSH_AUTH_SOCK", "yes"),
        (Login(("a",), agent="/agent"), False, "SSH_AUTH_SOCK", "no"),
        (Login(("a",), identity_file="k"), True, "none", "yes"),
    ],
    ids=["secret", "secret and agent", "file and agent", "agent", "file"],
)
def test_which_keys_are_offered(tmp_path: Path, login: Login, key: bool, agent: str, only: str) -> None:
    settings = effective(tmp_path, login, key=key)
    assert settings["identityagent"] == agent
    assert settings["identitiesonly"] == only
    assert settings["identityfile"] == (f"{tmp_path}/keys/key" if key else "none")


def test_the_way_in_is_written_out() -> None:
    way = (Host("gate", 22, "me"), Host("::1", 2, "ci"))
    command = master_arguments(Host("login1", 2200, "ci"), way, "/d", "/d/m1")
    assert command[command.index("-J") + 1] == "me@gate:22,ci@[::1]:2"
    assert command[-2:] == ["--", "login1"]


def test_without_a_user_ssh_takes_its_own() -> None:
    assert "-l" not in master_arguments(Host("login1"), (), "/d", "/d/m1")


@needs_ssh
@pytest.mark.parametrize("socket", ["missing", "stale"])
def test_a_session_without_a_master_connects_nowhere(tmp_path: Path, socket: str) -> None:
    if socket == "stale":
        (tmp_path / "m1").touch()
    command = session_arguments(str(tmp_path / "m1"), "echo ran")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (255, "")
    assert "gpuci-no-master" in done.stderr
    check = subprocess.run(check_arguments(str(tmp_path / "m1")), capture_output=True, check=False)
    assert check.returncode == 255
