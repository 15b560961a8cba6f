"""Failures on demand: which requests, and what goes wrong with them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass
class Fault:
    """What happens to `times` requests (-1: all) whose method and path match, after `skip` of them.

    `status`: answered so, without being carried out, unless `done`. `close`: the connection ends without an
    answer. `done`: the request is carried out first, so that only its answer is lost. `cut`: the body ends
    early. `hold`: the answer comes only when the server is released or stopped.
    """

    path: str = ".*"  # regular expression over the whole path
    method: str = ".*"
    skip: int = 0
    times: int = 1
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: str = '{"message": "Server Error"}'
    close: bool = False
    done: bool = False
    cut: bool = False
    hold: bool = False

    def takes(self, method: str, path: str) -> bool:
        """Whether this fault strikes a request; counts."""
        if not re.fullmatch(self.method, method) or not re.fullmatch(self.path, path) or not self.times:
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.times -= 1
        return True
