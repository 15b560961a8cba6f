"""What calls and decorators do to marks, functions and classes. Pure.

Facts: `_pytest/mark/structures.py` (a mark called with one function or class is applied to it),
`functools.wraps` copies `pytestmark`, `unittest.skip*` keep the function.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gpuci.discovery.conditions import gpus_of_condition
from gpuci.discovery.values import (
    NONE,
    Class,
    Constant,
    Either,
    External,
    Function,
    Instance,
    Items,
    Mark,
    Marked,
    Parameter,
    Unknown,
    Value,
    Wraps,
    either,
    first,
)
from gpuci.source.facts import Term
from gpuci.source.terms import MAX_TEXT

if TYPE_CHECKING:
    from gpuci.discovery.evaluate import Evaluator
    from gpuci.discovery.scopes import Scope

_MARK = "pytest.mark."
_FIXTURE = re.compile(r"(^|[._])(yield_)?fixture$")
_NOT_A_TEST = re.compile(r"^(builtins\.)?property$|\.?cached_property$|^functools\.partialmethod$")
# Decorators that put other tests in the place of the one they stand on.
_GENERATORS = re.compile(
    r"^parameterized\.(parameterized\.expand|expand|parameterized_class|param)|parameterized\.(product|parameters)"
    r"|named_parameters$|parameterized\.expand$|^ddt\.|parameterized_class$"
)
_SKIPS = {"unittest.skipIf": False, "unittest.skipUnless": True}
_DATACLASS = re.compile(r"^(dataclasses\.dataclass|attr\.s|attrs?\.(define|frozen|mutable|attrs))$")


def as_mark(value: Value, line: int = 0) -> Mark | None:
    """The mark that a value is, if it is one."""
    if type(value) is Marked:
        return value.mark
    if type(value) is External and value.dotted.startswith(_MARK) and not value.called:
        return Mark(value.dotted[len(_MARK) :].partition(".")[0], line=line)
    return None


def called(evaluator: Evaluator, scope: Scope, term: Term) -> Value:
    """The value of a call."""
    _, function_term, args, keywords, line = term
    function = first(evaluator.evaluate(scope, function_term))
    mark = as_mark(function, line)
    if mark is not None:
        return _called_mark(evaluator, scope, mark, function, term)
    values = [evaluator.evaluate(scope, arg) for _, arg in args]
    named = {name: evaluator.evaluate(scope, value) for name, _, value in keywords} if keywords else {}
    if isinstance(function, External):
        return _called_external(evaluator, scope, function, values, named, term)
    if isinstance(function, Function):
        return evaluator.run(function, values, named)
    if isinstance(function, Class):
        return Instance(function.binding.name)
    if len(values) == 1 and not named and isinstance(function, Wraps):
        return decorated(evaluator, function, values[0], line)
    return Unknown()


def _called_mark(evaluator: Evaluator, scope: Scope, mark: Mark, function: Value, term: Term) -> Value:
    _, function_term, args, keywords, line = term
    explicit = function_term[0] == "name" and function_term[1].endswith(".with_args")
    if len(args) == 1 and not keywords and not explicit and args[0][1][0] in ("name", "call"):
        target = evaluator.evaluate(scope, args[0][1])
        if isinstance(target, (Function, Class)) and target.binding.name != "<lambda>":
            return _with_mark(target, _at(mark, line))
        if target == NONE:
            return Unknown("a mark on None")  # the branch of an optional argument that isn't taken
    return Marked(_extended(evaluator, scope, mark, term))


def _extended(evaluator: Evaluator, scope: Scope, mark: Mark, term: Term) -> Mark:
    _, _, args, keywords, line = term
    texts = tuple(_text(evaluator, scope, text, arg) for text, arg in args)
    named = tuple((name, _text(evaluator, scope, text, value)) for name, text, value in keywords)
    mark = mark._replace(args=mark.args + texts, kwargs=mark.kwargs + named, line=line)
    if mark.name == "skipif":
        conditions = [arg for _, arg in args] + [value for name, _, value in keywords if name == "condition"]
        needs = [gpus_of_condition(evaluator, scope, condition) for condition in conditions[:1]]
        mark = mark._replace(gpus=next((need for need in needs if need is not None), mark.gpus))
    if mark.name == "parametrize":
        lists = [arg for _, arg in args[1:2]] + [value for name, _, value in keywords if name == "argvalues"]
        if lists and lists[0][0] != "other":
            mark = mark._replace(parameters=evaluator.evaluate(scope, lists[0]))
    return mark


def _text(evaluator: Evaluator, scope: Scope, text: str, term: Term) -> str:
    """The text of an argument; a name that stands for a literal is replaced by it."""
    if term[0] != "name":
        return text
    value = evaluator.evaluate(scope, term)
    if not isinstance(value, Constant):
        return text
    try:
        return repr(value.value)[:MAX_TEXT]
    except ValueError:  # thousands of digits
        return text


def _called_external(
    evaluator: Evaluator,
    scope: Scope,
    function: External,
    values: Sequence[Value],
    named: dict[str, Value],
    term: Term,
) -> Value:
    name = function.dotted
    if name == "pytest.param":
        return Parameter(named.get("marks", Items("tuple", ())))
    if name == "getattr" and len(values) >= 2 and isinstance(values[1], Constant):
        attribute = values[1].value
        return evaluator.attribute(values[0], attribute) if isinstance(attribute, str) else Unknown()
    if name == "functools.wraps" and values:
        return Wraps(values[0])
    if name == "functools.partial" and values and isinstance(values[0], Function):
        return values[0]
    if name in ("list", "tuple") and len(values) == 1 and isinstance(values[0], Items):
        return Items(name, values[0].values)
    if name in _SKIPS and not function.called:
        need = gpus_of_condition(evaluator, scope, term[2][0][1], _SKIPS[name]) if term[2] else None
        return Marked(Mark(name, line=term[4], gpus=need, hidden=True))
    if len(values) == 1 and not named and isinstance(values[0], (Function, Class)):
        return decorated(evaluator, function, values[0], term[4])
    return External(name, called=True)


def decorated(evaluator: Evaluator, decorator: Value, target: Value, line: int) -> Value:
    """`decorator(target)`, where target is a function or class of the tree."""
    mark = as_mark(decorator, line)
    if mark is not None:
        return _with_mark(target, _at(mark, line))
    if isinstance(decorator, External):
        return _by_external(decorator, target)
    if isinstance(decorator, Wraps):
        return _wrapped(decorator, target)
    if isinstance(decorator, Function):
        return _by_helper(evaluator, decorator, target)
    if isinstance(decorator, Class):
        return Instance(decorator.binding.name)
    if isinstance(target, (Function, Class)):
        why = decorator.of if isinstance(decorator, Instance) else "a decorator"
        return replace(target, uncertain=f"{why} can't be followed")
    return target


def _at(mark: Mark, line: int) -> Mark:
    return mark if mark.line else mark._replace(line=line)


def _with_mark(target: Value, mark: Mark) -> Value:
    if not isinstance(target, (Function, Class)) or mark in target.marks:
        return target
    return replace(target, marks=(*target.marks, mark))


def _by_external(decorator: External, target: Value) -> Value:
    name = decorator.dotted
    if isinstance(target, Class):
        if _GENERATORS.search(name):
            return replace(target, uncertain=f"{name} makes classes or methods")
        return replace(target, dataclass=True) if _DATACLASS.match(name) else target
    if not isinstance(target, Function):
        return target
    if _FIXTURE.search(name):
        return replace(target, kind="fixture")
    if _NOT_A_TEST.search(name) or name.endswith(".setter"):
        return replace(target, kind="other")
    if _GENERATORS.search(name):
        return replace(target, generated=f"{name} makes tests of other names")
    if name.endswith("abstractmethod") or name == "abc.abstractproperty":
        return replace(target, abstract=True)
    return target


def _wrapped(decorator: Wraps, target: Value) -> Value:
    inner = first(decorator.wrapped)
    if isinstance(target, Function) and isinstance(inner, Function):
        return replace(target, marks=inner.marks + target.marks, uncertain=inner.uncertain, kind=inner.kind)
    return target


def _by_helper(evaluator: Evaluator, helper: Function, target: Value) -> Value:
    result = evaluator.run(helper, [target], {})
    chosen = first(result)
    if isinstance(chosen, (Function, Class, Instance)) or chosen == NONE:
        return chosen if not isinstance(result, Either) else joined(list(result.values))
    if isinstance(target, (Function, Class)) and (helper.binding.value.marks or isinstance(target, Class)):
        return replace(target, uncertain=f"decorator {helper.binding.name} can't be followed")
    return target


def joined(values: list[Value]) -> Value:
    """One value for what a helper returns in its branches: of one function, all marks of all branches."""
    functions = [value for value in values if isinstance(value, Function)]
    if functions and all(value.binding is functions[0].binding for value in functions):
        marks: list[Mark] = []
        for function in functions:
            marks += [mark for mark in function.marks if mark not in marks]
        return replace(functions[0], marks=tuple(marks))
    classes = [value for value in values if isinstance(value, Class)]
    if classes and all(value.binding is classes[0].binding for value in classes):
        return max(classes, key=lambda value: len(value.marks))
    return either(values) if values else Unknown()
