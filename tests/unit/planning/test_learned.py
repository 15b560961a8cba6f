"""What a node learned moves tests to their width: whole functions, single items, tests that source lacks."""

import json
import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuci.config.model import Config, MarkerRule, Profile, Shards
from gpuci.discovery.modes import path_modes
from gpuci.model import LearnedNeed, Manifest, Plan, Root, TestTarget
from gpuci.planning.document import from_document, to_document
from gpuci.planning.plan import make_plan
from gpuci_node.contract import selects

PATH = "a/test_a.py"
MARKERS = (MarkerRule("eight", gpus=8), MarkerRule("four", gpus=4), MarkerRule("alone", mode="serial"))
PROFILES = (Profile("default", gpus=8), Profile("small", gpus=2))
EIGHT = LearnedNeed(8, because="mark eight seen on the node", mark="eight")
ALONE = LearnedNeed(1, True, mark="alone")
Modes = tuple[tuple[str, str], ...]


def target(name: str, mode: str = "normal", gpus: int = 1, runs_on: str | None = None) -> TestTarget:
    skip = "modes: skip" if mode == "skip" else None
    return TestTarget(f"{PATH}::{name}", PATH, None, name, None, ".", 0, mode, runs_on, skip, gpus)


def plan(
    targets: list[TestTarget],
    needs: dict[str, LearnedNeed],
    *,
    opaque: bool = False,
    modes: Modes = (),
    durations: dict[str, float] | None = None,
) -> Plan:
    config = Config(profiles=PROFILES, markers=MARKERS, modes=modes, shards=Shards(piece_seconds=30))
    root = Root(".", files=(PATH,), opaque={PATH: "generated tests"} if opaque else {})
    return make_plan(
        Manifest(tuple(targets), (root,)),
        config,
        needs={f"{PATH}::{name}": need for name, need in needs.items()},
        durations={f"{PATH}::{name}": seconds for name, seconds in (durations or {}).items()},
    )


def shown(made: Plan) -> list[tuple[object, ...]]:
    """(mode, GPUs, select) of each unit, node ids without their path."""
    text = json.dumps([[unit.mode, unit.gpus, unit.select] for unit in made.units])
    return [tuple(unit) for unit in json.loads(text.replace(f"{PATH}::", ""))]


A, B, C = target("a"), target("b"), target("c")


@pytest.mark.parametrize(
    ("targets", "needs", "units"),
    [
        pytest.param(
            [A, B], {"b": EIGHT}, [("normal", 1, {"except": ["b"]}), ("normal", 8, ["b"])], id="a function"
        ),
        pytest.param([A, B], {"a": EIGHT, "b": EIGHT}, [("normal", 8, "all")], id="all functions"),
        pytest.param(
            [A, B], {"b": ALONE}, [("normal", 1, {"except": ["b"]}), ("serial", 8, ["b"])], id="alone"
        ),
        pytest.param(
            [A, target("b", "isolated")],
            {"b": EIGHT},
            [("normal", 1, {"except": ["b"]}), ("isolated", 8, ["b"])],
            id="isolated stays",
        ),
        pytest.param(
            [A, target("b", "isolated")],
            {"b": ALONE},
            [("normal", 1, {"except": ["b"]}), ("serial", 8, ["b"])],
            id="a serial mark outranks a path",
        ),
        pytest.param(
            [A, target("b", "cpu", 0)],
            {"b": EIGHT},
            [("normal", 1, {"except": ["b"]}), ("cpu", 0, ["b"])],
            id="cpu stays",
        ),
        pytest.param([A, target("b", "skip")], {"b": EIGHT}, [("normal", 1, {"except": ["b"]})], id="skip"),
        pytest.param([target("a", "serial")], {"a": EIGHT}, [("serial", 8, "all")], id="serial has all"),
        pytest.param([target("a", gpus=8)], {"a": LearnedNeed(4)}, [("normal", 8, "all")], id="never less"),
        pytest.param([target("a", gpus=2)], {"a": LearnedNeed(4)}, [("normal", 4, "all")], id="over a mark"),
        pytest.param([target("a", runs_on="small")], {"a": EIGHT}, [("normal", 2, "all")], id="a small node"),
        pytest.param([A], {"a": LearnedNeed(8, mark="four")}, [("normal", 4, "all")], id="the rule changed"),
        pytest.param([A], {"a": LearnedNeed(8, mark="gone")}, [("normal", 1, "all")], id="the rule is gone"),
        pytest.param([A], {"a": LearnedNeed(1, True, mark="gone")}, [("normal", 1, "all")], id="not alone"),
        pytest.param([A], {}, [("normal", 1, "all")], id="nothing learned"),
        pytest.param(
            [A, B],
            {"b[x::y]": EIGHT},
            [("normal", 1, {"except": ["b[x::y]"]}), ("normal", 8, ["b[x::y]"])],
            id="one parameter",
        ),
        pytest.param(
            [A],
            {"a[1]": EIGHT, "a[2]": LearnedNeed(4), "a[3]": EIGHT},
            [
                ("normal", 1, {"except": ["a[1]", "a[3]", "a[2]"]}),
                ("normal", 8, ["a[1]", "a[3]"]),
                ("normal", 4, ["a[2]"]),
            ],
            id="parameters of two widths",
        ),
        pytest.param(
            [A, target("b", gpus=2)],
            {"b[x]": EIGHT},
            [("normal", 1, {"except": ["b"]}), ("normal", 2, ["b"])],
            id="a parameter of a function that the owner does not run",
        ),
        pytest.param(
            [A, B], {"b": EIGHT, "b[x]": ALONE}, [("normal", 1, {"except": ["b"]}), ("normal", 8, ["b"])],
            id="a function and its parameter",
        ),
        pytest.param(
            [A], {"made": EIGHT}, [("normal", 1, {"except": ["made"]}), ("normal", 8, ["made"])],
            id="a function that source lacks",
        ),
        pytest.param([target("a", "cpu", 0)], {"made": EIGHT}, [("cpu", 0, "all")], id="off the GPUs"),
    ],
)  # fmt: skip
def test_units(targets: list[TestTarget], needs: dict[str, LearnedNeed], units: list[object]) -> None:
    assert shown(plan(targets, needs)) == units


