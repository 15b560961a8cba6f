"""A connection over a real sshd: who is let in, what an answer is, and what a fault leaves of it.

Needs sshd, not a cluster: each test starts one on loopback for the user who runs the tests.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.cluster.sshd import (
    SSHD,
    USER,
    Link,
    Sshd,
    connect,
    free_port,
    keygen,
    masters,
    new_key,
    running,
    survived,
)

from gpuci.errors import ConfigError
from gpuci.execution.transport import credentials
from gpuci.execution.transport.connection import Connection, LinkLost
from gpuci.execution.transport.login import Login

pytestmark = pytest.mark.skipif(SSHD is None, reason="sshd is not installed (Debian: openssh-server)")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """An sshd that no test disturbs."""
    with running(tmp_path_factory.mktemp("shared")) as server:
        yield server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Sshd]:
    """An sshd of the test's own."""
    with running(tmp_path / "sshd") as started:
        yield started


# Who is let in


def test_a_key_that_is_a_secret_is_on_disk_while_ssh_connects_only(shared: Sshd, tmp_path: Path) -> None:
    with connect(shared.login(), tmp_path) as connection:
        (private,) = tmp_path.iterdir()
        assert stat.S_IMODE(private.stat().st_mode) == 0o700
        files = [path for path in private.rglob("*") if path.is_file()]
        assert "known_hosts" in {path.name for path in files}
        assert [path for path in files if "PRIVATE KEY" in path.read_text()] == []
        assert connection.run("id -un").out.decode().strip() == USER
    assert list(tmp_path.iterdir()) == []


def test_a_key_file_is_used_where_it_lies(shared: Sshd, tmp_path: Path) -> None:
    odd = tmp_path / 'a %h "b" ${HOME}'
    odd.mkdir()
    key = odd / "key"
    key.write_bytes(shared.user_key.read_bytes())
    key.chmod(0o600)
    with connect(shared.login(key="", identity_file=str(key)), tmp_path) as connection:
        assert connection.run("echo hi").out == b"hi\n"
    assert key.read_bytes() == shared.user_key.read_bytes()


def test_the_keys_of_an_agent_are_used(shared: Sshd, tmp_path: Path) -> None:
    socket = tmp_path / "agent"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.PIPE)
    assert agent.stdout is not None
    agent.stdout.readline()
    try:
        subprocess.run(
            ["ssh-add", "-q", shared.user_key], env={**os.environ, "SSH_AUTH_SOCK": str(socket)}, check=True
        )
        with connect(shared.login(key="", agent=str(socket)), tmp_path) as connection:
            assert connection.run("echo hi").out == b"hi\n"
    finally:
        agent.terminate()
        agent.communicate()


def test_a_certificate_of_the_users_goes_with_its_key(tmp_path: Path) -> None:
    ca = new_key(tmp_path / "ca")
    with running(tmp_path / "sshd", f"TrustedUserCAKeys {ca}.pub") as server:
        server.authorized.write_text("")
        keygen(Path(f"{server.user_key}.pub"), "-s", str(ca), "-I", "test", "-n", USER, "-V", "-1m:+1m")
        certificate = Path(f"{server.user_key}-cert.pub").read_text()
        with connect(server.login(certificate=certificate), tmp_path) as connection:
            assert connection.run("echo hi").out == b"hi\n"
        file = server.login(key="", identity_file=str(server.user_key))
        with connect(file, tmp_path) as connection:
            assert connection.run("echo hi").out == b"hi\n"
        with pytest.raises(ConfigError, match="does not let us in"):
            connect(server.login(), tmp_path).open()


