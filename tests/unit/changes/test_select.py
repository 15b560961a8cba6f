"""Which tests are due for which changes. The trees are tables of files; nothing is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.changes.diff import differing
from gpuci.changes.model import Changes, Lock, Project, Rules, Side
from gpuci.changes.select import everything, reason, rules_of, select
from gpuci.config.model import Config
from gpuci.repository.globs import holds

RULES = Rules(("packages/*",), configuration=(".github/gpuci.yml",))
FILES = (
    *("packages/core/pyproject.toml", "packages/core/src/core.py", "packages/core/tests/test_core.py"),
    *("packages/nets/pyproject.toml", "packages/nets/tests/test_nets.py"),
    *("packages/serve/pyproject.toml", "packages/serve/tests/test_serve.py"),
    *("packages/alone/pyproject.toml", "packages/alone/tests/test_alone.py"),
    *("README.md", ".github/gpuci.yml", "lib/shared.py"),
)


def project(path: str, *needs: str, **more: Any) -> Project:
    return Project(path, path.rpartition("/")[2], frozenset(needs), **more)


PROJECTS = (
    project("packages/core"),
    project("packages/nets", "core", "torch"),
    project("packages/serve", "nets"),
    project("packages/alone"),
)


def side(
    projects: Iterable[Project] = PROJECTS,
    files: Iterable[str] = FILES,
    links: Mapping[str, str | None] | None = None,
    **content: str,
) -> Side:
    listed = {path: ("100644", content.get(path, "1")) for path in files}
    listed |= dict.fromkeys(links or {}, ("120000", "1"))
    return Side(listed, {one.path: one for one in projects}, links or {})


def chosen(
    changed: Iterable[str],
    base: Side | None = None,
    head: Side | None = None,
    rules: Rules = RULES,
    locks: Mapping[str, Lock | None] | None = None,
) -> Changes:
    """The selection when these paths change; paths that the tree has not are new."""
    head = head or side()
    base = base or head
    before = {**base.files, **{path: ("100644", "0") for path in changed if path in base.files}}
    after = {**head.files, **{path: ("100644", "2") for path in changed if path not in head.files}}
    differences = differing(before, after)
    return select(
        differences,
        Side(before, base.projects, base.links),
        Side(after, head.projects, head.links),
        rules,
        locks or {},
    )


ALL = ("packages/alone", "packages/core", "packages/nets", "packages/serve")


@pytest.mark.parametrize(
    ("changed", "packages"),
    [
        ([], ()),
        (["packages/serve/tests/test_serve.py"], ("packages/serve",)),
        (["packages/nets/README.md"], ("packages/nets", "packages/serve")),
        (["packages/core/src/core.py"], ("packages/core", "packages/nets", "packages/serve")),
        (["packages/alone/x", "packages/serve/x"], ("packages/alone", "packages/serve")),
        (["packages/alone/new.py"], ("packages/alone",)),
    ],
    ids=lambda value: "+".join(value) or "nothing",
)
def test_a_package_and_all_that_need_it(changed: list[str], packages: tuple[str, ...]) -> None:
    found = chosen(changed)
    assert (found.everything, found.packages) == (False, packages)
    assert tuple(test.path for test in found.tests) == packages
    assert found.affected == bool(packages)


def test_each_has_the_way_from_the_changed_file() -> None:
    found = {test.path: test for test in chosen(["packages/core/src/core.py"]).tests}
    assert found["packages/core"].because == ("packages/core/src/core.py", "packages/core")
    assert found["packages/core"].why == "packages/core/src/core.py changed"
    assert found["packages/serve"].because == (
        "packages/core/src/core.py",
        "packages/core",
        "packages/nets",
        "packages/serve",
    )
    assert found["packages/serve"].why == "needs nets, which is due by packages/nets"


@pytest.mark.parametrize(
    ("changed", "rules", "because"),
    [
        ("README.md", RULES, "README.md is in no package"),
        ("lib/shared.py", RULES, "lib/shared.py is in no package"),
        (".github/gpuci.yml", RULES, ".github/gpuci.yml is the configuration"),
        ("packages/core/a.cu", Rules(("packages/*",), ("**/*.cu",)), "a.cu: changes.everything has **/*.cu"),
        (".github/gpuci.yml", Rules((".",), (), (".github",), (".github/gpuci.yml",)), "the configuration"),
        ("lib/shared.py", Rules(("packages/*",), ("lib",), ("lib",)), "changes.everything has lib"),
    ],
    ids=["outside", "outside too", "configuration", "a glob", "ignored configuration", "both globs"],
)  # fmt: skip
def test_doubt_means_everything(changed: str, rules: Rules, because: str) -> None:
    found = chosen([changed, "packages/alone/x"], rules=rules)
    entries = ALL if rules.packages == ("packages/*",) else (".",)
    assert (found.everything, found.packages, found.tests) == (True, entries, ())
    assert found.affected
    assert because in found.because[0]


def test_what_the_configuration_ignores_means_nothing() -> None:
    rules = Rules(("packages/*",), ignore=("*.md", "docs", "**/docs/**"))
    found = chosen(["README.md", "docs/a/b.png", "packages/core/docs/x.md"], rules=rules)
    assert (found.everything, found.packages, found.affected) == (False, (), False)
    assert found.ignored == ("README.md", "docs/a/b.png", "packages/core/docs/x.md")


def test_many_reasons_are_counted() -> None:
    found = chosen([f"x{number:02}" for number in range(50)])
    assert len(found.because) == 21
    assert found.because[-1] == "and 30 more changed files"


def test_a_renamed_file_counts_under_both_names() -> None:
    base = side(files=(*FILES, "packages/alone/helper.py"))
    head = side(files=(*FILES, "packages/serve/helper.py"))
    assert chosen([], base, head).packages == ("packages/alone", "packages/serve")


GUESTS = Rules(("packages/nets", "packages/serve"))


@pytest.mark.parametrize(
    ("head", "files"),
    [
        ([project("packages/nets"), *PROJECTS[2:]], [path for path in FILES if "/core/" not in path]),
        ([Project("packages/core", "renamed"), project("packages/nets"), *PROJECTS[2:]], FILES),
    ],
    ids=["deleted", "of another name"],
)
def test_those_that_needed_a_package_before_are_due(head: list[Project], files: Iterable[str]) -> None:
    found = chosen(["packages/core/src/core.py"], side(), side(head, files), GUESTS)
    assert found.packages == ("packages/nets", "packages/serve")


@pytest.mark.parametrize(
    ("ignore", "links", "packages"),
    [
        (("docs",), {}, ()),
        (("docs",), {"packages/core/data": "docs"}, ("packages/core", "packages/nets", "packages/serve")),
        (("docs",), {"packages/alone/data": "docs/a"}, ("packages/alone",)),
        (("docs",), {"packages/alone/data": "docs/ab"}, ()),
        (("docs", "packages/alone/data"), {"packages/alone/data": "docs"}, ()),
        (("docs",), {"docs/latest": "docs/a"}, ()),
        (("docs",), {"lib/all": "."}, ALL),
    ],
    ids=["no link", "of all", "of a part", "of another", "an ignored link", "among them", "in no package"],
)
def test_what_is_ignored_counts_by_the_links_to_it(
    ignore: tuple[str, ...], links: dict[str, str | None], packages: tuple[str, ...]
) -> None:
    rules = Rules(("packages/*",), ignore=ignore)
    found = chosen(["docs/a/b.json"], head=side(links=links), rules=rules)
    assert (found.packages, found.ignored) == (packages, () if packages else ("docs/a/b.json",))


def test_what_means_everything_does_so_by_any_of_its_names() -> None:
    head = side(links={"packages/core/common": "packages/alone"})
    for pattern in ("packages/core/common/*.py", "packages/alone", "packages/*/common"):
        assert chosen(["packages/alone/x.py"], head=head, rules=Rules(("packages/*",), (pattern,))).everything


def test_names_that_can_not_be_counted_are_a_doubt_where_they_matter() -> None:
    circle: dict[str, str | None] = {f"docs/{a}/{b}": f"docs/{b}" for a in "abcdef" for b in "abcdef"}
    found = chosen(["docs/a/x"], head=side(links=circle), rules=Rules(("packages/*",), ignore=("docs",)))
    assert found.everything
    assert "too many links" in found.because[0]


def test_an_entry_of_the_guest_list_that_goes_means_everything() -> None:
    """Or who takes the tests away would need none."""
    head = side(PROJECTS[:3], [path for path in FILES if "/alone/" not in path])
    found = chosen([], side(), head)
    assert (found.everything, found.packages) == (True, ALL[1:])
    assert found.because == ("packages/alone is one of the packages, and is not there any more",)


def test_a_need_that_the_change_takes_away_still_counts() -> None:
    head = side([project("packages/core"), project("packages/nets"), *PROJECTS[2:]])
    found = chosen(["packages/core/src/core.py"], side(), head)
    assert found.packages == ("packages/core", "packages/nets", "packages/serve")


def test_a_new_need_counts_too() -> None:
    head = side([*PROJECTS[:3], project("packages/alone", "serve")])
    assert chosen(["packages/serve/x"], side(), head).packages == ("packages/alone", "packages/serve")


def test_needs_in_a_circle_end() -> None:
    circle = side([project("packages/core", "serve"), *PROJECTS[1:]])
    assert chosen(["packages/nets/x"], head=circle).packages == (
        "packages/core",
        "packages/nets",
        "packages/serve",
    )


@pytest.mark.parametrize(
    "unknown",
    [
        project("packages/alone", unknown="its dependencies are dynamic"),
        None,
    ],
    ids=["needs that can't be told", "no project at all"],
)
def test_a_package_of_unknown_needs_is_due_for_any_change(unknown: Project | None) -> None:
    head = side([*PROJECTS[:3], *([unknown] if unknown else [])])
    found = chosen(["packages/serve/x"], head=head)
    assert found.packages == ("packages/alone", "packages/serve")
    assert found.tests[0].because == ("packages/serve/x", "packages/serve", "packages/alone")
    assert "depend" in found.tests[0].why
    assert chosen([], head=head).packages == ()


def test_what_uses_a_package_of_unknown_needs_is_due_too() -> None:
    head = side([project("packages/core", unknown="dynamic"), *PROJECTS[1:]])
    assert chosen(["packages/alone/x"], head=head).packages == ALL


def test_a_package_named_by_its_path_is_a_need() -> None:
    head = side([*PROJECTS[:3], project("packages/alone", paths=frozenset({"packages/serve/src"}))])
    found = chosen(["packages/serve/x"], head=head)
    assert found.packages == ("packages/alone", "packages/serve")
    assert found.tests[0].why.startswith("names the directory packages/serve/src")


def test_a_directory_named_by_its_path_means_all_below_it() -> None:
    head = side([*PROJECTS[:3], project("packages/alone", paths=frozenset({"packages"}))])
    assert chosen(["packages/serve/x"], head=head).packages == ("packages/alone", "packages/serve")


@pytest.mark.parametrize(
    ("target", "packages"),
    [
        ("packages/serve/data", ("packages/alone", "packages/serve")),
        ("packages", ("packages/alone", "packages/serve")),
        (None, ("packages/serve",)),
    ],
    ids=str,
)
def test_a_link_to_another_package_is_a_need(target: str | None, packages: tuple[str, ...]) -> None:
    head = side(links={"packages/alone/link": target})
    assert chosen(["packages/serve/x"], head=head).packages == packages


def test_an_entry_that_is_a_link_is_due_with_its_target() -> None:
    head = side(links={"packages/zlink": "packages/serve"})
    assert chosen(["packages/serve/x"], head=head).packages == ("packages/serve", "packages/zlink")


def test_a_submodule_counts_for_the_package_around_and_all_below() -> None:
    """Its path is one entry of the tree; what is inside is not seen."""
    rules = Rules(("packages/*", "vendor/kernels/tests"))
    base, head = side(), side()
    before = {**base.files, "packages/core/third_party": ("160000", "1")}
    after = {**head.files, "packages/core/third_party": ("160000", "2")}
    changes = differing(before, after)
    assert [change.kind for change in changes] == ["modified"]
    found = select(changes, Side(before, base.projects), Side(after, head.projects), rules, {})
    assert found.packages == ("packages/core", "packages/nets", "packages/serve")


def test_a_submodule_around_packages_means_those() -> None:
    head = side(files=(*FILES, "vendor/k/tests/test_k.py"), projects=[*PROJECTS, project("vendor/k")])
    rules = Rules(("packages/*", "vendor/*"))
    after = {**head.files, "vendor": ("160000", "2")}
    found = select(differing(head.files, after), head, Side(after, head.projects), rules, {})
    assert (found.everything, found.packages) == (False, ("vendor/k",))


def test_what_lies_around_packages_counts_for_all_inside() -> None:
    """A conftest.py of the directory above, where that one is a project."""
    head = side([*PROJECTS, project("."), project("packages/core/plugin")])
    assert chosen(["conftest.py"], head=head).packages == ALL
    assert chosen(["packages/core/x"], head=head).packages == ALL[1:]


@pytest.mark.parametrize(
    ("changed", "packages"),
    [
        ("libs/a/x.py", (".",)),
        ("libs/b/x.py", ("libs/b", "pyproject.toml", "tests")),
        ("tests/test_top.py", (".",)),
    ],
)
def test_one_entry_over_several_projects_is_taken_apart(changed: str, packages: tuple[str, ...]) -> None:
    files = ("libs/a/x.py", "libs/b/x.py", "tests/test_top.py", "pyproject.toml")
    head = side([project("libs/a"), project("libs/b", "a"), project(".")], files)
    assert chosen([changed], head=head, rules=Rules((".",))).packages == packages


def test_a_project_that_is_due_without_the_ones_inside_is_listed_by_its_parts() -> None:
    files = ("libs/a/x.py", "libs/b/x.py", "tests/test_top.py", "pyproject.toml")
    head = side([project("libs/a"), project("libs/b"), project(".", "a")], files)
    found = chosen(["libs/a/x.py"], head=head, rules=Rules((".",)))
    assert found.packages == ("libs/a", "pyproject.toml", "tests")
    assert found.tests[-1].because == ("libs/a/x.py", "libs/a", ".", "tests")


@pytest.mark.parametrize("files", [["lib/shared.py"], ["lib/new.py"]], ids=["changed", "added"])
def test_a_directory_that_the_change_makes_a_package_counts_as_what_it_was(files: list[str]) -> None:
    """Or a change to code that all use, and nobody declares, would be tested nowhere."""
    head = side([*PROJECTS, project("lib")], (*FILES, "lib/pyproject.toml"))
    found = chosen([*files, "lib/pyproject.toml"], side(), head)
    assert found.everything
    assert "lib/pyproject.toml is in no package" in found.because


def test_a_package_taken_out_of_another_counts_as_both() -> None:
    head = side([*PROJECTS, project("packages/core/sub")], (*FILES, "packages/core/sub/pyproject.toml"))
    base = side(files=(*FILES, "packages/core/sub/x.py"))
    assert chosen(["packages/core/sub/x.py"], base, head).packages == ALL[1:]


def test_a_directory_that_is_a_package_no_more_counts_as_what_it_is() -> None:
    base = side([*PROJECTS, project("lib")], (*FILES, "lib/pyproject.toml"))
    assert chosen(["lib/shared.py"], base, side()).everything


@pytest.mark.parametrize("name", ["fixture", ""], ids=["with a name", "without"])
def test_what_looks_like_a_package_inside_of_another_counts_for_that_one(name: str) -> None:
    """It can be a fixture, or code of that package which hides behind a project file."""
    inner = "packages/core/tests/data/made"
    head = side([*PROJECTS, Project(inner, name)], (*FILES, f"{inner}/pyproject.toml"))
    for base in (head, side()):
        assert chosen([f"{inner}/x.py"], base, head).packages == ALL[1:]


@pytest.mark.parametrize(
    "lost", [Project("packages/alone", unknown="it can't be read"), None], ids=["nameless", "bare"]
)
def test_a_change_in_what_nobody_can_name_means_everything(lost: Project | None) -> None:
    head = side([*PROJECTS[:3], *([lost] if lost else [])])
    found = chosen(["packages/alone/x.py"], head=head)
    assert found.everything
    assert "which has no name" in found.because[0]


def test_a_setup_py_may_name_it() -> None:
    """That is enough to find its users, and not to be sure that there are no others."""
    legacy = Project("packages/core", aliases=frozenset({"core", "core-ext"}), unknown="no pyproject.toml")
    head = side([legacy, *PROJECTS[1:]])
    assert chosen(["packages/alone/x"], head=head).packages == ALL
    assert chosen(["packages/core/x"], head=head).everything


def test_a_plugin_of_pytest_acts_on_all() -> None:
    plugin = project("tools/plugin", "core", plugin=True)
    head = side([*PROJECTS, plugin], (*FILES, "tools/plugin/pyproject.toml"))
    for path in ("tools/plugin/x.py", "packages/core/x.py"):
        found = chosen([path], head=head)
        assert (found.everything, found.packages) == (False, ALL)
    assert chosen([], side(), head).packages == ALL


@pytest.mark.parametrize(
    ("ignore", "path", "ignored"),
    [
        ("**/*.md", "packages/core/README.md", True),
        ("**/*.md", "packages/core/tests/x.md/test_x.py", False),
        ("*.md", "x.md/conftest.py", False),
        ("docs/*", "docs/x/conf.py", False),
        ("docs/**", "docs/x/conf.py", True),
        ("docs/**/", "docs/x/conf.py", True),
        ("docs", "docs/x/conf.py", True),
        ("*/docs", "packages/docs/x.py", True),
        ("*/docs/**", "packages/docs/x.py", True),
        ("**/docs", "packages/core/docs/x.py", True),
    ],
)
def test_a_glob_of_files_ignores_nothing_in_a_directory_of_such_a_name(
    ignore: str, path: str, ignored: bool
) -> None:
    assert chosen([path], rules=Rules(("packages/*",), ignore=(ignore,))).affected != ignored


@pytest.mark.parametrize("name", ["sitecustomize.py", "usercustomize.py", "tools.pth"])
def test_what_every_python_loads_means_everything(name: str) -> None:
    assert chosen([f"packages/serve/src/{name}"]).everything
    linked = side(links={f"packages/serve/{name}": "packages/alone/x"})
    assert chosen(["packages/alone/x"], head=linked).everything


@pytest.mark.parametrize(
    ("image", "path", "everything_"),
    [
        (("packages/core/Dockerfile",), "packages/core/Dockerfile", True),
        (("packages/core/docker",), "packages/core/docker/run.sh", True),
        (("packages/*/*.txt",), "packages/serve/requirements.txt", True),
        (("**/pyproject.toml",), "packages/serve/pyproject.toml", False),
        ((), "packages/core/Dockerfile", False),
    ],
)
def test_what_the_image_is_built_from_means_everything(
    image: tuple[str, ...], path: str, everything_: bool
) -> None:
    """All tests run in it. Project files tell themselves who they are for."""
    found = chosen([path], rules=Rules(("packages/*",), image=image))
    assert (found.everything, found.affected) == (everything_, True)


@pytest.mark.parametrize(
    ("build", "image"),
    [
        (None, ()),
        ({"file": "Dockerfile", "context": ".", "inputs": []}, ("Dockerfile",)),
        ({"file": "a[1]/Dockerfile", "context": "a", "inputs": []}, ("a[[]1]/Dockerfile", "a")),
        ({"file": "x", "context": "a", "inputs": ["uv.lock", "a/*"]}, ("x", "uv.lock", "a/*")),
    ],
)
def test_the_configuration_tells_what_the_image_is_built_from(
    build: dict[str, Any] | None, image: tuple[str, ...]
) -> None:
    config = Config(container={"build": build}, changes={"everything": ["e"], "ignore": ["i"]})
    assert rules_of(config, ["c"]) == Rules((".",), ("e",), ("i",), ("c",), image)


def test_a_name_of_a_directory_that_is_a_link_is_followed() -> None:
    head = side(
        [*PROJECTS[:3], project("packages/alone", paths=frozenset({"shared/src"}))],
        links={"shared": "packages/serve"},
    )
    assert chosen(["packages/serve/x"], head=head).packages == ("packages/alone", "packages/serve")


@pytest.mark.parametrize("entry", ["linked/tests", "lin*/tests"])
def test_an_entry_behind_a_link_is_found(entry: str) -> None:
    head = side(links={"linked": "packages/core"})
    assert chosen(["packages/core/x"], head=head, rules=Rules((entry,))).packages == ("linked/tests",)


def test_a_path_of_a_thousand_directories_is_taken_apart() -> None:
    deep = "/".join("d" * 1900)
    files = (f"{deep}/f", "d/x/f")
    head = side([project("."), project(deep), project("d/x")], files)
    assert chosen(["d/x/f"], head=head, rules=Rules((".",))).packages == ("d/x",)


def test_an_entry_inside_of_a_project_is_due_with_it() -> None:
    rules = Rules(("packages/core/tests", "packages/serve/tests/test_serve.py"))
    found = chosen(["packages/core/src/core.py"], rules=rules)
    assert found.packages == ("packages/core/tests", "packages/serve/tests/test_serve.py")
    assert found.tests[0].because == ("packages/core/src/core.py", "packages/core", "packages/core/tests")


def test_projects_that_nobody_tests_still_carry_needs() -> None:
    """`core` is on nobody's guest list, and `nets` uses it."""
    assert chosen(["packages/core/src/core.py"], rules=Rules(("packages/nets",))).packages == (
        "packages/nets",
    )


