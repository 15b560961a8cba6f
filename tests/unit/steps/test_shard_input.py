"""The variables of run_gpu_shard.py: those that it reads, those that it names, those that are documented."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from gpuci.errors import ConfigError
from gpuci.execution.transport.login import login_from
from gpuci.steps.shard_input import NOT_FOR_CLEAN_UP, VARIABLES, read, usage

CLONE = Path(__file__).resolve().parents[3]
PROGRAM = CLONE / "scripts" / "run_gpu_shard.py"
GIVEN = {
    "GPUCI_PLAN": "plan.json",
    "GPUCI_SHARD": "2",
    "GPUCI_SHA": "0" * 40,
    "GPUCI_OUT": "out",
    "GITHUB_REPOSITORY": "owner/name",
    "GITHUB_RUN_ID": "1",
    "SSH_AUTH_SOCK": "socket",
}


class Recorded(Mapping[str, str]):
    """An environment that knows what was asked for."""

    def __init__(self) -> None:
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return GIVEN[name]

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("all of the environment was asked for")

    def __len__(self) -> int:
        return len(GIVEN)


def test_the_variables_are_those_that_are_read() -> None:
    environ = Recorded()
    read(environ)
    login_from({"login": "login1", "known-hosts": "~/known_hosts"}, environ)
    assert environ.asked | {"GPUCI_TOKEN"} == set(VARIABLES)  # that one is never among the others


def test_the_table_of_the_page_names_each_variable() -> None:
    page = (CLONE / "docs" / "slurm.md").read_text("utf-8")
    table = page.partition("<!-- table: variables -->\n")[2].partition("\n<!-- end -->")[0]
    rows = [tuple(cell.strip() for cell in row.strip("|").split("|")) for row in table.split("\n")[2:]]
    assert [(name.strip("`"), what) for name, _needed, what in rows] == list(VARIABLES.items())
    for name, needed, _what in rows:
        assert (needed == "yes") == is_needed(name.strip("`")), name


def is_needed(name: str) -> bool:
    """Whether there is no reading without it; a tree can stand in for the commit."""
    try:
        read({"GPUCI_TREE": "tree", **{other: value for other, value in GIVEN.items() if other != name}})
    except ConfigError:
        return True
    return False


@pytest.mark.parametrize(("argument", "code"), [("--help", 0), ("-h", 0), ("cleanup", 2)])
def test_it_says_how_it_is_called_and_needs_no_package_for_that(argument: str, code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", PROGRAM, argument], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout if code == 0 else done.stderr) == (code, usage())


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"GPUCI_SHA": ""}, "neither GPUCI_SHA nor GPUCI_TREE is set"),
        ({"GPUCI_PLAN": "", "GITHUB_RUN_ID": ""}, "GPUCI_PLAN is not set"),
        ({"GPUCI_PLAN": "", "GITHUB_RUN_ID": ""}, "GITHUB_RUN_ID is not set"),
        ({"GPUCI_SHARD": "0"}, "GPUCI_SHARD is '0'"),
        ({"GPUCI_SHARD": "1\n2"}, "GPUCI_SHARD is"),
        ({"GPUCI_SHARD": "9" * 5000}, "GPUCI_SHARD is"),
        ({"GITHUB_RUN_ATTEMPT": "-1"}, "GITHUB_RUN_ATTEMPT is '-1'"),
    ],
    ids=["no tree", "first of two", "second of two", "zero", "two lines", "huge", "attempt"],
)
def test_what_is_missing_or_makes_no_sense_is_named(changed: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read({**GIVEN, **changed})


@pytest.mark.parametrize("clean_up", [False, True], ids=["run", "clean-up"])
def test_jobs_of_two_uses_have_other_names(clean_up: bool) -> None:
    runs = [read({**GIVEN, "GPUCI_NAME": name}, clean_up=clean_up).run for name in ("", "docs", "gpu-docs")]
    assert runs == ["1", "1.docs", "1.gpu.docs"]
    with pytest.raises(ConfigError, match="the input name is"):
        read({**GIVEN, "GPUCI_NAME": "Docs"}, clean_up=clean_up)


def test_a_clean_up_needs_the_names_and_the_login_only() -> None:
    given = {name: value for name, value in GIVEN.items() if name not in NOT_FOR_CLEAN_UP}
    found = read(given, clean_up=True)
    assert (found.plan, found.shard, found.out) == ("plan.json", 2, "")


@pytest.mark.parametrize("arguments", [(), ("clean-up",)], ids=["run", "clean-up"])
def test_the_whole_step_needs_the_standard_library_only(arguments: tuple[str, ...]) -> None:
    """It gets as far as to its missing variables, which is behind all of its imports."""
    command = [sys.executable, "-I", "-S", str(PROGRAM), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={})
    assert "GPUCI_PLAN is not set" in done.stdout + done.stderr
    assert done.returncode == 2
