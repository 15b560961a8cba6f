"""What the tree's modules do while they are imported that a forked copy would wrongly share.

Runs in the process that collects the tests (Linux, Python >= 3.8, standard library only).

A port that was found, a directory that was made or a worker's name that was read while collecting is one for
all copies, although each process of its own would have got another. What libraries do when they are imported
themselves is no finding: it does not depend on who collects.
"""

import contextlib
import os
import sys
import weakref
from types import CodeType, FrameType
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

from gpuci_node import processes
from gpuci_node.worker import calls, held, reads, runtimes, safety
from gpuci_node.worker.safety import Finding

# Read by libraries that count devices for `skipif`, which see the same in every process that collects:
# only code of the tree itself that reads it makes a finding.
_READ_BY_LIBRARIES = "CUDA_VISIBLE_DEVICES"
# Audit events (the standard library's table of them) and what they mean.
_MADE = {
    "socket.bind": "binds a socket",
    "tempfile.mkdtemp": "makes a temporary directory",
    "tempfile.mkstemp": "makes a temporary file",
}
_STARTS = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn")
_HELD = ("open", "mmap.__new__")
_WATCHED = frozenset(("exec", "socket.__new__", "sqlite3.connect", *_HELD, *_MADE, *_STARTS))
_WHEN = " while tests are collected"


class Watch:
    """Notes what code of the tree does between `start` and `stop`.

    `findings` has each (reason, path) once. The path is the file that was imported when it happened (a test
    module or a conftest, but also a helper module: whoever imports that has the same trouble); for a hook it
    is the file that the hook is in.
    """

    def __init__(self, tree: str) -> None:
        self.findings: List[Finding] = []
        self._tree = os.path.realpath(tree)
        self._listening: List[Callable[[str, Tuple[Any, ...]], None]] = []  # empty: not active
        self._hooked = False
        self._files: Dict[str, Optional[str]] = {}  # what `_tree_file` said
        self._file: Optional[str] = None  # of the tree, imported last, and not by another one
        self._born: Dict[int, Optional[str]] = {}  # threads: the file that was imported when they appeared
        self._states: Dict[str, Optional[str]] = {}  # what `runtimes.initialised` says: the same
        self._held = held.Held()
        self._functions: Optional[calls.Places] = None
        self._sockets: List[Tuple[Any, str]] = []
        self._children: Set[int] = set()
        self._spawner: Optional[str] = None
        self._variables: Optional[reads.Variables] = None

    def start(self) -> None:
        """Begin to note; an audit hook stays in this process for ever, and does nothing after `stop`."""
        self._children = _children()
        self._look()
        self._variables = reads.Variables(self._on_variable)
        self._functions = calls.listen(self._on_name, self._on_cleanup)
        if not self._hooked:
            _hear_events(self._listening)
            self._hooked = True
        self._listening.append(self._on_event)

    def stop(self) -> None:
        """End noting, and look at what lives on: child processes, files, shared memory, sockets."""
        if not self._listening:
            return
        self._listening.clear()
        if self._variables is not None and self._functions is not None:
            self._variables.restore()
            self._functions.restore()
        self._look(thorough=True)
        self._meet_children()
        self._meet_descriptors()

    def unsafe(self) -> List[Finding]:
        """All that stands against a fork now: `findings`, and the state of the process with whom to blame."""
        found = list(self.findings)
        for fact in safety.facts():
            blamed: Set[Optional[str]] = {self._born.get(thread) for thread in fact.threads}
            for path in sorted(blamed or {self._states.get(fact.reason)}, key=str):
                if Finding(fact.reason, path) not in found:
                    found.append(Finding(fact.reason, path))
        return found

    def workerinput(self, values: Dict[str, Any]) -> Dict[str, Any]:
        """A dict as pytest-xdist gives it to workers; reads of "workerid" are noted while the watch is on."""
        return reads.WorkerInput(values, lambda: self._note("reads workerinput['workerid']" + _WHEN))

    # -- events ----------------------------------------------------------------------------------

    def _on_event(self, event: str, args: Tuple[Any, ...]) -> None:
        try:
            self._handle(event, args)
        except Exception as error:  # what a hook raises would end the tree's own call
            self._add("%s could not be judged: %r" % (event, error), None)

    def _handle(self, event: str, args: Tuple[Any, ...]) -> None:
        if event in _MADE:
            self._note(_MADE[event] + _WHEN)
        elif event == "exec":
            self._on_import(args[0])
        elif event == "open":
            self._held.opens(args[0], self._blame(sys._getframe(1)))
        elif event == "mmap.__new__":
            self._held.maps()
        elif event == "socket.__new__":
            path = self._blame(sys._getframe(1))
            if path is not None:
                self._sockets.append((weakref.ref(args[0]), path))
        elif event in _STARTS:
            self._meet_children()
            self._spawner = self._blame(sys._getframe(1))
        elif os.fsdecode(args[0]) != ":memory:":  # https://sqlite.org/howtocorrupt.html, 2.6
            self._note("opens an SQLite database" + _WHEN)

    def _on_variable(self, name: str, write: bool) -> None:
        if not self._listening:
            return
        frame = _outside(sys._getframe(1))
        if not write and name == _READ_BY_LIBRARIES and (frame is None or self._tree_file(frame) is None):
            return
        self._note(("writes " if write else "reads ") + name + _WHEN)

    def _on_name(self, reason: str) -> None:
        """Counts if code of the tree asks itself."""
        if not self._listening:
            return
        caller, called = _caller(sys._getframe(1), calls.FOR_OTHERS)
        if caller is not None and called != calls.FOR_DATA and self._tree_file(caller) is not None:
            self._note(reason + _WHEN)

    def _on_cleanup(self) -> None:
        self._note("calls config.add_cleanup()" + _WHEN)

    def _on_import(self, code: Any) -> None:
        """A module's code is about to run: what changed since the last one is that one's doing."""
        path = safety.tree_file(code.co_filename, self._tree) if isinstance(code, CodeType) else None
        if path is None or any(self._imports(frame) for frame in _frames(sys._getframe(1))):
            return
        self._look()
        self._file = path

    def _look(self, thorough: bool = False) -> None:
        self._born = {thread: self._born.get(thread, self._file) for thread in safety.tasks()}
        links = list(runtimes.descriptors())
        self._held.look(links, self._file, thorough)
        for reason in runtimes.initialised([link for _, link in links]):
            self._states.setdefault(reason, self._file)

    def _meet_children(self) -> None:
        """Children that are new were started at the last event that starts one; only living ones matter."""
        new = _children() - self._children
        self._children |= new
        if new and self._spawner is not None:
            self._add("starts a process that lives on" + _WHEN, self._spawner)

    def _meet_descriptors(self) -> None:
        """Pipes (a `multiprocessing.Queue`), files, shared memory and sockets that are there still."""
        for what, file in self._held.found():
            self._add(what + _WHEN, file)
        for reference, path in self._sockets:
            sock = reference()
            if sock is not None and sock.fileno() != -1:
                self._add("keeps a socket open that was made" + _WHEN, path)

    # -- whom to blame ---------------------------------------------------------------------------

    def _note(self, reason: str) -> None:
        path = self._blame(sys._getframe(1)) if self._listening else None
        if path is not None:
            self._add(reason, path)

    def _add(self, reason: str, path: Optional[str]) -> None:
        if Finding(reason, path) not in self.findings:
            self.findings.append(Finding(reason, path))

    def _blame(self, frame: FrameType) -> Optional[str]:
        """The outermost file of the tree on the stack, within the import that is going on innermost."""
        found = None
        for caller in _frames(frame):
            if _is_import(caller):
                break
            found = self._tree_file(caller) or found
        return found

    def _imports(self, frame: FrameType) -> bool:
        return frame.f_code.co_name == "<module>" and self._tree_file(frame) is not None

    def _tree_file(self, frame: FrameType) -> Optional[str]:
        # `__file__` first: a cached file of pytest's assertion rewriting knows where it was compiled only.
        path = frame.f_globals.get("__file__")
        if not isinstance(path, str):
            path = frame.f_code.co_filename
        if path not in self._files:
            self._files[path] = safety.tree_file(path, self._tree)
        return self._files[path]


