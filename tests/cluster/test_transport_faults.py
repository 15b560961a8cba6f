"""Answers of a real sshd, and what is left of them when the link, the server or we ourselves break."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.cluster.sshd import SSHD, Link, Sshd, appears, connect, gone, masters, running, until

from gpuci.execution.transport.connection import Connection, LinkLost

pytestmark = pytest.mark.skipif(SSHD is None, reason="sshd is not installed (Debian: openssh-server)")
SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
ROOT = SCRIPTS.parent

# A remote command that says where it is and then waits.
BUSY = 'echo "$$" >"$1"; sleep 60; echo survived'


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Sshd]:
    """An sshd of the test's own."""
    with running(tmp_path / "sshd") as started:
        yield started


@pytest.fixture
def connection(server: Sshd, tmp_path: Path) -> Iterator[Connection]:
    """An open connection to it."""
    with connect(server.login(), tmp_path) as opened:
        yield opened


# Answers


@pytest.mark.parametrize(
    ("text", "code"),
    [("exit 255", 255), ("exit 7", 7), ("sh -c 'kill -9 $$'", 137), ("no-such-command", 127), ("true", 0)],
)
def test_every_exit_code_is_an_answer(connection: Connection, text: str, code: int) -> None:
    assert connection.run(text).code == code
    assert connection.counts.connections == 1


def test_noise_of_login_scripts_and_banners_is_no_part_of_an_answer(tmp_path: Path) -> None:
    (tmp_path / "banner").write_text("Permission denied (publickey). Host key verification failed.\n")
    noisy = tmp_path / "noisy"
    noisy.write_text(
        "#!/bin/sh\necho 'Welcome! gpuci-start'\necho 'warning: setlocale: cannot change locale' >&2\n"
        'exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n'
    )
    noisy.chmod(0o755)
    more = (f"ForceCommand {noisy}", f"Banner {tmp_path}/banner")
    with running(tmp_path / "sshd", *more) as server, connect(server.login(), tmp_path) as connection:
        answer = connection.run("printf 'a\\0b'; echo warning >&2; exit 3")
    assert (answer.code, answer.out, answer.err) == (3, b"a\0b", "warning\n")


def test_a_command_that_is_refused_over_there_says_so(tmp_path: Path) -> None:
    gate = "ForceCommand echo 'gate: refused' >&2; exit 126"
    with running(tmp_path / "sshd", gate) as server, connect(server.login(), tmp_path) as connection:
        with pytest.raises(LinkLost, match="login shell ended with 126") as caught:
            connection.run("echo hi")
        assert "    | gate: refused" in caught.value.page()
        assert (caught.value.sent, caught.value.retry) == (False, False)


def test_large_binary_output_and_input_pass_unchanged(connection: Connection, tmp_path: Path) -> None:
    out = os.urandom(5_000_000)
    (tmp_path / "out").write_bytes(out)
    assert connection.run('cat "$1"', str(tmp_path / "out")).out == out
    content = os.urandom(20_000_000)
    (tmp_path / "in").write_bytes(content)
    with open(tmp_path / "in", "rb") as stream:
        assert stream.read(3) == content[:3]
        assert connection.run('cat >"$1"; wc -c <"$1"', str(tmp_path / "copy"), stdin=stream).code == 0
    assert (tmp_path / "copy").read_bytes() == content[3:]
    for stdin in (content, io.BytesIO(content)):
        answer = connection.run("wc -c", stdin=stdin)
        assert answer.out.split() == [b"20000000"]


def test_a_command_that_reads_nothing_does_not_hang_on_its_input(connection: Connection) -> None:
    assert connection.run("exit 4", stdin=b"x" * 5_000_000).code == 4
    assert connection.run("cat").out == b""


def test_many_threads_share_one_connection_and_eight_sessions(
    server: Sshd, connection: Connection, tmp_path: Path
) -> None:
    now = tmp_path / "now"
    now.mkdir()
    text = 'mkdir "$1/$2"; sleep 0.5; ls "$1" | wc -l; sleep 0.5; rmdir "$1/$2"'
    with ThreadPoolExecutor(24) as pool:
        at_once = list(pool.map(lambda n: int(connection.run(text, str(now), str(n)).out), range(24)))
    assert 1 < max(at_once) <= 8
    assert (connection.counts.connections, connection.counts.commands) == (1, 24)
    assert server.log.read_text().count("Accepted publickey") == 1


