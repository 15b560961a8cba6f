"""What pytest's reporter prints is marked: the starter tells it from what tests print.

Runs in the test process, inside the container (Python >= 3.8, pytest >= 7.0).
"""

from typing import Any

import pytest

from gpuci_node.processes import REPORTER_BEGIN, REPORTER_END

_MARKED = REPORTER_BEGIN.decode("ascii") + "%s" + REPORTER_END.decode("ascii")


class _Marked:
    """The file of a terminal writer, whatever else that wants of it."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, text: str) -> Any:
        return self._file.write(_MARKED % text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def mark(config: pytest.Config) -> None:
    """Have the reporter, once it is there, mark what it prints. Without one, or with another's: nothing."""
    writer = getattr(config.pluginmanager.get_plugin("terminalreporter"), "_tw", None)
    if writer is not None and hasattr(writer, "_file"):
        writer._file = _Marked(writer._file)
