"""The private directory of a connection, and the keys that lie in it while ssh connects."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gpuci.errors import ConfigError, GpuciError
from gpuci.execution.transport.login import (
    AGENT,
    CERTIFICATE,
    KEY,
    KNOWN_HOSTS,
    Login,
    has_passphrase,
    private_key,
)
from gpuci.execution.transport.messages import HOST_KEYS_PATH, PATHS, quoted
from gpuci.execution.transport.ssh_options import CONTROL, LONGEST_CONTROL_PATH

DIRECTORY = "GPUCI_CREDENTIAL_DIR"
COMMAND_SECONDS = 60.0

_SAFE = re.compile(r"[A-Za-z0-9/_.+-]+")


class CredentialError(GpuciError):
    """The credential command did not give what it is there for."""


def private_directory(below: Path) -> Path:
    """Make a directory (0700) for the socket and the keys of one master.

    In /tmp if `below` is too long for a socket, or has characters that ssh's configuration would read.
    """
    made = Path(tempfile.mkdtemp(prefix="ssh-", dir=below))
    if len(os.fsencode(made)) + len(CONTROL) + 1 <= LONGEST_CONTROL_PATH and _SAFE.fullmatch(str(made)):
        return made
    made.rmdir()
    return Path(tempfile.mkdtemp(prefix="gpuci-", dir="/tmp"))


def known_hosts(login: Login) -> str:
    """Return what the configured file and the text hold together; raises ConfigError.

    A file that is not there is none: with a text of its own, a runner needs no file.
    """
    text = login.known_hosts_text
    source = KNOWN_HOSTS
    if login.known_hosts and not (text.strip() and _is_missing(login)):
        source = f"slurm.known-hosts: {login.known_hosts!a}"
        text = f"{login.host_keys or _read(login.known_hosts, 'slurm.known-hosts', HOST_KEYS_PATH)}\n{text}"
    if not any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines()):
        raise ConfigError(
            f"{source} holds no host key",
            why="it is empty, or has comments only; `ssh-keyscan` prints nothing when it can't reach a host",
            then="put the lines of `ssh-keyscan HOST` into it, compared with what the cluster publishes",
        )
    return text


def _is_missing(login: Login) -> bool:
    return not login.host_keys and not os.path.lexists(login.known_hosts)


def _read(path: str, setting: str, then: str = PATHS) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise ConfigError(
            f"{setting}: {path!a} can't be read: {error.strerror}",
            then=then,
        ) from None


def write(path: Path, text: str) -> None:
    """Write a new file that nobody else can read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8", errors="surrogateescape") as stream:
        stream.write(text)


@contextlib.contextmanager
def keys_in(directory: Path, login: Login, seconds: float) -> Iterator[bool]:
    """For one connect: put what there is of keys into DIRECTORY/keys, and remove it afterwards.

    Gives whether there is a key at keys/key; if not, the agent's keys are all. A key that the credential
    command, which may take so many seconds, leaves there goes before any other. Raises ConfigError and
    CredentialError.
    """
    keys = directory / "keys"
    try:
        keys.mkdir(0o700)
        if login.key:
            write(keys / "key", login.key)
        if login.certificate:
            write(keys / "key-cert.pub", login.certificate.strip() + "\n")
        if login.credential_command:
            _run_command(login, keys, min(seconds, COMMAND_SECONDS))
        if login.identity_file and not (keys / "key").exists():
            _link(login, keys)
        yield (keys / "key").exists()
    finally:
        shutil.rmtree(keys, ignore_errors=True)


def _link(login: Login, keys: Path) -> None:
    """Let keys/key stand for the configured file: what ssh reads has a name that ssh can't misread."""
    path = Path(os.path.abspath(login.identity_file))
    key = _read(str(path), "slurm.identity-file")
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise ConfigError(
            f"slurm.identity-file: {str(path)!a} can be read by others (mode {mode:04o})",
            why="ssh refuses such a key",
            then=f"run `chmod 600 {path}`",
        )
    if not (login.agent and has_passphrase(key)):
        private_key(key, "slurm.identity-file")
    (keys / "key").symlink_to(path)
    certificate = Path(f"{path}-cert.pub")
    if certificate.exists() and not (keys / "key-cert.pub").exists():
        (keys / "key-cert.pub").symlink_to(certificate)


def _run_command(login: Login, keys: Path, seconds: float) -> None:
    """Run the credential command; it may leave `key` and `key-cert.pub`, or load an agent."""
    environment = {name: value for name, value in os.environ.items() if name not in (KEY, CERTIFICATE)}
    code, said = _run(login.credential_command, {**environment, DIRECTORY: str(keys)}, seconds)
    if code != 0:
        end = f"did not end within {seconds:.0f} s" if code is None else f"ended with {_ending(code)}"
        raise CredentialError(
            f"slurm.credential-command {end}",
            why="it said:\n" + quoted(said) if said.strip() else "it said nothing on standard error",
            then=f"run it by hand with {DIRECTORY} naming an empty directory: "
            + " ".join(map(ascii, login.credential_command[:1])),
        )
    if not (login.agent or login.identity_file or (keys / "key").exists()):
        raise CredentialError(
            "slurm.credential-command ended well and left no key",
            why=f"there is no file `key` in the directory that {DIRECTORY} names, and no ssh-agent",
            then=f"let it write `key` (and `key-cert.pub`) there, or set {AGENT}",
        )
    for name in ("key", "key-cert.pub"):
        if (keys / name).is_file() and not (keys / name).is_symlink():
            (keys / name).chmod(0o600)


def _ending(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


def _run(command: tuple[str, ...], environment: dict[str, str], seconds: float) -> tuple[int | None, str]:
    """(exit code, standard error) of a command; None: it took too long, and all of it was killed."""
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            return 127, f"{command[0]}: {error.strerror}"
        code = _wait(process, seconds)
        said.seek(0)
        return code, said.read().decode("utf-8", "replace")


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    # What a command that ends well leaves running is meant to stay: an agent.
    try:
        return process.wait(seconds)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            return None
        raise
