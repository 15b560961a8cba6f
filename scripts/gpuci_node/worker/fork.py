"""Whether a session that collected a root may be forked, or what speaks against it.

Runs in the test process, inside the container (Python >= 3.8, pytest >= 7.0).
"""

import os
from typing import Any, Dict, List

import pytest

from gpuci_node.worker import safety, watch
from gpuci_node.worker.main import in_tree


class Forking:
    """Watches a template from before its conftests are loaded until all is collected."""

    def __init__(self, spec: Dict[str, Any]) -> None:
        self._spec = spec
        self._tree = os.path.realpath(spec["root_dir"])
        self.watch = watch.Watch(self._tree)
        self.watch.start()

    def findings(self, pluginmanager: "pytest.PytestPluginManager") -> List[Dict[str, str]]:
        """All reasons not to fork, as records hold them; `path` is "" or relative to ROOT."""
        self.watch.stop()
        return [*self._told(self.watch.unsafe()), *self.hooks(pluginmanager)]

    def hooks(self, pluginmanager: "pytest.PytestPluginManager") -> List[Dict[str, str]]:
        """Those that are known before anything is collected: plugins and conftests that began something."""
        return self._told(safety.unsafe_hooks(pluginmanager, self._tree))

    def _told(self, found: List[safety.Finding]) -> List[Dict[str, str]]:
        return [
            {"reason": finding.reason, "path": in_tree(self._spec, finding.path) if finding.path else ""}
            for finding in found
        ]
