"""Names of modules, classes and helper bodies, looked up lazily. Pure.

Lookups are not sensitive to flow: a name stands for its last definition, or for the alternatives if
the last ones are conditional.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpuci.discovery.values import Constant, External, Value, either
from gpuci.source.facts import Binding

if TYPE_CHECKING:
    from gpuci.discovery.evaluate import Evaluator

_BINDING = frozenset({"def", "class", "assign", "augment", "import", "from", "del"})

# Of more definitions of one name, the last ones are enough.
MAX_ALTERNATIVES = 16


class Namespace:
    """The names of a module (`parent` None) or of a class body, in the order of their first binding."""

    def __init__(
        self, evaluator: Evaluator, path: str, bindings: tuple[Binding, ...], parent: Namespace | None = None
    ) -> None:
        self.evaluator = evaluator
        self.path = path
        self.parent = parent
        self.bindings: dict[str, list[Binding]] = {}
        self.stars: list[Binding] = []
        self.others: list[Binding] = []
        self.dotted: dict[str, Value] = {}
        self.exports: frozenset[str] | None = None
        self._values: dict[str, Value | None] = {}
        self._busy: dict[str, int] = {}
        self._inner: list[Namespace] = []
        for binding in bindings:
            self._add(binding)

    def inner(self, bindings: tuple[Binding, ...]) -> Namespace:
        """The namespace of a class body in this module."""
        space = Namespace(self.evaluator, self.path, bindings, self)
        self._inner.append(space)
        return space

    def clear(self) -> None:
        """Let go of all values: they refer to their scopes, and such cycles are slow to collect."""
        for space in self._inner:
            space.clear()
        self._inner.clear()
        self.dotted.clear()
        self._values.clear()

    def _add(self, binding: Binding) -> None:
        if binding.kind in _BINDING:
            known = self.bindings.get(binding.name)
            if known is None:
                self.bindings[binding.name] = [binding]
            else:
                known.append(binding)
        elif binding.kind == "star":
            self.stars.append(binding)
        else:
            self.others.append(binding)

    @property
    def module(self) -> Namespace:
        """The module's namespace."""
        return self if self.parent is None else self.parent.module

    def is_busy(self, name: str) -> bool:
        """Whether the name is being evaluated right now, here or further out."""
        return name in self._busy or (self.parent is not None and self.parent.is_busy(name))

    def own(self, name: str) -> Value | None:
        """What `name` stands for here, imports included, star imports and outer scopes not."""
        if name in self._busy:
            return self._upto(name, self._busy[name])
        if name not in self._values:
            self._values[name] = self._upto(name, len(self.bindings.get(name, ())))
        return self._values[name]

    def get(self, name: str) -> Value | None:
        """What `name` stands for here or further out; None if nothing in the tree says."""
        value = self.own(name)
        if value is None and self.stars:
            value = self._from_stars(name)
        if value is None and self.parent is not None:
            value = self.parent.get(name)
        return value

    def _upto(self, name: str, end: int) -> Value | None:
        alternatives: list[Value] = []
        bindings = self.bindings.get(name, [])
        for index in range(end - 1, -1, -1):
            binding = bindings[index]
            if binding.kind == "del":
                continue  # it may have been used before: `class A(_Base)`, `del _Base`
            alternatives.append(self._evaluate(name, index, binding))
            if not binding.conditional or len(alternatives) == MAX_ALTERNATIVES:
                break
        return either(alternatives) if alternatives else None

    def _evaluate(self, name: str, index: int, binding: Binding) -> Value:
        before = self._busy.get(name)
        self._busy[name] = index
        try:
            return self.evaluator.binding(self, binding)
        finally:
            if before is None:
                del self._busy[name]
            else:
                self._busy[name] = before

    def _from_stars(self, name: str) -> Value | None:
        for star in reversed(self.stars):
            module, level = star.value
            other = self.evaluator.import_module(module, level, self.path)
            if other is None:
                if not level and not self.evaluator.is_builtin(name):
                    return External(f"{module}.{name}")
            elif name in exported(other):
                return other.get(name)
        return None

    def strange_star(self) -> str | None:
        """Why it may have names that can't be seen: a star import from outside the tree."""
        for star in self.stars:
            module, level = star.value
            if self.evaluator.import_module(module, level, self.path) is None:
                return f"import * of {module or 'the package'}, which is outside the tree"
        return None

    def names(self) -> Iterator[tuple[str, int]]:
        """All names that exist when the body has run, with the line of their last binding."""
        for name, bindings in self.bindings.items():
            last = bindings[-1]
            if last.kind != "del" or last.conditional:
                yield name, last.line
        for star in self.stars:
            module, level = star.value
            other = self.evaluator.import_module(module, level, self.path)
            for name in sorted(exported(other)) if other is not None else ():
                if name not in self.bindings:
                    yield name, star.line


def exported(module: Namespace) -> frozenset[str]:
    """The names that `from module import *` binds."""
    if module.exports is None:
        module.exports = frozenset(_exported(module, set()))
    return module.exports


def _exported(module: Namespace, seen: set[str]) -> Iterator[str]:
    seen.add(module.path)
    listed = module.bindings.get("__all__")
    if listed and listed[-1].kind == "assign" and listed[-1].value[0] == "constant":
        yield from listed[-1].value[1]
        grows = any(binding.name.startswith("__all__.") for binding in module.others)
        if not grows and not listed[-1].conditional:
            return
    yield from (name for name in module.bindings if not name.startswith("_"))
    for star in module.stars:
        name, level = star.value
        other = module.evaluator.import_module(name, level, module.path)
        if other is not None and other.path not in seen:
            yield from _exported(other, seen)


class Local:
    """The names of a helper's body while it is followed."""

    def __init__(self, values: dict[str, Value], parent: Scope) -> None:
        self.values = values
        self.parent = parent
        self.dotted: dict[str, Value] = {}

    @property
    def module(self) -> Namespace:
        """The module's namespace."""
        return self.parent.module

    @property
    def path(self) -> str:
        """The module's file."""
        return self.module.path

    def get(self, name: str) -> Value | None:
        """What `name` stands for here or further out."""
        value = self.values.get(name)
        return value if value is not None else self.parent.get(name)


Scope = Namespace | Local


def own_flag(space: Namespace) -> bool | None:
    """`__test__` of a module or class body; one that a condition switches off may be on."""
    value = space.own("__test__")
    if not isinstance(value, Constant) or not isinstance(value.value, bool):
        return None
    return None if space.bindings["__test__"][-1].conditional and not value.value else value.value
