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
