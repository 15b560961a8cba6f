"""How the login node is reached: settings and secrets as one checked value. Pure.

The settings are those of `slurm:` in docs/configuration.md, the variables those of docs/slurm.md.
"""

from __future__ import annotations

import base64
import binascii
import posixpath
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gpuci.errors import ConfigError

KEY = "GPUCI_SSH_PRIVATE_KEY"
CERTIFICATE = "GPUCI_SSH_CERTIFICATE"
SECRETS = (KEY, CERTIFICATE)
KNOWN_HOSTS = "GPUCI_SSH_KNOWN_HOSTS"
# Key of a resolved `slurm`, beside `known-hosts`: the lines of that file, which a commit has and no runner.
HOST_KEYS = "host-keys"
AGENT = "SSH_AUTH_SOCK"

_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]*\$?")
_NAME = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]*)(?::([0-9]{1,5}))?")
_BRACKETED = re.compile(r"\[([0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)\](?::([0-9]{1,5}))?")
_ADDRESS = re.compile(r"([0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*)()")
_KEY_HEAD = re.compile(r"\A\s*-----BEGIN ([A-Z ]*PRIVATE KEY)-----[ \t]*\n")
# PROTOCOL.key of OpenSSH: this text, then the name of the cipher as a string with a 4-byte length.
_OPENSSH_KEY = b"openssh-key-v1\0"
_UNENCRYPTED = _OPENSSH_KEY + b"\0\0\0\4none"

_NO_HOST = ("slurm.login names no login node", "write its name into slurm.login")
_NO_KNOWN_HOSTS = (
    "no known_hosts: host keys are always checked, and gpuci accepts none that it was not given",
    "run `ssh-keyscan HOST > known_hosts` (-p PORT for another port), compare `ssh-keygen -lf known_hosts` "
    "with what the cluster publishes, and name the file in slurm.known-hosts or put its text into "
    f"{KNOWN_HOSTS} (on GitHub: the input ssh-known-hosts); a line `@cert-authority *.example.org KEY` "
    "does as well",
)
_NO_KEY = (
    "no key for the login node",
    f"put a private key's text into {KEY} (on GitHub: the secret SSH_PRIVATE_KEY of the environment, passed "
    "under `secrets:` by that name), or set slurm.identity-file or slurm.credential-command, "
    "or start an ssh-agent",
)


@dataclass(frozen=True)
class Host:
    """A machine to log in to; an empty user is the local user's name, as ssh has it."""

    name: str
    port: int = 22
    user: str = ""

    def __str__(self) -> str:
        user = f"{self.user}@" if self.user else ""
        name = f"[{self.name}]" if ":" in self.name else self.name
        return f"{user}{name}:{self.port}"


@dataclass(frozen=True)
class Login:
    """All that a connection needs.

    `hosts` are tried in turn, `jump` is the way to each of them; both hold what the user wrote
    (`[user@]host[:port]`), `user` and `port` count where that says nothing (a jump host's port is 22 then).
    `connect_timeout` is the limit of one attempt over one hop, `patience` that of all attempts together;
    `keep_alive` is after how much silence the server is asked for a sign of life, three times. Seconds.
    `host_keys` are the lines of the file `known_hosts` where that is not here.
    """

    hosts: tuple[str, ...]
    user: str = ""
    port: int = 22
    jump: tuple[str, ...] = ()
    known_hosts: str = ""
    host_keys: str = field(default="", repr=False)
    identity_file: str = ""
    credential_command: tuple[str, ...] = ()
    connect_timeout: int = 20
    known_hosts_text: str = field(default="", repr=False)
    key: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)
    agent: str = ""
    keep_alive: int = 15
    patience: float = 120.0

    @property
    def targets(self) -> tuple[Host, ...]:
        """The login nodes; raises ConfigError."""
        return tuple(parse_host(text, self.user, self.port) for text in self.hosts)

    @property
    def way(self) -> tuple[Host, ...]:
        """The jump hosts, the nearest first; raises ConfigError."""
        return tuple(parse_host(text, self.user, 22) for text in self.jump)


def login_from(slurm: Mapping[str, Any], environ: Mapping[str, str]) -> Login:
    """Make a Login of the configuration's `slurm` and the environment; raises ConfigError: all problems."""
    login = Login(
        hosts=_texts(slurm.get("login")),
        user=slurm.get("user") or "",
        port=slurm.get("port") or 22,
        jump=_texts(slurm.get("jump")),
        known_hosts=_path(slurm.get("known-hosts"), environ),
        host_keys=slurm.get(HOST_KEYS) or "",
        identity_file=_path(slurm.get("identity-file"), environ),
        credential_command=_words(slurm.get("credential-command")),
        known_hosts_text=environ.get(KNOWN_HOSTS, ""),
        key=environ.get(KEY, ""),
        certificate=environ.get(CERTIFICATE, ""),
        agent=environ.get(AGENT, ""),
    )
    _raise_all(_problems(login))
    return replace(login, key=private_key(login.key, KEY)) if login.key.strip() else replace(login, key="")