@pytest.mark.parametrize(
    ("targets", "needs", "units"),
    [
        pytest.param([A, B, C], {"b": EIGHT}, [(1, {"except": ["b"]}), (8, ["b"])], id="a function"),
        pytest.param([A], {"a[x]": EIGHT}, [(1, {"except": ["a[x]"]}), (8, ["a[x]"])], id="a parameter"),
        pytest.param([], {"m[x]": EIGHT}, [(1, {"except": ["m[x]"]}), (8, ["m[x]"])], id="generated"),
        pytest.param(
            [A], {"a": EIGHT, "a[x]": LearnedNeed(4)}, [(1, {"except": ["a"]}), (8, ["a"])],
            id="a function and its parameter",
        ),
        pytest.param([target("a", gpus=8)], {"a": LearnedNeed(4)}, [(8, "all")], id="never less"),
    ],
)  # fmt: skip
def test_an_opaque_file_stays_whole_but_for_what_is_known(
    targets: list[TestTarget], needs: dict[str, LearnedNeed], units: list[object]
) -> None:
    assert [unit[1:] for unit in shown(plan(targets, needs, opaque=True))] == units


@pytest.mark.parametrize("opaque", [False, True], ids=["read", "opaque"])
def test_in_a_skipped_file_the_exceptions_stay_what_they_are(opaque: bool) -> None:
    modes: Modes = ((PATH, "skip"), (f"{PATH}::a", "normal"))
    made = plan([A, target("b", "skip")], {"a[x]": EIGHT, "b": EIGHT, "c": EIGHT}, opaque=opaque, modes=modes)
    assert shown(made) == [("normal", 1, ["a"])]


def test_a_skipped_class_inside_a_file_stays_out() -> None:
    made = plan([A], {"C::x": EIGHT, "D::x": EIGHT}, modes=((f"{PATH}::C", "skip"),))
    assert shown(made) == [("normal", 1, {"except": ["D::x", "C"]}), ("normal", 8, ["D::x"])]


def test_seconds_go_along() -> None:
    durations = {"a[x]": 20.0, "a[y]": 4.0, "b": 3.0}
    made = plan([A, B], {"a[x]": EIGHT}, durations=durations)
    assert [unit.expected_seconds for unit in made.units] == [7.0, 20.0]
    assert [unit.tests for unit in made.units] == [2, 1]


