"""From a labeled pull request to its plan, on a repository of 10,000 files.

    python bench/event_to_plan.py [--files 10000] [--packages 50] [--rounds 3]

Makes the repository, serves it and a GitHub API over HTTP on this machine, and runs the programs of find-
changed, wait-for-label and calculate-shards as their actions do. Cold: without gpuci's own environment,
which is then made from an index of packages. Cached: with it, medians of some rounds. Prints seconds and
the share of each step. What a runner adds between jobs, and the way to GitHub and back, is not in it: the
number of requests is printed, for who wants to add that. Exit code 1 if the plan is not that of the changed
package and its users.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "scripts")]

PUSHED, LABELED = "2026-11-30T10:00:00Z", "2026-11-30T10:05:00Z"
# The programs, with the outputs of those before that each is given.
STEPS = {
    "find_changed": (),
    "wait_for_label": ("configuration", "affected"),
    "calculate_shards": ("configuration", "sha", "changes"),
}
NEED_PACKAGES = ("find_changed", "calculate_shards")
# What is measured inside of the programs; one that is called within another counts for itself.
PARTS = {
    "gpuci.repository.fetch.Repository._fetch": "fetch (git)",
    "gpuci.repository.history.merge_bases": "find the merge base (git)",
    "gpuci.repository.fetch.Repository.entries": "list the tree (git)",
    "gpuci.changes.read.compare_trees": "compare, read projects",
    "gpuci.changes.select.select": "select packages",
    "gpuci.config.load.load_config": "read the configuration",
    "gpuci.github.http.send": "ask the API",
    "gpuci.repository.unpack.unpack": "unpack the commit",
    "gpuci.discovery.discover.discover": "find the tests",
    "gpuci.planning.plan.make_plan": "plan",
}
TEST = """import pytest


@pytest.mark.gpu
@pytest.mark.parametrize("size", [1, 2, 4])
def test_forward_{n}(size):
    assert size


class TestBlock{n}:
    @pytest.mark.require_cuda_8gpu
    def test_wide(self):
        assert True
"""


class Clock:
    """Seconds by name; the time of a part within a part counts once, for the inner one."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since: list[tuple[str, float]] = []

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        now = time.perf_counter()
        self._add(now)
        self._since.append((name, now))
        try:
            yield
        finally:
            now = time.perf_counter()
            self._add(now)
            self._since.pop()
            if self._since:
                self._since[-1] = (self._since[-1][0], now)

    def _add(self, now: float) -> None:
        if self._since:
            name, since = self._since[-1]
            self.seconds[name] = self.seconds.get(name, 0.0) + now - since

    def watch(self, path: str, name: str) -> None:
        """Put a watched function in the place of a function or method, wherever it was imported by then."""
        module, owner, attribute = _owner(path)
        function = getattr(owner, attribute)

        @functools.wraps(function)
        def watched(*args: Any, **named: Any) -> Any:
            with self.part(name):
                return function(*args, **named)

        setattr(owner, attribute, watched)
        for other in [
            one for key, one in sys.modules.items() if key.startswith("gpuci.") and one is not module
        ]:
            if getattr(other, attribute, None) is function:
                setattr(other, attribute, watched)


def _owner(path: str) -> tuple[Any, Any, str]:
    """The module of a dotted path, what holds the last name, and that name."""
    names = path.split(".")
    for count in range(len(names) - 1, 0, -1):
        try:
            module = importlib.import_module(".".join(names[:count]))
        except ModuleNotFoundError:
            continue
        return module, functools.reduce(getattr, names[count:-1], module), names[-1]
    raise LookupError(path)


def inside(program: str) -> int:
    """One program of an action in this process, with the clock on; leaves the seconds in a file."""
    from gpuci.github import entry, private

    if program in NEED_PACKAGES:
        private.enter(os.environ)
    importlib.import_module(f"gpuci.steps.{program}")
    clock = Clock()
    for path, name in PARTS.items():
        clock.watch(path, name)
    code = entry.main(program, needs_packages=False)
    Path(os.environ["BENCH_SECONDS"]).write_text(json.dumps(clock.seconds))
    return code


