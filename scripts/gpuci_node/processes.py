"""Finding and ending processes on Linux, whatever they did to get away.

Runs on the compute node (Python >= 3.8, standard library only).
"""

import contextlib
import ctypes
import os
import signal
import time
from typing import Callable, Dict, Iterator, List, Optional, Set, Tuple

# <linux/prctl.h>
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36

DUMP_SIGNAL = signal.SIGRTMIN + 7  # the supervisor asks for all stacks; tests use SIGUSR1 and SIGUSR2

# Around what pytest's own reporter prints: the log has our records for that, and only wants the rest.
REPORTER_BEGIN, REPORTER_END = b"\x1e", b"\x1f"

TOKEN = "GPUCI_PROCESS"  # environment variable that marks every descendant of one test process


def become_subreaper() -> None:
    """Make orphans of our descendants our children (prctl(2), Linux >= 3.4); raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def hide() -> None:
    """Keep memory and descriptors of this process from others of the same user (prctl(2), proc(5))."""
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def die_with_parent() -> Callable[[], None]:
    """Return a function for `preexec_fn`: the kernel kills the child when its parent dies."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def in_child() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    return in_child


def parents_and_sessions() -> Dict[int, Tuple[int, int]]:
    """Map each living process to (parent, session), from /proc/PID/stat (proc(5)); zombies are left out."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % name, "rb") as stream:
                # The second field may hold spaces and brackets: cut after the last bracket.
                fields = stream.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[0] not in (b"Z", b"X"):
            found[int(name)] = (int(fields[1]), int(fields[3]))
    return found


def _carries(pid: int, token: str) -> bool:
    try:
        with open("/proc/%d/environ" % pid, "rb") as stream:
            return ("%s=%s" % (TOKEN, token)).encode() in stream.read().split(b"\0")
    except OSError:
        return False


def family(leader: int, token: str) -> Set[int]:
    """All living processes of a test process but itself: by session, descent or token.

    They are among the descendants of the caller, to whom orphans go: a node may have thousands of others.
    """
    table = parents_and_sessions()
    ours = set(_below(os.getpid(), table))
    members = {pid for pid in ours if table[pid][1] == leader} | set(_below(leader, table))
    members |= {pid for pid in ours - members if _carries(pid, token)}
    return members - {leader}


def _below(pid: int, table: Dict[int, Tuple[int, int]]) -> Iterator[int]:
    children: Dict[int, List[int]] = {}
    for child, (parent, _session) in table.items():
        children.setdefault(parent, []).append(child)
    queue = [pid]
    while queue:
        found = children.get(queue.pop(), [])
        yield from found
        queue += found


def descendants(pid: int) -> Set[int]:
    """All living processes below `pid`."""
    return set(_below(pid, parents_and_sessions()))


def kill_all(find: Callable[[], Set[int]], seconds: float = 2.0) -> int:
    """SIGKILL what `find` returns until that is nothing (a bomb needs several rounds); return how many."""
    killed: Set[int] = set()
    end = time.monotonic() + seconds
    while True:
        living = find()
        if not living or time.monotonic() > end:
            return len(killed)
        for pid in living:
            send(pid, signal.SIGKILL)
        killed |= living
        reap_orphans(living)


def let_end(find: Callable[[], Set[int]], seconds: float) -> bool:
    """Wait until `find` returns nothing, but not longer than this; return whether that came about."""
    end = time.monotonic() + seconds
    while find():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def next_dead(kind: int, pid: int) -> Optional[int]:
    """The pid of a dead child (any, or this one) that is still to be waited for, or None."""
    try:
        found = os.waitid(kind, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return None if found is None else found.si_pid


def reap_orphans(pids: Set[int]) -> None:
    """Collect those of `pids` that are our children by now, so that no zombie stays."""
    for pid in pids:
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            continue


def signal_name(number: int) -> str:
    """`SIGSEGV`; real-time signals have a number only."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return "signal %d" % number


def send(pid: int, number: int) -> None:
    """Send a signal; a process that is gone, or another user's by now (sudo), is no error."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
