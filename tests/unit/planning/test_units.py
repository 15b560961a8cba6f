"""Units: every live target has one, every file has one owner of what only pytest knows."""

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuci.config.model import DEFAULT_MARKERS, Config, Profile, Shards
from gpuci.model import Manifest, Marker, Root, SkippedTest, SourceError, TestTarget, Unit
from gpuci.planning.estimate import learn
from gpuci.planning.units import Units, make_units
from gpuci_node.contract import function_id, selects

PROFILES = (Profile("default", gpus=8), Profile("small", gpus=2))
PATH = "pkg/test_a.py"
Select = str | list[str] | dict[str, list[str]]


def target(
    name: str,
    mode: str = "normal",
    gpus: int = 1,
    runs_on: str | None = None,
    path: str = PATH,
    line: int = 0,
    marks: tuple[str, ...] = (),
) -> TestTarget:
    markers = tuple(Marker(mark) for mark in marks)
    return TestTarget(
        f"{path}::{name}", path, None, name, None, ".", line, mode, runs_on, None, gpus, markers=markers
    )


def manifest(
    targets: list[TestTarget], opaque: dict[str, str] | None = None, errors: tuple[SourceError, ...] = ()
) -> Manifest:
    files = dict.fromkeys([target.test_path for target in targets] + list(opaque or {}))
    files.update(dict.fromkeys(error.path for error in errors))
    return Manifest(tuple(targets), (Root(".", files=tuple(files), opaque=opaque or {}),), errors)


def make(
    targets: list[TestTarget],
    opaque: dict[str, str] | None = None,
    *,
    durations: dict[str, float] | None = None,
    event: str = "manual",
    errors: tuple[SourceError, ...] = (),
    modes: tuple[tuple[str, str], ...] = (),
) -> Units:
    config = Config(profiles=PROFILES, markers=DEFAULT_MARKERS, modes=modes, shards=Shards(piece_seconds=30))
    return make_units(manifest(targets, opaque, errors), config, learn(durations or {}, 1.0), event)


def short(unit: Unit) -> tuple[str, int, str, Select]:
    """(mode, GPUs, profile, select) with function names alone."""

    def names(ids: object) -> list[str]:
        assert isinstance(ids, list | tuple)
        return [nodeid.rpartition("::")[2] for nodeid in ids]

    if isinstance(unit.select, str):
        return unit.mode, unit.gpus, unit.profile, unit.select
    if isinstance(unit.select, dict):
        return unit.mode, unit.gpus, unit.profile, {"except": names(unit.select["except"])}
    return unit.mode, unit.gpus, unit.profile, names(unit.select)


