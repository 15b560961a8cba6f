"""`pip install .`: what is in the wheel, and that it works away from the clone."""

import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

CLONE = Path(__file__).resolve().parents[2]
PROBE = """
import sys
sys.path.insert(0, sys.argv[1])
from gpuci import environment, schemas
from gpuci_node import contract
assert schemas.__file__.startswith(sys.argv[1])
print(schemas.load_schema("config")["$id"])
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.Path:
    """The wheel of a copy of the clone: setuptools writes into the tree that it builds."""
    if int(metadata.version("setuptools").partition(".")[0]) < 77:
        pytest.skip("setuptools >= 77 is not installed here; scripts/test has it")
    directory = tmp_path_factory.mktemp("wheel")
    for name in ("scripts", "schemas"):
        shutil.copytree(
            CLONE / name, directory / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(CLONE / name, directory)
    # As pip does it (PEP 517): the environment of the tests has no pip.
    build = [sys.executable, "-c", "from setuptools import build_meta; build_meta.build_wheel('out')"]
    subprocess.run(build, cwd=directory, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    (path,) = (directory / "out").glob("gpuci-*.whl")
    return zipfile.Path(path)


def test_the_wheel_holds_both_packages_and_the_schemas(wheel: zipfile.Path) -> None:
    names = set(wheel.root.namelist())
    sources = {
        str(path.relative_to(CLONE / "scripts")) for path in (CLONE / "scripts").rglob("gpuci*/**/*.py")
    }
    schemas = {f"gpuci/schema_files/{path.name}" for path in (CLONE / "schemas").iterdir()}
    data = {"gpuci/requirements-pytest.txt", "gpuci/py.typed", "gpuci_node/py.typed"}
    data |= {str(path.relative_to(CLONE / "scripts")) for path in (CLONE / "scripts/gpuci").rglob("*.sh")}
    installed = {name for name in names if ".dist-info/" not in name and not name.endswith("/")}
    assert installed == sources | schemas | data


def test_the_command_is_the_entry_point(wheel: zipfile.Path) -> None:
    (entry_points,) = (name for name in wheel.root.namelist() if name.endswith("entry_points.txt"))
    assert wheel.root.read(entry_points).decode().split() == [
        "[console_scripts]",
        "gpuci",
        "=",
        "gpuci.cli:main",
    ]


def test_installed_code_finds_its_schemas(wheel: zipfile.Path, tmp_path: Path) -> None:
    # Not by wheel.root: that one names folders which are not in the archive (Python 3.11.2).
    with zipfile.ZipFile(str(wheel.root.filename)) as archive:
        archive.extractall(tmp_path)
    done = subprocess.run(
        [sys.executable, "-I", "-c", PROBE, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.stdout == "urn:gpuci:config:1\n", done.stderr
