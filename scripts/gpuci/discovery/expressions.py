"""The values of single kinds of terms (see `source.facts`). Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gpuci.discovery import calls
from gpuci.discovery.values import (
    Class,
    Constant,
    Expression,
    External,
    Function,
    Items,
    Table,
    Unknown,
    Value,
    either,
    first,
)
from gpuci.source.facts import Binding, FunctionFact, Term

if TYPE_CHECKING:
    from gpuci.discovery.evaluate import Evaluator
    from gpuci.discovery.scopes import Scope

# Lists that double themselves line by line end here.
MAX_VALUES = 1000


def added(left: Value, right: Value) -> Value:
    if isinstance(left, Items) and isinstance(right, Items):
        return Items(left.kind, (left.values + right.values)[:MAX_VALUES])
    if isinstance(left, Items):
        return Items(left.kind, (*left.values, right))
    return Unknown("a sum can't be followed")


def _name(evaluator: Evaluator, scope: Scope, term: Term) -> Value:
    return evaluator.name(scope, term[1])


def _attribute(evaluator: Evaluator, scope: Scope, term: Term) -> Value:
    return evaluator.attribute(evaluator.evaluate(scope, term[1]), term[2])


def _call(evaluator: Evaluator, scope: Scope, term: Term) -> Value:
    return calls.called(evaluator, scope, term)


def _constant(evaluator: Evaluator, scope: Scope, term: Term) -> Value:
    return Constant(term[1])


def _items(evaluator: Evaluator, scope: Scope, term: Term) -> Value:
    values: list[Value] = []
    for element in term[1]:
        if element[0] == "star":
            inner = first(evaluator.evaluate(scope, element[1]))
            values += inner.values if isinstance(inner, Items) else (inner,)
        else:
            values.append(evaluator.evaluate(scope, element))
    return Items(term[0], tuple(values[:MAX_VALUES]))


def _dict(evaluator: Evaluator, scope: Scope, term: Term) -> Value:
    return Table({key: evaluator.evaluate(scope, value) for key, value in term[1]})


def _item(evaluator: Evaluator, scope: Scope, term: Term) -> Value:
    table = first(evaluator.evaluate(scope, term[1]))
    key = evaluator.evaluate(scope, term[2])
    if isinstance(table, Table) and isinstance(key, Constant):
        return table.values.get(key.value, Unknown("no such key"))
    if isinstance(table, Table) and table.values:
        return either(list(table.values.values()))
    # `Generic[T]`, `Base[int]`: a subscribed class is the class.
    return table if isinstance(table, (External, Class)) else Unknown()


def _add(evaluator: Evaluator, scope: Scope, term: Term) -> Value:
    return added(first(evaluator.evaluate(scope, term[1])), first(evaluator.evaluate(scope, term[2])))


def _either(evaluator: Evaluator, scope: Scope, term: Term) -> Value:
    return either([evaluator.evaluate(scope, value) for value in term[1]])


def _expression(evaluator: Evaluator, scope: Scope, term: Term) -> Value:
    return Expression(term, scope)


def _lambda(evaluator: Evaluator, scope: Scope, term: Term) -> Value:
    body = (Binding("return", "", 0, False, term[1]),)
    return Function(Binding("def", "<lambda>", 0, False, FunctionFact((), (), body)), scope)


TERMS: dict[str, Callable[[Evaluator, Scope, Term], Value]] = {
    "name": _name,
    "attribute": _attribute,
    "call": _call,
    "constant": _constant,
    "list": _items,
    "tuple": _items,
    "set": _items,
    "dict": _dict,
    "item": _item,
    "add": _add,
    "either": _either,
    "compare": _expression,
    "not": _expression,
    "or": _expression,
    "and": _expression,
    "lambda": _lambda,
}