def test_a_server_that_allows_few_sessions_is_waited_for(tmp_path: Path) -> None:
    with (
        running(tmp_path / "sshd", "MaxSessions 2") as server,
        connect(server.login(), tmp_path) as connection,
    ):
        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(lambda n: connection.run('sleep 0.3; echo "$1"', str(n)).out, range(6)))
        assert answers == [b"%d\n" % n for n in range(6)]
        assert connection.counts.connections == 1


# Faults. The command may have run: so the first answer is LinkLost, and the next run finds its way.


def lost_by(connection: Connection, tmp_path: Path, fault: str, server: Sshd) -> LinkLost:
    """Break something while a command runs."""
    mark = tmp_path / f"mark-{fault}"
    with ThreadPoolExecutor(1) as pool:
        running_command = pool.submit(connection.run, BUSY, str(mark), timeout=50)
        pid = int(appears(mark))
        if fault == "master":
            for one in masters(tmp_path):
                os.kill(one, signal.SIGKILL)
        elif fault == "session":
            for one in server.sessions():
                os.kill(one, signal.SIGKILL)
        elif fault == "sshd":
            server.stop()
            server.start()
        else:
            os.killpg(pid, signal.SIGKILL)
        error = running_command.exception()
    assert isinstance(error, LinkLost), error
    return error


@pytest.mark.parametrize(
    ("fault", "what", "connections"),
    [
        ("master", "ended without a word", 2),
        ("session", "was closed", 2),
        ("sshd", "was closed", 2),
        ("shell", "was killed before it had answered", 1),
    ],
)
def test_a_fault_costs_one_answer(
    server: Sshd, connection: Connection, tmp_path: Path, fault: str, what: str, connections: int
) -> None:
    error = lost_by(connection, tmp_path, fault, server)
    assert (error.sent, error.retry) == (True, True)
    assert error.why
    assert re.search(what, error.what), error.page()
    assert connection.run("echo hi").out == b"hi\n"
    assert connection.counts.connections == connections
    assert len(masters(tmp_path)) == 1


def test_a_master_that_died_between_two_commands_costs_nothing(
    connection: Connection, tmp_path: Path
) -> None:
    for pid in masters(tmp_path):
        os.kill(pid, signal.SIGKILL)
        assert gone(pid)
    assert connection.run("echo hi").out == b"hi\n"


@pytest.mark.parametrize("silence", ["short", "long"])
def test_a_silent_link_is_survived(server: Sshd, tmp_path: Path, silence: str) -> None:
    link = Link(server.port)
    line = server.known_hosts.replace(str(server.port), str(link.port))
    login = server.login(port=link.port, known_hosts_text=line, keep_alive=1 if silence == "long" else 15)
    with connect(login, tmp_path) as connection:
        connection.run("echo hi")
        link.hold()
        if silence == "short":
            with pytest.raises(LinkLost, match="gave no answer within 1 s") as caught:
                connection.run("echo hi", timeout=1)
            assert caught.value.sent
        else:
            with pytest.raises(LinkLost, match=r"the link to .* went silent"):
                connection.run("echo hi", timeout=50)
        link.release()
        assert connection.run("echo hi").out == b"hi\n"
        assert connection.counts.connections == (1 if silence == "short" else 2)
    link.close()


