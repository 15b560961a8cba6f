"""Both files reach the shared folder whole, once, whatever happens to the link and the folder."""

from __future__ import annotations

import gzip
import hashlib
import os
import random
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest

from gpuci.errors import GpuciError
from gpuci.execution.delivery import packing, progress
from gpuci.execution.delivery import remote as deliver_module
from gpuci.execution.delivery.archive import Archive
from gpuci.execution.delivery.progress import Progress
from gpuci.execution.delivery.remote import Delivered, deliver
from gpuci.execution.transport.connection import Answer, LinkLost

SOURCE = b"def test_it():\n    assert True\n" * 20_000


@pytest.fixture
def tree(tmp_path: Path) -> Archive:
    return made(tmp_path / "here/tree.tar", SOURCE)


@pytest.fixture
def pyz(tmp_path: Path) -> Path:
    path = tmp_path / "here/node.pyz"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"PK code")
    return path


@pytest.fixture
def shared(login: Any) -> Path:
    return Path(login.home) / "a folder/gpuci"


def made(path: Path, data: bytes) -> Archive:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return Archive(path, hashlib.sha256(data).hexdigest(), len(data), "t" * 40)


def there(shared: Path) -> dict[str, bytes]:
    """All files below the shared folder."""
    return {str(p.relative_to(shared)): p.read_bytes() for p in shared.rglob("*") if p.is_file()}


def whole(tree: Archive, pyz: Path) -> dict[str, bytes]:
    """What has to lie there."""
    code = pyz.read_bytes()
    return {
        f"trees/{tree.sha256}.tar": tree.path.read_bytes(),
        f"nodes/{hashlib.sha256(code).hexdigest()}.pyz": code,
    }


def test_both_files_by_their_content(login: Any, shared: Path, tree: Archive, pyz: Path) -> None:
    done = deliver(login, str(shared), tree, pyz)
    assert there(shared) == whole(tree, pyz)
    assert (done.tree, done.node) == (tree.sha256, hashlib.sha256(pyz.read_bytes()).hexdigest())
    assert 0 < done.sent < tree.size / 2
    assert sorted(path.name for path in shared.iterdir()) == ["jobs", "nodes", "trees"]
    modes = {path.stat().st_mode & 0o777 for path in (shared, *shared.rglob("*"))}
    assert modes == {0o700, 0o600}
    assert sorted(path.name for path in tree.path.parent.iterdir()) == ["node.pyz", "tree.tar"]


def test_what_is_there_does_not_travel_again(login: Any, shared: Path, tree: Archive, pyz: Path) -> None:
    deliver(login, str(shared), tree, pyz)
    for path in shared.rglob("*.*"):
        os.utime(path, (1, 1))
    login.texts.clear()
    assert deliver(login, str(shared), tree, pyz).sent == 0
    assert login.texts == ["ask"]
    assert all(path.stat().st_mtime > 1 for path in shared.rglob("*.*")), "cleaning must see them used"


def test_a_file_of_another_size_is_replaced(login: Any, shared: Path, tree: Archive, pyz: Path) -> None:
    deliver(login, str(shared), tree, pyz)
    (shared / f"trees/{tree.sha256}.tar").write_bytes(b"")
    deliver(login, str(shared), tree, pyz)
    assert there(shared) == whole(tree, pyz)


def test_a_folder_below_the_users_home(login: Any, tree: Archive, pyz: Path) -> None:
    deliver(login, "-gpuci $(touch ran)", tree, pyz)
    assert there(login.home / "-gpuci $(touch ran)") == whole(tree, pyz)
    assert not (login.home / "ran").exists()


def test_two_runners_at_once(login: Any, shared: Path, tree: Archive, pyz: Path) -> None:
    """The second one brings all while the first is just about to store the tree."""
    done: list[Delivered] = []

    def other(_: str) -> None:
        done.append(deliver(login, str(shared), tree, pyz))

    login.faults = [lambda _: None, other]
    done.append(deliver(login, str(shared), tree, pyz))
    assert done[0] == done[1]
    assert there(shared) == whole(tree, pyz)


