"""The body of `tests/e2e/run`: scenarios by name, each with a line for its result."""

from __future__ import annotations

import argparse
import difflib
import json
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from tests.cluster.bed.handle import Bed  # noqa: E402
from tests.cluster.bed.place import Place  # noqa: E402
from tests.e2e.harness import requests, several  # noqa: E402
from tests.e2e.harness.all_scenarios import SCENARIOS  # noqa: E402
from tests.e2e.harness.scenario import Scenario, act_out  # noqa: E402
from tests.e2e.harness.stage import prepare  # noqa: E402


def main(arguments: Sequence[str]) -> int:
    """Play; 0 if all is as expected."""
    options = _options(arguments)
    if options.list:
        width = max(map(len, SCENARIOS))
        print(*(f"{one.name:{width}}  {one.about}" for one in SCENARIOS.values()), sep="\n")
        return 0
    if unknown := set(options.scenarios) - SCENARIOS.keys():
        sys.exit(f"no such scenario: {', '.join(sorted(unknown))}; --list names them")
    if options.bed is None:
        sys.exit("--bed DIR is missing: a bed that runs, from tests/cluster/up DIR")
    directory = Path(tempfile.mkdtemp(prefix="e2e-"))
    directory.chmod(0o755)  # the steps are the bed's user's
    try:
        return _play(options, directory)
    finally:
        if options.keep:
            print(f"kept: {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests/e2e/run", allow_abbrev=False)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="these only (default: all)")
    parser.add_argument("--bed", type=Path, metavar="DIR", help="a bed that runs (tests/cluster/up DIR)")
    parser.add_argument("--list", action="store_true", help="the scenarios, and what happens in each")
    parser.add_argument("--keep", action="store_true", help="leave repository, logs and artifacts")
    parser.add_argument(
        "--write-requests", action="store_true", help="take what was asked of GitHub as what is expected"
    )
    return parser.parse_args(arguments)


def _play(options: argparse.Namespace, directory: Path) -> int:
    product = prepare(directory)
    seconds: dict[str, float] = {}

    def play(one: Scenario) -> several.Lines:
        began = time.monotonic()
        lines = act_out(one, Bed(Place(options.bed)), product, directory / one.name)
        seconds[one.name] = time.monotonic() - began
        return lines

    red = 0
    outcomes = several.begin(options.scenarios or SCENARIOS, play)
    for name, outcome in outcomes.items():
        try:
            lines = outcome.result()
            if options.write_requests:
                _write(name, lines)
            assert lines == requests.expected().get(name), _difference(name, lines)
            about = f"as expected, {seconds[name]:.0f} s, {len(lines)} kinds of requests"
        except Exception:
            # Not only an assertion: a missing job or file is a red scenario, and the others go on.
            red, about = 1, f"FAILED\n{traceback.format_exc()}"
        print(f"{name}: {about}", flush=True)
    return red


def _difference(name: str, lines: Sequence[str]) -> str:
    known = requests.expected().get(name, [])
    return "other requests than requests.expected.json has:\n" + "\n".join(
        difflib.unified_diff(known, lines, "expected", "asked", lineterm="", n=0)
    )


def _write(name: str, lines: Sequence[str]) -> None:
    document = {**requests.expected(), name: list(lines)}
    kept = {each: document[each] for each in SCENARIOS if each in document}
    requests.EXPECTED.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
