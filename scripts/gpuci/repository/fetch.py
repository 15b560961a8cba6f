"""A bare repository of our own, and commits that are fetched into it. I/O, standard library only.

Code under test is data: it is read from here with plumbing commands, and never checked out.
"""

from __future__ import annotations

import base64
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gpuci.errors import ConfigError
from gpuci.repository import messages
from gpuci.repository.git import Git, GitFailed, bare_repository
from gpuci.repository.listing import FILES, Entry, entries, forbidden_path

_SHA = re.compile(r"[0-9a-f]{40}")
_REF = re.compile(r"refs/[^\x00-\x20\x7f~^:?*\[\\]+")
_OURS = "refs/gpuci/"  # names of what was fetched, so that git can tell the server what is here
# git reads these by itself; it gets no other variable of ours.
_NETWORK = (
    *("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"),
)
_PAUSES = (2.0, 8.0)
_TELL_NOTHING = ("-c", "fetch.negotiationAlgorithm=noop")
_FETCH = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--stdin")


def network_environment(url: str, token: str, environ: Mapping[str, str]) -> dict[str, str]:
    """What a git that talks to `url` needs. The token is in the environment only, and only for this URL.

    `http.<url>.*` counts for that host and path (git-config, "http.<url>.*"); GIT_CONFIG_* since git 2.31.
    A connection that brings nothing for two minutes ends.
    """
    settings = {
        "http.followRedirects": "false",
        "http.lowSpeedLimit": "1",
        "http.lowSpeedTime": "120",
        "credential.helper": "",
        "gc.auto": "0",
        "fetch.recurseSubmodules": "false",
    }
    if token:
        login = base64.b64encode(f"x-access-token:{token}".encode()).decode()
        settings[f"http.{url}.extraheader"] = f"Authorization: Basic {login}"
    told = {"GIT_CONFIG_COUNT": str(len(settings)), "GIT_ALLOW_PROTOCOL": "https:http:file"}
    for index, (name, value) in enumerate(settings.items()):
        told[f"GIT_CONFIG_KEY_{index}"], told[f"GIT_CONFIG_VALUE_{index}"] = name, value
    return {**{name: environ[name] for name in _NETWORK if name in environ}, **told}


class Repository:
    """A bare repository in a new directory; `directory` is what git calls the git directory.

    `say` is told of a second try, `sleep` waits before it (seconds).
    """

    def __init__(
        self,
        directory: Path,
        *,
        say: Callable[[str], None] = lambda text: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.directory = directory
        self.git: Git = bare_repository(directory, (), 40)
        self._brought: set[str] = set()
        self._say = say
        self._sleep = sleep

    def fetch(
        self, url: str, token: str, wanted: Sequence[str], *, depth: int = 1, filter_: str = ""
    ) -> tuple[str, ...]:
        """Fetch commits, named by full ids or by refs (`refs/heads/main`), with `depth` commits of history
        (0: all); returns the ids of the commits.

        `filter_` leaves objects out, as `git fetch --filter` (`blob:none`, `tree:0`), until `bring`; a server
        that knows no filters sends them. Raises CommitMissing if the server has one of them not, ConfigError
        for a token that may not, GpuciError when the network fails three times.
        """
        for name in wanted:
            if not (_SHA.fullmatch(name) or _REF.fullmatch(name)):
                raise ConfigError(f"{name!a} is neither a full commit id nor a ref")
        # Unlike `--depth`, `--unshallow` is refused by a repository that has all of its history.
        history = ("--depth", str(depth or 2**31 - 1))
        self._fetch(url, token, [f"+{name}:{_OURS}{name}" for name in wanted], (*history, *_filter(filter_)))
        return tuple(self.fetched(name) for name in wanted)

    def bring(self, url: str, token: str, object_ids: Sequence[str], *, filter_: str = "blob:none") -> None:
        """Fetch objects that a filter left out: trees (with the trees below them) or files; each once.

        As git's own `fetch_objects` does (promisor-remote.c): where it tells what is here already, it takes
        the commit for whole and fetches nothing.
        """
        due = sorted(set(object_ids) - self._brought)
        if due:
            self._fetch(url, token, due, _filter(filter_), _TELL_NOTHING)
            self._brought.update(due)

    def has(self, sha: str) -> bool:
        """Whether a commit is here."""
        try:
            return self.git.line("cat-file", "-t", sha) == "commit"
        except GitFailed:
            return False

    def entries(self, sha: str, root: str = ".") -> tuple[Entry, ...]:
        """All files, links and submodules of a commit at and below a directory, relative to it.

        Raises ConfigError if the commit has no such directory, and for a tree that no checkout can have: of a
        name that is there twice we might see the one, and the cluster the other.
        """
        path = "" if root in ("", ".") else root.strip("/")
        try:
            found = entries(self.git.listing(f"{sha}^{{commit}}:{path}"))
        except GitFailed as error:
            raise ConfigError(
                f"commit {sha} has no directory {root!a}", then="correct the input `root`"
            ) from error
        forbidden = forbidden_path(entry.path for entry in found)
        if forbidden is not None:
            raise ConfigError(
                f"commit {sha} holds the path {forbidden!a}, which no checkout can have",
                why="it was made by hand, to hide a file or to write outside of the tree",
            )
        return found

    def fetched(self, ref: str) -> str:
        """The id of the commit that a ref had when it was fetched."""
        return self.git.line("rev-parse", "--verify", f"{_OURS}{ref}^{{commit}}")

    def blob(self, sha: str, path: str) -> bytes | None:
        """The content of a file of a commit; None if nothing, or something else than a file, is there."""
        if {"", ".", ".."} & set(path.split("/")):
            return None
        found = entries(self.git.run("ls-tree", "-z", f"{sha}^{{commit}}", "--", f":(literal){path}"))
        if not found or found[0].path != path or found[0].mode not in FILES:
            return None
        return self.git.run("cat-file", "blob", found[0].object_id)

    def _fetch(
        self,
        url: str,
        token: str,
        refspecs: Sequence[str],
        options: Sequence[str],
        settings: Sequence[str] = (),
    ) -> None:
        environment = {**self.git.environment, **network_environment(url, token, os.environ)}
        git = replace(self.git, environment=environment, options=(*self.git.options, *settings))
        lines = "".join(f"{refspec}\n" for refspec in refspecs).encode("utf-8", "surrogateescape")
        named = ", ".join(refspec.partition(":")[0].lstrip("+") for refspec in refspecs[:3])
        said = ""
        for pause in (*_PAUSES, None):
            try:
                git.run(*_FETCH, *options, url, stdin=lines)
                return
            except GitFailed as error:
                said = error.said
                known = messages.explained(said, url, named)
                if known is not None:
                    raise known from error
            if pause is not None:
                self._say(f"{messages.last_line(said)}; fetching again in {pause:.0f} s")
                self._sleep(pause)
        raise messages.unreachable(said, url)


def _filter(filter_: str) -> tuple[str, ...]:
    return (f"--filter={filter_}",) if filter_ else ()