@pytest.mark.parametrize(
    ("targets", "modes", "expected"),
    [
        ([target("a"), target("b")], (), [("normal", 1, "default", "all")]),
        (
            [target("a"), target("b", gpus=8), target("c")],
            (),
            [("normal", 1, "default", {"except": ["b"]}), ("normal", 8, "default", ["b"])],
        ),
        (
            [target("a", gpus=2), target("b", gpus=8), target("c", gpus=8)],
            (),
            [("normal", 2, "default", ["a"]), ("normal", 8, "default", {"except": ["a"]})],
        ),
        (
            [target("a", "isolated"), target("b", "isolated"), target("c")],
            (),
            [("isolated", 1, "default", ["a", "b"]), ("normal", 1, "default", {"except": ["a", "b"]})],
        ),
        (
            [target("a", "isolated"), target("b"), target("c")],
            (("pkg", "isolated"),),
            [("isolated", 1, "default", {"except": ["b", "c"]}), ("normal", 1, "default", ["b", "c"])],
        ),
        (
            [target("a", "serial"), target("b"), target("c")],
            (("pkg", "serial"),),
            [("serial", 8, "default", {"except": ["b", "c"]}), ("normal", 1, "default", ["b", "c"])],
        ),
        (
            [target("a", runs_on="small"), target("b", runs_on="small"), target("c")],
            (),
            [("normal", 1, "small", ["a", "b"]), ("normal", 1, "default", {"except": ["a", "b"]})],
        ),
        (
            [target("a", "cpu", 0), target("b", "cpu", 0), target("c", gpus=2)],
            (),
            [("cpu", 0, "default", ["a", "b"]), ("normal", 2, "default", {"except": ["a", "b"]})],
        ),
        (
            [target("a", "serial", 1), target("b", "serial", 4), target("c", "serial", 8)],
            (),
            [("serial", 8, "default", "all")],
        ),
        (
            [target("a"), target("b", "skip"), target("c", "isolated")],
            (),
            [("normal", 1, "default", {"except": ["c", "b"]}), ("isolated", 1, "default", ["c"])],
        ),
        ([target("a"), target("b", "skip")], (), [("normal", 1, "default", {"except": ["b"]})]),
        ([target("a", "skip"), target("b", "skip")], (), []),
        ([target("a", "cpu", 0), target("b", "cpu", 0)], (), [("cpu", 0, "default", "all")]),
        ([target("a", gpus=0), target("b", gpus=1)], (), [("normal", 1, "default", "all")]),
    ],
    ids=[
        "one unit runs all",
        "one GPU owns",
        "else the biggest",
        "the default mode owns, though smaller",
        "default mode of the path",
        "a serial path",
        "the default profile owns",
        "off the CPU rather than on it",
        "serial needs are one need",
        "skipped ones are excepted once",
        "one unit beside a skipped test",
        "all skipped: no unit",
        "cpu only",
        "no GPU need holds a slot all the same",
    ],
)
def test_a_file_that_is_read_with_certainty(
    targets: list[TestTarget],
    modes: tuple[tuple[str, str], ...],
    expected: list[tuple[str, int, str, Select]],
) -> None:
    assert [short(unit) for unit in make(targets, modes=modes).units] == expected


@pytest.mark.parametrize(
    ("targets", "modes", "expected"),
    [
        ([], (), ("normal", 1, "default", "all")),
        ([], (("pkg", "serial"),), ("serial", 8, "default", "all")),
        ([target("a"), target("b", "serial")], (), ("serial", 8, "default", "all")),
        ([target("a"), target("b", "isolated", 4), target("c")], (), ("isolated", 1, "default", "all")),
        ([target("a", gpus=2), target("b", gpus=2), target("c")], (), ("normal", 2, "default", "all")),
        ([target("a", gpus=2), target("b")], (), ("normal", 2, "default", "all")),
        ([target("a", "cpu", 0), target("b", "cpu", 0)], (), ("cpu", 0, "default", "all")),
        (
            [target("a", "cpu", 0), target("b", "cpu", 0), target("c", gpus=4)],
            (),
            ("normal", 4, "default", "all"),
        ),
        (
            [target("a", gpus=8), target("b", runs_on="small"), target("c", runs_on="small")],
            (),
            ("normal", 1, "small", "all"),
        ),
        ([target("a"), target("b", "skip")], (), ("normal", 1, "default", {"except": ["b"]})),
        ([target("a", "skip")], (), ("normal", 1, "default", {"except": ["a"]})),
    ],
    ids=[
        "nobody knows its tests",
        "… on a serial path",
        "the most careful mode",
        "… and the most common need",
        "the most common need",
        "of two as common the greater",
        "cpu if all are",
        "cpu tests don't count beside others",
        "the need of the most common profile",
        "skipped ones are excepted",
        "all known ones skipped: the rest runs",
    ],
)
def test_an_opaque_file_is_planned_whole(
    targets: list[TestTarget], modes: tuple[tuple[str, str], ...], expected: tuple[str, int, str, Select]
) -> None:
    made = make(targets, {PATH: "tests are generated"}, modes=modes)
    assert [short(unit) for unit in made.units] == [expected]


def test_one_uncertain_target_makes_its_file_opaque() -> None:
    uncertain = TestTarget(f"{PATH}::b", PATH, None, "b", None, ".", gpus=8, opaque="marks are computed")
    assert [short(unit) for unit in make([target("a"), uncertain]).units] == [("normal", 8, "default", "all")]