def cut(login: Any, share: float) -> Callable[..., Answer | None]:
    """A fault: the link breaks when a share of the input has arrived."""

    def fault(_: str) -> Answer | None:
        real = login.really

        def half(text: str, args: tuple[str, ...], stdin: IO[bytes]) -> Answer:
            login.really = real
            data = stdin.read()
            real(text, args, data[: int(len(data) * share)])
            raise LinkLost("the link is gone")

        login.really = half
        return None

    return fault


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("how", ["gzip", "plain"])
def test_a_link_that_breaks_midway(
    login: Any, shared: Path, tmp_path: Path, pyz: Path, share: float, how: str
) -> None:
    tree = made(tmp_path / "here/tree.tar", SOURCE if how == "gzip" else random.Random(1).randbytes(100_000))
    said: list[str] = []
    login.faults = [lambda _: None, cut(login, share)]
    deliver(login, str(shared), tree, pyz, said.append)
    assert there(shared) == whole(tree, pyz)
    assert said == ["the link is gone; delivering again"]
    assert login.texts == ["ask", "store", "ask", "store", *(["store"] if share < 1 else [])]


def test_a_link_that_stays_away(login: Any, shared: Path, tree: Archive, pyz: Path) -> None:
    def lost(_: str) -> None:
        raise LinkLost("the link is gone")

    login.faults = [lost] * 3
    with pytest.raises(LinkLost):
        deliver(login, str(shared), tree, pyz, lambda _: None)
    assert login.texts == ["ask"] * 3


def test_a_link_that_asking_again_does_not_mend(login: Any, shared: Path, tree: Archive, pyz: Path) -> None:
    def lost(_: str) -> None:
        raise LinkLost("the key is refused", retry=False)

    login.faults = [lost]
    with pytest.raises(LinkLost):
        deliver(login, str(shared), tree, pyz)
    assert login.texts == ["ask"]


def test_a_cancelled_upload_leaves_nothing_with_a_name(
    login: Any, shared: Path, tree: Archive, pyz: Path
) -> None:
    """The input ends early, as sshd lets it when the runner is gone: the remote side cleans up itself."""

    def gone(text: str, args: tuple[str, ...], stdin: IO[bytes]) -> Answer:
        type(login).really(login, text, args, stdin.read(1000))
        raise KeyboardInterrupt

    def fault(_: str) -> None:
        login.really = gone

    login.faults = [lambda _: None, fault]
    with pytest.raises(KeyboardInterrupt):
        deliver(login, str(shared), tree, pyz)
    assert there(shared) == {}
    assert sorted(path.name for path in tree.path.parent.iterdir()) == ["node.pyz", "tree.tar"]


def test_data_that_changes_on_the_way(login: Any, shared: Path, tree: Archive, pyz: Path) -> None:
    other = gzip.compress(SOURCE.replace(b"True", b"Lies"))

    def changed(text: str, args: tuple[str, ...], stdin: IO[bytes] | bytes = b"") -> Answer:
        data = other if "trees/" in args[1] and stdin else stdin
        answer: Answer = type(login).really(login, text, args, data)
        return answer

    login.really = changed
    said: list[str] = []
    with pytest.raises(GpuciError, match="did not arrive as it was sent"):
        deliver(login, str(shared), tree, pyz, said.append)
    assert there(shared) == {}
    assert len(said) == 2


