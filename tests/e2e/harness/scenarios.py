"""Scenarios with tests on the cluster."""

from __future__ import annotations

import socket

from tests.e2e.harness import events
from tests.e2e.harness.act import Ran
from tests.e2e.harness.outcomes import counted, passed, shards_of, told
from tests.e2e.harness.product import CLONE, load, permissions
from tests.e2e.harness.scenario import DISPATCH, ONE_BY_ONE, ROOT_ACTION, readable, scenario
from tests.e2e.harness.stage import Stage
from tests.fakes.github.faults import Fault

SHARED = "lib/gpu_proof.py"  # in no package, so that a change to it can break every test
KERNELS = "packages/kernels/src/kernels/__init__.py"
BROKEN = "packages/data/tests/gpu/test_pinned_memory.py"
# Containers of the bed have the network of their node.
WAITS = """

def test_that_somebody_answers():
    import socket

    with socket.create_connection(("127.0.0.1", {port}), 50) as line:
        assert line.recv(9) == b"go"
"""
BREAKS = "def test_that_the_change_breaks():\n    assert 1 + 1 == 3\n"


def touch(stage: Stage, path: str) -> dict[str, str]:
    """A change that changes nothing."""
    return {path: stage.caller.text(path) + "\n# changed\n"}


@scenario("green")
def green(stage: Stage) -> list[Ran]:
    """A maintainer sets the label: twelve shards in containers, all green."""
    pull = stage.open_pull(touch(stage, SHARED))
    ran = stage.run(stage.label(pull, "maria"))
    passed(stage, ran, pull.head_sha)
    counted(stage)
    assert stage.statuses(pull.head_sha)["gpuci/approved"] == ("success", "approved by @maria (label)")
    assert len(stage.comments()) == 1
    return [ran]


@scenario("failing", shards={"min-tests": 1, "max": 4})
def failing(stage: Stage) -> list[Ran]:
    """The change breaks one test: red, with that test named in summary, annotation, comment and report."""
    broken = {BROKEN: f"{stage.caller.text(BROKEN)}\n\n{BREAKS}"}
    pull = stage.open_pull({**touch(stage, SHARED), **broken})
    ran = stage.run(stage.label(pull, "maria"))
    gate = ran.job("gpu-tests-passed")
    assert (ran.code != 0, gate.result, gate.outputs["verdict"]) == (True, "failure", "failed"), told(ran)
    verdicts = sorted(job.outputs["verdict"] for job in ran.of("gpu-tests"))
    assert verdicts == ["failed", *["passed"] * 3]
    failed = [test["nodeid"] for test in stage.report()["tests"] if test["outcome"] == "failed"]
    assert failed == [f"{BROKEN}::test_that_the_change_breaks"]
    assert stage.statuses(pull.head_sha)["gpuci"][0] == "failure"
    (comment,) = stage.comments()
    named = [text for kind, text in gate.annotations if kind == "error"]
    for text in (gate.summary, comment, "\n".join(named)):
        assert "test_that_the_change_breaks" in text, text
    return [ran]


@scenario("dead-node", alone=True, shards={"min-tests": 1, "max": 2})
def dead_node(stage: Stage) -> list[Ran]:
    """A node dies under a test: its shard runs once more on another node, and the run is green."""
    dead: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as service:
        service.settimeout(300)

        def kill() -> None:
            first, _ = service.accept()  # from now on a test is in flight
            with first:
                (shard,) = shards_of(stage, BROKEN)
                name = f"gpuci-octo.tests-{stage.run_id}-a1-s{shard}-t1"
                dead.extend(job.node for job in stage.bed.queue() if job.name == name)
                stage.bed.fail(dead[0])
                second, _ = service.accept()
                with second:
                    second.sendall(b"go")

        waits = stage.caller.text(BROKEN) + WAITS.format(port=service.getsockname()[1])
        pull = stage.open_pull({**touch(stage, KERNELS), BROKEN: waits})
        try:
            ran = stage.run(stage.label(pull, "maria"), during=kill)
        finally:
            stage.bed.heal()
    passed(stage, ran, pull.head_sha, shards=2, tries=1)
    (again,) = (shard for shard in stage.report()["shards"] if shard["tries"] > 1)
    first, second = again["history"]
    assert (first["node"], first["verdict"], second["verdict"]) == (dead[0], "infra", "passed"), again
    assert second["node"] != dead[0], again
    return [ran]