def test_the_credential_command_runs_before_every_connect(tmp_path: Path) -> None:
    ca = new_key(tmp_path / "ca")
    issue = tmp_path / "issue"
    issue.write_text(
        "#!/bin/sh\nset -e\n"
        f"echo run >>{tmp_path}/runs\n"
        'ssh-keygen -q -t ed25519 -N "" -f "$GPUCI_CREDENTIAL_DIR/key"\n'
        f'ssh-keygen -q -s {ca} -I test -n {USER} -V -1m:+1m "$GPUCI_CREDENTIAL_DIR/key.pub"\n'
    )
    issue.chmod(0o700)
    with running(tmp_path / "sshd", f"TrustedUserCAKeys {ca}.pub") as server:
        server.authorized.write_text("")
        login = server.login(key="", credential_command=(str(issue),))
        with connect(login, tmp_path) as connection:
            assert connection.run("echo hi").out == b"hi\n"
            for pid in masters(tmp_path):
                os.kill(pid, signal.SIGKILL)
            assert connection.run("echo again").out == b"again\n"
            assert (tmp_path / "runs").read_text() == "run\nrun\n"
            assert list(tmp_path.glob("ssh-*/keys")) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("echo no ticket >&2; exit 3", ["ended with exit code 3", "    | no ticket"]),
        ("printf 'a\\033[31m\\n::error::x\\n' >&2; exit 1", ["    | a?[31m", "    | : :error: :x"]),
        ("kill -9 $$", ["ended with signal 9", "it said nothing"]),
        ("exit 0", ["left no key", "GPUCI_CREDENTIAL_DIR"]),
        ("sleep 60", ["did not end within 1 s"]),
    ],
    ids=["exit code", "hostile", "killed", "no key", "slow"],
)
def test_a_credential_command_that_fails_is_told(
    shared: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: list[str]
) -> None:
    monkeypatch.setattr(credentials, "COMMAND_SECONDS", 1.0 if text == "sleep 60" else 60.0)
    login = shared.login(key="", credential_command=("sh", "-c", text))
    with pytest.raises(ConfigError) as caught:
        connect(login, tmp_path).open()
    assert [word for word in words if word not in caught.value.page()] == []
    assert list(tmp_path.iterdir()) == []


