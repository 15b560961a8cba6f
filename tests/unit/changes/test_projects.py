"""What project files say of names and needs."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.changes import toml
from gpuci.changes.projects import READ, normalized, project

needs_toml = pytest.mark.skipif(not toml.READABLE, reason="Python 3.10 reads no TOML")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("A_b.C", "a-b-c"), ("a--b__c", "a-b-c"), ("torch", "torch"), ("Zope.Interface", "zope-interface")],
)
def test_names_are_compared_in_one_form(name: str, expected: str) -> None:
    assert normalized(name) == expected


PEP_621 = """
[build-system]
requires = ["Build_Helper>=1"]
[project]
name = "My_Nets"
dependencies = ["core[cuda]>=1 ; python_version > '3.9'", "kernels @ git+https://x/y"]
[project.optional-dependencies]
gpu = ["fast.ops"]
[project.scripts]
not-a-need = "x:y"
[dependency-groups]
test = ["pytest", {include-group = "lint"}]
lint = ["lint-rules"]
"""
UV = """
[project]
name = "a"
dependencies = ["b"]
[tool.uv]
dev-dependencies = ["tools"]
override-dependencies = ["forced"]
[tool.uv.sources]
b = {workspace = true}
c = {path = "../libs/c", editable = true}
"""
POETRY = """
[tool.poetry]
name = "a"
[tool.poetry.dependencies]
python = "^3.11"
b = {path = "../b", develop = true}
[tool.poetry.group.test.dependencies]
c = "*"
"""
HATCH_PDM_PIXI = """
[project]
name = "a"
[tool.hatch.envs.test]
extra-dependencies = ["b"]
[tool.pdm.dev-dependencies]
test = ["-e file:///${PROJECT_ROOT}/../c", "d"]
[tool.pixi.feature.gpu.pypi-dependencies]
e = {path = "../e"}
[tool.ruff]
extend = "../../pyproject.toml"
select = ["not-a-need"]
[tool.setuptools_scm]
root = "../.."
"""


@needs_toml
@pytest.mark.parametrize(
    ("text", "name", "needs", "paths"),
    [
        (
            PEP_621,
            "my-nets",
            {"build-helper", "core", "kernels", "fast-ops", "pytest", "lint-rules"},
            set(),
        ),
        (UV, "a", {"b", "tools", "forced", "c"}, {"packages/libs/c"}),
        (POETRY, "a", {"b", "c"}, {"packages/b"}),
        (HATCH_PDM_PIXI, "a", {"b", "d", "e"}, {"packages/c", "packages/e", "pyproject.toml"}),
    ],
    ids=["pep 621", "uv", "poetry", "other tools"],
)
def test_needs_are_read_of_each_tool(text: str, name: str, needs: set[str], paths: set[str]) -> None:
    found = project("packages/a", {"pyproject.toml": text.encode()})
    assert (found.name, found.unknown) == (name, "")
    assert found.needs >= needs
    assert "not-a-need" not in found.needs
    assert found.paths == paths


@needs_toml
@pytest.mark.parametrize(
    ("files", "unknown"),
    [
        ({}, "no pyproject.toml"),
        ({"setup.py": b"setup()"}, "no pyproject.toml"),
        ({"pyproject.toml": b"[tool.ruff]\n"}, "no table [project]"),
        ({"pyproject.toml": b""}, "no table [project]"),
        ({"pyproject.toml": b"[project\n"}, "can't be read"),
        ({"pyproject.toml": b"\xff\xfe"}, "can't be read"),
        ({"pyproject.toml": b"a = " + b"[" * 5000}, "can't be read"),
        ({"pyproject.toml": b"[project]\nname = 'a'\n" + b"#" * 2_000_000}, "can't be read"),
        ({"pyproject.toml": b"[project]\nname = 'a'\ndynamic = ['dependencies']"}, "dynamic"),
        ({"pyproject.toml": b"[project]\nname = 'a'\ndynamic = ['optional-dependencies']"}, "dynamic"),
        ({"pyproject.toml": b"[project]\nname = 'a'\ndynamic = ['version']"}, ""),
        ({"pyproject.toml": b"[project]\nname = 'a'"}, ""),
        ({"pyproject.toml": b"[tool.poetry.dependencies]\nb = '*'"}, ""),
        ({"pyproject.toml": b"[project]\nname = 3\ndynamic = 'x'"}, ""),
    ],
)
def test_what_does_not_tell_its_needs_says_why(files: dict[str, bytes], unknown: str) -> None:
    found = project("a", files).unknown
    assert unknown in found
    assert bool(found) == bool(unknown)


@needs_toml
@pytest.mark.parametrize(
    ("files", "name", "aliases"),
    [
        ({"setup.cfg": b"[metadata]\nversion = 1\nname = My_Core\n"}, "my-core", set()),
        ({"setup.cfg": b"[metadata]\nname: core\r\n[options]\nname = x\n"}, "core", set()),
        ({"setup.cfg": b"[options]\nname = core\n"}, "", set()),
        ({"setup.cfg": b"[metadata]\nversion = 1\n[x]\nname = core\n"}, "", set()),
        ({"setup.cfg": b"[metadata]\nname = file: NAME\n"}, "", set()),
        ({"setup.py": b"setup(ext=[E(name='core._C')], name = \"My.Core\")"}, "", {"core-c", "my-core"}),
        ({"setup.py": b"setup(name=NAME)"}, "", set()),
        ({"pyproject.toml": b"[build-system]", "setup.cfg": b"[metadata]\nname = core\n"}, "core", set()),
        ({"pyproject.toml": b"[broken", "setup.cfg": b"[metadata]\nname = core\n"}, "core", set()),
        ({"pyproject.toml": b"[project]\nname='a'", "setup.cfg": b"[metadata]\nname = b\n"}, "a", set()),
    ],
)
def test_names_stand_in_other_files_too(files: dict[str, bytes], name: str, aliases: set[str]) -> None:
    """That of a setup.py is a guess: it is code."""
    found = project("packages/a", files)
    assert (found.name, set(found.aliases)) == (name, aliases)


@pytest.mark.parametrize(
    ("name", "text", "plugin"),
    [
        ("pyproject.toml", "[project.entry-points.pytest11]\nx = 'x'", True),
        ("pyproject.toml", "[project.entry-points]\n'pytest11' = {x = 'x'}", True),
        ("pyproject.toml", "[tool.poetry.plugins.pytest11]\nx = 'x'", True),
        ("setup.cfg", "[options]\nentry_points = file: entry_points.txt\n", True),
        ("setup.cfg", "[options.entry_points]\nconsole_scripts =\n  x = y:z\n", False),
        pytest.param(
            "pyproject.toml", "[project]\nname='a'\ndynamic=['entry-points']", True, marks=needs_toml
        ),
        ("pyproject.toml", "[project]\nname='a'\ndynamic=['version']", False),
        ("setup.cfg", "[options.entry_points]\npytest11 =\n  x = x", True),
        ("setup.py", "setup(entry_points={'pytest11': ['x = x']})", True),
        ("pyproject.toml", "[project.entry-points.pytest110]\nx = 'x'", False),
        ("pyproject.toml", "[project]\nname = 'pytest'", False),
    ],
)
def test_plugins_of_pytest_are_known(name: str, text: str, plugin: bool) -> None:
    assert project("packages/a", {name: text.encode()}).plugin == plugin


def test_python_3_10_says_that_it_can_t_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toml, "tomllib", None)
    monkeypatch.setattr(toml, "READABLE", False)
    assert "3.10" in project("a", {"pyproject.toml": b"[project]"}).unknown


@pytest.mark.parametrize(
    ("name", "text", "paths"),
    [
        ("pytest.ini", "[pytest]\npythonpath = ../../lib src\n", {"lib"}),
        (
            "pytest.ini",
            "[pytest]\npythonpath =\n    ../../lib\n    ../b/src\nx = 1\n",
            {"lib", "packages/b/src"},
        ),
        ("pytest.ini", "[pytest]\npythonpath = ../..\n", {"."}),
        ("pytest.ini", "[pytest]\ncache_dir = ../../.cache\n", {".cache"}),
        ("setup.cfg", "[x]\nversion = file: ../../VERSION\nroot = ../..\n", {"VERSION"}),
        ("pyproject.toml", '[tool.pytest.ini_options]\npythonpath = [\n"../..",\n"src"]\n', {"."}),
        ("pyproject.toml", 'readme = "../README.md"\n', {"packages/README.md"}),
        ("pyproject.toml", 'x = "../../../outside"\ny = "/etc/../x"\nz = "a..b"\nr = "1.0..2"\n', set()),
        ("other.ini", "pythonpath = ../../lib\n", set()),
        ("pyproject.toml", 'c = {path = "../my lib (new)/c"}\n', {"packages/my lib (new)/c", "packages/my"}),
        ("pyproject.toml", 'c = {path = "./../c"}\n', {"packages/c"}),
        ("pyproject.toml", 'c = {path = "../../..odd/c"}\n', {"..odd/c"}),
    ],
)
def test_ways_that_go_up_are_named_directories(name: str, text: str, paths: set[str]) -> None:
    assert project("packages/a", {name: text.encode()}).paths == paths


@pytest.mark.parametrize(
    "text",
    [
        "a/" * 500_000,
        "." * 1_000_000,
        "pythonpath = [" * 50_000,
        "pythonpath = [\n" * 50_000,
        "pythonpath = [a,\n" * 50_000,
        "../" * 300_000,
        "'../" * 300_000,
        "[metadata]\n" * 90_000,
        "name=" * 200_000,
        "name" + " " * 1_000_000,
        "a." * 900_000 + "a = 1",
        "[" + "a." * 900_000 + "a]\n",
        "".join(f"{'a.' * 900}b{number} = 1\n" for number in range(1_000)),
        "x = " + "[" * 1_000_000,
        "x = " + "{a=" * 600_000,
        "".join(f"[a.b{number}]\n" for number in range(100_000)),
    ],
)
def test_a_hostile_text_is_read_in_a_moment(text: str) -> None:
    """Time in proportion to the length: one that grew with its square would take minutes."""
    started = time.process_time()
    for name in READ:
        project("a", {name: text.encode()})
    assert time.process_time() - started < 20


@pytest.mark.parametrize("line", ["{} = 1", "[{}]", "[[{}]]", "x = {{{} = 1}}"])
def test_deep_tables_are_not_read(line: str) -> None:
    """The parser takes them without a recursion, of which all that follows is made."""
    found = project("a", {"pyproject.toml": line.format(".".join("a" * 900)).encode()})
    assert found.unknown


@given(st.binary(max_size=200), st.sampled_from(["pyproject.toml", "setup.cfg", "pytest.ini"]))
def test_any_bytes_are_a_project(data: bytes, name: str) -> None:
    assert project("a/b", {name: data}).path == "a/b"
