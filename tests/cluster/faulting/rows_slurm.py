"""Faults of Slurm's daemons, and what its users and admins do to a job."""

from __future__ import annotations

import contextlib
import os
import signal
import time

from tests.cluster.faulting.door import comm, environ, pids, words
from tests.cluster.faulting.rows import row
from tests.cluster.faulting.scene import NeverCame, Scene
from tests.cluster.faulting.trees import TreeSpec

LONG = TreeSpec(files=3, tests=12, seconds=(0.5, 1.5))
# Slurm looks at limits and times of grace every half minute.
LONGER = TreeSpec(files=3, tests=30, seconds=(0.5, 1.5))
# Runs sbatch only when it is told to.
GATE = 'touch {gate}/at; while [ ! -e {gate}/go ]; do sleep 0.05; done; exec "$real" "$@"'


@row("submit-ambiguous", times=20, alone=True)
def stop_the_controller_while_submitting(scene: Scene) -> None:
    """The controller stands still when sbatch asks it, and takes the job 10.5 to 20 s later."""
    gate = scene.top / "gate"
    gate.mkdir(mode=0o1777)
    gate.chmod(0o1777)
    scene.door.wrap("sbatch", GATE.format(gate=gate))
    seconds = scene.rng.uniform(10.5, 20)
    scene.start()
    scene.wait("sbatch", (gate / "at").exists)
    scene.bed.pause("slurmctld")
    (gate / "go").touch()
    time.sleep(seconds)
    scene.bed.go_on("slurmctld")
    scene.planted = f"it stood still for {seconds:.1f} s"


@row(
    "controller-killed",
    times=20,
    alone=True,
    variants=("pending", "submitted", "running"),
    tree=LONG,
    leaves=frozenset({"scratch"}),
)
def kill_the_controller(scene: Scene) -> None:
    """kill -9: what it did in its last seconds is lost, so that it starts a job again, or kills it."""
    if scene.variant == "pending":
        scene.occupy()
        time.sleep(6)  # Slurm writes its state each 5 s: what is older is kept
    scene.start()
    if scene.variant == "running":
        when = f"after {scene.tests_ended()} tests"
    else:
        when = f"with the job {scene.job().state}"
        time.sleep(scene.rng.uniform(0, 6 if scene.variant == "pending" else 0.5))
    scene.bed.kill("slurmctld")
    away = scene.rng.uniform(0, 15)
    time.sleep(away)
    scene.bed.start("slurmctld")
    scene.unblock()
    scene.planted = f"killed {when}, away for {away:.1f} s"


@row("controller-down", alone=True, tree=LONG)
def stop_the_controller(scene: Scene) -> None:
    """It is stopped in order, and away for 30 s."""
    scene.start()
    many = scene.tests_ended()
    scene.bed.stop("slurmctld")
    time.sleep(30)
    scene.bed.start("slurmctld")
    scene.planted = f"after {many} tests"


@row("slurmdbd-down", alone=True)
def stop_the_accounting(scene: Scene) -> None:
    """No accounting from before the submission to the end."""
    scene.bed.stop("slurmdbd")
    scene.start()
    scene.finish(120)
    scene.bed.start("slurmdbd")


@row("munged-down", alone=True, tree=LONG)
def stop_munged(scene: Scene) -> None:
    """Nobody can prove who they are for 10 s (no node is lost by it: SlurmdTimeout is 20 s)."""
    scene.start()
    many = scene.tests_ended()
    scene.bed.stop("munged")
    time.sleep(10)
    scene.bed.start("munged")
    scene.planted = f"after {many} tests"


@row("scancelled", times=20, tree=LONG)
def cancel_by_another(scene: Scene) -> None:
    """scancel by root while the log streams."""
    scene.start()
    many = scene.tests_ended(1)
    scene.bed.get("scancel", scene.job("RUNNING").id)
    scene.planted = f"after {many} tests"


@row("time-limit", tree=LONGER)
def reach_the_time_limit(scene: Scene) -> None:
    """An admin moves the end of the job to in three seconds."""
    scene.start()
    scene.planted = f"after {scene.tests_ended(1, 0.1)} tests"
    job = scene.job("RUNNING")
    end = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + 3))
    scene.bed.get("scontrol", "update", f"JobId={job.id}", f"EndTime={end}")


@row("requeued", tree=LONG)
def requeue(scene: Scene) -> None:
    """An admin has Slurm start it again."""
    scene.start()
    many = scene.tests_ended(1)
    done = scene.bed.root("scontrol", "requeue", scene.job("RUNNING").id)
    scene.planted = f"after {many} tests: {(done.stdout + done.stderr).strip() or 'ok'}"


@row("held", variants=("released", "queue-timeout"))
def hold(scene: Scene) -> None:
    """The job is held while it waits; it is released, or nobody does."""
    if scene.variant == "queue-timeout":
        scene.settings["queue-timeout"] = 8
    scene.door.wrap("sbatch", 'exec "$real" --hold "$@"')
    scene.start()
    job = scene.job("PENDING")
    if scene.variant == "released":
        time.sleep(scene.rng.uniform(1, 8))
        scene.bed.get("scontrol", "release", job.id)


