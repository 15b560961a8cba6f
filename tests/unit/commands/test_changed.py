"""`gpuci changed`, and `--base` of plan and run: a working tree against a revision."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gpuci.changes import toml
from gpuci.cli import main
from gpuci.schemas import load_schema

Run = Callable[..., tuple[int, str, str]]


def package(name: str, *needs: str) -> dict[str, str]:
    lines = f'[project]\nname = "{name}"\ndependencies = {json.dumps(list(needs))}\n'
    return {f"packages/{name}/pyproject.toml": lines, f"packages/{name}/test_{name}.py": "def test(): pass\n"}


TREE = {
    ".github/gpuci.yml": "packages: [packages/*]\nmodes: modes.yml\nchanges: {ignore: ['*.md']}\n",
    "modes.yml": "serial: [packages/core]\n",
    "README.md": "x",
    **package("core"),
    **package("nets", "core"),
    **package("alone"),
}
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "a" * 64 + "\nsize 4\n"
needs_toml = pytest.mark.skipif(not toml.READABLE, reason="Python 3.10 reads no TOML")


class Clone:
    """A repository with one commit, tagged `base`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *args: str) -> str:
        who = ("-c", "user.name=u", "-c", "user.email=u@x", "-c", "protocol.file.allow=always")
        done = subprocess.run(
            ["git", *who, *args], cwd=self.directory, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            (self.directory / name).parent.mkdir(parents=True, exist_ok=True)
            (self.directory / name).write_text(text)

    def commit(self, files: dict[str, str]) -> str:
        self.write(files)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "x")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clone:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    made = Clone(tmp_path / "clone")
    made.commit(TREE)
    made.git("tag", "base")
    return made


@pytest.fixture
def run(clone: Clone, capsys: pytest.CaptureFixture[str]) -> Run:
    def command(name: str, *args: str, root: str = ".") -> tuple[int, str, str]:
        code = main([name, str(clone.directory / root), *args])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command


def due(run: Run, *args: str, base: str = "base", root: str = ".") -> Any:
    """changes.json, checked."""
    code, out, _ = run("changed", "--base", base, "--json", *args, root=root)
    assert code == 0
    document = json.loads(out)
    jsonschema.validate(document, load_schema("changes"))
    return document


def paths(document: Any) -> list[str]:
    return [one["path"] for one in document["changed"]]


@needs_toml
def test_what_is_committed_staged_changed_and_new_counts(clone: Clone, run: Run) -> None:
    clone.commit({"packages/nets/committed.py": "1"})
    clone.write({"packages/nets/staged.py": "1"})
    clone.git("add", "-A")
    clone.write(
        {"packages/nets/new.py": "1", "packages/nets/test_nets.py": "def test_2(): pass\n", "NEWS.md": "x"}
    )
    (clone.directory / "README.md").unlink()
    found = due(run)
    assert paths(found) == ["NEWS.md", "README.md"] + [
        f"packages/nets/{name}.py" for name in ("committed", "new", "staged", "test_nets")
    ]
    assert (found["packages"], found["ignored"]) == (["packages/nets"], ["NEWS.md", "README.md"])
    assert (found["base"], found["head"]) == (clone.git("rev-parse", "base"), "")


def test_a_clean_tree_has_a_head_and_no_changes(clone: Clone, run: Run) -> None:
    found = due(run)
    assert (found["head"], found["changed"], found["packages"]) == (clone.git("rev-parse", "HEAD"), [], [])
    assert run("changed", "--base", "base")[1].splitlines()[-1] == "no test can be affected"


def test_changes_are_counted_from_where_head_left_the_revision(clone: Clone, run: Run) -> None:
    clone.git("checkout", "-q", "-b", "topic")
    clone.commit({"packages/alone/x.py": "1"})
    clone.git("checkout", "-q", "main")
    clone.commit({"packages/core/y.py": "1"})
    clone.git("checkout", "-q", "topic")
    assert paths(due(run, base="main")) == ["packages/alone/x.py"]


def test_what_git_ignores_and_what_we_leave_are_no_changes(clone: Clone, run: Run) -> None:
    clone.commit({".gitignore": "*.log\n"})
    clone.write({"packages/core/x.log": "1", ".gpuci/runs/x/plan.json": "{}"})
    assert paths(due(run)) == [".gitignore"]


@pytest.mark.parametrize("file", [".github/gpuci.yml", "modes.yml"])
def test_the_configuration_means_everything(clone: Clone, run: Run, file: str) -> None:
    clone.write({file: TREE[file] + "# more\n"})
    found = due(run)
    assert found["everything"]
    assert found["because"] == [f"{file} is the configuration"]


def test_an_overlay_is_the_configuration_too(clone: Clone, run: Run) -> None:
    clone.write({"over.yml": "label: {name: go}\n"})
    over = str(clone.directory / "over.yml")
    assert due(run, "--config", str(clone.directory / ".github/gpuci.yml"), "--config", over)["because"] == [
        "over.yml is the configuration"
    ]


