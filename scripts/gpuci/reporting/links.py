"""Where a file of the tested commit, and the run itself, are seen on GitHub. Pure."""

from __future__ import annotations

import string
from dataclasses import dataclass

# RFC 3986, 2.3; everything else of a path is percent-encoded.
_UNRESERVED = frozenset(f"{string.ascii_letters}{string.digits}-._~".encode("ascii"))

PATH_CHARACTERS = 4096  # Linux's PATH_MAX; a longer name would fill a page with its link


@dataclass(frozen=True)
class Links:
    """`server` is `https://github.com`, `root` the repository's directory that file names start from."""

    server: str
    repository: str
    sha: str
    run: str
    attempt: str = "1"
    root: str = "."

    @property
    def run_url(self) -> str:
        """The page of this attempt."""
        return f"{self.server}/{self.repository}/actions/runs/{self.run}/attempts/{self.attempt}"

    @property
    def commit_url(self) -> str:
        """The page of the commit."""
        return f"{self.server}/{self.repository}/commit/{self.sha}"

    def path(self, file: str) -> str:
        """A file's path in the repository; empty for what is no such path: names come from tests."""
        parts = [part for part in self.root.split("/") if part not in ("", ".")] + file.split("/")
        plain = all(part not in ("", ".", "..") and part.isprintable() and "\\" not in part for part in parts)
        return "/".join(parts) if plain and len(file) <= PATH_CHARACTERS else ""

    def line_url(self, file: str, line: int | None) -> str:
        """The page of a line at the commit; empty for what is no path of the repository."""
        path = self.path(file)
        if not path:
            return ""
        anchor = f"#L{line}" if line else ""
        return f"{self.server}/{self.repository}/blob/{self.sha}/{_encoded(path)}{anchor}"


def _encoded(path: str) -> str:
    return "/".join(
        "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in part.encode("utf-8"))
        for part in path.split("/")
    )
