"""The command line: what each command prints where, and what a person is told who asks for the impossible."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuci.cli import main

FILES = {
    ".github/gpuci.yml": "packages: [a, b]\nmodes: {serial: [b/test_b.py]}\n",
    "a/test_a.py": (
        "import pytest\n"
        "@pytest.mark.require_cuda_8gpu\ndef test_wide(): pass\n"
        "@pytest.mark.cpu\ndef test_cpu(): pass\n"
        "@pytest.mark.slow_nightly\ndef test_night(): pass\n"
    ),
    "b/test_b.py": "class TestB:\n    def test_1(self): pass\n",
    "deep.json": "[" * 100_000,
    "deep/report.json": "[" * 100_000,
    "dir.yml": "durations: {file: a}\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    code = main(args)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_manifest_names_mode_and_need(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "manifest", str(tree))
    assert code == 0
    assert out.splitlines() == [
        "a/test_a.py::test_wide (normal, 8 GPUs)",
        "a/test_a.py::test_cpu (cpu, no GPU)",
        "a/test_a.py::test_night (normal, 1 GPU)",
        "b/test_b.py::TestB::test_1 (serial, all GPUs)",
    ]
    assert err.startswith("found 4 test functions in 2 files")


def test_manifest_below_a_path_finds_its_root(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _err = run(capsys, "manifest", str(tree / "b"), "--files")
    assert (code, out) == (0, "b/test_b.py\n")


@pytest.mark.parametrize("command", ["manifest", "plan"])
def test_a_document_stands_alone_on_standard_output(
    tree: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    code, out, _err = run(capsys, command, str(tree), "--json")
    assert code == 0
    assert json.loads(out)["schema"] == f"gpuci/{command}/1"


def test_plan_shows_shards_and_what_is_left_out(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _err = run(capsys, "plan", str(tree))
    assert code == 0
    assert "1 shard" in out
    assert "mark slow_nightly" in out
    assert "mark slow_nightly" not in run(capsys, "plan", str(tree), "--event", "schedule")[1]


@pytest.mark.parametrize(
    ("nodeid", "says"),
    [
        ("a/test_a.py::test_wide", ["GPUs:      8 (mark require_cuda_8gpu, line 3)", "in shard 1 of 1"]),
        ("a/test_a.py::test_cpu", ["mode:      cpu (mark cpu, line 5)", "in the cpu pool"]),
        ("a/test_a.py::test_night", ["not at all: mark slow_nightly"]),
        (
            "b/test_b.py::TestB::test_1[x]",
            ["mode:      serial (modes: b/test_b.py)", "the default: no durations"],
        ),
    ],
)
def test_explain(tree: Path, capsys: pytest.CaptureFixture[str], nodeid: str, says: list[str]) -> None:
    code, out, _err = run(capsys, "explain", nodeid, str(tree))
    assert code == 0
    for text in says:
        assert text in out


def test_verify_names_problems_by_place(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "a" / "conftest.py").write_text("import pytest\n\npytestmark = pytest.mark.gpu\n")
    code, out, _err = run(capsys, "verify", str(tree))
    assert code == 2
    assert out.startswith("a/conftest.py:3: ")


def test_verify_names_the_configuration_for_what_is_wrong_in_it(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _err = run(capsys, "verify", str(tree), "--packages", "a b c")
    assert code == 2
    assert ".github/gpuci.yml: packages: 'c' matches nothing\n" in out


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("packages: [a, c, x*]", ["packages: c matches nothing", "packages: x* matches nothing"]),
        ("durations: {file: ci/d.json}", ["durations.file: there is no ci/d.json yet"]),
    ],
)
def test_a_setting_that_names_nothing_is_said(
    tree: Path, capsys: pytest.CaptureFixture[str], config: str, says: list[str]
) -> None:
    (tree / ".github" / "gpuci.yml").write_text(config)
    code, _out, err = run(capsys, "plan", str(tree))
    assert code == 0
    assert [text for text in says if text not in " ".join(err.split())] == []


@pytest.mark.parametrize(
    ("files", "unread"),
    [
        ((), False),
        (("over.yml",), True),
        ((".github/gpuci.yml", "over.yml"), False),
        (("a/../.github/gpuci.yml",), False),
    ],
)
def test_a_configuration_that_others_replace_is_named(
    tree: Path, capsys: pytest.CaptureFixture[str], files: tuple[str, ...], unread: bool
) -> None:
    (tree / "over.yml").write_text("packages: [a]\n")
    given = [word for file in files for word in ("--config", f"{tree}/{file}")]
    code, _out, err = run(capsys, "plan", str(tree), *given)
    told = " ".join(err.split())
    both = f"give both: --config {tree}/.github/gpuci.yml --config {tree}/over.yml"
    assert (code, both in told, "gpuci.yml is not read" in told) == (0, unread, unread)


BAD = {
    "no such root": (["plan", "no/such/dir"], "no/such/dir is not a directory"),
    "no such test": (["explain", "a/test_a.py::test_wid", "{tree}"], "near: a/test_a.py::test_wide"),
    "another test's name": (["explain", "a/test_x.py::test_cpu", "{tree}"], "near: a/test_a.py::test_cpu"),
    "no test": (["explain", "", "{tree}"], "no test was named"),
    "no such path": (["manifest", "{tree}/c"], "/c does not exist"),
    "no such configuration": (["plan", "{tree}", "--config", "{tree}/nope.yml"], "nope.yml"),
    "no such packages": (["plan", "{tree}", "--packages", "c d/*"], "c"),
    "packages above": (["plan", "{tree}", "--packages", "../x"], "../x"),
    "too many shards": (["plan", "{tree}", "--shards", "13"], "12"),
    "no shards": (["plan", "{tree}", "--shards", "0"], "12"),
    "half an expression": (["plan", "{tree}", "-k", "a and"], "-k 'a and': column 6, after 'a and'"),
    "an expression to run": (["run", "{tree}", "-k", "a b"], "-k 'a b': column 3, at 'b'"),
    "no durations": (["plan", "{tree}", "--durations", "{tree}/nope.json"], "nope.json"),
    "durations of text": (["plan", "{tree}", "--durations", "{tree}/a/test_a.py"], "test_a.py"),
    "no plan": (["run", "{tree}", "--plan", "{tree}/p.json"], "p.json can't be read"),
    "a plan that is none": (["run", "{tree}", "--plan", "{tree}/a/test_a.py"], "no JSON document"),
    "a plan and shards": (["run", "{tree}", "--plan", "p.json", "--shards", "2"], "--plan goes without"),
    "a plan and an event": (
        ["run", "{tree}", "--plan", "p.json", "--event", "schedule"],
        "--plan goes without",
    ),
    "a plan and a configuration": (
        ["run", "{tree}", "--plan", "p.json", "--config", "{tree}/.github/gpuci.yml"],
        "--plan goes without",
    ),
    "a plan without end": (["run", "{tree}", "--plan", "{tree}/deep.json"], "is no JSON document"),
    "a report without end": (["report", "{tree}/deep"], "is no JSON document"),
    "durations that are a directory": (
        ["plan", "{tree}", "--config", "{tree}/dir.yml"],
        "can't be read",
    ),
    "a report that is none": (["report", "{tree}"], "report.json can't be read"),
    "out is not empty": (["run", "{tree}", "--out", "{tree}/a"], "is not empty"),
    "a path outside": (["manifest", "{tree}/a", "/"], "/ is not below"),
}


@pytest.mark.parametrize(("args", "says"), BAD.values(), ids=BAD)
def test_what_cannot_be_is_a_page_of_text(
    tree: Path, capsys: pytest.CaptureFixture[str], args: list[str], says: str
) -> None:
    code, out, err = run(capsys, *[arg.format(tree=tree) for arg in args])
    assert code == 2
    assert out == ""
    page = " ".join(err[err.index("error: ") :].split())  # lines are broken at blanks
    assert says in page
    assert " then: " in page


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["fly"],
        ["run", "--gpus", "0"],
        ["run", "--jobs", "many"],
        ["run", "--backend", "cloud"],
        ["run", "--event", "shedule"],
        ["plan", "--shards"],
        ["plan", "--shard", "2"],
    ],
    ids=" ".join,
)
def test_bad_arguments_are_a_configuration_error(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(args)
    assert caught.value.code == 2
    assert "usage: gpuci" in capsys.readouterr().err


def test_packages_come_from_the_environment_too(
    tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUCI_PACKAGES", "  b\n")
    assert run(capsys, "manifest", str(tree), "--files")[1] == "b/test_b.py\n"


def test_a_tree_without_configuration_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "manifest", str(tmp_path))
    told = " ".join(err.split())
    assert (code, out) == (0, "")
    assert f"no .github/gpuci.yml in {tmp_path}: it is read as one package" in told
    assert "found 0 test functions in 0 files" in told
    assert "no test files there: name their directories" in told