@row("partition-down", variants=("before", "running"), tree=LONG)
def close_the_partition(scene: Scene) -> None:
    """Its partition is down when it is submitted, or goes down while it runs."""
    name = f"p{scene.key}"
    nodes = ",".join(scene.nodes)
    state = "DOWN" if scene.variant == "before" else "UP"
    scene.bed.get("scontrol", "create", f"PartitionName={name}", f"Nodes={nodes}", f"State={state}")
    scene.settings["partition"] = name
    try:
        scene.start()
        if scene.variant == "running":
            scene.planted = f"after {scene.tests_ended(1)} tests"
            scene.bed.get("scontrol", "update", f"PartitionName={name}", "State=DOWN")
        scene.finish(120)
    finally:
        for job in scene.jobs() or []:
            scene.bed.root("scancel", job.id)
        scene.bed.wait_empty(60, name=scene.names()[0])
        scene.bed.get("scontrol", "delete", f"PartitionName={name}")


@row("qos-limit", variants=("maxgpu", "onegpu", "submit"), alone=True)
def meet_a_limit(scene: Scene) -> None:
    """A limit of the QOS: on GPUs in use, on GPUs of a job, on jobs submitted."""
    options = ("--partition=gpu", f"--nodelist={scene.nodes[1]}", "--mem=100")
    if scene.variant == "maxgpu":
        scene.settings["qos"] = "maxgpu"
        scene.block(*options, "--qos=maxgpu", "--gres=gpu:8")
    elif scene.variant == "onegpu":
        scene.settings["qos"] = "onegpu"
    else:
        scene.settings["qos"] = "ci"
        for _ in range(2):
            scene.block(*options, "--qos=ci", "--gres=gpu:1")
    scene.start()
    if scene.variant != "onegpu":
        time.sleep(scene.rng.uniform(5, 12))
        scene.unblock()


@row("preempted", variants=("low", "lowkill"), tree=LONGER)
def preempt(scene: Scene) -> None:
    """A job of higher priority takes its node, at once or after a time of grace."""
    scene.settings["partition"] = scene.variant
    scene.start()
    many = scene.tests_ended(1, 0.1)
    node = scene.job("RUNNING").node
    # It has to wait for the grace time of the other, so its start is not waited for.
    words = ("sbatch", "--parsable", "-J", "blocker", "-o", "/dev/null", "--partition=high", "--mem=100")
    done = scene.bed.as_ci(*words, "--gres=gpu:8", f"--nodelist={node}", stdin="#!/bin/sh\nexec sleep 900\n")
    scene.blockers.append(done.stdout.strip())
    scene.planted = f"after {many} tests"


@row("node-drained", tree=LONG)
def drain(scene: Scene) -> None:
    """The node is to take no new jobs."""
    scene.start()
    many = scene.tests_ended(1)
    scene.bed.drain(scene.job("RUNNING").node)
    scene.planted = f"after {many} tests"


@row("node-killed", tree=LONG, leaves=frozenset({"scratch"}))
def kill_the_node(scene: Scene) -> None:
    """slurmd and all that the job runs there are killed at once, as when the power goes."""
    scene.start()
    many = scene.tests_ended(1)
    job = scene.job("RUNNING")
    scene.bed.kill(job.node)
    killed = _kill_job(scene, job.id)
    scene.planted = f"{killed} processes killed after {many} tests"


@row("keeper-killed", variants=("none", "podman"), tree=LONG, runtime="podman")
def kill_the_keeper(scene: Scene) -> None:
    """kill -9 of our own process on the node; what runs in a container stands still by then."""
    scene.runtime = scene.variant
    scene.start()
    many = scene.tests_ended(1)
    ours = _pythons(scene)
    keepers = [pid for pid in ours if "gpuci_node.pyz slurm" in words(pid)]
    others = set(ours).difference(keepers) if scene.variant == "podman" else ()
    for pid in (*others, *keepers):
        os.kill(pid, signal.SIGKILL if pid in keepers else signal.SIGSTOP)
    scene.planted = f"{len(keepers)} killed, {len(others)} stopped after {many} tests"


@row("frozen", variants=("none", "podman"), tree=LONG, runtime="podman")
def freeze(scene: Scene) -> None:
    """SIGSTOP to all of ours on the node but the batch script, then SIGINT to the runner."""
    scene.runtime = scene.variant
    runner = scene.start()
    many = scene.tests_ended(1)
    victims = _pythons(scene)
    for pid in victims:
        os.kill(pid, signal.SIGSTOP)
    runner.signal(signal.SIGINT)
    scene.planted = f"{len(victims)} processes after {many} tests"


def _pythons(scene: Scene) -> list[int]:
    """Keeper, starter and test processes of a run."""
    found = [pid for pid in pids() if comm(pid).startswith("python") and pid != scene.runner.pid]
    return [pid for pid in found if scene.key in words(pid) + environ(pid)]


def _kill_job(scene: Scene, job_id: str) -> int:
    """SIGKILL to the steps of a job and to all its processes."""
    victims = []
    for pid in pids():
        is_step = comm(pid) == "slurmstepd" and f"[{job_id}." in words(pid)
        if is_step or (f"SLURM_JOB_ID={job_id}\0" in environ(pid) and scene.key in environ(pid)):
            victims.append(pid)
    for pid in victims:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if not victims:
        raise NeverCame("no process of the job was found")
    return len(victims)
