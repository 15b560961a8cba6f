"""Expressions -> terms (see `facts`). Pure."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from gpuci.source.facts import OTHER, Term

# Beyond these the rest is data: it holds no mark that a reader would find either.
MAX_ELEMENTS = 400
MAX_DEPTH = 12
MAX_TEXT = 300

_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


class Terms:
    """Builds the terms of one file; `text` is its source with `\\n` line ends."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.ascii = text.isascii()
        self.depth = 0

    def term(self, node: ast.expr) -> Term:
        """The term of an expression; anything unknown or too deep is OTHER."""
        build = _BUILDERS.get(type(node))
        if build is None or self.depth > MAX_DEPTH:
            return OTHER
        self.depth += 1
        try:
            return build(self, node)
        finally:
            self.depth -= 1

    def terms(self, nodes: list[ast.expr]) -> tuple[Term, ...]:
        """The terms of several expressions."""
        return tuple([self.term(node) for node in nodes])

    def segment(self, node: ast.expr) -> str:
        """The source text of an expression, cut after MAX_TEXT characters."""
        first, last = node.lineno, node.end_lineno or node.lineno
        if first == last:
            return self._slice(first, node.col_offset, node.end_col_offset)[:MAX_TEXT]
        parts = [self._slice(first, node.col_offset, None)]
        parts += [line.strip() for line in self.lines[first : min(last - 1, first + 20)]]
        parts.append(self._slice(last, 0, node.end_col_offset).strip())
        return " ".join(parts)[:MAX_TEXT]

    def _slice(self, line: int, start: int, end: int | None) -> str:
        text = self.lines[line - 1]
        if self.ascii:
            return text[start:end]
        return text.encode("utf-8", "replace")[start:end].decode("utf-8", "replace")


def dotted(node: ast.expr) -> str | None:
    """`a.b.c` of a name or a chain of attributes on one, else None."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    parts.append(node.id)
    return ".".join(reversed(parts))


def _name(terms: Terms, node: ast.Name) -> Term:
    return ("name", node.id)


def _attribute(terms: Terms, node: ast.Attribute) -> Term:
    name = dotted(node)
    return ("name", name) if name is not None else ("attribute", terms.term(node.value), node.attr)


def _call(terms: Terms, node: ast.Call) -> Term:
    args = tuple([(terms.segment(arg), terms.term(arg)) for arg in node.args])
    keywords = tuple(
        [(item.arg or "**", terms.segment(item.value), terms.term(item.value)) for item in node.keywords]
    )
    return ("call", terms.term(node.func), args, keywords, node.lineno)


def _constant(terms: Terms, node: ast.Constant) -> Term:
    value = node.value
    return OTHER if value is Ellipsis or isinstance(value, complex) else ("constant", value)


def _elements(terms: Terms, node: ast.List | ast.Tuple | ast.Set) -> tuple[Term, ...]:
    telling = [node for node in node.elts if type(node) is not ast.Constant]
    return terms.terms(telling[:MAX_ELEMENTS])


def _list(terms: Terms, node: ast.List) -> Term:
    return ("list", _elements(terms, node))


def _tuple(terms: Terms, node: ast.Tuple) -> Term:
    return ("tuple", _elements(terms, node))


def _set(terms: Terms, node: ast.Set) -> Term:
    return ("set", _elements(terms, node))


def _dict(terms: Terms, node: ast.Dict) -> Term:
    pairs = [
        (key.value, terms.term(value))
        for key, value in list(zip(node.keys, node.values, strict=True))[:MAX_ELEMENTS]
        if isinstance(key, ast.Constant) and isinstance(key.value, (str, int, bool))
    ]
    return ("dict", tuple(pairs))


def _item(terms: Terms, node: ast.Subscript) -> Term:
    return ("item", terms.term(node.value), terms.term(node.slice))


def _star(terms: Terms, node: ast.Starred) -> Term:
    return ("star", terms.term(node.value))


def _unary(terms: Terms, node: ast.UnaryOp) -> Term:
    return ("not", terms.term(node.operand)) if isinstance(node.op, ast.Not) else OTHER


def _binary(terms: Terms, node: ast.BinOp) -> Term:
    if not isinstance(node.op, ast.Add):
        return OTHER
    return ("add", terms.term(node.left), terms.term(node.right))


def _boolean(terms: Terms, node: ast.BoolOp) -> Term:
    return ("or" if isinstance(node.op, ast.Or) else "and", terms.terms(node.values))


def _compare(terms: Terms, node: ast.Compare) -> Term:
    operator = _OPERATORS.get(type(node.ops[0]))
    if operator is None or len(node.ops) > 1:
        return OTHER
    return ("compare", terms.term(node.left), operator, terms.term(node.comparators[0]))


def _conditional(terms: Terms, node: ast.IfExp) -> Term:
    return ("either", (terms.term(node.body), terms.term(node.orelse)))


def _lambda(terms: Terms, node: ast.Lambda) -> Term:
    return ("lambda", terms.term(node.body))


# Each builder gets the nodes of its key only.
_BUILDERS: dict[type[ast.expr], Callable[[Terms, Any], Term]] = {
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Call: _call,
    ast.Constant: _constant,
    ast.List: _list,
    ast.Tuple: _tuple,
    ast.Set: _set,
    ast.Dict: _dict,
    ast.Subscript: _item,
    ast.Starred: _star,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.IfExp: _conditional,
    ast.Lambda: _lambda,
}
