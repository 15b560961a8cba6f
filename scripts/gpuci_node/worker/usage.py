"""GPU memory and use of one test.

Runs in the test process, inside the container (Python >= 3.8, standard library only). Nothing here
imports torch, initialises CUDA or makes a context, and nothing raises, whatever tests did to torch.
"""

import contextlib
import os
import resource
import sys
from typing import Any, Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Sequence, Set

from gpuci_node.processes import descendants
from gpuci_node.worker import nvidia, torch_memory

# Libraries that work on GPUs without torch's allocator: nobody counts what they do.
_OTHERS = frozenset({"cuda", "cupy", "jax", "numba.cuda", "pycuda", "tensorflow"})


class Sight(NamedTuple):
    """What is seen of the GPUs at one moment.

    `initialised`: CUDA, by torch. `torch`: its figures, None if there are none. `contexts`: devices on which
    this process has a context. `computing`: processes below this one that initialised CUDA. `others`: bytes
    that those hold, and this process where torch does not count; None if unknown. `waited`: changes when a
    child was waited for. `uncounted`: something can work on GPUs and is not counted. `sure`: all could be
    read.
    """

    initialised: bool = False
    torch: Optional[torch_memory.Figures] = None
    contexts: int = 0
    computing: FrozenSet[int] = frozenset()
    others: Optional[int] = 0
    waited: int = 0
    uncounted: bool = False
    sure: bool = True


class Usage:
    """Watches one test after the other: `before` its set-up, `sample` after its call, `after` its teardown.

    The peak is exact for torch (on NVIDIA and AMD): what its allocator gave out on each visible device, added
    up, with what fixtures held before. It is a lower bound where a test resets the peak itself. For other
    libraries and for child processes it is what NVML reports at `sample` and `after`, the higher of the two:
    a lower bound too, and with the contexts (some 500 MB each), which torch's own figure leaves out.

    CUDA counts as used if torch initialised it, a context was made, torch allocated on a device, or a child
    process initialised it. It counts as not used only if none of this is so and little could go unseen: with
    tensors that lived before the test, another GPU library, or a child that ended meanwhile the answer is
    None; so it is on a node without GPUs. What goes unseen in a process where torch initialised CUDA before:
    a test that asks for a device's properties, or pins host memory, and allocates nothing on a device.
    """

    def __init__(self) -> None:
        self._present = nvidia.present()
        self._driver = nvidia.Driver()
        self._nvml = nvidia.Nvml()
        self._first = Sight(sure=False)
        self._later: List[Sight] = []

    def before(self) -> None:
        """Call before the set-up of a test; sets torch's peak back to what is allocated now."""
        self._later = []
        self._first = self._look(reset=True)

    def sample(self) -> None:
        """Call between call and teardown, while child processes and fixtures still hold their memory."""
        self._later.append(self._look())

    def after(self) -> Dict[str, Any]:
        """Call after teardown: {"peak_memory_bytes": int | None, "cuda_used": bool | None}; None: unknown."""
        self.sample()
        used = cuda_used(self._first, self._later)
        if used is False and not self._present:
            used = None  # nothing is known of what the test would do with a GPU
        peak = peak_memory(self._first, self._later)
        return {"peak_memory_bytes": None if used is None and not peak else peak, "cuda_used": used}

    def _look(self, reset: bool = False) -> Sight:
        sight = Sight()
        with torch_memory.quiet():
            cuda = torch_memory.initialised_cuda()
            if cuda is not None:
                sight = sight._replace(initialised=True)
                sight = sight._replace(torch=torch_memory.read(cuda, reset))
            return self._look_around(sight) if self._present else sight
        return sight._replace(sure=False)

    def _look_around(self, sight: Sight) -> Sight:
        """Add what others than torch show: microseconds where there is neither driver nor child."""
        contexts = self._driver.contexts()
        computing = frozenset(filter(nvidia.computes, _children()))
        by_torch = sight.initialised
        return sight._replace(
            contexts=contexts,
            computing=computing,
            others=self._memory(computing | {os.getpid()} if contexts and not by_torch else computing),
            waited=resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt,
            uncounted=contexts > 0 and not (by_torch and _OTHERS.isdisjoint(sys.modules)),
        )

    def _memory(self, pids: FrozenSet[int]) -> Optional[int]:
        with contextlib.suppress(OSError, AttributeError):
            return self._nvml.used_memory(pids) if pids else 0
        return None


def cuda_used(first: Sight, later: Sequence[Sight]) -> Optional[bool]:
    """Whether CUDA was used between the first sight and the later ones; None if that can't be said. Pure."""
    if first.sure and any(_shows_use(first, sight) for sight in later):
        return True
    hidden = not first.sure or any(_may_hide_use(first, sight) for sight in later)
    return None if hidden else False


def _shows_use(first: Sight, sight: Sight) -> bool:
    if sight.initialised > first.initialised or sight.contexts > first.contexts:
        return True
    if sight.computing - first.computing:
        return True
    if first.torch is None or sight.torch is None:
        return False
    # cudaMallocAsync has no count of allocations, but a peak above what lived before.
    return sight.torch.allocations != first.torch.allocations or sight.torch.peak > first.torch.live


def _may_hide_use(first: Sight, sight: Sight) -> bool:
    lived = first.torch is not None and first.torch.live > 0
    ended = sight.waited != first.waited
    return lived or ended or sight.uncounted or bool(sight.computing) or not sight.sure


def peak_memory(first: Sight, later: Sequence[Sight]) -> Optional[int]:
    """Bytes: torch's peak, and the most that the others held at a sight; None if a part is unknown. Pure."""
    others = [sight.others for sight in later if sight.others is not None]
    if len(others) < len(later) or not all(sight.sure for sight in (first, *later)):
        return None
    return max(sight.torch.peak if sight.torch else 0 for sight in later) + max(others)


def _children() -> Set[int]:
    """All living processes below this one; where there are none that costs one system call."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return set()
    if not os.path.exists("/proc/thread-self/children"):  # proc(5): Linux >= 4.2, and can be left out
        return descendants(os.getpid())
    found: Set[int] = set()
    queue = [os.getpid()]
    while queue:
        started = set(_started_by(queue.pop())) - found
        found |= started
        queue += started
    return found


def _started_by(pid: int) -> Iterator[int]:
    """The living children of a process, thread by thread; none if it is gone."""
    folder = "/proc/%d/task" % pid
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in os.listdir(folder):
            with open("%s/%s/children" % (folder, thread), "rb") as stream:
                yield from map(int, stream.read().split())