LOCKED = Lock({"packages/nets": "torch"}, frozenset(ALL) | {"."})


@pytest.mark.parametrize(
    ("lock", "everything_", "packages"),
    [
        (LOCKED, False, ("packages/nets", "packages/serve")),
        (Lock({}, LOCKED.members), False, ()),
        (Lock({"packages/nets": "torch"}, LOCKED.members - {"packages/alone"}), False,
         ("packages/alone", "packages/nets", "packages/serve")),
        (Lock({".": "pytest"}, LOCKED.members), False, ALL),
        (None, False, ALL),
    ],
    ids=["one member", "nobody", "a stranger", "the root", "can't be compared"],
)  # fmt: skip
def test_a_changed_lock_counts_for_those_that_use_what_changed(
    lock: Lock | None, everything_: bool, packages: tuple[str, ...]
) -> None:
    head = side([*PROJECTS, project(".")], (*FILES, "uv.lock"))
    found = chosen(["uv.lock"], head=head, locks={"uv.lock": lock})
    assert (found.everything, found.packages) == (everything_, packages)
    if lock is LOCKED:
        assert found.tests[0].because == ("uv.lock", "packages/nets")
        assert found.tests[0].why == "torch changed in uv.lock"


def test_a_workspace_without_a_name_can_have_a_lock() -> None:
    head = side([*PROJECTS, Project(".")], (*FILES, "uv.lock"))
    found = chosen(["uv.lock"], head=head, locks={"uv.lock": LOCKED})
    assert (found.everything, found.packages) == (False, ("packages/nets", "packages/serve"))
    assert chosen(["uv.lock"], head=head, locks={"uv.lock": None}).everything


