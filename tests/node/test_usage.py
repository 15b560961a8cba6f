"""GPU memory and use of tests, and what files leave, with a torch that keeps books as the real one does."""

from __future__ import annotations

import gc
import json
import sys
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.results import journal
from gpuci_node.supervisor import records
from gpuci_node.worker import nvidia
from gpuci_node.worker.torch_memory import Figures, Memory, initialised_cuda, read
from gpuci_node.worker.usage import Sight, Usage, cuda_used, peak_memory

GIB = 2**30
TOTAL = 80 * GIB


class Cuda:
    """`torch.cuda` of a process with some devices: live and reserved bytes, peaks, counts of allocations."""

    def __init__(self, devices: int = 2, initialised: bool = True) -> None:
        self.initialised = initialised
        self.live, self.peak, self.reserved, self.allocations = ([0] * devices for _ in range(4))
        self.called: list[str] = []
        self.broken: BaseException | None = None

    def is_initialized(self) -> bool:
        return self.initialised

    def device_count(self) -> int:
        return len(self.live)

    def memory_stats(self, device: int) -> dict[str, int]:
        return {
            "allocated_bytes.all.current": self.live[device],
            "allocated_bytes.all.peak": self.peak[device],
            "allocation.all.allocated": self.allocations[device],
            "reserved_bytes.all.current": self.reserved[device],
        }

    def reset_peak_memory_stats(self, device: int) -> None:
        self.peak[device] = self.live[device]

    def get_device_properties(self, device: int) -> SimpleNamespace:
        return SimpleNamespace(total_memory=TOTAL)

    def empty_cache(self) -> None:
        self.called.append("empty_cache")
        self.reserved = list(self.live)

    def synchronize(self, device: int) -> None:
        self.called.append(f"synchronize {device}")
        if self.broken:
            raise self.broken

    def take(self, size: int, device: int = 0) -> None:
        self.initialised = True
        self.live[device] += size
        self.allocations[device] += 1
        self.peak[device] = max(self.peak[device], self.live[device])
        self.reserved[device] = max(self.reserved[device], self.live[device])

    def give(self, size: int, device: int = 0) -> None:
        self.live[device] -= size


class Tensor:
    """Holds memory until nothing refers to it."""

    def __init__(self, cuda: Cuda, size: int) -> None:
        self.cuda, self.size = cuda, size
        cuda.take(size)

    def __del__(self) -> None:
        self.cuda.give(self.size)


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    made = Cuda()
    put(monkeypatch, made)
    return made


def put(monkeypatch: pytest.MonkeyPatch, cuda: Any) -> None:
    torch = ModuleType("torch")
    torch.cuda = cuda  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)


def test_the_figures_are_sums_over_the_devices(cuda: Cuda) -> None:
    cuda.take(5 * GIB, 0)
    cuda.give(4 * GIB, 0)
    cuda.take(2 * GIB, 1)
    assert read(cuda) == Figures(live=3 * GIB, peak=7 * GIB, allocations=2)
    assert read(cuda, reset=True) == Figures(live=3 * GIB, peak=3 * GIB, allocations=2)


@pytest.mark.parametrize("figure", [-1, 1.5, True, "5", None, 10**15], ids=repr)
def test_what_is_no_figure_is_refused(cuda: Cuda, figure: Any) -> None:
    cuda.live[1] = figure
    with pytest.raises(TypeError):
        read(cuda)


def test_cuda_is_what_torch_says_it_is(monkeypatch: pytest.MonkeyPatch, cuda: Cuda) -> None:
    assert initialised_cuda() is cuda
    cuda.initialised = False
    assert initialised_cuda() is None
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))  # half imported
    assert initialised_cuda() is None
    monkeypatch.delitem(sys.modules, "torch")
    assert initialised_cuda() is None


# -- between files -------------------------------------------------------------------------------------