@scenario("dispatch", DISPATCH, shards={"max": 1})
def dispatch(stage: Stage) -> list[Ran]:
    """A maintainer starts the workflow with the pull request and its SHA: approved by that, green."""
    pull = stage.open_pull(touch(stage, KERNELS))
    given = {"pull_request": "12", "sha": pull.head_sha}
    ran = stage.run(events.dispatch(stage.repository, "maria", **given))
    passed(stage, ran, pull.head_sha, shards=1)
    assert stage.statuses(pull.head_sha)["gpuci/approved"][0] == "success"
    return [ran]


@scenario("push", shards={"max": 1})
def push(stage: Stage) -> list[Ran]:
    """A push to the default branch: trusted, green, no approval is recorded. The results of its one shard are
    found, although a single artifact is unpacked otherwise."""
    before = stage.caller.main
    after = stage.caller.commit(touch(stage, KERNELS), on=before, branch="main")
    stage.repository.branches["main"] = after
    stage.pushed(after, "PUSHED")
    ran = stage.run(events.push(stage.repository, "main", before, after, "wim"))
    passed(stage, ran, after, shards=1)
    assert "gpuci/approved" not in stage.statuses(after)
    return [ran]


@scenario("root", ROOT_ACTION, shards={"min-tests": 1, "max": 4})
def root(stage: Stage) -> list[Ran]:
    """The root action: the same run in one job that follows all shards."""
    pull = stage.open_pull(touch(stage, SHARED))
    given = {"pull_request": "12", "sha": pull.head_sha}
    ran = stage.run(events.dispatch(stage.repository, "maria", **given))
    assert ran.code == 0, told(ran)
    assert ran.results == {"gpu": {"success"}}
    assert "passed" in readable(ran.job("gpu"))
    assert len(stage.submitted()) == 4
    assert stage.statuses(pull.head_sha)["gpuci"][0] == "success"
    return [ran]


@scenario("consumer", ONE_BY_ONE)
def consumer(stage: Stage) -> list[Ran]:
    """A workflow of the caller's own, which uses the actions one by one, by commit: green."""
    pull = stage.open_pull(touch(stage, KERNELS))
    given = {"pull_request": "12", "sha": pull.head_sha}
    ran = stage.run(events.dispatch(stage.repository, "maria", **given))
    passed(stage, ran, pull.head_sha, jobs=permissions(load(CLONE / ONE_BY_ONE)), shards=2)
    return [ran]


@scenario("github-falters", shards={"max": 1})
def github_falters(stage: Stage) -> list[Ran]:
    """GitHub's API is overloaded, limits, and loses an answer: asked again, nothing is done twice, green."""
    stage.server.faults += [
        Fault(path=".*/pulls/12", status=502),
        Fault(path=".*/permission", close=True),
        Fault(path=".*/statuses/.*", method="POST", status=503),
        Fault(path=".*/issues/12/comments", method="GET", status=429, headers={"Retry-After": "1"}),
        Fault(path=".*/issues/12/comments", method="POST", close=True, done=True),
    ]
    pull = stage.open_pull(touch(stage, KERNELS))
    ran = stage.run(stage.label(pull, "maria"))
    passed(stage, ran, pull.head_sha, shards=1)
    assert [fault.times for fault in stage.server.faults] == [0] * 5
    assert len(stage.comments()) == 1
    return [ran]
