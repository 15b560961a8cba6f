"""What ssh says when there is no connection -> what happened, the usual reason, what to do. Pure.

The texts are OpenSSH's own (9.2, most are older); of several lines the row that stands first here counts,
since ssh ends with a general line ("Connection closed") whatever went wrong before. GitHub's ubuntu-latest is
26.04 with OpenSSH 10.2 (actions/runner-images): of a server before 9.0 that warns first, on each connection
(openssh.com/pq.html), which is no reason for anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

LATER = "later"  # asking again may help
REFUSED = "refused"  # this host will say the same again
IDENTITY = "identity"  # this host is not, or can't be shown to be, the one it should be

_MAKE = "`ssh-keyscan HOST` prints its keys; compare them with what the cluster publishes, then"

UNKNOWN = {"known_hosts": "known_hosts", "offer": "what is configured"}
PATHS = "relative paths count from ROOT, the directory with .github/gpuci.yml"
HOST_KEYS_PATH = (
    f"{PATHS}; on GitHub commit the file to the default branch, below ROOT, or pass its lines as the"
    " input ssh-known-hosts"
)


@dataclass(frozen=True)
class Message:
    """One failure for a person; `kind` is LATER, REFUSED or IDENTITY."""

    kind: str
    what: str
    why: str = ""
    then: str = ""

    @property
    def retry(self) -> bool:
        """Whether it can be different in a moment, without anybody doing something."""
        return self.kind == LATER


class _Row(NamedTuple):
    """`{1}` in a text is the pattern's first group, `{host}` the host that was to be reached.

    `{known_hosts}` is where its keys are from, `{offer}` the keys and the user's name that were offered.
    """

    pattern: str
    kind: str
    what: str
    why: str
    then: str


_ROWS = tuple(
    _Row(*row)
    for row in (
        (
            r"REMOTE HOST IDENTIFICATION HAS CHANGED(?:.*?Host key for (\S+) has changed)?",
            IDENTITY,
            "the host key of {1} is not the one in {known_hosts}",
            "the host was set up again, its name leads to another machine, or somebody stands in between",
            "ask the cluster's admins whether the key changed; only then replace its line in known_hosts",
        ),
        (
            r"WARNING: REVOKED HOST KEY|[Hh]ost key (?:for )?(\S+)? ?(?:was|is marked as) revoked",
            IDENTITY,
            "the host key of {host} is marked as revoked in {known_hosts}",
            "the cluster gave that key up",
            "get the new key from the cluster's admins",
        ),
        (
            r"No (\S+) host (?:key|certificate) is known for (\S+)",
            IDENTITY,
            "{known_hosts} has no {1} key for {2}",
            "host keys are always checked, and none is accepted that was not given",
            f"{_MAKE} add the line for {{2}} (a port other than 22 is written as [host]:port)",
        ),
        (
            r"no matching host key type found\. Their offer: (\S+)",
            IDENTITY,
            "{host} offers only host keys that this ssh does not take: {1}",
            "its sshd is very old, or this machine's ssh policy is strict",
            "ask the cluster's admins for a login node with an ed25519, ecdsa or rsa-sha2 host key",
        ),
        (
            r"Host key verification failed",
            IDENTITY,
            "the host key of {host} could not be verified",
            "{known_hosts} has no valid line for it, or its certificate has ended or is for another name",
            f"{_MAKE} put them into known_hosts",
        ),
        (
            r"Too many authentication failures",
            REFUSED,
            "{host} gave up after too many keys that it does not know",
            "the ssh-agent holds several keys, and all were offered in turn",
            "name the right one in slurm.identity-file: then only that one is offered",
        ),
        (
            r'Load key "([^"]*)": bad permissions',
            REFUSED,
            "the private key can be read by others, so ssh does not use it",
            "its file has a mode other than 0600",
            "run `chmod 600` on the file of slurm.identity-file",
        ),
        (
            r'Load key "([^"]*)": (invalid format|error in libcrypto|incorrect passphrase[^\n]*)',
            REFUSED,
            "the private key can't be read: {2}",
            "it was cut, its line ends are lost, it has a passphrase, or it is a public key",
            "give the whole file that ssh-keygen wrote, made without a passphrase",
        ),
        (
            r"Identity file (\S+) not accessible: ([^\n.]*)",
            REFUSED,
            "the private key can't be read: {2}",
            "slurm.identity-file names a file that is not there",
            PATHS,
        ),
        (
            r"(\S+): Permission denied \(([^)\n]*)\)",
            REFUSED,
            "{1} does not let us in (it takes: {2})",
            "offered: {offer}; the key is not in the user's authorized_keys there, the user's name is wrong, "
            "a certificate has ended, the account is locked, or a second factor is asked for",
            "check slurm.user; add the public key to ~/.ssh/authorized_keys on the login node; "
            "try `ssh -i KEY USER@HOST true` by hand",
        ),
        (
            r"Received disconnect from (\S+) [^\n]*:\d+: ([^\n]*)",
            LATER,
            "{1} ended the connection: {2}",
            "its sshd, or something before it, has a rule against this connection",
            "read what it says; ask the cluster's admins",
        ),
        (
            r"Not allowed at this time",
            LATER,
            "{host} refuses this address for a while",
            "its sshd punishes addresses after failed or too many connections (PerSourcePenalties)",
            "wait some minutes; if it happens again ask the cluster's admins to exempt the runner's address",
        ),
        (
            r"administratively prohibited",
            REFUSED,
            "the jump host does not pass connections on to {host}",
            "its sshd forbids forwarding (AllowTcpForwarding or PermitOpen)",
            "ask its admins to allow it, or take another jump host",
        ),
        (
            r"open failed: connect failed: ([^\n]*)|stdio forwarding failed",
            LATER,
            "the jump host can't reach {host}: {1}",
            "the login node is down, or its name or port is another one as seen from the jump host",
            "check slurm.login and slurm.port",
        ),
        (
            r"Could not resolve hostname (\S+): ([^\n]*(?:not known|No address)[^\n]*)",
            LATER,
            "no address for the name {1}: {2}",
            "the name is misspelt, only known inside the cluster's network, or the name server is away; "
            "aliases of ~/.ssh/config are not read",
            "write the host's real name, or reach it by slurm.jump",
        ),
        (
            r"Could not resolve hostname (\S+): ([^\n]*)",
            LATER,
            "no address for the name {1}: {2}",
            "the name server did not answer",
            "check the network of the machine that gpuci runs on",
        ),
        (
            r"kex_exchange_identification: (Connection (?:closed|reset)[^\n]*|read: [^\n]*|[^\n]*Broken pipe)"
            r"|Exceeded MaxStartups",
            LATER,
            "{host} closed the connection before it began: {1}",
            "many log in at the same moment (MaxStartups of its sshd), it is starting, or bans this address",
            "gpuci tries again by itself; if that does not help ask the cluster's admins about the address",
        ),
        (
            r"kex_exchange_identification: (?:banner line [^\n]*|client sent [^\n]*|([^\n]*))",
            REFUSED,
            "what answers at {host} is not an SSH server",
            "the port is that of something else",
            "check slurm.port",
        ),
        (
            r"Unable to negotiate with [^\n]*: ([^\n]*)",
            REFUSED,
            "{host} and this machine's ssh have no common algorithm: {1}",
            "one of the two is very old",
            "use a newer runner or another login node",
        ),
        (
            r"connect to (?:host|address) (\S+) port (\d+): Connection refused",
            LATER,
            "nothing listens at {1} port {2}",
            "sshd is not running there (or is just starting), or the port is another one",
            "check slurm.login and slurm.port",
        ),
        (
            r"Connection timed out during banner exchange|Connection to (\S+) port (\d+) timed out"
            r"|timed out during (?:key exchange|banner)",
            LATER,
            "{host} took the connection and then said nothing",
            "the login node is overloaded, or a firewall swallows the packets",
            "try again later; check that a plain `ssh` gets through from this machine",
        ),
        (
            r"connect to (?:host|address) (\S+) port (\d+): (Connection timed out|Operation timed out)",
            LATER,
            "{1} port {2} does not answer",
            "a firewall drops the packets, the host is down, or this machine is not in the right network",
            "check that this machine may reach it; a login node behind another is reached by slurm.jump",
        ),
        (
            r"connect to (?:host|address) (\S+) port (\d+): ([^\n]*)",
            LATER,
            "{1} port {2} can't be reached: {3}",
            "there is no way to it from this machine's network, or it is down",
            "check the network; a login node behind another is reached by slurm.jump",
        ),
        (
            r"Timeout, server (\S+) not responding",
            LATER,
            "the link to {1} went silent",
            "the network between, or the login node, stood still for longer than the keep-alives wait",
            "gpuci connects again by itself",
        ),
        (
            r"session request failed|Session open refused by peer|open failed: resource shortage",
            LATER,
            "{host} refuses one more session on this connection",
            "its sshd allows few (MaxSessions)",
            "gpuci waits and tries again; ask the cluster's admins for MaxSessions of at least 10",
        ),
        (
            r"Control ?[Ss]ocket[^\n]* already exists|unix_listener|muxserver_listen|ControlPath too long"
            r"|[Cc]ontrol socket bind|too long for Unix domain socket",
            REFUSED,
            "ssh can't make the socket that its sessions share",
            "the temporary directory is full, read-only, or on a file system without sockets",
            "let TMPDIR name a directory on a local disk",
        ),
        (
            r"\bssh: (?:command )?not found",
            REFUSED,
            "this machine has no ssh",
            "gpuci uses the system's OpenSSH client",
            "install it (Debian, Ubuntu: openssh-client)",
        ),
        (
            r"command-line[^\n]*: Bad configuration option: ([^\n]*)"
            r"|Bad configuration option: ([^\n]*)|terminating, \d+ bad configuration options",
            REFUSED,
            "this machine's ssh does not know an option that gpuci needs",
            "it is older than OpenSSH 8",
            "install a newer openssh-client",
        ),
        (
            r"Connection (?:to|closed by|reset by) (\S+)[^\n]*",
            LATER,
            "the connection to {host} was closed",
            "its sshd was restarted, the session was ended there, or the network broke it",
            "gpuci connects again by itself",
        ),
        (
            r"client_loop: send disconnect|packet_write_wait|Broken pipe|Connection reset by peer",
            LATER,
            "the connection to {host} broke",
            "the network, or the login node, ended it",
            "gpuci connects again by itself",
        ),
    )
)
_WARNING = re.compile(r"^\*\* [^\n]*\n?", re.MULTILINE)
_COMPILED = tuple(
    (re.compile(row.pattern, re.DOTALL if "IDENTIFICATION" in row.pattern else 0), row) for row in _ROWS
)


def explain(said: str, host: str, facts: Mapping[str, str] = UNKNOWN) -> Message:
    """Return the message for what ssh printed while it had, or lost, no connection to `host`.

    `facts` are the values of `known_hosts` and `offer`. A text in no row is shown as it is, made harmless,
    and counts as LATER.
    """
    said = _WARNING.sub("", said)
    for pattern, row in _COMPILED:
        match = pattern.search(said)
        if match:
            texts = (_filled(text, match, host, facts) for text in (row.what, row.why, row.then))
            return Message(row.kind, *texts)
    lines = plain(said).splitlines()
    if lines:
        return Message(LATER, f"ssh has no connection to {host}: {lines[-1][:200]}")
    return Message(
        LATER,
        f"the ssh process with the connection to {host} ended without a word",
        "it was killed on this machine",
        "gpuci connects again by itself",
    )


def _filled(text: str, match: re.Match[str], host: str, facts: Mapping[str, str]) -> str:
    groups = [" ".join(plain(group or host).split())[:200] for group in match.groups()]
    return text.format(host, *groups, host=host, **{name: plain(value) for name, value in facts.items()})


def plain(text: str) -> str:
    """Text of a server as harmless lines: only printable characters, no workflow command."""
    lines = ("".join(c if c.isprintable() else "?" for c in line).rstrip() for line in text.splitlines())
    return "\n".join(line.replace("::", ": :").replace("##[", "## [") for line in lines if line.strip("? "))


def quoted(text: str, lines: int = 12) -> str:
    """The last lines of what a program printed, behind a gutter."""
    return "\n".join(f"    | {line[:400]}" for line in plain(text).splitlines()[-lines:])
