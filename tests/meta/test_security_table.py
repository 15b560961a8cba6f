"""docs/security.md shows the table that decides."""

import re
from pathlib import Path

from gpuci.github.approval import markdown_table

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "security.md"


def test_the_document_has_the_table_of_the_code() -> None:
    shown = re.search(r"<!-- approvals -->\n(.*)<!-- /approvals -->", DOCUMENT.read_text(), re.DOTALL)
    assert shown
    wanted = "\n".join(markdown_table()) + "\n"
    assert shown[1] == wanted, f"put this between the marks:\n{wanted}"
