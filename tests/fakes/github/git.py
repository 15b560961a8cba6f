"""git over HTTP, by git's own CGI program (git-http-backend(1)), read only as a job's token is."""

from __future__ import annotations

import os
import re
import subprocess

from tests.fakes.github.replies import Reply

_PATH = re.compile(r"/([^/]+/[^/]+?)(?:\.git)?(/info/refs|/HEAD|/git-upload-pack|/git-receive-pack)")
# What GitHub lets clients ask for: any commit it has by its SHA, and partial clones.
_CONFIG = {
    "uploadpack.allowAnySHA1InWant": "true",
    "uploadpack.allowFilter": "true",
    "http.receivepack": "false",
    "safe.directory": "*",
}


def is_git(path: str) -> bool:
    """Whether a path is git's, not the API's."""
    return _PATH.fullmatch(path) is not None


def repository_of(path: str) -> str:
    """`owner/name` of a path of git's."""
    match = _PATH.fullmatch(path)
    assert match is not None
    return match[1]


def answer(directory: str, method: str, path: str, query: str, headers: dict[str, str], body: bytes) -> Reply:
    """What git answers from the bare repository `directory`."""
    match = _PATH.fullmatch(path)
    assert match is not None
    lower = {name.lower(): value for name, value in headers.items()}
    environ = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "GIT_PROJECT_ROOT": directory,
        "PATH_INFO": match[2],
        "GIT_HTTP_EXPORT_ALL": "1",
        "REQUEST_METHOD": method,
        "QUERY_STRING": query,
        "CONTENT_TYPE": lower.get("content-type", ""),
        "CONTENT_LENGTH": str(len(body)),
        "HTTP_CONTENT_ENCODING": lower.get("content-encoding", ""),
        "GIT_PROTOCOL": lower.get("git-protocol", ""),
        **_configuration(),
    }
    done = subprocess.run(["git", "http-backend"], input=body, env=environ, capture_output=True, check=False)
    return _reply(done.stdout)


def _configuration() -> dict[str, str]:
    """git-config(1), GIT_CONFIG_COUNT; and nothing of the machine's own."""
    environ = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "HOME": os.devnull}
    environ["GIT_CONFIG_COUNT"] = str(len(_CONFIG))
    for place, (key, value) in enumerate(_CONFIG.items()):
        environ |= {f"GIT_CONFIG_KEY_{place}": key, f"GIT_CONFIG_VALUE_{place}": value}
    return environ


def _reply(output: bytes) -> Reply:
    """A CGI answer (RFC 3875, 6) -> ours."""
    head, _, body = output.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
    status = int(headers.pop("Status", "200").split()[0])
    return Reply(status, body, headers)
