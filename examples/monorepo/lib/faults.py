"""Faults that a run of the example can be given: EXAMPLE_FAULTS=fail,hang (see the README)."""

import os

NAMES = ("fail", "teardown", "collection", "hang", "crash", "exit", "leak")


def planted(name: str) -> bool:
    """Whether a fault is switched on; raises ValueError on a name that nobody knows."""
    wanted = {part.strip() for part in os.environ.get("EXAMPLE_FAULTS", "").split(",")} - {""}
    unknown = sorted(wanted.difference(NAMES))
    if unknown:
        raise ValueError(f"EXAMPLE_FAULTS: unknown {unknown}, valid are {', '.join(NAMES)}")
    return name in wanted
