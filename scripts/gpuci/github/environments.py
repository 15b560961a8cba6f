"""Whether an environment keeps the key from workflows that nobody reviewed.

Source: docs.github.com, "Managing environments for deployment" and "Deployments and environments". A job
that names a missing environment creates it without protection. With "protected branches only" and no branch
protection rule, all branches may deploy, whatever rulesets there are. A branch's workflow is its own, so who
can push a branch that may deploy can print the key; under `pull_request` that branch is `refs/pull/N/merge`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from gpuci.github.client import Client
from gpuci.reporting.text import clip, one_line

# Names that nobody means: a pattern that admits one admits about any.
_NOBODYS = ("", "q7-nobody-means", "q7/nobody-means")
_PULLS = ("refs/pull/7/merge", "pull/7/merge")


def problem(client: Client, name: str) -> str:
    """What is wrong with the protection of an environment; empty if nothing is. Raises ApiError."""
    document = client.environment(name)
    policy = _policy(document)
    patterns = client.branch_policies(name) if policy.get("custom_branch_policies") is True else []
    by_protection = policy.get("protected_branches") is True
    return judge(
        name,
        document,
        patterns=patterns,
        any_rule=by_protection and client.has_protection_rule(),
    )


def judge(name: str, document: Mapping[str, Any] | None, *, patterns: Sequence[str], any_rule: bool) -> str:
    """The same of the environment's document (None: there is none), its own branch patterns, and whether the
    repository has any branch protection rule. Pure."""
    told = clip(one_line(name), 100)
    if document is None:
        return f"the environment {told} is missing: the first job that names it creates it without protection"
    policy = _policy(document)
    if _has_reviewers(document):
        return ""
    if policy.get("custom_branch_policies") is True:
        return _of_patterns(told, patterns)
    if policy.get("protected_branches") is True:
        unprotected = (
            f"the environment {told} admits protected branches, and no branch is by a protection rule"
        )
        return "" if any_rule else f"{unprotected} (a ruleset is none): that admits all"
    return f"the environment {told} is not protected: any branch's workflow can use its key"


def _of_patterns(name: str, patterns: Sequence[str]) -> str:
    if not patterns:
        return f"the environment {name} admits no branch: its list of branches is empty"
    wide = next((one for one in patterns if _admits(one, (*_NOBODYS, *_PULLS))), None)
    if wide is None:
        return ""
    who = "any branch" if _admits(wide, _NOBODYS) else "each pull request, with its own workflow"
    return f"the environment {name} is not protected: its pattern {clip(one_line(wide), 60)} admits {who}"


def _admits(pattern: str, names: Sequence[str]) -> bool:
    """GitHub's patterns are Ruby's File.fnmatch; a `*` stops at `/` there, and here it does not."""
    return any(fnmatchcase(name, pattern.replace("[^", "[!")) for name in names)


def _policy(document: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """`deployment_branch_policy`: null when all branches may deploy."""
    found = document.get("deployment_branch_policy") if document else None
    return found if isinstance(found, Mapping) else {}


def _has_reviewers(document: Mapping[str, Any]) -> bool:
    """Whether a person has to let each job in. A wait timer keeps nobody out."""
    rules = document.get("protection_rules")
    found = [rule for rule in rules if isinstance(rule, Mapping)] if isinstance(rules, list) else []
    return any(rule.get("type") == "required_reviewers" and rule.get("reviewers") for rule in found)
