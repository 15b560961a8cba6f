"""The starter: starts test processes, passes on what they record, ends them with all they started.

Runs on the compute node, inside the container when there is one (Python >= 3.8, standard library only).
It speaks JSON lines: commands on standard input, events on standard output. It decides nothing.

    {"do": "start", "id", "spec", "env", "parent"}: a new process, or one that `parent` forks
    {"do": "tell", "id", "message"}: pass this on to a process; {"do": "run", "unit"} or {"do": "end"}
    {"do": "dump" | "stop" | "kill", "id"}
    {"do": "output", "bytes"}: say what is printed, up to so much
    {"do": "setup", "text", "directory", "tree"}: once, before all tests
    {"event": "hello", "devices", "root", "python"}: with a directory, where named pipes are (see link)
    {"event": "record", "id", "line"} | {"event": "exited", "id", "code", "signal", "tail", "left_over"}
    {"event": "output", "id", "text"} | {"event": "setup", "code", "signal", "tail", "dropped"}
    {"event": "unborn", "id"}: the parent did not fork it
    {"event": "refused", "id", "reason", "started"}: this machine does not let us work (no process, no file)

End of its standard input means: kill everything and leave.
"""

import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
from types import FrameType
from typing import Any, Dict, List, Optional, Tuple

from gpuci_node import probe, processes
from gpuci_node.processes import DUMP_SIGNAL
from gpuci_node.supervisor import journal, link, output
from gpuci_node.supervisor.child import Child, Lines, Pipes
from gpuci_node.supervisor.setup import Setup

_TAIL = 16 * 1024  # bytes of output kept per test process
_CHUNK = 64 * 1024
# For helpers that end by themselves: Python's resource tracker frees the shared memory of a dead process.
_LET_END_SECONDS = 0.5
_LARGEST_PIPE = 1024 * 1024  # pipe(7), /proc/sys/fs/pipe-max-size


