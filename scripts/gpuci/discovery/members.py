"""Parts of collecting: tests as values, members of classes, marks and flags put on from outside. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from gpuci.discovery.calls import as_mark
from gpuci.discovery.classes import ClassReading
from gpuci.discovery.evaluate import Evaluator, with_marks
from gpuci.discovery.marks import NO_MARKS, Marks, own_pytestmark, parameter_marks
from gpuci.discovery.scopes import Namespace
from gpuci.discovery.values import NONE, Class, Either, Function, Mark, Value, first

# Names that pytest never looks at in a module or class.
IGNORED = frozenset({"__builtins__", "__file__", "__doc__", "__all__", "__test__", "pytestmark"})


def replaced(reading: ClassReading) -> str | None:
    """A test method in whose place its decorator leaves nothing, or other tests."""
    for _, name, value in members(reading):
        function = first(value) if value is not None else None
        if name.startswith("test") and function == NONE:
            return f"the decorator of {name} may put others in its place"
        if name.startswith("test") and isinstance(function, Function) and function.generated:
            return function.generated
    return None


class Item(NamedTuple):
    """A test function: names of the classes around it, its own name, marks (closest first)."""

    classes: tuple[str, ...]
    name: str
    line: int
    marks: tuple[Mark, ...]
    uncertain: str | None = None


def make_item(classes: tuple[str, ...], name: str, line: int, found: Marks, value: Function) -> Item:
    return Item(classes, name, line, found.marks, value.uncertain or found.uncertain)


def class_marks(reading: ClassReading) -> Marks:
    """Marks of a class: bases first, in each the body's `pytestmark`, then its decorators bottom up."""
    found = NO_MARKS
    for cls in reversed(reading.line):
        found += own_pytestmark(cls.body) + Marks(cls.marks)
    return with_parameters(found)


def own_marks(value: Function) -> Marks:
    return with_parameters(Marks(value.marks))


def with_parameters(marks: Marks) -> Marks:
    """The marks without the lists of parametrize, but with the marks in them."""
    if not any(mark.parameters is not None for mark in marks.marks):
        return marks
    plain = Marks(tuple(mark._replace(parameters=None) for mark in marks.marks), marks.uncertain)
    for mark in marks.marks:
        if mark.parameters is not None:
            plain += parameter_marks(mark)
    return plain


def members(reading: ClassReading) -> Iterator[tuple[Class, str, Value | None]]:
    """Names of a class as pytest walks them: the nearest definition counts, bases' names come first."""
    seen: set[str] = set()
    groups: list[list[tuple[Class, str]]] = []
    for cls in reading.line:
        names = [name for name, _ in cls.body.names() if name not in seen]
        seen.update(names)
        groups.append([(cls, name) for name in names])
    for group in reversed(groups):
        for cls, name in group:
            if name not in IGNORED:
                yield cls, name, cls.body.own(name)


def alternatives(value: Value | None) -> tuple[Value, ...]:
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


def test_flag(space: Namespace, name: str) -> bool | None:
    """`__test__` as the last assignment to `name.__test__` says; see also `own_flag`."""
    for binding in reversed(space.others):
        if binding.kind == "attribute" and binding.name == name and binding.value[0] == "__test__":
            value: object = binding.value[1][1] if binding.value[1][0] == "constant" else None
            certain = isinstance(value, bool) and (value or not binding.conditional)
            return bool(value) if certain else None
    return None


def dynamic_reason(module: Namespace) -> str | None:
    return next((str(item.value) for item in module.others if item.kind == "dynamic"), None)


def applied_by_call(evaluator: Evaluator, module: Namespace) -> dict[str, tuple[Mark, ...]]:
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


def once(items: list[Item]) -> Iterator[Item]:
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
