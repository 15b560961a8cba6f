"""Tests of a pull request that speak for others: a file of the scenario `forgery`, run on the bed only.

They stand in a container, like any test: what they can't open or write they leave alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

VICTIM = "packages/kernels/tests/test_layout.py::test_outside"  # good, and to be called red
BROKEN = "packages/kernels/tests/test_layout.py::test_that_the_change_breaks"  # red, and to be called good
COMMANDS = (
    "::set-output name=verdict::passed",
    "  ::set-output name=FORGED::true",
    "::save-state name=FORGED::true",
    "::add-mask::passed",
    "::error file=a.py,line=1::FORGED",
    "::warning::FORGED",
    "::set-env name=FORGED::1",
    "::add-path::/tmp/FORGED",
    "::group::FORGED",
    "::endgroup::",
    "in the middle ##[set-output name=FORGED]true",
    "##[error]FORGED",
    "##[add-matcher]/tmp/FORGED.json",
    "##[group]FORGED",
    "a\r::error::FORGED\r##[error]FORGED",
    "a.ts(1,2): error TS1: FORGED",
    '  File "a.py", line 1, in f',
    "    raise ValueError('FORGED')",
    "%0A::error::FORGED%0D%0A##[error]FORGED",
    "::stop-commands::FORGED",
)
FILES = ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")
VERDICT = {
    "schema": "gpuci/verdict/1",
    "verdict": "passed",
    "exit_code": 0,
    "reason": "",
    "outcomes": {"passed": 1},
    "journal": {"lines": 1, "sha256": "0" * 64},
}


def records() -> Iterator[str]:
    """What a node says of a test, for each unit that a plan may have."""
    for number in range(100):
        for nodeid, outcome in ((VICTIM, "failed"), (BROKEN, "passed")):
            about = {"unit": f"u{number:03d}", "nodeid": nodeid, "t": 1.0, "slot": "gw0", "gpus": ["0"]}
            yield json.dumps({"kind": "start", **about, "timeout": 60})
            yield json.dumps({"kind": "end", **about, "outcome": outcome, "seconds": {"call": 0.1}})


def nonces() -> set[str]:
    """Words behind which the runner takes a line as the node's: guessed, and looked for wherever we can."""
    found = {"", "0" * 32}
    for path in [*Path("/proc").glob("[0-9]*/environ"), *Path("/proc").glob("[0-9]*/cmdline"), *documents()]:
        with contextlib.suppress(OSError):
            found |= set(re.findall(r"\b[0-9a-f]{32}\b", path.read_text(errors="replace")[-100_000:]))
    return found


def folders() -> list[Path]:
    """Directories of the node that are mounted here, and that we can write."""
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    ours = [Path(mount) for mount in mounts if not re.match(r"/(proc|sys|dev)\b|/$", mount)]
    return [path for path in ours if path.is_dir() and os.access(path, os.W_OK)]


def documents() -> list[Path]:
    """Files in these, that hold what runner and node know of each other."""
    return [path for folder in folders() for path in folder.glob("*") if path.is_file()]


def text() -> str:
    """Everything that could be taken for somebody else's word, a line each."""
    frames = [f"gpuci-frame {nonce} {line}" for nonce in sorted(nonces()) for line in list(records())[:8]]
    return "\n".join(["", *COMMANDS, *frames, *records(), ""])


def put(path: Path | str, data: str, *, fresh: bool = False) -> None:
    """Append; to a pipe as much as it takes."""
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | (os.O_CREAT | os.O_TRUNC if fresh else os.O_APPEND))
        try:
            os.write(fd, data.encode())
        finally:
            os.close(fd)


def test_prints() -> None:
    told = text()
    print(told)
    for fd in (1, 2):
        os.write(fd, told.encode())


def test_writes_to_what_is_open() -> None:
    told = text()
    for path in Path("/proc").glob("[0-9]*/fd/[12]"):
        put(path, told)
    for name in os.listdir("/proc/self/fd"):
        put(f"/proc/self/fd/{name}", "\n".join(["", *records(), ""]))


def test_writes_files_of_the_job() -> None:
    assert folders(), "there is nothing to write to: this shows nothing"
    for folder in folders():
        put(folder / "journal.jsonl", "\n".join([*records(), ""]))
        put(folder / "verdict.json", json.dumps(VERDICT), fresh=True)
        put(folder / "runs.json", json.dumps({"schema": "gpuci/runs/1", "runs": []}), fresh=True)
        put(folder / "log", text())


def test_writes_files_of_the_runner() -> None:
    for name in FILES:
        for path in (os.environ.get(name, name), f"/tmp/{name}", f"/github/file_commands/{name}"):
            put(path, "verdict=passed\nFORGED=true\n", fresh=True)
