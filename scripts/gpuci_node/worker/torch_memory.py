"""torch's GPU memory: its figures, and what files leave behind.

Runs in the test process, inside the container (Python >= 3.8, standard library only). torch is never
imported here, and what tests put in its place (a fake, half a module) can raise anything.
"""

import contextlib
import gc
import sys
from typing import Any, Iterator, List, NamedTuple, Optional, Sequence

_MOST_BYTES = 10**15  # what a record may say
_GIB = 2.0**30
_KEPT_SHARE = 0.1  # of a device's memory: more than this, kept after a file, counts as not returned


class Figures(NamedTuple):
    """torch's allocator, summed over the visible devices: bytes now, peak bytes, allocations so far."""

    live: int
    peak: int
    allocations: int


def initialised_cuda() -> Any:
    """`torch.cuda` if this process has loaded it and initialised CUDA, else None.

    The same for ROCm, whose torch calls itself CUDA.
    """
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() is True else None


def read(cuda: Any, reset: bool = False) -> Figures:
    """The figures of all visible devices, after a reset of the peaks; makes no context.

    Raises what torch raises (an allocator without figures), TypeError for what is no figure.
    """
    devices = range(cuda.device_count())
    if reset:
        for device in devices:
            cuda.reset_peak_memory_stats(device)
    stats = [cuda.memory_stats(device) for device in devices]
    return Figures(
        live=_total(stats, "allocated_bytes.all.current"),
        peak=_total(stats, "allocated_bytes.all.peak"),
        allocations=_total(stats, "allocation.all.allocated"),
    )


def _held(cuda: Any) -> List[int]:
    """Bytes that torch holds of each visible device: live tensors, and what it keeps for the next ones."""
    stats = [cuda.memory_stats(device) for device in range(cuda.device_count())]
    return [_total([each], "reserved_bytes.all.current") for each in stats]


def _total(stats: Sequence[Any], key: str) -> int:
    values = [each.get(key, 0) for each in stats]
    if not all(type(value) is int and value >= 0 for value in values) or sum(values) >= _MOST_BYTES:
        raise TypeError(key)
    return sum(values)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Let nothing out but Ctrl-C: a fake torch may raise even what pytest takes for an outcome."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException:
        pass


class Memory:
    """What torch holds of the GPUs at the boundaries between the files of one process."""

    def __init__(self) -> None:
        self._first: Optional[List[int]] = None

    def returned(self, file: str) -> Optional[str]:
        """Free what `file` left on the GPUs; None if all is well, else why this process should end.

        It should if torch still holds more than a tenth of a device above what it held at the first
        boundary (nothing if CUDA was not initialised by then), or if CUDA is broken in this process: after
        a device-side assertion all calls fail. No garbage is collected where nothing is held above that
        level, and nothing at all is done where torch is not loaded or CUDA not initialised.
        """
        cuda: Any = None
        held: Optional[List[int]] = None
        with quiet():
            cuda = initialised_cuda()
            held = None if cuda is None else _held(cuda)
        if cuda is None and self._first is None:
            self._first = []
        return None if held is None else self._judge(cuda, held, file)

    def _judge(self, cuda: Any, held: List[int], file: str) -> Optional[str]:
        with quiet():
            try:
                held = self._free(cuda, held)
            except RuntimeError as error:  # torch's errors are of this kind
                return "CUDA is broken after %s: %s" % (file, (str(error).splitlines() or ["?"])[0])
            if self._first is None:
                self._first = held
            return self._kept(cuda, held, file)
        return None

    def _free(self, cuda: Any, held: List[int]) -> List[int]:
        """Give back what nothing refers to, wait for the devices in use, return what is still held."""
        if any(self._above(device, size) for device, size in enumerate(held)):
            _forget_tracebacks()
            gc.collect()
            cuda.empty_cache()
        used = [device for device, size in enumerate(held) if size]
        for device in used:
            cuda.synchronize(device)  # says whether CUDA still works; on an unused device it makes a context
        return _held(cuda)

    def _kept(self, cuda: Any, held: List[int], file: str) -> Optional[str]:
        for device, size in enumerate(held):
            above = self._above(device, size)
            # Not mem_get_info: it makes a context on the device.
            total = cuda.get_device_properties(device).total_memory if above else 0
            if above > _KEPT_SHARE * total:
                figures = (above / _GIB, file, device, size / _GIB, total / _GIB)
                text = "%.1f GiB of GPU memory was not returned after %s (GPU %d: %.1f of %.1f GiB held)"
                return text % figures
        return None

    def _above(self, device: int, size: int) -> int:
        first = self._first or []
        return max(0, size - (first[device] if device < len(first) else 0))


def _forget_tracebacks() -> None:
    """Drop the last failure's frames, with the tensors in them; pytest does so when the next test begins."""
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        if hasattr(sys, name):
            delattr(sys, name)