def stream(files: int, packages: int) -> Iterator[bytes]:
    """The history as `git fast-import` reads it: a tree, 200 commits on main, a branch of one before those.

    Each package needs the one before it in its group of ten; a fifth of the files are tests.
    """
    each = max(1, files // packages - 1)
    blobs: dict[str, str] = {".github/gpuci.yml": "packages: [libs/*]\nprofiles: {h100: {gpus: 8}}\n"}
    for package in range(packages):
        need = f'"lib-{package - 1}"' if package % 10 else ""
        text = f'[project]\nname = "lib-{package}"\ndependencies = [{need}]\n[tool.pytest.ini_options]\n'
        blobs[f"libs/lib{package}/pyproject.toml"] = text
        for number in range(each):
            name = f"tests/test_{number}.py" if number % 5 == 0 else f"src/lib{package}/module_{number}.py"
            content = TEST if number % 5 == 0 else 'VALUE = "{n}"\n' * 50
            blobs[f"libs/lib{package}/{name}"] = content.replace("{n}", f"{package}_{number}")
    yield _commit("main", blobs)
    yield b"reset refs/heads/topic\nfrom refs/heads/main\n\n"
    yield _commit("topic", {f"libs/lib{packages // 2}/src/changed.py": "VALUE = 1\n"})
    for number in range(200):
        yield _commit("main", {f"libs/lib0/src/lib0/more_{number}.py": f"VALUE = {number}\n"})
    yield b"done\n"


def _commit(branch: str, blobs: Mapping[str, str]) -> bytes:
    lines = [f"commit refs/heads/{branch}\ncommitter u <u@x> 1700000000 +0000\ndata 1\nx\n"]
    lines += [f"M 644 inline {path}\ndata {len(text)}\n{text}\n" for path, text in blobs.items()]
    return "".join([*lines, "\n"]).encode()


def made(directory: Path, files: int, packages: int) -> tuple[str, str]:
    """Make the bare repository; returns the head of the pull request and that of main."""
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", directory], check=True)
    data = b"".join(stream(files, packages))
    subprocess.run(["git", "fast-import", "--quiet", "--done"], cwd=directory, input=data, check=True)
    names = ["git", "rev-parse", "topic", "main"]
    head, main = subprocess.run(
        names, cwd=directory, capture_output=True, text=True, check=True
    ).stdout.split()
    return head, main


class Chain:
    """The three programs, one after the other, each with the outputs of those before it."""

    def __init__(self, scratch: Path, url: str, event: Path, head: str) -> None:
        self.scratch = scratch
        self.outputs: dict[str, str] = {}
        (scratch / "tools").mkdir(exist_ok=True)
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(scratch),
            "GITHUB_API_URL": url,
            "GITHUB_SERVER_URL": url,
            "GITHUB_EVENT_NAME": "pull_request_target",
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_REPOSITORY": "org/mono",
            "GITHUB_REF": "refs/heads/main",
            "GITHUB_SHA": head,
            "GITHUB_RUN_ID": "1",
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_OUTPUT": str(scratch / "output"),
            "GITHUB_STEP_SUMMARY": str(scratch / "summary"),
            "RUNNER_TEMP": str(scratch),
            "RUNNER_TOOL_CACHE": str(scratch / "tools"),
            "BENCH_SECONDS": str(scratch / "seconds"),
            "GPUCI_TOKEN": "job",
            **{
                name: text
                for name, text in os.environ.items()
                if name.startswith("PIP_") or "proxy" in name.lower()
            },
        }

    def environment(self) -> float:
        """Seconds to find or make gpuci's own environment."""
        program = (
            f"import os, sys; sys.path.insert(0, {str(REPOSITORY / 'scripts')!r})\n"
            "from gpuci import environment; from gpuci.github import private\n"
            "environment.ensure(*private.place(os.environ), private.REQUIREMENTS)"
        )
        started = time.perf_counter()
        self._start([sys.executable, "-I", "-c", program], ())
        return time.perf_counter() - started

    def step(self, name: str) -> dict[str, float]:
        """Seconds of a program by part."""
        (self.scratch / "output").write_text("")
        started = time.perf_counter()
        self._start([sys.executable, "-I", __file__, "--inside", name], STEPS[name])
        whole = time.perf_counter() - started
        lines = (self.scratch / "output").read_text().splitlines()
        found = {line.partition("<<")[0]: text for line, text in pairwise(lines) if "<<gpuci-" in line}
        self.outputs |= found
        seconds: dict[str, float] = json.loads((self.scratch / "seconds").read_text())
        return {**seconds, "start Python, import, write": whole - sum(seconds.values())}

    def _start(self, command: list[str], inputs: Sequence[str]) -> None:
        given = {f"GPUCI_{name.upper()}": self.outputs[name] for name in inputs}
        done = subprocess.run(
            command, env={**self.environ, **given}, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise SystemExit(done.stdout + done.stderr)


def run(chain: Chain) -> tuple[dict[tuple[str, str], float], list[str]]:
    """Seconds by (step, part), and the packages that were planned."""
    rows = {("set-up", "find or make the environment"): chain.environment()}
    for step in STEPS:
        rows |= {(step.replace("_", "-"), part): seconds for part, seconds in chain.step(step).items()}
    plan = json.loads(Path(chain.outputs["plan"]).read_text())
    return rows, sorted({unit["file"].split("/")[1] for unit in plan["units"]})


def table(cold: Mapping[tuple[str, str], float], cached: Mapping[tuple[str, str], float]) -> str:
    """Seconds and shares, parts by step."""
    totals = sum(cold.values()), sum(cached.values())
    lines = [f"{'':<46}{'cold':>9}{'share':>8}{'cached':>9}{'share':>8}"]
    for key in cold:
        name = f"{key[0]:<17} {key[1]}"
        cells = (
            f"{side.get(key, 0):>8.2f}s{side.get(key, 0) / total:>8.0%}"
            for side, total in zip((cold, cached), totals, strict=True)
        )
        lines.append(f"{name:<46}{''.join(cells)}")
    return "\n".join([*lines, f"{'event to plan':<46}{totals[0]:>8.2f}s{'':>8}{totals[1]:>8.2f}s"])


def medians(rounds: list[dict[tuple[str, str], float]]) -> dict[tuple[str, str], float]:
    """The median of each part."""
    return {key: statistics.median(one.get(key, 0.0) for one in rounds) for key in rounds[0]}


def measure(files: int, packages: int, rounds: int, scratch: Path) -> int:
    """Serve, run, print; returns the exit code."""
    from tests.fakes.github.endpoints import pull_document
    from tests.fakes.github.server import Server
    from tests.fakes.github.state import Pull, Repository, State, Token

    head, base = made(scratch / "mono.git", files, packages)
    pull = Pull(12, head, base, head_repository="org/mono", author="ada", labels=["run-gpu-tests"])
    selected = {"deployment_branch_policy": {"protected_branches": False, "custom_branch_policies": True}}
    repository = Repository(
        "org/mono",
        git=str(scratch / "mono.git"),
        pulls={12: pull},
        collaborators={"ada": "write"},
        check_suites={head: [PUSHED]},
        environments={"gpu": {**selected, "branch_policies": ["main"]}},
    )
    may = dict.fromkeys(("pull-requests", "statuses"), "write") | dict.fromkeys(
        ("actions", "checks", "contents"), "read"
    )
    with Server(State([repository], {"job": Token(may)})) as server:
        document = pull_document("org/mono", pull, {}) | {"updated_at": LABELED}
        payload = {"action": "labeled", "label": {"name": "run-gpu-tests"}, "pull_request": document}
        payload |= {"sender": {"login": "ada", "type": "User"}, "repository": {"default_branch": "main"}}
        (scratch / "event.json").write_text(json.dumps(payload))
        chain = Chain(scratch, server.url, scratch / "event.json", head)
        cold, planned = run(chain)
        before = len(server.requests)
        cached = medians([run(chain)[0] for _ in range(rounds)])
        requests = (len(server.requests) - before) // rounds
    print(f"{files:,} files in {packages} packages; planned: {len(planned)} packages")
    print(table(cold, cached))
    print(f"{requests} requests to the server each time, of git and of the API")
    first = packages // 2
    return 0 if planned == sorted(f"lib{number}" for number in range(first, first // 10 * 10 + 10)) else 1


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--packages", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--inside", choices=STEPS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        return inside(args.inside)
    with tempfile.TemporaryDirectory(prefix="gpuci-bench-") as scratch:
        return measure(args.files, args.packages, args.rounds, Path(scratch))


if __name__ == "__main__":
    sys.exit(main())
