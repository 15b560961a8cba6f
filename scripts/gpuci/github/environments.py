"""Whether an environment keeps the key from workflows that nobody reviewed.

Source: docs.github.com, "Managing environments for deployment" and "Deployments and environments". A job
that names a missing environment creates it without protection. With "protected branches only" and no
protected branch, all branches may deploy. A branch's workflow is its own, so who can push a branch that may
deploy can print the key; under `pull_request` that branch is `refs/pull/N/merge`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gpuci.github.client import Client
from gpuci.reporting.text import clip, one_line

_ANY = re.compile(r"[*?/!^\[\]]*")
_PULLS = re.compile(r"(refs/)?pull/.*")


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
        any_protected=by_protection and client.has_protected_branches(),
    )


def judge(
    name: str, document: Mapping[str, Any] | None, *, patterns: Sequence[str], any_protected: bool
) -> str:
    """The same of the environment's document (None: there is none), its own branch patterns, and whether the
    repository has any protected branch. Pure."""
    told = clip(one_line(name), 100)
    if document is None:
        return f"the environment {told} is missing: the first job that names it creates it without protection"
    policy = _policy(document)
    if _has_reviewers(document):
        return ""
    if policy.get("custom_branch_policies") is True:
        return _of_patterns(told, patterns)
    if policy.get("protected_branches") is True:
        unprotected = f"the environment {told} admits protected branches, and no branch is: that admits all"
        return "" if any_protected else unprotected
    return f"the environment {told} is not protected: any branch's workflow can use its key"


def _of_patterns(name: str, patterns: Sequence[str]) -> str:
    if not patterns:
        return f"the environment {name} admits no branch: its list of branches is empty"
    wide = next((one for one in patterns if _ANY.fullmatch(one) or _PULLS.fullmatch(one)), None)
    if wide is None:
        return ""
    who = "each pull request, with its own workflow" if _PULLS.fullmatch(wide) else "any branch"
    return f"the environment {name} is not protected: its pattern {clip(one_line(wide), 60)} admits {who}"


def _policy(document: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """`deployment_branch_policy`: null when all branches may deploy."""
    found = document.get("deployment_branch_policy") if document else None
    return found if isinstance(found, Mapping) else {}


def _has_reviewers(document: Mapping[str, Any]) -> bool:
    """Whether a person has to let each job in. A wait timer keeps nobody out."""
    rules = document.get("protection_rules")
    found = [rule for rule in rules if isinstance(rule, Mapping)] if isinstance(rules, list) else []
    return any(rule.get("type") == "required_reviewers" and rule.get("reviewers") for rule in found)
