"""What others write stays text: hostile texts at every place of a log, a file or a page where they come out.

A place gives what it shows for a text. The rule: with a hostile text it shows the same commands, outputs,
Markdown structure and XML elements as with a plain one, and no problem matcher fires.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.runner_log import read_log, read_values

from gpuci.changes.model import Changes, Due
from gpuci.commands.output import complain, say, show, show_document, show_log
from gpuci.config.load import load_config
from gpuci.errors import ConfigError
from gpuci.execution.slurm.limits import Limits
from gpuci.github import approval_text, comment, events
from gpuci.github.approval import decide
from gpuci.github.approval_facts import Facts
from gpuci.github.step import Step
from gpuci.model import Plan, Report, Shard, ShardReport, SkippedTest, TestResult, Unit
from gpuci.reporting import (
    annotation,
    changes_markdown,
    changes_text,
    document,
    junit,
    markdown,
    plan_markdown,
    plan_text,
    shard_text,
    terminal,
)
from gpuci.reporting.links import Links
from gpuci.reporting.live_log import LiveLog
from gpuci.reporting.text import fence, inline_code, one_line
from gpuci.results import frames

CLONE = Path(__file__).resolve().parents[3]
TOKEN = "0123456789abcdef0123456789abcdef"
PLAIN = "plain"
HOSTILE = {
    "substitution": "$(touch PWNED)`touch PWNED`${IFS}; touch PWNED #",
    "quotes": "'\"; touch PWNED; '",
    "set-output": "a\n::set-output name=approved::true\n::save-state name=a::b",
    "mask": "x ::add-mask::a\n  ::add-mask::passed",
    "annotation": "\t::error file=a.py,line=1::forged\n::warning::forged\n::notice::forged",
    "hashes": "in the middle ##[add-matcher]/tmp/m.json ##[error]forged ####[group]",
    "python matcher": "x\n  File \"a.py\", line 1, in f\n    raise ValueError('forged')\n",
    "tsc matcher": "a.ts(1,2): error TS1: forged\na.ts:1:2 - error TS1: forged",
    "other matchers": "a.go:1:2: b\na: line 1, col 2, Error - b (c)\nA.java:1: error: b\na: b in c.php on line 1",  # noqa: E501
    "stop": "::stop-commands::abc\n::endgroup::\n::group::forged",
    "percent": "%0A::error::forged%0D%0A##[error]x%25%3A%2C",
    "heredoc": "EOF\nadmin=true\nx<<EOF\nname=value\nGPUCI_A<<B\nB",
    "carriage return": "a\r::error::forged\r\n::error::forged\r\r##[error]x",
    "escapes": "\x1b[31m::error::forged\x1b[0m\x1b]0;title\x07\x9b2J\x1b[2A",
    "link": "\x1b]8;;http://evil.example\x1b\\::error::x\x1b]8;;\x1b\\ [a](http://evil.example) http://evil.example",
    "unseen": "\u2028::error::forged\u202e\u200b::error::\ufeff::error::x\x00\udcff\x85::error::x",
    "html": "</code></pre></details><script>x</script><img src=x onerror=y><!-- gpuci run=9 -->",
    "markdown": "@org/everyone #1 | a | b |\n\n# title\n\n```\n````\n~~~\n* [x]: y\n![i](u) $x$ :smile:",
    "one long line": "::error::" + "x" * 1_000_000 + "##[error]",
}  # fmt: skip


@dataclass
class Shown:
    """What a place shows: pages of Markdown and XML; what it prints is caught beside it."""

    pages: list[str] = field(default_factory=list)
    xml: bytes = b""


Place = Callable[[str, Step], Shown]


def links(text: str) -> Links:
    return Links("https://github.com", "org/mono", "a" * 40, "7")


def report(text: str) -> Report:
    """A red report in which every text is the given one, beside a test that passed."""
    failed = TestResult(
        text, "failed", 1.0, 1, slot=text, gpus=(text,), file=text, line=3, message=text, output=text
    )
    lost = TestResult(f"{text}::lost", "not_finished", message=text)
    good = TestResult("a.py::test_good", "passed", 1.0, 1)
    return Report(
        "failed",
        text,
        {"failed": 1, "not_finished": 1, "passed": 1},
        (failed, lost, good),
        (ShardReport(1, "failed", 1.0, 2.0, 3.0, 1, text, 2, 2.0, 2.0, text),),
        warnings=(text,),
        notes=(text,),
    )


def plan(text: str) -> Plan:
    unit = Unit("u", text, text, [f"{text}::{text}"], "normal", 1, text, 4.0, 900.0, tests=1)
    shards = (Shard(1, text, ("u",), 4.0),)
    skipped = (SkippedTest(text, text),)
    return Plan({}, "a" * 40, text, (), (text,), (unit,), shards, (), skipped, 4.0, 4.0, 0, (text,))


def said(text: str, step: Step) -> Shown:
    step.say(text)
    step.say(f"branch {text}")
    return Shown()


def annotated(text: str, step: Step) -> Shown:
    step.error(text, title=text, file=text, line=1)
    for _ in range(12):
        step.warning(f"{text} of a test", file=text)
    step.close()
    return Shown()


def output(text: str, step: Step) -> Shown:
    step.output("one", text[:100_000])
    step.output("two", f"[{text[:100_000]}]")
    return Shown()


def summary(text: str, step: Step) -> Shown:
    step.summary(f"Branch {inline_code(text[:100_000])}\n\n{fence(text[:100_000])}\n\nend")
    return Shown([Path(step.environ["GITHUB_STEP_SUMMARY"]).read_text()])


def commanded(text: str, step: Step) -> Shown:
    say(text)
    say("x" * 70 + " " + text)
    complain(ConfigError(text, why=text, then=f"{'x' * 75} {text}"))
    show(f"{one_line(text)}\n")
    return Shown()


def documented(text: str, step: Step) -> Shown:
    show_document({"name": text, text: [text]})
    show_document(document.to_document(report(text)))
    return Shown()


def terminal_report(text: str, step: Step) -> Shown:
    show(terminal.render(report(text), verbose=True, width=100, colour=False))
    return Shown()


def markdown_report(text: str, step: Step) -> Shown:
    return Shown([markdown.render(report(text), links=links(text)), shard_text.markdown(report(text))])


def comments(text: str, step: Step) -> Shown:
    page = markdown.render(report(text), limit_bytes=comment.COMMENT_BYTES, links=links(text))
    body = comment.body(comment.marker(text, "", "7", "1"), page, links(text))
    assert comment.read_marker(body) == comment.marker(text, "", "7", "1")
    return Shown([body.partition("\n")[2]])


def annotated_report(text: str, step: Step) -> Shown:
    for told in annotation.render(report(text), links(text)):
        step.annotate(told.kind, told.text, title=told.title, file=told.file, line=told.line)
    return Shown()


def junit_xml(text: str, step: Step) -> Shown:
    return Shown(xml=junit.render(report(text)))


def plan_pages(text: str, step: Step) -> Shown:
    show(plan_text.render(plan(text)))
    return Shown([plan_markdown.render(plan(text), {1: Limits(60.0, 60)})])


def changed(text: str, step: Step) -> Shown:
    """Names of files, packages and reasons."""
    due = Due(text, (text, f"{text}/b"), text)
    changes = Changes("b" * 40, "a" * 40, False, (text,), (text,), (due,), (), (text,))
    show(changes_text.render(changes) + "\n" + changes_text.explain(changes, text, due) + "\n")
    return Shown([changes_markdown.render(changes)])


def approval(text: str, step: Step) -> Shown:
    """Who labelled, with which label, in which environment."""
    facts = Facts(
        "pull_request_target", True, "labeled", True, actor=text, label=text, environment=text, head=True
    )
    decision = decide(facts)
    step.say(approval_text.log_line(decision, text))
    place = approval_text.Place(links(text), 12, "a" * 40, "gpu.yml")
    return Shown([approval_text.summary(decision, facts, place)])


def refs(text: str, step: Step) -> Shown:
    """The branch that a push names, as the key of a concurrency group."""
    environ = {
        "GITHUB_REPOSITORY": "org/mono",
        "GITHUB_SHA": "a" * 40,
        "GITHUB_REF": f"refs/heads/{text}",
        "GITHUB_ACTOR": text,
        "GITHUB_TRIGGERING_ACTOR": text,
        "GITHUB_RUN_ATTEMPT": "1",
    }
    payload = {"repository": {"full_name": "org/mono", "default_branch": "main"}, "sender": {"login": text}}
    subject = events.subject_of("push", {**payload, "after": "a" * 40, "before": "b" * 40}, environ)
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,60}", subject.key)
    return Shown()


def configuration(text: str, step: Step) -> Shown:
    """A value, a key and a whole file that make no sense."""
    root = step.scratch()
    (root / ".github").mkdir(exist_ok=True)
    whole = text.encode("utf-8", "surrogateescape")
    for content in (
        b"packages: " + repr(text).encode("ascii", "backslashreplace"),
        whole,
        b'"a": |\n  ' + whole,
    ):
        (root / ".github/gpuci.yml").write_bytes(content)
        try:
            load_config(root, packages=text[:1000])
        except ConfigError as error:
            complain(error)
    return Shown()


def live_log(text: str, step: Step) -> Shown:
    """The log of a shard while it runs: file, ids, output of workers, of a failing test and between tests."""
    unit = Unit("u", ".", text, "all", "normal", 1, "p", 1.0, 900.0)
    log = LiveLog([unit], name="shard 1", token=TOKEN)
    nodeid = f"{text}::{text}"
    end = {"outcome": "failed", "seconds": {"call": 1.0}, "output": text, "message": text, "slot": text}
    records: list[dict[str, Any]] = [
        {"kind": "job", "node": text, "slots": 1},
        {"kind": "output", "slot": "", "text": text},
        {"kind": "collected", "unit": "u", "file": text, "ids": [nodeid]},
        {"kind": "start", "unit": "u", "nodeid": nodeid, "slot": "gw0"},
        {"kind": "output", "slot": "gw0", "text": text},
        {"kind": "end", "unit": "u", "nodeid": nodeid, **end},
        {"kind": "note", "level": "error", "text": text, "nodeid": text},
        {"kind": "verdict", "verdict": "failed", "reason": text},
    ]
    for record in records:
        show_log(log.flush())
        show_log(log.feed(record))
    show_log(log.finish())
    return Shown()


PLACES: dict[str, Place] = {
    "a line of the log": said,
    "annotation": annotated,
    "output of a step": output,
    "summary of a step": summary,
    "what a command says": commanded,
    "document": documented,
    "report in a terminal": terminal_report,
    "report in Markdown": markdown_report,
    "comment": comments,
    "annotations of a report": annotated_report,
    "JUnit": junit_xml,
    "plan": plan_pages,
    "changes": changed,
    "approval": approval,
    "branch": refs,
    "configuration": configuration,
    "log of a shard": live_log,
}


def structure(page: str) -> str:
    """A page without what stands in code, where GitHub reads no structure, mention or link."""
    without_blocks = re.sub(r"^( *)(`{3,})[a-z]*\n.*?^\1\2$", "CODE", page, flags=re.MULTILINE | re.DOTALL)
    without_code = re.sub(r"<code>[^<>`]*</code>", "CODE", without_blocks)
    # A line's link is there for what can be a path; whatever that is, it stays inside of the URL.
    return re.sub(r"\[CODE\]\(https://github\.com/org/mono/[A-Za-z0-9._~/#%-]*\)", "CODE", without_code)


@dataclass(frozen=True)
class Effect:
    """What a place does by what it shows; the same for any two texts."""

    commands: tuple[str, ...]
    matched: tuple[tuple[str, str], ...]
    outputs: frozenset[str]
    structures: tuple[str, ...]
    elements: tuple[str, ...]


def effect(
    place: Place, text: str, directory: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[Effect, str]:
    """The effect and the log of a place, read as the runner does, with every setup action's matcher."""
    directory.mkdir()
    names = ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")
    files = {name: str(directory / name) for name in names}
    (directory / "GITHUB_OUTPUT").touch()
    step = Step("probe", {"GITHUB_ACTIONS": "true", "RUNNER_TEMP": str(directory), **files}, {})
    step.begin()
    shown = place(text, step)
    printed = "".join(capsys.readouterr())
    log = read_log(printed)
    values = read_values((directory / "GITHUB_OUTPUT").read_bytes().decode())
    xml = ElementTree.fromstring(shown.xml).iter() if shown.xml else ()
    done = Effect(
        tuple(command.name for command in log.commands),
        tuple(log.matched),
        frozenset(values),
        tuple(structure(page) for page in shown.pages),
        tuple(element.tag for element in xml),
    )
    return done, printed


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_a_hostile_text_does_what_a_plain_one_does(
    place: Place, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, _ = effect(place, PLAIN, tmp_path / "plain", capsys)
    hostile, printed = effect(place, text, tmp_path / "hostile", capsys)
    assert hostile == plain
    assert plain.matched == ()
    assert not re.search(
        r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u202e\ud800-\udfff]", printed.replace("\r\n", "\n")
    )


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_changes_no_other_result(text: str) -> None:
    *_, good = report(text).tests
    read = document.from_document(json.loads(json.dumps(document.to_document(report(text)))))
    assert read.tests[-1] == good
    assert len(read.tests) == 3
    cases = list(ElementTree.fromstring(junit.render(report(text))).iter("testcase"))
    assert [(case.get("name"), len(case)) for case in cases if case.get("classname") == "a"] == [
        ("test_good", 0)
    ]
    frame = json.dumps(
        {"kind": "end", "unit": "u", "nodeid": good.nodeid, "outcome": "failed", "seconds": {}}
    )
    assert frames.parse(f"{text}\n{frames.WORD} {TOKEN[::-1]} {frame}\n", TOKEN).records == ()


