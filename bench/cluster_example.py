"""examples/monorepo in 12 shards on a bed: does each test come out as here, whatever the circumstances?

    python bench/cluster_example.py --bed DIR [--only NAME...]

`tests/cluster/up DIR` makes the bed; needs root. Prints a line for each way to run it, and each test that
differs from the same run on this machine. Exit code 1 if one does.

    plain       as it is, in containers
    bare        without containers
    faults      with every fault that the example has
    read-only   from a clone that is mounted read-only
    umask-077   what we write is for us alone
    umask-000   what we write is for all
    slow        the shared folder takes 20 ms more for each look at attributes and each read; the login node
                sees attributes 3 s late, and what a node writes when it is synced, or 1 s later
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "scripts")]

from tests.cluster.bed.handle import Bed  # noqa: E402
from tests.cluster.bed.lines import slow_folder  # noqa: E402
from tests.cluster.bed.place import Place  # noqa: E402
from tests.cluster.example import EXPECTED, Ran, differences, here, on_the_bed, read_only  # noqa: E402

FAULTS = list(EXPECTED["faults"])[-1]


def from_a_read_only_clone(bed: Bed, out: Path) -> Ran:
    with read_only(REPOSITORY, out.parent / "clone") as clone:
        return on_the_bed(bed, out, root=clone / "examples/monorepo")


def over_a_slow_folder(bed: Bed, out: Path) -> Ran:
    shared = bed.place / "shared/slow"
    bed.as_ci("mkdir", "-p", str(shared))
    overlay = out.parent / "shared.json"
    overlay.write_text(json.dumps({"slurm": {"shared-dir": str(shared)}}))
    with slow_folder(shared, delay=0.02, stale=3.0, writeback=1.0):
        return on_the_bed(bed, out, "--config", str(overlay))


WAYS: dict[str, Callable[[Bed, Path], Ran]] = {
    "plain": on_the_bed,
    "bare": partial(on_the_bed, plain=True),
    "faults": partial(on_the_bed, faults=FAULTS),
    "read-only": from_a_read_only_clone,
    "umask-077": partial(on_the_bed, umask=0o077),
    "umask-000": partial(on_the_bed, umask=0o000),
    "slow": over_a_slow_folder,
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bed", type=Path, required=True, metavar="DIR")
    parser.add_argument("--only", nargs="*", choices=WAYS, default=list(WAYS), metavar="NAME")
    args = parser.parse_args()
    bed = Bed(Place(args.bed.resolve()))
    wrong = 0
    with tempfile.TemporaryDirectory() as directory:
        local = {
            faults: here(Path(directory, f"here-{bool(faults)}"), faults=faults) for faults in ("", FAULTS)
        }
        for name in args.only:
            folder = Path(directory, name)
            folder.mkdir()
            began = time.monotonic()
            ran = WAYS[name](bed, folder / "out")
            seconds = time.monotonic() - began
            found = differences(local[FAULTS if name == "faults" else ""], ran)
            wrong += len(found)
            shown = ", ".join(f"{count} {outcome}" for outcome, count in ran.report["counts"].items())
            print(
                f"{name:<9} {seconds:5.1f} s  exit code {ran.code}  {len(found)} differ  {shown}", flush=True
            )
            print("".join(f"  {line}\n" for line in found), end="", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
