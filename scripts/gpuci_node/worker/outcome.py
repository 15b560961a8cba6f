"""pytest's reports of one test -> one record.

Runs in the test process, inside the container (Python >= 3.8, pytest >= 7.0).
"""

import os
from typing import Any, Dict, List, Optional, Tuple

import pytest

from gpuci_node.supervisor.records import LONGEST
from gpuci_node.tracebacks import error_in, from_the_error
from gpuci_node.worker.main import in_tree

_TAIL = 6000  # characters of a traceback that are kept, and as many of captured output
_LINE = 300

Place = Tuple[str, Optional[int]]


class Tracker:
    """Collects the reports of one item; `record()` after its teardown. `place` is where the item is."""

    def __init__(self, place: Place, spec: Dict[str, Any]) -> None:
        self._place = place
        self._spec = spec
        self._phases: Dict[str, pytest.TestReport] = {}
        self._whole = False  # one report stands for all phases
        self._failed_subtests: List[pytest.TestReport] = []

    def add(self, report: pytest.TestReport) -> None:
        """Take one report; a rerun (pytest-rerunfailures) makes what came before it void."""
        if report.outcome == "rerun":  # type: ignore[comparison-overlap]
            self._phases, self._failed_subtests = {}, []
        elif hasattr(report, "context"):  # a subtest (pytest >= 9 or pytest-subtests)
            if report.failed:
                self._failed_subtests.append(report)
        elif report.when in ("setup", "call", "teardown"):
            self._phases[report.when] = report
        else:  # pytest-forked has one report for a test whose process crashed, of the phase "???"
            self._phases["call"], self._whole = report, True

    @property
    def complete(self) -> bool:
        """Whether set-up and teardown were reported: not so after pytest.exit or an internal error."""
        return self._whole or ("setup" in self._phases and "teardown" in self._phases)

    def record(self) -> Dict[str, Any]:
        """The fields of the journal's `end` record that the test process knows."""
        outcome, report = self._judge()
        red = outcome in ("failed", "error")
        path, line = self._where(report if red else None)
        return {
            "outcome": outcome,
            "seconds": {when: round(phase.duration, 6) for when, phase in self._phases.items()},
            "file": path,
            "line": line,
            "message": _message(outcome, report),
            "output": output(report) if red else "",
        }

    def _judge(self) -> Tuple[str, pytest.TestReport]:
        """The worst phase decides: a failed call, then a failed set-up or teardown."""
        setup, call, teardown = (self._phases.get(when) for when in ("setup", "call", "teardown"))
        if call is not None and call.failed:
            return "failed", call
        if self._failed_subtests:
            return "failed", self._failed_subtests[0]
        for phase in (setup, teardown):
            if phase is not None and phase.failed:
                return "error", phase
        decisive = call or setup
        assert decisive is not None
        if hasattr(decisive, "wasxfail"):
            return ("xpassed" if decisive.passed else "xfailed"), decisive
        return decisive.outcome, decisive

    def _where(self, report: Optional[pytest.TestReport]) -> Place:
        crash = getattr(getattr(report, "longrepr", None), "reprcrash", None)
        if crash is not None:
            path = in_tree(self._spec, crash.path)
            if not path.startswith(os.pardir):
                return path, crash.lineno
        return self._place


def item_place(item: pytest.Item, spec: Dict[str, Any]) -> Place:
    """ROOT-relative path and line (from 1) of a test itself."""
    line = item.location[1]
    return in_tree(spec, str(item.path)), None if line is None else line + 1


def _message(outcome: str, report: pytest.TestReport) -> str:
    if outcome == "skipped":
        return skip_reason(report)
    if outcome in ("xfailed", "xpassed"):
        return one_line(str(getattr(report, "wasxfail", "")))
    if outcome == "passed":
        return ""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else report.longreprtext
    where = "" if report.when == "call" else "at %s: " % report.when
    return one_line(where + text)


def one_line(text: str) -> str:
    """The first line that is not empty, cut."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:_LINE] if lines else ""


def skip_reason(report: Any) -> str:
    """The reason of a skipped report, without pytest's own `Skipped: `."""
    longrepr = report.longrepr
    text = str(longrepr[2]) if isinstance(longrepr, tuple) else report.longreprtext
    return one_line(text[len("Skipped: ") :] if text.startswith("Skipped: ") else text)


def output(report: Any) -> str:
    """The end of the traceback, then the end of what the test printed."""
    return _output(report, report.longreprtext)


def _output(report: Any, text: str) -> str:
    parts = [text[-_TAIL:]]
    for title, text in report.sections:
        parts.append("--- %s ---\n%s" % (title, text[-_TAIL:]))
    return "\n".join(parts)[-2 * _TAIL :]


def collect_failure(report: pytest.CollectReport) -> Dict[str, str]:
    """Message and output of a failed collection."""
    text = report.longreprtext
    message = one_line(error_in(text) or text[-_LINE:])
    return {"message": message, "output": _output(report, from_the_error(text))}


def skipped_by_mark(item: pytest.Item) -> bool:
    """Whether a skip mark, or a skipif whose condition is no string (evaluated at import), skips the item.

    `unittest.skip` leaves `__unittest_skip__` on the function or on the class.
    """
    places = (getattr(item, "obj", None), getattr(item, "cls", None))
    if item.get_closest_marker("skip") or any(getattr(p, "__unittest_skip__", False) for p in places):
        return True
    for mark in item.iter_markers("skipif"):
        condition = mark.args[0] if mark.args else mark.kwargs.get("condition")
        if condition and not isinstance(condition, str):
            return True
    return False


def timeout(item: pytest.Item, default: float) -> float:
    """Seconds that the supervisor gives a test: a `timeout` mark's, else the default.

    With pytest-timeout the plugin acts first and the supervisor a little later; 0 means no limit there.
    """
    mark = item.get_closest_marker("timeout")
    value = (mark.args[0] if mark.args else mark.kwargs.get("timeout")) if mark else None
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= LONGEST:
        return default
    if item.config.pluginmanager.hasplugin("timeout"):
        return min(value + 5.0, LONGEST) if value else default
    return float(value) or default
