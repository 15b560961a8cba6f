"""Slots on a virtual clock: no device is used twice, nothing waits beside a slot that fits, all runs once."""

import heapq
import itertools
import random
from collections.abc import Callable
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuci_node.slots import Slot, SlotTable, order_key

EIGHT = [str(gpu) for gpu in range(8)]


class Job(NamedTuple):
    """A unit as the scheduler sees it; `alone` is mode serial."""

    gpus: int
    alone: bool
    seconds: float


class Run(NamedTuple):
    job: Job
    slot: Slot
    start: float
    end: float


Order = Callable[[int, bool, float, int], tuple[float, ...]]


def schedule(table: SlotTable, jobs: list[Job], key: Order = order_key) -> list[Run]:
    """List scheduling with backfilling; asserts at each moment that no waiting job fits."""
    waiting = [job for _, job in sorted((key(*job, i), job) for i, job in enumerate(jobs))]
    ending: list[tuple[float, int]] = []
    runs: list[Run] = []
    now = 0.0
    while waiting or ending:
        for job in list(waiting):
            slot = table.take(job.gpus, job.alone)
            if slot is not None:
                waiting.remove(job)
                runs.append(Run(job, slot, now, now + job.seconds))
                heapq.heappush(ending, (now + job.seconds, len(runs) - 1))
        assert ending, "a job waits on an idle node"
        assert all(table.take(job.gpus, job.alone) is None for job in waiting)
        now, number = heapq.heappop(ending)
        table.release(runs[number].slot)
    return runs


def makespan(table: SlotTable, jobs: list[Job], key: Order = order_key) -> float:
    return max(run.end for run in schedule(table, jobs, key))


def as_they_come(gpus: int, alone: bool, seconds: float, sequence: int) -> tuple[int]:
    """The order in which tests come back that need more GPUs than they had."""
    return (sequence,)


any_order = st.sampled_from([order_key, as_they_come])
widths = st.sampled_from([1, 1, 1, 1, 0, 2, 2, 3, 4, 12])
jobs_of_a_node = st.lists(
    st.builds(Job, widths, st.sampled_from([False] * 12 + [True]), st.integers(1, 50).map(float)),
    min_size=1,
    max_size=40,
)
tables = st.builds(
    lambda gpus, lanes: SlotTable([f"GPU-{i}" for i in range(gpus)], lanes),
    st.integers(1, 9),
    st.integers(1, 3),
)


@settings(max_examples=200)
@given(tables, jobs_of_a_node, any_order)
def test_every_job_runs_once_and_everything_is_released(
    table: SlotTable, jobs: list[Job], order: Order
) -> None:
    runs = schedule(table, jobs, order)
    assert sorted(run.job for run in runs) == sorted(jobs)
    assert table.idle
    assert table.take(1, alone=True) is not None


@settings(max_examples=200)
@given(st.integers(1, 9), st.integers(1, 3), jobs_of_a_node, any_order)
def test_no_device_is_used_twice(gpus: int, lanes: int, jobs: list[Job], order: Order) -> None:
    """At most `lanes` one-GPU jobs share a device; a wide or lone job shares none of its devices."""
    runs = schedule(SlotTable([str(i) for i in range(gpus)], lanes), jobs, order)
    for one, other in itertools.combinations(runs, 2):
        if one.start < other.end and other.start < one.end:
            assert one.slot.index != other.slot.index
            wide = [run for run in (one, other) if len(run.slot.gpus) > 1 or run.job.alone]
            assert not wide or not set(one.slot.gpus) & set(other.slot.gpus)
    for run in runs:
        beside = [o for o in runs if o.start <= run.start < o.end and run.slot.gpus[0] in o.slot.gpus]
        assert len(beside) <= lanes


@settings(max_examples=200)
@given(st.integers(1, 9), st.integers(1, 3), jobs_of_a_node)
def test_a_slots_name_says_its_gpus(gpus: int, lanes: int, jobs: list[Job]) -> None:
    """Slot i is on GPU i % G, always; a slot of n GPUs is i, i + 1, … and is named after its lowest."""
    names = [f"GPU-{i}" for i in range(gpus)]
    for run in schedule(SlotTable(names, lanes), jobs):
        slot, wanted = run.slot, gpus if run.job.alone else min(max(run.job.gpus, 1), gpus)
        assert slot.name == f"gw{slot.index}"
        assert slot.gpus == tuple(names[slot.index % gpus : slot.index % gpus + wanted])
        assert 0 <= slot.index < gpus * lanes
        assert wanted == 1 or slot.index < gpus


@given(st.integers(1, 6), st.lists(st.integers(1, 9).map(float), max_size=20))
def test_a_cpu_pool_keeps_all_its_slots_busy(workers: int, seconds: list[float]) -> None:
    runs = schedule(SlotTable([], cpu_workers=workers), [Job(0, False, value) for value in seconds])
    assert {run.slot.gpus for run in runs} <= {()}
    assert {run.slot.index for run in runs} == set(range(min(workers, len(seconds))))


