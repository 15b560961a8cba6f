"""Behind `run_gpu_shard.py clean-up`: end what is left of shards, of which nothing but the names is known.

A step of its own, for a job's `if: always()`. As a step of the composite action that runs the shards it would
not do: those share the cancellation of the step that uses the action (actions/runner, ExecutionContext.cs,
CreateEmbeddedChild: "a linked cancellation token"), so they are signalled as soon as they start. When the
runner itself is shut down, no step is started any more, whatever its `if` (StepsRunner.cs): then the jobs end
by their lease.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from gpuci.commands.backends import login_of
from gpuci.commands.output import say
from gpuci.execution.slurm import names
from gpuci.execution.slurm.clean_up import clean_up
from gpuci.execution.transport.connection import Connection
from gpuci.github.step import Step
from gpuci.steps import shard_input
from gpuci.steps.shard_plan import plan_and_config, with_secrets
from gpuci_node.contract import EXIT_CODES

VARIABLES = {
    name: what for name, what in shard_input.VARIABLES.items() if name not in shard_input.NOT_FOR_CLEAN_UP
}
_TRIES = (1, 2)


def run(step: Step) -> int:
    """Cancel the jobs of these shards and wait until the queue has none; exit code 0 then, else 4."""
    environ = with_secrets(step)
    given = shard_input.read(environ, clean_up=True)
    plan, config = plan_and_config(given)
    all_names = [
        names.job_name(given.repository, given.run, given.attempt, shard.index, number)
        for shard in plan.shards
        for number in _TRIES
    ]
    with tempfile.TemporaryDirectory(prefix="gpuci-") as scratch:
        login = login_of(config, Path.cwd(), environ)
        with Connection(login, Path(scratch), say) as connection:
            done = clean_up(connection, config.slurm["shared-dir"], all_names, say)
    return EXIT_CODES["passed" if done else "infra"]
