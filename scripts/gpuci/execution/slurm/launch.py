"""What a try of a shard is made of: its name, its job document, its script."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuci.config.model import Config, Profile
from gpuci.execution import jobs
from gpuci.execution.containers.render import render
from gpuci.execution.log import LogReader
from gpuci.execution.slurm import names, options
from gpuci.execution.slurm.attempt import Attempt
from gpuci.execution.slurm.script import BatchJob, batch_script
from gpuci.model import Plan, Unit

_BODY = Path(__file__).with_name("batch.sh")


@dataclass(frozen=True)
class Identity:
    """Whose run this is, in names and comments of its jobs. `approver` may be empty."""

    repository: str
    run: str
    attempt: int
    sha: str
    approver: str = ""


@dataclass(frozen=True)
class Launch:
    """What is the same for all jobs of a run; `tree` is the sha256 of the archive that was delivered."""

    plan: Plan
    config: Config
    identity: Identity
    shared: str
    tree: str
    registry_credential: str = ""

    def attempt(
        self, index: int, number: int, units: Sequence[Unit], exclude: Sequence[str] = (), token: str = ""
    ) -> Attempt:
        """A try of a shard; with a `token` the one that another runner began.

        Raises ConfigError for options that can't be.
        """
        who = self.identity
        token = token or secrets.token_hex(16)
        attempt = Attempt(
            index=index,
            number=number,
            name=names.job_name(who.repository, who.run, who.attempt, index, number),
            token=token,
            key=names.key_of(token),
            units=tuple(units),
            exclude=tuple(exclude),
            log=LogReader(token),
        )
        attempt.asked = self._options(attempt)
        return attempt

    def adopted(self, attempt: Attempt, token: str) -> Attempt:
        """The same try, followed on from another runner."""
        return self.attempt(attempt.index, attempt.number, attempt.units, attempt.exclude, token)

    def files(self, attempt: Attempt) -> dict[str, str]:
        """The files of its job directory; raises ConfigError for what can't be in a script."""
        files = {
            "token": attempt.token + "\n",
            "job.json": json.dumps(self._document(attempt)),
            "job.sh": self._script(attempt),
        }
        return {**files, "pull-auth": self.registry_credential} if self.registry_credential else files

    def _directory(self, attempt: Attempt) -> str:
        return f"{self.shared}/jobs/{attempt.name}"

    def _profile(self, attempt: Attempt) -> Profile:
        return self.config.profile(self.plan.shard(attempt.index).profile)

    def _document(self, attempt: Attempt) -> dict[str, Any]:
        directory, container = self._directory(attempt), self.config.container
        inside = None if container["runtime"] == "none" else container["workdir"]
        return jobs.job_document(
            self.plan,
            self.config,
            attempt.index,
            run=f"{self.identity.run}.{self.identity.attempt}",
            token=attempt.token,
            node=jobs.NodeFacts(
                None, None, self.config.node.workers_per_gpu, expect_gpus=self._profile(attempt).gpus
            ),
            paths=jobs.Paths(inside, f"{directory}/out", None),
            python=["sh", f"{directory}/job.sh", "enter"],
            try_number=attempt.number,
            units=attempt.units,
            care=jobs.Care(
                lease=f"{directory}/lease",
                lease_seconds=self.config.slurm["lease-seconds"],
                # A test that may be silent for longer is not to be ended for that.
                stall_seconds=max(self.config.slurm["log-stall-seconds"], _longest_test(attempt) + 60.0),
                setup=container["setup"],
            ),
        )

    def _options(self, attempt: Attempt) -> tuple[str, ...]:
        profile, who = self._profile(attempt), self.identity
        facts = options.ShardFacts(
            name=attempt.name,
            comment=names.comment(who.repository, who.run, who.sha, who.approver, attempt.key),
            job_dir=self._directory(attempt),
            expected_seconds=sum(unit.expected_seconds for unit in attempt.units) / max(1, profile.gpus),
            longest_timeout=_longest_test(attempt),
            excluded=attempt.exclude,
        )
        return options.sbatch_options(self.config.slurm, profile, facts)

    def _script(self, attempt: Attempt) -> str:
        directory, profile, slurm = self._directory(attempt), self._profile(attempt), self.config.slurm
        return batch_script(
            BatchJob(
                options=attempt.asked,
                variables={
                    "GPUCI_JOB_DIR": directory,
                    "GPUCI_NAME": attempt.name,
                    "GPUCI_TREE_SHA256": self.tree,
                    "GPUCI_SCRATCH_BASE": slurm["scratch-dir"] or "",
                    "GPUCI_LEASE_SECONDS": f"{slurm['lease-seconds']:.0f}",
                    "GPUCI_RUNTIME": self.config.container["runtime"],
                    "GPUCI_NODE_PYTHON": "python3",
                },
                functions=render(self.config.container, gpus=profile.gpus, job_dir=directory),
                body=_BODY.read_text("utf-8"),
            )
        )


def _longest_test(attempt: Attempt) -> float:
    return max(unit.longest_test_seconds for unit in attempt.units)
