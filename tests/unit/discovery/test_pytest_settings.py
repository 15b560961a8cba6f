"""pytest's files and options -> rules; compared with pytest's own functions where it has them."""

from pathlib import PurePosixPath

import pytest
from _pytest.pathlib import fnmatch_ex
from hypothesis import given
from hypothesis import strategies as st

from gpuci.discovery.ini_text import ini_section, toml_document, toml_subset
from gpuci.discovery.options import make_rules
from gpuci.discovery.patterns import name_pattern, path_matches
from gpuci.discovery.pytest_config import NORECURSEDIRS, PytestRules, read_section


@pytest.mark.parametrize(
    ("name", "text", "section"),
    [
        pytest.param("pytest.ini", "", {}, id="an empty pytest.ini counts"),
        pytest.param(".pytest.ini", "[other]\na = 1", {}, id="without its section too"),
        pytest.param("pytest.ini", "[pytest]\ntestpaths = a b", {"testpaths": "a b"}, id="pytest.ini"),
        pytest.param("pytest.toml", "", {}, id="an empty pytest.toml counts"),
        pytest.param(".pytest.toml", "[pytest]\ntestpaths = ['a']", {"testpaths": ["a"]}, id="pytest.toml"),
        pytest.param("pyproject.toml", "[project]\nname = 'x'", None, id="pyproject without pytest"),
        pytest.param("pyproject.toml", "[tool.pytest]\n", None, id="an empty tool.pytest"),
        pytest.param("pyproject.toml", "[tool.pytest.ini_options]\n", {}, id="an empty ini_options"),
        pytest.param("pyproject.toml", "[tool.pytest.ini_options]\na = 'b'", {"a": "b"}, id="ini_options"),
        pytest.param("pyproject.toml", "[tool.pytest]\na = ['b']", {"a": ["b"]}, id="tool.pytest"),
        pytest.param("pyproject.toml", "tool = 3", None, id="tool is no table"),
        pytest.param("pyproject.toml", "not [ toml", None, id="broken"),
        pytest.param("tox.ini", "[tox]\na = b", None, id="tox without pytest"),
        pytest.param("tox.ini", "[pytest]\na = b", {"a": "b"}, id="tox"),
        pytest.param("setup.cfg", "[pytest]\na = b", None, id="setup.cfg with a wrong section"),
        pytest.param("setup.cfg", "[tool:pytest]\na = b", {"a": "b"}, id="setup.cfg"),
    ],
)
def test_which_files_count(name: str, text: str, section: dict[str, object] | None) -> None:
    """By name and content; None: pytest passes the file by."""
    assert read_section(name, text) == section


@pytest.mark.parametrize(
    ("text", "values"),
    [
        pytest.param("[pytest]\na = 1\n# c\n; d\nb: 2", {"a": "1", "b": "2"}, id="comments and colons"),
        pytest.param("[pytest]\na =\n  b\n  # c\n  d\n", {"a": "\nb\nd"}, id="several lines"),
        pytest.param("[x]\na = 1\n[pytest] # here\nb = 2\n[y]\nc = 3", {"b": "2"}, id="between others"),
        pytest.param("\ufeff[pytest]\nA = x=y", {"A": "x=y"}, id="byte order mark, case, second ="),
        pytest.param("[pytest]\nnonsense", {}, id="no value"),
        pytest.param("a = 1", None, id="no section"),
    ],
)
def test_ini_sections(text: str, values: dict[str, str] | None) -> None:
    """The dialect of iniconfig."""
    assert ini_section(text, "pytest") == values


WORDS = st.text(
    st.characters(codec="ascii", exclude_categories=["Cc"], exclude_characters="'\"\\"), max_size=8
)
SETTINGS = st.dictionaries(
    st.sampled_from(["testpaths", "addopts", "minversion", "xfail_strict"]),
    st.one_of(WORDS, st.lists(WORDS, max_size=4), st.booleans(), st.integers(-9, 99)),
)


@given(SETTINGS, st.booleans())
def test_the_small_toml_reader_agrees_with_tomllib(settings: dict[str, object], wide: bool) -> None:
    """On what pytest's tables are made of."""
    lines = [f"{name} = {_toml(value, wide)}" for name, value in settings.items()]
    text = "\n".join(
        ["[project]", "name = 'x'  # c", "[tool.pytest.ini_options]", *lines, "[tool.other]", "a = 1"]
    )
    assert toml_subset(text)["tool"]["pytest"]["ini_options"] == settings
    assert toml_document(text) == toml_subset(text)