@pytest.mark.parametrize(
    ("taken", "gpus", "expected"),
    [
        ([], 1, [0]),
        ([1, 1], 1, [2]),
        ([1] * 8, 1, None),
        ([], 2, [0, 1]),
        ([1], 2, [2, 3]),
        ([1], 4, [4, 5, 6, 7]),
        ([1], 8, None),
        ([], 12, [0, 1, 2, 3, 4, 5, 6, 7]),
        ([4], 4, [4, 5, 6, 7]),
        ([4, 2], 4, None),
        ([4, 1], 2, [6, 7]),
        ([], 3, [0, 1, 2]),
        ([3], 3, [3, 4, 5]),
        ([3, 3], 3, None),
        ([1], 5, [1, 2, 3, 4, 5]),
        ([], 0, [0]),
    ],
    ids=str,
)
def test_what_a_node_of_eight_gives(taken: list[int], gpus: int, expected: list[int] | None) -> None:
    table = SlotTable(EIGHT)
    assert all(table.take(need) for need in taken)
    slot = table.take(gpus)
    assert (None if slot is None else [int(gpu) for gpu in slot.gpus]) == expected


@pytest.mark.parametrize(
    ("gpus", "busy", "need", "expected"),
    [
        (8, {6, 7}, 2, 4),
        (8, {3}, 2, 0),
        (8, {0}, 2, 2),
        (7, {4}, 2, 5),
        (8, {0, 4}, 3, 1),
    ],
    ids=[
        "a block of four stays whole",
        "beside what is broken anyway",
        "not from the whole half",
        "the shorter rest where nothing aligns",
        "no whole half: the first fit",
    ],
)
def test_a_block_breaks_up_the_least(gpus: int, busy: set[int], need: int, expected: int) -> None:
    table = SlotTable([str(i) for i in range(gpus)])
    slots = [table.take(1) for _ in range(gpus)]
    for slot in slots:
        assert slot is not None
        if slot.index not in busy:
            table.release(slot)
    block = table.take(need)
    assert block is not None
    assert block.index == expected


def test_lanes_fill_the_gpus_first_and_wide_slots_hold_all_lanes() -> None:
    table = SlotTable(EIGHT, workers_per_gpu=2)
    ones = [table.take(1) for _ in range(9)]
    assert [slot.gpus[0] for slot in ones if slot] == [*EIGHT, "0"]
    assert table.take(2) is None
    for slot in (ones[2], ones[3]):
        assert slot is not None
        table.release(slot)
    assert table.take(2) == Slot(2, ("2", "3"))
    assert table.take(1) == Slot(9, ("1",))


def test_a_wide_slot_waits_for_every_lane() -> None:
    table = SlotTable(["0", "1"], workers_per_gpu=2)
    *first_lanes, second_lane = [table.take(1) for _ in range(3)]
    for slot in first_lanes:
        assert slot is not None
        table.release(slot)
    assert second_lane == Slot(2, ("0",))
    assert table.take(2) is None


def test_alone_waits_for_everything_and_takes_everything() -> None:
    table = SlotTable(EIGHT, workers_per_gpu=2)
    one = table.take(1)
    assert one is not None
    assert table.take(1, alone=True) is None
    table.release(one)
    assert table.take(1, alone=True) == Slot(0, tuple(EIGHT))
    assert table.take(1) is None


@pytest.mark.parametrize(("gpus", "need", "expected"), [(8, 16, 8), (8, 0, 1), (8, 3, 3), (0, 2, 0)])
def test_a_request_is_clipped_to_the_node(gpus: int, need: int, expected: int) -> None:
    table = SlotTable(EIGHT[:gpus], cpu_workers=0 if gpus else 2)
    assert table.clip(need) == expected


@pytest.mark.parametrize(
    ("gpus", "lanes", "cpus", "message"),
    [
        ([], 1, 0, "one of both"),
        (["0"], 1, 2, "one of both"),
        (["0", "0"], 1, 0, "named twice"),
        (["0"], 0, 0, "at least 1"),
        ([], 1, -1, "at least 0"),
    ],
)
def test_a_table_that_makes_no_sense_is_refused(gpus: list[str], lanes: int, cpus: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SlotTable(gpus, lanes, cpus)


def test_a_slot_is_given_back_once() -> None:
    table = SlotTable(EIGHT)
    slot = table.take(2)
    assert slot is not None
    table.release(slot)
    with pytest.raises(ValueError, match="gw0 is not taken"):
        table.release(slot)


def test_the_order_is_alone_then_widest_then_longest_then_first() -> None:
    keys = [
        order_key(1, True, 1.0, 9),
        order_key(8, False, 1.0, 8),
        order_key(2, False, 9.0, 7),
        order_key(1, False, 9.0, 5),
        order_key(1, False, 2.0, 4),
        order_key(1, False, 2.0, 6),
    ]
    assert keys == sorted(keys)


def test_alone_first_takes_as_long_as_alone_last() -> None:
    """The reason for the order of `order_key`, on 200 random mixes of a node."""
    source = random.Random(7)

    def last(gpus: int, alone: bool, seconds: float, sequence: int) -> tuple[bool, int, float, int]:
        return (alone, *order_key(gpus, alone, seconds, sequence)[1:])

    for _ in range(200):
        widths = source.choices([1, 2, 4, 8], [16, 3, 1, 1], k=source.randint(1, 40))
        jobs = [Job(gpus, source.random() < 0.1, float(source.randint(1, 300))) for gpus in widths]
        assert makespan(SlotTable(EIGHT), jobs) == makespan(SlotTable(EIGHT), jobs, last)
