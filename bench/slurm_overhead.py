"""What a run on a cluster costs beyond its tests: a tree with one test, one shard, again and again.

    python bench/slurm_overhead.py --bed DIR [--runs 30] [--podman]

`tests/cluster/up DIR` makes the bed; needs root. Time stamps are the node's where something happens there
(one machine, one clock). A thread asks `scontrol show job` every 0.2 s over the same connection: nobody who
asks is much faster than that. Connections and sessions are counted in sshd's log, without those of the
thread. Prints a table of seconds; exit code 1 if a run is not passed, used more than one connection, or the
median from `job over` to `verdict known` is above 2 s.
"""

from __future__ import annotations

import argparse
import secrets
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "scripts")]

from bench.cluster_login import LoginHost, login_host, overlay, plan, table, write_tree  # noqa: E402
from tests.cluster.bed.place import Place  # noqa: E402

from gpuci.config import document as config_document  # noqa: E402
from gpuci.execution.delivery.archive import archive  # noqa: E402
from gpuci.execution.delivery.snapshot import snapshot  # noqa: E402
from gpuci.execution.slurm.launch import Identity  # noqa: E402
from gpuci.execution.slurm.names import job_name  # noqa: E402
from gpuci.execution.slurm.run import Options, SlurmRun  # noqa: E402
from gpuci.execution.transport.connection import Answer, Connection  # noqa: E402
from gpuci.execution.transport.login import login_from  # noqa: E402
from gpuci.model import ShardState  # noqa: E402
from gpuci.planning import document as plan_document  # noqa: E402

EVERY_SECONDS = 0.2
MOST_SECONDS = 2.0
TEST = "import time\nimport pytest\n\n\n@pytest.mark.gpu\ndef test_one():\n    time.sleep(1.0)\n"
WATCH = """
cd "$1/jobs/$2" 2>/dev/null && stat -c %.9Y claim/job 2>/dev/null || echo
id=$(squeue -h -t all -n "$2" -o %i) && [ -n "$id" ] || exit
scontrol show job -o "$id" | grep -o 'JobState=[A-Z_]*'
"""
OVER = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
ROWS = (
    ("connection made", "begun", "connected"),
    ("tree delivered, job submitted", "connected", "submitted"),
    ("submitted -> job starts (Slurm)", "submitted", "started"),
    ("job starts -> keeper starts", "started", "keeper"),
    ("keeper starts -> first test", "keeper", "first test"),
    ("submitted -> first test", "submitted", "first test"),
    ("last test ends -> node's verdict", "last test", "verdict"),
    ("last test ends -> job over (Slurm, asked)", "last test", "over"),
    ("last test ends -> verdict known here", "last test", "known"),
    ("job over (asked) -> verdict known here", "over", "known"),
    ("verdict known -> run has ended", "known", "ended"),
)


class Timed(Connection):
    """Notes when it stands and when it is to end; does not end while `watch` still asks."""

    connected = closed = 0.0
    watch: threading.Thread | None = None

    def open(self) -> None:
        super().open()
        self.connected = time.time()

    def close(self) -> None:
        self.closed = time.time()
        if self.watch is not None:
            self.watch.join(10)
        super().close()


class Moments:
    """A run's listener, and the thread beside it."""

    def __init__(self, connection: Timed, shared: str, name: str) -> None:
        self.connection, self.shared, self.name = connection, shared, name
        self.at: dict[str, float] = {}
        self.lags: list[float] = []
        self.asked = 0

    def feed(self, shard: int, record: dict[str, Any]) -> None:
        """A record."""
        if record["kind"] in ("start", "end"):
            self.lags.append(time.time() - record["t"])
        if record["kind"] == "start":
            self.at.setdefault("first test", record["t"])
        elif record["kind"] == "end":
            self.at["last test"] = record["t"]

    def state(self, shard: int, state: ShardState) -> None:
        """What is known of the job."""
        if state.phase == "ended":
            self.at["known"] = time.time()

    def tick(self, now: float) -> None:
        """Time went by."""

    def say(self, text: str) -> None:
        """Lines for people."""
        if text.startswith("submitted"):
            self.at["submitted"] = time.time()
            self.connection.watch = threading.Thread(target=self.watch, daemon=True)
            self.connection.watch.start()

    def watch(self) -> None:
        """Ask Slurm until the job is over."""
        while True:
            time.sleep(EVERY_SECONDS)
            answer: Answer = self.connection.run(WATCH, self.shared, self.name)
            self.asked += 1
            stamp, _, state = answer.out.decode().partition("\n")
            if stamp:
                self.at.setdefault("started", float(stamp))
            if state.strip().removeprefix("JobState=") in OVER:
                self.at["over"] = time.time()
                return


