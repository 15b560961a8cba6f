"""Which files a session collects, and what came of each.

Runs in the test process, inside the container (Python >= 3.8, pytest >= 7.0).
"""

from pathlib import Path, PurePosixPath
from typing import Any, Dict, Iterable, List, Optional, Set

import pytest

from gpuci_node.worker import outcome
from gpuci_node.worker.main import here, in_tree

Found = List[Dict[str, Any]]  # {nodeid, message[, output]}


class Collection:
    """Lets the files of a spec through collection, and keeps items, errors and skips by file."""

    def __init__(self, spec: Dict[str, Any]) -> None:
        self._spec = spec
        self._names = {Path(here(spec, file)): str(file) for file in spec["files"]}
        self._above = {parent for path in self._names for parent in path.parents}
        self._seen: Set[str] = set()  # files that were collected
        self._reported: Set[str] = set()  # collectors that came to an end
        self._errors: Dict[str, Found] = {}  # by the path of what could not be collected
        self._skipped: Dict[str, Found] = {}
        self._deselected: Dict[str, List[str]] = {file: [] for file in spec["files"]}
        self.items: Dict[str, List[pytest.Item]] = {file: [] for file in spec["files"]}

    def ignores(self, path: Path) -> Optional[bool]:
        """Let only our files through, and what pytest needs on the way to them.

        They are no arguments, because pytest does not apply `collect_ignore` and `python_files` to those.
        """
        if path in self._names or path in self._above:
            return None
        if path.name == "__init__.py" and path.parent in self._above:
            return None
        return True

    def file_of(self, node: pytest.Item) -> Optional[str]:
        """Our name of an item's file, None if it is not one of ours (an `__init__.py` on the way)."""
        return self._names.get(node.path)

    def name(self, path: Path) -> Optional[str]:
        """Our name of a file that is to be collected."""
        return self._names.get(path)

    def nodeid(self, item: pytest.Item) -> str:
        """ROOT-relative path + what pytest prints after the first `::`."""
        return in_tree(self._spec, str(item.path)) + "::" + item.nodeid.partition("::")[2]

    def deselect(self, items: Iterable[pytest.Item]) -> None:
        """The project's own options took these away."""
        for item in items:
            file = self.file_of(item)
            if file is not None:
                self._deselected[file].append(self.nodeid(item))

    def shield(self, collector: pytest.Collector, result: Any) -> None:
        """What ends a session while a file is imported (`pytest.exit`, `sys.exit`) costs only that file."""
        left = result.excinfo is not None and issubclass(
            result.excinfo[0], (pytest.exit.Exception, SystemExit)
        )
        if left and len(self.items) > 1 and isinstance(collector, pytest.File):
            text = "%s: %s" % (result.excinfo[0].__name__, result.excinfo[1])
            result.force_result(pytest.CollectReport(collector.nodeid, "failed", text, []))

    def report(self, report: pytest.CollectReport) -> bool:
        """Keep what failed, and what was skipped as a whole; return whether one of our files is done."""
        nodeid = self._collector_id(report.nodeid)
        if report.failed:
            self._keep(self._errors, {"nodeid": nodeid, **outcome.collect_failure(report)})
        elif report.skipped:
            self._keep(self._skipped, {"nodeid": nodeid, "message": outcome.skip_reason(report)})
        elif nodeid in self.items:
            self._seen.add(nodeid)
        self._reported.add(nodeid)
        return nodeid in self.items

    def _keep(self, found: Dict[str, Found], entry: Dict[str, Any]) -> None:
        path = PurePosixPath(entry["nodeid"].partition("::")[0])
        if path.name == "__init__.py" and str(path) not in self.items:
            path = path.parent  # a package, as pytest 7 names it
        found.setdefault(str(path), []).append(entry)

    def _collector_id(self, nodeid: str) -> str:
        path, separator, rest = nodeid.partition("::")
        return (in_tree(self._spec, path) if path else self._spec["root"]) + separator + rest

    def take(self, items: Iterable[pytest.Item]) -> None:
        """Sort the items that are left after all hooks by file; the order within a file stays."""
        for item in items:
            file = self.file_of(item)
            if file is not None:
                self.items[file].append(item)

    def record(self, file: str) -> Dict[str, Any]:
        """The `collected` record of one file."""
        marks = {self.nodeid(item): [mark.name for mark in item.iter_markers()] for item in self.items[file]}
        return {
            "file": file,
            "ids": list(marks),
            "marks": {nodeid: names for nodeid, names in marks.items() if names},
            "deselected": self._deselected[file],
            "errors": self._errors_of(file),
            "skipped": [
                skip
                for skip in self._concerning(self._skipped, file)
                if skip["nodeid"] != file or file not in self._seen
            ],
        }

    def failed(self, file: str) -> bool:
        """Whether something of the file, or above it, could not be collected."""
        return bool(self._errors_of(file))

    def _errors_of(self, file: str) -> Found:
        errors = self._concerning(self._errors, file)
        if not errors and self._errors and file not in self._reported:
            # It was not come to, and something failed: that may be why.
            return next(iter(self._errors.values()))[:1]
        return errors

    def _concerning(self, found: Dict[str, Found], file: str) -> Found:
        """What was found of the file and above it (a package, a folder's conftest.py); all if it is alone."""
        if len(self.items) == 1:
            return [entry for entries in found.values() for entry in entries]
        above = [parent.as_posix() for parent in reversed(PurePosixPath(file).parents)]
        return [entry for path in (*above, file) for entry in found.get(path, ())]
