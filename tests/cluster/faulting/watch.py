"""Keeps an eye on a run's shared folder: holds the logs that are removed later, remembers what is secret."""

from __future__ import annotations

import os
import threading
from pathlib import Path

STEP_SECONDS = 0.1


class Watch:
    """`logs` are open files of the jobs' logs by job name: they can be read after the runner removed them."""

    def __init__(self, shared: Path) -> None:
        self._jobs = shared / "jobs"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.logs: dict[str, int] = {}
        self.tokens: set[str] = set()
        self.open_to_others: set[str] = set()

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look a last time, and close the files."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        for fd in self.logs.values():
            os.close(fd)
        self.logs.clear()

    def log(self, name: str) -> bytes | None:
        """The log of a job as the cluster has it; None when there was none."""
        if name not in self.logs:
            return None
        return os.pread(self.logs[name], os.fstat(self.logs[name]).st_size, 0)

    def _run(self) -> None:
        while not self._stop.wait(STEP_SECONDS):
            self.look()

    def look(self) -> None:
        """Look once."""
        try:
            folders = [folder for folder in self._jobs.iterdir() if folder.name.startswith("gpuci-faults")]
        except OSError:
            return
        for folder in folders:
            try:
                self._look_into(folder)
            except OSError:
                continue  # it is being made, or removed

    def _look_into(self, folder: Path) -> None:
        self.tokens.add((folder / "token").read_text().strip())
        for path in (folder, folder / "token", folder / "job.json"):
            if path.stat().st_mode & 0o077:
                self.open_to_others.add(path.name)
        if folder.name not in self.logs and (folder / "slurm.out").is_file():
            self.logs[folder.name] = os.open(folder / "slurm.out", os.O_RDONLY)
