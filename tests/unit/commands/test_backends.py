"""What comes between a plan and the cluster: what is said of the tree, what is found at home."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpuci.cli import main
from gpuci.commands import backends
from gpuci.errors import GpuciError
from gpuci.model import ShardRun

CONFIG = """
packages: [.]
slurm: {login: login1, known-hosts: known_hosts, identity-file: key}
container: {runtime: none}
"""
TREE = {
    ".github/gpuci.yml": CONFIG,
    "test_x.py": "import pytest\n\n@pytest.mark.gpu\ndef test_a(): pass\n",
    "known_hosts": "login1 ssh-ed25519 AAAA\n",
}


class Cluster:
    """In place of SlurmRun: a cluster that passes everything, or fails as it is told."""

    error: GpuciError | None = None

    def __init__(self, *args: Any) -> None:
        self.shards = args[0].shards

    def run(self, _archive: object) -> list[ShardRun]:
        if self.error:
            raise self.error
        return [ShardRun(shard.index, (), {"verdict": "passed", "reason": ""}) for shard in self.shards]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A committed tree with a configuration for a cluster that needs no network."""
    root = tmp_path / "tree"
    for path, text in TREE.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *words], check=True)
    monkeypatch.setattr(backends, "SlurmRun", Cluster)
    return root


def run(root: Path, *more: str) -> int:
    return main(["run", str(root), "--backend", "slurm", *more])


def test_changes_that_are_not_committed_stand_in_the_report(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tree, "--out", str(tmp_path / "clean"))
    assert json.loads((tmp_path / "clean" / "report.json").read_text())["warnings"] == []
    (tree / "new.py").touch()
    run(tree, "--out", str(tmp_path / "dirty"))
    note = "delivered as here, not as committed: 1 new file (new.py)"
    assert note in json.loads((tmp_path / "dirty" / "report.json").read_text())["warnings"]
    assert "delivered as here, not as committed" in (tmp_path / "dirty" / "summary.md").read_text()
    assert "Warnings (1)" in capsys.readouterr().out


def test_a_run_that_never_began_leaves_no_directory(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cluster, "error", GpuciError("no login node answers"))
    assert run(tree) == 4
    assert list((tree / ".gpuci" / "runs").iterdir()) == []


BAD = {
    "an image is missing": ("container: {runtime: none}", "container: {runtime: podman}", "names no image"),
    "a container's option": (
        "container: {runtime: none}",
        "container: {runtime: podman, image: /i.tar, extra-options: [--rm]}",
        "container.extra-options '--rm' can't be given",
    ),
    "an option of sbatch": ("login: login1", "login: login1, extra-options: [--array=1-3]", "--array"),
    "no such file of host keys": ("known_hosts", "nowhere", "nowhere' can't be read: No such file"),
    "a login node": ("login: login1", "login: 'login1:99999'", "'login1:99999' is not a host"),
}


@pytest.mark.parametrize("command", ["run", "verify"])
@pytest.mark.parametrize(("before", "after", "says"), BAD.values(), ids=BAD)
def test_what_needs_no_connection_is_found_without_one(
    tree: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
    before: str,
    after: str,
    says: str,
) -> None:
    (tree / ".github" / "gpuci.yml").write_text(CONFIG.replace(before, after))
    code = run(tree) if command == "run" else main(["verify", str(tree)])
    captured = capsys.readouterr()
    told = " ".join((captured.err if command == "run" else captured.out).split())
    assert (code, says in told) == (2, True), told
    assert not (tree / ".gpuci").exists()


@pytest.mark.parametrize("known_hosts", ["known-hosts: known_hosts, ", ""], ids=["a file", "a variable"])
def test_to_verify_no_secret_has_to_be_here(
    tree: Path, monkeypatch: pytest.MonkeyPatch, known_hosts: str
) -> None:
    for name in ("GPUCI_SSH_KNOWN_HOSTS", "GPUCI_SSH_PRIVATE_KEY", "SSH_AUTH_SOCK"):
        monkeypatch.delenv(name, raising=False)
    config = CONFIG.replace("known-hosts: known_hosts, identity-file: key", known_hosts + "user: ci")
    (tree / ".github" / "gpuci.yml").write_text(config)
    assert main(["verify", str(tree)]) == 0
