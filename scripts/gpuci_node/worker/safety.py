"""May this process fork? What a forked copy of it could not live with.

Runs in the process that collected the tests (Linux, Python >= 3.8, standard library only).

A copy made by fork(2) has the thread that forked and no other, and shares every open device. So three things
stand against it: a GPU runtime that is initialised, other threads, and hooks whose end would run in each copy
although their beginning ran once, before.
"""

import contextlib
import inspect
import os
import select
import signal
import sys
import threading
import time
import warnings
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

from gpuci_node.worker import runtimes

_TRIAL_SECONDS = 10.0
_LEAVE_SECONDS = 0.25  # from the end of a thread to its leaving /proc, on a loaded machine
# Whose threads they may be; named in the reason.
_POOLS = ("libgomp", "libiomp", "libomp", "libmkl", "libtbb", "openblas")
# Plugins whose pytest_sessionfinish and pytest_unconfigure were read: they undo what is this process's own
# (attributes, hooks, what a worker of pytest-xdist never makes) or do nothing in a worker.
_HARMLESS = frozenset(
    (
        "_pytest",
        "gpuci_node",
        "xdist",
        "pytest_asyncio",
        "pytest_benchmark",
        "pytest_cov",  # when it measures, see below
        "pytest_django",
        "pytest_html",
        "pytest_jsonreport",
        "pytest_metadata",
        "pytest_rerunfailures",
        "pytest_subtests",
        "pytest_timeout",
    )
)
_ENDS = ("pytest_sessionfinish", "pytest_unconfigure")
# Around all tests: what wraps them begins before the fork and ends after it.
_AROUND = ("pytest_cmdline_main", "pytest_collection", "pytest_runtestloop")


class Finding(NamedTuple):
    """Something that stands against a fork; `path`: the file of the tree to blame (absolute), if one is."""

    reason: str
    path: Optional[str]


class Fact(NamedTuple):
    """Something in the state of this process that stands against a fork, and the threads concerned."""

    reason: str
    threads: Tuple[int, ...] = ()  # thread ids of the kernel


def unsafe() -> List[str]:
    """Say why this process must not be forked now; [] means that it may be.

    Forks a copy that ends at once, when there are threads that may be stopped by that (see `facts`): the
    process gets a SIGCHLD.
    """
    return [fact.reason for fact in facts()]


def facts() -> List[Fact]:
    """What stands against forking this process now, as `unsafe`.

    Whether threads of C libraries survive is tried and not guessed: OpenBLAS stops its own before a fork and
    starts them again when they are needed (pthread_atfork, OpenMathLib/OpenBLAS#343). GNU OpenMP does not,
    and a copy then waits for ever for threads that it lacks (GCC bug 60035). So whoever is still there after
    a fork that was made for nothing stands against the next one.
    """
    found = [Fact(reason) for reason in gpu()] + _python_threads()
    if found:
        return found  # no trial: it might hang
    others = tasks() - {threading.get_native_id()}
    if not others:
        return []
    refused = _trial_fork()
    if refused:
        return [Fact(refused)]
    return _native_threads(_staying(others))


def gpu() -> List[str]:
    """Say which GPU runtime is initialised in this process; initialises none."""
    return runtimes.initialised()


# -- threads ---------------------------------------------------------------------------------------


def tasks() -> Set[int]:
    """Thread ids of this process, as the kernel knows them."""
    return {int(name) for name in os.listdir("/proc/self/task")}


def _python_threads() -> List[Fact]:
    """Other threads that run Python, those included that `threading` did not start."""
    me = threading.get_ident()
    known = {thread.ident: thread for thread in threading.enumerate()}
    found = [
        Fact("a Python thread runs: %s" % describe(thread), (thread.native_id or 0,))
        for ident, thread in known.items()
        if ident != me
    ]
    frames = sys._current_frames()
    files = [
        frame.f_code.co_filename for ident, frame in frames.items() if ident != me and ident not in known
    ]
    return found + [Fact("a Python thread runs in %s" % path) for path in files]


def describe(thread: threading.Thread) -> str:
    """The name of a thread, and the file of what it runs: the target, else the class's `run`."""
    target = getattr(thread, "_target", None) or type(thread).run
    target = getattr(target, "func", target)  # functools.partial
    code = getattr(getattr(target, "__func__", target), "__code__", None)
    return "%s (%s)" % (thread.name, code.co_filename if code else "unknown")


