"""A report as JUnit XML, for tools that read test results. Pure.

A suite a shard, and `failure`, `error` or `skipped` in a case. Names are those of pytest's `--junitxml`, so
that tools know a test again that they saw elsewhere; `file` and `line` are those of its family xunit1: tools
make links of them, though Jenkins' junit-10.xsd lacks them.
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree

from gpuci.model import Report, TestResult
from gpuci.reporting.summary import label
from gpuci.reporting.text import clean, clip, one_line
from gpuci.results.verdict import shard_name

NAME_WIDTH = 1000
LINE_WIDTH = 2000
OUTPUT_CHARACTERS = 20_000
_ELEMENTS = {
    "collection_error": "error",
    "failed": "failure",
    "error": "error",
    "not_finished": "error",
    "xfailed": "skipped",
    "skipped": "skipped",
    "deselected": "skipped",
    "not_collected": "skipped",
    "elsewhere": "skipped",
}


def render(report: Report) -> bytes:
    """The document in UTF-8. Texts of tests are cleaned and cut.

    Cleaning leaves no character that is none in XML (XML 1.0, 2.2): those are control characters,
    surrogates and unassigned.
    """
    top = ElementTree.Element("testsuites", name="gpuci")
    _count(top, report.tests)
    for shard in dict.fromkeys(result.shard for result in report.tests):
        results = [result for result in report.tests if result.shard == shard]
        name = "not run" if shard is None else shard_name(shard)
        suite = ElementTree.SubElement(top, "testsuite", name=name)
        _count(suite, results)
        for result in results:
            _add(suite, result)
    ElementTree.indent(top)
    text: str = ElementTree.tostring(top, "unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'.encode()


def _count(element: ElementTree.Element, results: Iterable[TestResult]) -> None:
    kinds = [_ELEMENTS.get(result.outcome) for result in results]
    element.set("tests", str(len(kinds)))
    for attribute, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(attribute, str(kinds.count(kind)))
    element.set("time", f"{sum(result.seconds for result in results):.3f}")


def _add(suite: ElementTree.Element, result: TestResult) -> None:
    classname, name = _names(result.nodeid)
    case = ElementTree.SubElement(suite, "testcase", classname=_name(classname), name=_name(name))
    case.set("time", f"{result.seconds:.3f}")
    if result.file:
        case.set("file", _name(result.file))
    if result.line:
        case.set("line", str(result.line))
    kind = _ELEMENTS.get(result.outcome)
    if kind is None:
        return
    found = ElementTree.SubElement(case, kind, message=_name(result.message or label(result.outcome)))
    if kind != "skipped":
        found.set("type", result.outcome)
        found.text = _output(result.output)


def _names(nodeid: str) -> tuple[str, str]:
    """`a/b.py::C::t[x]` -> (`a.b.C`, `t[x]`), as `mangle_test_address` of pytest's junitxml.py."""
    path, _, rest = nodeid.partition("::")
    function, bracket, parameters = rest.partition("[")
    module = path.removesuffix(".py").replace("/", ".")
    *outer, name = [module, *function.split("::")] if rest else [module]
    return ".".join(outer), f"{name}{bracket}{parameters}"


def _name(text: str) -> str:
    return clip(one_line(text), NAME_WIDTH)


def _output(text: str) -> str:
    """The end of a test's output, which says most, no line of it longer than LINE_WIDTH."""
    lines = (clip(line, LINE_WIDTH) for line in clean(text).split("\n"))
    return "\n".join(lines)[-OUTPUT_CHARACTERS:]
