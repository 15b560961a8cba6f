"""A step's inputs and answers, and the limits that GitHub has for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runner_log import read_log, read_values

from gpuci.errors import ConfigError, GpuciError
from gpuci.github import commands
from gpuci.github.step import ANNOTATIONS, Step


def step(tmp_path: Path, **inputs: str) -> Step:
    """A step with files as a runner gives them."""
    environ = {f"GPUCI_{name}": value for name, value in inputs.items()}
    files = {name: str(tmp_path / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    return Step(
        "find-changed", {"GITHUB_ACTIONS": "true", "RUNNER_TEMP": str(tmp_path), **files, **environ}, {}
    )


@pytest.mark.parametrize(
    ("given", "value"), [("", "d"), ("  \n", "d"), (" a b\n", "a b")], ids=["empty", "blank", "stripped"]
)
def test_an_input_is_stripped_and_has_a_default(tmp_path: Path, given: str, value: str) -> None:
    assert step(tmp_path, NAME=given).value("NAME", "d") == value


@pytest.mark.parametrize(
    ("given", "value"), [("", True), ("true", True), ("False", False), (" false ", False)]
)
def test_a_flag(tmp_path: Path, given: str, value: bool) -> None:
    assert step(tmp_path, A_FLAG=given).flag("A_FLAG", True) is value


@pytest.mark.parametrize(("given", "value"), [("", 7), ("0", 0), (" 12 ", 12), ("012", 12)])
def test_a_number(tmp_path: Path, given: str, value: int) -> None:
    assert step(tmp_path, MAX_SHARDS=given).number("MAX_SHARDS", 7, high=12) == value


@pytest.mark.parametrize("given", ["-1", "13", "1.5", "x", "\u0661", "9" * 5000])
def test_what_is_no_such_number_is_named_as_its_author_wrote_it(tmp_path: Path, given: str) -> None:
    with pytest.raises(ConfigError, match="max-shards is") as caught:
        step(tmp_path, MAX_SHARDS=given).number("MAX_SHARDS", 7, high=12)
    assert caught.value.then == "give a whole number from 0 to 12"


def test_what_is_no_flag_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a-flag is 'yes'"):
        step(tmp_path, A_FLAG="yes").flag("A_FLAG")


def test_outputs_add_up_to_what_github_takes_from_a_job(tmp_path: Path) -> None:
    one = step(tmp_path)
    one.output("a", "x" * 499_998)
    with pytest.raises(GpuciError, match="the output b"):
        one.output("b", "x")
    assert read_values((tmp_path / "GITHUB_OUTPUT").read_text()) == {"a": "x" * 499_998}


def test_a_name_that_is_no_utf_8_is_written_as_an_escape(tmp_path: Path) -> None:
    step(tmp_path).output("a", "caf\udce9")
    assert read_values((tmp_path / "GITHUB_OUTPUT").read_text()) == {"a": "caf\\udce9"}


def test_a_summary_stays_below_the_size_that_github_drops(tmp_path: Path) -> None:
    one = step(tmp_path)
    for _ in range(5):
        one.summary("x\n" * 150_000)
    text = (tmp_path / "GITHUB_STEP_SUMMARY").read_bytes()
    assert commands.SUMMARY_BYTES - 300_000 < len(text) <= commands.SUMMARY_BYTES
    assert text.count(commands.SUMMARY_CUT.strip().encode()) == 1
    assert text.rstrip().endswith(commands.SUMMARY_CUT.strip().encode())


def test_annotations_beyond_the_limit_are_lines_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = step(tmp_path)
    for number in range(ANNOTATIONS + 2):
        one.warning(f"w{number}", file="a.py", line=number)
        one.error("e") if number == 0 else None
    one.close()
    log = read_log(capsys.readouterr().out)
    assert [command.data for command in log.named("warning")] == [f"w{n}" for n in range(ANNOTATIONS)]
    assert len(log.named("error")) == 1
    assert log.text[:2] == ["warning: a.py:10: w10", "warning: a.py:11: w11"]
    assert log.text[2].startswith("2 more warnings stand in this log only")


def test_without_a_runner_it_says_what_it_would_write(capsys: pytest.CaptureFixture[str]) -> None:
    one = Step("x", {}, {})
    one.begin()
    one.output("name", "::error::value")
    one.summary("## text")
    log = read_log(capsys.readouterr().out)
    assert log.commands == []
    assert "|::error::value" in log.text
    assert "## text" in log.text


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "GITHUB_EVENT_PATH is"),
        ("{", "GITHUB_EVENT_PATH is"),
        ("[]", "no mapping"),
        ("[" * 10**5, "is"),
    ],
    ids=["missing", "broken", "list", "deep"],
)
def test_an_event_that_is_none(tmp_path: Path, content: str | None, told: str) -> None:
    path = tmp_path / "event.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=told):
        Step("x", {"GITHUB_EVENT_PATH": str(path)}, {}).event()


def test_an_event(tmp_path: Path) -> None:
    (tmp_path / "event.json").write_text('{"action": "labeled"}')
    assert Step("x", {"GITHUB_EVENT_PATH": str(tmp_path / "event.json")}, {}).event() == {"action": "labeled"}


def test_the_scratch_directory_is_one_and_below_the_runners(tmp_path: Path) -> None:
    one = step(tmp_path)
    assert one.scratch() == one.scratch()
    assert one.scratch().parent == tmp_path
    assert one.scratch().name.startswith("gpuci-find-changed-")


def test_a_secret_is_no_input() -> None:
    one = Step("x", {}, {"GPUCI_TOKEN": "t"})
    assert (one.secret("TOKEN"), one.value("TOKEN"), one.secret("OTHER")) == ("t", "", "")
