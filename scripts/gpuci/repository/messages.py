"""What git says when a fetch fails -> what a person is told. Pure.

Texts: git's `remote-curl.c`, `upload-pack.c`, `fetch-pack.c` and `connect.c`, and GitHub's answers
in them.
"""

from __future__ import annotations

import re

from gpuci.errors import ConfigError, GpuciError

_MISSING = re.compile(
    r"not our ref|couldn't find remote ref|unadvertised object|no such remote ref|"
    r"upload-pack: not our|remote did not send all necessary objects",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"Authentication failed|could not read (?:Username|Password)|terminal prompts disabled|"
    r"returned error: 40[13]|Invalid username or (?:password|token)|not granted",
    re.IGNORECASE,
)
_NO_REPOSITORY = re.compile(r"returned error: 404|[Rr]epository .*not found|does not appear to be a git")
_DISK = re.compile(r"No space left on device|Disk quota exceeded|Read-only file system", re.IGNORECASE)
_REDIRECT = re.compile(r"returned error: 30[1278]|redirect", re.IGNORECASE)


class CommitMissing(ConfigError):
    """The repository has no such commit or branch (any more)."""


def explained(said: str, url: str, wanted: str) -> GpuciError | None:
    """The error that git's words mean; None where the network may be to blame and trying again may help."""
    if _MISSING.search(said):
        return CommitMissing(
            f"{url} has no {wanted}",
            why="a branch was deleted, or a force push replaced the commit and the server let go of it",
            then="start a run for a commit that is there",
        )
    if _DISK.search(said):
        return GpuciError(
            f"{wanted} can't be stored: the disk is full, or not writable",
            then="free space below RUNNER_TEMP, or take a runner with a bigger disk",
        )
    if _REFUSED.search(said):
        return ConfigError(
            f"{url} refuses to give {wanted}",
            why="the token is not valid, or it may not read the repository",
            then="give the job `permissions: contents: read`, and pass no other token than github.token",
        )
    if _NO_REPOSITORY.search(said):
        return ConfigError(
            f"there is no repository {url}, or the token can't see it",
            why="GitHub answers so for a private repository without the permission, too",
            then="give the job `permissions: contents: read`",
        )
    if _REDIRECT.search(said):
        return ConfigError(
            f"{url} leads to another address, which git does not follow with a token",
            why="the repository was renamed, or a proxy stands between",
            then="use the repository's present name",
        )
    return None


def unreachable(said: str, url: str) -> GpuciError:
    """After the last try."""
    return GpuciError(
        f"{url} could not be fetched from: {last_line(said)}",
        why="the network or the server had a failure; it was tried three times",
        then="run the job again; https://www.githubstatus.com tells of failures at GitHub",
    )


def last_line(said: str) -> str:
    """The last line of git's words, safe to print."""
    lines = said.strip().splitlines() or ["no message"]
    return "".join(char if char.isprintable() else "?" for char in lines[-1])[:300]
