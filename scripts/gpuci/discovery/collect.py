"""The tests of one file, as pytest would collect them. Pure.

Facts: `_pytest/python.py` (PyCollector.collect: definition order, bases first), `_pytest/unittest.py`
(method names sorted, `runTest` if there is nothing else).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from gpuci.discovery.calls import as_mark
from gpuci.discovery.classes import ClassReader, ClassReading
from gpuci.discovery.evaluate import Evaluator, with_marks
from gpuci.discovery.marks import NO_MARKS, Marks, own_pytestmark, parameter_marks
from gpuci.discovery.patterns import name_pattern
from gpuci.discovery.pytest_config import PytestRules
from gpuci.discovery.scopes import Namespace, constant_bool
from gpuci.discovery.values import NONE, Class, Either, External, Function, Mark, Unknown, Value, first

MAX_NESTING = 8


class Item(NamedTuple):
    """A test function: names of the classes around it, its own name, marks (closest first)."""

    classes: tuple[str, ...]
    name: str
    line: int
    marks: tuple[Mark, ...]
    uncertain: str | None = None


class FileReading(NamedTuple):
    """The tests of a file; `opaque` says why there may be others or other marks."""

    items: tuple[Item, ...] = ()
    opaque: str | None = None


class Collector:
    """Collects files of one root."""

    def __init__(self, evaluator: Evaluator, rules: PytestRules) -> None:
        self._evaluator = evaluator
        self._imported = rules.collect_imported_tests
        self._is_function = name_pattern(rules.python_functions).fullmatch
        self._is_class = name_pattern(rules.python_classes).fullmatch
        self._classes = ClassReader(evaluator)

    def collect(self, path: str) -> FileReading:
        """The tests of a file; nothing of it is kept."""
        try:
            return self._collect(path)
        finally:
            self._evaluator.forget(path)
            self._classes.forget(path)

    def _collect(self, path: str) -> FileReading:
        module = self._evaluator.module(path)
        if module is None:
            return FileReading(opaque="can't be read")
        if constant_bool(module.own("__test__")) is False:
            return FileReading()
        marks = _with_parameters(own_pytestmark(module))
        extra = _applied_by_call(self._evaluator, module)
        items: list[Item] = []
        reasons: list[str | None] = [marks.uncertain, _dynamic(module)]
        for name, line in module.names():
            if name in _IGNORED or not self._may_be_test(module, name):
                continue
            for value in _alternatives(module.get(name)):
                value = with_marks(value, extra.get(name, ()))
                found, reason = self._member(module, value, name, line, marks)
                items += found
                reasons.append(reason)
        reasons.append(self._mutated_classes(module))
        opaque = next((reason for reason in reasons if reason), None)
        if not items and opaque is None:
            opaque = self._looks_like_tests(module)
        return FileReading(tuple(_once(items)), opaque)

    def _looks_like_tests(self, module: Namespace) -> str | None:
        """In a file without a visible test, names like a test's are reason enough to ask pytest."""
        for name, bindings in module.bindings.items():
            kind = bindings[-1].kind
            functions = kind == "def" and self._is_function(name)
            if functions or (kind == "class" and self._is_class(name)):
                return f"{name} looks like a test"
        return None

    def _may_be_test(self, module: Namespace, name: str) -> bool:
        """Whether a name is worth a look: by name, or because it may be a TestCase or a flagged one."""
        if self._is_function(name) or self._is_class(name):
            return True
        bindings = module.bindings.get(name)
        if not bindings or bindings[-1].kind in ("class", "from"):
            return True
        return bool(module.others) and _test_flag(module, name) is True

    def _member(
        self, module: Namespace, value: Value, name: str, line: int, marks: Marks
    ) -> tuple[list[Item], str | None]:
        if isinstance(value, Class):
            if self._is_imported_away(module, value):
                return [], None
            return self._class(value, (name,), line, marks, 0)
        if isinstance(value, Function):
            return self._function(module, value, name, line, (), marks)
        return [], self._hidden(module, value, name)

    def _is_imported_away(self, module: Namespace, value: Class | Function) -> bool:
        return not self._imported and value.scope.path != module.path

    def _function(
        self, space: Namespace, value: Function, name: str, line: int, classes: tuple[str, ...], around: Marks
    ) -> tuple[list[Item], str | None]:
        flag = _test_flag(space, name)
        if value.kind != "function" or not (self._is_function(name) or flag is True):
            return [], None
        if value.generated:
            return [], value.generated
        if not classes and self._is_imported_away(space, value):
            return [], None
        if flag is False:
            return [], None
        if value.scope.path == space.path and not classes:
            line = value.binding.line or line
        own = _own_marks(value)
        found = own + around
        return [_item(classes, name, line, found, value)], None

    def _class(
        self, cls: Class, classes: tuple[str, ...], line: int, around: Marks, nesting: int
    ) -> tuple[list[Item], str | None]:
        reading = self._classes.read(cls)
        if not self._is_collected(reading, classes[-1]) or nesting > MAX_NESTING:
            return [], None
        marks = class_marks(reading) + around
        if reading.is_test_case:
            return self._test_case(reading, classes, marks), reading.uncertain or _replaced(reading)
        items: list[Item] = []
        reasons = [reading.uncertain]
        for owner, name, value in _members(reading):
            for alternative in _alternatives(value):
                if isinstance(alternative, Class):
                    found, reason = self._class(alternative, (*classes, name), line, marks, nesting + 1)
                elif isinstance(alternative, Function):
                    at = owner.body.bindings[name][-1].line if owner.body.path == cls.body.path else line
                    found, reason = self._function(owner.body, alternative, name, at, classes, marks)
                else:
                    found, reason = [], _replaced(reading) if alternative == NONE else None
                items += found
                reasons.append(reason)
        return items, next((reason for reason in reasons if reason), None)

    def _is_collected(self, reading: ClassReading, name: str) -> bool:
        if reading.test_flag is False or reading.has_no_tests or reading.is_abstract:
            return False
        return bool(self._is_class(name)) or reading.is_test_case or reading.test_flag is True

    def _test_case(self, reading: ClassReading, classes: tuple[str, ...], around: Marks) -> list[Item]:
        methods = {
            name: (owner, value)
            for owner, name, member in _members(reading)
            if isinstance(value := first(member), Function) and value.kind == "function"
        }
        names = sorted(name for name in methods if name.startswith("test"))
        names = [name for name in names if not methods[name][1].generated]
        if not names and "runTest" in methods:
            names = ["runTest"]
        items = []
        for name in names:
            owner, value = methods[name]
            same_file = owner.body.path == reading.cls.body.path
            line = owner.body.bindings[name][-1].line if same_file else reading.cls.binding.line
            found = _own_marks(value) + around
            items.append(_item(classes, name, line, found, value))
        return items

    def _hidden(self, module: Namespace, value: Value, name: str) -> str | None:
        """Why a name that looks like a test, but stands for something unknown, may be one."""
        looks = self._is_class(name) or name.startswith("test_")
        if looks and value == NONE and module.bindings[name][-1].kind in ("def", "class"):
            return f"the decorator of {name} may put others in its place"
        if not looks or name.endswith("TestCase"):
            return None
        if isinstance(value, Unknown) or (isinstance(value, External) and value.called):
            return f"{name} is made at run time"
        bindings = module.bindings.get(name)
        if isinstance(value, External) and bindings and bindings[-1].kind in ("from", "assign"):
            return f"{name} comes from outside the tree"
        return None

    def _mutated_classes(self, module: Namespace) -> str | None:
        """A call with a test class as argument, at module level, may add or rename tests."""
        for binding in module.others:
            if binding.kind != "call":
                continue
            _, function, args, _, _ = binding.value
            for _, term in args:
                if term[0] != "name" or "." in term[1]:
                    continue
                value = first(module.own(term[1]) or Unknown())
                if isinstance(value, Class) and as_mark(self._evaluator.evaluate(module, function)) is None:
                    return f"{binding.name}({term[1]}) may change the tests of the class"
        return None