def test_a_submodule_counts_by_its_commit_and_by_what_lies_in_it(
    clone: Clone, run: Run, tmp_path: Path
) -> None:
    inner = Clone(tmp_path / "inner")
    inner.commit({"a.py": "1"})
    clone.git("submodule", "--quiet", "add", str(inner.directory), "packages/alone/vendor")
    clone.commit({})
    clone.git("tag", "-f", "base")
    assert paths(due(run)) == []
    clone.write({"packages/alone/vendor/a.py": "2"})
    assert paths(due(run)) == ["packages/alone/vendor/a.py"]
    lying = Clone.__new__(Clone)
    lying.directory = clone.directory / "packages/alone/vendor"
    lying.commit({"a.py": "3"})
    assert paths(due(run)) == ["packages/alone/vendor"]


def test_the_content_of_git_lfs_is_no_change(clone: Clone, run: Run) -> None:
    clone.commit({"packages/alone/weights.bin": POINTER})
    clone.git("tag", "-f", "base")
    clone.write({"packages/alone/weights.bin": "data"})
    assert paths(due(run)) == []


def test_root_can_be_a_directory_of_the_repository(clone: Clone, run: Run) -> None:
    clone.commit({f"sub/{path}": text for path, text in TREE.items()})
    clone.git("tag", "-f", "base")
    clone.commit({"sub/packages/core/x.py": "1", "packages/core/x.py": "1"})
    assert paths(due(run, root="sub")) == ["packages/core/x.py"]


def test_a_root_that_is_new_is_all_changed(clone: Clone, run: Run) -> None:
    clone.commit({f"sub/{path}": text for path, text in TREE.items()})
    assert due(run, root="sub")["everything"]


def test_histories_without_a_common_commit_mean_everything(clone: Clone, run: Run) -> None:
    clone.git("checkout", "-q", "--orphan", "other")
    clone.commit({"x": "1"})
    found = due(run, base="main")
    assert (found["everything"], found["because"]) == (True, ["main and HEAD have 0 common ancestors"])


@needs_toml
@pytest.mark.parametrize(
    ("test", "lines"),
    [
        (
            "packages/nets/test_nets.py::test",
            [
                "packages/nets/test_nets.py is due: needs core, which is due by packages/core",
                "  packages/core/x.py -> packages/core -> packages/nets",
            ],
        ),
        (
            "packages/alone",
            ["packages/alone is not due: nothing that it depends on, as far as is declared, has changed"],
        ),
    ],
    ids=["due", "not due"],
)
def test_a_test_is_explained(clone: Clone, run: Run, test: str, lines: list[str]) -> None:
    clone.write({"packages/core/x.py": "1"})
    assert run("changed", "--base", "base", "--explain", test)[1].splitlines() == lines


def test_everything_is_explained_too(clone: Clone, run: Run) -> None:
    clone.write({"conftest.py": ""})
    lines = run("changed", "--base", "base", "--explain", "packages/nets")[1].splitlines()
    assert lines == ["packages/nets is due, because every test is:", "- conftest.py is in no package"]


def test_a_test_that_is_gone_is_not_explained(clone: Clone, run: Run) -> None:
    (clone.directory / "packages/core/test_core.py").unlink()
    assert run("changed", "--base", "base", "--explain", "packages/core/test_core.py")[:2] == (2, "")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--base", "nothing"], "no revision"),
        (["--base", "--help"], "no revision"),
        (["--base", ""], "no revision"),
        (["--base", "base", "--explain", "../x"], "leaves ROOT"),
        (["--base", "base", "--explain", ""], "is empty"),
        (["--base", "base", "--explain", "test_core.py"], "there is no 'test_core.py' in"),
        (
            ["--base", "base", "--explain", "packages/core/test_x.py::test"],
            "there is no 'packages/core/test_x.py'",
        ),
        (["--base", "base", "--explain", "README.md/x"], "there is no 'README.md/x'"),
    ],
)
def test_what_can_t_be_is_a_page(run: Run, args: list[str], said: str) -> None:
    joined = [f"--base={args[1]}", *args[2:]]
    code, out, err = run("changed", *joined)
    assert (code, out) == (2, "")
    assert said in " ".join(err.split())


def test_outside_of_git_is_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["changed", str(tmp_path), "--base", "main"]) == 2
    assert "git" in capsys.readouterr().err


@needs_toml
def test_plan_has_the_due_tests_alone(clone: Clone, run: Run) -> None:
    clone.write({"packages/core/x.py": "1"})
    code, out, err = run("plan", "--base", "base", "--json")
    assert code == 0
    assert json.loads(out)["targets"] == [
        "packages/core/test_core.py::test",
        "packages/nets/test_nets.py::test",
    ]
    assert "the tests of 2 packages can be affected" in err
    assert len(json.loads(run("plan", "--json")[1])["targets"]) == 3


def test_a_run_with_nothing_due_passes_and_says_so(clone: Clone, run: Run) -> None:
    clone.write({"README.md": "y"})
    code, out, err = run("run", "--base", "base", "--json")
    assert (code, json.loads(out)["verdict"]) == (0, "passed")
    assert "no test can be affected" in err
    assert run("run", "--base", "base", "--plan", "x")[0] == 2
