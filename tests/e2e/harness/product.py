"""A copy of this repository as act can run it: `$/` written out, and each job with a token of its own."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

CLONE = Path(__file__).resolve().parents[3]
NAME = "org/gpuci"
# The commit that the workflows in examples/ name.
REF = "0123456789abcdef0123456789abcdef01234567"
# What the actions need of the repository, and nothing that other tests write meanwhile.
PARTS = ("actions", "schemas", "scripts", "action.yml", ".github/workflows/gpu.yml")
OWN_TOKEN = "${{ github.token }}"
# `$/actions/x` or `org/gpuci/actions/x@ref`, and `org/gpuci@ref` for the root action.
OURS = re.compile(rf"(?:\$|{NAME}(?=[/@]))(/actions/[\w-]+|)(?:@\w+)?")
OUTPUT = re.compile(r"(needs\.[\w-]+)\.outputs\.[\w-]+")
FROM_JSON = re.compile(r"fromJSON\((.*)\)")
SHARDS = 12
# Keys of a job that act 0.2.89 refuses.
UNKNOWN_TO_ACT = ("cache-mode",)

Document = dict[str, Any]


@dataclass(frozen=True)
class Product:
    """`workflow` is gpu.yml as it stands; `with_token` names the actions that have the input `token`."""

    directory: Path
    workflow: Document
    with_token: Collection[str]


def token_of(job: str) -> str:
    """The token that stands for GITHUB_TOKEN in a job: the fake knows its permissions."""
    return f"e2e-token-of-{job}"


def copy_product(directory: Path) -> Product:
    """Copy what runs to `directory`, and rewrite the workflow there."""
    for part in PARTS:
        source, target = CLONE / part, directory / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", ".venv*"))
        else:
            shutil.copyfile(source, target)
    workflow = load(directory / ".github/workflows/gpu.yml")
    files = {f"/actions/{path.parent.name}": path for path in directory.glob("actions/*/action.yml")}
    files[""] = directory / "action.yml"
    with_token = {name for name, path in files.items() if takes_token(path)}
    (directory / ".github/workflows/gpu.yml").write_text(dump(rewritten(workflow, with_token)))
    return Product(directory, workflow, with_token)


def load(path: Path) -> Document:
    """A workflow; YAML 1.1 reads its key `on` as true."""
    document: dict[Any, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {"on" if key is True else key: value for key, value in document.items()}


def dump(document: Document) -> str:
    """YAML text."""
    text: str = yaml.safe_dump(document, sort_keys=False, width=1000)
    return text


def permissions(workflow: Document) -> dict[str, dict[str, str]]:
    """Job with steps -> what its token may; a job without a key of its own has the workflow's."""
    jobs = [(name, job) for name, job in workflow["jobs"].items() if "steps" in job]
    return {name: dict(job.get("permissions", workflow.get("permissions", {}))) for name, job in jobs}


def takes_token(action: Path) -> bool:
    """Whether an action has the input `token`, whose default is the job's own."""
    return "token" in yaml.safe_load(action.read_text(encoding="utf-8"))["inputs"]


def rewritten(workflow: Document, with_token: Collection[str]) -> Document:
    """The same for act, which neither knows `$/` nor gives a job a token. `with_token` is as in Product."""
    jobs = {name: _job(name, job, with_token) for name, job in workflow["jobs"].items()}
    return {**workflow, "jobs": jobs}


def _job(name: str, job: Document, with_token: Collection[str]) -> Document:
    if "strategy" in job:
        job = {**job, "strategy": _strategy(job["strategy"])}
    known: Document = _replaced(
        {key: value for key, value in job.items() if key not in UNKNOWN_TO_ACT}, token_of(name)
    )
    if "steps" not in known:
        return known
    return {**known, "steps": [_step(step, token_of(name), with_token) for step in known["steps"]]}


def _strategy(strategy: Document) -> Document:
    """act reads `max-parallel` as a number only (else it takes 4), and also the matrix of a skipped job."""
    matrix = {
        name: FROM_JSON.sub(r"fromJSON(\1 || '[0]')", value) for name, value in strategy["matrix"].items()
    }
    return {**strategy, "max-parallel": SHARDS, "matrix": matrix}


def _step(step: Document, token: str, with_token: Collection[str]) -> Document:
    match = OURS.fullmatch(step.get("uses", ""))
    if match is None:
        return step
    given = {"token": token} if match[1] in with_token else {}
    return {**step, "uses": f"{NAME}{match[1]}@{REF}", "with": {**given, **step.get("with", {})}}


def _replaced(value: Any, token: str) -> Any:
    """The value with a job's own token, and with no outputs of jobs that were skipped: act leaves those as
    the expressions that they are declared with, where GitHub has empty texts."""
    if isinstance(value, dict):
        return {key: _replaced(one, token) for key, one in value.items()}
    if isinstance(value, list):
        return [_replaced(one, token) for one in value]
    if not isinstance(value, str):
        return value
    return OUTPUT.sub(r"(\1.result != 'skipped' && \g<0> || '')", value.replace(OWN_TOKEN, token))
