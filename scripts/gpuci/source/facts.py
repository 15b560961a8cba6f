"""Facts of one Python file: the names it binds, in order, with what discovery needs of each.

Expressions are kept as *terms*: nested plain tuples whose first element is one of the codes below.
Plain tuples are small, cross process borders through `marshal`, and are cheap to compare.

    ("name", "a.b.c")                                     a name or a chain of attributes
    ("attribute", term, name)                             an attribute of anything else
    ("call", term, ((text, term), …), ((keyword, text, term), …), line)
    ("constant", value)                                   str, int, float, bool, bytes, None
    ("list" | "tuple" | "set", (term, …))                 constants among the elements are left out
    ("dict", ((key, term), …))                            constant keys only
    ("item", term, term)                                  a subscript
    ("star", term), ("not", term), ("add", left, right), ("or" | "and", (term, …))
    ("compare", left, operator, right)
    ("either", (term, …))                                 a conditional expression
    ("lambda", term)
    ("other", "")                                         anything else
"""

from __future__ import annotations

from typing import Any, NamedTuple

Term = tuple[Any, ...]

OTHER: Term = ("other", "")
# Part of the cache's key: raise it whenever the shape or the meaning of facts changes.
FACTS_VERSION = 3


class FunctionFact(NamedTuple):
    """A function: decorators top down, names of its parameters with defaults, what it can return.

    `body` is filled for small helpers only (see `parse`); `marks` says whether their text mentions
    marks or skips at all.
    """

    decorators: tuple[Term, ...]
    parameters: tuple[tuple[str, Term | None], ...] = ()
    body: tuple[Binding, ...] = ()
    marks: bool = False


class ClassFact(NamedTuple):
    """A class: decorators top down, bases, keywords (`metaclass`), and the names its body binds."""

    decorators: tuple[Term, ...]
    bases: tuple[Term, ...]
    keywords: tuple[tuple[str, Term], ...]
    body: tuple[Binding, ...]


class Binding(NamedTuple):
    """One statement that binds, changes or deletes a name.

    kind       value
    def        FunctionFact
    class      ClassFact
    assign     Term; augment: Term (`name += term`)
    import     (module, aliased): `import a.b` binds `a`, `import a.b as c` binds `c` to `a.b`
    from       (module, level, attribute)
    star       (module, level)
    del        None
    attribute  (attribute, Term): `name.attribute = term`
    call       Term: a call whose result is thrown away
    return     Term (in the body of a helper only)
    dynamic    why names may appear that can't be seen
    """

    kind: str
    name: str
    line: int
    conditional: bool
    value: Any


class FileFacts(NamedTuple):
    """Everything that is kept of one file.

    `error` is (line, message) if it can't be read as Python. `doctest`: it holds a `>>>` prompt.
    `device_line`: the line of a `set_device(…)` call in a file that also reads the worker's number, or 0.
    `registered`: markers it registers by `addinivalue_line`. `collects`: strings in its
    `pytest_collect_file` and in what that uses.
    """

    bindings: tuple[Binding, ...] = ()
    error: tuple[int, str] | None = None
    doctest: bool = False
    device_line: int = 0
    registered: tuple[str, ...] = ()
    collects: tuple[str, ...] = ()


def to_plain(facts: FileFacts) -> tuple[Any, ...]:
    """Nested plain tuples, for `marshal`."""
    return (_plain(facts.bindings), *facts[1:])


def from_plain(plain: tuple[Any, ...]) -> FileFacts:
    """The inverse of `to_plain`."""
    return FileFacts(_bindings(plain[0]), *plain[1:])


def _plain(bindings: tuple[Binding, ...]) -> tuple[Any, ...]:
    return tuple(_plain_binding(binding) for binding in bindings)


def _plain_binding(binding: Binding) -> tuple[Any, ...]:
    value = binding.value
    if binding.kind == "def":
        value = (value.decorators, value.parameters, _plain(value.body), value.marks)
    elif binding.kind == "class":
        value = (value.decorators, value.bases, value.keywords, _plain(value.body))
    return (binding.kind, binding.name, binding.line, binding.conditional, value)


def _bindings(plain: tuple[Any, ...]) -> tuple[Binding, ...]:
    return tuple([_binding(*fields) for fields in plain])


def _binding(kind: str, name: str, line: int, conditional: bool, value: Any) -> Binding:
    if kind == "def":
        value = FunctionFact(value[0], value[1], _bindings(value[2]) if value[2] else (), value[3])
    elif kind == "class":
        value = ClassFact(value[0], value[1], value[2], _bindings(value[3]))
    return Binding(kind, name, line, conditional, value)
