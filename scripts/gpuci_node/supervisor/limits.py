"""Limits of living processes: first their stacks are asked for, then they are killed. Pure.

Runs on the compute node (Python >= 3.8, standard library only).
"""

from typing import Mapping, Optional

from gpuci_node.supervisor.effects import Dump, Effects, Kill
from gpuci_node.supervisor.process import Living

DUMP_SECONDS = (
    3.0  # for a test process, on a busy node, to write its stacks, or to go on if that ended its hang
)


def next_deadline(living: Mapping[str, Living]) -> Optional[float]:
    """The earliest deadline of a process that was not killed yet, or None."""
    known = [process.deadline for process in living.values() if not process.killed]
    return min((deadline for deadline in known if deadline != float("inf")), default=None)


def enforce(living: Mapping[str, Living], now: float) -> Effects:
    """What is to be done to the processes that are past their deadline."""
    effects: Effects = []
    for process_id, process in living.items():
        if process.killed or now < process.deadline:
            continue
        if process.timed_out:
            process.killed = True
            effects.append(Kill(process_id))
        else:
            process.timed_out = process.over_limit
            process.deadline = now + DUMP_SECONDS
            effects.append(Dump(process_id))
    return effects
