"""`gpuci approve`: start the run of one commit of a pull request, which records who approved it.

The run itself checks everything again and makes the record: this command could only say that it did.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpuci.commands.output import say
from gpuci.errors import ConfigError
from gpuci.github import remotes
from gpuci.github.addresses import checked_url, join, login_host
from gpuci.github.client import Client
from gpuci.github.events import full_sha, pull_number, pull_request_of
from gpuci.github.messages import ApiError
from gpuci.github.model import PullRequest
from gpuci.repository.git import Git, GitFailed, user_environment

_REMOTES = ("upstream", "origin")
_TOKENS = ("GH_TOKEN", "GITHUB_TOKEN")
_HOST = "github.com"


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "approve", help="approve a commit of a pull request for the cluster, and start its run"
    )
    parser.add_argument("pull", metavar="PR", help="number of the pull request")
    parser.add_argument(
        "sha", nargs="?", metavar="SHA", help="full SHA of its head (default: shown, and asked for)"
    )
    parser.add_argument(
        "--workflow", default="gpu.yml", metavar="FILE", help="workflow with workflow_dispatch (gpu.yml)"
    )
    parser.add_argument(
        "--repository", metavar="O/R", help="owner/name (default: the git remote upstream, else origin)"
    )
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    """Show the commit, have it confirmed, start the workflow on the default branch."""
    number = pull_number(args.pull)
    wanted = full_sha(args.sha) if args.sha else ""
    client = _client(args.repository, os.environ)
    try:
        document = client.pull_request(number)
    except ApiError as error:
        raise error if error.status != 401 else _unauthorized(error) from error
    pull = pull_request_of(document)
    _show(client.repository, pull, document)
    _check(pull, wanted)
    if not wanted:
        _confirm(pull)
    _start(client, args.workflow, pull)
    return 0


def _client(repository: str | None, environ: Mapping[str, str]) -> Client:
    host, name = (_HOST, repository) if repository else _from_remote()
    api_url = environ.get("GITHUB_API_URL")
    if not api_url and host != _HOST:
        raise ConfigError(
            f"the remote's host is {host}, not {_HOST}",
            why="a token goes to no host that only a clone's settings name",
            then=f"set GITHUB_API_URL=https://{host}/api/v3 if that is your GitHub Enterprise Server",
        )
    api_url = checked_url(api_url or f"https://api.{_HOST}")
    return Client(api_url, _token(environ, login_host(api_url)), name, action="approve", say=say)


def _from_remote() -> tuple[str, str]:
    """Host and repository of the first remote that is one on a host."""
    git = Git(Path.cwd(), user_environment(os.environ))
    for remote in _REMOTES:
        try:
            host, name = remotes.parse(git.line("remote", "get-url", remote))
        except GitFailed:
            continue
        if name:
            return host, name
    raise ConfigError(
        f"no git remote {' or '.join(_REMOTES)} here is a repository on GitHub",
        then="go into a clone, or give --repository OWNER/NAME",
    )


def _token(environ: Mapping[str, str], host: str) -> str:
    for name in _TOKENS:
        if environ.get(name):
            return environ[name].strip()
    command = ["gh", "auth", "token", "--hostname", host]  # without it, the token of another host
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError:
        done = None
    if done is None or done.returncode != 0 or not done.stdout.strip():
        raise ConfigError(
            "there is no token for GitHub",
            why=f"none of {', '.join(_TOKENS)} is set, and `{' '.join(command)}` gives none",
            then="gh auth login; or a fine-grained token with `actions: write` and `pull-requests: read`",
        )
    return done.stdout.strip()


def _unauthorized(error: ApiError) -> ConfigError:
    return ConfigError(
        error.what,
        why="it is mistyped, expired or revoked",
        then="set GH_TOKEN to another; or unset it, and GITHUB_TOKEN, and run `gh auth login`",
    )


def _show(repository: str, pull: PullRequest, document: Mapping[str, Any]) -> None:
    """What is to be approved. `say` makes the texts of others harmless, a line each."""
    origin = pull.head_repository or "a deleted fork"
    fork = "" if pull.head_repository == repository else ", a fork"
    say(f"{repository}#{pull.number}: {document.get('title', '')}")
    say(f"by @{pull.author}, from {origin}{fork}{', draft' if pull.draft else ''}")
    say(f"head: {pull.head_sha}")
    page = str(document.get("html_url", ""))
    if page.startswith("https://"):
        # Up to this commit: the pull request's own page shows whatever is pushed while somebody reads it, and
        # the commit that is confirmed here can be the head again by then.
        say(f"look at it: {page}/files/{pull.head_sha}")


def _check(pull: PullRequest, wanted: str) -> None:
    """What the run would refuse, told before it starts."""
    if not pull.open:
        raise ConfigError(f"pull request {pull.number} is not open", then="reopen it first")
    if wanted and wanted != pull.head_sha:
        raise ConfigError(
            f"{wanted} is not the head of pull request {pull.number}",
            why="newer commits were pushed, or it is another commit",
            then=f"look at the head, {pull.head_sha}, and approve that one",
        )


def _confirm(pull: PullRequest) -> None:
    if not sys.stdin.isatty():
        raise ConfigError(
            "nobody is here to confirm the commit",
            why="standard input is no terminal",
            then=f"look at the commit, and give its SHA: gpuci approve {pull.number} {pull.head_sha}",
        )
    say("Its code will run on your cluster, as you would run it. Approve this commit? [y/N]")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ConfigError("not approved", then="nothing was started")


def _start(client: Client, workflow: str, pull: PullRequest) -> None:
    branch = str(client.repository_document().get("default_branch", ""))
    inputs = {"pull-request": str(pull.number), "sha": pull.head_sha}
    try:
        client.dispatch(workflow, branch, inputs)
    except ApiError as error:
        if error.status not in (404, 422):
            raise
        raise ConfigError(
            f"{workflow} can't be started on the branch {branch}: {error.what}",
            why="it has to be there, with `workflow_dispatch` and the inputs `pull-request` and `sha`; and a"
            " token without `actions: write` finds nothing",
            then="docs/github.md shows such a workflow; name another with --workflow FILE",
        ) from error
    say(f"started {workflow} for {pull.head_sha}; the run records the approval, and reports to the commit")
    if client.url == f"https://api.{_HOST}":
        say(f"https://{_HOST}/{client.repository}/{join('actions', 'workflows', workflow)}")
