"""Two states of uv.lock -> whose locked needs changed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuci.changes import toml
from gpuci.changes.locks import compare
from gpuci.changes.model import Lock

pytestmark = pytest.mark.skipif(not toml.READABLE, reason="Python 3.10 reads no TOML")

LOCK = """
version = 1
requires-python = ">=3.10"

[manifest]
members = ["nets", "serve", "root"]

[[package]]
name = "nets"
version = "0.1"
source = { editable = "packages/nets" }
dependencies = [{ name = "torch" }]
[package.optional-dependencies]
fast = [{ name = "flash" }]
[package.dev-dependencies]
test = [{ name = "mocks", marker = "x" }]

[[package]]
name = "serve"
version = "0.1"
source = { virtual = "packages/serve" }
dependencies = [{ name = "nets" }, { name = "web" }]

[[package]]
name = "root"
version = "0"
source = { editable = "." }
dependencies = [{ name = "nets" }]

[[package]]
name = "torch"
version = "2.4"
source = { registry = "https://pypi.org/simple" }
dependencies = [{ name = "cuda", version = "12.1", marker = "linux" }, { name = "cuda", version = "12.4" }]

[[package]]
name = "cuda"
version = "12.1"
[[package]]
name = "cuda"
version = "12.4"
[[package]]
name = "flash"
version = "2"
[[package]]
name = "mocks"
version = "8"
[[package]]
name = "web"
version = "1"
[[package]]
name = "nobody"
version = "1"
"""
MEMBERS = frozenset({".", "packages/nets", "packages/serve"})


def replaced(old: str, new: str) -> Callable[[], str]:
    assert old in LOCK
    return lambda: LOCK.replace(old, new)


@pytest.mark.parametrize(
    ("head", "changed"),
    [
        (lambda: LOCK, {}),
        (lambda: LOCK + "\n# a comment\n", {}),
        (replaced('"web"\nversion = "1"', '"web"\nversion = "2"'), {"packages/serve": "web"}),
        (replaced('"torch"\nversion = "2.4"', '"torch"\nversion = "2.5"'), {"packages/nets": "torch"}),
        (replaced('"cuda"\nversion = "12.4"', '"cuda"\nversion = "12.6"'), {"packages/nets": "cuda"}),
        (replaced('"flash"\nversion = "2"', '"flash"\nversion = "3"'), {"packages/nets": "flash"}),
        (replaced('"mocks"\nversion = "8"', '"mocks"\nversion = "9"'), {"packages/nets": "mocks"}),
        (replaced('"nobody"\nversion = "1"', '"nobody"\nversion = "2"'), {}),
        (
            replaced('[{ name = "nets" }, { name = "web" }]', '[{ name = "nets" }]'),
            {"packages/serve": "serve"},
        ),
        (replaced('members = ["nets", ', 'members = ["new", "nets", '), {}),
    ],
    ids=[
        *("the same", "a comment", "direct", "direct too", "one of two versions", "an extra", "a group"),
        *("used by nobody", "a need less", "a member more"),
    ],
)
def test_members_that_use_what_changed(head: Callable[[], str], changed: dict[str, str]) -> None:
    """Not those that use it by way of another member: that one counts for itself."""
    assert compare(".", LOCK.encode(), head().encode()) == Lock(changed, MEMBERS)


@pytest.mark.parametrize("name", ["pytest", "pytest-randomly"])
def test_pytest_and_its_plugins_are_everybody_s(name: str) -> None:
    """Tests of members that don't declare them run with them, too."""
    base = LOCK.replace('"web"', f'"{name}"')
    head = base.replace(f'"{name}"\nversion = "1"', f'"{name}"\nversion = "2"')
    assert compare(".", base.encode(), head.encode()) is None


@pytest.mark.parametrize("place", ["nowhere", "../outside", "packages/serve", "."])
@pytest.mark.parametrize("kind", ["directory", "virtual", "editable"])
def test_what_others_use_can_t_hide_as_a_member(place: str, kind: str) -> None:
    """A wheel of the index becomes a directory, which counts for itself; its users count all the same."""
    source = 'source = { registry = "https://pypi.org/simple" }'
    assert source in LOCK
    found = compare(".", LOCK.encode(), LOCK.replace(source, f'source = {{ {kind} = "{place}" }}').encode())
    assert found is not None
    assert found.changed["packages/nets"] == "torch"


@pytest.mark.parametrize("decoy", [True, False])
def test_a_member_that_moves_counts_where_it_was(decoy: bool) -> None:
    """Either its old place changed, or the file does not know that any more."""
    head = LOCK.replace('editable = "packages/nets"', 'editable = "elsewhere"')
    if decoy:
        head += '[[package]]\nname = "decoy"\nversion = "1"\nsource = { virtual = "packages/nets" }\n'
    found = compare(".", LOCK.encode(), head.encode())
    assert found is not None
    assert "packages/nets" in found.changed or "packages/nets" not in found.members


def test_paths_are_relative_to_root() -> None:
    head = LOCK.replace('"web"\nversion = "1"', '"web"\nversion = "2"')
    found = compare("sub", LOCK.encode(), head.encode())
    assert found is not None
    assert found.changed == {"sub/packages/serve": "web"}
    assert found.members == {"sub", "sub/packages/nets", "sub/packages/serve"}


@pytest.mark.parametrize(
    "head",
    [
        lambda: "no toml [",
        lambda: LOCK.replace("version = 1\n", "version = 2\n"),
        lambda: LOCK.replace(">=3.10", ">=3.11"),
        lambda: LOCK.replace("[manifest]", "[manifest]\noverrides = [{ name = 'torch' }]"),
        lambda: "package = 3\n" + LOCK.split("[[package]]")[0],
        lambda: LOCK + "[[package]]\nversion = '1'\n",
        lambda: LOCK + f"[[package]]\nname = 'x'\n[package.{'.'.join('a' * 900)}]\n",
    ],
    ids=["broken", "version", "python", "overrides", "no list", "no name", "deep"],
)
def test_what_can_t_be_told_is_none(head: Callable[[], str]) -> None:
    assert compare(".", LOCK.encode(), head().encode()) is None


def test_groups_of_a_root_without_a_project_are_the_root_s() -> None:
    groups = "[manifest.dependency-groups]\ndev = [{ name = 'mocks', specifier = '>=8' }]\n\n[[package]]"
    base = LOCK.replace("[[package]]", groups, 1).replace('source = { editable = "." }\n', "")
    head = base.replace('"mocks"\nversion = "8"', '"mocks"\nversion = "9"')
    found = compare(".", base.encode(), head.encode())
    assert found is not None
    assert found.changed == {".": "mocks", "packages/nets": "mocks"}


def test_needs_in_a_circle_end() -> None:
    circle = LOCK.replace(
        'name = "web"\nversion = "1"', 'name = "web"\nversion = "1"\ndependencies = [{ name = "web" }]'
    )
    found = compare(".", circle.encode(), circle.encode())
    assert found == Lock({}, MEMBERS)
