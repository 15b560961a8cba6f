"""The text of a batch job: what sbatch reads of it, and what sh makes of it."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpuci.errors import ConfigError
from gpuci.execution.slurm import script as module
from gpuci.execution.slurm.script import BatchJob, assignment, batch_script, directive

PLAIN = BatchJob(("--nodes=1", "--comment=gpuci key=1"), {"B": "2", "A": "it's"}, "f() { :; }\n", 'f "$A"\n')
printable = st.text(st.characters(exclude_categories=("Cc", "Cs")) | st.sampled_from("\t #\"'\\$`:hetjob"))


def read_by_sbatch(line: str) -> list[str]:
    """The words of a #SBATCH line, by the rules of sbatch's `get_argument` (22.05), on bytes as C does it."""
    text = _without_components(line.removeprefix("#SBATCH").encode())
    words: list[str] = []
    at = 0
    while at < len(text):
        while at < len(text) and text[at : at + 1].isspace():
            at += 1
        if at == len(text) or text[at : at + 1] == b"#":
            break
        assert text[at : at + 1] != b":", "sbatch: Unexpected `:`"
        word, at = _word(text, at)
        words.append(word.decode())
    return words


def _without_components(text: bytes) -> bytes:
    """`strcasestr` and `memcpy` of blanks: the first of each word is lost, wherever it stands."""
    for word in (b"packjob", b"hetjob"):
        at = text.lower().find(word)
        if at >= 0:
            text = text[:at] + b" " * len(word) + text[at + len(word) :]
    return text


def _word(text: bytes, at: int) -> tuple[bytes, int]:
    word, quote, escaped = b"", b"", False
    while at < len(text) and (quote or not text[at : at + 1].isspace()):
        letter = text[at : at + 1]
        at += 1
        if escaped:
            escaped = False
        elif letter == b"\\":
            escaped = True
            continue
        elif quote:
            if letter == quote:
                quote = b""
                continue
        elif letter in (b'"', b"'"):
            quote = letter
            continue
        elif letter == b"#":
            return word, len(text)
        word += letter
    assert not quote, "sbatch: Unmatched quote"
    return word, at


def test_the_whole_text() -> None:
    assert batch_script(PLAIN) == (
        "#!/bin/sh\n"
        "#SBATCH --nodes=1\n"
        '#SBATCH "--comment=gpuci key=1"\n'
        "# gpuci: one try of one shard. Written by a program; what it does is below, in plain sh.\n"
        "A='it'\"'\"'s'\n"
        "B=2\n"
        "f() { :; }\n"
        'f "$A"\n'
    )


@pytest.mark.parametrize(
    ("option", "line"),
    [
        ("--gres=gpu:h100:8", "--gres=gpu:h100:8"),
        ("--exclude=gpu[001-003],a", "--exclude=gpu[001-003],a"),
        ("--output=/a%%b/c", "--output=/a%%b/c"),
        ("--comment=a b", '"--comment=a b"'),
        ("--comment=a#b", '"--comment=a\\#b"'),
        ("--comment=\"'\\", '"--comment=\\"\'\\\\"'),
        ("--chdir=/hetjob/PackJob", '"--chdir=/het\\job/Pack\\Job"'),
        ("--comment=é", '"--comment=é"'),
    ],
)
def test_options_are_quoted_for_sbatch(option: str, line: str) -> None:
    assert directive(option) == line


@given(printable)
@example("x #y")
@example("hethetjobjob packpackjobjob")
@example("\u0130hetjob")
def test_sbatch_reads_what_was_meant(value: str) -> None:
    option = f"--comment={value}"
    assert read_by_sbatch(f"#SBATCH {directive(option)}") == [option]


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "a\0b", "a\x1b[1m", "a\x7f", "a\x0bb"])
def test_control_characters_in_an_option_are_refused(value: str) -> None:
    with pytest.raises(ConfigError, match="control character"):
        batch_script(BatchJob((f"--comment={value}",), {}, "", ""))


values = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@settings(max_examples=25)
@given(st.lists(values | st.sampled_from(["\n#SBATCH --qos=x", "#SBATCH", "a\n\n#PBS b\n"]), max_size=3))
def test_sh_gets_each_value_as_it_is_and_sbatch_none(texts: list[str]) -> None:
    names = [f"V{number}" for number in range(len(texts))]
    lines = [assignment(name, text) for name, text in zip(names, texts, strict=True)]
    assert not any(line.startswith("#") for whole in lines for line in whole.split("\n"))
    body = "".join(f'printf "%s\\0" "${name}"\n' for name in names)
    done = subprocess.run(["sh"], input="\n".join([*lines, body]).encode(), capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == texts


@pytest.mark.parametrize("name", ["", "a b", "1a", "A=B", "A\nB", "é"])
def test_only_names_are_names(name: str) -> None:
    with pytest.raises(ValueError, match="not the name of a variable"):
        batch_script(BatchJob((), {name: ""}, "", ""))


@pytest.mark.parametrize("line", ["#SBATCH --qos=x", "#PBS -q x", "#BSUB x", "#SLURM x"])
def test_the_body_holds_no_line_that_sbatch_reads(line: str) -> None:
    with pytest.raises(ValueError, match="which sbatch reads"):
        batch_script(BatchJob((), {}, "", f"true\n{line}\n"))


@pytest.mark.parametrize(
    ("value", "what"),
    [("a\0b", "a NUL"), ("a\r\nb", "carriage return"), ("\udce9", "not UTF-8")],
    ids=["NUL", "DOS", "no text"],
)
def test_what_sbatch_would_refuse_is_refused_here(value: str, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        batch_script(BatchJob((), {"A": value}, "", ""))


def test_a_script_larger_than_slurm_takes_is_refused() -> None:
    room = module.MAX_BYTES - len(batch_script(BatchJob((), {"A": ""}, "", "")).encode())
    fits = batch_script(BatchJob((), {"A": "é" * (room // 2)}, "", ""))
    assert len(fits.encode()) <= module.MAX_BYTES
    with pytest.raises(ConfigError, match="Slurm takes"):
        batch_script(BatchJob((), {"A": "é" * (room // 2 + 1)}, "", ""))


def test_the_order_of_variables_changes_nothing() -> None:
    turned = BatchJob(
        PLAIN.options, dict(reversed(list(PLAIN.variables.items()))), PLAIN.functions, PLAIN.body
    )
    assert batch_script(turned) == batch_script(PLAIN)