class Starter:
    """The event loop over commands, pipes and the deaths of children."""

    def __init__(self) -> None:
        self._children: Dict[int, Child] = {}
        self._unborn: Dict[str, Child] = {}  # asked of a warm parent
        self._selector = selectors.DefaultSelector()
        self._commands = Lines(longest=1 << 30)
        self._in_child = processes.die_with_parent()
        self._deaths, self._wake = _death_pipe()
        self._selector.register(0, selectors.EVENT_READ, self._read_commands)
        self._selector.register(self._deaths, selectors.EVENT_READ, self._read_deaths)
        self._open = True
        self._allowance = output.Allowance()
        self._setup: Optional[Setup] = None
        # Other runs on this machine have processes of the same names.
        self._nonce = os.urandom(8).hex()
        self._count = 0

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
            try:
                self._obey(command)
            except OSError as error:
                reason = "a test process can't be started: %s" % error
                _tell("refused", command["id"], reason=reason, started=self._find(command["id"]) is not None)

    def _obey(self, command: Dict[str, Any]) -> None:
        if command["do"] == "start":
            self._start(command["id"], command["spec"], command["env"], command["parent"])
        elif command["do"] == "tell":
            self._pass_on(command["id"], command["message"])
        elif command["do"] == "output":
            self._allowance.give(command["bytes"])
        elif command["do"] == "setup":
            self._set_up(command)
        else:
            self._signal(command["id"], command["do"])

    def _set_up(self, command: Dict[str, Any]) -> None:
        self._setup = Setup(command["text"], command["directory"], command["tree"])
        self._selector.register(self._setup.fd, selectors.EVENT_READ, self._read_setup)

    def _read_setup(self, fd: int) -> None:
        assert self._setup is not None
        text = self._setup.read(self._allowance)
        if text is None:
            self._selector.unregister(fd)
        else:
            _tell_output("setup", text)

    def _finish_setup(self, setup: Setup) -> None:
        """What it started and left running may still print: that is read on."""
        end = setup.finish(self._allowance, lambda text: _tell_output("setup", text))
        _tell("setup", "", **end)

    def _find(self, process_id: str) -> Optional[Child]:
        everyone = [*self._children.values(), *self._unborn.values()]
        return next((child for child in everyone if child.id == process_id), None)

    def _signal(self, process_id: str, what: str) -> None:
        number = {"dump": DUMP_SIGNAL, "stop": signal.SIGINT, "kill": signal.SIGKILL}[what]
        child = self._find(process_id)
        if child is None:
            return
        if what == "dump" and self._allowance.used:
            self._allowance.give(output.STACKS)  # that they are in the log is more than any limit
        child.stopped = child.stopped or what == "stop"
        if child.pid:
            processes.send(child.pid, number)
        elif what == "stop":
            child.signal = signal.SIGKILL
        elif what == "kill":
            self._give_up(child)

    def _pass_on(self, process_id: str, message: Dict[str, Any]) -> None:
        child = self._find(process_id)
        if child is None:
            return
        command = {"do": message["do"]}
        if "unit" in message:
            child.told += 1
            command["path"] = _write_json(child.directory, "unit-%d.json" % child.told, message["unit"])
        child.pipes.send(command)

    def _start(
        self, process_id: str, spec: Dict[str, Any], env: Dict[str, str], parent: Optional[str]
    ) -> None:
        self._count += 1
        token = "%s.%08d" % (self._nonce, self._count)  # of one length, see warm.Parent
        spec["starter"] = os.getpid()
        pipes = Pipes()
        try:
            os.makedirs(spec["scratch"], exist_ok=True)
            child = Child(process_id, token, 0, spec["scratch"], pipes)
            if parent is None:
                self._spawn(child, spec, env, pipes)
            else:
                self._ask_parent(parent, child, {**spec, "env": {**env, processes.TOKEN: token}}, pipes)
        except OSError:
            pipes.close()
            raise
        finally:
            pipes.close_theirs()
        self._watch(child)

    def _spawn(self, child: Child, spec: Dict[str, Any], env: Dict[str, str], pipes: Pipes) -> None:
        path = _write_json(child.directory, "spec.json", spec)
        records, output, control = pipes.theirs
        lines = {"GPUCI_RECORDS": str(records), "GPUCI_CONTROL": str(control), processes.TOKEN: child.token}
        child.popen = subprocess.Popen(
            [sys.executable, "-u", sys.argv[0], "worker", path],  # a crash loses no output
            cwd=os.path.join(spec["root_dir"], spec["root"]),
            env=_environment({**env, **lines}, spec["pythonpath"]),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(records, control),
            start_new_session=True,
            preexec_fn=self._in_child,
        )
        child.pid = child.popen.pid
        self._children[child.pid] = child

    def _ask_parent(self, parent: str, child: Child, spec: Dict[str, Any], pipes: Pipes) -> None:
        path = _write_json(child.directory, "spec.json", spec)
        self._unborn[child.id] = child
        forker = self._find(parent)
        if forker is not None:
            forker.pipes.send({"do": "fork", "path": path}, pipes.theirs)
        # Nobody else has the other ends: if nothing was sent, the pipe of records ends at once.

    def _watch(self, child: Child) -> None:
        for fd, read in ((child.pipes.records, self._read_records), (child.pipes.output, self._read_output)):
            os.set_blocking(fd, False)
            self._selector.register(fd, selectors.EVENT_READ, lambda fd, read=read: read(child, fd))

    # -- pipes -----------------------------------------------------------------------------------

    def _read_records(self, child: Child, fd: int) -> bool:
        """Pass on what is there; return whether there may be more."""
        data = self._read(fd)
        lines = child.lines.feed(data or b"")
        if not child.pid:
            if not lines and data != b"":
                return bool(data)
            self._see_birth(child, lines[:1])
            lines = lines[1:]
        for line in lines:
            _tell("record", child.id, line=line.decode("utf-8", "replace"))
        return bool(data)

    def _see_birth(self, child: Child, lines: List[bytes]) -> None:
        """The first record of a forked process names its pid; without one it was not forked."""
        pid = _orphan_named(lines)
        if pid is None or pid in self._children:
            self._give_up(child)
        else:
            del self._unborn[child.id]
            child.pid = pid
            self._children[pid] = child
            if child.signal is not None:
                processes.send(pid, child.signal)
        # It may be dead already. Not at once: first all that it said is passed on.
        os.write(self._wake, b"\0")

    def _give_up(self, child: Child) -> None:
        """Wait no longer for a process that was to be forked: when it comes, it finds nobody, and ends."""
        del self._unborn[child.id]
        for fd in (child.pipes.records, child.pipes.output):
            if fd in self._selector.get_map():
                self._selector.unregister(fd)
        child.pipes.close()
        child.pid = -1
        shutil.rmtree(child.directory, ignore_errors=True)
        _tell("unborn", child.id)

    def _read_output(self, child: Child, fd: int) -> bool:
        data = self._read(fd)
        child.tail = (child.tail + output.unmarked(data or b""))[-_TAIL:]
        if not child.stopped:  # what it says to that is of no use to anybody
            _tell_output(child.id, child.printed.feed(data or b"", self._allowance))
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
        if self._setup is not None and self._setup.is_dead:
            self._finish_setup(self._setup)
        dead = [child for pid, child in self._children.items() if processes.next_dead(os.P_PID, pid) == pid]
        # All at once: nobody is heard meanwhile.
        leaving = [child for child in dead if not child.stopped]
        gone = processes.let_end(
            lambda: {pid for child in leaving for pid in child.family()}, _LET_END_SECONDS
        )
        for child in dead:
            self._finish(self._children.pop(child.pid), clean=gone and child in leaving)
        while not self._unborn:  # an orphan may be one of those
            orphan = processes.next_dead(os.P_ALL, 0)
            setup = self._setup.pid if self._setup is not None else 0
            if orphan is None or orphan in self._children or orphan == setup:
                return  # a test process that died just now: its SIGCHLD is still to be read
            os.waitpid(orphan, 0)

    def _finish(self, child: Child, clean: bool) -> None:
        """Clean up while the process is a zombie, so that its pid can't be another's by now."""
        left_over = 0 if clean else processes.kill_all(child.family)
        code = child.wait()
        for fd, read in ((child.pipes.records, self._read_records), (child.pipes.output, self._read_output)):
            # What the process itself wrote fits into the pipe; one that got away may write for ever.
            for _chunk in range(_LARGEST_PIPE // _CHUNK):
                if fd not in self._selector.get_map() or not read(child, fd):
                    break
            if fd in self._selector.get_map():
                self._selector.unregister(fd)
        child.pipes.close()
        _tell_output(child.id, child.printed.end(self._allowance))
        # Here, where tests can be: a link that they made leads nowhere else.
        shutil.rmtree(child.directory, ignore_errors=True)
        tail = child.tail.decode("utf-8", "replace")
        name = processes.signal_name(-code) if code < 0 else None
        exit_code = code if code >= 0 else None
        told = {"tail": tail, "left_over": left_over, "dropped": child.printed.dropped, "born": True}
        _tell("exited", child.id, code=exit_code, signal=name, **told)


def _do_nothing(_number: int, _frame: Optional[FrameType]) -> None:
    return


def _death_pipe() -> Tuple[int, int]:
    """A descriptor that becomes readable with each SIGCHLD, and the one to write to for the same effect."""
    reader, writer = os.pipe()
    for fd in (reader, writer):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _do_nothing)
    return reader, writer


