"""YAML text -> PyYAML's nodes, by rules and within limits of our own. Pure.

Scalars are read by YAML 1.2's core schema (https://yaml.org/spec/1.2.2/#103-core-schema), less what people
don't mean by it: `012`, `0x1f`, `.inf` and numbers of more than 18 digits stay text, as do `on`, `no`,
dates and `1:30`. Anchors, aliases and merge keys work; nesting and what aliases expand to have limits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from yaml import MarkedYAMLError, YAMLError
from yaml.composer import Composer
from yaml.error import Mark
from yaml.events import AliasEvent
from yaml.nodes import CollectionNode, MappingNode, Node
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.resolver import BaseResolver
from yaml.scanner import Scanner

from gpuci.config.tree import Place, Problem, ProblemsFound

MAX_NODES = 100_000
MAX_DEPTH = 32

TAG = "tag:yaml.org,2002:"
_DIGITS = r"[-+]?(?:0|[1-9][0-9]{0,17})"
_RULES = (
    ("null", r"(?:~|null|Null|NULL|)\Z", ["~", "n", "N", ""]),
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)\Z", list("tTfF")),
    ("int", _DIGITS + r"\Z", list("-+0123456789")),
    (
        "float",
        rf"(?:{_DIGITS}\.[0-9]{{0,30}}|[-+]?\.[0-9]{{1,30}}|{_DIGITS}(?=[eE]))(?:[eE][-+]?[0-9]{{1,2}})?\Z",
        list("-+.0123456789"),
    ),
    ("merge", r"<<\Z", ["<"]),
)
_PATTERNS = {name: pattern for name, pattern, _ in _RULES}
_READERS: dict[str, Callable[[str], bool | int | float | str | None]] = {
    "null": lambda text: None,
    "bool": lambda text: text.lower() == "true",
    "int": int,
    "float": float,
    "merge": str,
}
# What PyYAML says -> what a person needs to hear; the first that fits.
_EXPLAINED = (
    ("found character '\\t'", "a tab: YAML indents with spaces"),
    ("found a tab character", "a tab: YAML indents with spaces"),
    (
        "mapping values are not allowed here",
        "a second `: ` in a line (quote the value), or wrong indentation",
    ),
    ("expected <block end>", "wrong indentation, or text after a closed value"),
    ("but found another document", "a second document (`---`) in the file: one is read"),
    ("found duplicate anchor", "an anchor of this name exists already"),
)


class _Loader(Reader, Scanner, Parser, Composer, BaseResolver):
    """PyYAML's reading up to nodes, with limits on nesting and on what aliases expand to."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)
        BaseResolver.__init__(self)
        self._depth = 0
        self._composed = 0
        self._sizes: dict[int, tuple[int, int]] = {}

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        """Compose one node; raises MarkedYAMLError where it is too deep, too big or inside itself."""
        self._depth += 1
        self._composed += 1
        self._limit(self._composed, self._depth)
        self._refuse_recursion()
        node = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(node, CollectionNode) and id(node) not in self._sizes:
            self._sizes[id(node)] = self._measure(node)
        return node

    def _refuse_recursion(self) -> None:
        if not self.check_event(AliasEvent):
            return
        target = self.anchors.get(self._next_event().anchor)
        if isinstance(target, CollectionNode) and id(target) not in self._sizes:
            self._refuse("an alias inside the value that it names")

    def _measure(self, node: CollectionNode) -> tuple[int, int]:
        """Count the nodes below and the levels, aliases expanded; children are measured already."""
        sizes = [self._sizes.get(id(child), (1, 1)) for child in _children(node)]
        count, depth = 1 + sum(size[0] for size in sizes), 1 + max((size[1] for size in sizes), default=0)
        self._limit(count, depth)
        return count, depth

    def _limit(self, count: int, depth: int) -> None:
        if count > MAX_NODES:
            self._refuse(f"more than {MAX_NODES:,} values, aliases expanded")
        if depth > MAX_DEPTH:
            self._refuse(f"nested more than {MAX_DEPTH} levels deep")

    def _refuse(self, problem: str) -> None:
        raise MarkedYAMLError(None, None, problem, self._next_event().start_mark)

    def _next_event(self) -> Any:
        return self.peek_event()  # type: ignore[no-untyped-call]


for _name, _pattern, _first in _RULES:
    _Loader.add_implicit_resolver(TAG + _name, re.compile(_pattern), _first)


def compose(text: str, file: str) -> Node | None:
    """The root node of the text, None for an empty one; raises ProblemsFound where it is not YAML."""
    loader = _Loader(text)
    try:
        return loader.get_single_node()
    except MarkedYAMLError as error:
        raise ProblemsFound([_explain(error, file)]) from None
    except (YAMLError, ValueError, OverflowError):
        # PyYAML lets chr() and int() fail on escapes such as "\UFFFFFFFF".
        place = Place(file, loader.line + 1, loader.column + 1)
        raise ProblemsFound([Problem(place, "not valid YAML: an escape or number out of range")]) from None


def _explain(error: MarkedYAMLError, file: str) -> Problem:
    problem, context = error.problem or "", error.context or ""
    place, start = _place(error.problem_mark, file), _place(error.context_mark, file)
    if "quoted scalar" in context and "unexpected" in problem:
        place, message = start, "the quote that opens here is never closed"
    elif "parsing a flow" in context:
        message = f"the bracket that opens at {start} is not closed, or a comma is missing"
    elif "expected ':'" in problem:
        place, message = start, "a key without `: ` after it, or wrong indentation"
    else:
        known = (text for words, text in _EXPLAINED if words in problem or words in context)
        message = next(known, f"{problem} ({context})" if context else problem)
    return Problem(place, f"not valid YAML: {message}")


def _place(mark: Mark | None, file: str) -> Place:
    return Place(file, mark.line + 1, mark.column + 1) if mark else Place(file)


def _children(node: CollectionNode) -> Iterator[Node]:
    if isinstance(node, MappingNode):
        for key, value in node.value:
            yield key
            yield value
    else:
        yield from node.value


def short(tag: str) -> str:
    """The tag as people write it."""
    return "!!" + tag[len(TAG) :] if tag.startswith(TAG) else tag


def value_of(tag: str, text: str) -> bool | int | float | str | None:
    """The value of a scalar; raises ValueError where text and tag don't fit, KeyError for an unknown tag."""
    name = tag.removeprefix(TAG)
    if name == "str":
        return text
    if not re.match(_PATTERNS[name], text):
        raise ValueError(text)
    return _READERS[name](text)