def test_single_items_are_split_off_a_file_that_is_cut() -> None:
    """Only the owner can leave an item to a sibling, so its function is in the owner's piece."""
    durations = {"a[x]": 5.0, "a[y]": 5.0, "b": 25.0, "c": 25.0}
    made = shown(plan([A, B, C], {"a[x]": EIGHT}, durations=durations))
    assert made == [
        ("normal", 1, ["b"]),
        ("normal", 1, ["c"]),
        ("normal", 1, {"except": ["b", "c", "a[x]"]}),
        ("normal", 8, ["a[x]"]),
    ]


def test_a_test_that_is_left_out_needs_no_profile() -> None:
    """What runs on schedule only may name a node that this configuration lacks."""
    nightly = target("a", "skip", runs_on="huge")
    assert shown(plan([nightly, B], {"a": EIGHT})) == [("normal", 1, {"except": ["a"]})]


def test_the_plan_keeps_the_needs_of_its_files_and_says_so() -> None:
    config = Config(markers=MARKERS)
    manifest = Manifest((A,), (Root(".", files=(PATH,)),))
    needs = {"b/test_b.py::f": EIGHT, f"{PATH}::a": EIGHT}
    made = make_plan(manifest, config, needs=needs)
    assert made.needs == {f"{PATH}::a": EIGHT}
    assert "1 need learned by earlier runs: `gpuci explain` says which" in made.notes
    assert from_document(json.loads(json.dumps(to_document(made)))).needs == made.needs


NAMES = ("a", "b", "c", "made")
IDS = [*NAMES, *(f"{name}[{item}]" for name in NAMES for item in "xy")]
NEEDS = st.builds(
    LearnedNeed,
    st.integers(1, 12),
    st.booleans(),
    mark=st.sampled_from(["", "eight", "four", "alone", "gone"]),
)
TARGETS = st.tuples(
    *(
        st.builds(
            target,
            st.just(name),
            st.sampled_from(["normal", "isolated", "serial", "cpu", "skip"]),
            st.sampled_from([1, 2, 8]),
        )
        for name in "abc"
    )
)
MODES = st.dictionaries(
    st.sampled_from([PATH, *(f"{PATH}::{name}" for name in NAMES)]),
    st.sampled_from(["normal", "isolated", "serial", "skip"]),
    max_size=3,
).map(lambda modes: tuple(modes.items()))


@given(
    TARGETS, st.dictionaries(st.sampled_from(IDS), NEEDS), st.booleans(), MODES, st.dictionaries(
        st.sampled_from(IDS), st.floats(0, 40)
    )
)  # fmt: skip
@settings(max_examples=300)
def test_each_item_runs_once_whatever_was_learned(
    targets: tuple[TestTarget, ...],
    needs: dict[str, LearnedNeed],
    opaque: bool,
    modes: Modes,
    durations: dict[str, float],
) -> None:
    """As without needs: by one unit, or by none; never on fewer GPUs, nor off them."""
    skips = [path_modes(modes).mode(target.nodeid) == "skip" for target in targets]
    read = [
        replace(target, run_mode="skip") if skip else target
        for target, skip in zip(targets, skips, strict=True)
    ]
    plain = plan(read, {}, opaque=opaque, modes=modes, durations=durations)
    made = plan(read, needs, opaque=opaque, modes=modes, durations=durations)
    for name in IDS:
        nodeid = f"{PATH}::{name}"
        before = [unit for unit in plain.units if selects(unit.select, nodeid)]
        after = [unit for unit in made.units if selects(unit.select, nodeid)]
        assert len(after) == len(before) <= 1, name
        if before and not name.startswith("made"):  # which runs wherever the owner does
            assert before[0].gpus <= after[0].gpus, name
            assert (before[0].mode == "cpu") == (after[0].mode == "cpu"), name


def test_the_order_of_needs_does_not_matter() -> None:
    needs = {name: LearnedNeed(2 + len(name)) for name in IDS}
    shuffled = list(needs.items())
    random.Random(3).shuffle(shuffled)
    assert plan([A, B, C], dict(shuffled)) == plan([A, B, C], needs)


def test_a_learned_function_has_its_width() -> None:
    made = plan([A, B, C], {"a": EIGHT, "b": LearnedNeed(4)})
    widths = Counter(
        (name, unit.gpus) for name in "abc" for unit in made.units if selects(unit.select, f"{PATH}::{name}")
    )
    assert widths == {("a", 8): 1, ("b", 4): 1, ("c", 1): 1}
