"""How long a plan of many tests takes, and how good plans are (makespan / lower bound).

    python bench/plan.py [--tests 100000] [--files 5000] [--durations DIR]

Durations are made up with a heavy tail (log-normal), seeded. With --durations, each DIR/*.json.gz of
{node id: seconds} is planned too. Times are of this machine, one run each.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import time
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from gpuci.config.model import Config
from gpuci.model import Manifest, Plan, Root, TestTarget
from gpuci.planning.document import to_document
from gpuci.planning.plan import make_plan
from gpuci_node.contract import function_id

MIX = (("normal", 1), ("normal", 2), ("normal", 4), ("normal", 8), ("isolated", 1), ("serial", 8), ("cpu", 0))
WEIGHTS = (80, 5, 2, 1, 7, 1, 4)


def main() -> int:
    """Print one line per plan."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tests", type=int, default=100_000)
    parser.add_argument("--files", type=int, default=5_000)
    parser.add_argument("--durations", type=Path, metavar="DIR")
    arguments = parser.parse_args()
    for title, mixed in (("one GPU each", False), ("all needs mixed", True)):
        manifest, durations = synthetic(arguments.tests, arguments.files, mixed)
        measure(f"synthetic, {title}", manifest, durations)
        known = dict(list(durations.items())[::2])
        measure(f"synthetic, {title}, half unknown", manifest, known)
    for path in sorted(arguments.durations.glob("*.json.gz")) if arguments.durations else ():
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            durations = json.load(stream)
        measure(path.name.partition(".")[0], as_manifest(map(function_id, durations)), durations)
    return 0


def measure(title: str, manifest: Manifest, durations: dict[str, float]) -> None:
    """Plan, and print seconds, units per second and the quality for several numbers of shards."""
    start, cpu = time.perf_counter(), time.process_time()
    plan = make_plan(manifest, Config(), durations=durations)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    text = json.dumps(to_document(plan))
    written = time.perf_counter() - start - seconds
    print(
        f"{title}: {len(manifest.targets)} tests, {len(plan.units)} units, {len(plan.shards)} shards: "
        f"{seconds:.2f} s ({cpu:.2f} s of CPU), {len(plan.units) / seconds:,.0f} units/s "
        f"(plan.json {len(text) / 1e6:.1f} MB, {written:.2f} s)"
    )
    for shards in (1, 4, 12):
        print("   ", quality(make_plan(manifest, Config(), durations=durations, shards=shards)))


def quality(plan: Plan) -> str:
    """Makespan and lower bound in words."""
    ratio = plan.makespan_seconds / plan.lower_bound_seconds if plan.lower_bound_seconds else 1.0
    return (
        f"{len(plan.shards):2} shards: {plan.makespan_seconds:9.2f} s, "
        f"lower bound {plan.lower_bound_seconds:9.2f} s, ratio {ratio:.3f}; {plan.notes[0]}"
    )


def synthetic(tests: int, files: int, mixed: bool) -> tuple[Manifest, dict[str, float]]:
    """Tests in classes of files of directories; a file's durations have a scale of their own."""
    random_source = random.Random(20_240_601)
    targets = []
    durations = {}
    for number in range(files):
        path = f"pkg{number % 40}/tests/area{number % 400}/test_{number}.py"
        mode, gpus = random_source.choices(MIX, WEIGHTS)[0] if mixed else ("normal", 1)
        scale = random_source.lognormvariate(-2.0, 1.5)
        for line in range(tests // files):
            target = target_of(f"{path}::TestA::test_{line}", line, mode, gpus)
            targets.append(target)
            durations[target.nodeid] = scale * random_source.lognormvariate(0.0, 1.0)
    return manifest_of(targets), durations


def as_manifest(functions: Iterable[str]) -> Manifest:
    """One target per measured function, one GPU each; a measured file is one target."""
    names = dict.fromkeys(functions)
    return manifest_of([target_of(name, line, "normal", 1) for line, name in enumerate(names)])


def target_of(nodeid: str, line: int, mode: str, gpus: int) -> TestTarget:
    """A target with what planning reads."""
    path = nodeid.partition("::")[0]
    return TestTarget(nodeid, path, None, None, None, ".", line=line, run_mode=mode, gpus=gpus)


def manifest_of(targets: list[TestTarget]) -> Manifest:
    """A manifest of one root."""
    files = tuple(dict.fromkeys(target.test_path for target in targets))
    return Manifest(targets=tuple(targets), roots=(Root(".", files=files),))


if __name__ == "__main__":
    raise SystemExit(main())
