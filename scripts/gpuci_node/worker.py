"""One test process: pytest with a plugin that runs the chosen items of one file and records them.

Runs in the test process, inside the container (Python >= 3.8, standard library and pytest >= 7.0).
The records go to a pipe that tests don't see: the descriptor is not inherited by what they start.
"""

import contextlib
import faulthandler
import json
import os
import signal
import sys
from typing import Any, Dict, List

DUMP_SIGNAL = signal.SIGRTMIN + 7  # the supervisor asks for all stacks; tests use SIGUSR1 and SIGUSR2


class Channel:
    """Writes records to the supervisor, one JSON line each."""

    def __init__(self, fd: int) -> None:
        os.set_inheritable(fd, False)
        self._fd = fd
        self._owner = os.getpid()

    def send(self, kind: str, **fields: Any) -> None:
        """Write one record; nothing from a process that a test forked, which would tell everything twice."""
        if os.getpid() != self._owner:
            return
        data = json.dumps({"kind": kind, **fields}, separators=(",", ":")).encode("ascii") + b"\n"
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]


def main(path: str) -> int:
    """Run pytest as the file `path` (see `engine.Engine`) says; return pytest's exit code."""
    with open(path, encoding="utf-8") as stream:
        spec = json.load(stream)
    channel = Channel(int(os.environ.pop("GPUCI_RECORDS")))
    _answer_dumps()
    del sys.path[0]  # our zip file: tests see the path that `pytest` would give them
    try:
        import pytest

        from gpuci_node.plugin import WorkerPlugin
    except ImportError as error:
        channel.send("broken", text="%s has no usable pytest: %s" % (sys.executable, error))
        return 4
    spec["here"] = os.getcwd()
    sys.argv = ["pytest"]
    args = [*own_arguments(spec), *spec["pytest_args"], *spec["args"]]
    return int(pytest.main(args, plugins=[WorkerPlugin(spec, channel)]))


def own_arguments(spec: Dict[str, Any]) -> List[str]:
    """Our part of pytest's command line, one argument each.

    `--rootdir`, `-c` and `--confcutdir` keep it from finding configuration above ROOT.
    """
    root = spec["here"]
    config_file = here(spec, spec["config_file"]) if spec["config_file"] else os.devnull
    return [
        "--rootdir=" + root,
        "--confcutdir=" + root,
        "-c" + config_file,
        "--basetemp=" + os.path.join(spec["scratch"], "tmp"),
        "-ocache_dir=" + os.path.join(spec["scratch"], "cache"),
        "--continue-on-collection-errors",
    ]


def here(spec: Dict[str, Any], path: str) -> str:
    """The absolute path of a ROOT-relative one, as pytest will see it.

    pytest collects below the real working directory, links on the way to it resolved.
    """
    return os.path.normpath(os.path.join(spec["here"], os.path.relpath(path, spec["root"])))


def in_tree(spec: Dict[str, Any], path: str) -> str:
    """The ROOT-relative path of one that pytest names (relative ones: to the working directory)."""
    below = os.path.relpath(os.path.join(spec["here"], path), spec["here"])
    return os.path.normpath(os.path.join(spec["root"], below))


def _answer_dumps() -> None:
    # A copy of standard error: pytest's capture puts a file in the place of descriptor 2.
    stderr = os.fdopen(os.dup(2), "w")
    with contextlib.suppress(AttributeError, ValueError):
        faulthandler.register(DUMP_SIGNAL, file=stderr, all_threads=True, chain=False)
