"""A test process: pytest with a plugin that runs the chosen items and records them; or a parent of such.

Runs in the test process, inside the container (Python >= 3.8, standard library and pytest >= 7.0).
The records go to a pipe that tests don't see: the descriptor is not inherited by what they start.

A process has one of three roles. `base` imports pytest and the preloaded modules and forks the others.
`template` collects the files of one root and forks a `worker` per slot, which so need not import or collect
again. A `worker` runs units, one after the other. Each role can also be started by itself.
"""

import contextlib
import faulthandler
import importlib.util
import json
import os
import sys
import traceback
from typing import Any, Dict, List, Optional, Tuple

from gpuci_node import processes
from gpuci_node.worker import coverage_data, safety, warm
from gpuci_node.worker.channel import Channel, Control


def main(path: str) -> int:
    """Do what the file `path` (see `spec`) says; return an exit code, pytest's if it ran."""
    fds = [int(os.environ.pop(name)) for name in ("GPUCI_RECORDS", "GPUCI_CONTROL")]
    parent = warm.Parent(warm.Line(Channel(fds[0]), Control(fds[1])))
    with open(path, encoding="utf-8") as stream:
        spec = json.load(stream)
    answer_dumps()
    ours = sys.path.pop(0)  # our zip file: tests see the path that `pytest` would give them
    sys.argv = ["pytest"]
    if spec["role"] == "xdist":
        return _run_xdist(spec, parent.line, ours)
    if spec["role"] == "coverage":
        return coverage_data.merge(spec, parent.line.channel)
    if spec["role"] != "base":
        code, forked = run(spec, parent)
        if not forked:
            return code
    else:
        mine = _serve_as_base(spec, parent)
        code = 0 if mine is None else run(mine, parent)[0]
    return warm.leave(code, parent.line.channel)


def _serve_as_base(spec: Dict[str, Any], parent: warm.Parent) -> Optional[Dict[str, Any]]:
    channel = parent.line.channel
    try:
        parent.preload(spec["preload"])
    except ImportError as error:
        channel.send("broken", text=_no_pytest(error))
        return None
    reasons = ["coverage measures already"] if coverage_data.measures() else safety.unsafe()
    findings = [{"reason": reason, "path": ""} for reason in reasons]
    channel.send("ready", findings=findings)
    return None if findings else parent.serve()


def run(spec: Dict[str, Any], parent: warm.Parent) -> Tuple[int, bool]:
    """Run pytest; return its exit code, and whether this is a process that a template forked meanwhile."""
    channel = parent.line.channel
    try:
        import pytest

        if not hasattr(pytest, "Config"):  # new in 7.0
            raise ImportError("pytest %s is older than 7.0" % pytest.__version__)
        from gpuci_node.worker.plugin import WorkerPlugin
    except ImportError as error:
        channel.send("broken", text=_no_pytest(error))
        return 4, False
    spec["here"] = os.getcwd()
    plugin = WorkerPlugin(spec, parent)
    args = [*own_arguments(spec), *spec["pytest_args"], *spec["args"]]
    try:
        code = int(pytest.main(args, plugins=[plugin]))
    except Exception:  # of a hook at the end, such as a fixture's that fails there
        traceback.print_exc()
        code = int(pytest.ExitCode.INTERNAL_ERROR)
    return code, plugin.forked


def _run_xdist(spec: Dict[str, Any], line: warm.Line, ours: str) -> int:
    """Run pytest with pytest-xdist as the controller of its workers; return its exit code."""
    if not (_is_installed("pytest") and _is_installed("xdist")):
        text = "node.engine is xdist, but %s has no pytest-xdist: install it, or set node.engine to gpuci"
        line.channel.send("unusable", text=text % sys.executable)
        return 4
    from gpuci_node.worker import xdist_controller

    spec["here"] = os.getcwd()
    return xdist_controller.run(spec, line, ours)


def _no_pytest(error: ImportError) -> str:
    return "%s has no usable pytest: %s" % (sys.executable, error)


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


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:  # of a finder that lets nobody have it
        return False


def xdist_arguments(spec: Dict[str, Any]) -> List[str]:
    """The same where pytest-xdist schedules: in its controller, and in its workers."""
    return [
        *own_arguments(spec),
        "-pxdist",
        "-pgpuci_node.worker.xdist_plugin",
        "--numprocesses=%d" % len(spec["seats"]),
        "--testrunuid=" + spec["run"],
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


def answer_dumps() -> None:
    """Have faulthandler write all stacks to standard error when the supervisor asks for them."""
    # A copy of standard error: pytest's capture puts a file in the place of descriptor 2.
    stderr = os.fdopen(os.dup(2), "w")
    with contextlib.suppress(AttributeError, ValueError):
        faulthandler.register(processes.DUMP_SIGNAL, file=stderr, all_threads=True, chain=False)