@pytest.mark.parametrize("tool", ["sha256sum", "shasum", "openssl", "none"])
def test_the_sum_by_what_the_login_node_has(
    login: Any, shared: Path, tree: Archive, pyz: Path, tmp_path: Path, tool: str
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ["sh", "mkdir", "wc", "touch", "dd", "gzip", "cat", "mv", "rm", *({tool} - {"none"})]:
        found = shutil.which(name)
        if found is None:
            pytest.skip(f"no {name} here")
        (programs / name).symlink_to(found)
    login.path = str(programs)
    login.shell = [str(programs / "sh")]
    said: list[str] = []
    deliver(login, str(shared), tree, pyz, said.append)
    assert there(shared) == whole(tree, pyz)
    assert [line for line in said if "could not be checked" in line] == said
    assert bool(said) is (tool == "none")


def test_a_short_file_is_seen_without_any_sum(login: Any, shared: Path, tmp_path: Path, pyz: Path) -> None:
    tree = made(tmp_path / "here/tree.tar", random.Random(1).randbytes(100_000))
    for name in ("sha256sum", "shasum", "openssl"):
        (tmp_path / "programs").mkdir(exist_ok=True)
        (tmp_path / "programs" / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "programs" / name).chmod(0o755)
    login.path = f"{tmp_path / 'programs'}:{login.path}"
    login.faults = [lambda _: None, cut(login, 0.5), lambda _: Answer(3, b"", "stop here")]
    with pytest.raises(GpuciError, match="takes no file"):
        deliver(login, str(shared), tree, pyz, lambda _: None)
    assert there(shared) == {}


def test_busybox(login: Any, shared: Path, tree: Archive, pyz: Path, busybox: Path) -> None:
    login.path = str(busybox)
    login.shell = [str(busybox / "sh")]
    deliver(login, str(shared), tree, pyz)
    assert there(shared) == whole(tree, pyz)


REFUSALS = [
    ("No space left on device", "is full"),
    ("Disk quota exceeded", "quota of the login user"),
    ("Read-only file system", "is read-only"),
    ("Permission denied", "can't be written by the login user"),
    ("Stale file handle", "is gone from its file server"),
    ("Something new \x1b[2J", "takes no file"),
]


@pytest.mark.parametrize(("text", "state"), REFUSALS, ids=[text for text, _ in REFUSALS])
@pytest.mark.parametrize("step", [0, 1], ids=["ask", "store"])
def test_a_folder_that_takes_no_file(
    login: Any, shared: Path, tree: Archive, pyz: Path, step: int, text: str, state: str
) -> None:
    login.faults = [lambda _: None] * step + [
        lambda _: Answer(3, b"Welcome\n", f"motd\ndd: error writing 'x': {text}\n1+0 records in\n")
    ]
    with pytest.raises(GpuciError, match=state) as caught:
        deliver(login, str(shared), tree, pyz)
    assert str(shared) in caught.value.what
    assert "\x1b" not in caught.value.page()


def test_a_device_that_is_full(login: Any, shared: Path, tree: Archive, pyz: Path, tmp_path: Path) -> None:
    """The real text of the real dd: its output is a link to the device that is always full."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "dd").write_text(f"#!/bin/sh\nexec {shutil.which('dd')} of=/dev/full bs=1048576\n")
    (programs / "dd").chmod(0o755)
    login.path = f"{programs}:{login.path}"
    with pytest.raises(GpuciError, match="is full"):
        deliver(login, str(shared), tree, pyz)
    assert there(shared) == {}


def test_a_file_is_where_the_folder_should_be(login: Any, shared: Path, tree: Archive, pyz: Path) -> None:
    shared.parent.mkdir()
    shared.write_text("in the way")
    with pytest.raises(GpuciError, match="is not a folder"):
        deliver(login, str(shared), tree, pyz)


def test_what_login_scripts_print_is_no_answer(login: Any, shared: Path, tree: Archive, pyz: Path) -> None:
    def chatty(text: str, args: tuple[str, ...], stdin: IO[bytes] | bytes = b"") -> Answer:
        answer = type(login).really(login, text, args, stdin)
        return Answer(answer.code, b"Welcome\xff\n" + answer.out, "No space left on device, says the motd\n")

    login.really = chatty
    deliver(login, str(shared), tree, pyz)
    assert there(shared) == whole(tree, pyz)


@pytest.mark.parametrize(
    ("data", "expected"),
    [(SOURCE, True), (random.Random(2).randbytes(3_000_000), False), (b"", False)],
    ids=["source", "packed already", "empty"],
)
def test_packing_pays(tmp_path: Path, data: bytes, expected: bool) -> None:
    (tmp_path / "x").write_bytes(data)
    assert packing.pays(tmp_path / "x", len(data)) is expected


def test_progress_follows_whoever_reads_the_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes(1000))
    said: list[str] = []
    told = threading.Event()

    def say(line: str) -> None:
        said.append(line)
        told.set()

    with (tmp_path / "x").open("rb", buffering=0) as stream:
        stream.read(250)
        with Progress(stream, 1000, 120_000_000, say, seconds=0.001):
            assert told.wait(30)
    assert said[0] == "delivering 120 MB: 25 %"


def test_a_quick_upload_tells_nothing(login: Any, shared: Path, tree: Archive, pyz: Path) -> None:
    said: list[str] = []
    deliver(login, str(shared), tree, pyz, said.append)
    assert said == []
    assert progress.SECONDS == 2.0


def test_a_runner_that_is_gone_leaves_no_part_of_a_file(tmp_path: Path) -> None:
    """Who sent the file reads no answer any more: the first word of it ends the text by SIGPIPE."""
    (tmp_path / "trees").mkdir()
    text = (Path(deliver_module.__file__).parent / "texts/store.sh").read_text()
    arguments = [str(tmp_path), "trees/x.tar", "100", "a" * 64, "trees/.partial-1", "plain"]
    process = subprocess.Popen(
        ["sh", "-c", text, "gpuci", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin
    assert process.stdout
    process.stdout.close()
    process.stdin.write(b"half of it")
    process.stdin.close()
    assert process.wait() != 0
    assert list((tmp_path / "trees").iterdir()) == []
