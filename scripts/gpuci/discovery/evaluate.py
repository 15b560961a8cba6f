"""Terms -> values: a small interpreter for what marks, decorators and base classes are made of. Pure.

It follows imports below the root, aliases, lists, mappings, and helper functions that return or apply a
mark. What it can't follow is `Unknown`, never an error.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from gpuci.discovery import calls, expressions
from gpuci.discovery.scopes import Local, Namespace, Scope
from gpuci.discovery.values import (
    Class,
    Either,
    External,
    Function,
    Items,
    Mark,
    Marked,
    ModuleRef,
    Unknown,
    Value,
    first,
)
from gpuci.source.facts import Binding, FileFacts, FunctionFact, Term

MAX_DEPTH = 25
# Terms evaluated for one file; a helper that calls itself twice would never end.
MAX_STEPS = 50_000
# Looked for outside the tree even where the tree is their own repository.
_OUTSIDE = frozenset({"pytest", "unittest"})


class Sources(Protocol):
    """Where facts of further files come from."""

    def facts(self, path: str) -> FileFacts | None:
        """The facts of a file below the root, or None."""


class Finder(Protocol):
    """Where imports lead."""

    def find(self, module: str, level: int, importer: str) -> str | None:
        """The file of a module, or None."""


class Evaluator:
    """Values of one root's files; modules are read on first use and kept."""

    def __init__(self, sources: Sources, finder: Finder) -> None:
        self._sources = sources
        self._finder = finder
        self._modules: dict[str, Namespace | None] = {}
        self.depth = 0
        self.steps = 0
        self.cut_short = False

    def module(self, path: str) -> Namespace | None:
        """The namespace of a file, or None if it can't be read."""
        if path not in self._modules:
            facts = self._sources.facts(path)
            usable = facts is not None and facts.error is None
            self._modules[path] = Namespace(self, path, facts.bindings) if facts and usable else None
        return self._modules[path]

    def start(self) -> None:
        """Begin with a file. What an earlier one left unfinished must not count for this one."""
        if self.cut_short:
            self._modules.clear()
        self.steps, self.cut_short = 0, False

    def _exhausted(self) -> bool:
        over = self.depth > MAX_DEPTH or self.steps > MAX_STEPS
        self.cut_short = self.cut_short or over
        return over

    def forget(self, path: str) -> None:
        """Let go of a file that no other one is likely to need."""
        space = self._modules.pop(path, None)
        if space is not None:
            space.clear()

    def import_module(self, module: str, level: int, importer: str) -> Namespace | None:
        """The module of the tree that an import statement names, or None."""
        if not level and module.partition(".")[0] in _OUTSIDE:
            return None
        path = self._finder.find(module, level, importer)
        return None if path is None else self.module(path)

    def is_builtin(self, name: str) -> bool:
        """Whether Python itself defines the name."""
        return hasattr(builtins, name)

    def binding(self, space: Namespace, binding: Binding) -> Value:
        """What a binding of `space` makes of its name."""
        return _BINDINGS[binding.kind](self, space, binding)

    def evaluate(self, scope: Scope, term: Term) -> Value:
        """The value of a term in a scope."""
        handler = expressions.TERMS.get(term[0])
        self.steps += 1
        if handler is None or self._exhausted():
            return Unknown("too much to follow")
        self.depth += 1
        try:
            return handler(self, scope, term)
        finally:
            self.depth -= 1

    def name(self, scope: Scope, dotted: str) -> Value:
        """The value of `a.b.c`."""
        known = scope.dotted.get(dotted)
        if known is not None:
            return known
        head, *rest = dotted.split(".")
        value = scope.get(head)
        if value is None:
            value = External(head)
        for attribute in rest:
            value = self.attribute(value, attribute)
        if isinstance(scope, Namespace) and not scope.is_busy(head):
            scope.dotted[dotted] = value
        return value

    def attribute(self, value: Value, name: str) -> Value:
        """The value of `value.name`."""
        if isinstance(value, External):
            return External(f"{value.dotted}.{name}") if not value.called else Unknown()
        if isinstance(value, ModuleRef):
            return self._member(value, name)
        if isinstance(value, Class):
            return value.body.own(name) or Unknown()
        if isinstance(value, Either):
            return self.attribute(first(value), name)
        if isinstance(value, Marked) and name == "with_args":
            return value
        return Unknown()

    def _member(self, module: ModuleRef, name: str) -> Value:
        space = None if module.path is None else self.module(module.path)
        value = None if space is None else space.get(name)
        if value is not None:
            return value
        return self._module_ref(f"{module.dotted}.{name}", 0, module.importer) or Unknown()

    def _module_ref(self, module: str, level: int, importer: str) -> ModuleRef | None:
        if not level and module.partition(".")[0] in _OUTSIDE:
            return None
        path = self._finder.find(module, level, importer)
        return None if path is None else ModuleRef(module, path, importer)

    def import_binding(self, space: Namespace, binding: Binding) -> Value:
        module, aliased = binding.value
        top = module if aliased else module.partition(".")[0]
        found = self._module_ref(top, 0, space.path)
        if found is not None:
            return found
        if top != module and self._module_ref(module, 0, space.path) is not None:
            return ModuleRef(top, None, space.path)
        return External(top)

    def from_binding(self, space: Namespace, binding: Binding) -> Value:
        module, level, name = binding.value
        other = self.import_module(module, level, space.path)
        value = None if other is None or other is space.module else other.get(name)
        if value is not None:
            return value
        submodule = f"{module}.{name}" if module else name
        found = self._module_ref(submodule, level, space.path)
        if found is not None:
            return ModuleRef(submodule if not level else "." * level + submodule, found.path, space.path)
        if other is None and not level:
            return External(f"{module}.{name}")
        return Unknown(f"{name} is not found in {module or 'the package'}")

    def function_binding(self, space: Scope, binding: Binding) -> Value:
        """The function under its decorators; marks next to the function are put on it at once."""
        decorators = [self.evaluate(space, term) for term in reversed(binding.value.decorators)]
        marks: list[Mark] = []
        for decorator in decorators:
            mark = calls.as_mark(decorator, binding.line)
            if mark is None:
                break
            marks.append(mark)
        value: Value = Function(binding, space, tuple(marks))
        for decorator in decorators[len(marks) :]:
            value = self.decorate(decorator, value, binding)
        return value

    def class_binding(self, space: Namespace, binding: Binding) -> Value:
        body = space.module.inner(binding.value.body)
        value: Value = Class(binding, space, body)
        for decorator in reversed(binding.value.decorators):
            value = self.decorate(self.evaluate(space, decorator), value, binding)
        return value

    def decorate(self, decorator: Value, target: Value, binding: Binding) -> Value:
        """`@decorator` above `target`: the same with other marks, or what takes its place."""
        if isinstance(decorator, Either):
            return calls.joined([self.decorate(value, target, binding) for value in decorator.values])
        return calls.decorated(self, decorator, target, binding.line)

    def assign_binding(self, space: Namespace, binding: Binding) -> Value:
        return self.evaluate(space, binding.value)

    def augment_binding(self, space: Namespace, binding: Binding) -> Value:
        before = space.own(binding.name)
        return expressions.added(before or Items("list", ()), self.evaluate(space, binding.value))

    def run(self, helper: Function, args: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
        """What a helper of the tree returns for these arguments."""
        fact: FunctionFact = helper.binding.value
        if not fact.body or self._exhausted():
            return Unknown(f"{helper.binding.name}() can't be followed")
        self.depth += 1
        try:
            local = Local(self._arguments(helper, fact, args, keywords), helper.scope)
            return self._returned(local, fact.body)
        finally:
            self.depth -= 1

    def _arguments(
        self, helper: Function, fact: FunctionFact, args: Sequence[Value], keywords: Mapping[str, Value]
    ) -> dict[str, Value]:
        values: dict[str, Value] = {}
        for index, (name, default) in enumerate(fact.parameters):
            if index < len(args):
                values[name] = args[index]
            elif name in keywords:
                values[name] = keywords[name]
            else:
                values[name] = Unknown() if default is None else self.evaluate(helper.scope, default)
        return values

    def _returned(self, local: Local, body: tuple[Binding, ...]) -> Value:
        returned: list[Value] = []
        for binding in body:
            if binding.kind == "return":
                returned.append(self.evaluate(local, binding.value))
                if not binding.conditional:
                    break
            elif binding.kind == "def":
                local.values[binding.name] = self.function_binding(local, binding)
            elif binding.kind == "assign":
                local.values[binding.name] = self.evaluate(local, binding.value)
            elif binding.kind == "class":
                local.values[binding.name] = Unknown(f"{binding.name} is made in a function")
            elif binding.kind in ("import", "from"):
                local.values[binding.name] = self.binding(local.module, binding)
        return calls.joined(returned)


_BINDINGS: dict[str, Callable[[Evaluator, Any, Binding], Value]] = {
    "def": Evaluator.function_binding,
    "class": Evaluator.class_binding,
    "assign": Evaluator.assign_binding,
    "augment": Evaluator.augment_binding,
    "import": Evaluator.import_binding,
    "from": Evaluator.from_binding,
}


def with_marks(target: Value, marks: Sequence[Mark]) -> Value:
    """A function or class that carries further marks; each one counts once."""
    if not marks or not isinstance(target, (Function, Class)):
        return target
    new = tuple(mark for mark in marks if mark not in target.marks)
    return replace(target, marks=target.marks + new)
