"""The tests of one file, as pytest would collect them. Pure.

Facts: `_pytest/python.py` (PyCollector.collect: definition order, bases first), `_pytest/unittest.py`
(method names sorted, `runTest` if there is nothing else).
"""

from __future__ import annotations

from typing import NamedTuple

from gpuci.discovery.calls import as_mark
from gpuci.discovery.classes import ClassReader, ClassReading
from gpuci.discovery.evaluate import MAX_STEPS, Evaluator, with_marks
from gpuci.discovery.marks import Marks, own_pytestmark
from gpuci.discovery.members import (
    IGNORED,
    Item,
    alternatives,
    applied_by_call,
    class_marks,
    dynamic_reason,
    make_item,
    members,
    once,
    own_marks,
    replaced,
    test_flag,
    with_parameters,
)
from gpuci.discovery.patterns import name_pattern
from gpuci.discovery.pytest_config import PytestRules
from gpuci.discovery.scopes import Namespace, own_flag
from gpuci.discovery.values import NONE, Class, External, Function, Unknown, Value, first

MAX_NESTING = 8


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
        self._evaluator.start()
        self._classes.start()
        try:
            return self._collect(path)
        except RecursionError:
            self._evaluator.cut_short = True
            return FileReading(opaque="too deep to be followed")
        finally:
            self._evaluator.forget(path)

    def _collect(self, path: str) -> FileReading:
        module = self._evaluator.module(path)
        if module is None:
            return FileReading(opaque="can't be read")
        if own_flag(module) is False:
            return FileReading()
        marks = with_parameters(own_pytestmark(module))
        extra = applied_by_call(self._evaluator, module)
        items: list[Item] = []
        reasons: list[str | None] = [marks.uncertain, dynamic_reason(module)]
        for name, line in module.names():
            if name in IGNORED or not self._may_be_test(module, name):
                continue
            for value in alternatives(module.get(name)):
                value = with_marks(value, extra.get(name, ()))
                found, reason = self._member(module, value, name, line, marks)
                items += found
                reasons.append(reason)
        reasons.append(self._mutated_classes(module))
        opaque = next((reason for reason in reasons if reason), None)
        if self._evaluator.steps > MAX_STEPS:
            opaque = "too much to follow"
        if not items and opaque is None:
            opaque = module.strange_star()
        return FileReading(tuple(once(items)), opaque)

    def _may_be_test(self, module: Namespace, name: str) -> bool:
        """Whether a name is worth a look: by name, or because it may be a TestCase or a flagged one."""
        if self._is_function(name) or self._is_class(name):
            return True
        bindings = module.bindings.get(name)
        if not bindings or bindings[-1].kind in ("class", "from"):
            return True
        return bool(module.others) and test_flag(module, name) is True

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
        flag = test_flag(space, name)
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
        own = own_marks(value)
        found = own + around
        return [make_item(classes, name, line, found, value)], None

    def _class(
        self, cls: Class, classes: tuple[str, ...], line: int, around: Marks, nesting: int
    ) -> tuple[list[Item], str | None]:
        reading = self._classes.read(cls)
        if not self._is_collected(reading, classes[-1]) or nesting > MAX_NESTING:
            return [], None
        marks = class_marks(reading) + around
        if reading.is_test_case:
            return self._test_case(reading, classes, marks), reading.uncertain or replaced(reading)
        items: list[Item] = []
        reasons = [reading.uncertain]
        for owner, name, value in members(reading):
            for alternative in alternatives(value):
                if isinstance(alternative, Class):
                    found, reason = self._class(alternative, (*classes, name), line, marks, nesting + 1)
                elif isinstance(alternative, Function):
                    at = owner.body.bindings[name][-1].line if owner.body.path == cls.body.path else line
                    found, reason = self._function(owner.body, alternative, name, at, classes, marks)
                else:
                    found, reason = [], replaced(reading) if alternative == NONE else None
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
            for owner, name, member in members(reading)
            if member is not None
            and isinstance(value := first(member), Function)
            and value.kind == "function"
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
            found = own_marks(value) + around
            items.append(make_item(classes, name, line, found, value))
        return items

    def _hidden(self, module: Namespace, value: Value, name: str) -> str | None:
        """Why a name that looks like a test, but stands for something unknown, may be one."""
        looks = self._is_class(name) or name.startswith("test_")
        bindings = module.bindings.get(name)
        if looks and value == NONE and bindings and bindings[-1].kind in ("def", "class"):
            return f"the decorator of {name} may put others in its place"
        if not looks or name.endswith("TestCase"):
            return None
        if isinstance(value, Unknown) or (isinstance(value, External) and value.called):
            return f"{name} is made at run time"
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
