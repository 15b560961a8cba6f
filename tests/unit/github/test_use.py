"""Several uses in one repository: nothing that one leaves can be taken for another's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.errors import ConfigError
from gpuci.execution.slurm.names import job_name
from gpuci.github.client import APPROVAL_CONTEXT
from gpuci.github.use import Use, use_of

NAMES = st.one_of(st.just(""), st.from_regex(r"[a-z0-9]([a-z0-9_-]{0,18}[a-z0-9])?", fullmatch=True))


def test_the_only_use_has_the_names_that_the_documents_show() -> None:
    only = use_of("")
    assert (only.prefix, only.context, only.run("77")) == ("gpuci-", "gpuci", "77")


def test_a_name_stands_in_all_of_them() -> None:
    docs = use_of("gpu-docs")
    assert (docs.prefix, docs.context, docs.run("77")) == (
        "gpuci.gpu-docs.",
        "gpuci (gpu-docs)",
        "77.gpu.docs",
    )
    assert job_name("org/mono", docs.run("77"), 1, 2, 1) == "gpuci-org.mono-77.gpu.docs-a1-s2-t1"


@given(NAMES, NAMES, st.integers(1, 10**12), st.text("abshard-0123456789.", max_size=30))
def test_two_names_share_nothing(one: str, other: str, run: int, rest: str) -> None:
    first, second = use_of(one), use_of(other)
    if one != other:
        assert not f"{first.prefix}{rest}".startswith(second.prefix)
        assert first.context != second.context
        names = [job_name("org/mono", use.run(str(run)), 1, 2, 1) for use in (first, second)]
        assert len(set(names)) == 2
    assert first.context != APPROVAL_CONTEXT


@given(NAMES, st.integers(1, 10**12), st.integers(1, 10**12))
def test_another_run_has_other_jobs(name: str, run: int, later: int) -> None:
    assert (Use(name).run(str(run)) == Use(name).run(str(later))) == (run == later)


@pytest.mark.parametrize(
    "name",
    ["Docs", "a.b", "a b", "-a", "a-", "_", "a" * 21, "a/b", "a\n", "ä", "\u0661", "${{ x }}", "`id`", "*"],
)
def test_what_is_no_name_is_refused_with_what_is(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        use_of(name)
    assert "the input name is" in caught.value.what
    assert "at most 20 of a-z, 0-9" in caught.value.then
    assert "\n" not in caught.value.what


@pytest.mark.parametrize("name", ["a", "7", "approved", "plan", "shard-1-attempt-1", "a_b-c", "a" * 20])
def test_what_is_a_name(name: str) -> None:
    assert use_of(name) == Use(name)
