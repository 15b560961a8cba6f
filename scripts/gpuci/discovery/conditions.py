"""How many GPUs a skip condition asks for. Pure.

`skipif(torch.cuda.device_count() < 4)` needs 4; also `<= 3`, `not (… >= 4)`, `4 > …`, behind aliases, in
`or`, and as a string; `not torch.cuda.is_available()` needs 1.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from gpuci.discovery.values import Constant, Expression, External, Value, first
from gpuci.source.facts import Term
from gpuci.source.terms import Terms

if TYPE_CHECKING:
    from gpuci.discovery.evaluate import Evaluator
    from gpuci.discovery.scopes import Scope

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
MAX_GPUS = 1024
MAX_CONDITION = 20  # the evaluator's depth: less than its own limit, so that a condition's names are followed
_COUNT = re.compile(r"(^|\.)device_count$")
_CUDA = re.compile(r"(^|\.)cuda\.is_available$|(^|\.)is_cuda_available$|(^|\.)is_torch_cuda_available$")


def gpus_of_condition(evaluator: Evaluator, scope: Scope, term: Term, negated: bool = False) -> int | None:
    """The GPUs without which the condition (or its negation) is true, None if it says nothing of them."""
    if evaluator.depth > MAX_CONDITION:
        evaluator.cut_short = True
        return None
    evaluator.depth += 1
    try:
        return _need(evaluator, scope, term, negated)
    finally:
        evaluator.depth -= 1


def _need(evaluator: Evaluator, scope: Scope, term: Term, negated: bool) -> int | None:
    kind = term[0]
    if kind == "not":
        return gpus_of_condition(evaluator, scope, term[1], not negated)
    if kind == ("and" if negated else "or"):
        needs = [gpus_of_condition(evaluator, scope, part, negated) for part in term[1]]
        return max((need for need in needs if need is not None), default=None)
    if kind == "compare":
        return _compared(evaluator, scope, term, negated)
    if kind == "constant" and isinstance(term[1], str):
        return _text(evaluator, scope, term[1], negated)
    if kind == "call":
        return 1 if negated and _is_call_of(evaluator, scope, term, _CUDA) else None
    return _named(evaluator, scope, term, negated)


def _named(evaluator: Evaluator, scope: Scope, term: Term, negated: bool) -> int | None:
    value = first(evaluator.evaluate(scope, term))
    if isinstance(value, Expression):
        return gpus_of_condition(evaluator, value.scope, value.term, negated)
    if isinstance(value, External) and value.called and _CUDA.search(value.dotted):
        return 1 if negated else None
    return None


def _text(evaluator: Evaluator, scope: Scope, text: str, negated: bool) -> int | None:
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return (
        None
        if isinstance(node, ast.Constant)
        else gpus_of_condition(evaluator, scope, Terms(text.strip()).term(node), negated)
    )


def _compared(evaluator: Evaluator, scope: Scope, term: Term, negated: bool) -> int | None:
    _, left, operator, right = term
    if not _is_count(evaluator, scope, left):
        left, right, operator = right, left, _FLIPPED[operator]
    number = _number(first(evaluator.evaluate(scope, right)))
    if number is None or not _is_count(evaluator, scope, left):
        return None
    if negated:
        operator = _NEGATED[operator]
    need = {"<": number, "<=": number + 1, "!=": number}.get(operator)
    if operator == "==" and number == 0:
        need = 1
    return need if need is not None and 1 <= need <= MAX_GPUS else None


def _is_count(evaluator: Evaluator, scope: Scope, term: Term) -> bool:
    if term[0] == "call":
        return _is_call_of(evaluator, scope, term, _COUNT)
    if term[0] != "name":
        return False
    value = first(evaluator.evaluate(scope, term))
    return isinstance(value, External) and value.called and bool(_COUNT.search(value.dotted))


def _is_call_of(evaluator: Evaluator, scope: Scope, term: Term, name: re.Pattern[str]) -> bool:
    function = term[1]
    if function[0] == "name" and name.search(function[1]):
        return True
    value = first(evaluator.evaluate(scope, function))
    return isinstance(value, External) and bool(name.search(value.dotted))


def _number(value: Value) -> int | None:
    if isinstance(value, Constant) and isinstance(value.value, int) and not isinstance(value.value, bool):
        return value.value
    return None
