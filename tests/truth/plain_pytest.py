"""Runs plain pytest, as the command `pytest` does, and writes what pytest itself says of each node id.

A program for the Python that is tested with (>= 3.8, pytest >= 7): `plain_pytest.py OUT [ARGUMENT…]`.
"""

import json
import sys
from typing import Any, Dict  # noqa: UP035 (Python 3.8)

import pytest

WORST_FIRST = ("collection_error", "failed", "error", "passed", "xpassed", "xfailed", "skipped", "deselected")


class Recorder:
    """Reads the categories under which pytest's own terminal reporter counts its reports."""

    def __init__(self, out: str) -> None:
        self.out = out

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        outcomes: Dict[str, str] = {}  # noqa: UP006 (Python 3.8)
        reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
        for category, reports in reporter.stats.items():
            for report in reports:
                collecting = isinstance(report, pytest.CollectReport) and category == "error"
                name = "collection_error" if collecting else category
                if name in WORST_FIRST:  # not so: warnings, reruns, the parts of a test
                    known = outcomes.get(report.nodeid, name)
                    outcomes[report.nodeid] = min(known, name, key=WORST_FIRST.index)
        with open(self.out, "w", encoding="utf-8") as stream:
            json.dump(outcomes, stream)


if __name__ == "__main__":
    del sys.path[0]
    sys.exit(pytest.main(sys.argv[2:], plugins=[Recorder(sys.argv[1])]))
