"""Files with keys that can't be used: what a person is told."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gpuci.errors import ConfigError
from gpuci.execution.transport import credentials
from gpuci.execution.transport.login import Login


def known_hosts(path: Path) -> None:
    credentials.known_hosts(Login(("login1",), known_hosts=str(path)))


def identity_file(path: Path) -> None:
    with credentials.keys_in(path.parent, Login(("login1",), identity_file=str(path)), 1.0):
        pass


@pytest.mark.parametrize(
    ("read", "setting"),
    [(known_hosts, "slurm.known-hosts"), (identity_file, "slurm.identity-file")],
    ids=["known_hosts", "identity"],
)
def test_a_file_that_is_not_there_is_named_as_it_was_looked_for(
    read: Callable[[Path], None], setting: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as raised:
        read(tmp_path / "nosuch")
    assert raised.value.what == f"{setting}: '{tmp_path}/nosuch' can't be read: No such file or directory"
    assert "relative paths count from ROOT" in raised.value.then


def test_lines_that_a_commit_has_are_taken_in_place_of_the_file() -> None:
    login = Login(("login1",), known_hosts=".github/known_hosts", host_keys="login1 ssh-ed25519 A\n")
    assert credentials.known_hosts(login).split("\n")[0] == "login1 ssh-ed25519 A"


def test_beside_the_lines_of_an_input_the_file_need_not_be_there(tmp_path: Path) -> None:
    login = Login(("login1",), known_hosts=str(tmp_path / "nosuch"), known_hosts_text="b ssh-rsa B")
    assert credentials.known_hosts(login) == "b ssh-rsa B"
    (tmp_path / "nosuch").mkdir()
    with pytest.raises(ConfigError, match="can't be read"):
        credentials.known_hosts(login)


def test_both_the_lines_of_a_commit_and_those_of_an_input_count() -> None:
    login = Login(
        ("login1",), known_hosts="kh", host_keys="a ssh-ed25519 A\n", known_hosts_text="b ssh-rsa B"
    )
    lines = credentials.known_hosts(login).split()
    assert (lines[0], lines[3]) == ("a", "b")
