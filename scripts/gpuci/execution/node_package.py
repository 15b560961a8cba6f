"""Packs `gpuci_node` into one file that any Python >= 3.8 runs."""

from __future__ import annotations

import zipfile
from pathlib import Path

import gpuci_node
from gpuci.execution.directories import cannot_write

_MAIN = "import sys\n\nfrom gpuci_node.package import main\n\nsys.exit(main(sys.argv[1:]))\n"


def build(path: Path) -> None:
    """Write the zip application to `path`: equal bytes for equal sources; raises GpuciError naming it."""
    try:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
            package = Path(gpuci_node.__file__).parent
            for source in sorted(package.rglob("*.py")):
                _add(archive, source.relative_to(package.parent).as_posix(), source.read_bytes())
            _add(archive, "__main__.py", _MAIN.encode())
    except OSError as error:
        raise cannot_write(path, error) from error


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0)), data)