# Names that pytest never looks at in a module or class.
_IGNORED = frozenset({"__builtins__", "__file__", "__doc__", "__all__", "__test__", "pytestmark"})


def _replaced(reading: ClassReading) -> str | None:
    """A test method in whose place its decorator leaves nothing, or other tests."""
    for _, name, value in _members(reading):
        function = first(value) if value is not None else None
        if name.startswith("test") and function == NONE:
            return f"the decorator of {name} may put others in its place"
        if name.startswith("test") and isinstance(function, Function) and function.generated:
            return function.generated
    return None


def _item(classes: tuple[str, ...], name: str, line: int, found: Marks, value: Function) -> Item:
    return Item(classes, name, line, found.marks, value.uncertain or found.uncertain)


def class_marks(reading: ClassReading) -> Marks:
    """Marks of a class: bases first, in each the body's `pytestmark`, then its decorators bottom up."""
    found = NO_MARKS
    for cls in reversed(reading.line):
        found += own_pytestmark(cls.body) + Marks(cls.marks)
    return _with_parameters(found)


def _own_marks(value: Function) -> Marks:
    return _with_parameters(Marks(value.marks))


def _with_parameters(marks: Marks) -> Marks:
    """The marks without the lists of parametrize, but with the marks in them."""
    if not any(mark.parameters is not None for mark in marks.marks):
        return marks
    plain = Marks(tuple(mark._replace(parameters=None) for mark in marks.marks), marks.uncertain)
    for mark in marks.marks:
        if mark.parameters is not None:
            plain += parameter_marks(mark)
    return plain


