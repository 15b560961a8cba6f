"""What a try of a shard is made of, from plan and configuration."""

import json
from pathlib import Path

import jsonschema
import pytest

from gpuci.config import load
from gpuci.discovery.discover import discover
from gpuci.execution.slurm.launch import Identity, Launch
from gpuci.execution.slurm.names import key_of
from gpuci.planning.plan import make_plan
from gpuci.schemas import load_schema

TREE = {
    "pyproject.toml": "[tool.pytest.ini_options]\n",
    "test_a.py": """
import pytest

@pytest.mark.timeout(7200)
def test_long(): pass

def test_short(): pass
""",
}
CONFIG = """
profiles: {h100: {gpus: 4, slurm: {partition: big}}}
node: {timeout: 60, workers-per-gpu: 2, python: here/python}
slurm: {login: login, known-hosts: k, partition: gpu, log-stall-seconds: 600}
container: {runtime: RUNTIME, image: "/images/train.tar", pythonpath: [src], setup: "true",
            python: /opt/python}
"""


def launch(tmp_path: Path, runtime: str = "podman") -> Launch:
    for name, text in TREE.items():
        (tmp_path / name).write_text(text)
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github" / "gpuci.yml").write_text(CONFIG.replace("RUNTIME", runtime))
    config = load.load_config(tmp_path)
    plan = make_plan(
        discover(tmp_path, config), config, durations={}, needs={}, shards=1, event="manual", sha=None
    )
    return Launch(plan, config, Identity("o/r", "12", 1, "abc", "me"), "/shared", "0" * 64)


def files(made: Launch) -> tuple[dict[str, str], str]:
    attempt = made.attempt(1, 1, made.plan.units, ["gpu003"])
    return made.files(attempt), attempt.token


@pytest.mark.parametrize(("runtime", "root"), [("podman", "/workspace"), ("none", None)])
def test_the_job_document_is_as_its_schema_says(tmp_path: Path, runtime: str, root: str | None) -> None:
    made, token = files(launch(tmp_path, runtime))
    job = json.loads(made["job.json"])
    jsonschema.validate(job, load_schema("job"))
    assert job["paths"]["root"] == root
    assert job["token"] == token == made["token"].strip()
    assert (job["node"]["expect_gpus"], job["node"]["workers_per_gpu"]) == (4, 2)
    assert job["lease"]["path"].startswith("/shared/jobs/gpuci-")


def test_the_script_asks_for_what_the_profile_says(tmp_path: Path) -> None:
    made, token = files(launch(tmp_path))
    header = [line for line in made["job.sh"].splitlines() if line.startswith("#SBATCH")]
    for option in ("--partition=big", "--gres=gpu:4", "--exclude=gpu003"):
        assert f"#SBATCH {option}" in header
    assert any(key_of(token) in line for line in header)
    assert token not in made["job.sh"]


@pytest.mark.parametrize("runtime", ["podman", "none"])
def test_what_runs_on_a_cluster_is_container_python_and_not_that_of_this_machine(
    tmp_path: Path, runtime: str
) -> None:
    made, _token = files(launch(tmp_path, runtime))
    assert "/opt/python" in made["job.sh"]
    assert "here/python" not in made["job.sh"]


def test_a_test_with_a_long_limit_has_the_time_and_may_be_silent(tmp_path: Path) -> None:
    made, _token = files(launch(tmp_path))
    assert json.loads(made["job.json"])["stall_seconds"] > 7200
    assert "#SBATCH --time=2:1" in made["job.sh"]  # 7,200 s, and 15 minutes and more on top


def test_the_registrys_credential_is_a_file_of_its_own(tmp_path: Path) -> None:
    made = launch(tmp_path)
    assert "pull-auth" not in made.files(made.attempt(1, 1, made.plan.units))
    object.__setattr__(made, "registry_credential", "{}")
    assert made.files(made.attempt(1, 1, made.plan.units))["pull-auth"] == "{}"
