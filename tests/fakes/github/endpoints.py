"""The endpoints of the fake: each with the permission it takes, written down from docs.github.com/rest.

That table is a second statement beside the one of the product (gpuci.github.messages): a test compares
them. GitHub lets a token read much of a public repository without a permission; the fake never does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.fakes.github.replies import NOT_FOUND, Asked, Reply, invalid, paged, refusal
from tests.fakes.github.state import Pull, utc_now

Handler = Callable[[Asked], Reply]
SHA = r"(?P<sha>[0-9a-f]{40})"
NUMBER = r"(?P<number>\d+)"


class Route(NamedTuple):
    """`permissions`: one of these is enough, as `scope: level`."""

    method: str
    path: str  # below /repos/OWNER/NAME
    permissions: tuple[str, ...]
    handler: Handler


def user(asked: Asked, login: str) -> dict[str, Any]:
    """A user as documents hold it."""
    return {"login": login, "type": asked.state.kinds.get(login, "User")}


def repository(asked: Asked) -> Reply:
    one = asked.repository
    body = {
        "id": 1,
        "full_name": one.name,
        "private": one.private,
        "fork": False,
        "default_branch": one.default_branch,
        "visibility": "private" if one.private else "public",
        "html_url": f"{asked.base}/{one.name}",
        "clone_url": f"{asked.base}/{one.name}.git",
    }
    return Reply(200, body)


def pull_document(name: str, pull: Pull, kinds: dict[str, str]) -> dict[str, Any]:
    """A pull request as the API and the payloads of events have it (the keys that matter)."""
    head_name = pull.head_repository if pull.head_repository != "" else name
    head = {"full_name": head_name, "fork": head_name != name, "pushed_at": pull.head_pushed_at}
    return {
        "number": pull.number,
        "state": pull.state,
        "draft": pull.draft,
        "title": pull.title,
        "user": {"login": pull.author, "type": kinds.get(pull.author, "User")},
        "labels": [{"name": label} for label in pull.labels],
        "updated_at": pull.updated_at,
        "html_url": f"https://github.com/{name}/pull/{pull.number}",
        "head": {
            "sha": pull.head_sha,
            "ref": pull.head_ref,
            "repo": head if head_name is not None else None,
        },
        "base": {"sha": pull.base_sha, "ref": pull.base_ref, "repo": {"full_name": name, "fork": False}},
    }


def pull_request(asked: Asked) -> Reply:
    pull = asked.repository.pulls.get(int(asked.parts["number"]))
    if pull is None:
        return NOT_FOUND
    return Reply(200, pull_document(asked.repository.name, pull, asked.state.kinds))


def create_status(asked: Asked) -> Reply:
    sha, body = asked.parts["sha"], asked.body
    if not asked.repository.knows(sha):
        return refusal(422, f"No commit found for SHA: {sha}")
    if body.get("state") not in ("error", "failure", "pending", "success"):
        return invalid("Status", "state", "State is not included in the list")
    if len(body.get("description") or "") > 140:
        return invalid("Status", "description", "description is too long (maximum is 140 characters)")
    target = body.get("target_url") or ""
    if target and not re.match(r"https?://", target):
        return invalid("Status", "target_url", "target_url must use http(s) scheme")
    status = {
        "id": next(asked.state.ids),
        "context": body.get("context") or "default",
        "state": body["state"],
        "description": body.get("description"),
        "target_url": body.get("target_url"),
        "creator": user(asked, asked.token.login),
        "created_at": utc_now(),
    }
    asked.repository.statuses.setdefault(sha, []).append(status)
    return Reply(201, status)


def statuses(asked: Asked) -> Reply:
    if not asked.repository.knows(asked.parts["sha"]):
        return refusal(422, f"No commit found for SHA: {asked.parts['sha']}")
    return paged(asked, asked.repository.statuses.get(asked.parts["sha"], [])[::-1])


def commit(asked: Asked) -> Reply:
    sha = asked.repository.branches.get(asked.parts["ref"], asked.parts["ref"])
    if not re.fullmatch(SHA, sha) or not asked.repository.knows(sha):
        return refusal(422, f"No commit found for SHA: {asked.parts['ref']}")
    return Reply(200, {"sha": sha, "parents": []})


def check_suites(asked: Asked) -> Reply:
    times = asked.repository.check_suites.get(asked.parts["sha"], [])
    suites = [
        {"id": 1 + place, "head_sha": asked.parts["sha"], "created_at": time, "app": {"slug": "ci"}}
        for place, time in enumerate(times)
    ]
    return paged(asked, suites, "check_suites")


def permission(asked: Asked) -> Reply:
    """`permission` has four values only: maintain counts as write, triage as read (documented there)."""
    login, asker = asked.parts["user"], asked.token.login
    person = asked.state.kinds.get(asker, "User") == "User"
    if person and asked.repository.collaborators.get(asker) not in ("admin", "maintain", "write"):
        return refusal(403, "Must have push access to view collaborator permission.")
    role = asked.repository.collaborators.get(login, "none" if asked.repository.private else "read")
    plain = {"maintain": "write", "triage": "read"}.get(role, role)
    return Reply(200, {"permission": plain, "role_name": role, "user": user(asked, login)})


def environment(asked: Asked) -> Reply:
    found = asked.repository.environments.get(asked.parts["name"])
    if found is None:
        return NOT_FOUND
    document = {key: value for key, value in found.items() if key != "branch_policies"}
    empty: dict[str, Any] = {"protection_rules": [], "deployment_branch_policy": None}
    return Reply(200, {**empty, "name": asked.parts["name"], **document})


def branch_policies(asked: Asked) -> Reply:
    found = asked.repository.environments.get(asked.parts["name"])
    if found is None:
        return NOT_FOUND
    names = found.get("branch_policies", [])
    policies = [{"id": 1 + place, "name": name, "type": "branch"} for place, name in enumerate(names)]
    return paged(asked, policies, "branch_policies")


def branches(asked: Asked) -> Reply:
    one = asked.repository
    names = sorted({one.default_branch, *one.branches, *one.protected_branches, *one.rules})
    documents = [branch_document(asked, name) for name in names]
    wanted = asked.query.get("protected")
    return paged(asked, [d for d in documents if wanted is None or str(d["protected"]).lower() == wanted])


def branch(asked: Asked) -> Reply:
    one = asked.repository
    if asked.parts["name"] not in {one.default_branch, *one.branches}:
        return refusal(404, "Branch not found")
    return Reply(200, branch_document(asked, asked.parts["name"]))


def branch_document(asked: Asked, name: str) -> dict[str, Any]:
    one = asked.repository
    protected = name in one.protected_branches or bool(one.rules.get(name))  # GitHub tells both as one
    return {"name": name, "commit": {"sha": one.branches.get(name, "0" * 40)}, "protected": protected}


def rules(asked: Asked) -> Reply:
    return paged(asked, asked.repository.rules.get(asked.parts["name"], []))


def comments(asked: Asked) -> Reply:
    if (number := int(asked.parts["number"])) not in asked.repository.pulls:
        return NOT_FOUND
    return paged(asked, asked.repository.comments.get(number, []))


def create_comment(asked: Asked) -> Reply:
    if (number := int(asked.parts["number"])) not in asked.repository.pulls:
        return NOT_FOUND
    if fault := body_fault(asked.body.get("body")):
        return fault
    made = {"id": next(asked.state.ids), "body": asked.body["body"], "created_at": utc_now()}
    made["user"] = user(asked, asked.token.login)
    asked.repository.comments.setdefault(number, []).append(made)
    return Reply(201, made)


def edit_comment(asked: Asked) -> Reply:
    every = (one for some in asked.repository.comments.values() for one in some)
    found = next((one for one in every if one["id"] == int(asked.parts["number"])), None)
    if found is None:
        return NOT_FOUND
    if fault := body_fault(asked.body.get("body")):
        return fault
    found["body"] = asked.body["body"]
    return Reply(200, found)


def body_fault(body: Any) -> Reply | None:
    if not isinstance(body, str) or not body.strip():
        return invalid("IssueComment", "body", "body can't be blank")
    if len(body) > 65536:
        return invalid("IssueComment", "body", "body is too long (maximum is 65536 characters)")
    return None


def labels(asked: Asked) -> Reply:
    pull = asked.repository.pulls.get(int(asked.parts["number"]))
    return NOT_FOUND if pull is None else paged(asked, [{"name": label} for label in pull.labels])


def remove_label(asked: Asked) -> Reply:
    pull = asked.repository.pulls.get(int(asked.parts["number"]))
    if pull is None:
        return NOT_FOUND
    if asked.parts["name"] not in pull.labels:
        return refusal(404, "Label does not exist")
    pull.labels.remove(asked.parts["name"])
    return Reply(200, [{"name": label} for label in pull.labels])


def dispatch(asked: Asked) -> Reply:
    one, body = asked.repository, asked.body
    declared = one.workflows.get(asked.parts["workflow"])
    if declared is None:
        return NOT_FOUND
    if str(body.get("ref", "")).removeprefix("refs/heads/") not in {one.default_branch, *one.branches}:
        return refusal(422, f"No ref found for: {body.get('ref')}")
    inputs = body.get("inputs") or {}
    if unknown := sorted(set(inputs) - set(declared)):
        return refusal(422, f"Unexpected inputs provided: {unknown}")
    if not all(isinstance(value, str) for value in inputs.values()):
        return refusal(422, "Invalid request.\n\nFor 'properties/inputs', inputs are strings.")
    one.dispatches.append({"workflow": asked.parts["workflow"], "ref": body["ref"], "inputs": inputs})
    return Reply(204)


def contents(asked: Asked) -> Reply:
    text = asked.repository.files.get(asked.parts["path"])
    if text is None:
        return NOT_FOUND
    if "raw" in asked.accept:
        return Reply(200, text.encode())
    return Reply(200, {"type": "file", "path": asked.parts["path"], "size": len(text.encode())})


def artifacts(asked: Asked) -> Reply:
    names = asked.repository.artifacts.get(int(asked.parts["number"]), [])
    found = [{"id": 1 + place, "name": name, "expired": False} for place, name in enumerate(names)]
    return paged(asked, found, "artifacts")


# GitHub's header says that `issues` would do too; for labels of a pull request it was reported not to
# (Arize-ai/phoenix pull request 13279, hiero-ledger/hiero-sdk-python 2651).
READ_ISSUE = ("pull-requests: read",)
WRITE_ISSUE = ("pull-requests: write",)
ROUTES = (
    Route("GET", "", ("metadata: read",), repository),
    Route("GET", f"pulls/{NUMBER}", ("pull-requests: read",), pull_request),
    Route("POST", f"statuses/{SHA}", ("statuses: write",), create_status),
    Route("GET", f"commits/{SHA}/statuses", ("statuses: read",), statuses),
    Route("GET", f"commits/{SHA}/check-suites", ("checks: read",), check_suites),
    Route("GET", "commits/(?P<ref>[^/]+)", ("contents: read",), commit),
    Route("GET", "collaborators/(?P<user>[^/]+)/permission", ("metadata: read",), permission),
    Route("GET", "environments/(?P<name>[^/]+)", ("actions: read",), environment),
    Route(
        "GET",
        "environments/(?P<name>[^/]+)/deployment-branch-policies",
        ("actions: read",),
        branch_policies,
    ),
    Route("GET", "branches", ("contents: read",), branches),
    Route("GET", "branches/(?P<name>[^/]+)", ("contents: read",), branch),
    Route("GET", "rules/branches/(?P<name>[^/]+)", ("metadata: read",), rules),
    Route("GET", f"issues/{NUMBER}/comments", READ_ISSUE, comments),
    Route("POST", f"issues/{NUMBER}/comments", WRITE_ISSUE, create_comment),
    Route("PATCH", f"issues/comments/{NUMBER}", WRITE_ISSUE, edit_comment),
    Route("GET", f"issues/{NUMBER}/labels", READ_ISSUE, labels),
    Route("DELETE", f"issues/{NUMBER}/labels/(?P<name>[^/]+)", WRITE_ISSUE, remove_label),
    Route("POST", "actions/workflows/(?P<workflow>[^/]+)/dispatches", ("actions: write",), dispatch),
    Route("GET", f"actions/runs/{NUMBER}/artifacts", ("actions: read",), artifacts),
    Route("GET", "contents/(?P<path>.+)", ("contents: read",), contents),
)
