"""Settings and secrets -> a Login, and what is refused."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.errors import ConfigError
from gpuci.execution.transport.login import (
    Host,
    Login,
    has_passphrase,
    login_from,
    parse_host,
    private_key,
)

SLURM = {"login": "login1", "known-hosts": "kh", "identity-file": "key"}
PEM = "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("login1", Host("login1", 2200, "ci")),
        ("login1.example.org:22", Host("login1.example.org", 22, "ci")),
        ("me@login1", Host("login1", 2200, "me")),
        ("me@dom@login1:1", Host("login1", 1, "me@dom")),
        ("10.0.0.1", Host("10.0.0.1", 2200, "ci")),
        ("[::1]:22", Host("::1", 22, "ci")),
        ("[fd00::2]", Host("fd00::2", 2200, "ci")),
        ("fd00::2", Host("fd00::2", 2200, "ci")),
        ("me@::1", Host("::1", 2200, "me")),
    ],
)
def test_a_host_is_read(text: str, host: Host) -> None:
    assert parse_host(text, "ci", 2200) == host


@pytest.mark.parametrize(
    "text",
    [
        *("", "-oProxyCommand=x", "a b", "a;b", "a:0", "a:65536", "a:x", "@a", "-x@a", "a@", "a:", "[a]:22"),
        *("$(id)", "`id`@a", "a\nb", "x'@a", "%h", "fe80::1%eth0", "a@b@", "ssh://a", "[::1", "é"),
    ],
    ids=ascii,
)
def test_what_is_not_a_host_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a host"):
        parse_host(text, "ci")


@given(st.text())
def test_a_host_holds_nothing_that_a_shell_or_ssh_could_misread(text: str) -> None:
    try:
        host = parse_host(text)
    except ConfigError:
        return
    harmless = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:@+-$")
    assert set(host.name + host.user) <= harmless
    assert not host.name.startswith("-")
    assert not host.user.startswith("-")
    assert "$" not in host.name + host.user[:-1]


@given(st.builds(Host, st.sampled_from(["a", "a.b-c", "::1", "10.1.1.1"]), st.integers(1, 65535)))
def test_a_written_host_is_the_same_host(host: Host) -> None:
    assert parse_host(str(host)) == host


def test_all_settings_arrive() -> None:
    slurm = {
        "login": ["login1", "login2:2"],
        "user": "ci",
        "port": 2200,
        "jump": "gate",
        "known-hosts": "~/kh",
        "identity-file": "~/.ssh/id",
        "credential-command": "vault 'a b'",
        "partition": "gpu",
    }
    secrets = {
        "GPUCI_SSH_KNOWN_HOSTS": "x y z",
        "GPUCI_SSH_PRIVATE_KEY": PEM,
        "GPUCI_SSH_CERTIFICATE": "cert",
    }
    login = login_from(slurm, {"HOME": "/home/me", "SSH_AUTH_SOCK": "/agent", **secrets})
    assert login == Login(
        hosts=("login1", "login2:2"),
        user="ci",
        port=2200,
        jump=("gate",),
        known_hosts="/home/me/kh",
        identity_file="/home/me/.ssh/id",
        credential_command=("vault", "a b"),
        known_hosts_text="x y z",
        key=PEM,
        certificate="cert",
        agent="/agent",
    )
    assert login.targets == (Host("login1", 2200, "ci"), Host("login2", 2, "ci"))
    assert login.way == (Host("gate", 22, "ci"),)  # slurm.port is the login node's


@pytest.mark.parametrize(
    ("slurm", "environ"),
    [
        ({"login": "a", "known-hosts": "kh"}, {"GPUCI_SSH_PRIVATE_KEY": PEM}),
        ({"login": "a", "known-hosts": "kh", "identity-file": "k"}, {}),
        ({"login": "a", "known-hosts": "kh", "credential-command": ["get"]}, {}),
        ({"login": "a", "known-hosts": "kh"}, {"SSH_AUTH_SOCK": "/agent"}),
        ({"login": "a", "identity-file": "k"}, {"GPUCI_SSH_KNOWN_HOSTS": "a ssh-ed25519 AAAA"}),
        ({**SLURM, "user": None, "port": None, "jump": [], "credential-command": []}, {}),
    ],
    ids=["key text", "key file", "command", "agent", "known_hosts text", "defaults of the configuration"],
)
def test_one_key_and_one_known_hosts_are_enough(slurm: dict[str, Any], environ: dict[str, str]) -> None:
    assert [host.port for host in login_from(slurm, environ).targets] == [22]


@pytest.mark.parametrize(
    ("slurm", "environ", "words"),
    [
        ({**SLURM, "login": []}, {}, ["slurm.login names no login node"]),
        ({**SLURM, "known-hosts": None}, {}, ["no known_hosts", "ssh-keyscan", "GPUCI_SSH_KNOWN_HOSTS"]),
        ({**SLURM, "known-hosts": None}, {"GPUCI_SSH_KNOWN_HOSTS": " \n"}, ["no known_hosts"]),
        ({**SLURM, "identity-file": None}, {}, ["no key", "GPUCI_SSH_PRIVATE_KEY", "slurm.identity-file"]),
        ({**SLURM, "identity-file": None}, {"GPUCI_SSH_PRIVATE_KEY": "\n"}, ["no key"]),
        ({**SLURM, "login": "-oX"}, {}, ["'-oX' is not a host"]),
        ({**SLURM, "jump": ["a", "b c"]}, {}, ["'b c' is not a host"]),
        ({**SLURM, "credential-command": "a 'b"}, {}, ["slurm.credential-command", "quote"]),
        ({}, {}, ["3 settings", "names no login node", "no known_hosts", "no key", "ssh-keyscan"]),
        (
            SLURM,
            {"GPUCI_SSH_PRIVATE_KEY": "ssh-ed25519 AAAA me"},
            ["GPUCI_SSH_PRIVATE_KEY", "not hold a private key"],
        ),
    ],
)
def test_what_is_missing_is_told(slurm: dict[str, Any], environ: dict[str, str], words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        login_from(slurm, environ)
    assert [word for word in words if word not in caught.value.page()] == []


def test_a_login_does_not_print_its_secrets() -> None:
    login = login_from(SLURM, {"GPUCI_SSH_PRIVATE_KEY": PEM, "GPUCI_SSH_CERTIFICATE": "CCCC"})
    assert "AAAA" not in repr(login)
    assert "CCCC" not in repr(login)


@pytest.mark.parametrize("mangle", ["crlf", "cut end", "blank lines"])
def test_what_secret_stores_do_to_a_key_is_undone(mangle: str) -> None:
    text = {"crlf": PEM.replace("\n", "\r\n"), "cut end": PEM.rstrip(), "blank lines": f"\n\n{PEM}\n\n"}
    assert private_key(text[mangle], "X") == PEM


@pytest.mark.parametrize(
    "text",
    ["", "sesame", "ssh-ed25519 AAAA", PEM.replace("\n", " "), PEM.replace("\n", "\\n"), "/home/me/.ssh/id"],
    ids=["nothing", "word", "public key", "one line", "escaped", "path"],
)
def test_what_is_no_key_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(ConfigError, match="X does not hold a private key") as caught:
        private_key(text, "X")
    assert not text or text not in caught.value.page()


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
@pytest.mark.parametrize("form", ["RFC4716", "PEM", "PKCS8"])
@pytest.mark.parametrize("phrase", ["", "sesame"], ids=["open", "encrypted"])
def test_a_passphrase_is_seen_in_every_format(tmp_path: Path, form: str, phrase: str) -> None:
    command = ["ssh-keygen", "-q", "-t", "ecdsa", "-m", form, "-N", phrase, "-f", str(tmp_path / "key")]
    subprocess.run(command, check=True)
    key = (tmp_path / "key").read_text()
    assert has_passphrase(key) == bool(phrase)
    if phrase:
        with pytest.raises(ConfigError, match="has a passphrase"):
            private_key(key, "X")
    else:
        assert private_key(key, "X") == key