def _hear_events(listening: List[Callable[[str, Tuple[Any, ...]], None]]) -> None:
    """Add an audit hook, for good: once nobody listens it costs 0.1 µs an event, and `id()` is one."""

    def hook(event: str, args: Tuple[Any, ...]) -> None:
        if listening and event in _WATCHED:
            listening[0](event, args)

    sys.addaudithook(hook)


def _frames(frame: Optional[FrameType]) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_import(frame: FrameType) -> bool:
    """Whether a module is imported here, by Python or by pytest's assertion rewriting."""
    if frame.f_code.co_filename.startswith("<frozen importlib._bootstrap"):
        return True
    return (
        frame.f_code.co_name == "exec_module"
        and frame.f_globals.get("__name__") == "_pytest.assertion.rewrite"
    )


def _outside(frame: FrameType) -> Optional[FrameType]:
    """Who reads or writes: the first frame that is not of `os.environ` itself."""
    return _caller(frame, ("os", "_collections_abc", "collections.abc", reads.__name__))[0]


def _caller(frame: FrameType, inside: Tuple[str, ...]) -> Tuple[Optional[FrameType], str]:
    """The first frame that is not of this module nor of those `inside`, and the name of what it called."""
    called = ""
    for caller in _frames(frame):
        if caller.f_globals.get("__name__") not in (__name__, *inside):
            return caller, called
        called = caller.f_code.co_name
    return None, called


def _children() -> Set[int]:
    """Living children of this process."""
    me = os.getpid()
    with contextlib.suppress(OSError):
        return {pid for pid, (parent, _session) in processes.parents_and_sessions().items() if parent == me}
    return set()
