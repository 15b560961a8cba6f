"""The login node as a few calls: each sends one text of `texts/` and reads its answer."""

from __future__ import annotations

import io
import re
import tarfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from gpuci.errors import ConfigError, GpuciError
from gpuci.execution.slurm import answers
from gpuci.execution.slurm.messages import clean
from gpuci.execution.transport.connection import Answer, LinkLost

_TEXTS = Path(__file__).with_name("texts")
_MOST_LOG_BYTES = 4 * 1024 * 1024  # of one log in one poll
_QUERY_SECONDS = 60.0  # a controller that is away lets its clients wait about 10 s each (Slurm 22.05)
_FETCH_SECONDS = 200.0  # less than a lease lasts: meanwhile none is renewed
MOST_FETCHED_BYTES = 512 * 1024 * 1024  # of one job; they are held in memory
_PATIENCE_SECONDS = 120.0  # for a link that comes back
_PAUSE_SECONDS = 2.0
# No one's disk is full or read-only: this stays as it is until a person changes something.
_NOT_OURS = re.compile("Permission denied|Operation not permitted|No such file|Not a directory|File exists")

Value = TypeVar("Value")


class Runner(Protocol):
    """Runs a sh text on the login node."""

    def run(self, text: str, *args: str, stdin: bytes = b"", timeout: float = 60.0) -> Answer:
        """See transport.connection.Connection.run."""


