"""The command line means the same to every shell, and an answer is whole or none."""

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.errors import ConfigError
from gpuci.execution.transport.command import Answer, answer_of, remote_command, started

SHELLS = ("sh", "dash", "bash", "zsh", "ksh", "mksh", "tcsh", "fish")
NASTY = (
    *("", " ", "a b", "it's", '"', "$HOME", "`id`", "$(id)", "\\", "\\n", "\\0101", "!", "!!", "a!b"),
    *(
        "%s",
        "%",
        "*",
        "~",
        "-n",
        "--",
        "#",
        "a\tb",
        "é\N{GREEK SMALL LETTER PI}",
        "\x1b[31m",
        "\udcff",
        ";&|<>",
        "'\\''",
    ),
)
ONE_LINE = st.text(st.characters(exclude_characters="\0\n\r", exclude_categories=["Cs"]))


def answer(shell: str, text: str, *args: str, stdin: bytes = b"") -> Answer | None:
    """Run as sshd does: SHELL -c LINE."""
    command = [shell, "-c", remote_command(text, args, "n0")]
    done = subprocess.run(command, input=stdin, capture_output=True, check=False)
    return answer_of("n0", done.stdout, done.stderr)


@pytest.mark.parametrize("shell", SHELLS)
def test_every_login_shell_passes_text_and_arguments_on_as_they_are(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    text = "for a do\n  printf '%s\\0' \"$a\"\ndone\nprintf '%s' 'é \\ ! \"'\ncat\necho err >&2\nexit 7\n"
    expected = b"".join(word.encode("utf-8", "surrogateescape") + b"\0" for word in NASTY)
    assert answer(shell, text, *NASTY, stdin=b"\0\xff\n") == Answer(
        7, expected + 'é \\ ! "'.encode() + b"\0\xff\n", "err\n"
    )


@given(st.lists(ONE_LINE))
def test_any_argument_arrives(args: list[str]) -> None:
    expected = b"".join(word.encode() + b"\0" for word in args)
    assert answer("sh", 'for a do printf "%s\\0" "$a"; done', *args) == Answer(0, expected, "")


@given(st.text(), st.lists(ONE_LINE))
def test_the_line_is_printable_ascii_in_single_quotes(text: str, args: list[str]) -> None:
    try:
        line = remote_command(text, args, "n0")
    except UnicodeEncodeError:
        return
    assert line.isascii()
    assert line.isprintable()
    assert not set(line) & set("!\\") - set("\\")
    assert line.count("'") == 2 * (2 + len(args))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("true", 0),
        ("exit 255", 255),
        ("exit 7", 7),
        ("exec true", 0),
        ("exec sh -c 'exit 3'", 3),
        ("set -e\nfalse\nexit 1", 1),
        ("set -eu; : $nope", None),
        ("no-such-command-of-ours", 127),
        ("if", None),
        ("kill -9 $$; exit 2", None),
        ("sh -c 'kill -9 $$'", 137),
        ("trap 'exit 9' EXIT; false", 9),
    ],
)
def test_the_code_is_that_of_the_text(text: str, code: int | None) -> None:
    given = answer("sh", text)
    if text.startswith("kill"):
        assert given is None  # the shell around the text is dead: no answer
        return
    assert given is not None
    assert given.code == code if code is not None else given.code not in (0, 255)


START, END = b"gpuci-start n0\n", b"gpuci-end n0 %d\n"


@pytest.mark.parametrize(
    ("out", "err", "expected"),
    [
        (START + END % 0, START + END % 0, Answer(0, b"", "")),
        (
            b"Welcome!\n" + START + b"x" + END % 3,
            b"bash: warning\n" + START + b"y" + END % 3,
            Answer(3, b"x", "y"),
        ),
        (START + b"a" + END % 0, START + END % 0 + b"Shared connection closed.\n", Answer(0, b"a", "")),
        (START + b"\xff" + END % 0, START + b"\xff" + END % 0, Answer(0, b"\xff", "\ufffd")),
        (START + b"gpuci-end n1 4\n" + END % 0, START + END % 0, Answer(0, b"gpuci-end n1 4\n", "")),
        (START + START + END % 0, START + END % 0, Answer(0, START, "")),
        (b"", b"", None),
        (b"Welcome!\n", b"This account is currently not available.\n", None),
        (START + b"half", START + END % 0, None),
        (START + END % 0, START + b"half", None),
        (START + b"gpuci-end n0 1", START + END % 1, None),
        (START + b"gpuci-end n0 ", START + END % 1, None),
        (b"gpuci-start n0" + END % 0, START + END % 0, None),
        (END % 0 + START, START + END % 0, None),
    ],
)
def test_an_answer_is_whole_or_none(out: bytes, err: bytes, expected: Answer | None) -> None:
    assert answer_of("n0", out, err) == expected


@given(st.binary(), st.integers(0, 255), st.data())
def test_a_cut_stream_is_no_answer(body: bytes, code: int, data: st.DataObject) -> None:
    whole = START + body + END % code
    other = START + END % code
    assert answer_of("n0", whole, other) == Answer(code, body, "")
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    assert answer_of("n0", cut, other) is None
    assert answer_of("n0", other, cut) is None


@pytest.mark.parametrize("value", ["a\nb", "a\0b", "a\r"], ids=ascii)
def test_an_argument_of_two_lines_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match="holds a line end or a NUL"):
        remote_command("true", [value], "n0")


def test_what_is_too_long_for_one_argument_of_linux_is_refused() -> None:
    line = remote_command("true", ["a" * 119_000], "n0")
    assert len(line) <= 120_000
    with pytest.raises(ConfigError, match="fit"):
        remote_command("true", ["a" * 120_000], "n0")


@pytest.mark.parametrize(
    ("out", "err", "expected"),
    [(b"", b"", False), (START, b"", True), (b"", START, True), (b"gpuci-start other\n", b"", False)],
)
def test_it_is_known_whether_the_text_was_reached(out: bytes, err: bytes, expected: bool) -> None:
    assert started("n0", out, err) == expected
