"""Statements of modules and classes -> bindings (see `facts`). Pure.

Bodies of functions are read only where a function may return or apply a mark: small, not named like a
test, not a fixture. Everything else in them is pytest's business.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from gpuci.source.facts import OTHER, Binding, ClassFact, FunctionFact, Term
from gpuci.source.terms import Terms, dotted

MAX_HELPER_STATEMENTS = 30
_NAMESPACES = ("globals", "locals", "vars")
# Names whose strings discovery needs; kept as ("constant", (text, ...)).
_LITERALS = ("collect_ignore", "collect_ignore_glob", "pytest_plugins", "__all__")


def bindings_of(text: str, tree: ast.Module) -> tuple[Binding, ...]:
    """The bindings of a parsed file."""
    found: list[Binding] = []
    _Reader(Terms(text)).statements(tree.body, False, found)
    return tuple(found)


class _Reader:
    """Turns statements into bindings; `in_function` is set inside the body of a helper."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.in_function = False
        self.in_class = False

    def statements(self, nodes: list[ast.stmt], conditional: bool, out: list[Binding]) -> None:
        for node in nodes:
            handle = _STATEMENTS.get(type(node))
            if handle is not None:
                handle(self, node, conditional, out)

    def function(self, node: Any, conditional: bool, out: list[Binding]) -> None:
        fact = FunctionFact(self.terms.terms(node.decorator_list))
        if self._is_helper(node):
            body = self._nested(node.body, in_function=True)
            lines = self.terms.lines[node.lineno - 1 : node.end_lineno]
            marks = any("mark" in line or "skip" in line for line in lines)
            fact = FunctionFact(fact.decorators, self._parameters(node.args), body, marks)
        out.append(Binding("def", node.name, node.lineno, conditional, fact))

    def _is_helper(self, node: Any) -> bool:
        if self.in_class or len(node.body) > MAX_HELPER_STATEMENTS:
            return False
        if node.name.startswith(("test", "pytest_")) and not self.in_function:
            return False
        decorators = [item.func if isinstance(item, ast.Call) else item for item in node.decorator_list]
        return not any((dotted(item) or "").endswith("fixture") for item in decorators)

    def _parameters(self, args: ast.arguments) -> tuple[tuple[str, Term | None], ...]:
        positional = [*args.posonlyargs, *args.args]
        missing: list[ast.expr | None] = [None] * (len(positional) - len(args.defaults))
        defaults = [*missing, *args.defaults, *args.kw_defaults]
        names = [arg.arg for arg in [*positional, *args.kwonlyargs]]
        return tuple(
            (name, None if default is None else self.terms.term(default))
            for name, default in zip(names, defaults, strict=True)
        )

    def _nested(self, nodes: list[ast.stmt], *, in_function: bool) -> tuple[Binding, ...]:
        outer = (self.in_function, self.in_class)
        self.in_function, self.in_class = in_function, not in_function
        body: list[Binding] = []
        self.statements(nodes, False, body)
        self.in_function, self.in_class = outer
        return tuple(body)

    def class_(self, node: ast.ClassDef, conditional: bool, out: list[Binding]) -> None:
        fact = ClassFact(
            self.terms.terms(node.decorator_list),
            self.terms.terms(node.bases),
            tuple((item.arg or "**", self.terms.term(item.value)) for item in node.keywords),
            self._nested(node.body, in_function=False),
        )
        out.append(Binding("class", node.name, node.lineno, conditional, fact))

    def assign(self, node: ast.Assign, conditional: bool, out: list[Binding]) -> None:
        for target in node.targets:
            self._assign_to(target, node.value, conditional, out)

    def _assign_to(self, target: ast.expr, value: ast.expr, conditional: bool, out: list[Binding]) -> None:
        if isinstance(target, ast.Name):
            term = self._value(target.id, value)
            out.append(Binding("assign", target.id, target.lineno, conditional, term))
        elif isinstance(target, ast.Attribute):
            owner = dotted(target.value)
            if owner is not None:
                payload = (target.attr, self.terms.term(value))
                out.append(Binding("attribute", owner, target.lineno, conditional, payload))
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, value, conditional, out)
        elif isinstance(target, ast.Subscript) and _is_namespace(target.value):
            out.append(_dynamic(target, conditional, "names are written through globals() or locals()"))

    def _unpack(
        self, target: ast.Tuple | ast.List, value: ast.expr, conditional: bool, out: list[Binding]
    ) -> None:
        values: list[ast.expr | None] = [None] * len(target.elts)
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
            values = list(value.elts)
        for item, part in zip(target.elts, values, strict=True):
            if part is not None:
                self._assign_to(item, part, conditional, out)
            elif isinstance(item, ast.Name):
                out.append(Binding("assign", item.id, item.lineno, conditional, OTHER))

    def _value(self, name: str, value: ast.expr) -> Term:
        if name not in _LITERALS:
            return self.terms.term(value)
        try:
            literal = ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return OTHER
        texts = (literal,) if isinstance(literal, str) else literal
        if isinstance(texts, (list, tuple)) and all(isinstance(text, str) for text in texts):
            return ("constant", tuple(texts))
        return OTHER

    def annotated(self, node: ast.AnnAssign, conditional: bool, out: list[Binding]) -> None:
        if node.value is not None:
            self._assign_to(node.target, node.value, conditional, out)

    def augmented(self, node: ast.AugAssign, conditional: bool, out: list[Binding]) -> None:
        if isinstance(node.target, ast.Name) and isinstance(node.op, ast.Add):
            value = self._value(node.target.id, node.value)
            out.append(Binding("augment", node.target.id, node.lineno, conditional, value))

    def import_(self, node: ast.Import, conditional: bool, out: list[Binding]) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            source = (alias.name, alias.asname is not None)
            out.append(Binding("import", name, node.lineno, conditional, source))

    def import_from(self, node: ast.ImportFrom, conditional: bool, out: list[Binding]) -> None:
        module = node.module or ""
        for alias in node.names:
            if alias.name == "*":
                out.append(Binding("star", "*", node.lineno, conditional, (module, node.level)))
            else:
                source = (module, node.level, alias.name)
                out.append(Binding("from", alias.asname or alias.name, node.lineno, conditional, source))

    def expression(self, node: ast.Expr, conditional: bool, out: list[Binding]) -> None:
        call = node.value
        if not isinstance(call, ast.Call):
            return
        reason = _dynamic_call(call)
        if reason:
            out.append(_dynamic(call, conditional, reason))
        elif name := dotted(call.func):
            out.append(Binding("call", name, node.lineno, conditional, self.terms.term(call)))
        else:
            out.append(Binding("call", "", node.lineno, conditional, self.terms.term(call)))

    def delete(self, node: ast.Delete, conditional: bool, out: list[Binding]) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                out.append(Binding("del", target.id, node.lineno, conditional, None))

    def return_(self, node: ast.Return, conditional: bool, out: list[Binding]) -> None:
        if self.in_function:
            value = ("constant", None) if node.value is None else self.terms.term(node.value)
            out.append(Binding("return", "", node.lineno, conditional, value))

    def if_(self, node: ast.If, conditional: bool, out: list[Binding]) -> None:
        if not _is_main_guard(node.test):
            self.statements(node.body, True, out)
        self.statements(node.orelse, True, out)

    def try_(self, node: Any, conditional: bool, out: list[Binding]) -> None:
        self.statements(node.body, True, out)
        for handler in node.handlers:
            self.statements(handler.body, True, out)
        self.statements(node.orelse, True, out)
        self.statements(node.finalbody, conditional, out)

    def with_(self, node: Any, conditional: bool, out: list[Binding]) -> None:
        self.statements(node.body, conditional, out)

    def loop(self, node: Any, conditional: bool, out: list[Binding]) -> None:
        self.statements(node.body, True, out)
        self.statements(node.orelse, True, out)

    def match(self, node: ast.Match, conditional: bool, out: list[Binding]) -> None:
        for case in node.cases:
            self.statements(case.body, True, out)