def test_a_credential_command_that_is_missing_is_told(shared: Sshd, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        connect(shared.login(key="", credential_command=("/no/such",)), tmp_path).open()
    assert "/no/such: No such file or directory" in caught.value.page()


def test_the_credential_command_sees_no_secret_of_ours(
    shared: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUCI_SSH_PRIVATE_KEY", "secret")
    monkeypatch.setenv("TICKET", "theirs")
    command = ("sh", "-c", f'env >{tmp_path}/env; test -s "$GPUCI_CREDENTIAL_DIR/key"')
    with connect(shared.login(credential_command=command), tmp_path):
        seen = (tmp_path / "env").read_text().splitlines()
    assert "TICKET=theirs" in seen
    assert [line for line in seen if line.startswith("GPUCI_SSH_PRIVATE_KEY")] == []


# Host keys


def changed(server: Sshd, tmp_path: Path) -> str:
    """The line of another key for the same host."""
    return f"[127.0.0.1]:{server.port} {Path(f'{new_key(tmp_path / chr(107))}.pub').read_text()}"


REFUSALS: list[tuple[str, Callable[[Sshd, Path], Login], str]] = [
    (
        "unknown host key",
        lambda s, t: s.login(known_hosts_text="other ssh-ed25519 AAAA\n"),
        "GPUCI_SSH_KNOWN_HOSTS has no",
    ),
    (
        "changed host key",
        lambda s, t: s.login(known_hosts_text=changed(s, t)),
        "is not the one in GPUCI_SSH_KNOWN_HOSTS",
    ),
    (
        "revoked host key",
        lambda s, t: s.login(known_hosts_text=f"@revoked {s.known_hosts}"),
        "is marked as revoked",
    ),
    (
        "other host's certificate",
        lambda s, t: s.login(known_hosts_text=f"@cert-authority {s.known_hosts}"),
        "GPUCI_SSH_KNOWN_HOSTS has no",
    ),
    (
        "only comments",
        lambda s, t: s.login(known_hosts_text="# nothing\n\n"),
        "GPUCI_SSH_KNOWN_HOSTS holds no host key",
    ),
    (
        "known_hosts missing",
        lambda s, t: s.login(known_hosts=str(t / "nope"), known_hosts_text=""),
        "slurm.known-hosts: .* can't be read",
    ),
    ("wrong key", lambda s, t: s.login(key=new_key(t / "k").read_text()), "does not let us in"),
    (
        "unknown user",
        lambda s, t: s.login(user="nobody-like-that"),
        "nobody-like-that@127.0.0.1 does not let us in",
    ),
    (
        "loose key file",
        lambda s, t: s.login(key="", identity_file=loose(t)),
        r"can be read by others \(mode 0644\)",
    ),
    (
        "key file for a group",
        lambda s, t: s.login(key="", identity_file=loose(t, 0o640)),
        r"can be read by others \(mode 0640\)",
    ),
    (
        "missing key file",
        lambda s, t: s.login(key="", identity_file=str(t / "nope")),
        "slurm.identity-file: .* can't be read",
    ),
    (
        "key with a passphrase",
        lambda s, t: s.login(key="", identity_file=str(new_key(t / "k", "sesame"))),
        "has a passphrase",
    ),
    ("public key file", lambda s, t: s.login(key="", identity_file=public(t)), "does not hold a private key"),
]


def loose(directory: Path, mode: int = 0o644) -> str:
    key = new_key(directory / "k")
    key.chmod(mode)
    return str(key)


def public(directory: Path) -> str:
    path = Path(f"{new_key(directory / 'k')}.pub")
    path.chmod(0o600)
    return str(path)


@pytest.mark.parametrize(("make", "what"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS])
def test_what_only_a_person_can_put_right_is_told_at_once(
    shared: Sshd, tmp_path: Path, make: Callable[[Sshd, Path], Login], what: str
) -> None:
    connection = connect(make(shared, tmp_path), tmp_path)
    with pytest.raises(ConfigError, match=what) as caught:
        connection.open()
    assert connection.counts.attempts <= 1
    assert caught.value.then
    assert list(tmp_path.glob("ssh-*")) == []


def test_known_hosts_may_hold_a_certificate_authority(tmp_path: Path) -> None:
    ca = new_key(tmp_path / "ca")
    with running(tmp_path / "sshd", f"HostCertificate {tmp_path}/sshd/host_key-cert.pub") as server:
        keygen(Path(f"{server.host_key}.pub"), "-s", str(ca), "-I", "host", "-h", "-n", "127.0.0.1")
        server.stop()
        server.start()
        line = f"@cert-authority 127.0.0.1,[127.0.0.1]:* {Path(f'{ca}.pub').read_text()}"
        with connect(server.login(known_hosts_text=line), tmp_path) as connection:
            assert connection.run("echo hi").out == b"hi\n"


def test_a_text_of_known_hosts_needs_no_file(shared: Sshd, tmp_path: Path) -> None:
    with connect(shared.login(known_hosts=str(tmp_path / "nope")), tmp_path) as connection:
        assert connection.run("echo hi").out == b"hi\n"


def test_file_and_text_of_known_hosts_count_both(shared: Sshd, tmp_path: Path) -> None:
    (tmp_path / "kh").write_text(changed(shared, tmp_path))
    with connect(shared.login(known_hosts=str(tmp_path / "kh")), tmp_path) as connection:
        assert connection.run("echo hi").out == b"hi\n"


# The way in


def test_a_jump_host_is_passed_and_its_key_is_checked(shared: Sshd, tmp_path: Path) -> None:
    with running(tmp_path / "gate") as gate:
        shared_key = shared.user_key.with_suffix(".pub").read_text()
        gate.authorized.write_text(shared_key)
        login = shared.login(
            jump=(f"127.0.0.1:{gate.port}",), known_hosts_text=shared.known_hosts + gate.known_hosts
        )
        with connect(login, tmp_path) as connection:
            assert connection.run('echo "$SSH_CONNECTION"').code == 0
        assert "Accepted publickey" in gate.log.read_text()

        with pytest.raises(ConfigError, match=f"KNOWN_HOSTS has no ED25519 key for .*:{gate.port}"):
            connect(shared.login(jump=login.jump), tmp_path).open()
        gate.authorized.write_text("")
        with pytest.raises(ConfigError, match="does not let us in"):
            connect(login, tmp_path).open()


def test_the_next_login_host_is_tried(shared: Sshd, tmp_path: Path) -> None:
    said: list[str] = []
    login = shared.login(hosts=(f"127.0.0.1:{free_port()}", f"127.0.0.1:{shared.port}"))
    with connect(login, tmp_path, said) as connection:
        assert connection.run("echo hi").out == b"hi\n"
        assert connection.counts.attempts == 2
    assert "nothing listens at 127.0.0.1" in said[0]


def test_a_login_host_that_dies_is_replaced_by_the_next(shared: Sshd, server: Sshd, tmp_path: Path) -> None:
    said: list[str] = []
    login = shared.login(
        hosts=(f"127.0.0.1:{server.port}", f"127.0.0.1:{shared.port}"),
        known_hosts_text=server.known_hosts + shared.known_hosts,
    )
    server.authorized.write_text(shared.user_key.with_suffix(".pub").read_text())
    with connect(login, tmp_path, said) as connection:
        assert str(server.port).encode() in connection.run('echo "$SSH_CONNECTION"').out
        server.stop()
        assert str(shared.port).encode() in survived(connection, 'echo "$SSH_CONNECTION"')
        server.start()


def test_a_host_that_refuses_us_is_not_asked_again_while_another_one_is_waited_for(
    server: Sshd, tmp_path: Path
) -> None:
    hosts = (f"nobody-like-that@127.0.0.1:{server.port}", f"127.0.0.1:{free_port()}")
    connection = connect(server.login(hosts=hosts, patience=1.5), tmp_path)
    with pytest.raises(LinkLost, match="no login node can be reached"):
        connection.open()
    assert connection.counts.attempts > 2
    assert server.log.read_text().count("Invalid user") == 1


def test_no_login_host_at_all_is_not_the_configurations_fault(shared: Sshd, tmp_path: Path) -> None:
    login = shared.login(hosts=(f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"), patience=0.5)
    with pytest.raises(LinkLost) as caught:
        connect(login, tmp_path).open()
    assert (caught.value.retry, caught.value.sent, caught.value.verdict) == (True, False, "infra")
    assert caught.value.page().count("nothing listens at") == 2


def test_a_server_that_comes_up_late_is_waited_for(tmp_path: Path) -> None:
    server = Sshd(tmp_path / "sshd")
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if len(said) == 1:
            server.start()

    try:
        with Connection(server.login(), tmp_path, say) as connection:
            assert connection.run("echo hi").out == b"hi\n"
            assert connection.counts.attempts > 1
        assert "trying again" in said[0]
    finally:
        server.stop()


def test_a_port_that_never_speaks_is_told(shared: Sshd, tmp_path: Path) -> None:
    # A Link whose other end never speaks.
    link = Link(shared.port)
    link.hold()
    login = shared.login(port=link.port, connect_timeout=1, patience=0.5)
    with pytest.raises(LinkLost, match=r"said nothing|did not let us in"):
        connect(login, tmp_path).open()
    link.close()


def test_24_at_once_get_through_the_limits_of_a_default_sshd(server: Sshd, tmp_path: Path) -> None:
    login = server.login(patience=120.0)
    together = threading.Barrier(24)

    def one(number: int) -> tuple[int, float]:
        directory = tmp_path / str(number)
        directory.mkdir()
        together.wait()
        started = time.monotonic()
        with connect(login, directory) as connection:
            assert connection.run("echo hi").out == b"hi\n"
            return connection.counts.attempts, time.monotonic() - started

    with ThreadPoolExecutor(24) as pool:
        rows = sorted(pool.map(one, range(24)))
    print(
        "attempts:",
        [attempts for attempts, _ in rows],
        "slowest:",
        round(max(row[1] for row in rows), 1),
        "s",
    )
    assert len(rows) == 24
