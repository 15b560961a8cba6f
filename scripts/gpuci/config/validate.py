"""A tree against the JSON Schema -> plain data and problems. Pure.

The schema keeps to a subset that gives one clear message per mistake: no anyOf, a list in `type` instead;
`patternErrorMessage` (a convention of YAML editors) says what a pattern asks for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gpuci.config.explain import SECRET_ADVICE, explain, unknown_key
from gpuci.config.tree import Branch, Path, Problem, Scalar, Tree, key_place, place_of

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

Schema = dict[str, Any]


def validate(tree: Tree, schema: Schema) -> tuple[dict[str, Any], list[Problem]]:
    """Check a tree and give its plain data, without the values that have a problem.

    Numbers and booleans keep their text where the schema wants text. Empty values (None) stay: they mean
    "not set", and are right everywhere but in a list.
    """
    data = _plain(tree, schema, schema)
    problems = list(_private_keys(tree))
    secret_places = {problem.place for problem in problems}
    wrong: list[Path] = []
    for error in _validator(schema).iter_errors(data):
        for path, problem in _problems(error, tree, schema):
            wrong.append(path)
            # Any other message about such a value would show a part of it.
            if problem.place not in secret_places:
                problems.append(problem)
    for path in wrong:
        _drop(data, path)
    return data if isinstance(data, dict) else {}, problems


def _private_keys(tree: Tree) -> Iterator[Problem]:
    if isinstance(tree, Scalar):
        if "PRIVATE KEY-----" in tree.text:
            yield Problem(tree.place, f"this is a private key: {SECRET_ADVICE}")
        return
    for below in tree.entries.values() if isinstance(tree, Branch) else tree.items:
        yield from _private_keys(below)


def resolved(schema: Schema, root: Schema) -> Schema:
    """The schema with its `$ref` replaced by what it names; what stands beside it wins."""
    if "$ref" not in schema:
        return schema
    target = root
    for step in schema["$ref"].removeprefix("#/").split("/"):
        target = target[step]
    return {**resolved(target, root), **{key: value for key, value in schema.items() if key != "$ref"}}


def _plain(tree: Tree, schema: Schema, root: Schema) -> Any:
    schema = resolved(schema, root)
    if isinstance(tree, Scalar):
        return _scalar(tree, schema)
    if isinstance(tree, Branch):
        return {key: _plain(value, _below(schema, key), root) for key, value in tree.entries.items()}
    return [_plain(item, schema.get("items", {}), root) for item in tree.items]


def _below(schema: Schema, key: str) -> Schema:
    named = schema.get("properties", {}).get(key)
    return named if named is not None else schema.get("additionalProperties") or {}


def _scalar(scalar: Scalar, schema: Schema) -> Any:
    value, wanted = scalar.value, schema.get("type", [])
    types = [wanted] if isinstance(wanted, str) else wanted
    if isinstance(value, float) and value.is_integer() and "integer" in types:
        return int(value)
    takes_it = "boolean" in types if isinstance(value, bool) else "integer" in types or "number" in types
    if isinstance(value, (bool, int, float)) and "string" in types and not takes_it:
        return scalar.text
    return value


def _validator(schema: Schema) -> Validator:
    """jsonschema's validator, in which empty values have no type and a pattern fits the whole text."""
    # Imported here because it takes 0.1 s, which a run without a configuration file need not pay.
    from jsonschema import Draft202012Validator, ValidationError
    from jsonschema.validators import extend

    def skipping_nulls(keyword: str) -> Any:
        check = Draft202012Validator.VALIDATORS[keyword]

        def check_set(validator: Any, value: Any, instance: Any, schema: Schema) -> Iterator[ValidationError]:
            if isinstance(instance, dict) and value is not False:
                instance = {key: item for key, item in instance.items() if item is not None}
            yield from check(validator, value, instance, schema)

        return check_set

    def pattern(validator: Any, value: str, instance: Any, schema: Schema) -> Iterator[ValidationError]:
        if isinstance(instance, str) and not re.fullmatch(value, instance):
            yield ValidationError(value)

    own = {keyword: skipping_nulls(keyword) for keyword in ("properties", "additionalProperties")}
    checker: Validator = extend(Draft202012Validator, {**own, "pattern": pattern})(schema)  # type: ignore[no-untyped-call]
    return checker


def _problems(error: ValidationError, tree: Tree, root: Schema) -> Iterator[tuple[Path, Problem]]:
    """The problems of one error of jsonschema, each with the path of the value to leave out."""
    path: Path = tuple(error.absolute_path)
    value: Any = error.instance
    schema = resolved(error.schema if isinstance(error.schema, dict) else {}, root)
    keyword = str(error.validator)
    if keyword == "enum" and not isinstance(value, str):
        return  # its type is wrong too, and that is the message
    if keyword == "additionalProperties":
        for key in _extras(value, schema):
            name = (*path, key)
            yield name, Problem(key_place(tree, name), unknown_key(name, schema, root))
    elif "propertyNames" in error.absolute_schema_path:
        path = (*path, value)
        yield path, Problem(key_place(tree, path), explain(keyword, value, schema, path))
    else:
        yield path, Problem(place_of(tree, path), explain(keyword, value, schema, path))


def _extras(instance: dict[str, Any], schema: Schema) -> Iterator[str]:
    for key in instance:
        known = key in schema.get("properties", {})
        if not known and not any(re.search(pattern, key) for pattern in schema.get("patternProperties", {})):
            yield key


def _drop(data: Any, path: Path) -> None:
    """Take out the value at `path`; of a list the whole list goes, so that indices stay true."""
    steps = list(path)
    for index, step in enumerate(steps):
        if isinstance(step, int):
            steps = steps[:index]
            break
    for step in steps[:-1]:
        data = data.get(step, {}) if isinstance(data, dict) else {}
    if steps and isinstance(data, dict):
        data.pop(steps[-1], None)
