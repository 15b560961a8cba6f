"""`pytestmark` and decorators -> marks, in pytest's order. Pure; `_pytest/mark/structures.py`."""

from __future__ import annotations

from dataclasses import dataclass

from gpuci.discovery.calls import as_mark
from gpuci.discovery.scopes import Namespace
from gpuci.discovery.values import Constant, Either, External, Items, Mark, Parameter, Value, first


@dataclass(frozen=True)
class Marks:
    """Marks in the order in which they were applied; `uncertain`: why there may be others."""

    marks: tuple[Mark, ...] = ()
    uncertain: str | None = None

    def __add__(self, other: Marks) -> Marks:
        return Marks(self.marks + other.marks, self.uncertain or other.uncertain)


NO_MARKS = Marks()


def marks_of(value: Value | None, line: int = 0) -> Marks:
    """The marks that a value stands for: one mark, or a list of marks."""
    if value is None or (isinstance(value, Constant) and value.value is None):
        return NO_MARKS
    mark = as_mark(value, line)
    if mark is not None:
        return Marks((mark,))
    if isinstance(value, Items):
        found = NO_MARKS
        for item in value.values:
            found += marks_of(item, line)
        return found
    if isinstance(value, Either):
        found = Marks((), "marks depend on a condition")
        for alternative in value.values:
            found += marks_of(alternative, line)
        return found
    return Marks((), "marks can't be followed")


def own_pytestmark(space: Namespace) -> Marks:
    """What `pytestmark` of a module or class body says, with what is appended to it later."""
    bindings = space.bindings.get("pytestmark")
    value = space.own("pytestmark") if bindings else _from_star(space)
    line = bindings[-1].line if bindings else 0
    found = marks_of(value, line)
    if isinstance(value, Items) and value.kind != "list":
        found += Marks((), f"pytestmark is a {value.kind}: pytest takes a mark or a list")
    for binding in space.others:
        if binding.kind == "call" and binding.name in ("pytestmark.append", "pytestmark.extend"):
            for _, argument in binding.value[2]:
                found += marks_of(space.evaluator.evaluate(space, argument), binding.line)
    return found


def _from_star(space: Namespace) -> Value | None:
    value = space.get("pytestmark") if space.parent is None and space.stars else None
    # A star import of something outside the tree says nothing of its pytestmark.
    return None if isinstance(value, External) else value


def parameter_marks(mark: Mark) -> Marks:
    """Marks of single parameters (`pytest.param(…, marks=…)`) of a parametrize mark."""
    values = first(mark.parameters) if mark.parameters is not None else None
    found = NO_MARKS
    for value in values.values if isinstance(values, Items) else ():
        if isinstance(value, Parameter):
            found += marks_of(value.marks, mark.line)
    return Marks(tuple(mark._replace(some=True) for mark in found.marks))
