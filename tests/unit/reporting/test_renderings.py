"""Terminal and Markdown: what stands where, and that nothing hostile gets through."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuci.model import LearnedNeed, Report, ShardReport, TestResult, TryReport
from gpuci.reporting import markdown, summary, terminal
from gpuci.reporting.links import Links
from gpuci.reporting.text import width_of
from gpuci_node.contract import OUTCOMES, VERDICTS, count_outcomes

HOSTILE = st.text(
    st.one_of(
        st.sampled_from("\x1b\r\n\t\x9b\u202e\u2028[]#:`|<>@&;m ~-\\/a界\u0301"),
        st.characters(codec="utf-8"),
    ),
    max_size=80,
) | st.sampled_from(["::error::x", "##[error]x", " ::x::", "````", "</details>", "@all", "a|b", "## ", "##"])
RESULTS = st.builds(
    TestResult,
    nodeid=HOSTILE,
    outcome=st.sampled_from(OUTCOMES),
    seconds=st.floats(0, 1e5),
    shard=st.none() | st.integers(0, 12),
    slot=HOSTILE,
    gpus=st.lists(HOSTILE, max_size=2).map(tuple),
    file=HOSTILE,
    line=st.none() | st.integers(0, 999),
    message=HOSTILE,
    output=HOSTILE,
    peak_memory_bytes=st.none() | st.integers(0, 10**14),
    cuda_used=st.none() | st.booleans(),
)
REPORTS = st.builds(
    Report,
    verdict=st.sampled_from(VERDICTS),
    reason=HOSTILE,
    counts=st.just({"passed": 3}),
    tests=st.lists(RESULTS, max_size=4).map(tuple),
    shards=st.lists(
        st.builds(
            ShardReport,
            index=st.integers(0, 12),
            verdict=st.sampled_from(VERDICTS),
            planned_seconds=st.floats(0, 1e5),
            wall_seconds=st.floats(0, 1e5),
            node=HOSTILE,
            reason=HOSTILE,
            history=st.lists(
                st.builds(TryReport, st.integers(1, 3), st.sampled_from(VERDICTS), HOSTILE, HOSTILE),
                max_size=3,
            ).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
    warnings=st.lists(HOSTILE, max_size=2).map(tuple),
    notes=st.lists(HOSTILE, max_size=2).map(tuple),
    seconds=st.floats(0, 1e5),
    needs=st.dictionaries(
        HOSTILE,
        st.builds(LearnedNeed, st.integers(1, 1024), st.booleans(), HOSTILE, HOSTILE, st.none() | st.just(1)),
        max_size=3,
    ),
)


def assert_harmless(text: str) -> None:
    assert "##[" not in text
    assert not set(text) & set("\x1b\r\x9b\u202e\u2028")
    assert not any(line.strip().startswith("::") for line in text.splitlines())
    text.encode()


@given(REPORTS, st.integers(40, 200), st.booleans())
def test_terminal_is_harmless_and_fits(report: Report, width: int, verbose: bool) -> None:
    text = terminal.render(report, width=width, verbose=verbose)
    assert_harmless(text)
    assert all(width_of(line) <= width + 1 for line in text.split("\n"))  # the guard may add a column


LINKS = Links("https://github.com", "org/repo", "a" * 40, "77")


@given(REPORTS, st.sampled_from([None, LINKS]))
def test_markdown_is_harmless(report: Report, links: Links | None) -> None:
    text = markdown.render(report, links=links)
    assert_harmless(text)
    prose = re.sub(r"(?s)^(`{3,})text\n.*?^\1$", "", text, flags=re.MULTILINE)
    outside = re.sub(r"<code>[^<>]*</code>", "", prose)
    outside = re.sub(rf"\[\]\({LINKS.server}/org/repo/blob/a{{40}}/[\w%./~-]+(#L\d+)?\)", "", outside)
    assert "@" not in outside
    assert "](" not in outside
    assert set(re.findall(r"<[^>]*>", outside)) <= {
        "<details>",
        "<details open>",
        "<summary>",
        "</summary>",
        "</details>",
    }


@given(st.lists(RESULTS, max_size=40), HOSTILE, st.integers(markdown.LEAST_BYTES, 40_000))
@settings(max_examples=50)
def test_markdown_keeps_its_limit(results: list[TestResult], reason: str, limit: int) -> None:
    big = tuple(replace(result, output=result.output * 20, message=result.message * 20) for result in results)
    text = markdown.render(Report("failed", reason * 50, {}, big, ()), limit_bytes=limit)
    assert len(text.encode()) <= limit


def test_times_of_the_same_thing_are_told_in_one_unit(red_report: Report) -> None:
    rows = tuple(replace(row, gpus=8) for row in red_report.shards)
    text = markdown.render(replace(red_report, shards=rows))
    assert "GPU time: 0.86 GPU-hours held; tests used 60 % of what these shards held\n" in text
    assert "GPU-seconds: 4" not in text
    assert "GPU-seconds: 412.4 used, 276.4 idle (60 % used)\n" in markdown.render(red_report)


def test_numbers_stand_below_each_other(red_report: Report) -> None:
    text = markdown.render(red_report)
    assert "| shard | verdict | tests | planned | took | queued | tries | node |\n" in text
    assert "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |\n" in text
    assert "| 5&nbsp;min&nbsp;00&nbsp;s |" in text


def test_the_only_failure_is_open() -> None:
    one, two = TestResult("a.py::t", "failed", output="x"), TestResult("a.py::u", "failed", output="x")
    assert "<details open>" in markdown.render(Report("failed", "", {}, (one,), ()))
    assert "<details open>" not in markdown.render(Report("failed", "", {}, (one, two), ()))


@pytest.mark.parametrize("render", [terminal.render, markdown.render], ids=["terminal", "markdown"])
def test_the_counts_are_told_once(render: Callable[[Report], str], red_report: Report) -> None:
    text = html.unescape(render(red_report))
    assert "shard 3: infra (the node stopped answering)" in text
    assert text.count("1 failed, 1 error, 7 not finished") == 1


def test_why_a_test_failed_is_seen_before_anything_is_opened() -> None:
    failed = (TestResult("a.py::t", "failed", message="one > two"), TestResult("a.py::u", "error"))
    page = html.unescape(markdown.render(Report("failed", "", {"failed": 2}, failed, ())))
    assert re.findall(r"<summary>(.*?)</summary>", page) == [
        "<code>a.py::t</code> failed: <code>one > two</code>",
        "<code>a.py::u</code> error",
    ]


def test_what_markdown_cuts_is_counted() -> None:
    failed = tuple(TestResult(f"a.py::t{n}", "failed", output="x" * 300) for n in range(200))
    text = markdown.render(Report("failed", "", {"failed": 200}, failed, ()), limit_bytes=20_000)
    assert text.count("<details>") > 20
    assert "Without output, for want of room:" in text
    assert all(f"<code>{name}</code>" in html.unescape(text) for name in [test.nodeid for test in failed])
    assert "not shown" not in text
    assert "Failing tests (200)" in text
    assert len(text.encode()) <= 20_000


def test_what_is_not_even_named_is_counted_in_tests() -> None:
    """Names are long here: the last ones have no room, and one of them stands for three tests."""
    failed = [TestResult(f"a.py::{n:03}{'_' * 300}", "failed", message=f"m{n}") for n in range(200)]
    failed += [TestResult(f"b.py::t{n}", "failed") for n in range(2)]
    text = html.unescape(markdown.render(Report("failed", "", {}, tuple(failed), ()), limit_bytes=20_000))
    shown = text.count("<code>a.py::")
    assert 5 < shown < 100
    assert f"{202 - shown} more failing tests not shown: this summary is full." in text


def test_one_failure_that_is_huge_hides_no_other() -> None:
    output = "\n".join(["界" * 400] * 100)  # more than all the room that there is
    failed = [TestResult("a.py::big", "failed", output=output), TestResult("b.py::t", "failed", output="why")]
    text = html.unescape(markdown.render(Report("failed", "", {}, tuple(failed), ()), limit_bytes=20_000))
    assert "<details><summary><code>b.py::t</code> failed</summary>" in text
    assert "Without output, for want of room:\n\n- <code>a.py::big</code> failed\n" in text


ALIKE = tuple(
    TestResult(
        f"f{n % 12}.py::t{n}", "error", file="conftest.py", line=7, message="at setup: no node", output="E"
    )
    for n in range(40)
)


def test_tests_with_one_error_are_shown_once_and_counted() -> None:
    failed = (TestResult("a.py::u", "failed", message="other"), *ALIKE)
    report = Report("failed", "", count_outcomes(test.outcome for test in failed), failed, ())
    page = html.unescape(markdown.render(report))
    assert "**1 failed, 40 errors**" in page
    assert "### Failing tests (41, 2 different errors)\n" in page
    assert re.findall(r"<summary>(.*?)</summary>", page) == [
        "<code>f0.py::t0</code> error: <code>at setup: no node</code> and 39 more tests alike",
        "<code>a.py::u</code> failed: <code>other</code>",
    ]
    assert "The same error in 39 more tests:\n\n- <code>f1.py::t1</code>\n" in page
    assert "- <code>f8.py::t20</code>\n- and 19 more\n" in page
    text = terminal.render(report)
    assert "Failing tests (41, 2 different errors)\n" in text
    assert "   The same error in 39 more tests:\n    f1.py::t1\n" in text
    assert "    f5.py::t5\n    and 34 more\n" in text
    assert terminal.render(report, verbose=True).count("at setup: no node") == 40


def test_one_failure_more_would_not_fit() -> None:
    """All sections are there, and the failing tests, with output or without, fill what they leave."""
    names = [f"a.py::t{n}" for n in range(400)]
    failed = [TestResult(name, "failed", 1.0, output="x" * 90) for name in names]
    skipped = [TestResult(f"a.py::s{n}", "skipped", message=f"reason {n} " + "_" * 99) for n in range(30)]
    report = Report("failed", "r" * 300, {"failed": 400}, (*failed, *skipped), ())
    for limit in range(20_000, 20_400, 40):
        size = len(markdown.render(report, limit_bytes=limit).encode())
        assert limit - 1500 < size <= limit


def test_a_limit_that_is_too_small_is_refused(green_report: Report) -> None:
    with pytest.raises(ValueError, match="at least"):
        markdown.render(green_report, limit_bytes=1000)


@pytest.mark.parametrize("render", [terminal.render, markdown.render], ids=["terminal", "markdown"])
def test_the_verdict_comes_first(render: Callable[[Report], str], red_report: Report) -> None:
    first = render(red_report).split("\n")[0].lower()
    assert "failed" in first


@pytest.mark.parametrize(
    ("verdict", "first"),
    [("passed", "PASSED  "), ("queue_timeout", "QUEUE TIMEOUT  "), ("infra", "INFRA  ")],
)
def test_the_first_line_of_a_terminal(green_report: Report, verdict: str, first: str) -> None:
    line = terminal.render(replace(green_report, verdict=verdict)).split("\n")[0]
    assert line == first + "12 passed, 3 skipped in 44.2 s (set-up 3.10 s)"


def test_a_terminal_shows_what_a_person_asks(red_report: Report) -> None:
    text = terminal.render(red_report)
    assert "packages/attention/tests/test_flash.py:88\n   failed, shard 2, gw3, GPU 3, 3.42 s\n" in text
    assert "   AssertionError: gradients differ: 0.031 > 0.010" in text
    assert "   | |::error::a test can print a workflow command" in text
    assert "error, shard 2, try 2, gw0, GPUs 0 1 2 3, 1.20 s" in text
    assert "7 tests of shard 3: collected, but never started" in text
    assert "and 2 more" in text
    assert "GPU-seconds: 412.4 used, 276.4 idle (60 % used)" in text
    assert "    2  needs network" in text
    assert "the node stopped answering" in text


def test_colour_is_colour_only(red_report: Report) -> None:
    plain = terminal.render(red_report)
    coloured = terminal.render(red_report, colour=True)
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_long_output_is_cut_and_counted() -> None:
    output = "\n".join(f"line {n}" for n in range(30))
    report = Report("failed", "", {"failed": 1}, (TestResult("a.py::t", "failed", output=output),), ())
    text = terminal.render(report)
    assert "| (18 lines above)" in text
    assert "| line 18\n" in text
    assert "| line 17\n" not in text
    assert "| line 0\n" in terminal.render(report, verbose=True)


def test_many_failures_stay_readable() -> None:
    failed = tuple(TestResult(f"a.py::t{n}", "failed", output="x") for n in range(60))
    text = terminal.render(Report("failed", "", {"failed": 60}, failed, ()))
    assert text.count("| x") == terminal.DETAILED
    assert "35 more failing tests, without their output:" in text
    assert all(f"a.py::t{n}" in text for n in range(60))


def test_many_reasons_are_summed_up() -> None:
    skipped = tuple(TestResult(f"a.py::t{n}", "skipped", message=f"reason {n:02d}") for n in range(25))
    text = terminal.render(Report("failed", "nothing", {"skipped": 25}, skipped, ()))
    assert "    5  for 5 other reasons" in text


def test_many_warnings_are_counted(green_report: Report) -> None:
    many = replace(green_report, warnings=tuple(f"warning {n}" for n in range(terminal.REASONS + 3)))
    assert "Warnings (23)" in terminal.render(many)
    assert terminal.render(many).endswith("  - warning 19\n    and 3 more\n")
    assert terminal.render(many, verbose=True).endswith("  - warning 22\n")


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("render", [terminal.render, markdown.render], ids=["terminal", "markdown"])
def test_each_outcome_is_counted(render: Callable[[Report], str], outcome: str) -> None:
    results = (TestResult("a.py::t", outcome), TestResult("a.py::u", "passed"))
    counts = count_outcomes(result.outcome for result in results)
    assert f"{counts[outcome]} {outcome.replace('_', ' ')}" in render(
        Report("failed", "", counts, results, ())
    )


@pytest.mark.parametrize("render", [terminal.render, markdown.render], ids=["terminal", "markdown"])
def test_an_empty_report_can_be_rendered(render: Callable[[Report], str]) -> None:
    assert "no tests" in render(Report("failed", "no test passed or failed", {}, (), ()))


def test_a_worst_case_terminal_is_narrow(red_report: Report) -> None:
    assert all(len(line) <= 40 for line in terminal.render(red_report, width=10).split("\n"))


RED_SHARD = ShardReport(1, "failed", 1.0, 2.0, reason="red tests: 2")


@pytest.mark.parametrize("render", [terminal.render, markdown.render], ids=["terminal", "markdown"])
@pytest.mark.parametrize(
    ("verdict", "counts", "shards", "said"),
    [
        pytest.param("passed", {"passed": 2}, (), False, id="passed"),
        pytest.param("failed", {"failed": 2}, (RED_SHARD,), False, id="the counts say it"),
        pytest.param("failed", {"skipped": 2}, (RED_SHARD,), True, id="nothing ran"),
        pytest.param(
            "failed", {"failed": 2}, (RED_SHARD, ShardReport(2, "infra", 1.0, 2.0)), True, id="a lost shard"
        ),
        pytest.param("cancelled", {"failed": 2}, (RED_SHARD,), True, id="stopped"),
    ],
)
def test_a_reason_is_shown_where_the_counts_do_not_say_it(
    render: Callable[[Report], str],
    verdict: str,
    counts: dict[str, int],
    shards: tuple[ShardReport, ...],
    said: bool,
) -> None:
    text = render(Report(verdict, "the reason", counts, (), shards))
    assert ("the reason" in text) is said
    assert "red tests" not in text


@pytest.mark.parametrize("render", [terminal.render, markdown.render], ids=["terminal", "markdown"])
def test_counts_are_grammar(render: Callable[[Report], str]) -> None:
    counts = {"collection_error": 2, "failed": 2, "error": 1, "passed": 1}
    assert "2 collection errors, 2 failed, 1 error, 1 passed" in render(Report("failed", "", counts, (), ()))


def test_what_did_not_finish_is_told_by_shard() -> None:
    lost = [TestResult(f"a.py::t{shard}", "not_finished", shard=shard) for shard in (3, None, 1, 0)]
    text = terminal.render(Report("infra", "", {"not_finished": 4}, tuple(lost), ()))
    heads = re.findall(r"^  1 test(.*): no reason", text, re.MULTILINE)
    assert heads == [" of the cpu pool", " of shard 1", " of shard 3", ""]


def test_a_crash_shows_where_it_was_and_counts_the_rest() -> None:
    frames = [
        f'  File "/env/lib/python3.11/site-packages/trainer/f{n}.py", line {n} in call' for n in range(99)
    ]
    output = "\n".join(["session starts", "a.py .Current thread 0x7f (most recent call first):", *frames])
    result = TestResult("a.py::t", "failed", message="killed by SIGSEGV", output=output)
    report = Report("failed", "", {"failed": 1}, (result,), ())
    for text in (terminal.render(report, width=60), markdown.render(report)):
        assert "line 0 in call" in text
        assert "lines below)" in text
        assert "line 98 in call" not in text
    assert "line 98 in call" in terminal.render(report, verbose=True)


GIB = 2**30
IDLE = TestResult("a.py::idle", "passed", 2.0, 1, gpus=("0", "1"), peak_memory_bytes=0, cuda_used=False)
BOTH = pytest.mark.parametrize("render", [terminal.render, markdown.render], ids=["terminal", "markdown"])


def of(*results: TestResult) -> Report:
    return Report("passed", "", {"passed": len(results)}, results, (ShardReport(1, "passed", 1.0, 2.0),))


@BOTH
@pytest.mark.parametrize(
    ("files", "said"),
    [
        ((), None),
        (("shard-1/coverage/coverage.data",), "coverage report --data-file=FILE"),
        (
            ("cpu/coverage/a/coverage.data", "shard-1/coverage/a/coverage.data"),
            "coverage combine --keep FILES",
        ),
    ],
    ids=["none", "one", "several"],
)
def test_coverage_data_is_named_with_the_command_that_reads_it(
    render: Callable[[Report], str], files: tuple[str, ...], said: str | None
) -> None:
    text = " ".join(html.unescape(render(replace(of(IDLE), coverage=files))).split())
    assert ("Coverage data: " in text) == bool(files)
    assert all(file in text for file in files)
    assert said is None or said in text


@BOTH
def test_the_highest_peak_is_named(render: Callable[[Report], str]) -> None:
    low = replace(IDLE, nodeid="low", peak_memory_bytes=300 * 2**20, cuda_used=True)
    high = replace(IDLE, nodeid="high", outcome="failed", peak_memory_bytes=int(12.3 * GIB), cuda_used=None)
    unknown = TestResult("unknown", "passed")
    assert re.search(r"GPU memory: highest peak 12.3 GiB in (<code>)?high\b", render(of(low, high, unknown)))
    assert "GPU memory" not in render(of(IDLE, unknown))


@BOTH
@pytest.mark.parametrize(
    ("change", "listed"),
    [
        ({}, True),
        ({"cuda_used": None}, False),
        ({"cuda_used": True}, False),
        ({"gpus": ()}, False),
        ({"outcome": "skipped"}, False),
        ({"outcome": "failed"}, False),
    ],
    ids=["used none", "unknown", "used one", "had none", "skipped", "failed"],
)
def test_tests_that_held_a_gpu_for_nothing_are_listed(
    render: Callable[[Report], str], change: dict[str, object], listed: bool
) -> None:
    text = render(of(replace(IDLE, **change)))  # type: ignore[arg-type]
    assert ("On a GPU without using it (1 test)" in text) is listed
    assert ("4.0 GPU-seconds" in text) is listed


@BOTH
def test_of_many_such_tests_the_longest_are_named(render: Callable[[Report], str]) -> None:
    idle = [replace(IDLE, nodeid=f"a.py::t{n:02}", seconds=float(n)) for n in range(30)]
    text = render(of(*idle))
    assert "On a GPU without using it (30 tests)" in text
    assert re.search(r"and (25|10) more", text)
    shown = text.partition("without using it")[2]
    assert re.findall(r"t\d\d", shown)[:3] == ["t29", "t28", "t27"]


@pytest.mark.parametrize("render", [terminal.render, markdown.render], ids=["terminal", "markdown"])
def test_needs_that_the_plan_knew_are_not_told_again(render: Callable[[Report], str]) -> None:
    known = {"a.py::known": LearnedNeed(8, because="why")}
    assert "Needs" not in render(Report("passed", "", {}, (), (), needs=known))
    text = render(Report("passed", "", {}, (), (), needs={**known, "a.py::new": LearnedNeed(4, planned=1)}))
    assert "Needs differ from the plan (1 test)" in text
    assert "known" not in text


def test_many_needs_are_counted_widest_first() -> None:
    needs = {f"a.py::t{n}": LearnedNeed(n, because="why", planned=1) for n in range(2, 10)}
    report = Report(
        "passed", "", {}, (), (), needs={**needs, "a.py::last": LearnedNeed(1, True, "mark", planned=1)}
    )
    text = terminal.render(report)
    assert (
        "(9 tests)\n  a.py::last\n    1 -> the node alone: mark\n  a.py::t9\n    1 -> 9 GPUs: why\n" in text
    )
    assert "\n  and 4 more\n  plan them right with --durations report.json" in text
    assert "a.py::t2\n" in terminal.render(report, verbose=True)


def tried(index: int, *nodes: str, rescued: int = 0, reason: str = "NODE_FAIL") -> ShardReport:
    """A shard that was lost on all nodes but the last."""
    lost = [TryReport(number, "infra", reason, node) for number, node in enumerate(nodes[:-1], 1)]
    last = TryReport(len(nodes), "passed", node=nodes[-1])
    return ShardReport(index, "passed", 1.0, 1.0, history=(*lost, last), rescued=rescued)


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        pytest.param([], "", id="no shard"),
        pytest.param([tried(1, "gpu003")], "", id="one try"),
        pytest.param(
            [tried(1, "gpu003", "gpu007", rescued=34), tried(2, "gpu001")],
            "1 shard was tried twice (gpu003: NODE_FAIL); 34 tests were rescued by the second try",
            id="twice",
        ),
        pytest.param(
            [tried(1, "a", "b", rescued=1), tried(2, "a", "c")],
            "2 shards were tried twice (a: NODE_FAIL); 1 test was rescued by the second try",
            id="two shards of one node",
        ),
        pytest.param(
            [tried(1, "a", "b", "c"), tried(0, "", "d", reason="")],
            "2 shards were tried again (a: NODE_FAIL, b: NODE_FAIL, cpu pool: infra)",
            id="three times; nothing known; none rescued",
        ),
        pytest.param(
            [tried(1, "a", "b", "c", rescued=2)],
            "1 shard was tried again (a: NODE_FAIL, b: NODE_FAIL); 2 tests were rescued by later tries",
            id="three times",
        ),
        pytest.param(
            [tried(n, f"n{n}", "z") for n in range(1, 8)],
            "7 shards were tried twice (n1: NODE_FAIL, n2: NODE_FAIL, n3: NODE_FAIL, n4: NODE_FAIL,"
            " n5: NODE_FAIL and 2 more)",
            id="many",
        ),
    ],
)
def test_tries_in_a_sentence(rows: list[ShardReport], text: str) -> None:
    report = Report("passed", "", {}, (), tuple(rows))
    assert summary.tries_text(report) == text
    assert (" ".join(terminal.render(report, width=300).split()).find(text or "tried") >= 0) is bool(text)
    assert (html.unescape(markdown.render(report)).find(text or "tried ") >= 0) is bool(text)


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (
            TryReport(1, "infra", "NODE_FAIL", "gpu003", tests=12),
            "try 1 on gpu003: infra, NODE_FAIL, 12 tests",
        ),
        (TryReport(2, "queue_timeout"), "try 2: queue timeout, 0 tests"),
        (TryReport(2, "failed", "red tests: 1", "n", tests=1), "try 2 on n: failed, 1 test"),
    ],
)
def test_a_try_in_words(row: TryReport, text: str) -> None:
    assert summary.try_text(row) == text


@pytest.mark.parametrize("verdict", VERDICTS)
def test_every_verdict_reads_as_words(verdict: str) -> None:
    """Of the run, and of a shard."""
    row = ShardReport(1, verdict, 1.0, 1.0, reason="why it is so")
    report = Report(verdict, "shard 1", {"passed": 1}, (), (row,))
    page, lines = markdown.render(report), terminal.render(report)
    assert page.split("\n")[0].endswith(f"GPU tests {summary.HEADLINES[verdict]}")
    assert f"| 1 | {verdict.replace('_', ' ')} " in page
    assert f"  1        {verdict.replace('_', ' '):<13}      0" in lines
    assert ("why it is so" in lines) is (verdict not in summary.COMMON_VERDICTS)
    assert "_" not in lines


def test_a_configuration_error_is_told_once() -> None:
    rows = tuple(ShardReport(index, "config_error", 1.0, 0.0, reason="no such thing") for index in (1, 2))
    report = Report("config_error", "shards 1-2: config error (no such thing)", {}, (), rows)
    assert terminal.render(report).count("no such thing") == 1


def test_what_was_not_forked_is_shown_and_cut() -> None:
    report = Report("passed", "", {}, (), (), notes=tuple(f"a{n}/conftest.py: a thread" for n in range(30)))
    lines = terminal.render(report).split("\n")
    at = lines.index("Not forked (30)")
    assert lines[at + 2 : at + 8] == [
        *(f"  - a{n}/conftest.py: a thread" for n in range(5)),
        "    and 25 more",
    ]
    assert "a29" in terminal.render(report, verbose=True)
    assert "<summary>Not forked (30)</summary>" in markdown.render(report)
    assert "and 10 more" in markdown.render(report)


@pytest.mark.parametrize(
    ("verdict", "tries", "folded"),
    [("passed", 1, True), ("failed", 1, True), ("passed", 2, False), ("infra", 1, False)],
    ids=["passed", "failed", "tried again", "broken"],
)
def test_the_shards_are_folded_away_unless_one_of_them_tells_something(
    verdict: str, tries: int, folded: bool
) -> None:
    rows = (ShardReport(1, "passed", 1.0, 2.0), ShardReport(2, verdict, 1.0, 2.0, tries=tries))
    text = markdown.render(Report(verdict, "", {"passed": 8}, (), rows))
    assert ("<summary>Shards</summary>" in text, "### Shards" in text) == (folded, not folded)
    assert text.count("<details>") == text.count("</details>")


def test_failing_tests_are_linked_at_the_commit(red_report: Report) -> None:
    text = html.unescape(markdown.render(red_report, links=LINKS))
    place = "packages/attention/tests/test_flash.py"
    assert f"[<code>{place}:88</code>](https://github.com/org/repo/blob/{'a' * 40}/{place}#L88)" in text


def test_the_wait_in_the_queue_stands_apart(red_report: Report, green_report: Report) -> None:
    assert "in 5 min 12 s (set-up 3.10 s), longest wait in the queue 1 min 05 s\n" in markdown.render(
        red_report
    )
    rows = tuple(replace(row, queue_seconds=0.0) for row in green_report.shards)
    assert "longest wait" not in markdown.render(replace(green_report, shards=rows))


@pytest.mark.parametrize(
    ("gpus", "seconds", "earlier", "price", "said"),
    [
        (8, 3600.0, 0.0, 3.5, "8.0 GPU-hours held, $28.00 at $3.50 per GPU-hour"),
        (8, 5400.0, 0.0, None, "12.0 GPU-hours held"),
        (8, 30.0, 0.0, 3.5, "0.067 GPU-hours held, $0.23 at $3.50 per GPU-hour"),
        (0, 3600.0, 0.0, 3.5, ""),
        (8, 0.0, 0.0, 3.5, ""),
        (
            8,
            3600.0,
            7200.0,
            3.0,
            "10.0 GPU-hours held (2.0 of them in earlier attempts of this run), $30.00 at $3.00 per GPU-hour",
        ),
        (0, 0.0, 360.0, None, "0.1 GPU-hours held (0.1 of them in earlier attempts of this run)"),
    ],
    ids=["a price", "none", "little", "no GPU", "no time", "earlier attempts", "only those"],
)
def test_what_a_run_costs(gpus: int, seconds: float, earlier: float, price: float | None, said: str) -> None:
    shard = ShardReport(1, "passed", 1.0, seconds, gpus=gpus)
    report = Report("passed", "", {}, (), (shard,), usd_per_gpu_hour=price, earlier_gpu_seconds=earlier)
    assert summary.cost_text(report) == said
    text = markdown.render(report)
    assert (f"GPU time: {said}\n" in text) if said else ("GPU time" not in text)
