"""Every text of ssh that ends a connection -> what happened, what to do, and whether to try again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.execution.transport.messages import IDENTITY, LATER, REFUSED, explain, plain, quoted

CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!
Someone could be eavesdropping on you right now (man-in-the-middle attack)!
It is also possible that a host key has just been changed.
The fingerprint for the ED25519 key sent by the remote host is
SHA256:abc.
Please contact your system administrator.
Add correct host key in /tmp/x/known_hosts to get rid of this message.
Offending ED25519 key in /tmp/x/known_hosts:1
Host key for [127.0.0.1]:2222 has changed and you have requested strict checking.
Host key verification failed.
"""
UNPROTECTED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@         WARNING: UNPROTECTED PRIVATE KEY FILE!          @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
Permissions 0644 for '/tmp/x/keys/key' are too open.
It is required that your private key files are NOT accessible by others.
This private key will be ignored.
Load key "/tmp/x/keys/key": bad permissions
ci@127.0.0.1: Permission denied (publickey).
"""
UNKNOWN = """\
No ED25519 host key is known for [127.0.0.1]:2222 and you have requested strict checking.
Host key verification failed.
"""
JUMP_CLOSED = (
    "kex_exchange_identification: Connection closed by remote host\nConnection closed by UNKNOWN port 65535\n"
)
# OpenSSH 10.1 and newer say this of a server that is older than 9.0.
WARNED = """\
** WARNING: connection is not using a post-quantum key exchange algorithm.
** This session may be vulnerable to "store now, decrypt later" attacks.
** The server may need to be upgraded. See https://openssh.com/pq.html
"""

TEXTS = [
    (
        "ci@127.0.0.1: Permission denied (publickey).\n",
        REFUSED,
        "ci@127.0.0.1 does not let us in (it takes: publickey)",
        "authorized_keys",
    ),
    (
        "ci@h: Permission denied (publickey,keyboard-interactive).\n",
        REFUSED,
        "keyboard-interactive",
        "second factor",
    ),
    (
        "ci@gate: Permission denied (publickey).\n" + JUMP_CLOSED,
        REFUSED,
        "ci@gate does not let us in",
        "authorized_keys",
    ),
    (
        UNKNOWN,
        IDENTITY,
        "known_hosts has no ED25519 key for [127.0.0.1]:2222",
        "add the line for [127.0.0.1]:2222",
    ),
    (UNKNOWN + JUMP_CLOSED, IDENTITY, "no ED25519 key for [127.0.0.1]:2222", "ssh-keyscan"),
    (
        "No ED25519-CERT host certificate is known for h and you have requested strict checking.\n",
        IDENTITY,
        "for h",
        "ssh-keyscan",
    ),
    (CHANGED, IDENTITY, "the host key of [127.0.0.1]:2222 is not the one in known_hosts", "admins"),
    (
        "@ WARNING: REVOKED HOST KEY DETECTED! @\nHost key verification failed.\n",
        IDENTITY,
        "login1 is marked as revoked",
        "new key",
    ),
    (
        "Host key verification failed.\n",
        IDENTITY,
        "of login1 could not be verified",
        "its certificate has ended",
    ),
    (
        "Certificate invalid: expired\nHost key verification failed.\n",
        IDENTITY,
        "could not be verified",
        "certificate",
    ),
    (
        "Unable to negotiate with 1.2.3.4 port 22: no matching host key type found. Their offer: ssh-rsa\n",
        IDENTITY,
        "ssh-rsa",
        "ed25519",
    ),
    (
        "Unable to negotiate with 1.2.3.4 port 22: no matching cipher found. Their offer: 3des\n",
        REFUSED,
        "no common algorithm",
        "old",
    ),
    (UNPROTECTED, REFUSED, "can be read by others", "chmod 600"),
    (
        'Load key "/tmp/x/keys/key": error in libcrypto\nci@h: Permission denied (publickey).\n',
        REFUSED,
        "can't be read: error in libcrypto",
        "whole file",
    ),
    (
        'Load key "/x": invalid format\nci@h: Permission denied (publickey).\n',
        REFUSED,
        "invalid format",
        "whole file",
    ),
    (
        "Warning: Identity file /nonexist not accessible: No such file or directory.\n"
        "ci@h: Permission denied (publickey).\n",
        REFUSED,
        "No such file or directory",
        "path",
    ),
    (
        "Received disconnect from 1.2.3.4 port 22:2: Too many authentication failures\n",
        REFUSED,
        "too many keys",
        "slurm.identity-file",
    ),
    (
        "Received disconnect from 1.2.3.4 port 22:11: maintenance\n",
        LATER,
        "1.2.3.4 ended the connection: maintenance",
        "admins",
    ),
    (
        "ssh: connect to host 127.0.0.1 port 2223: Connection refused\n",
        LATER,
        "nothing listens at 127.0.0.1 port 2223",
        "slurm.port",
    ),
    (
        "ssh: connect to host h port 22: Connection timed out\n",
        LATER,
        "h port 22 does not answer",
        "firewall",
    ),
    ("ssh: connect to host h port 22: Operation timed out\n", LATER, "does not answer", "firewall"),
    (
        "ssh: connect to host 10.99.0.1 port 2225: No route to host\n",
        LATER,
        "can't be reached: No route to host",
        "slurm.jump",
    ),
    ("ssh: connect to host h port 22: Network is unreachable\n", LATER, "Network is unreachable", "network"),
    (
        "Connection timed out during banner exchange\n",
        LATER,
        "login1 took the connection and then said nothing",
        "overloaded",
    ),
    ("Connection to 127.0.0.1 port 2224 timed out\n", LATER, "said nothing", "overloaded"),
    (
        "ssh: Could not resolve hostname no-such-host.invalid: Name or service not known\n",
        LATER,
        "no address for the name no-such-host.invalid",
        "aliases",
    ),
    (
        "ssh: Could not resolve hostname h: Temporary failure in name resolution\n",
        LATER,
        "no address for the name h: Temporary",
        "name server",
    ),
    (
        "kex_exchange_identification: Connection closed by remote host\n",
        LATER,
        "closed the connection before it began",
        "MaxStartups",
    ),
    (
        "kex_exchange_identification: read: Connection reset by peer\nConnection reset by 1.2.3.4 port 22\n",
        LATER,
        "before it began",
        "MaxStartups",
    ),
    (
        "kex_exchange_identification: banner line contains invalid characters\n",
        REFUSED,
        "not an SSH server",
        "slurm.port",
    ),
    (
        "Not allowed at this time\nkex_exchange_identification: read: Connection reset by peer\n",
        LATER,
        "for a while",
        "PerSourcePenalties",
    ),
    (
        "channel 0: open failed: administratively prohibited: open failed\nstdio forwarding failed\n"
        + JUMP_CLOSED,
        REFUSED,
        "does not pass connections on",
        "AllowTcpForwarding",
    ),
    (
        "channel 0: open failed: connect failed: Connection refused\nstdio forwarding failed\n" + JUMP_CLOSED,
        LATER,
        "can't reach login1: Connection refused",
        "slurm.login",
    ),
    (
        "Timeout, server 10.99.0.1 not responding.\n",
        LATER,
        "the link to 10.99.0.1 went silent",
        "again by itself",
    ),
    (
        "Connection to 127.0.0.1 closed by remote host.\n",
        LATER,
        "the connection to login1 was closed",
        "restarted",
    ),
    ("Connection closed by 127.0.0.1 port 22\n", LATER, "was closed", "restarted"),
    ("client_loop: send disconnect: Broken pipe\n", LATER, "broke", "again"),
    (
        "mux_client_request_session: session request failed: Session open refused by peer\ngpuci-no-master\n",
        LATER,
        "refuses one more session",
        "MaxSessions",
    ),
    (
        "ControlSocket /tmp/x/m1 already exists, disabling multiplexing\n",
        REFUSED,
        "the socket that its sessions share",
        "TMPDIR",
    ),
    ('unix_listener: path "/x/m1.AAAA" too long for Unix domain socket\n', REFUSED, "the socket", "TMPDIR"),
    ("command-line: line 0: Bad configuration option: x\n", REFUSED, "does not know an option", "newer"),
    (
        "/tmp/x/config: line 3: Bad configuration option: updatehostkeys\n"
        "/tmp/x/config: terminating, 1 bad configuration options\n",
        REFUSED,
        "does not know an option",
        "newer",
    ),
    ("/bin/sh: 1: ssh: not found\n", REFUSED, "this machine has no ssh", "openssh-client"),
    ("sh: line 1: ssh: command not found\n", REFUSED, "this machine has no ssh", "openssh-client"),
    ("Welcome to the cluster\nsomething new\n", LATER, "ssh has no connection to login1: something new", ""),
    ("", LATER, "login1 ended without a word", "killed on this machine"),
    ("something new\n" + WARNED, LATER, "no connection to login1: something new", ""),
    (
        WARNED + "ci@h: Permission denied (publickey).\n",
        REFUSED,
        "ci@h does not let us in",
        "authorized_keys",
    ),
]


@pytest.mark.parametrize(
    ("said", "kind", "what", "help_word"), TEXTS, ids=[text[0][-50:].strip() for text in TEXTS]
)
def test_a_text_names_cause_and_next_step(said: str, kind: str, what: str, help_word: str) -> None:
    banner = "**** Authorized use only ****\nWarning: Permanently added something\n"
    for text in (said, said.replace("\n", "\r\n"), banner + said if said.count("\n") else said):
        message = explain(text, "login1")
        assert (message.kind, message.retry) == (kind, kind == LATER)
        assert what in message.what
        assert help_word in f"{message.what} {message.why} {message.then}"
        assert "{" not in f"{message.what}{message.why}{message.then}"
        assert message.then or not help_word


@given(st.text())
def test_nothing_that_a_server_says_steers_a_terminal_or_a_job_log(text: str) -> None:
    for said in (text, f"ssh: connect to host {text} port 22: {text}", f"x: Permission denied ({text})"):
        message = explain(said, "login1")
        assert message.what.isprintable()
        assert "::" not in message.what
        assert "##[" not in message.what
    assert all(line.isprintable() and line.startswith("    | ") for line in quoted(text).split("\n") if line)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\x1b[31mb\n", "a?[31mb"),
        ("\n\n::error::x\n", ": :error: :x"),
        ("##[error]x", "## [error]x"),
        ("a\u202eb", "a?b"),
        ("é\tb", "é?b"),
    ],
)
def test_text_becomes_plain(text: str, expected: str) -> None:
    assert plain(text) == expected


def test_the_end_of_a_long_text_is_quoted() -> None:
    assert quoted("".join(f"{n}\n" for n in range(50)), 2) == "    | 48\n    | 49"
