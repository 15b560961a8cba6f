"""The inputs of gpu-tests-passed -> values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpuci.errors import ConfigError
from gpuci.github.gate import POLICIES
from gpuci.github.needs import Needs, read_needs
from gpuci.github.step import Step
from gpuci.github.use import Use, use_of

VARIABLES: Mapping[str, str] = {
    "GPUCI_NAME": "the name of this use, where a repository has several",
    "GPUCI_NEEDS": "results and outputs of the jobs before, toJSON(needs)",
    "GPUCI_SINGLE_JOB": "these jobs are steps of this job: GPUCI_NEEDS is toJSON(steps)",
    "GPUCI_PLAN": "path of plan.json",
    "GPUCI_RESULTS": "directory with a folder of results for each shard",
    "GPUCI_ROOT": "the repository's directory that holds .github/gpuci.yml",
    "GPUCI_PULL_REQUEST": "for workflow_dispatch, the number of the pull request",
    "GPUCI_SHA": "for workflow_dispatch, the full SHA of its head",
    "GPUCI_PACKAGES": "what a person chose to test; then the commit status stays pending",
    "GPUCI_TEST_EXPRESSION": "which tests a person chose; then the commit status stays pending",
    "GPUCI_COMMENT": "keep one comment with the result on the pull request",
    "GPUCI_COMMENT_AUTHOR": "login that the token writes comments by",
    **{f"GPUCI_POLICY_{name.upper()}": "whether this verdict is good for the check" for name in POLICIES},
    "GPUCI_TOKEN": "token for GitHub's API",
}
_WORDS = {"fail": False, "pass": True}


@dataclass(frozen=True)
class GateInput:
    """What a run of the gate is told. `attempt` is GitHub's; `partial`: a person chose some of the tests.

    `mistakes` are told when the result is: tests that ran should not be lost for a misspelt policy.
    """

    use: Use
    needs: Needs
    attempt: int
    single_job: bool
    plan: str
    results: str
    root: str
    pull_request: str
    sha: str
    partial: bool
    comment: bool
    comment_author: str
    policies: Mapping[str, bool]
    mistakes: tuple[ConfigError, ...] = ()


def read(step: Step) -> GateInput:
    """Raises ConfigError."""
    single_job = step.flag("SINGLE_JOB")
    policies = {name: step.value(f"POLICY_{name.upper()}", "fail") for name in POLICIES}
    return GateInput(
        use=use_of(step.value("NAME")),
        needs=read_needs(step.value("NEEDS"), steps=single_job),
        attempt=_attempt(step.environ.get("GITHUB_RUN_ATTEMPT", "")),
        single_job=single_job,
        plan=step.value("PLAN"),
        results=step.value("RESULTS"),
        root=step.value("ROOT", "."),
        pull_request=step.value("PULL_REQUEST"),
        sha=step.value("SHA"),
        partial=bool(step.value("PACKAGES") or step.value("TEST_EXPRESSION")),
        comment=step.flag("COMMENT", True),
        comment_author=step.value("COMMENT_AUTHOR", "github-actions[bot]"),
        policies={name: _WORDS.get(word, False) for name, word in policies.items()},
        mistakes=_mistakes(policies),
    )


def _attempt(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 10):
        raise ConfigError(f"GITHUB_RUN_ATTEMPT is {text!r}", why="GitHub sets it to 1, 2, ...")
    return int(text)


def _mistakes(policies: Mapping[str, str]) -> tuple[ConfigError, ...]:
    """The policies that are no such word."""
    return tuple(
        ConfigError(
            f"policy-{name.replace('_', '-')} is {word!r}", then="give fail or pass; it was taken for fail"
        )
        for name, word in policies.items()
        if word not in _WORDS
    )
