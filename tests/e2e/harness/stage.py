"""One scenario's world: a product, a caller's repository, a GitHub, and a cluster if there is one."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cluster.bed.handle import Bed
from tests.e2e.harness import act, caller, requests
from tests.e2e.harness.events import COLLABORATORS, LABEL, Event, pull_request
from tests.e2e.harness.product import (
    CLONE,
    Product,
    copy_product,
    dump,
    load,
    permissions,
    rewritten,
    token_of,
)
from tests.e2e.harness.standing import directories
from tests.fakes.github.server import Server
from tests.fakes.github.state import Pull, Repository, State, Token

NAME = "octo/tests"
PROTECTED = {
    "protection_rules": [{"id": 1, "type": "branch_policy"}],
    "deployment_branch_policy": {"protected_branches": False, "custom_branch_policies": True},
    "branch_policies": ["main"],
}
PUSHED, LABELED = "2026-11-20T10:00:05Z", "2026-11-20T12:00:00Z"
KNOWN_HOSTS = ".github/known_hosts"  # as the documents have it; the runner has no checkout
SECONDS = 900  # a run that takes longer is ended, and the scenario is red
Statuses = dict[str, tuple[str, str]]


@dataclass
class Stage:
    """What a scenario acts on. `jobs`: whose token has which permissions.

    `variables` and `secrets` come beside those that every run has.
    """

    directory: Path
    bed: Bed
    product: Product
    caller: caller.Caller
    server: Server
    jobs: Mapping[str, Mapping[str, str]]
    run_ids: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)

    @property
    def repository(self) -> Repository:
        """As GitHub has it."""
        return self.server.state.repositories[0]

    @property
    def run_id(self) -> str:
        """Of the newest run."""
        return self.run_ids[-1]

    # --- what people do

    def move_main(self, changes: Mapping[str, str]) -> None:
        """The default branch gets a commit, and whatever comes begins there."""
        self.caller.main = self.caller.commit(changes, on=self.caller.main, branch="main")
        self.repository.branches["main"] = self.caller.main
        self.names[self.caller.main] = "MAIN"

    def open_pull(self, changes: Mapping[str, str], *, fork: bool = False, author: str = "sam") -> Pull:
        """Pull request 12, pushed two hours before anything else happens."""
        sha = self.caller.commit(changes, on=self.caller.main, branch="refs/pull/12/head")
        where = "stranger/tests" if fork else ""
        pull = Pull(
            12, sha, self.caller.main, where, author=author, updated_at=LABELED, head_pushed_at=PUSHED
        )
        self.repository.pulls[12] = pull
        self.pushed(sha, "HEAD")
        return pull

    def push_to_pull(self, pull: Pull, changes: Mapping[str, str]) -> None:
        """A new head."""
        pull.head_sha = self.caller.commit(changes, on=pull.head_sha, branch="refs/pull/12/head")
        self.pushed(pull.head_sha, "NEW-HEAD")

    def label(self, pull: Pull, by: str) -> Event:
        """Somebody sets the label."""
        pull.labels.append(LABEL)
        return pull_request(self.repository, pull, "labeled", by)

    def pushed(self, sha: str, name: str) -> None:
        """GitHub has a commit since a while; `name` stands for it in the lines of requests."""
        self.repository.check_suites[sha] = [PUSHED]
        self.names[sha] = name

    # --- what GitHub does

    def run(
        self,
        event: Event,
        *,
        attempt: int = 1,
        during: Callable[[], None] | None = None,
        product: Path | None = None,
    ) -> act.Ran:
        """Run the caller's workflow for an event; `during` acts while it runs.

        A re-run has attempt 2 or more, and can take another copy of the product.
        """
        if attempt == 1:
            last = int(self.run_id) if self.run_ids else 10**9 + secrets.randbelow(10**9)
            self.run_ids.append(str(last + 1))  # a later run has a higher number
        payload = self.directory / f"event-{len(self.run_ids)}-{attempt}.json"
        payload.write_text(json.dumps(event.payload))
        order = act.Order(
            checkout=self.caller.checkout(event.sha, event.branch),
            event=event.name,
            payload=payload,
            actor=event.actor,
            variables=self._variables(event, attempt),
            secrets={} if event.foreign else self._secrets(),
        )
        if event.foreign:
            self._only_read()
        store = self.directory / "store"
        store.mkdir(exist_ok=True)
        act.give(store)
        process = act.start(order, product or self.product.directory, directories(), self.home)
        watchdog = threading.Timer(SECONDS, process.terminate)
        helper = threading.Thread(target=during) if during else None
        for thread in filter(None, (watchdog, helper)):
            thread.daemon = True
            thread.start()
        text, _ = process.communicate()
        watchdog.cancel()
        (self.directory / f"log-{len(self.run_ids)}-{attempt}.jsonl").write_text(text)
        if helper:
            helper.join()
        return act.Ran(process.returncode, act.read(text.splitlines()), text)

    @property
    def home(self) -> Path:
        """HOME of all steps, where act and our own environment live; all scenarios share it."""
        return home_of(self.product)

    def _variables(self, event: Event, attempt: int) -> dict[str, str]:
        return {
            "GITHUB_API_URL": self.server.url,
            "GITHUB_SERVER_URL": self.server.url,
            "GITHUB_RUN_ID": self.run_id,
            "GITHUB_RUN_ATTEMPT": str(attempt),
            "GITHUB_TRIGGERING_ACTOR": event.actor,
            "E2E_STORE": str(self.directory / "store"),
            "E2E_CACHES": str(self.home / "caches"),
            **self.variables,
        }

    def _secrets(self) -> dict[str, str]:
        key = (self.bed.place / "keys/ci").read_text()
        return {"SSH_PRIVATE_KEY": key, **self.secrets}

    def _only_read(self) -> None:
        for token in self.server.state.tokens.values():
            token.permissions = dict.fromkeys(token.permissions, "read")

    # --- what came of it

    def statuses(self, sha: str) -> Statuses:
        """Context -> (state, description) of its newest status."""
        newest = {one["context"]: one for one in self.repository.statuses.get(sha, [])}
        return {context: (one["state"], one["description"]) for context, one in newest.items()}

    def comments(self) -> list[str]:
        """Bodies on the pull request."""
        return [one["body"] for one in self.repository.comments.get(12, [])]

    def submitted(self) -> list[str]:
        """Names of all Slurm jobs of the newest run, those that ended too, with one entry a submission."""
        run = f"gpuci-octo.tests-{self.run_id}"
        names = self.bed.get("sacct", "-n", "-X", "-P", "-a", "-S", "now-2hours", "-o", "JobName")
        return sorted(name for name in names.splitlines() if name.startswith((f"{run}-", f"{run}.")))

    def stored(self, artifact: str) -> Path:
        """The files of an artifact."""
        return self.directory / "store/artifacts" / self.run_id / artifact

    def report(self, attempt: int = 1, prefix: str = "gpuci-") -> dict[str, Any]:
        """report.json that the gate left."""
        text = (self.stored(f"{prefix}report-attempt-{attempt}") / "report.json").read_text()
        document: dict[str, Any] = json.loads(text)
        return document

    def requests(self) -> list[str]:
        """The lines of all requests so far."""
        runs = dict.fromkeys(self.run_ids, "RUN")
        return requests.lines(self.server.requests, self.jobs, {**self.names, **runs})


def prepare(directory: Path) -> Product:
    """What all scenarios share, below `directory`: a copy of the product, and a HOME beside it."""
    product = copy_product(directory / "product")
    act.settle(home_of(product))
    return product


def home_of(product: Product) -> Path:
    """The HOME of what runs with a product."""
    return product.directory.parent / "home"


def build(directory: Path, bed: Bed, product: Product, workflow: str, overlay: Mapping[str, Any]) -> Stage:
    """A stage with the caller's workflow of that path; its GitHub is not started yet."""
    document = load(CLONE / workflow)
    text = dump(rewritten(document, product.with_token))
    host_keys = (bed.place / "sshd/known_hosts").read_text()
    files = {caller.WORKFLOW: text, KNOWN_HOSTS: host_keys}
    made = caller.make(directory / "caller", {**cluster(bed), **overlay}, files)
    jobs = permissions(document) or permissions(product.workflow)
    repository = Repository(
        NAME,
        git=str(made.bare),
        branches={"main": made.main},
        collaborators=dict(COLLABORATORS),
        environments={"gpu": dict(PROTECTED)},
        workflows={"gpu.yml": ["pull-request", "sha"]},
    )
    tokens = {token_of(job): Token(dict(permissions), [NAME]) for job, permissions in jobs.items()}
    stage = Stage(directory, bed, product, made, Server(State([repository], tokens)), jobs)
    stage.names[made.main] = "MAIN"
    return stage


def cluster(bed: Bed) -> dict[str, Any]:
    """The bed's own settings; the key comes as a secret, host keys from the repository. Many small shards."""
    settings: dict[str, Any] = json.loads((bed.place / "gpuci.yml").read_text())
    del settings["slurm"]["identity-file"]
    settings["slurm"]["known-hosts"] = KNOWN_HOSTS
    return {**settings, "shards": {"min-tests": 1}}