def test_a_member_around_packages_means_those() -> None:
    """A lock of another directory, whose member is no package here."""
    head = side([*PROJECTS, project("locks")], (*FILES, "locks/uv.lock"))
    lock = Lock({"packages": "torch"}, frozenset({"packages"}))
    assert chosen(["locks/uv.lock"], head=head, locks={"locks/uv.lock": lock}).packages == ALL


def test_a_lock_outside_of_any_package_means_everything() -> None:
    assert chosen(["uv.lock"], head=side(files=(*FILES, "uv.lock")), locks={"uv.lock": LOCKED}).everything


def test_everything_names_all_entries() -> None:
    found = everything(["because"], RULES, side())
    assert (found.everything, found.because, found.packages) == (True, ("because",), ALL)


def test_the_reason_of_a_test_is_that_of_the_directory_above() -> None:
    found = chosen(["packages/serve/x"])
    due = reason(found, "packages/serve/tests/test_serve.py")
    assert due is not None
    assert due.path == "packages/serve"
    assert reason(found, "packages/nets/tests/test_nets.py") is None


NAMES = [f"p{number}" for number in range(6)]


@given(
    st.dictionaries(st.sampled_from(NAMES), st.sets(st.sampled_from(NAMES)), min_size=1),
    st.sets(st.sampled_from([f"packages/{name}/f" for name in NAMES])),
)
def test_due_is_what_can_be_reached(needs: dict[str, set[str]], changed: set[str]) -> None:
    """Against the plain statement of it: a fixed point."""
    projects = [project(f"packages/{name}", *needs.get(name, ())) for name in NAMES]
    files = [f"packages/{name}/{file}" for name in NAMES for file in ("pyproject.toml", "f")]
    due = {path.split("/")[1] for path in changed}
    while more := {name for name in NAMES if needs.get(name, set()) & due} - due:
        due |= more
    found = chosen(sorted(changed), head=side(projects, files))
    assert found.packages == tuple(f"packages/{name}" for name in sorted(due))
    assert all(test.because[0] in changed and test.because[-1] == test.path for test in found.tests)


PATHS = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3).map("/".join)


@given(st.sets(PATHS), st.sets(PATHS), st.sets(PATHS, min_size=1), st.lists(PATHS, max_size=3))
def test_no_changed_file_is_lost(
    projects: set[str], bare: set[str], files: set[str], changed: list[str]
) -> None:
    """Whatever the directories are: everything, or the entries that hold a changed file are due."""
    paths = {f"{path}/f" for path in files} | {f"{path}/pyproject.toml" for path in projects}
    head = side([project(path) for path in projects], paths)
    changes = [f"{path}/f" for path in changed]
    found = chosen(changes, head=head, rules=Rules(tuple(sorted(bare | {"."}))))
    due = found.packages if not found.everything else (".",)
    assert all(any(holds(directory, path) for directory in due) for path in changes)
    assert not any(a != b and holds(a, b) for a in found.packages for b in found.packages) or found.everything