@pytest.fixture
def collections(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Counts the collections of garbage."""
    done: list[str] = []
    collect = gc.collect

    def counted() -> int:
        done.append("gc")
        return collect()

    monkeypatch.setattr(gc, "collect", counted)
    return done


def test_without_torch_nothing_is_done(monkeypatch: pytest.MonkeyPatch, collections: list[str]) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert Memory().returned("a.py") is None
    assert collections == []


def test_without_initialised_cuda_nothing_is_done(cuda: Cuda, collections: list[str]) -> None:
    cuda.initialised = False
    assert Memory().returned("a.py") is None
    assert (collections, cuda.called) == ([], [])


def test_what_a_cycle_holds_is_freed(cuda: Cuda) -> None:
    memory = Memory()
    assert memory.returned("a.py") is None
    cycle: list[Any] = [Tensor(cuda, 20 * GIB)]
    cycle.append(cycle)
    del cycle
    assert memory.returned("b.py") is None
    assert (cuda.live[0], cuda.reserved[0]) == (0, 0)


def test_what_the_frames_of_the_last_failure_hold_is_freed(cuda: Cuda) -> None:
    memory = Memory()
    memory.returned("a.py")
    sys.last_value = Tensor(cuda, 20 * GIB)  # type: ignore[assignment]  # as pytest does with an exception
    assert memory.returned("b.py") is None
    assert cuda.live[0] == 0


def test_no_garbage_is_collected_where_nothing_is_held(cuda: Cuda, collections: list[str]) -> None:
    memory = Memory()
    cuda.take(GIB)
    memory.returned("a.py")
    assert collections == ["gc"]
    memory.returned("b.py")
    assert collections == ["gc"]
    cuda.take(GIB)
    memory.returned("c.py")
    assert collections == ["gc", "gc"]


@pytest.mark.parametrize(
    ("first", "then", "said"),
    [
        ([0, 0], [8 * GIB, 0], None),
        (
            [0, 0],
            [9 * GIB, 0],
            "9.0 GiB of GPU memory was not returned after b.py (GPU 0: 9.0 of 80.0 GiB held)",
        ),
        ([60 * GIB, 0], [68 * GIB, 0], None),
        (
            [60 * GIB, 0],
            [60 * GIB, int(8.5 * GIB)],
            "8.5 GiB of GPU memory was not returned after b.py (GPU 1: 8.5 of 80.0 GiB held)",
        ),
        (
            [3 * GIB, 0],
            [int(13.25 * GIB), 0],
            "10.2 GiB of GPU memory was not returned after b.py (GPU 0: 13.2 of 80.0 GiB held)",
        ),
        ([60 * GIB, 0], [0, 8 * GIB], None),
    ],
    ids=["a tenth", "more", "above what fixtures hold", "other device", "both", "fixtures gone"],
)
def test_what_is_kept_is_held_against_the_first_boundary(
    cuda: Cuda, first: list[int], then: list[int], said: str | None
) -> None:
    memory = Memory()
    for levels, file, expected in ((first, "a.py", None), (then, "b.py", said)):
        for device, level in enumerate(levels):
            cuda.take(level - cuda.live[device], device)
        assert memory.returned(file) == expected


def test_the_level_is_zero_where_cuda_was_not_initialised_at_the_first_boundary(cuda: Cuda) -> None:
    memory = Memory()
    cuda.initialised = False
    assert memory.returned("a.py") is None
    cuda.take(9 * GIB)
    assert "9.0 GiB of GPU memory was not returned after b.py" in str(memory.returned("b.py"))


def test_memory_that_the_allocator_can_not_give_back_counts(cuda: Cuda, monkeypatch: Any) -> None:
    """A small tensor in a large segment keeps the segment."""
    memory = Memory()
    memory.returned("a.py")
    cuda.reserved[0] = 20 * GIB
    monkeypatch.setattr(cuda, "empty_cache", lambda: None)
    assert "20.0 GiB" in str(memory.returned("b.py"))


def test_a_device_that_nobody_used_is_left_alone(cuda: Cuda) -> None:
    memory = Memory()
    cuda.take(GIB, 1)
    memory.returned("a.py")
    assert cuda.called == ["empty_cache", "synchronize 1"]


@pytest.mark.parametrize("boundary", [1, 2])
def test_broken_cuda_is_a_reason(cuda: Cuda, boundary: int) -> None:
    memory = Memory()
    cuda.take(GIB)
    for _ in range(boundary - 1):
        assert memory.returned("a.py") is None
    cuda.broken = RuntimeError("CUDA error: device-side assert triggered\nCUDA kernel errors might be ...")
    said = memory.returned("b.py")
    assert said == "CUDA is broken after b.py: CUDA error: device-side assert triggered"


class Raises:
    """Stands for anything that raises when it is used."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __getattr__(self, name: str) -> Any:
        raise self.error


@pytest.mark.parametrize(
    "error", [AttributeError("x"), RuntimeError("no figures"), SystemExit(1), pytest.fail.Exception("x")]
)
@pytest.mark.parametrize("name", ["is_initialized", "memory_stats", "get_device_properties", "device_count"])
def test_a_torch_that_says_nothing_is_no_reason(
    monkeypatch: pytest.MonkeyPatch, cuda: Cuda, name: str, error: BaseException
) -> None:
    memory = Memory()
    cuda.take(30 * GIB)

    def fail(*_args: Any) -> None:
        raise error

    monkeypatch.setattr(cuda, name, fail)
    assert memory.returned("a.py") is None
    put(monkeypatch, Raises(error))
    assert memory.returned("b.py") is None


def test_ctrl_c_is_let_through(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, Raises(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        Memory().returned("a.py")


# -- one test ------------------------------------------------------------------------------------------


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node with GPUs."""
    monkeypatch.setattr(nvidia, "_CONTROL_FILES", ("/dev/null",))


def judge(usage: Usage) -> tuple[Any, Any]:
    said = usage.after()
    assert said.keys() == {"peak_memory_bytes", "cuda_used"}
    return said["peak_memory_bytes"], said["cuda_used"]


@pytest.mark.usefixtures("gpus")
def test_a_suite_on_a_gpu(cuda: Cuda) -> None:
    cuda.initialised = False
    usage = Usage()
    seen = {}
    usage.before()
    seen["on the CPU"] = judge(usage)
    usage.before()
    cuda.initialised = True
    seen["asks for properties, the first"] = judge(usage)
    usage.before()
    cuda.take(3 * GIB)
    cuda.give(3 * GIB)
    seen["allocates"] = judge(usage)
    usage.before()
    seen["on the CPU, later"] = judge(usage)
    usage.before()
    cuda.take(GIB, 1)  # by a fixture of the module
    cuda.take(GIB, 0)
    cuda.give(GIB, 0)
    seen["first with the fixture"] = judge(usage)
    usage.before()
    seen["in place with the fixture, perhaps"] = judge(usage)
    usage.before()
    cuda.give(GIB, 1)
    usage.sample()
    seen["last with the fixture"] = judge(usage)
    usage.before()
    seen["after the fixture"] = judge(usage)
    assert seen == {
        "on the CPU": (0, False),
        "asks for properties, the first": (0, True),
        "allocates": (3 * GIB, True),
        "on the CPU, later": (0, False),
        "first with the fixture": (2 * GIB, True),
        "in place with the fixture, perhaps": (GIB, None),
        "last with the fixture": (GIB, None),
        "after the fixture": (0, False),
    }


@pytest.mark.usefixtures("gpus")
def test_a_test_that_resets_the_counters_itself_is_seen_as_far_as_can_be(cuda: Cuda) -> None:
    cuda.take(GIB)
    cuda.give(GIB)
    usage = Usage()
    usage.before()
    cuda.take(5 * GIB)
    cuda.give(5 * GIB)
    cuda.allocations[0] = 0
    usage.sample()
    cuda.reset_peak_memory_stats(0)
    assert judge(usage) == (5 * GIB, True)


@pytest.mark.usefixtures("gpus")
def test_what_takes_less_than_it_gave_back_before_is_seen_by_the_count(cuda: Cuda) -> None:
    cuda.take(5 * GIB)
    usage = Usage()
    usage.before()
    cuda.give(5 * GIB)
    cuda.take(3 * GIB)
    assert judge(usage) == (5 * GIB, True)


@pytest.mark.usefixtures("gpus")
def test_an_allocator_without_counts_is_judged_by_its_peak(cuda: Cuda) -> None:
    usage = Usage()
    usage.before()
    cuda.take(GIB)
    cuda.give(GIB)
    cuda.allocations[0] = 0
    assert judge(usage) == (GIB, True)


def test_where_there_are_no_gpus_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia, "_CONTROL_FILES", ())
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    usage = Usage()
    usage.before()
    assert judge(usage) == (None, None)


@pytest.mark.usefixtures("gpus")
def test_after_without_before_is_unknown() -> None:
    assert judge(Usage()) == (None, None)


@pytest.mark.usefixtures("gpus")
def test_ctrl_c_in_between_is_let_through(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, Raises(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        Usage().before()


FAULTS = [AttributeError("x"), RuntimeError("x"), SystemExit(1), pytest.skip.Exception("x"), RecursionError()]


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize("error", FAULTS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("name", ["device_count", "memory_stats", "reset_peak_memory_stats"])
def test_figures_that_can_not_be_read_are_unknown_but_the_first_use_is_seen(
    monkeypatch: pytest.MonkeyPatch, cuda: Cuda, name: str, error: BaseException
) -> None:
    def fail(*_args: Any) -> None:
        raise error

    monkeypatch.setattr(cuda, name, fail)
    cuda.initialised = False
    usage = Usage()
    usage.before()
    cuda.take(GIB)
    first = judge(usage)
    usage.before()
    assert judge(usage) == (None, None)
    # What fails at the reset only does so from the second test on.
    assert first == ((GIB if name.startswith("reset") else None), True)


HOSTILE: dict[str, Any] = {
    "none": None,
    "an object": object(),
    "a mock": MagicMock(),
    "half a module": ModuleType("torch"),
    "cuda is none": SimpleNamespace(cuda=None),
    "cuda is a text": SimpleNamespace(cuda="cuda"),
    "cuda is a mock that says yes": SimpleNamespace(cuda=MagicMock(is_initialized=lambda: True)),
    "no devices": SimpleNamespace(cuda=Cuda(0)),
    "a negative number of devices": SimpleNamespace(
        cuda=SimpleNamespace(is_initialized=lambda: True, device_count=lambda: -1)
    ),
    "figures that are none": SimpleNamespace(
        cuda=SimpleNamespace(
            is_initialized=lambda: True,
            device_count=lambda: 1,
            reset_peak_memory_stats=lambda device: None,
            memory_stats=lambda device: {"allocated_bytes.all.peak": float("nan")},
        )
    ),
    **{f"raises {type(error).__name__}": Raises(error) for error in FAULTS},
    **{
        f"cuda raises {type(error).__name__}": SimpleNamespace(cuda=Raises(error))
        for error in FAULTS
        if not isinstance(error, AttributeError)
    },
}


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize("during", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("before", ["the same", "real"])
def test_whatever_torch_is_a_record_comes_of_it(
    monkeypatch: pytest.MonkeyPatch, cuda: Cuda, before: str, during: Any
) -> None:
    usage, memory = Usage(), Memory()
    if before == "the same":
        monkeypatch.setitem(sys.modules, "torch", during)
    usage.before()
    monkeypatch.setitem(sys.modules, "torch", during)
    usage.sample()
    end = {"kind": "end", "task": 1, "unit": "u", "nodeid": "a.py::t", "outcome": "passed"}
    said = json.loads(json.dumps({**end, **usage.after()}))
    taken = records.read(said)
    assert taken is not None
    assert [taken[key] for key in ("peak_memory_bytes", "cuda_used")] == [*said.values()][-2:]
    assert journal.read_record(json.dumps(said)) == said
    assert memory.returned("a.py") is None


# What happens in one test: sizes taken (and given back before its end, or kept) on a device.
TAKEN = st.tuples(st.integers(0, 1), st.integers(1, 9), st.booleans())
SUITE = st.lists(st.lists(TAKEN, max_size=4), max_size=6)


@given(SUITE)
def test_the_peak_is_that_of_the_test_and_no_user_is_called_idle(suite: list[Any]) -> None:
    cuda = Cuda()
    live = [0, 0]
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(nvidia, "_CONTROL_FILES", ("/dev/null",))
        put(monkeypatch, cuda)
        usage = Usage()
        for test in suite:
            had = sum(live)
            peak = list(live)
            usage.before()
            for device, size, kept in test:
                cuda.take(size, device)
                live[device] += size
                peak[device] = max(peak[device], live[device])
                if not kept:
                    cuda.give(size, device)
                    live[device] -= size
            expected = True if test else None if had else False
            assert judge(usage) == (sum(peak), expected)


SIGHTS = st.builds(
    Sight,
    initialised=st.booleans(),
    torch=st.none() | st.builds(Figures, *[st.integers(0, 2)] * 3),
    contexts=st.integers(0, 2),
    computing=st.frozensets(st.integers(1, 2)),
    others=st.none() | st.integers(0, 2),
    waited=st.integers(0, 1),
    uncounted=st.booleans(),
    sure=st.booleans(),
)


@given(SIGHTS, st.lists(SIGHTS, min_size=1, max_size=3))
def test_idle_is_said_only_when_all_was_seen_and_showed_nothing(first: Sight, later: list[Sight]) -> None:
    used = cuda_used(first, later)
    if used is False:
        assert first.sure
        assert all(sight.sure and sight.waited == first.waited and not sight.computing for sight in later)
        assert first.torch is None or first.torch.live == 0
    if peak_memory(first, later) is None:
        assert any(not sight.sure or sight.others is None for sight in (first, *later))
    if not first.sure:
        assert used is None


@given(SIGHTS.filter(lambda sight: sight.sure), SIGHTS)
def test_more_contexts_or_a_new_computing_child_is_use(first: Sight, last: Sight) -> None:
    entered = last.contexts > first.contexts or bool(last.computing - first.computing)
    assert not entered or cuda_used(first, [last]) is True