def _trial_fork() -> Optional[str]:
    """Fork a copy that ends at once; say what went wrong."""
    reader, writer = os.pipe()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python 3.12 warns of threads
            pid = os.fork()
        if pid == 0:
            os.kill(os.getpid(), signal.SIGKILL)  # nothing is flushed and no exit handler runs
        os.close(writer)
        writer = -1
        return _wait_for_trial(pid, reader)
    except OSError as error:
        return "this process can't be forked: %s" % error
    finally:
        os.close(reader)
        if writer >= 0:
            os.close(writer)


def _wait_for_trial(pid: int, reader: int) -> Optional[str]:
    """Wait for the end of the copy, which shows as the end of its pipe."""
    poll = select.poll()
    poll.register(reader)
    ended = bool(poll.poll(_TRIAL_SECONDS * 1000))
    if not ended:
        os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):  # the tree ignores SIGCHLD: then nobody need wait
        os.waitpid(pid, 0)
    return None if ended else "a forked copy hangs"


def _staying(threads: Set[int]) -> Set[int]:
    """Those of the threads that a fork has not stopped; one that ends is seen in /proc for a moment."""
    deadline = time.monotonic() + _LEAVE_SECONDS
    while True:
        left = threads & tasks()
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.001)


def _native_threads(threads: Set[int]) -> List[Fact]:
    pools = [os.path.basename(path) for name in _POOLS for path in _mapped(name)]
    loaded = ", loaded are %s" % ", ".join(pools) if pools else ""
    names: Dict[str, List[int]] = {}
    for thread in sorted(threads):
        names.setdefault(_name(thread), []).append(thread)
    return [Fact("a thread of C code runs: %s%s" % (name, loaded), tuple(ids)) for name, ids in names.items()]


def _mapped(name: str) -> List[str]:
    """Paths of the loaded libraries that have `name` in their file names."""
    with open("/proc/self/maps", "rb") as stream:
        text = stream.read()
    wanted = name.encode()
    if wanted not in text:
        return []
    paths = {os.fsdecode(line.split(None, 5)[5]) for line in text.splitlines() if wanted in line}
    return sorted(path for path in paths if name in os.path.basename(path))


def _name(thread: int) -> str:
    with contextlib.suppress(OSError), open("/proc/self/task/%d/comm" % thread, "rb") as stream:
        return stream.read().decode("utf-8", "replace").strip()
    return "?"


# -- hooks -----------------------------------------------------------------------------------------


def unsafe_hooks(pluginmanager: Any, tree: str) -> List[Finding]:
    """Hooks of pytest that end, in each copy, what began once before the fork.

    `pluginmanager` is pytest's (pluggy), `tree` the absolute path of the tree under test.
    """
    hook = pluginmanager.hook
    ends = [(name, each, "implements ") for name in _ENDS for each in getattr(hook, name).get_hookimpls()]
    around = [(name, each, "wraps ") for name in _AROUND for each in getattr(hook, name).get_hookimpls()]
    found = [
        _finding(verb + name, implementation.function, tree)
        for name, implementation, verb in [*ends, *filter(_wraps, around)]
    ]
    measuring = getattr(pluginmanager.get_plugin("_cov"), "cov_controller", None)
    if measuring is not None:
        found.append(Finding("pytest-cov measures", None))
    return [finding for finding in found if finding is not None]


def _wraps(each: Tuple[str, Any, str]) -> bool:
    implementation = each[1]
    return bool(implementation.hookwrapper or getattr(implementation, "wrapper", False))  # from pluggy 1.2 on


def _finding(what: str, function: Any, tree: str) -> Optional[Finding]:
    function = inspect.unwrap(function)
    # By its globals: several conftests may bear one name in `sys.modules`.
    path = tree_file(str(getattr(function, "__globals__", {}).get("__file__")), tree)
    if path is not None:
        return Finding(what, path)
    module = str(getattr(function, "__module__", None))
    if module.partition(".")[0] in _HARMLESS:
        return None
    return Finding("%s %s" % (module, what), None)


def tree_file(path: str, tree: str) -> Optional[str]:
    """The real path of a file of the tree; None for others and for what is installed below it."""
    real = os.path.realpath(path) if os.path.isabs(path) else ""
    if not real.startswith(os.path.join(tree, "")):
        return None
    below = real[len(tree) :].split(os.sep)
    if "site-packages" in below or "dist-packages" in below:
        return None
    return real if os.path.isfile(real) else None  # our own code may be in an archive below the tree
