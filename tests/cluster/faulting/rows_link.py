"""Faults between the runner and the login node."""

from __future__ import annotations

import os
import signal
import time

from tests.cluster.bed.lines import proxy
from tests.cluster.bed.processes import wait_for
from tests.cluster.faulting.door import Door, comm, pids, words
from tests.cluster.faulting.rows import row
from tests.cluster.faulting.scene import Scene
from tests.cluster.faulting.trees import TreeSpec

LONG = TreeSpec(files=3, tests=8, seconds=(0.5, 1.5))


def masters(scene: Scene) -> list[int]:
    """The ssh processes that hold a connection of this run."""
    ours = [pid for pid in pids() if comm(pid) == "ssh" and str(scene.top) in words(pid)]
    return [pid for pid in ours if "-N" in words(pid).split()]


@row("master-killed", times=20)
def kill_the_master(scene: Scene) -> None:
    """kill -9 of the ssh that holds the connection."""
    scene.start()
    when = scene.moment()
    victims = masters(scene)
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    scene.planted = f"{len(victims)} master killed {when}"


@row("session-killed", times=20)
def kill_the_session(scene: Scene) -> None:
    """The server's processes of the connection are killed."""
    scene.start()
    when = scene.moment()
    scene.planted = f"{scene.door.kill_sessions()} processes of the connection killed {when}"


@row("link-silent", times=20, tree=LONG)
def silence(scene: Scene) -> None:
    """Nothing passes for 60 s, and nobody is told."""
    with proxy(f"{scene.door.host}:{scene.door.port}") as line:
        scene.settings["port"] = line.port
        scene.door.known_hosts = scene.door.known_hosts.replace(str(scene.door.port), str(line.port))
        scene.start()
        scene.planted = f"60 s of silence {scene.moment()}"
        line.tell("silent")
        time.sleep(60)
        line.tell("pass")
        scene.finish(120)


@row("sshd-restarted", variants=("listener", "all"))
def restart_sshd(scene: Scene) -> None:
    """sshd is started again; sessions go on, or end with it."""
    scene.start()
    scene.planted = scene.moment()
    scene.door.stop(sessions=scene.variant == "all")
    scene.door.start()


@row("login-host-gone")
def lose_a_login_host(scene: Scene) -> None:
    """The first of two login hosts is away for good."""
    second = Door(scene.place, scene.top, scene.key, number=2, port=scene.door.port)
    scene.doors.append(second)
    scene.start()
    scene.planted = scene.moment()
    scene.door.stop()


@row("cancel-in-delivery", times=20, tree=TreeSpec(ballast=200_000_000))
def cancel_while_delivering(scene: Scene) -> None:
    """SIGINT while the archive travels."""
    share = scene.rng.uniform(0.02, 0.9)
    runner = scene.start()
    trees = scene.shared / "trees"

    def arrived() -> bool:
        sizes = [path.stat().st_size for path in trees.glob(".partial-*")] if trees.exists() else []
        return any(size >= share * scene.row.tree.ballast for size in sizes)

    while not _quietly(arrived) and runner.alive:
        time.sleep(0.002)
    runner.signal(signal.SIGINT)
    scene.planted = f"SIGINT after {share:.0%} of the archive"
    scene.finish(60)
    if not wait_for(lambda: not list(trees.glob(".partial*")), 10):
        scene.notes.append("a part of the archive is left on the shared folder")


def _quietly(look: object) -> bool:
    try:
        return bool(look())  # type: ignore[operator]
    except OSError:
        return False  # a file that is gone by now
