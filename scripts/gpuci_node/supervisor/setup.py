"""`container.setup`: a shell text that runs once before the tests; they get the environment that it leaves.

Runs on the compute node, inside the container (Python >= 3.8, standard library only).
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from typing import Any, Callable, Dict, Optional

from gpuci_node import processes
from gpuci_node.supervisor.output import Allowance, Printed

_TAIL = 4096

# The text is read by the shell itself, so that what it sources and exports counts; `set -e`: the first
# command that fails is the end. The environment comes last, by a Python that the text can't have replaced.
_SHELL = "set -e; . %s; exec %s -I -c %s %s"  # no "$1": the text may set those anew
_WRITE = "import json, os, sys; json.dump(dict(os.environ), open(sys.argv[1], 'w'))"
_SHELLS_OWN = ("_", "SHLVL", "PWD", "OLDPWD")


class Setup:
    """The running set-up. Servers that it starts live until the job ends."""

    def __init__(self, text: str, directory: str, tree: str) -> None:
        os.makedirs(directory, exist_ok=True)
        path = os.path.join(directory, "setup.sh")
        self._environment = os.path.join(directory, "setup.json")
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write(text + "\n")
        shell = shutil.which("bash") or "/bin/sh"
        words = (path, sys.executable, _WRITE, self._environment)
        self._process = subprocess.Popen(
            [shell, "-c", _SHELL % tuple(map(shlex.quote, words)), "setup"],
            cwd=tree,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=processes.die_with_parent(),
        )
        assert self._process.stdout is not None
        self.fd = self._process.stdout.fileno()
        os.set_blocking(self.fd, False)
        self.pid = self._process.pid  # 0 once it was waited for
        self._printed = Printed()
        self._tail = b""

    @property
    def is_dead(self) -> bool:
        """Whether it ended and is still to be waited for."""
        return self.pid != 0 and processes.next_dead(os.P_PID, self.pid) == self.pid

    def read(self, allowance: Allowance) -> Optional[str]:
        """What it printed, as far as the log takes it; None at the end."""
        try:
            data = os.read(self.fd, 1 << 16)
        except BlockingIOError:
            return ""
        if not data:
            return None
        self._tail = (self._tail + data)[-_TAIL:]
        return self._printed.feed(data, allowance)

    def finish(self, allowance: Allowance, tell: Callable[[str], None]) -> Dict[str, Any]:
        """It is dead: take its environment over; return how it ended. `tell` gets its last words."""
        code, self.pid = self._process.wait(), 0
        while True:
            text = self.read(allowance)
            if not text:
                break
            tell(text)
        tell(self._printed.end(allowance))
        if code == 0:
            _take_over(self._environment)
        return {
            "code": code if code >= 0 else None,
            "signal": processes.signal_name(-code) if code < 0 else None,
            "tail": self._tail.decode("utf-8", "replace"),
            "dropped": self._printed.dropped,
        }


def _take_over(path: str) -> None:
    """Make the environment in a file ours; a text that ends by `exit` leaves none."""
    try:
        with open(path, encoding="ascii") as stream:
            found = json.load(stream)
    except FileNotFoundError:
        return
    kept = {name: os.environ[name] for name in _SHELLS_OWN if name in os.environ}
    os.environ.clear()
    os.environ.update({name: value for name, value in found.items() if name not in _SHELLS_OWN})
    os.environ.update(kept)
