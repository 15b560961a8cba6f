"""A commit in a repository -> plan.json, the matrix of its shards, and what people are told."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpuci.changes import document as changes_document
from gpuci.changes.model import Changes
from gpuci.config import document as config_document
from gpuci.config.load import load_config
from gpuci.errors import ConfigError, GpuciError
from gpuci.github.step import Step
from gpuci.planning import document as plan_document
from gpuci.steps import calculate_shards

TREE = {
    ".github/gpuci.yml": "packages: [alpha, beta, gamma]\nprofiles:\n  node: {gpus: 2}\n",
    "alpha/tests/test_a.py": (
        "import pytest\n\n@pytest.mark.gpu\ndef test_1(): pass\n\n@pytest.mark.gpu\ndef test_2(): pass\n"
    ),
    "beta/tests/test_b.py": "import pytest\n\n@pytest.mark.gpu\ndef test_3(): pass\n",
    "gamma/tests/test_c.py": "import pytest\n\n@pytest.mark.cpu\ndef test_4(): pass\n",
}


@dataclass
class Commit:
    """A repository `octo/tests` with one commit, and a runner's directory."""

    directory: Path
    sha: str
    configuration: str

    def step(self, **inputs: str) -> Step:
        """The step with these inputs, `name=value`."""
        for name in ("output", "summary"):
            (self.directory / name).touch()
        given = {"configuration": self.configuration, "sha": self.sha, **inputs}
        return Step(
            "calculate-shards",
            {
                "GITHUB_REPOSITORY": "octo/tests",
                "GITHUB_SERVER_URL": self.directory.as_uri(),
                "GITHUB_OUTPUT": str(self.directory / "output"),
                "GITHUB_STEP_SUMMARY": str(self.directory / "summary"),
                "RUNNER_TEMP": str(self.directory),
                **{f"GPUCI_{name.upper()}": value for name, value in given.items()},
            },
            {},
        )

    def outputs(self) -> dict[str, str]:
        """What the step answered, each in one line."""
        lines = (self.directory / "output").read_text().splitlines()
        starts = [number for number, line in enumerate(lines) if "<<gpuci-" in line]
        return {lines[number].partition("<<")[0]: lines[number + 1] for number in starts}

    @property
    def summary(self) -> str:
        """What people read."""
        return (self.directory / "summary").read_text()