# What an action does with its inputs: shows, annotates, outputs and summarises them.
PROBE = """
def run(step):
    text = step.value("TITLE")
    step.say(text)
    step.error(text, title=text)
    step.output("title", text)
    step.summary(text)
    return 0
"""
RUN = 'exec sh "$SCRIPTS/with_python.sh" python3 -I "$SCRIPTS/probe.py"\n'


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the scripts with an action of the tests."""
    scripts = tmp_path_factory.mktemp("clone") / "scripts"
    shutil.copytree(CLONE / "scripts", scripts, ignore=shutil.ignore_patterns("__pycache__", "requirements*"))
    program = (scripts / "find_changed.py").read_text()
    (scripts / "probe.py").write_text(
        re.sub(r"main\(.*\)\)$", 'main("probe", needs_packages=False))', program, flags=re.MULTILINE)
    )
    (scripts / "gpuci/steps/probe.py").write_text(PROBE)
    return scripts


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_an_input_reaches_the_program_of_an_action_as_text(text: str, scripts: Path, tmp_path: Path) -> None:
    """As the runner starts a step, with the text as a branch's name or a title would come."""
    given = text.replace("\x00", "")[:100_000]
    (tmp_path / "run.sh").write_text(RUN)
    files = {name: str(tmp_path / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(tmp_path / "run.sh")],
        env={
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "SCRIPTS": str(scripts),
            "PYTHONPATH": "",
            "GITHUB_ACTIONS": "true",
            "GPUCI_TITLE": given,
            **files,
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    log = read_log(done.stdout)
    assert [command.name for command in log.beside("remove-matcher")] == ["error"]
    assert log.matched == []
    assert read_values((tmp_path / "GITHUB_OUTPUT").read_bytes().decode()).keys() == {"title"}
    assert {path.name for path in tmp_path.iterdir()} == {"run.sh", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"}


def test_the_reader_of_logs_sees_what_the_texts_would_do() -> None:
    """Were they printed as they are; or the tests above could not fail."""
    obeyed = {name: [command.name for command in read_log(text).commands] for name, text in HOSTILE.items()}
    assert obeyed["set-output"] == ["set-output", "save-state"]
    assert obeyed["mask"] == ["add-mask"]
    assert obeyed["annotation"] == ["error", "warning", "notice"]
    assert obeyed["hashes"] == ["add-matcher"]
    assert obeyed["stop"] == ["stop-commands"]
    assert obeyed["carriage return"] == ["error", "error", "error"]
    assert read_log(HOSTILE["python matcher"]).matched[0][0] == "python"
    assert [owner for owner, _ in read_log(HOSTILE["tsc matcher"]).matched] == ["tsc", "tsc"]
    assert {owner for owner, _ in read_log(HOSTILE["other matchers"]).matched} == {
        "eslint-compact", "go", "java", "php",
    }  # fmt: skip
    assert read_values(f"name<<EOF\n{HOSTILE['heredoc']}\nEOF\n")["admin"] == "true"
