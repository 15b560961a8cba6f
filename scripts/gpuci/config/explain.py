"""What is wrong with a value or key, in words that name what would be right. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from gpuci.config.tree import Path, quoted

_TYPE_NAMES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
}
_SECRET_WORDS = ("password", "passwd", "passphrase", "token", "secret", "secrets", "credential")
_SECRET_KEYS = ("private_key", "api_key", "access_key", "secret_key", "ssh_key")
SECRET_ADVICE = (
    "secrets don't belong in the configuration, which travels in the plan; the SSH key goes into the "
    "workflow's secret `ssh-private-key` or comes from `slurm.credential-command`, a registry's secret from "
    "`container.pull-credential-command`, a variable of the job by its name in `container.env`"
)


def is_secret_name(name: str) -> bool:
    """Whether a setting or variable of this name would hold a secret: its last word says so."""
    plain = name.lower().replace("-", "_")
    return plain.split("_")[-1] in _SECRET_WORDS or plain.endswith(_SECRET_KEYS)


def dotted(path: Path) -> str:
    """The name of a setting in a message: `node.pytest-args[0]`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return quoted(text.removeprefix("."), limit=120)[1:-1]


def unknown_key(path: Path, schema: dict[str, Any], root: dict[str, Any]) -> str:
    """The message for a key that the schema lacks at this place."""
    key = str(path[-1])
    if is_secret_name(key):
        return f"{dotted(path)}: {SECRET_ADVICE}"
    valid = list(schema.get("properties", {}))
    near, elsewhere = nearest(key, valid), _section_with(key, root)
    if near:
        hint = f"did you mean {quoted(near)}?"
    elif elsewhere:
        hint = f"it belongs under {quoted(elsewhere)}"
    else:
        hint = "valid here: " + ", ".join(valid)
    return f"unknown key {quoted(key)}{_within(path)}; {hint}"


def _section_with(key: str, root: dict[str, Any]) -> str | None:
    """The section that has a setting of this name."""
    sections = root["properties"].items()
    return next((name for name, below in sections if _folded(key) in below.get("properties", {})), None)


def nearest(word: str, valid: Sequence[str]) -> str | None:
    """The valid word that looks most like this one, or None if none does."""
    folded = {_folded(name): name for name in reversed(valid)}
    # Cut because the comparison takes time in the product of the lengths.
    matches = get_close_matches(_folded(word[:100]), list(folded), n=1, cutoff=0.7)
    return folded[matches[0]] if matches else None


def _folded(name: str) -> str:
    return name.lower().replace("_", "-")


def one_of(word: str, valid: Sequence[str]) -> str:
    """The message part for a value that is none of the valid ones."""
    near = nearest(word, valid)
    hint = f"did you mean {quoted(near)}? " if near else ""
    return f"{quoted(word)} is not known; {hint}valid: {', '.join(valid)}"


def explain(keyword: str, value: Any, schema: dict[str, Any], path: Path) -> str:
    """The message for a value that breaks the rule `keyword` of its schema."""
    name = dotted(path)
    if keyword == "type":
        return f"{name} must be {_type_names(schema['type'])}, not {described(value)}"
    if keyword == "enum":
        return f"{name}: {one_of(value, schema['enum'])}"
    if keyword in ("minimum", "maximum", "exclusiveMinimum"):
        return f"{name} must be {_range(schema)}, not {value}"
    if keyword == "minItems":
        return f"{name}: must not be empty"
    return f"{name}: {quoted(value)} does not fit; {schema['patternErrorMessage']}"


def described(value: Any) -> str:
    """A value as messages show it, with its kind where that can surprise."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"the text {quoted(value)}"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    return _TYPE_NAMES["array" if isinstance(value, list) else "object"]


def _within(path: Path) -> str:
    return f" in {quoted(dotted(path[:-1]))}" if len(path) > 1 else ""


def _type_names(types: str | list[str]) -> str:
    return " or ".join(_TYPE_NAMES[name] for name in ([types] if isinstance(types, str) else types))


def _range(schema: dict[str, Any]) -> str:
    low, above, high = (schema.get(rule) for rule in ("minimum", "exclusiveMinimum", "maximum"))
    start = f"at least {low}" if low is not None else f"more than {above}"
    if high is None:
        return start
    return f"from {low} to {high}" if low is not None else f"{start} and at most {high}"
