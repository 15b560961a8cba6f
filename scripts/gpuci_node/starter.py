"""The starter: starts test processes, passes on what they record, ends them with all they started.

Runs on the compute node, inside the container when there is one (Python >= 3.8, standard library only).
It speaks JSON lines: commands on standard input, events on standard output. It decides nothing.

    {"do": "start", "id", "spec", "env"} | {"do": "dump", "id"} | {"do": "stop", "id"} | {"do": "kill", "id"}
    {"event": "record", "id", "line"} | {"event": "exited", "id", "code", "signal", "tail", "left_over"}
    {"event": "refused", "id", "reason"}: the process can't be started

End of its standard input means: kill everything and leave.
"""

import json
import os
import selectors
import signal
import subprocess
import sys
from types import FrameType
from typing import Any, Dict, List, Optional, Set

from gpuci_node import journal, processes
from gpuci_node.worker import DUMP_SIGNAL

_TAIL = 16 * 1024  # bytes of output kept per test process
_LONGEST_RECORD = 64 * 1024 * 1024  # what a file of 100,000 tests collected is about half of this
_CHUNK = 64 * 1024
# For helpers that end by themselves: Python's resource tracker frees the shared memory of a dead process.
_LET_END_SECONDS = 0.5
_LARGEST_PIPE = 1024 * 1024  # pipe(7), /proc/sys/fs/pipe-max-size


class Lines:
    """Cuts a byte stream into lines; a line longer than `longest` is dropped."""

    def __init__(self, longest: int = _LONGEST_RECORD) -> None:
        self._parts: List[bytes] = []  # of the line that is not complete; joined once, when it is
        self._size = 0
        self._longest = longest

    def feed(self, data: bytes) -> List[bytes]:
        """Return the lines that are complete now."""
        first, *others = data.split(b"\n")
        self._keep(first)
        if not others:
            return []
        lines = [b"".join(self._parts), *others[:-1]]
        self._parts, self._size = [], 0
        self._keep(others[-1])
        return lines

    def _keep(self, part: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)
        if self._size > self._longest:
            self._parts, self._size = [], 0


class Child:
    """One test process with its two pipes."""

    def __init__(
        self, process_id: str, token: str, popen: "subprocess.Popen[bytes]", records: int, output: int
    ) -> None:
        self.id = process_id
        self.token = token
        self.popen = popen
        self.records = records
        self.output = output
        self.lines = Lines()
        self.tail = b""
        self.stopped = False  # the job is being ended

    def family(self) -> Set[int]:
        """What it started and is still alive."""
        return processes.family(self.popen.pid, self.token)


