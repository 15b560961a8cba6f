"""A real sshd on loopback for the tests, and a TCP link before it that can be held and cut."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from gpuci.execution.transport.connection import Connection, LinkLost
from gpuci.execution.transport.login import Login

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
USER = pwd.getpwuid(os.getuid()).pw_name


def free_port() -> int:
    """A port of loopback that nothing listens at."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def keygen(path: Path, *more: str) -> Path:
    """Make an ed25519 key without a passphrase, or sign with one."""
    subprocess.run(["ssh-keygen", "-q", *more, str(path)], check=True, stdin=subprocess.DEVNULL)
    return path


def new_key(path: Path, passphrase: str = "") -> Path:
    """Make a key pair."""
    return keygen(path, "-t", "ed25519", "-N", passphrase, "-C", "test", "-f")


class Sshd:
    """An sshd in `directory` for the user who runs the tests; `more` goes into its configuration."""

    def __init__(self, directory: Path, *more: str) -> None:
        assert SSHD is not None
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd asks for it when root starts it
        directory.mkdir(exist_ok=True)
        self.directory = directory
        self.port = free_port()
        self.host_key = new_key(directory / "host_key")
        self.user_key = new_key(directory / "user_key")
        self.authorized = directory / "authorized_keys"
        self.authorized.write_bytes((directory / "user_key.pub").read_bytes())
        self.log = directory / "sshd.log"
        self.config = directory / "sshd_config"
        self.config.write_text("\n".join((*more, *self._settings(), "")))
        self._process: subprocess.Popen[bytes] | None = None

    def _settings(self) -> tuple[str, ...]:
        return (
            f"Port {self.port}",
            "ListenAddress 127.0.0.1",
            f"HostKey {self.host_key}",
            f"AuthorizedKeysFile {self.authorized}",
            f"PidFile {self.directory}/sshd.pid",
            "UsePAM no",
            "StrictModes no",  # the directory of the tests may be below one that all can write
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PermitRootLogin prohibit-password",
            "PrintMotd no",
        )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def known_hosts(self) -> str:
        """The line of its host key."""
        return f"[127.0.0.1]:{self.port} {(self.directory / 'host_key.pub').read_text()}"

    def start(self) -> None:
        """Start it, and wait until it listens."""
        assert SSHD is not None
        with open(self.log, "ab") as log:
            start = log.tell()
            self._process = subprocess.Popen(
                [SSHD, "-D", "-E", str(self.log), "-f", str(self.config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        pause = threading.Event()
        while b"Server listening" not in self.log.read_bytes()[start:]:
            assert self._process.poll() is None, self.log.read_text()
            pause.wait(0.02)

    def stop(self) -> None:
        """Kill it and every session of it."""
        assert self._process is not None
        for pid in [*self.sessions(), self.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()

    def sessions(self) -> list[int]:
        """The sshd processes of its connections: of each one, or a monitor and what it watches."""
        found: list[int] = []
        above = [self.pid]
        while above:
            below = ["pgrep", "-x", "sshd(-session)?", "-P", ",".join(map(str, above))]
            done = subprocess.run(below, capture_output=True, text=True, check=False)
            above = [int(line) for line in done.stdout.split()]
            found += above
        return found

    def login(self, **more: object) -> Login:
        """A login that works; `more` replaces what it says."""
        values: dict[str, object] = {
            "hosts": ("127.0.0.1",),
            "user": USER,
            "port": self.port,
            "known_hosts_text": self.known_hosts,
            "key": self.user_key.read_text(),
            "patience": 20.0,
        }
        return Login(**{**values, **more})  # type: ignore[arg-type]


@contextlib.contextmanager
def running(directory: Path, *more: str) -> Iterator[Sshd]:
    """An sshd that runs."""
    server = Sshd(directory, *more)
    server.start()
    try:
        yield server
    finally:
        server.stop()


class Link:
    """A TCP port that leads to another one; `hold` swallows nothing and passes nothing on."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        self._open = threading.Event()
        self._open.set()
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def hold(self) -> None:
        """Pass nothing on from now on, in both directions."""
        self._open.clear()

    def release(self) -> None:
        """Pass on again, what came meanwhile too."""
        self._open.set()

    def close(self) -> None:
        """End all of it."""
        self._open.set()
        for one in (self._server, *self._sockets):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near = self._server.accept()[0]
                far = socket.create_connection(("127.0.0.1", self._to))
                self._sockets += [near, far]
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                piece = source.recv(65536)
                self._open.wait()
                if not piece:
                    sink.shutdown(socket.SHUT_WR)
                    return
                sink.sendall(piece)


def connect(login: Login, tmp_path: Path, said: list[str] | None = None) -> Connection:
    """A connection that is not open yet."""
    lines: list[str] = [] if said is None else said
    return Connection(login, tmp_path, lines.append)


def until(holds: Callable[[], object]) -> bool:
    """Wait until something holds, looking 50 times a second, a minute at most; return whether it came."""
    pause = threading.Event()
    for _ in range(3000):
        if holds():
            return True
        pause.wait(0.02)
    return False


def appears(path: Path) -> str:
    """Wait for a file with a line in it."""
    assert until(lambda: path.exists() and path.read_text().endswith("\n")), path
    return path.read_text().strip()


def ended(pid: int) -> bool:
    """Whether a process that is not our child is no more, or a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"
    except OSError:
        return True


def gone(pid: int) -> bool:
    """Wait until a process that is not our child has ended."""
    return until(lambda: ended(pid))


def masters(directory: Path) -> list[int]:
    """The ssh masters whose sockets are below a directory."""
    done = subprocess.run(
        ["pgrep", "-f", f"^ssh -F {directory}"], capture_output=True, text=True, check=False
    )
    return [int(line) for line in done.stdout.split()]


def survived(connection: Connection, text: str) -> bytes:
    """The answer to a text that may find the link lost once: it was just cut."""
    try:
        return connection.run(text).out
    except LinkLost:
        return connection.run(text).out
