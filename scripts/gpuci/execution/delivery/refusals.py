"""What a shared folder that takes no file printed -> a page that names the folder. Pure."""

from __future__ import annotations

from gpuci.errors import GpuciError

_ELSEWHERE = "or name another folder in slurm.shared-dir"
# strerror of the C library under LC_ALL=C; (text, what of the folder, what to do).
_REFUSALS = (
    ("No space left on device", "is full", f"make room there, {_ELSEWHERE}"),
    (
        "Disk quota exceeded",
        "is full: the quota of the login user is used up",
        f"remove files there, {_ELSEWHERE}",
    ),
    ("Read-only file system", "is read-only", f"ask whether the file system is in order, {_ELSEWHERE}"),
    ("Permission denied", "can't be written by the login user", f"give it that right, {_ELSEWHERE}"),
    (
        "Not a directory",
        "is not a folder: a file is in its place or above it",
        f"remove that file, {_ELSEWHERE}",
    ),
    ("File exists", "is not a folder: a file is in its place or above it", f"remove that file, {_ELSEWHERE}"),
    (
        "Stale file handle",
        "is gone from its file server",
        "ask whether the file system is in order, then run again",
    ),
    ("Input/output error", "is on a file system that fails", "ask whether it is in order, then run again"),
    ("not found", "can't be used: a program is missing there", "the login node needs sh, coreutils and gzip"),
)


def refused(shared: str, code: int, said: str) -> GpuciError:
    """The error of a text that ended with `code`; `said`: its standard error (hostile)."""
    lines = [
        "".join(c if c.isprintable() else "?" for c in line) for line in said.splitlines() if line.strip()
    ]
    last = lines[-1][:300] if lines else f"exit code {code}"
    for text, state, then in _REFUSALS:
        found = next((line[:300] for line in lines if text in line), None)
        if found is not None:
            return GpuciError(
                f"the shared folder {shared!a} {state}", why=f"the login node said: {found}", then=then
            )
    return GpuciError(
        f"the shared folder {shared!a} takes no file",
        why=f"the login node said: {last}",
        then="try `touch` there as the login user",
    )
