"""What stands for a bad network and a lagging file system does what it says."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.bed.handle import Bed
from tests.cluster.bed.lines import Proxy, proxy, slow_folder

# Longer than any test takes.
EVER = 3600.0


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket, Proxy]]:
    """Both ends of a connection through a proxy, and the proxy."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        target = f"127.0.0.1:{server.getsockname()[1]}"
        with proxy(target) as line, socket.create_connection(("127.0.0.1", line.port)) as near:
            far = server.accept()[0]
            with far:
                near.sendall(b"1")
                assert far.recv(9) == b"1"  # the proxy has both ends
                yield near, far, line


def test_bytes_pass_both_ways_and_so_does_the_end(ends: tuple[socket.socket, socket.socket, Proxy]) -> None:
    near, far, _ = ends
    near.sendall(b"there")
    assert far.recv(9) == b"there"
    far.sendall(b"back")
    assert near.recv(9) == b"back"
    far.close()
    assert near.recv(9) == b""


def test_a_silent_line_holds_back_and_lets_go(ends: tuple[socket.socket, socket.socket, Proxy]) -> None:
    near, far, line = ends
    line.tell("silent")
    near.sendall(b"late")
    far.settimeout(0.2)
    with pytest.raises(TimeoutError):
        far.recv(9)
    far.settimeout(None)
    line.tell("pass")
    assert far.recv(9) == b"late"


def test_a_cut_line_is_reset(ends: tuple[socket.socket, socket.socket, Proxy]) -> None:
    near, far, line = ends
    line.tell("drop")
    for end in (near, far):
        with pytest.raises(ConnectionResetError):
            end.recv(9)


def test_a_line_can_be_slow_only_for_what_comes_later(
    ends: tuple[socket.socket, socket.socket, Proxy],
) -> None:
    near, far, line = ends
    line.tell(f"delay {EVER}")
    near.sendall(b"2")
    far.settimeout(0.2)
    with pytest.raises(TimeoutError):
        far.recv(9)


@pytest.fixture
def folder(bed: Bed) -> Iterator[Path]:
    """A folder of the user's."""
    path = bed.place / "scratch/slow"
    assert bed.as_ci("mkdir", "-p", str(path)).returncode == 0
    yield path
    assert bed.root("rm", "-r", str(path)).returncode == 0


# A process that starts others would send what it wrote: the others close the file.
WRITER = """
import os, sys
log = open(sys.argv[1], "wb", buffering=0)
for line in sys.stdin:
    os.fsync(log.fileno()) if line == "sync\\n" else log.write(line.encode())
    print("done", flush=True)
"""


def test_the_login_node_sees_what_a_node_has_synced(bed: Bed, folder: Path) -> None:
    log = folder / "log"
    command = [sys.executable, "-c", WRITER, str(log)]
    with (
        slow_folder(folder, writeback=EVER),
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer,
    ):
        for line, seen in (("first", "0\n"), ("sync", "first\n6\n"), ("second", "first\n6\n")):
            tell(writer, line)
            assert bed.ssh(f"cat {log}; stat -c %s {log}").stdout == seen
        assert log.read_text() == "first\nsecond\n"
    assert log.read_text() == "first\nsecond\n"


def tell(process: subprocess.Popen[str], line: str) -> None:
    """Give the writer a line, wait until it has done its part."""
    assert process.stdin
    assert process.stdout
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"


def test_the_login_node_believes_what_it_saw_until_it_opens_the_file(bed: Bed, folder: Path) -> None:
    log, late = folder / "log", folder / "late"
    with slow_folder(folder, stale=EVER):
        log.write_bytes(b"one")
        assert bed.ssh(f"stat -c %s {log}; test -e {late} || echo none").stdout == "3\nnone\n"
        log.write_bytes(b"three")
        late.touch()
        seen = bed.ssh(f"stat -c %s {log}; cat {log}; echo; stat -c %s {log}; test -e {late} || echo none")
        assert seen.stdout == "3\nthree\n5\nnone\n"
        assert late.exists()


def test_each_side_sees_its_own_changes_at_once(bed: Bed, folder: Path) -> None:
    with slow_folder(folder, stale=EVER, writeback=EVER):
        text = "test -e f || mkdir d && echo x > f && ln f d/g && mv d/g d/h && cat d/h"
        text += " && umask 077 && echo y > p"
        assert bed.ssh(f"cd {folder} && {text} && stat -c %U:%a p").stdout == "x\nci:600\n"
        assert (folder / "d/h").read_text() == "x\n"
