"""Errors that read as a help page: what happened, the usual reason, what to do next."""

from __future__ import annotations

from gpuci_node.contract import EXIT_CODES


class GpuciError(Exception):
    """An error that a person can act on; `verdict` names its row in the table of exit codes."""

    verdict = "infra"

    def __init__(self, what: str, *, why: str = "", then: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.then = then

    @property
    def exit_code(self) -> int:
        """The exit code of the table in `gpuci_node.contract`."""
        return EXIT_CODES[self.verdict]

    def page(self) -> str:
        """The text a person sees in a terminal: up to three paragraphs, no traceback."""
        return f"error: {self.words()}"

    def words(self) -> str:
        """The same for a place that says by itself that it is an error, as an annotation does."""
        parts = [self.what]
        if self.why:
            parts.append(f"  why:  {self.why}")
        if self.then:
            parts.append(f"  then: {self.then}")
        return "\n".join(parts)


class ConfigError(GpuciError):
    """The configuration, the arguments or the tree ask for something that can't be."""

    verdict = "config_error"
