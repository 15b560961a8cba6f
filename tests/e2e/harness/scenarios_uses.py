"""Scenarios of a repository that uses gpuci more than once."""

from __future__ import annotations

import html

from tests.e2e.harness.act import Ran
from tests.e2e.harness.outcomes import told
from tests.e2e.harness.scenario import TWO_USES, scenario
from tests.e2e.harness.scenarios import BREAKS, BROKEN, SHARED, touch
from tests.e2e.harness.stage import Stage

PACKAGES = {"kernels": "kernels", "gpu-data": "data"}  # name of the use -> package


@scenario("two-uses", TWO_USES, shards={"max": 1})
def two_uses(stage: Stage) -> list[Ran]:
    """Two configurations in one run, one green, one red: a status, a comment, artifacts and jobs for each."""
    files = {f".github/{package}.yml": f"packages: [packages/{package}]\n" for package in PACKAGES.values()}
    stage.move_main(files)
    broken = {BROKEN: f"{stage.caller.text(BROKEN)}\n\n{BREAKS}"}
    pull = stage.open_pull({**touch(stage, SHARED), **broken})
    ran = stage.run(stage.label(pull, "maria"))
    assert ran.code != 0, told(ran)
    states = {context: state for context, (state, _) in stage.statuses(pull.head_sha).items()}
    assert states == {
        "gpuci (kernels)": "success",
        "gpuci (gpu-data)": "failure",
        "gpuci/approved": "success",
    }
    verdicts = sorted(job.outputs["verdict"] for job in ran.of("gpu-tests-passed"))
    assert verdicts == ["failed", "passed"], told(ran)
    assert stage.submitted() == [
        f"gpuci-octo.tests-{stage.run_id}.{name}-a1-s1-t1" for name in ("gpu.data", "kernels")
    ]
    comments = [html.unescape(body) for body in stage.comments()]
    for name, package in PACKAGES.items():
        tests = stage.report(prefix=f"gpuci.{name}.")["tests"]
        assert {test["nodeid"].split("/")[1] for test in tests} == {package}
        (comment,) = (body for body in comments if f"gpuci ({name})" in body)
        assert ("test_that_the_change_breaks" in comment) == (package == "data"), comment
    assert len(comments) == 2
    return [ran]