class Starter:
    """The event loop over commands, pipes and the deaths of children."""

    def __init__(self) -> None:
        self._children: Dict[int, Child] = {}
        self._selector = selectors.DefaultSelector()
        self._commands = Lines(longest=1 << 30)
        self._in_child = processes.die_with_parent()
        self._deaths = _death_pipe()
        self._selector.register(0, selectors.EVENT_READ, self._read_commands)
        self._selector.register(self._deaths, selectors.EVENT_READ, self._read_deaths)
        self._open = True
        # Other runs on this machine have processes of the same names.
        self._nonce = os.urandom(8).hex()

    def run(self) -> int:
        """Serve until standard input ends or nobody listens; nothing that we started lives on."""
        try:
            while self._open:
                self._serve()
        except BrokenPipeError:
            return 0  # the keeper is gone
        finally:
            processes.kill_all(lambda: processes.descendants(os.getpid()))
        return 0

    def _serve(self) -> None:
        for key, _events in self._selector.select():
            # A death that was just handled closed its pipes; their numbers may be another's by now.
            if self._selector.get_map().get(key.fd) == key:
                key.data(key.fd)

    # -- commands --------------------------------------------------------------------------------

    def _read_commands(self, fd: int) -> None:
        data = os.read(fd, _CHUNK)
        self._open = bool(data)
        for line in self._commands.feed(data):
            command = json.loads(line)
            if command["do"] == "start":
                self._start(command["id"], command["spec"], command["env"])
            else:
                self._signal(command["id"], command["do"])

    def _signal(self, process_id: str, what: str) -> None:
        number = {"dump": DUMP_SIGNAL, "stop": signal.SIGINT, "kill": signal.SIGKILL}[what]
        for pid, child in self._children.items():
            if child.id == process_id:
                child.stopped = child.stopped or what == "stop"
                processes.send(pid, number)

    def _start(self, process_id: str, spec: Dict[str, Any], env: Dict[str, str]) -> None:
        token = "%s.%s" % (self._nonce, process_id)
        records, records_w = os.pipe()
        output, output_w = os.pipe()
        try:
            path = _write_spec(spec)
            popen = subprocess.Popen(
                [sys.executable, "-u", sys.argv[0], "worker", path],  # a crash loses no output
                cwd=os.path.join(spec["root_dir"], spec["root"]),
                env=_environment(env, spec["pythonpath"], token, records_w),
                stdin=subprocess.DEVNULL,
                stdout=output_w,
                stderr=output_w,
                pass_fds=(records_w,),
                start_new_session=True,
                preexec_fn=self._in_child,
            )
        except OSError as error:
            for fd in (records, output):
                os.close(fd)
            _tell("refused", process_id, reason="a test process can't be started: %s" % error)
            return
        finally:
            for fd in (records_w, output_w):
                os.close(fd)
        self._watch(Child(process_id, token, popen, records, output))

    def _watch(self, child: Child) -> None:
        self._children[child.popen.pid] = child
        for fd, read in ((child.records, self._read_records), (child.output, self._read_output)):
            os.set_blocking(fd, False)
            self._selector.register(fd, selectors.EVENT_READ, lambda fd, read=read: read(child, fd))

    # -- pipes -----------------------------------------------------------------------------------

    def _read_records(self, child: Child, fd: int) -> bool:
        """Pass on what is there; return whether there may be more."""
        data = self._read(fd)
        for line in child.lines.feed(data or b""):
            _tell("record", child.id, line=line.decode("utf-8", "replace"))
        return bool(data)

    def _read_output(self, child: Child, fd: int) -> bool:
        data = self._read(fd)
        child.tail = (child.tail + (data or b""))[-_TAIL:]
        return bool(data)

    def _read(self, fd: int) -> Optional[bytes]:
        """Some bytes, b"" at the end, None when nothing is there."""
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return None
        if not data:
            self._selector.unregister(fd)
        return data

    # -- deaths ----------------------------------------------------------------------------------

    def _read_deaths(self, fd: int) -> None:
        os.read(fd, _CHUNK)
        dead = [child for pid, child in self._children.items() if _next_dead(os.P_PID, pid) == pid]
        # All at once: nobody is heard meanwhile.
        leaving = [child for child in dead if not child.stopped]
        processes.let_end(lambda: {pid for child in leaving for pid in child.family()}, _LET_END_SECONDS)
        for child in dead:
            self._finish(self._children.pop(child.popen.pid))
        while True:
            orphan = _next_dead(os.P_ALL, 0)
            if orphan is None or orphan in self._children:
                return  # a test process that died just now: its SIGCHLD is still to be read
            os.waitpid(orphan, 0)

    def _finish(self, child: Child) -> None:
        """Clean up while the process is a zombie, so that its pid can't be another's by now."""
        left_over = processes.kill_all(child.family)
        code = child.popen.wait()
        for fd, read in ((child.records, self._read_records), (child.output, self._read_output)):
            # What the process itself wrote fits into the pipe; one that got away may write for ever.
            for _chunk in range(_LARGEST_PIPE // _CHUNK):
                if fd not in self._selector.get_map() or not read(child, fd):
                    break
            if fd in self._selector.get_map():
                self._selector.unregister(fd)
            os.close(fd)
        tail = child.tail.decode("utf-8", "replace")
        name = _signal_name(-code) if code < 0 else None
        exit_code = code if code >= 0 else None
        _tell("exited", child.id, code=exit_code, signal=name, tail=tail, left_over=left_over)


def _signal_name(number: int) -> str:
    """`SIGSEGV`; real-time signals have a number only."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return "signal %d" % number


def _next_dead(kind: int, pid: int) -> Optional[int]:
    """The pid of a dead child (any, or this one) that is still to be waited for, or None."""
    try:
        found = os.waitid(kind, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return None if found is None else found.si_pid


def _do_nothing(_number: int, _frame: Optional[FrameType]) -> None:
    return


def _death_pipe() -> int:
    """A descriptor that becomes readable with each SIGCHLD."""
    reader, writer = os.pipe()
    for fd in (reader, writer):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _do_nothing)
    return reader


def _write_spec(spec: Dict[str, Any]) -> str:
    os.makedirs(spec["scratch"], exist_ok=True)
    path = os.path.join(spec["scratch"], "spec.json")
    with open(path, "w", encoding="utf-8") as stream:
        json.dump(spec, stream)
    return path


def _environment(extra: Dict[str, str], pythonpath: List[str], token: str, records: int) -> Dict[str, str]:
    env = {**os.environ, **extra, processes.TOKEN: token, "GPUCI_RECORDS": str(records)}
    if pythonpath:
        # By the environment, so that what a test starts (torchrun, python -m) finds them too.
        inherited = [env["PYTHONPATH"]] if env.get("PYTHONPATH") else []
        env["PYTHONPATH"] = os.pathsep.join([*pythonpath, *inherited])
    # Equal ids in every process for parameters that come out of sets.
    env.setdefault("PYTHONHASHSEED", "0")
    # Asking torch for the number of devices must not start the CUDA driver (torch >= 1.13).
    env.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    return env


def _tell(event: str, process_id: str, **fields: Any) -> None:
    # Not by sys.stdout: with PYTHONUNBUFFERED it forgets the rest of a write that a signal cut short.
    journal.write_all(1, journal.encode({"event": event, "id": process_id, **fields}))


def main() -> int:
    """Run the starter; the terminal's signals are the keeper's business."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # No SIG_IGN: test processes would inherit that.
        signal.signal(number, _do_nothing)
    processes.become_subreaper()
    return Starter().run()
