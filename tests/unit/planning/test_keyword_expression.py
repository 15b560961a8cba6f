"""Which expressions of -k are refused where they are given: those that pytest itself refuses."""

import pytest
from _pytest.mark import expression
from _pytest.mark.expression import Expression
from hypothesis import given
from hypothesis import strategies as st

from gpuci.planning.keyword_expression import expression_fault

NAME = "a name, `not` or `(` must come here"
AFTER = "only `and`, `or`, `)` or the end can come here"
REFUSED = getattr(expression, "ParseError", SyntaxError)  # its own class before pytest 9
ODD = r"names have letters, digits and _ : + - . [ ] \ / only"


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \t",
        "a",
        "not a",
        "not not a",
        "a and not (b or c)",
        "((a))",
        "(a)and(b)",
        "test_x[1-cpu]",
        r"a.py::T::t[\x/+]",
        "größe",
        "None or True",
        "android",
        "\n a",
        "-",
        "not(" * 5000 + "a" + ")" * 5000,
    ],
)
def test_what_pytest_reads_passes(text: str) -> None:
    assert expression_fault(text) is None


@pytest.mark.parametrize("text", ["-(a or b)", "-not a", "(a or b):", "-(a):"])
def test_what_only_pytest_7_0_reads_passes(text: str) -> None:
    assert expression_fault(text) is None


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a and", f"column 6, after 'a and': {NAME}"),
        ("not", f"column 4, after 'not': {NAME}"),
        ("a or or b", f"column 6, at 'or b': {NAME}"),
        ("and", f"column 1, at 'and': {NAME}"),
        ("()", f"column 2, at ')': {NAME}"),
        ("(", f"column 2, after '(': {NAME}"),
        ("x or (a", "column 6, at '(a': this `(` is not closed"),
        ("a)", "column 2, at ')': no `(` is open"),
        ("a b", f"column 3, at 'b': {AFTER}"),
        ("a not b", f"column 3, at 'not b': {AFTER}"),
        ("  a b", f"column 5, at 'b': {AFTER}"),
        ("a(b)", f"column 2, at '(b)': {AFTER}"),
        ("device(gpus=1)", f"column 7, at '(gpus=1)': {AFTER}"),
        ("a == b", f"column 3, at '== b': {ODD}"),
        ("a & b", f"column 3, at '& b': {ODD}"),
        ("test_*", f"column 6, at '*': {ODD}"),
        ("'a'", f"""column 1, at "'a'": {ODD}"""),
        ("a\nor b", f"column 2, at '\\nor b': {ODD}"),
        ("\x1b[31m", f"column 1, at '\\x1b[31m': {ODD}"),
        ("a " + "b" * 5000, f"column 3, at '{'b' * 30}': {AFTER}"),
    ],
)
def test_a_fault_has_its_place(text: str, fault: str) -> None:
    assert expression_fault(text) == fault


def compiles(text: str) -> bool:
    """Whether the pytest at hand reads it, as its deselect_by_keyword asks."""
    try:
        Expression.compile(text.lstrip())
    except REFUSED:
        return False
    return True


WORDS = st.sampled_from(["and", "or", "not", "(", ")", "a", "-b", "c:", "[1]", "&", "*", ",", "\n", "ä"])
TEXTS = st.lists(st.tuples(WORDS, st.sampled_from(["", " ", "\t"])), max_size=9).map(
    lambda parts: "".join(word + blank for word, blank in parts)
)


@given(TEXTS | st.text(max_size=12).filter(lambda text: "=" not in text))
def test_it_is_as_strict_as_pytest(text: str) -> None:
    """Without `=` there is no `name(key=value)`, and without `-` and `:` at the ends nothing of 7.0 alone."""
    if compiles(text):
        assert expression_fault(text) is None
    elif not (text.lstrip().startswith("-") or text.endswith(":")):
        assert expression_fault(text) is not None