def test_an_opaque_file_on_a_skipped_path_has_no_unit() -> None:
    made = make([], {PATH: "tests are generated"}, modes=(("pkg", "skip"),))
    assert (made.units, made.skipped) == ((), (SkippedTest(PATH, "mode skip"),))


def test_an_opaque_file_is_never_cut_and_counts_what_was_measured_beside_its_targets() -> None:
    durations = {f"{PATH}::a": 40.0, f"{PATH}::generated[1]": 50.0, f"{PATH}::s": 7.0}
    made = make([target("a"), target("s", "skip")], {PATH: "generated"}, durations=durations)
    assert [unit.expected_seconds for unit in made.units] == [90.0]


def test_a_file_that_is_one_target_is_estimated_as_a_file() -> None:
    whole = TestTarget("pkg/doc.py", "pkg/doc.py", None, None, None, ".", opaque="doctests")
    known = make([whole], {"pkg/doc.py": "doctests"}, durations={"pkg/doc.py::pkg.doc.f": 4.0})
    assert [unit.expected_seconds for unit in known.units] == [4.0]
    assert known.unknown_durations == 0
    unknown = make(
        [whole], {"pkg/doc.py": "doctests"}, durations={"pkg/other.py::f": 3.0, "pkg/other.py::g": 3.0}
    )
    assert [unit.expected_seconds for unit in unknown.units] == [6.0]
    assert unknown.unknown_durations == 1


def test_a_file_that_is_not_python_is_planned() -> None:
    made = make([target("a", path="pkg/test_b.py")], errors=(SourceError(PATH, 3, "bad syntax"),))
    assert {unit.file: unit.select for unit in made.units} == {PATH: "all", "pkg/test_b.py": "all"}


def test_a_file_without_tests_has_no_unit() -> None:
    empty = Manifest(roots=(Root(".", files=("pkg/test_empty.py",)),))
    assert make_units(empty, Config(), learn({}, 1.0), "manual").units == ()


def test_a_long_file_is_cut_in_definition_order_and_its_last_piece_owns() -> None:
    targets = [target(name, line=line) for line, name in enumerate("dcba")] + [target("s", "skip", line=9)]
    made = make(targets, durations={f"{PATH}::{name}": 20.0 for name in "abcd"} | {f"{PATH}::d": 9.0})
    assert [short(unit)[3] for unit in made.units] == [["d", "c"], ["b"], {"except": ["d", "c", "b", "s"]}]
    assert [unit.expected_seconds for unit in made.units] == [29.0, 20.0, 20.0]
    assert [unit.tests for unit in made.units] == [2, 1, 1]


@pytest.mark.parametrize(("mode", "units"), [("normal", 3), ("isolated", 3), ("serial", 1), ("cpu", 1)])
def test_only_normal_and_isolated_files_are_cut(mode: str, units: int) -> None:
    durations = {f"{PATH}::{name}": 25.0 for name in "abc"}
    assert len(make([target(name, mode) for name in "abc"], durations=durations).units) == units


def test_a_single_long_function_is_not_cut_and_said() -> None:
    made = make([target("a"), target("b")], durations={f"{PATH}::a[1]": 31.0, f"{PATH}::b": 1.0})
    assert [short(unit)[3] for unit in made.units] == [["a"], {"except": ["a"]}]
    assert made.notes == (f"{PATH}::a (31 s) is longer than a piece and can't be cut",)


def test_nightly_tests_run_on_schedule_only() -> None:
    targets = [target("a"), target("b", marks=("big_nightly",))]
    manual, nightly = make(targets), make(targets, event="schedule")
    assert manual.skipped == (SkippedTest(f"{PATH}::b", "mark big_nightly: runs on schedule only"),)
    assert manual.targets == (f"{PATH}::a",)
    assert nightly.skipped == ()
    assert [unit.select for unit in nightly.units] == ["all"]