def commit_of(directory: Path, tree: Mapping[str, str], root: str = ".") -> Commit:
    """A commit of these files."""
    repository = directory / "octo" / "tests"
    for name, text in tree.items():
        path = repository / root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    for command in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-q", "-m", "first")):
        subprocess.run(["git", "-C", str(repository), *command], check=True)
    sha = subprocess.run(
        ["git", "-C", str(repository), "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    config = config_document.to_document(load_config(repository / root))
    return Commit(directory, sha, json.dumps(config))


@pytest.fixture
def commit(tmp_path: Path) -> Commit:
    """The commit of TREE."""
    return commit_of(tmp_path, TREE)


def test_a_plan_of_everything(commit: Commit) -> None:
    assert calculate_shards.run(commit.step(shards="2")) == 0
    told = commit.outputs()
    plan = plan_document.from_document(json.loads(Path(told["plan"]).read_text()))
    assert (told["matrix"], told["shards"], told["tests"]) == ("[1, 2]", "2", "3")
    assert float(told["makespan-seconds"]) == pytest.approx(plan.makespan_seconds, abs=0.5)
    assert plan.sha == commit.sha
    digest = hashlib.sha256(Path(told["plan"]).read_bytes()).hexdigest()
    assert told["plan-digest"] == f"sha256:{digest}"
    assert sorted(unit.file for unit in plan.units if unit.mode != "cpu") == [
        "alpha/tests/test_a.py",
        "beta/tests/test_b.py",
    ]
    assert "## 3 GPU tests in 2 shards" in commit.summary
    assert "1 test in the CPU pool" in commit.summary


@pytest.mark.parametrize(
    ("inputs", "files", "shards"),
    [
        ({"packages": "beta"}, ["beta/tests/test_b.py"], "1"),
        ({"packages": '["beta", "./alpha/"]'}, ["alpha/tests/test_a.py", "beta/tests/test_b.py"], "1"),
        ({"packages": "gamma"}, [], "0"),
        ({"shards": "3"}, ["alpha/tests/test_a.py", "beta/tests/test_b.py"], "2"),
        ({"shards": "0", "max_shards": "1"}, ["alpha/tests/test_a.py", "beta/tests/test_b.py"], "1"),
        ({"test_expression": "test_3"}, ["alpha/tests/test_a.py", "beta/tests/test_b.py"], "1"),
    ],
    ids=["package", "packages as JSON", "no GPU test", "more shards than units", "most", "expression"],
)
def test_inputs_change_the_plan(
    commit: Commit, inputs: dict[str, str], files: list[str], shards: str
) -> None:
    assert calculate_shards.run(commit.step(**inputs)) == 0
    told = commit.outputs()
    plan = plan_document.from_document(json.loads(Path(told["plan"]).read_text()))
    assert sorted({unit.file for unit in plan.units if unit.mode != "cpu"}) == files
    assert told["shards"] == shards
    assert json.loads(told["matrix"]) == list(range(1, int(shards) + 1))
    expression = inputs.get("test_expression", "")
    assert plan.config["node"]["pytest_args"] == (["-k", expression] if expression else [])


def write_changes(commit: Commit, **given: Any) -> str:
    """The path of changes.json for the commit."""
    common = {"base": "b" * 40, "head": commit.sha, "everything": False}
    path = commit.directory / "changes.json"
    path.write_text(json.dumps(changes_document.to_document(Changes(**{**common, **given}))))
    return str(path)


@pytest.mark.parametrize(
    ("given", "files", "note"),
    [
        ({"packages": ("beta",)}, ["beta/tests/test_b.py"], "3 of 4 test functions left out"),
        ({"packages": ("gamma",)}, [], "3 of 4 test functions left out"),
        ({"packages": ("alpha", "beta")}, ["alpha/tests/test_a.py", "beta/tests/test_b.py"], "1 of 4"),
        ({"packages": ("alph",)}, [], "4 of 4"),
        ({"packages": ()}, [], "4 of 4"),
        (
            {"everything": True, "because": ("tox.ini is of no package",)},
            ["alpha/tests/test_a.py", "beta/tests/test_b.py"],
            "every test is due: tox.ini is of no package",
        ),
    ],
    ids=["one", "one without GPU tests", "two", "no prefix of a name", "none", "everything"],
)
def test_only_what_the_change_can_affect_is_planned(
    commit: Commit, given: dict[str, Any], files: list[str], note: str
) -> None:
    assert calculate_shards.run(commit.step(changes=write_changes(commit, **given))) == 0
    told = commit.outputs()
    plan = plan_document.from_document(json.loads(Path(told["plan"]).read_text()))
    assert sorted({unit.file for unit in plan.units if unit.mode != "cpu"}) == files
    assert (told["matrix"] == "[]") == (not files)
    assert note in plan.notes[0]
    assert "affect them" in commit.summary or "every test is due" in commit.summary


def test_changes_of_another_commit_are_refused(commit: Commit) -> None:
    path = write_changes(commit, head="f" * 40)
    with pytest.raises(ConfigError, match=f"of the commit {'f' * 40}"):
        calculate_shards.run(commit.step(changes=path))


def test_changes_that_another_job_put_there_are_refused(commit: Commit) -> None:
    """With `packages` empty no test would be due, and the check green."""
    path = Path(write_changes(commit, everything=True))
    digest = f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
    assert calculate_shards.run(commit.step(changes=str(path), changes_digest=digest)) == 0
    write_changes(commit, everything=False, packages=())
    with pytest.raises(ConfigError, match="not what find-changed made"):
        calculate_shards.run(commit.step(changes=str(path), changes_digest=digest))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": "gpuci/changes/1"}'])
def test_changes_that_are_broken_are_refused(commit: Commit, text: str) -> None:
    path = commit.directory / "broken.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"JSON|broken"):
        calculate_shards.run(commit.step(changes=str(path)))


def test_a_configuration_that_the_commit_brings_has_to_work(tmp_path: Path) -> None:
    commit = commit_of(tmp_path, TREE)
    repository = commit.directory / "octo" / "tests"
    (repository / ".github/gpuci.yml").write_text("packages: [alpha]\nslurm: {hots: x}\n")
    git = ("git", "-C", str(repository), "-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run([*git, "commit", "-qam", "second"], check=True)
    said = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    second = Commit(commit.directory, said.stdout.strip(), commit.configuration)
    assert calculate_shards.run(second.step(changes=write_changes(second, everything=True))) == 0
    proposed = write_changes(second, everything=True, proposed=(".github/gpuci.yml",))
    with pytest.raises(ConfigError, match=r"this commit brings does not work\n(.|\n)*gpuci.yml:2:9: "):
        calculate_shards.run(second.step(changes=proposed))


def test_no_gpu_test_is_an_empty_matrix_and_said(commit: Commit) -> None:
    assert calculate_shards.run(commit.step(packages="gamma")) == 0
    assert commit.outputs()["matrix"] == "[]"
    assert "## No GPU test is due" in commit.summary


def test_a_root_below_the_repository(tmp_path: Path) -> None:
    commit = commit_of(tmp_path, TREE, "python")
    assert calculate_shards.run(commit.step(root="python")) == 0
    assert commit.outputs()["tests"] == "3"


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({"shards": "13"}, "shards is '13'"),
        ({"shards": "-1"}, "shards is '-1'"),
        ({"max_shards": "many"}, "max-shards is 'many'"),
        ({"test_expression": "a and"}, r"test-expression is 'a and': column 6, after 'a and': a name"),
        ({"test_expression": "("}, r"test-expression is '\('"),
        ({"packages": "../else"}, "leaves ROOT"),
        ({"packages": "[1]"}, "no list of texts"),
        ({"packages": '["a"'}, r"packages: '\[\"a\"'|matches"),
        ({"packages": "nothing"}, r"nothing below '\.' of commit [0-9a-f]{12} matches nothing"),
        ({"configuration": ""}, "configuration is empty"),
        ({"configuration": "{"}, "no JSON document"),
        ({"configuration": "[" * 100_000}, "no JSON document"),
        ({"configuration": "{}"}, "configuration in the document is broken"),
        ({"sha": "abc"}, "no full commit id"),
        ({"sha": ""}, "no full commit id"),
        ({"root": "elsewhere"}, "has no directory"),
    ],
)
def test_what_makes_no_sense_is_told(commit: Commit, inputs: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        calculate_shards.run(commit.step(**inputs))


def test_all_problems_of_inputs_are_told_at_once(commit: Commit) -> None:
    with pytest.raises(ConfigError, match=r"shards is '99'.*; max-shards is 'x'.*; test-expression is"):
        calculate_shards.run(commit.step(shards="99", max_shards="x", test_expression="a b"))


def test_a_tree_without_tests_is_no_empty_plan(tmp_path: Path) -> None:
    commit = commit_of(tmp_path, {".github/gpuci.yml": "packages: [src]\n", "src/module.py": "x = 1\n"})
    with pytest.raises(ConfigError, match="no test files in src"):
        calculate_shards.run(commit.step())


def test_a_commit_that_is_not_there(commit: Commit) -> None:
    with pytest.raises(GpuciError, match=r"0{40}"):
        calculate_shards.run(commit.step(sha="0" * 40))


def test_nothing_of_the_commit_runs(tmp_path: Path) -> None:
    """Not when it is fetched, unpacked or read."""
    mark = tmp_path / "ran"
    code = f"open({str(mark)!r}, 'w')\n"
    hostile = {
        "alpha/tests/conftest.py": code,
        "alpha/conftest.py": code,
        "alpha/tests/test_evil.py": f"{code}def test_x(): pass\n",
        "alpha/setup.py": code,
        "json.py": code,
        "sitecustomize.py": code,
        ".gitattributes": "* filter=evil\n",
        ".github/../.gitmodules": f'[submodule "x"]\n\tpath = x\n\turl = ext::sh -c "touch {mark}"\n',
    }
    commit = commit_of(tmp_path, {**TREE, **hostile})
    assert calculate_shards.run(commit.step()) == 0
    assert not mark.exists()


HOSTILE = "x`$(id)`\n::error::y ##[add-matcher]z %0A <b>@all"


def test_names_of_the_tree_give_no_command_and_no_markup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"import pytest\n\n@pytest.mark.skip(reason={HOSTILE!r})\n@pytest.mark.gpu\ndef test_x(): pass\n"
    name = "alpha/tests/test_`$(id)` ##[error]<b>@all.py"
    commit = commit_of(tmp_path, {**TREE, name: text + "def test_y(:\n"})
    assert calculate_shards.run(commit.step()) == 0
    # Only a line that is no command of the one form is looked at for the other (actions/runner,
    # ActionCommandManager.TryProcessCommand).
    lines = capsys.readouterr().out.splitlines()
    others = [line for line in lines if not line.startswith("::warning ")]
    assert len(lines) - len(others) == 1
    assert [line for line in others if line.lstrip().startswith("::") or "##[" in line] == []
    assert "<b>" not in commit.summary
    assert "@all" not in commit.summary
