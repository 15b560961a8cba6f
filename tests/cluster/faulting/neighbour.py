"""A job directory, a tree and the node's code of another run: none of it is to be touched."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import time
from pathlib import Path

from tests.cluster.bed.place import USER

NAME = "gpuci-faults.neighbour-x1-a1-s1-t1"
FILES = {
    f"jobs/{NAME}/token": f"{secrets.token_hex(16)}\n",
    f"jobs/{NAME}/owner.01": "1" * 16 + "\n",
    f"jobs/{NAME}/lease": "000000000007",
    f"jobs/{NAME}/job.json": "{}",
    f"jobs/{NAME}/slurm.out": "a log\n",
    f"jobs/{NAME}/out/journal.jsonl": "{}\n",
    f"jobs/{NAME}/claim/job": "1\n",
    f"trees/{'a' * 64}.tar": "a tree",
    f"nodes/{'b' * 64}.pyz": "code",
    "notes": "of somebody else\n",
}
# In use is what was written within the hour (delivery's rule); this run is to find it a while old.
AGE_SECONDS = 1500.0


class Neighbour:
    """Plants them below `shared`, and says later what was done to them."""

    def __init__(self, shared: Path) -> None:
        self._paths = [shared / name for name in FILES]
        self._folders = [
            shared / "jobs" / NAME,
            shared / "jobs" / NAME / "out",
            shared / "jobs" / NAME / "claim",
        ]
        for path, text in zip(self._paths, FILES.values(), strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o600)
        for path in shared.rglob("*"):
            shutil.chown(path, USER, USER)
        then = time.time() - AGE_SECONDS
        for path in (*self._paths, *self._folders):
            if path.is_dir():
                path.chmod(0o700)
            os.utime(path, (then, then))
        self._before = self._state()

    def _state(self) -> dict[str, str]:
        return {str(path): _state(path) for path in (*self._paths, *self._folders)}

    def touched(self) -> list[str]:
        """The names of what is another now."""
        now = self._state()
        return [Path(name).name for name, state in self._before.items() if now[name] != state]


def _state(path: Path) -> str:
    try:
        facts = path.stat()
        content = (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else str(sorted(os.listdir(path)))
        )
    except OSError as error:
        return str(error)
    return f"{facts.st_mode} {facts.st_uid} {facts.st_ino} {facts.st_mtime_ns} {content}"