def test_ids_follow_the_files() -> None:
    made = make([target("a", path=f"t{i}.py") for i in (2, 1, 0)])
    assert [(unit.id, unit.file) for unit in made.units] == [
        ("u001", "t2.py"),
        ("u002", "t1.py"),
        ("u003", "t0.py"),
    ]


def test_a_wrong_profile_of_an_opaque_files_test_is_said() -> None:
    made = make([target("a"), target("b"), target("c", runs_on="small")], {PATH: "generated"})
    assert made.notes == (
        f"{PATH} is planned whole (generated) on profile default, though 1 of its tests ask for another",
    )


any_target = st.builds(
    target,
    name=st.sampled_from([f"f{i}" for i in range(12)] + [f"A::m{i}" for i in range(4)] + ["A::B::n"]),
    mode=st.sampled_from(["normal", "normal", "isolated", "serial", "cpu", "skip"]),
    gpus=st.sampled_from([0, 1, 1, 1, 2]),
    runs_on=st.sampled_from([None, None, "default", "small"]),
    path=st.sampled_from(["a/test_1.py", "a/test_2.py", "b/test_1.py"]),
    line=st.integers(0, 20),
    marks=st.sampled_from([(), (), ("x_nightly",)]),
)
any_targets = st.lists(any_target, max_size=40, unique_by=lambda target: target.nodeid)
any_opaque = st.dictionaries(
    st.sampled_from(["a/test_2.py", "b/test_1.py", "c/test_9.py"]), st.just("generated"), max_size=2
)
any_durations = st.dictionaries(
    any_target.map(lambda target: target.nodeid + "[1]"), st.floats(0, 60), max_size=20
)


@settings(max_examples=200)
@given(any_targets, any_opaque, any_durations)
def test_every_test_has_one_unit(
    targets: list[TestTarget], opaque: dict[str, str], durations: dict[str, float]
) -> None:
    made = make(targets, opaque, durations=durations)
    skipped = {test.nodeid for test in made.skipped}
    assert sorted(skipped | set(made.targets)) == sorted(target.nodeid for target in targets)
    for made_target in targets:
        units = [unit for unit in made.units if unit.file == made_target.test_path]
        owners = [unit.id for unit in units if selects(unit.select, made_target.nodeid + "[x-1]")]
        assert len(owners) == (0 if made_target.nodeid in skipped else 1)
    assert sum(unit.tests for unit in made.units) == len(made.targets)


@settings(max_examples=200)
@given(any_targets, any_opaque, any_durations)
def test_a_test_that_nobody_saw_has_one_owner(
    targets: list[TestTarget], opaque: dict[str, str], durations: dict[str, float]
) -> None:
    made = make(targets, opaque, durations=durations)
    files = Counter(unit.file for unit in made.units if selects(unit.select, f"{unit.file}::New::unseen"))
    assert files == Counter({unit.file for unit in made.units})


@settings(max_examples=100)
@given(any_targets, any_durations)
def test_the_units_seconds_are_their_functions(
    targets: list[TestTarget], durations: dict[str, float]
) -> None:
    made = make(targets, durations=durations)
    estimates = learn(durations, 1.0)
    assert sum(unit.expected_seconds for unit in made.units) == pytest.approx(
        sum(map(estimates.function, made.targets))
    )
    known = {function_id(nodeid) for nodeid in durations}
    assert made.unknown_durations == len(set(made.targets) - known)


@settings(max_examples=100)
@given(any_targets, any_opaque, any_durations, st.randoms(use_true_random=False))
def test_the_order_of_targets_does_not_matter(
    targets: list[TestTarget], opaque: dict[str, str], durations: dict[str, float], source: random.Random
) -> None:
    one = manifest(targets, opaque)
    other = Manifest(tuple(source.sample(targets, len(targets))), one.roots)
    config = Config(profiles=PROFILES, shards=Shards(piece_seconds=30))
    estimates = learn(durations, 1.0)
    assert make_units(one, config, estimates, "manual") == make_units(other, config, estimates, "manual")
