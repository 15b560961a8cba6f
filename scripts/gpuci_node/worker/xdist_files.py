"""What a worker of pytest-xdist leaves for its controller: files in the scratch directory, one set per seat.

Runs in the test processes, inside the container (Python >= 3.8, standard library only). A seat is a worker's
number and devices; a worker that takes the place of a dead one has its seat, and writes its files anew.
"""

import contextlib
import json
import os
from typing import Any, Dict, NamedTuple, Optional

SPEC = "GPUCI_XDIST_SPEC"  # environment variables by which a worker learns who it is; tests don't see them
SEAT = "GPUCI_XDIST_SEAT"

_TAIL = 16 * 1024  # bytes of a dead worker's output that are read


class Files(NamedTuple):
    """The files of one seat."""

    scratch: str
    seat: int

    def path(self, kind: str) -> str:
        """`pid`, `collecting` (the file that is imported now), `collection` or `output`."""
        return os.path.join(self.scratch, "seat-%d.%s" % (self.seat, kind))

    def write(self, kind: str, content: Any) -> None:
        """Put JSON into a file; raises OSError."""
        with open(self.path(kind), "w", encoding="utf-8") as stream:
            json.dump(content, stream)

    def read(self, kind: str) -> Any:
        """The content of a file, None if it is not there or broken: tests can write to it too."""
        try:
            with open(self.path(kind), encoding="utf-8") as stream:
                return json.load(stream)
        except (OSError, ValueError, RecursionError):
            return None

    def pid(self) -> Optional[int]:
        """The process id of the worker, None if it is not known."""
        pid = self.read("pid")
        return pid if isinstance(pid, int) and pid > 1 else None

    def output(self) -> str:
        """The last that the worker's process wrote outside of pytest's capture: stacks of a crash."""
        with contextlib.suppress(OSError), open(self.path("output"), "rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - _TAIL))
            return stream.read().decode("utf-8", "replace")
        return ""


def environment(spec: Dict[str, Any], seat: int) -> Dict[str, str]:
    """What the worker of a seat finds in its environment from its start."""
    own = ",".join(spec["seats"][seat])
    masked = spec["mask_from_start"] and spec["isolation"] == "mask"
    return {SEAT: str(seat), "GPUCI_GPUS": own, **({"CUDA_VISIBLE_DEVICES": own} if masked else {})}
