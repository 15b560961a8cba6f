"""Two reports that every rendering is shown with: one red, one green. docs/results.md shows both."""

from __future__ import annotations

import pytest

from gpuci.model import LearnedNeed, Report, ShardReport, TestResult, TryReport

PASSED = tuple(
    TestResult(
        f"packages/attention/tests/test_masks.py::test_causal[{n}]",
        "passed",
        0.25 * n + 0.01,
        1,
        slot="gw0",
        gpus=("0",),
        peak_memory_bytes=0 if n == 9 else n * 2**28,
        cuda_used=n != 9,
    )
    for n in range(12)
)
SKIPPED = (
    TestResult("packages/data/tests/test_io.py::test_s3", "skipped", message="needs network"),
    TestResult("packages/data/tests/test_io.py::test_gcs", "skipped", message="needs network"),
    TestResult(
        "packages/data/tests/test_big.py::test_all_nightly", "skipped", message="*_nightly: on schedule only"
    ),
)
FAILED = TestResult(
    "packages/attention/tests/test_flash.py::TestBackward::test_gradients[bf16-causal]",
    "failed",
    3.42,
    2,
    slot="gw3",
    gpus=("3",),
    file="packages/attention/tests/test_flash.py",
    line=88,
    message="AssertionError: gradients differ: 0.031 > 0.010",
    peak_memory_bytes=13_207_024_435,
    cuda_used=True,
    output=(
        "    def test_gradients(self, dtype, causal):\n"
        "        want, got = reference(dtype), flash(dtype)\n"
        ">       assert diff(want, got) < 0.010\n"
        "E       AssertionError: gradients differ: 0.031 > 0.010\n"
        "\n"
        "packages/attention/tests/test_flash.py:88: AssertionError\n"
        "----- Captured stdout call -----\n"
        "::error::a test can print a workflow command\n"
    ),
)
ERROR = TestResult(
    "packages/comm/tests/test_ring.py::test_all_reduce",
    "error",
    1.2,
    2,
    attempt=2,
    slot="gw0",
    gpus=("0", "1", "2", "3"),
    file="packages/comm/tests/conftest.py",
    line=17,
    message="teardown: RuntimeError: process group was not destroyed",
)
LOST = tuple(
    TestResult(
        f"packages/train/tests/test_loop.py::test_step[{n}]",
        "not_finished",
        shard=3,
        message="collected, but never started",
    )
    for n in range(7)
)

MARK = "mark require_cuda_8gpu seen on the node"
NEEDS = {
    "packages/attention/tests/test_masks.py::test_causal[11]": LearnedNeed(
        8, because="skipped on 1 of 8 GPUs (needs 2 devices)", planned=1
    ),
    "packages/comm/tests/test_ring.py::test_all_reduce": LearnedNeed(
        8, because=MARK, mark="require_cuda_8gpu", planned=4
    ),
    "packages/comm/tests/test_ring.py::test_barrier": LearnedNeed(
        1, True, because="mark serial seen on the node", mark="serial", planned=1
    ),
    "packages/comm/tests/test_ring.py::test_known": LearnedNeed(8, because=MARK, mark="require_cuda_8gpu"),
}

TRIES = (
    TryReport(1, "infra", "NODE_FAIL", "node-b", 4.0, 60.0, 1),
    TryReport(2, "failed", "red tests: 2", "node-c", 40.9, 5.0, 1),
)


@pytest.fixture(scope="session")
def red_report() -> Report:
    return Report(
        verdict="failed",
        reason="1 failed, 1 error, 7 not finished; shard 3: infra (the node stopped answering)",
        counts={"failed": 1, "error": 1, "not_finished": 7, "passed": 12, "skipped": 3},
        tests=(*PASSED, FAILED, ERROR, *LOST, *SKIPPED),
        shards=(
            ShardReport(1, "passed", 40.0, 41.2, 3.0, 1, "node-a", 12, 214.0, 115.6),
            ShardReport(
                2, "failed", 38.5, 44.9, 65.0, 2, "node-b, node-c", 2, 198.4, 160.8, "", TRIES, rescued=1
            ),
            ShardReport(3, "infra", 39.0, 300.0, 4.0, 1, "node-d", 7, 0.0, 0.0, "the node stopped answering"),
        ),
        warnings=(
            "planned from source, but not collected by pytest (1 test): packages/data/test_io.py::test_old",
        ),
        notes=("packages/train/tests/conftest.py: starts a thread while files are imported",),
        seconds=312.4,
        setup_seconds=3.1,
        sha="0123abc",
        needs=NEEDS,
    )


@pytest.fixture(scope="session")
def green_report() -> Report:
    return Report(
        verdict="passed",
        reason="all shards passed",
        counts={"passed": 12, "skipped": 3},
        tests=(*PASSED, *SKIPPED),
        shards=(ShardReport(1, "passed", 40.0, 41.2, 3.0, 1, "node-a", 12, 214.0, 115.6),),
        seconds=44.2,
        setup_seconds=3.1,
    )
