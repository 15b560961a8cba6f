"""Find the JSON Schemas: in `schemas/` of a clone, inside the package when it is installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gpuci_node.contract import SCHEMAS

_PACKAGE = Path(__file__).resolve().parent
_DIRECTORIES = (_PACKAGE / "schema_files", _PACKAGE.parents[1] / "schemas")


def load_schema(name: str) -> dict[str, Any]:
    """Return the schema of the document `gpuci/<name>/1`; raises KeyError for a name of no document."""
    if name not in SCHEMAS:
        raise KeyError(name)
    found = next(path for path in (d / f"{name}.schema.json" for d in _DIRECTORIES) if path.is_file())
    schema: dict[str, Any] = json.loads(found.read_text(encoding="utf-8"))
    return schema