def test_a_stopped_master_is_replaced(
    connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpuci.execution.transport.connection.PROBE_SECONDS", 0.5)
    monkeypatch.setattr("gpuci.execution.transport.master.END_SECONDS", 0.5)
    (pid,) = masters(tmp_path)
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(LinkLost, match="gave no answer within 1 s"):
        connection.run("echo hi", timeout=1)
    assert connection.run("echo hi").out == b"hi\n"
    assert connection.counts.connections == 2
    assert gone(pid)


def test_a_command_that_takes_too_long_costs_no_connection(connection: Connection) -> None:
    with pytest.raises(LinkLost, match="gave no answer within 1 s"):
        connection.run("sleep 20", timeout=1)
    assert connection.run("echo hi").out == b"hi\n"
    assert connection.counts.connections == 1


def test_a_login_that_worked_is_worth_asking_again(server: Sshd, connection: Connection) -> None:
    server.authorized.rename(server.authorized.with_suffix(".away"))
    server.stop()
    server.start()
    for _ in range(2):  # the first can find the dying master
        with pytest.raises(LinkLost) as caught:
            connection.run("echo hi")
    assert "does not let us in" in caught.value.what
    assert (caught.value.sent, caught.value.retry) == (False, True)
    server.authorized.with_suffix(".away").rename(server.authorized)
    assert connection.run("echo hi").out == b"hi\n"


def test_threads_that_lose_the_link_together_go_on_over_one_new_one(
    connection: Connection, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(6) as pool:
        lost = [pool.submit(connection.run, BUSY, str(tmp_path / f"m{n}")) for n in range(6)]
        for n in range(6):
            appears(tmp_path / f"m{n}")
        os.kill(masters(tmp_path)[0], signal.SIGKILL)
        assert {type(future.exception()) for future in lost} == {LinkLost}
        assert list(pool.map(lambda _: connection.run("echo hi").out, range(6))) == [b"hi\n"] * 6
    assert connection.counts.connections == 2
    assert len(masters(tmp_path)) == 1


# Our own end


class Interrupted(Exception):
    """What a signal handler raises, anywhere."""


def interrupt(number: int, frame: object) -> None:
    raise Interrupted


# A file that was just being opened is closed by the garbage collector then.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("milliseconds", [*range(1, 40, 3), *range(40, 320, 20)])
def test_an_exception_at_any_moment_leaves_a_connection_that_works(
    server: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, milliseconds: int
) -> None:
    before = signal.signal(signal.SIGALRM, interrupt)
    connection = connect(server.login(), tmp_path)
    try:
        signal.setitimer(signal.ITIMER_REAL, milliseconds / 1000)
        try:
            while True:
                connection.run("cat >/dev/null; echo hi", stdin=b"x" * 100_000)
        except Interrupted:
            pass
        assert connection.run("echo hi").out == b"hi\n"
        assert until(lambda: len(masters(tmp_path)) == 1)  # one that was being made ends by itself
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        connection.close()
    assert masters(tmp_path) == []


RUNNER = """
import sys, time
sys.path[:0] = [ROOT, ROOT + "/scripts"]
from pathlib import Path
from gpuci.execution.transport.connection import Connection
from gpuci.execution.transport.login import Login
login = Login(("127.0.0.1",), user=sys.argv[1], port=int(sys.argv[2]), known_hosts_text=sys.argv[3],
              key=Path(sys.argv[4]).read_text(), credential_command=tuple(sys.argv[6:]))
with Connection(login, Path(sys.argv[5]), print) as connection:
    try:
        print(connection.run("echo open").out, flush=True)
        sys.stdin.read()
    except KeyboardInterrupt:
        print(connection.run("echo still").out, flush=True)
"""


def runner(server: Sshd, directory: Path, *command: str) -> subprocess.Popen[str]:
    """Another process that has a connection."""
    login = server.login()
    code = RUNNER.replace("ROOT", repr(str(ROOT)))
    values = (login.user, str(login.port), server.known_hosts, str(server.user_key), str(directory))
    return subprocess.Popen(
        [sys.executable, "-c", code, *values, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["SIGKILL", "SIGTERM"])
def test_a_killed_runner_leaves_no_master_and_no_file(server: Sshd, tmp_path: Path, number: int) -> None:
    with runner(server, tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "b'open\\n'\n"
        (master,) = masters(tmp_path)
        (private,) = tmp_path.glob("ssh-*")
        os.killpg(process.pid, number)
        process.wait()
        assert gone(master)
        assert until(lambda: not private.exists())


def test_a_ctrl_c_leaves_the_line_for_the_cancelling(server: Sshd, tmp_path: Path) -> None:
    with runner(server, tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the whole group
        assert process.stdout.readline() == "b'still\\n'\n"
        assert process.wait() == 0
    assert server.log.read_text().count("Accepted publickey") == 1
    assert list(tmp_path.glob("ssh-*")) == []


def test_a_key_does_not_outlive_a_runner_that_is_killed_while_it_connects(
    server: Sshd, tmp_path: Path
) -> None:
    for pid in (server.pid, *server.sessions()):
        os.kill(pid, signal.SIGSTOP)
    with runner(server, tmp_path) as process:
        assert until(lambda: masters(tmp_path))
        (key,) = tmp_path.glob("ssh-*/keys/key")
        assert key.stat().st_mode & 0o777 == 0o600
        process.kill()
        process.wait()
        assert until(lambda: not key.exists())
    os.kill(server.pid, signal.SIGCONT)
