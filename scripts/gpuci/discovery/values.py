"""What a name or an expression stands for, as far as a reading without running can tell. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from gpuci.source.facts import Binding, Term

if TYPE_CHECKING:
    from gpuci.discovery.scopes import Namespace, Scope


class Mark(NamedTuple):
    """One mark: argument texts, `some` (it holds for some parameters only), `gpus` its condition needs.

    `hidden` ones are no marks of pytest's (`unittest.skipIf`): they only carry `gpus`.
    `parameters` is the list of a `parametrize`, for the marks of single parameters; dropped in the end.
    """

    name: str
    args: tuple[str, ...] = ()
    kwargs: tuple[tuple[str, str], ...] = ()
    line: int = 0
    some: bool = False
    gpus: int | None = None
    hidden: bool = False
    parameters: Value | None = None


@dataclass(frozen=True)
class External:
    """Something outside the tree; `called`: the result of calling it."""

    dotted: str
    called: bool = False


@dataclass(frozen=True)
class Constant:
    """A literal."""

    value: object


@dataclass(frozen=True)
class Marked:
    """A mark, ready to be applied."""

    mark: Mark


@dataclass(frozen=True)
class Items:
    """A list, tuple or set; `kind` says which."""

    kind: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Table:
    """A mapping with constant keys."""

    values: Mapping[object, Value]


@dataclass(frozen=True)
class Parameter:
    """`pytest.param(…, marks=marks)`."""

    marks: Value


@dataclass(frozen=True)
class ModuleRef:
    """A module of the tree; `path` is None for a namespace package."""

    dotted: str
    path: str | None
    importer: str


@dataclass(frozen=True)
class Expression:
    """An expression that is looked at only when a condition is read."""

    term: Term
    scope: Scope = field(compare=False, repr=False)


@dataclass(frozen=True)
class Function:
    """A function of the tree with the marks it carries, in the order they were applied.

    `kind`: function, fixture, or other (a property, say: not a test). `generated`: why other tests
    take its place. `uncertain`: why its marks may be incomplete. `test`: its `__test__`.
    """

    binding: Binding
    scope: Scope = field(compare=False, repr=False)
    marks: tuple[Mark, ...] = ()
    kind: str = "function"
    abstract: bool = False
    generated: str | None = None
    uncertain: str | None = None
    test: bool | None = None


@dataclass(frozen=True)
class Class:
    """A class of the tree; `marks` are those that decorators applied."""

    binding: Binding
    scope: Namespace = field(compare=False, repr=False)
    body: Namespace = field(compare=False, repr=False)
    marks: tuple[Mark, ...] = ()
    uncertain: str | None = None
    dataclass: bool = False


@dataclass(frozen=True)
class Instance:
    """An instance of a class of the tree: callable perhaps, but not a function."""

    of: str


@dataclass(frozen=True)
class Wraps:
    """`functools.wraps(function)`: what it decorates takes over the marks."""

    wrapped: Value


@dataclass(frozen=True)
class Either:
    """One of several, by a condition that is not evaluated."""

    values: tuple[Value, ...]


@dataclass(frozen=True)
class Unknown:
    """Something that can't be followed."""

    why: str = ""


Value = (
    External
    | Constant
    | Marked
    | Items
    | Table
    | Parameter
    | ModuleRef
    | Expression
    | Function
    | Class
    | Instance
    | Wraps
    | Either
    | Unknown
)

NONE = Constant(None)


def either(values: list[Value]) -> Value:
    """One value for several alternatives: None counts only when there is nothing else."""
    if len(values) == 1:
        return values[0]
    telling = [value for value in values if value != NONE and not isinstance(value, Unknown)]
    unique = [value for index, value in enumerate(telling) if value not in telling[:index]]
    if not unique:
        return values[0] if values else Unknown()
    return unique[0] if len(unique) == 1 else Either(tuple(unique))


def first(value: Value) -> Value:
    """The first alternative, where only one can be used."""
    return value.values[0] if isinstance(value, Either) else value