def _write_json(directory: str, name: str, content: Dict[str, Any]) -> str:
    path = os.path.join(directory, name)
    with open(path, "w", encoding="utf-8") as stream:
        json.dump(content, stream)
    return path


def _orphan_named(lines: List[bytes]) -> Optional[int]:
    """The pid that the first record of a forked process names, if that is a child of ours by now."""
    try:
        pid = json.loads(lines[0])["pid"]
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return int(pid)
    except (IndexError, KeyError, TypeError, ValueError, OverflowError, OSError):
        return None


def _environment(extra: Dict[str, str], pythonpath: List[str]) -> Dict[str, str]:
    env = {**os.environ, **extra}
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


def _tell_output(process_id: str, text: str) -> None:
    if text:
        _tell("output", process_id, text=text)


def main(directory: str) -> int:
    """Run the starter over its standard streams, or over named pipes; signals are the keeper's business."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # No SIG_IGN: test processes would inherit that.
        signal.signal(number, _do_nothing)
    processes.become_subreaper()
    if directory:
        processes.hide()  # what is written to its commands is obeyed
        try:
            link.take(directory)
        except OSError as error:
            sys.stderr.write("the keeper is gone: %s\n" % error)
            return 1
        python = sys.version.split()[0]
        _tell("hello", "", devices=probe.device_files(), root=probe.root_of_files(), python=python)
    return Starter().run()