_Handler = Callable[[_Reader, Any, bool, list[Binding]], None]
_STATEMENTS: dict[type[ast.stmt], _Handler] = {
    ast.FunctionDef: _Reader.function,
    ast.AsyncFunctionDef: _Reader.function,
    ast.ClassDef: _Reader.class_,
    ast.Assign: _Reader.assign,
    ast.AnnAssign: _Reader.annotated,
    ast.AugAssign: _Reader.augmented,
    ast.Import: _Reader.import_,
    ast.ImportFrom: _Reader.import_from,
    ast.Expr: _Reader.expression,
    ast.Delete: _Reader.delete,
    ast.Return: _Reader.return_,
    ast.If: _Reader.if_,
    ast.Try: _Reader.try_,
    getattr(ast, "TryStar", ast.Try): _Reader.try_,
    ast.With: _Reader.with_,
    ast.AsyncWith: _Reader.with_,
    ast.For: _Reader.loop,
    ast.AsyncFor: _Reader.loop,
    ast.While: _Reader.loop,
    ast.Match: _Reader.match,
}


def _dynamic(node: ast.expr, conditional: bool, reason: str) -> Binding:
    return Binding("dynamic", "", node.lineno, conditional, reason)


def _is_namespace(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func) in _NAMESPACES


def _dynamic_call(call: ast.Call) -> str | None:
    name = dotted(call.func) or ""
    if name in ("exec", "eval"):
        return f"{name}() may define tests"
    if name == "setattr":
        return "setattr() may add tests"
    arguments = [*call.args, *(item.value for item in call.keywords)]
    if any(_is_namespace(argument) for argument in arguments):
        return f"{name or 'a call'}(…) gets globals() or locals() and may define tests"
    if isinstance(call.func, ast.Attribute) and _is_namespace(call.func.value):
        return "names are written through globals() or locals()"
    return None


def _is_main_guard(test: ast.expr) -> bool:
    """Whether it is `__name__ == "__main__"`, which is false whenever pytest imports the file."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq) or len(test.ops) > 1:
        return False
    left, right = test.left, test.comparators[0]
    if isinstance(left, ast.Constant):
        left, right = right, left
    named = isinstance(left, ast.Name) and left.id == "__name__"
    return named and isinstance(right, ast.Constant) and right.value == "__main__"
