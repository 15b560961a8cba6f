"""Which options of sbatch a configuration may add, however they are written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.errors import ConfigError
from gpuci.execution.slurm.extra import REFUSED, SHORT, SHORT_FLAGS, extra_options

SCHEMA = Path(__file__).resolve().parents[4] / "schemas" / "config.schema.json"


@pytest.mark.parametrize(
    ("given_as", "option"),
    [
        ("--mem=0", "--mem=0"),
        ("--mem 0", "--mem=0"),
        ("--exclusive", "--exclusive"),
        ("--exclusive=user", "--exclusive=user"),
        ("-c 8", "--cpus-per-task=8"),
        ("-c8", "--cpus-per-task=8"),
        ("-wgpu001", "--nodelist=gpu001"),
        ("-O", "--overcommit"),
        ("--mail-user=a b", "--mail-user=a b"),
        ("--nodelist=gpu[001-003]", "--nodelist=gpu[001-003]"),
        ("--time-min=10", "--time-min=10"),
        ("--no-kill", "--no-kill"),
        ("--a-site-plugin=x=y", "--a-site-plugin=x=y"),
        ("--cpus-per-gpu=8", "--cpus-per-gpu=8"),
        ("--network=é", "--network=é"),
    ],
)
def test_options_are_passed_on_by_their_long_names(given_as: str, option: str) -> None:
    assert extra_options([given_as]) == (option,)


@pytest.mark.parametrize(
    ("option", "because"),
    [
        ("--output=x", "finds the job or its log"),
        ("--outp=x", "can stand for --output"),
        ("-o x", "finds the job or its log"),
        ("-ox", "finds the job or its log"),
        ("-e/dev/null", "finds the job or its log"),
        ("-J x", "finds the job or its log"),
        ("--job", "can stand for --job-name"),
        ("-D/tmp", "finds the job or its log"),
        ("-p gpu", "`slurm.partition`"),
        ("-t 10", "`slurm.time-limit`"),
        ("--time=10", "`slurm.time-limit`"),
        ("--gres=gpu:1", "`slurm.gres`"),
        ("-G 4", "the GPUs of its profile"),
        ("--gpus-per-t=1", "can stand for --gpus-per-task"),
        ("--array=1-3", "one task"),
        ("-a 1-3", "one task"),
        ("-N2", "one task"),
        ("--ntasks-per-node=8", "one task"),
        ("--wrap=id", "something else than submit"),
        ("--wr=id", "can stand for --wrap"),
        ("--wait", "something else than submit"),
        ("-W", "something else than submit"),
        ("--test-only", "something else than submit"),
        ("--parsable", "something else than submit"),
        ("-V", "something else than submit"),
        ("--requeue", "tries again by itself"),
        ("--no-req", "can stand for --no-requeue"),
        ("--signal=TERM", "before the time limit"),
        ("--dependency=singleton", "wait for ever"),
        ("-H", "wait for ever"),
        ("-M other", "not be found again"),
        ("--export=ALL", "container.env"),
        ("--export-file=/x", "container.env"),
        ("--uid=0", "only root"),
        ("--container-image=x", "named in `container`"),
        ("--container=x", "named in `container`"),
        ("-vH", "by its long name"),
        ("-c", "by its long name"),
        ("-y 1", "no such short option"),
        ("-", "no such short option"),
        ("--", "names no option"),
        ("--=x", "names no option"),
        ("--mem=0\n--wrap=id", "control character"),
        ("--mem=0\r", "control character"),
    ],
)
def test_what_can_not_be_given_is_named_with_the_reason(option: str, because: str) -> None:
    with pytest.raises(ConfigError) as error:
        extra_options(["--mem=0", option])
    assert because in error.value.what
    assert "--mem=0`:" not in error.value.what
    assert "\n" not in error.value.what


def test_all_that_can_not_be_given_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as error:
        extra_options(["--wrap=a", "--mem=0", "-o b"])
    assert "`--wrap=a`" in error.value.what
    assert "`-o b`" in error.value.what


@given(st.sampled_from(sorted(REFUSED)), st.data())
def test_no_beginning_of_a_refused_name_gets_through(name: str, data: st.DataObject) -> None:
    """Except a whole name of another option, which getopt_long prefers."""
    part = name[: data.draw(st.integers(1, len(name)))]
    if part in {"mem", "time-min", "nodelist", "no-kill", "bb"}:
        return
    with pytest.raises(ConfigError):
        extra_options([f"--{part}=x"])


@pytest.mark.parametrize("letter", sorted({**SHORT, **SHORT_FLAGS}))
def test_a_short_option_is_refused_as_its_long_one_is(letter: str) -> None:
    name = {**SHORT, **SHORT_FLAGS}[letter]
    option = f"-{letter}" if letter in SHORT_FLAGS else f"-{letter}x"
    if name in REFUSED:
        with pytest.raises(ConfigError, match="can't hold"):
            extra_options([option])
    else:
        assert extra_options([option])[0].startswith(f"--{name}")


def test_each_setting_that_is_an_option_of_its_own_is_refused() -> None:
    settings = json.loads(SCHEMA.read_text("utf-8"))["properties"]["slurm"]["properties"]
    named = {word for reason in REFUSED.values() for word in settings if f"`slurm.{word}`" in reason}
    assert named >= {"partition", "account", "qos", "constraint", "reservation", "exclude", "gres"}


@given(st.lists(st.text(max_size=30)))
def test_any_list_gives_options_or_one_error(options: list[str]) -> None:
    try:
        accepted = extra_options(options)
    except ConfigError:
        return
    assert len(accepted) == len(options)
    assert all(option.startswith("--") and option.isprintable() for option in accepted)