def _toml(value: object, wide: bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return "[" + (",\n  " if wide else ", ").join(f"'{item}'" for item in value) + "]"
    return str(value)


def test_rules_of_a_section() -> None:
    """Words are split as a shell does, lists are taken as they are."""
    rules = make_rules(
        {
            "python_files": "check_*.py 'with space.py'",
            "python_functions": ["a", "b"],
            "markers": "gpus(n): number\nslow\n",
            "collect_imported_tests": "false",
        }
    )
    assert rules.python_files == ("check_*.py", "with space.py")
    assert rules.python_functions == ("a", "b")
    assert rules.markers == ("gpus", "slow")
    assert not rules.collect_imported_tests
    assert rules.norecursedirs == NORECURSEDIRS


@pytest.mark.parametrize(
    ("options", "changes"),
    [
        pytest.param(["--ignore=a", "--ignore", "b/"], {"ignore": ("a", "b")}, id="ignore"),
        pytest.param(["--ignore-glob=*_x"], {"ignore_glob": ("*_x",)}, id="ignore-glob"),
        pytest.param(["--doctest-modules"], {"doctest_modules": True}, id="doctest-modules"),
        pytest.param(
            ["--doctest-glob=*.md", "--doctest-glob", "*.rst"],
            {"doctest_globs": ("*.md", "*.rst")},
            id="doctest-glob",
        ),
        pytest.param(["--import-mode", "importlib"], {}, id="a value is no argument"),
        pytest.param(["-o", "python_files=x.py"], {"python_files": ("x.py",)}, id="override"),
        pytest.param(["-opython_files=x.py"], {"python_files": ("x.py",)}, id="override in one word"),
        pytest.param(
            ["--override-ini=python_classes=A B"], {"python_classes": ("A", "B")}, id="long override"
        ),
        pytest.param(["tests", "a.py::test_a"], {"args": ("tests", "a.py::test_a")}, id="paths"),
        pytest.param(["-k", "tests", "-m", "gpu", "-n", "2", "-p", "x"], {}, id="values of options"),
        pytest.param(["-x", "-q", "--strict-markers", "tests"], {"args": ("tests",)}, id="after flags"),
        pytest.param(["--data", "tests"], {}, id="perhaps the value of an unknown option"),
        pytest.param(
            ["--data=x", "tests"], {"args": ("tests",)}, id="after an unknown option with its value"
        ),
        pytest.param(["-k"], {}, id="value missing"),
    ],
)
def test_options(options: list[str], changes: dict[str, object]) -> None:
    """Only what changes the files; addopts and arguments are read alike."""
    expected = PytestRules(**changes)  # type: ignore[arg-type]
    assert make_rules({}, options) == expected
    from_ini = make_rules({"addopts": options})
    assert {name: getattr(from_ini, name) for name in changes} == changes


PARTS = st.text("ab*?[]_.", min_size=1, max_size=5)


@given(
    st.lists(PARTS, min_size=1, max_size=3),
    st.lists(st.text("ab_", min_size=1, max_size=5), min_size=1, max_size=4),
)
def test_patterns_match_paths_as_in_pytest(pattern: list[str], path: list[str]) -> None:
    """`python_files` and `norecursedirs`, against pytest's own function."""
    text, place = "/".join(pattern), "/".join(path)
    assert path_matches(text, place) == fnmatch_ex(text, PurePosixPath("/", place))


@pytest.mark.parametrize(
    ("options", "name", "matches"),
    [
        (("test",), "test_a", True),
        (("test",), "atest", False),
        (("check_*", "*_test"), "a_test", True),
        (("*_test",), "a_tests", False),
        (("[ab]x",), "bx", True),
        (("it",), "it_works", True),
        ((), "test_a", False),
        (("",), "anything", True),
    ],
)
def test_names_match_as_in_pytest(options: tuple[str, ...], name: str, matches: bool) -> None:
    """Prefixes, and globs where there is a wildcard."""
    assert (name_pattern(options).fullmatch(name) is not None) == matches
