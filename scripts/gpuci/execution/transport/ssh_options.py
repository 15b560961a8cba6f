"""What ssh is told: the text of its configuration file, and its arguments. Pure.

Nothing of ~/.ssh/config or /etc/ssh is read, so nothing there can switch a check off. Everything that also
goes for the jump hosts stands in the file: ssh passes -F, but no -o, to the ssh that it starts for a jump.
"""

from __future__ import annotations

from gpuci.execution.transport.login import Host, Login

# sun_path has 108 bytes with its NUL; ssh first binds `PATH.` and 16 random characters (mux.c of OpenSSH).
LONGEST_CONTROL_PATH = 90
CONTROL = "master"  # the socket, in the private directory
NO_MASTER = "gpuci-no-master"
# The master died between the request for a session and its answer: the command may just have gone out.
IN_BETWEEN = "read from master failed"
READY = "gpuci-ready"

_CONFIG = """\
Host *
    BatchMode yes
    StrictHostKeyChecking yes
    UserKnownHostsFile "{directory}/known_hosts"
    GlobalKnownHostsFile /dev/null
    UpdateHostKeys no
    CheckHostIP no
    VerifyHostKeyDNS no
    PreferredAuthentications publickey
    IdentityAgent {agent}
    IdentityFile {identity}
    IdentitiesOnly {only}
    AddKeysToAgent no
    ForwardAgent no
    ForwardX11 no
    ClearAllForwardings yes
    PermitLocalCommand no
    ControlMaster no
    ControlPath none
    ConnectTimeout {connect_timeout}
    ConnectionAttempts 1
    ServerAliveInterval {keep_alive}
    ServerAliveCountMax 3
    LogLevel INFO
"""


def config_text(login: Login, directory: str, *, key: bool) -> str:
    """Return the configuration file; `key`: there is one at DIRECTORY/keys/key, and no other is offered."""
    return _CONFIG.format(
        directory=directory,
        agent="SSH_AUTH_SOCK" if login.agent and not login.key else "none",
        identity=f'"{directory}/keys/key"' if key else "none",
        only="yes" if key else "no",
        connect_timeout=login.connect_timeout,
        keep_alive=login.keep_alive,
    )


def master_arguments(host: Host, way: tuple[Host, ...], directory: str, control: str) -> list[str]:
    """Return the command of the master: it prints READY once it is connected and its socket listens."""
    options = (
        "ControlMaster=yes",
        "ControlPersist=no",
        "PermitLocalCommand=yes",
        f"LocalCommand=echo {READY}",
    )
    command = ["ssh", "-F", f"{directory}/config", "-N", "-T", "-S", control, "-p", str(host.port)]
    command += [word for option in options for word in ("-o", option)]
    command += ["-l", host.user] if host.user else []
    command += ["-J", ",".join(map(str, way))] if way else []
    return [*command, "--", host.name]


def session_arguments(control: str, command: str) -> list[str]:
    """Return the command that runs a remote command over the master, and never connects by itself."""
    # Without its master ssh would connect on its own; what it would use for that says so and ends.
    instead = f"ProxyCommand=sh -c 'echo {NO_MASTER} >&2'"
    return ["ssh", "-F", "/dev/null", "-T", "-S", control, "-o", instead, "--", "login", command]


def check_arguments(control: str) -> list[str]:
    """Return the command that tells by its exit code whether the master lives."""
    return ["ssh", "-F", "/dev/null", "-S", control, "-O", "check", "--", "login"]