class Cluster:
    """What is asked of a login node. `owner` is this runner, in the job directories that it follows."""

    def __init__(self, connection: Runner, owner: str, pause: Callable[[float], None] = time.sleep) -> None:
        self._connection = connection
        self.owner = owner
        self._pause = pause
        self._counter = 0
        self.shared = ""

    def prepare(self, shared: str | None) -> answers.Site:
        """Make the folders of a run; raises ConfigError when a program is missing, GpuciError otherwise."""
        site = self._ask("prepare", answers.parse_site, shared or "")
        if site.missing:
            raise ConfigError(
                f"{site.host} has no {', '.join(site.missing)}",
                why="it is no login node of Slurm, or PATH lacks its programs for non-interactive shells",
                then="check slurm.login, and what ~/.bashrc or /etc/profile.d sets for `ssh HOST command`",
            )
        self.shared = site.shared
        return site

    def create(
        self, tree: str, node: str, jobs: Mapping[str, Mapping[str, str]]
    ) -> tuple[frozenset[str], tuple[answers.Held, ...]]:
        """Make the directories of jobs from {name: {file: text}}; those that were there are told."""
        data = _tar(jobs)
        args = (self.shared, tree, node, self.owner, *jobs)
        return self._ask("create", answers.parse_created, *args, stdin=data)

    def adopt(self, held: answers.Held) -> bool:
        """Take a directory over from a runner that is gone; False if another one was quicker."""
        return self._run("adopt", self.shared, held.name, held.holder, self.owner).code == 0

    def submit(self, keys: Mapping[str, str]) -> tuple[tuple[answers.Submitted, ...], str | None]:
        """Submit what the queue does not know, from {name: key}; raises LinkLost, Garbled.

        Not repeated on a lost link: what happened must be looked up.
        """
        pairs = [word for pair in keys.items() for word in pair]
        answer = self._run("submit", self.shared, ",".join(keys), *pairs, timeout=_QUERY_SECONDS * 5)
        return answers.parse_submitted(answer.out)

    def poll(self, offsets: Mapping[str, int], *, queue: bool = True) -> answers.Poll:
        """Renew the leases, bring what is new, and the queue if asked for it; raises LinkLost, Garbled."""
        self._counter += 1
        pairs = [word for name, offset in offsets.items() for word in (name, str(offset))]
        names = ",".join(offsets) if queue else ""
        args = (self.owner, str(self._counter), str(_MOST_LOG_BYTES), names, *pairs)
        poll = answers.parse_poll(self._run("poll", self.shared, *args).out, queue=queue)
        if len(poll.parts) != len(offsets):
            raise answers.Garbled(f"{len(poll.parts)} of {len(offsets)} jobs")
        return poll

    def bring(self, jobs: Mapping[str, str]) -> dict[str, answers.Brought]:
        """Of {name: job id} what came in one round trip; raises LinkLost, Garbled."""
        pairs = [word for name, job_id in jobs.items() for word in (name, job_id or "-")]
        return answers.parse_brought(self._run("bring", self.shared, *pairs).out)

    def details(self, job_id: str, name: str) -> answers.Details:
        """What Slurm knows of a job that is over."""
        return self._ask("details", answers.parse_details, job_id, name)

    def cancel(self, job_ids: Sequence[str], timeout: float = _QUERY_SECONDS) -> Answer:
        """End these jobs; the answer is scancel's."""
        return self._run("cancel", *job_ids, timeout=timeout)

    def withdraw(self, names: Sequence[str]) -> None:
        """Jobs of these names that did not begin by now never will."""
        self._run("withdraw", self.shared, *names)

    def queue(self, names: Sequence[str]) -> Answer:
        """The jobs of these names that are not over, as squeue prints them."""
        return self._run("queue", ",".join(names))

    def fetch(self, name: str) -> bytes:
        """What a job left, as a tar; cut off if it is too large."""
        most = str(MOST_FETCHED_BYTES)
        return self._ask("fetch", lambda out: out, self.shared, name, most, timeout=_FETCH_SECONDS)

    def remove(self, names: Iterable[str]) -> None:
        """Remove job directories whose results are here."""
        self._run("remove", self.shared, self.owner, *names)

    def _run(self, text: str, *args: str, stdin: bytes = b"", timeout: float = _QUERY_SECONDS) -> Answer:
        parts = ((_TEXTS / f"{name}.sh").read_text("utf-8") for name in ("begin", text))
        return self._connection.run("".join(parts), *args, stdin=stdin, timeout=timeout)

    def _ask(
        self,
        text: str,
        parse: Callable[[bytes], Value],
        *args: str,
        stdin: bytes = b"",
        timeout: float = _QUERY_SECONDS,
    ) -> Value:
        """Run a text that can be repeated, again after a lost link; raises GpuciError with what it said."""
        until = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                answer = self._run(text, *args, stdin=stdin, timeout=timeout)
                break
            except LinkLost as error:
                if time.monotonic() > until or not error.retry:
                    raise
                self._pause(_PAUSE_SECONDS)
        if answer.code != 0:
            raise _refused(text, answer)
        try:
            return parse(answer.out)
        except answers.Garbled as error:
            raise GpuciError(
                f"the login node's answer to `{text}` can't be read: {str(error)[:200]!r}",
                then="run again; if it stays so, report it with this line",
            ) from error


def _refused(text: str, answer: Answer) -> GpuciError:
    said = answer.err.strip().splitlines()
    if text == "prepare" and answer.code == 3 and said and _NOT_OURS.search(said[-1]):
        return _not_writable(said[-1], *answer.out.decode("utf-8", "replace").splitlines()[-2:])
    return GpuciError(
        f"`{text}` failed on the login node: {said[-1] if said else f'exit code {answer.code}'}",
        why="the shared folder is full, read-only or missing" if answer.code == 3 else "",
        then="check slurm.shared-dir there" if answer.code == 3 else "",
    )


def _not_writable(said: str, path: str = "", user: str = "") -> ConfigError:
    return ConfigError(
        f"slurm.shared-dir: {clean(path)} is not writable for user {clean(user)}",
        why=f"the login node said: {clean(said)}",
        then="name a directory that this user may make or write, on a file system that the nodes have too",
    )


def _tar(jobs: Mapping[str, Mapping[str, str]]) -> bytes:
    """Job directories with their files, 0700 and 0600."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, files in jobs.items():
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o700
            archive.addfile(folder)
            for file, text in files.items():
                data = text.encode()
                entry = tarfile.TarInfo(f"{name}/{file}")
                entry.size, entry.mode = len(data), 0o600
                archive.addfile(entry, io.BytesIO(data))
    return stream.getvalue()
