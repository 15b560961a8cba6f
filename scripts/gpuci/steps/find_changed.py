"""Behind scripts/find_changed.py: what a run is about, whose configuration counts, and what changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from gpuci.changes import document
from gpuci.changes.model import Changes
from gpuci.changes.read import telling
from gpuci.changes.select import rules_of
from gpuci.config.model import Config
from gpuci.config.paths import path_fault, tidy_path
from gpuci.errors import ConfigError
from gpuci.execution.directories import write_document
from gpuci.github.client import client_of
from gpuci.github.events import subject_of, with_pull_request
from gpuci.github.model import Subject
from gpuci.github.step import Step
from gpuci.github.use import use_of
from gpuci.reporting import changes_markdown, changes_text
from gpuci.reporting.text import inline_code, one_line
from gpuci.steps import configuration, proposed
from gpuci.steps.changed_base import configuration_ref
from gpuci.steps.changed_tree import Remote, changes_of, remote_of
from gpuci.steps.plan_file import digest_of

VARIABLES: Mapping[str, str] = {
    "GPUCI_NAME": "the name of this use, where a repository has several",
    "GPUCI_CONFIG": "configuration files below root, one a line; later ones lie over earlier ones",
    "GPUCI_ROOT": "the directory of the repository that holds .github/gpuci.yml",
    "GPUCI_PULL_REQUEST": "for workflow_dispatch, the number of the pull request to test",
    "GPUCI_SHA": "for workflow_dispatch, the full SHA of that pull request's head",
    "GPUCI_SSH_KNOWN_HOSTS": "text of known_hosts, if run-gpu-shard gets one; only its presence counts",
    "GPUCI_TOKEN": "token for fetching commits and asking for the pull request",
}


def run(step: Step) -> int:
    """Answer what the jobs behind this one are about; raises GpuciError."""
    step.output("prefix", use_of(step.value("NAME")).prefix)
    names = configuration.file_names(step.value("CONFIG"))
    subject = _subject(step)
    remote = remote_of(step, subject.repository, _root(step))
    step.say(f"the commit is {subject.sha} ({subject.key})")
    trusted, where = _fetched(step, subject, remote)
    files, head = remote.files(trusted), remote.files(subject.sha)
    # All at once: each fetch is a way to the server and back.
    remote.source.bring([*telling(head), *(files[name][1] for name in names if name in files)])
    commit = configuration.Place(where, remote.root)
    read = configuration.read(remote.source, files, names, step.scratch() / "configuration", commit)
    _warn(step, read.config, where)
    changes = changes_of(remote, subject, head, rules_of(read.config, read.files))
    if trusted != subject.sha and proposed.brought(changes, read, files, head):
        changes = replace(changes, proposed=names)
    step.say(changes_text.render(changes))
    step.summary(changes_markdown.render(changes))
    _answer(step, subject, read.config, changes)
    return 0


def _root(step: Step) -> str:
    root = step.value("ROOT", ".")
    fault = path_fault(root)
    if fault:
        raise ConfigError(
            f"root: {root!a} {fault}", then="name a directory of the repository, or `.` for its top"
        )
    return tidy_path(root)


def _subject(step: Step) -> Subject:
    pull, sha = step.value("PULL_REQUEST"), step.value("SHA")
    name = step.environ.get("GITHUB_EVENT_NAME", "")
    subject = subject_of(name, step.event(), step.environ, sha=sha, pull_request=pull)
    if subject.pull_request is None or subject.pull_request.head_sha:
        return subject
    return with_pull_request(subject, client_of(step).pull_request(subject.pull_request.number))


def _fetched(step: Step, subject: Subject, remote: Remote) -> tuple[str, str]:
    """Fetch the commits that have to be there; returns the one whose configuration counts, and its name."""
    ref = configuration_ref(subject)
    if ref:
        trusted, _ = remote.fetch(ref, subject.sha)
        where = f"{ref.removeprefix('refs/heads/')} ({trusted[:12]})"
    else:
        (trusted,) = remote.fetch(subject.sha)
        where = f"commit {trusted[:12]}"
    step.say(f"the configuration is that of {where}")
    return trusted, where


def _warn(step: Step, config: Config, where: str) -> None:
    """Of host keys that no shard will have, as far as it can be told here: a runner may have the file."""
    missing = configuration.missing_host_keys(config)
    if missing and not step.value("SSH_KNOWN_HOSTS"):
        what = f"no host key of the login node is known: {missing} (as of {where})"
        then = (
            "name a file of the default branch in slurm.known-hosts, or pass its lines as the input"
            " ssh-known-hosts; without one each shard fails"
        )
        step.warning(f"{what}\n{then}", title="gpuci find-changed")
        step.summary(f"> [!WARNING]\n> {inline_code(one_line(what))}: {then}.\n\n")


def _answer(step: Step, subject: Subject, config: Config, changes: Changes) -> None:
    path = step.scratch() / "changes.json"
    write_document(path, document.to_document(changes))
    pull = subject.pull_request
    step.output("sha", subject.sha)
    step.output("base", changes.base)
    step.output("pull-request", str(pull.number) if pull else "")
    step.output("subject", subject.key)
    step.output("trusted", _truth(subject.trusted))
    step.output("configuration", configuration.portable(config))
    step.output("everything", _truth(changes.everything))
    step.output("packages", json.dumps(list(changes.packages)))
    step.output("affected", _truth(changes.affected))
    step.output("changes", str(path))
    step.output("changes-digest", digest_of(path.read_bytes()))


def _truth(value: bool) -> str:
    return "true" if value else "false"
