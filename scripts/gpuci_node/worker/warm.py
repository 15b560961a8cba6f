"""Warm parents: processes that imported what many tests need, and fork a test process on request.

Runs in the test process, inside the container (Python >= 3.8, standard library only, Linux).
The child of a parent is the starter's child: the parent forks twice, the orphan goes to the starter (a
subreaper), which then waits for it as for any process that it started itself.
"""

import atexit
import contextlib
import ctypes
import gc
import importlib
import os
import signal
import sys
import threading
import warnings
import weakref
from types import FrameType
from typing import Any, Dict, Iterator, List, NamedTuple, NoReturn, Optional

from gpuci_node import processes
from gpuci_node.worker import randomness
from gpuci_node.worker.channel import Channel, Command, Control

THREADS_SECONDS = 10.0  # for threads of a forked process that are no daemons, once its tests are done

_libc = ctypes.CDLL(None, use_errno=True)
_libc.getenv.restype = ctypes.c_void_p


class Line(NamedTuple):
    """The two ends of a test process's talk with the supervisor."""

    channel: Channel
    control: Control


class Parent:
    """This process as a warm parent. To be made before anything else changes the environment."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.seeds = randomness.Seeds()
        self.collected = False  # it has loaded the conftests of a root, and its files
        self._token = _libc.getenv(processes.TOKEN.encode())  # where execve(2) put it
        self._output = os.fstat(2)

    def preload(self, modules: List[str]) -> None:
        """Import what all test processes will need: pytest with its own plugins, then `modules`."""
        from _pytest.config import default_plugins

        self.seeds.start()
        for name in default_plugins:
            importlib.import_module("_pytest." + name)
        for name in modules:
            try:
                importlib.import_module(name)
            except Exception as error:
                text = "preload: %s can't be imported (%s: %s)" % (name, type(error).__name__, error)
                self.line.channel.send("note", level="warning", topic="preload", text=text[:500])

    def serve(self) -> Optional[Dict[str, Any]]:
        """Fork for each request. Returns in a new process what it is to do (`spec`), here None in the end."""
        self.seeds.stop()
        gc.collect()
        gc.freeze()  # so that collections in the children don't copy every page that holds an object
        with contextlib.suppress(ValueError):  # closed by what was imported
            sys.stdout.flush()
            sys.stderr.flush()
        while True:
            command = self.line.control.receive()
            if command is None:
                return None
            if _fork_orphan():
                for fd in command.fds:
                    os.close(fd)
            else:
                return self._born(command)

    def _born(self, command: Command) -> Dict[str, Any]:
        """In the new process: leave the parent's session, pipes and environment behind."""
        spec = command.content
        _adopted_by(spec["starter"])
        os.setsid()
        records, output, control = command.fds
        self._redirect(output)
        self.line.control.close()
        self.line.channel.close()
        self.line = Line(Channel(records), Control(control))
        _forget_exit_handlers()
        self.seeds.renew()
        os.environ.update(spec["env"])
        self._carry(spec["env"][processes.TOKEN])
        if not self.collected:  # else it is where its conftests left it
            os.chdir(os.path.join(spec["root_dir"], spec["root"]))
        self.line.channel.send("forked", pid=os.getpid())
        return spec

    def _redirect(self, output: int) -> None:
        """Every descriptor of the parent's output, copies that others keep too, leads to ours from now on."""
        mine = os.fstat(output)
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):  # the descriptor of this very listing
                fd = int(name)
                if os.path.samestat(os.fstat(fd), self._output):
                    os.dup2(output, fd, inheritable=os.get_inheritable(fd))
        os.close(output)
        self._output = mine

    def _carry(self, token: str) -> None:
        """Show the token in /proc/PID/environ, which what is forked and not executed inherits (proc(5))."""
        value = token.encode("ascii")
        if self._token and len(ctypes.string_at(self._token)) == len(value):
            ctypes.memmove(self._token, value, len(value))


def _fork_orphan() -> bool:
    """Fork twice; return True here (once the process between has left), False in the grandchild."""
    with warnings.catch_warnings():
        # Python >= 3.12 warns of threads, those of OpenBLAS too, which are known to be harmless.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = _fork()
        if pid:
            if pid > 0:
                os.waitpid(pid, 0)
            return True
        if _fork() == 0:
            return False
        os._exit(0)


def _fork() -> int:
    """As os.fork(); -1 if there can be no more processes: the supervisor sees that nobody holds the pipes."""
    try:
        return os.fork()
    except OSError:
        return -1


def _adopted_by(starter: int) -> None:
    """Wait until the starter is our parent, and die with it from then on."""
    between = os.getppid()
    while os.getppid() == between != starter:
        os.sched_yield()
    processes.die_with_parent()()
    if os.getppid() != starter:
        os._exit(1)


def _forget_exit_handlers() -> None:
    """What the parent registered to be done at its end is done once, there.

    A temporary directory that a test module makes when it is imported would be removed by the first child
    that ends. What Python's own modules do for each process is registered again.
    """
    atexit._clear()
    for info in weakref.finalize._registry.values():  # type: ignore[attr-defined]
        info.atexit = False
    weakref.finalize._registered_with_atexit = False  # type: ignore[attr-defined]
    for name, function in (("logging", "shutdown"), ("multiprocessing.util", "_exit_function")):
        if name in sys.modules:
            atexit.register(getattr(sys.modules[name], function))


def leave(code: int, channel: Channel) -> NoReturn:
    """End a forked process, or a parent, as Python ends: threads, exit handlers, streams.

    Without taking every module apart, which costs 0.1 s and more once torch is loaded and copies the pages
    that parent and children share. Threads that don't end are not waited for longer than THREADS_SECONDS.
    """
    with _shielded():
        _wait_for_threads(channel)
    with _shielded():
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with _shielded():
            stream.flush()
    os._exit(code)


def _wait_for_threads(channel: Channel) -> None:
    """Wait for threads that are no daemons; after a while name those that are left, and go on."""
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, THREADS_SECONDS)
    with contextlib.suppress(TimeoutError):
        threading._shutdown()  # type: ignore[attr-defined]
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    others = set(threading.enumerate()) - {threading.current_thread()}
    names = sorted(thread.name for thread in others if not thread.daemon)
    if names:
        text = "threads that did not end within %g s: %s" % (THREADS_SECONDS, ", ".join(names))
        channel.send("note", level="warning", topic="threads", text=text[:500])


def _too_long(_number: int, _frame: Optional[FrameType]) -> None:
    raise TimeoutError


@contextlib.contextmanager
def _shielded() -> Iterator[None]:
    """An exception here ends the step, not the leaving."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(Exception):
            sys.excepthook(*sys.exc_info())
