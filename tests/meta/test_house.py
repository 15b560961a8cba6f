"""The house as CONTRIBUTING.md draws it, and what no file of it may hold."""

import ast
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuci_node.contract import SCHEMAS

CLONE = Path(__file__).resolve().parents[2]


def tracked() -> list[Path]:
    """The files of the repository, new ones included; none when this is not a git checkout."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=CLONE, capture_output=True, check=False)
    paths = [CLONE / name for name in done.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file()]


TRACKED = tracked()
needs_git = pytest.mark.skipif(
    not TRACKED, reason="not a git checkout: which files are the project's is unknown"
)


def ours(suffix: str) -> list[Path]:
    """Files of a kind, without the trees under test."""
    data = {CLONE / "tests" / "truth" / name for name in ("cases", "fixtures")}
    return [path for path in TRACKED if path.suffix == suffix and not data.intersection(path.parents)]


@needs_git
def test_the_top_level_is_the_documented_one() -> None:
    drawn = (CLONE / "CONTRIBUTING.md").read_text().partition("```text\n")[2].partition("```")[0]
    documented = set(re.findall(r"^([\w.-]+)/?(?=\s|$)", drawn, re.MULTILINE))
    assert {path.relative_to(CLONE).parts[0] for path in TRACKED} == documented


def test_the_schemas_are_those_of_the_contract() -> None:
    found = {path.name.removesuffix(".schema.json") for path in (CLONE / "schemas").iterdir()}
    assert found == set(SCHEMAS)


@pytest.mark.parametrize("path", sorted((CLONE / "schemas").glob("*.json")), ids=lambda path: path.name)
def test_a_schema_says_which_document_it_is(path: Path) -> None:
    schema = json.loads(path.read_text())
    name = SCHEMAS[path.name.removesuffix(".schema.json")]
    assert schema["$id"] == "urn:" + name.replace("/", ":")
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"]


def test_the_dependencies_are_the_two() -> None:
    lines = (CLONE / "scripts/requirements.in").read_text().splitlines()
    declared = {line for line in lines if not line.startswith("#")}
    listed = (CLONE / "pyproject.toml").read_text().partition("dependencies = [\n")[2].partition("]")[0]
    assert set(re.findall(r'"([^"]+)"', listed)) == declared
    assert {re.split("[><=]", line)[0] for line in declared} == {"jsonschema", "pyyaml"}


# torch's wheel differs by index and platform, so this one is pinned without hashes.
NOT_HASHED = CLONE / "scripts" / "requirements-torch.txt"


def locks() -> list[Path]:
    return sorted(path for path in (CLONE / "scripts").rglob("requirements*.txt") if path != NOT_HASHED)


def test_torch_is_pinned_and_names_no_host() -> None:
    lines = [line for line in NOT_HASHED.read_text().splitlines() if line and not line.startswith("#")]
    assert "torch==2.13.0" in lines
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)


@pytest.mark.parametrize("path", locks(), ids=lambda path: path.name)
def test_a_lock_pins_and_hashes_everything_and_names_no_host(path: Path) -> None:
    blocks = re.split(r"\n(?=\S)", path.read_text())
    pins = [block for block in blocks if not block.startswith("#")]
    assert all(re.match(r"[\w.-]+==\S+ .*\\\n    --hash=sha256:[0-9a-f]{64}", pin) for pin in pins)
    assert not re.search(r"https?:|--(index|extra-index|find-links|trusted)", path.read_text())
    assert path.with_suffix(".in").is_file()


@needs_git
def test_no_file_names_this_machine() -> None:
    here = [str(CLONE), str(Path.home())]
    names = re.compile(
        "|".join(rf"{re.escape(place)}(?=/|\b)" for place in here if place.count("/") > 1) or "(?!)"
    )
    found = {
        str(path.relative_to(CLONE)): match.group()
        for path in TRACKED
        if (match := names.search(path.read_text(errors="replace")))
    }
    assert found == {}


def skips(source: str) -> Iterator[tuple[int, bool]]:
    """(line, has a reason) of each skip, skipif, xfail and unittest skip in a file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and re.fullmatch(r"pytest\.mark\.(skip|xfail)", ast.unparse(node)):
            yield node.lineno, False  # a call of it follows as a node of its own, and overrules this
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        keywords = {keyword.arg for keyword in node.keywords}
        if re.fullmatch(r"pytest\.(mark\.)?(skip|xfail)|unittest\.skip", name):
            yield node.lineno, bool(node.args or keywords & {"reason"})
        elif name == "pytest.mark.skipif":
            yield node.lineno, "reason" in keywords


def unexplained(source: str) -> set[int]:
    """Lines with a skip that gives no reason."""
    verdicts: dict[int, bool] = {}
    for line, has_reason in skips(source):
        verdicts[line] = verdicts.get(line, False) or has_reason
    return {line for line, has_reason in verdicts.items() if not has_reason}


@needs_git
@pytest.mark.parametrize("top", ["tests", "examples", "bench"])
def test_every_skip_has_a_reason(top: str) -> None:
    files = [path for path in ours(".py") if path.relative_to(CLONE).parts[0] == top]
    assert files
    found = {str(path.relative_to(CLONE)): unexplained(path.read_text()) for path in files}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("@pytest.mark.skip\ndef test(): ...", {1}),
        ("@pytest.mark.skip()\ndef test(): ...", {1}),
        ("@pytest.mark.skip('why')\ndef test(): ...", set()),
        ("@pytest.mark.skipif(True)\ndef test(): ...", {1}),
        ("@pytest.mark.skipif(True, reason='why')\ndef test(): ...", set()),
        ("def test():\n    pytest.skip()", {2}),
        ("def test():\n    pytest.skip('why')", set()),
        ("@pytest.mark.xfail\ndef test(): ...", {1}),
    ],
)
def test_the_rule_sees_a_skip_without_a_reason(source: str, lines: set[int]) -> None:
    assert unexplained(source) == lines