def one_run(document: dict[str, Any], tree: Path, directory: Path) -> tuple[str, Moments]:
    """The verdict, and what happened when."""
    planned = plan_document.from_document(document)
    config = config_document.from_document(planned.config)
    identity = Identity("bench/overhead", secrets.token_hex(6), 1, "")
    connection = Timed(login_from(config.slurm, {}), directory, lambda text: None)
    name = job_name(identity.repository, identity.run, 1, 1, 1)
    moments = Moments(connection, config.slurm["shared-dir"], name)
    packed = archive(snapshot(tree, directory), directory / "tree.tar")
    out = directory / "out"
    out.mkdir()
    moments.at["begun"] = time.time()
    (ran,) = SlurmRun(planned, config, Options(out, identity, (1,)), connection, moments, moments.say).run(
        packed
    )
    moments.at |= {"connected": connection.connected, "ended": connection.closed}
    verdict = ran.verdict or {}
    moments.at |= {"keeper": verdict.get("started", 0.0), "verdict": verdict.get("ended", 0.0)}
    return ran.fate, moments


def measure(host: LoginHost, runs: int, *, plain: bool) -> bool:
    """Run, print; whether all is as promised."""
    rows: list[dict[str, float]] = []
    spent: list[tuple[int, int, float]] = []
    lags: list[float] = []
    with tempfile.TemporaryDirectory() as top:
        tree = write_tree(Path(top, "tree"), {"test_one.py": TEST})
        document = plan(tree, overlay(host, host.port, Path(top), plain=plain), 1)
        for number in range(runs):
            directory = Path(top, str(number))
            directory.mkdir()
            before = host.counts()
            verdict, moments = one_run(document, tree, directory)
            after = host.counts()
            if verdict != "passed":
                print(f"run {number} is {verdict or 'nothing'}")
                return False
            seconds = moments.at["ended"] - moments.at["begun"]
            sessions = after["sessions"] - before["sessions"] - moments.asked
            spent.append((after["let in"] - before["let in"], sessions, seconds))
            rows.append(moments.at)
            lags += moments.lags
    return report(rows, spent, lags, plain=plain)


def report(
    rows: list[dict[str, float]], spent: list[tuple[int, int, float]], lags: list[float], *, plain: bool
) -> bool:
    """Print the table; whether it keeps the promises."""
    print(f"{len(rows)} runs of one test in one shard, {'without container' if plain else 'podman'}\n")
    spans = {title: [row[end] - row[start] for row in rows] for title, start, end in ROWS}
    spans["a record is written -> it is here"] = lags
    lines = [["seconds", "median", "least", "most"]]
    for title, values in spans.items():
        lines.append([title, *(f"{of(values):.2f}" for of in (statistics.median, min, max))])
    print(table(lines))
    connections, sessions, seconds = zip(*spent, strict=True)
    print(
        f"\nconnections a run: {min(connections)} to {max(connections)}; sessions a run: {min(sessions)} to"
    )
    print(f"{max(sessions)}, which is {60 * sum(sessions) / sum(seconds):.0f} commands a minute; a run takes")
    print(f"{statistics.median(seconds):.1f} s (median)")
    late = statistics.median(spans["job over (asked) -> verdict known here"])
    return max(connections) == 1 and late <= MOST_SECONDS


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bed", type=Path, required=True, metavar="DIR")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--podman", action="store_true", help="in containers (default: without)")
    args = parser.parse_args()
    place = Place(args.bed.resolve())
    with tempfile.TemporaryDirectory() as directory, login_host(place, Path(directory)) as host:
        return 0 if measure(host, args.runs, plain=not args.podman) else 1


if __name__ == "__main__":
    sys.exit(main())