def facts_of(login: Login, host: Host) -> dict[str, str]:
    """What an error of ssh is told with: where host keys are from, which keys and which user were offered."""
    known = [login.known_hosts, KNOWN_HOSTS if login.known_hosts_text.strip() else ""]
    keys = [
        "the key of slurm.credential-command" if login.credential_command else "",
        KEY if login.key else "",
        f"slurm.identity-file {login.identity_file}" if login.identity_file and not login.key else "",
    ]
    offered = " or ".join(filter(None, keys)) or "the keys of the ssh-agent"
    user = f"user {host.user}" if host.user else "the name of this machine's user (slurm.user is not set)"
    return {"known_hosts": " and ".join(filter(None, known)), "offer": f"{offered}, as {user}"}


def _texts(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value or ())


def _words(value: Any) -> tuple[str, ...]:
    if not isinstance(value, str):
        return tuple(value or ())
    try:
        return tuple(shlex.split(value))
    except ValueError:
        raise ConfigError(
            "slurm.credential-command is not a command",
            why="a quote is opened and not closed",
            then="close it, or write the command as a list of arguments",
        ) from None


def _path(value: Any, environ: Mapping[str, str]) -> str:
    text = str(value or "")
    return posixpath.join(environ.get("HOME", "~"), text[2:]) if text.startswith("~/") else text


def _problems(login: Login) -> list[tuple[str, str]]:
    """(what is wrong, what to do) of a login, all at once."""
    found = [] if login.hosts else [_NO_HOST]
    for text in (*login.hosts, *login.jump):
        try:
            parse_host(text, login.user, login.port)
        except ConfigError as error:
            found.append((error.what, error.then))
    if not login.known_hosts and not login.known_hosts_text.strip():
        found.append(_NO_KNOWN_HOSTS)
    if not (login.key.strip() or login.identity_file or login.credential_command or login.agent):
        found.append(_NO_KEY)
    return found


def _raise_all(problems: list[tuple[str, str]]) -> None:
    if len(problems) == 1:
        raise ConfigError(problems[0][0], then=problems[0][1])
    if problems:
        raise ConfigError(
            f"the login node can't be reached: {len(problems)} settings are missing or wrong",
            why="\n        ".join(what for what, _ in problems),
            then="\n        ".join(then for _, then in problems),
        )


def parse_host(text: str, user: str = "", port: int = 22) -> Host:
    """Read `[user@]host[:port]`, an IPv6 address with a port in brackets; raises ConfigError."""
    before, at, rest = text.rpartition("@")
    name = before if at else user
    match = _BRACKETED.fullmatch(rest) or _NAME.fullmatch(rest) or _ADDRESS.fullmatch(rest)
    if match is None or (at and not before) or (name and not _USER.fullmatch(name)):
        raise _no_host(text)
    number = int(match[2] or port)
    if not 0 < number < 65536:
        raise _no_host(text)
    return Host(match[1], number, name)


def _no_host(text: str) -> ConfigError:
    return ConfigError(
        f"{text!a} is not a host to log in to",
        then="write a host's name or address as `host`, `host:port`, `user@host` or `[address]:port`",
    )


def private_key(text: str, source: str) -> str:
    """Return a private key's text as ssh reads it: line ends of Unix, one at the end.

    Raises ConfigError naming `source` for what ssh could not use; no part of the key is in the message.
    """
    key = text.replace("\r\n", "\n").strip() + "\n"
    head = _KEY_HEAD.match(key)
    if head is None:
        raise ConfigError(
            f"{source} does not hold a private key",
            why="the text does not start with `-----BEGIN … PRIVATE KEY-----` and a line end",
            then="give the whole file that ssh-keygen wrote (not the .pub one), with its line ends;"
            " on GitHub as the secret SSH_PRIVATE_KEY",
        )
    if has_passphrase(key):
        raise ConfigError(
            f"the private key in {source} has a passphrase, and nobody is there to type it",
            then="make a key without one for this purpose alone, or load it into an ssh-agent",
        )
    return key


def has_passphrase(key: str) -> bool:
    """Whether a private key is encrypted (OpenSSH's own format, PEM, PKCS 8)."""
    if "ENCRYPTED" in key[:200]:
        return True
    body = "".join(key.split("\n")[1:3])
    try:
        start = base64.b64decode(body[: len(body) // 4 * 4])
    except (binascii.Error, ValueError):
        return False
    return start.startswith(_OPENSSH_KEY) and not start.startswith(_UNENCRYPTED)
