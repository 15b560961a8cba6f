"""Bytes of a YAML file -> tree with places. Pure."""

from __future__ import annotations

import re

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from gpuci.config.compose import TAG, compose, short, value_of
from gpuci.config.tree import Branch, Place, Problem, ProblemsFound, Scalar, Sequence, Tree, quoted

_FORBIDDEN = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FORBIDDEN_IN_VALUES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def parse(data: bytes, file: str) -> tuple[Tree, list[Problem]]:
    """Read one file; `file` is the name for messages. An empty file is an empty mapping.

    Returns the tree and the problems that left it readable (a key twice, an unknown tag).
    Raises ProblemsFound for text that can't be read as YAML at all.
    """
    text = _decode(data, file)
    node = compose(text, file)
    reading = _Reading(file)
    start = Place(file, 1, 1)
    tree = reading.tree(node) if node is not None else Branch(start, {}, {})
    if isinstance(tree, Scalar) and tree.value is None:
        tree = Branch(start, {}, {})
    return tree, reading.problems


def _decode(data: bytes, file: str) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8", "replace")
        hint = "; it looks like UTF-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        message = f"not UTF-8: byte 0x{data[error.start]:02x}{hint}"
        raise ProblemsFound([Problem(_end_of(before, file), message)]) from None
    text = text.removeprefix("\ufeff")
    bad = _FORBIDDEN.search(text)
    if bad:
        message = f"a character that YAML forbids: U+{ord(bad.group()):04X}"
        raise ProblemsFound([Problem(_end_of(text[: bad.start()], file), message)])
    return text


def _end_of(text: str, file: str) -> Place:
    return Place(file, text.count("\n") + 1, len(text) - (text.rfind("\n") + 1) + 1)


class _Reading:
    """PyYAML's nodes -> trees, collecting the problems of one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []

    def tree(self, node: Node) -> Tree:
        """The tree of a node."""
        if isinstance(node, MappingNode):
            self._check_tag(node, "map")
            return self._branch(node)
        if isinstance(node, SequenceNode):
            self._check_tag(node, "seq")
            return Sequence(self._place(node), tuple(self.tree(child) for child in node.value))
        return self._scalar(node)

    def _place(self, node: Node) -> Place:
        return Place(self.file, node.start_mark.line + 1, node.start_mark.column + 1)

    def _report(self, node: Node, message: str) -> None:
        self.problems.append(Problem(self._place(node), message))

    def _check_tag(self, node: Node, name: str) -> None:
        if node.tag != TAG + name:
            self._report(node, f"the tag {quoted(short(node.tag))} is not read here: write plain YAML")

    def _scalar(self, node: Node) -> Scalar:
        place, text = self._place(node), str(node.value)
        bad = _FORBIDDEN_IN_VALUES.search(text)
        if bad:
            self._report(node, f"a value with the control character U+{ord(bad.group()):04X}")
            return Scalar(place, None, "")
        try:
            return Scalar(place, value_of(node.tag, text), text)
        except KeyError:
            self._report(node, f"the tag {quoted(short(node.tag))} is not read here: write plain YAML")
        except ValueError:
            self._report(node, f"{quoted(text)} does not fit its tag {quoted(short(node.tag))}")
        return Scalar(place, None, text)

    def _branch(self, node: MappingNode) -> Branch:
        own: dict[str, Tree] = {}
        keys: dict[str, Place] = {}
        merged: list[Branch] = []
        for key_node, value_node in node.value:
            key = self._key(key_node)
            if key is None:
                continue
            if key in keys:
                self._report(
                    key_node, f"the key {quoted(key)} stands here twice, first in line {keys[key].line}"
                )
                continue
            keys[key] = self._place(key_node)
            if key_node.tag == TAG + "merge":
                merged += self._merge_sources(value_node)
            else:
                own[key] = self.tree(value_node)
        return _with_merged(Branch(self._place(node), own, {key: keys[key] for key in own}), merged)

    def _key(self, node: Node) -> str | None:
        if not isinstance(node, ScalarNode):
            self._report(node, "a key must be text, not a list or mapping")
            return None
        key = self._scalar(node)
        if not node.value:
            self._report(node, "an empty key")
        return key.text or None

    def _merge_sources(self, node: Node) -> list[Branch]:
        """The mappings that `<<` names, in order of authority."""
        nodes = node.value if isinstance(node, SequenceNode) else [node]
        trees = [(child, self.tree(child)) for child in nodes]
        for child, tree in trees:
            if not isinstance(tree, Branch):
                self._report(child, "`<<` takes a mapping or a list of mappings")
        return [tree for _, tree in trees if isinstance(tree, Branch)]


def _with_merged(branch: Branch, sources: list[Branch]) -> Branch:
    """Add what the mapping itself lacks; the first source that has a key wins."""
    entries, keys = dict(branch.entries), dict(branch.keys)
    for source in sources:
        for key, value in source.entries.items():
            entries.setdefault(key, value)
            keys.setdefault(key, source.keys[key])
    return Branch(branch.place, entries, keys)
