"""Faults of the runner: killed, cancelled, started twice."""

from __future__ import annotations

import os
import signal
import time

from tests.cluster.faulting.rows import row
from tests.cluster.faulting.scene import Scene
from tests.cluster.faulting.trees import TreeSpec

LONG = TreeSpec(files=3, tests=12, seconds=(0.5, 1.5))
LEASE_SECONDS = 10
# GitHub: SIGINT, 7.5 s, SIGTERM, 2.5 s, SIGKILL (runner's documentation of cancellation, 2026).
GITHUB_SECONDS = 7.5

STUBBORN = """
import signal
import subprocess
import sys


def test_stubborn():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    subprocess.Popen([sys.executable, "-c", code])
    time.sleep(600)
"""
DAEMON = """
import subprocess
import sys


def test_leaves_a_daemon():
    code = "import os, time\\nif os.fork() == 0:\\n os.setsid()\\n if os.fork() == 0:\\n  time.sleep(600)"
    subprocess.run([sys.executable, "-c", code], check=True)
"""
STUBBORN_TREE = TreeSpec(files=1, tests=2, extra={"tests/test_z.py": (STUBBORN, ("test_stubborn",))})
DAEMON_TREE = TreeSpec(files=1, tests=3, extra={"tests/test_z.py": (DAEMON, ("test_leaves_a_daemon",))})


@row(
    "runner-killed",
    times=20,
    variants=("lease", "takeover", "takeover", "clean-up"),
    tree=LONG,
    slurm={"lease-seconds": LEASE_SECONDS},
)
def kill_the_runner(scene: Scene) -> None:
    """SIGKILL: the lease ends the job, another runner takes it over, or the clean-up step ends it."""
    if scene.variant != "lease":
        scene.settings["lease-seconds"] = 300
    runner = scene.start()
    scene.planted = f"after {scene.tests_ended()} tests" if scene.variant == "lease" else scene.moment(0.7)
    runner.kill()
    if scene.variant == "takeover":
        _age(scene)
        scene.another()
    elif scene.variant == "clean-up":
        cleaner = scene.another("clean-up")
        if not cleaner.wait(60) or cleaner.code:
            scene.notes.append(f"clean-up ended with {cleaner.code}: {cleaner.said[-300:]}")


def _age(scene: Scene) -> None:
    """What a minute without a runner does to the lease: the job's own clock is not changed by it."""
    lease = scene.directory() / "lease"
    then = time.time() - 120
    if lease.exists():
        os.utime(lease, (then, then))


@row("two-runners", times=20, variants=("at once", "while it runs"))
def start_twice(scene: Scene) -> None:
    """The same attempt of the same run is started twice: one goes on, the other says so and leaves."""
    first = scene.start()
    if scene.variant == "while it runs":
        scene.planted = f"after {scene.tests_ended()} tests"
    second = scene.another()
    scene.finish(120)
    winner = first if first.code == 0 else second
    loser = second if winner is first else first
    scene.columns["loser"] = loser.code
    scene.runners = [loser, winner]
    if "followed by another runner" not in loser.said:
        scene.notes.append(f"the other one said {loser.said[-300:]!r}")


@row("sigint", tree=LONG)
def interrupt(scene: Scene) -> None:
    """SIGINT to the runner."""
    runner = scene.start()
    scene.planted = scene.moment(0.7)
    runner.signal(signal.SIGINT)


@row("sigterm", tree=LONG)
def terminate(scene: Scene) -> None:
    """SIGTERM to the runner."""
    runner = scene.start()
    scene.planted = scene.moment(0.7)
    runner.signal(signal.SIGTERM)


@row("sigint-sigterm", variants=("quick", "slow"), tree=STUBBORN_TREE)
def cancel_as_github_does(scene: Scene) -> None:
    """SIGINT, 7.5 s later SIGTERM; a test ignores both, and scancel answers at once, or too late."""
    if scene.variant == "slow":
        scene.settings["lease-seconds"] = LEASE_SECONDS
        scene.leaves.add("results")  # what ended after the first signal: there is no time to fetch it
        scene.door.wrap("scancel", 'sleep 20; exec "$real" "$@"')
    runner = scene.start()
    scene.wait("the stubborn test", lambda: any("stubborn" in line.nodeid for line in scene.seen("start")))
    started = time.monotonic()
    runner.signal(signal.SIGINT)
    runner.wait(GITHUB_SECONDS)
    if runner.alive:
        runner.signal(signal.SIGTERM)
        if not runner.wait(2.5):
            scene.notes.append("the runner was still there when GitHub kills")
    scene.planted = f"gone after {time.monotonic() - started:.1f} s"


@row("ignores-term", variants=("none", "podman"), tree=STUBBORN_TREE, runtime="podman")
def cancel_a_stubborn_payload(scene: Scene) -> None:
    """A payload that ignores SIGTERM, in a container and without."""
    _runtime(scene)
    runner = scene.start()
    scene.wait(
        "the stubborn test", lambda: any("stubborn" in line.nodeid for line in scene.seen("start")), 90
    )
    runner.signal(signal.SIGINT)


@row("double-fork", variants=("none", "podman"), tree=DAEMON_TREE, runtime="podman")
def leave_a_daemon(scene: Scene) -> None:
    """A test that leaves a daemon of its own session."""
    _runtime(scene)
    scene.start()


def _runtime(scene: Scene) -> None:
    scene.runtime = scene.variant
    scene.planted = f"runtime {scene.variant}"
