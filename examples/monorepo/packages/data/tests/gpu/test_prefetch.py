import sys

import pytest
from dataloading.batching import shard
from gpu_work import run_kernel

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="prefetching forks")


def test_each_worker_reads_its_own_rows() -> None:
    run_kernel(0.2)
    assert not set(shard(range(9), 0, 3)) & set(shard(range(9), 1, 3))


def test_rows_come_in_order() -> None:
    rows = list(shard(range(100), 1, 4))
    assert rows == sorted(rows)


@pytest.mark.skipif(sys.platform != "win32", reason="only the Windows reader locks its files")
def test_file_is_locked() -> None:
    raise AssertionError("never runs")


def test_last_worker_has_fewer_rows() -> None:
    assert len(shard(range(10), 3, 4)) == 2
