"""Whether jobs can be made of a configuration at all, before anything is planned or connected. Pure."""

from __future__ import annotations

from gpuci.config.model import Config
from gpuci.execution.containers.render import render
from gpuci.execution.slurm.options import ShardFacts, sbatch_options
from gpuci.execution.slurm.script import BatchJob, batch_script

_JOB_DIR = "/shared/jobs/job"
_SHARD = ShardFacts("job", "", _JOB_DIR, expected_seconds=0.0, longest_timeout=0.0)


def check(config: Config) -> None:
    """Make a script for each profile as for a job; raises ConfigError for what no job can have."""
    for profile in config.profiles:
        options = sbatch_options(config.slurm, profile, _SHARD)
        functions = render(config.container, gpus=profile.gpus, job_dir=_JOB_DIR)
        scratch = {"GPUCI_SCRATCH_BASE": config.slurm["scratch-dir"] or ""}
        batch_script(BatchJob(options, scratch, functions, body=""))
