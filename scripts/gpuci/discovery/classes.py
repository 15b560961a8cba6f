"""Classes: method resolution order, kinds of bases, and which of them pytest collects. Pure.

Facts: `_pytest/python.py` (Class.collect, hasinit, hasnew), `inspect.isabstract`, C3 linearization
(https://docs.python.org/3/howto/mro.html).
"""

from __future__ import annotations

import builtins
import re
from dataclasses import dataclass
from functools import cached_property

from gpuci.discovery.evaluate import Evaluator
from gpuci.discovery.scopes import own_flag
from gpuci.discovery.values import Class, External, Function, Value, first
from gpuci.source.facts import Term

_NEUTRAL = frozenset({"object", "abc.ABC", "typing.Generic"})
_NO_TESTS = re.compile(
    r"^(enum\.\w+|typing\.(NamedTuple|Protocol|TypedDict)|typing_extensions\.(Protocol|TypedDict|NamedTuple)"
    r"|collections\.\w+|threading\.\w+|pydantic\.\w+|ctypes\.Structure|(torch\.)?nn\.Module"
    r"|torch\.autograd\.Function)$"
)
_TEST_CASE = re.compile(r"(^|\.)\w*TestCase$|^unittest\.\w*Case$|TestBase$|TestMixin$")
_UNKNOWN_CASE = re.compile(r"(Test|TestBase|Case|Mixin)$")


@dataclass(frozen=True)
class ClassReading:
    """A class with its bases followed.

    `line` holds classes of the tree in MRO order; `outside` the names of bases outside it.
    """

    cls: Class
    line: tuple[Class, ...]
    outside: tuple[str, ...]
    lost: tuple[str, ...]

    @cached_property
    def is_test_case(self) -> bool:
        """Whether it is a unittest.TestCase (or a class outside the tree that is called one)."""
        return any(_TEST_CASE.search(name) for name in self.outside)

    @cached_property
    def has_no_tests(self) -> bool:
        """Whether pytest can't make an instance: an `__init__`, a `__new__`, an enumeration, …"""
        if any(_NO_TESTS.match(name) or self._is_builtin_with_init(name) for name in self.outside):
            return True
        if self.is_test_case:
            return False
        made = any("__init__" in cls.body.bindings or "__new__" in cls.body.bindings for cls in self.line)
        return made or any(cls.dataclass for cls in self.line)

    def _is_builtin_with_init(self, name: str) -> bool:
        found = getattr(builtins, name, None)
        return isinstance(found, type) and found is not object

    @cached_property
    def is_abstract(self) -> bool:
        """Whether abstract methods are left that no class nearer in the MRO defines."""
        metaclass = any(
            keyword == "metaclass" and _is_plain(term)
            for cls in self.line
            for keyword, term in cls.binding.value.keywords
        )
        if not metaclass and "abc.ABC" not in self.outside:
            return False
        seen: set[str] = set()
        for cls in self.line:
            for name in cls.body.bindings:
                if name not in seen:
                    seen.add(name)
                    value = first(cls.body.own(name) or External(""))
                    if isinstance(value, Function) and value.abstract:
                        return True
        return False

    @cached_property
    def test_flag(self) -> bool | None:
        """`__test__` of the nearest class that has one."""
        for cls in self.line:
            if "__test__" in cls.body.bindings:
                return own_flag(cls.body)
        return None

    @cached_property
    def uncertain(self) -> str | None:
        """Why it may hold tests or marks that can't be seen."""
        for cls in self.line:
            if cls.uncertain:
                return cls.uncertain
            dynamic = next((item for item in cls.body.others if item.kind == "dynamic"), None)
            if dynamic is not None:
                return str(dynamic.value)
            if "__init_subclass__" in cls.body.bindings:
                return f"{cls.binding.name} defines __init_subclass__"
            if any(name == "metaclass" and not _is_plain(term) for name, term in cls.binding.value.keywords):
                return f"the metaclass of {cls.binding.name} may make tests"
        if self.lost:
            return f"base class {self.lost[0]} can't be followed"
        strangers = [name for name in self.outside if self._is_strange(name)]
        return f"base class {strangers[0]} is outside the tree" if strangers else None

    def _is_strange(self, name: str) -> bool:
        if name in _NEUTRAL or _TEST_CASE.search(name) or hasattr(builtins, name):
            return name.startswith(("parameterized.", "absl.testing.parameterized"))
        return _NO_TESTS.match(name) is None


def _is_plain(metaclass: Term) -> bool:
    return metaclass[0] == "name" and str(metaclass[1]).endswith("ABCMeta")


class ClassReader:
    """Reads the classes that a file leads to, once each."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._known: dict[int, ClassReading] = {}
        self._busy: set[int] = set()

    def read(self, cls: Class) -> ClassReading:
        """The class with its bases followed."""
        known = self._known.get(id(cls.binding))
        if known is None or known.cls.marks != cls.marks:
            known = self._known[id(cls.binding)] = self._read(cls)
        return known

    def start(self) -> None:
        """Begin with a file: let go of all classes."""
        self._known.clear()

    def _read(self, cls: Class) -> ClassReading:
        key = id(cls.binding)
        if key in self._busy:
            return ClassReading(cls, (cls,), (), (cls.binding.name,))
        self._busy.add(key)
        try:
            return self._with_bases(cls)
        finally:
            self._busy.discard(key)

    def _with_bases(self, cls: Class) -> ClassReading:
        parents: list[ClassReading] = []
        outside: list[str] = []
        lost: list[str] = []
        for term in cls.binding.value.bases:
            base: Value = first(self._evaluator.evaluate(cls.scope, term))
            if isinstance(base, Class):
                parents.append(self.read(base))
            elif isinstance(base, External) and not base.called:
                outside.append(base.dotted)
            else:
                lost.append(term[1] if term[0] == "name" else "of an expression")
        line = (cls, *merged([parent.line for parent in parents]))
        for parent in parents:
            outside += parent.outside
            lost += parent.lost
        return ClassReading(cls, line, tuple(dict.fromkeys(outside)), tuple(dict.fromkeys(lost)))


def merged(lines: list[tuple[Class, ...]]) -> tuple[Class, ...]:
    """C3 merge of the bases' orders; where there is none, plain depth first."""
    if len(lines) <= 1:
        return lines[0] if lines else ()
    heads = tuple(line[0] for line in lines)
    rest = [list(line) for line in [*lines, heads]]
    order: list[Class] = []
    while any(rest):
        rest = [line for line in rest if line]
        head = next((line[0] for line in rest if not _in_a_tail(line[0], rest)), rest[0][0])
        order.append(head)
        rest = [[cls for cls in line if cls.binding is not head.binding] for line in rest]
    return tuple(order)


def _in_a_tail(cls: Class, lines: list[list[Class]]) -> bool:
    return any(cls.binding is other.binding for line in lines for other in line[1:])