def _members(reading: ClassReading) -> Iterator[tuple[Class, str, Value | None]]:
    """Names of a class as pytest walks them: the nearest definition counts, bases' names come first."""
    seen: set[str] = set()
    groups: list[list[tuple[Class, str]]] = []
    for cls in reading.line:
        names = [name for name, _ in cls.body.names() if name not in seen]
        seen.update(names)
        groups.append([(cls, name) for name in names])
    for group in reversed(groups):
        for cls, name in group:
            if name not in _IGNORED:
                yield cls, name, cls.body.own(name)


def _alternatives(value: Value | None) -> tuple[Value, ...]:
    """The alternatives of a conditional definition; functions of one name are one test with all marks."""
    if value is None:
        return ()
    if not isinstance(value, Either):
        return (value,)
    functions = [item for item in value.values if isinstance(item, Function)]
    others = tuple(item for item in value.values if not isinstance(item, Function))
    if not functions:
        return others
    first_one = functions[0]
    for other in functions[1:]:
        merged = with_marks(first_one, other.marks)
        assert isinstance(merged, Function)
        first_one = merged
    if len({function.marks for function in functions}) > 1:
        first_one = replace(first_one, uncertain="it is defined more than once, by a condition")
    return (first_one, *others)


def _test_flag(space: Namespace, name: str) -> bool | None:
    for binding in space.others:
        if binding.kind == "attribute" and binding.name == name and binding.value[0] == "__test__":
            value: object = binding.value[1][1] if binding.value[1][0] == "constant" else None
            return value if isinstance(value, bool) else None
    return None


def _dynamic(module: Namespace) -> str | None:
    return next((str(item.value) for item in module.others if item.kind == "dynamic"), None)


def _applied_by_call(evaluator: Evaluator, module: Namespace) -> dict[str, tuple[Mark, ...]]:
    """Marks applied without a decorator: `pytest.mark.gpu(TestA)`, `test_b = pytest.mark.gpu(test_a)`."""
    found: dict[str, tuple[Mark, ...]] = {}
    assigned = [item for bindings in module.bindings.values() for item in bindings if item.kind == "assign"]
    for binding in [*module.others, *assigned]:
        if binding.kind not in ("call", "assign") or binding.value[0] != "call":
            continue
        _, function, args, keywords, line = binding.value
        if len(args) != 1 or keywords or args[0][1][0] != "name" or "mark" not in str(function):
            continue
        mark = as_mark(evaluator.evaluate(module, function), line)
        name = args[0][1][1]
        if mark is not None and name in module.bindings:
            found[name] = (*found.get(name, ()), mark if mark.line else mark._replace(line=line))
    return found


def _once(items: list[Item]) -> Iterator[Item]:
    """Each test once: alternatives of a condition may define the same class twice."""
    known: dict[tuple[tuple[str, ...], str], Item] = {}
    for item in items:
        key = (item.classes, item.name)
        before = known.get(key)
        if before is None:
            known[key] = item
        else:
            marks = before.marks + tuple(mark for mark in item.marks if mark not in before.marks)
            why = "it is defined more than once, by a condition"
            known[key] = before._replace(marks=marks, uncertain=why)
    yield from known.values()
