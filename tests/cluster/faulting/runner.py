"""`run_gpu_shard.py` as a process: what an Actions step starts, and what GitHub does to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Product:
    """The scripts under test, a Python for them, their name in the ledger; no `mutant`: the real ones."""

    scripts: Path
    python: str
    commit: str
    mutant: str = ""


class Runner:
    """One process; its streams go to files."""

    def __init__(self, directory: Path, product: Product, environ: dict[str, str], *arguments: str) -> None:
        directory.mkdir()
        temporary = directory / "t"
        temporary.mkdir()
        self.out = directory / "out"
        self.streams = (directory / "stdout", directory / "stderr")
        system = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        with self.streams[0].open("wb") as stdout, self.streams[1].open("wb") as stderr:
            self._process = subprocess.Popen(
                [product.python, "-I", str(product.scripts / "run_gpu_shard.py"), *arguments],
                env={
                    **system,
                    "HOME": str(directory),
                    "TMPDIR": str(temporary),
                    "GPUCI_OUT": str(self.out),
                    **environ,
                },
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        self.pid = self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def signal(self, number: int) -> None:
        """To the process alone, as GitHub does."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and wait."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def wait(self, seconds: float) -> bool:
        """Whether it ended within the time."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    @property
    def code(self) -> int | None:
        """Its exit code, negative after a signal."""
        return self._process.poll()

    @property
    def said(self) -> str:
        """Both streams so far."""
        return "".join(path.read_text(errors="replace") for path in self.streams)

    def report(self) -> dict[str, Any] | None:
        """report.json, if it got so far."""
        try:
            document: dict[str, Any] = json.loads((self.out / "report.json").read_bytes())
        except FileNotFoundError:
            return None
        return document
