"""Keys, certificates, and two sshds with OpenSSH's defaults for how many may connect at once."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.cluster.bed.place import LOGIN_HOSTS, USER, Place
from tests.cluster.bed.processes import run, system_environ

# A certificate that is good for some seconds, as a site's credential command would fetch it.
ISSUE = """\
#!/bin/sh
# issue FILE [SECONDS]: make the key FILE and the certificate FILE-cert.pub for the user `ci`
set -eu
rm -f "$1" "$1.pub" "$1-cert.pub"
ssh-keygen -q -t ed25519 -N '' -C certified -f "$1"
ssh-keygen -q -s {ca} -I certified -n {user} -V "-60s:+${{2:-60}}s" "$1.pub"
"""


def make_keys(place: Place) -> None:
    """Keys of the user, a stranger, the hosts and both authorities; and what names them to ssh."""
    for name in ("keys/ci", "keys/stranger", "sshd/user_ca", "sshd/host_ca"):
        _key(place / name)
    for number, host in enumerate(LOGIN_HOSTS, 1):
        _host_key(place, place / f"sshd/host{number}", host)
    issue = place / "keys/issue"
    issue.write_text(ISSUE.format(ca=place / "sshd/user_ca", user=USER))
    issue.chmod(0o755)
    _authorize(place)
    _known_hosts(place)
    (place / "ssh_config").write_text(client_config(place))


def _key(path: Path) -> None:
    if not path.exists():
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.name, "-f", str(path)], "no ssh key")


def _host_key(place: Place, path: Path, host: str) -> None:
    _key(path)
    ca = str(place / "sshd/host_ca")
    run(["ssh-keygen", "-q", "-s", ca, "-I", host, "-h", "-n", host, f"{path}.pub"], "no host certificate")


def _authorize(place: Place) -> None:
    directory = place.home / ".ssh"
    directory.mkdir(exist_ok=True, mode=0o700)
    keys = directory / "authorized_keys"
    keys.write_text((place / "keys/ci.pub").read_text())
    keys.chmod(0o600)
    for path in (directory, keys):
        shutil.chown(path, USER, USER)


def _known_hosts(place: Place) -> None:
    names = [f"[{host}]:{place.ssh_port}" for host in LOGIN_HOSTS]
    keys = [_public(place / f"sshd/host{number}") for number in range(1, len(names) + 1)]
    plain = "".join(f"{name} {key}\n" for name, key in zip(names, keys, strict=True))
    (place / "sshd/known_hosts").write_text(plain)
    authority = f"@cert-authority {','.join(names)} {_public(place / 'sshd/host_ca')}\n"
    (place / "sshd/known_hosts_ca").write_text(authority)


def _public(path: Path) -> str:
    return " ".join(Path(f"{path}.pub").read_text().split()[:2])


def client_config(place: Place) -> str:
    """An ssh_config with the hosts `bed` and `bed2`."""
    common = {
        "Port": place.ssh_port,
        "User": USER,
        "IdentityFile": place / "keys/ci",
        "IdentitiesOnly": "yes",
        "UserKnownHostsFile": place / "sshd/known_hosts",
        "StrictHostKeyChecking": "yes",
        "BatchMode": "yes",
    }
    hosts = zip(("bed", "bed2"), LOGIN_HOSTS, strict=True)
    lines = [line for name, host in hosts for line in (f"Host {name}", f"  HostName {host}")]
    return "\n".join([*lines, "Host bed bed2", *(f"  {key} {value}" for key, value in common.items()), ""])


def sshd_config(place: Place, number: int) -> str:
    """The configuration of login host `number` (from 1). MaxStartups and MaxSessions are OpenSSH's own."""
    session = {"PATH": system_environ()["PATH"], "LANG": "C.UTF-8", "SLURM_CONF": place.slurm_conf}
    settings = {
        "ListenAddress": f"{LOGIN_HOSTS[number - 1]}:{place.ssh_port}",
        "HostKey": place / f"sshd/host{number}",
        "HostCertificate": place / f"sshd/host{number}-cert.pub",
        "TrustedUserCAKeys": place / "sshd/user_ca.pub",
        "PidFile": "none",
        "UsePAM": "no",
        "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no",
        "PermitRootLogin": "no",
        "AllowUsers": USER,
        "LogLevel": "VERBOSE",
        "Subsystem": "sftp internal-sftp",
        "SetEnv": " ".join(f"{name}={value}" for name, value in session.items()),
    }
    return "".join(f"{key} {value}\n" for key, value in settings.items())
