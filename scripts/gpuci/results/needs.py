"""What the nodes found out of their tests' needs, for the report and so for the next plan. Pure.

Two notes of a node teach: `need_differs` (a mark that only pytest knows asks for more than planned) and
`gpu_skip` (skipped on some GPUs, runs again with all of the node's). The first is believed as it is; the
second teaches only if the test then did not skip. What the plan knew from earlier runs is kept as long as
nothing speaks against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gpuci.durations.needs import is_gpus
from gpuci.model import LearnedNeed, ShardRun
from gpuci.results.facts import Facts
from gpuci.results.journal import Record
from gpuci.results.ownership import Ownership
from gpuci_node.contract import function_id

ALONE = " needs the node alone"
AGAIN = ": runs again with all"
NOT_RUN = frozenset({"skipped", "not_finished"})
LONGEST = 300  # characters of a reason, which a test can have written
Items = dict[str, list[str]]


def learn_needs(
    known: Mapping[str, LearnedNeed], own: Ownership, facts: Facts, runs: Sequence[ShardRun]
) -> dict[str, LearnedNeed]:
    """The needs by function id, or by node id where the items of a function differ; sorted by id.

    `known` are those of the plan. Items that `-k` left out count as items of their function.
    """
    told = dict(_told(own, facts, runs))
    items = _items({function_id(nodeid) for nodeid in (*known, *told)}, facts)
    kept = dict(_kept(known, facts, items))
    return dict(sorted(_by_function({**kept, **told}, items).items()))


def skips_again(own: Ownership, facts: Facts, runs: Sequence[ShardRun]) -> list[str]:
    """The tests that skipped for lack of GPUs even with all of their node's."""
    found = [nodeid for _, nodeid, _ in _notes(own, runs, "gpu_skip")]
    return [nodeid for nodeid in dict.fromkeys(found) if _outcome(nodeid, facts) == "skipped"]


# -- what this run says ------------------------------------------------------------------------------


def _notes(own: Ownership, runs: Sequence[ShardRun], topic: str) -> Iterator[tuple[Record, str, str]]:
    """(record, node id, unit) of the notes of a topic that are about the shard's own tests."""
    for run in sorted(runs, key=lambda run: (run.index, run.attempt)):
        for record in run.records:
            if record["kind"] == "note" and record.get("topic") == topic:
                unit, nodeid = record.get("unit", ""), record.get("nodeid", "")
                if "::" in nodeid and own.may_report(run.index, unit, nodeid):
                    yield record, nodeid, own.unit_of(nodeid) or unit


def _told(own: Ownership, facts: Facts, runs: Sequence[ShardRun]) -> Iterator[tuple[str, LearnedNeed]]:
    """What the notes of this run teach; a mark outweighs what a test did without it."""
    for record, nodeid, unit in _notes(own, runs, "gpu_skip"):
        need = _of_skip(record["text"], nodeid, own.units[unit].gpus, facts)
        if need is not None:
            yield nodeid, need
    for record, nodeid, unit in _notes(own, runs, "need_differs"):
        yield nodeid, _of_mark(record, own.units[unit].gpus)


def _of_mark(record: Record, planned: int) -> LearnedNeed:
    asked = record.get("gpus")  # None: the mark names no number
    gpus = asked if isinstance(asked, int) and is_gpus(asked, least=1) else max(planned, 1)
    who = record["text"].rpartition(" needs ")[0]  # `mark NAME`
    return LearnedNeed(
        gpus=gpus,
        alone=record["text"].endswith(ALONE),
        because=f"{who or 'a mark'} seen on the node"[:LONGEST],
        mark=who.removeprefix("mark "),
        planned=planned,
    )


def _of_skip(text: str, nodeid: str, planned: int, facts: Facts) -> LearnedNeed | None:
    """The need of a test that skipped and then ran on more GPUs, None if it did not run there."""
    if _outcome(nodeid, facts) in NOT_RUN:
        return None
    gpus = len(facts.ended[nodeid].record.get("gpus", ()))
    if gpus <= planned:
        return None
    return LearnedNeed(gpus, because=text.removesuffix(AGAIN)[:LONGEST], planned=planned)


def _outcome(nodeid: str, facts: Facts) -> str:
    end = facts.ended.get(nodeid)
    return "not_finished" if end is None else str(end.record["outcome"])


# -- what the plan knew ------------------------------------------------------------------------------


def _items(functions: set[str], facts: Facts) -> Items:
    """The items that were seen of some functions, by function."""
    found: Items = {}
    for nodeid in (*facts.collected, *facts.deselected):
        function = function_id(nodeid)
        if function in functions:
            found.setdefault(function, []).append(nodeid)
    return found


def _kept(known: Mapping[str, LearnedNeed], facts: Facts, items: Items) -> Iterator[tuple[str, LearnedNeed]]:
    """The needs of the plan that still hold, by item; by their own id if their file was not collected."""
    files = {nodeid.partition("::")[0] for nodeid in facts.collected}
    for nodeid, need in sorted(known.items()):  # a function before its items, which say it better
        plain = replace(need, planned=None)
        if nodeid.partition("::")[0] not in files:
            yield nodeid, plain
        for item in items.get(function_id(nodeid), ()):
            if nodeid in (item, function_id(item)) and _holds(need, item, facts):
                yield item, plain


def _holds(need: LearnedNeed, item: str, facts: Facts) -> bool:
    """Whether an item still has the mark, or, without one, did not skip on the GPUs that it was given."""
    seen = facts.collected.get(item)
    if seen is None:
        return True
    if need.mark:
        return need.mark in seen.record.get("marks", {}).get(item, ())
    return item not in facts.ended or _outcome(item, facts) != "skipped"


def _by_function(needs: Mapping[str, LearnedNeed], items: Items) -> dict[str, LearnedNeed]:
    """One need for a function all of whose items need the same; the others stay as they are."""
    found = dict(needs)
    for function, own in items.items():
        kinds = {(needs[item].gpus, needs[item].alone) if item in needs else None for item in own}
        if len(kinds) == 1 and None not in kinds:
            learned = [found.pop(item) for item in own]
            found[function] = next((need for need in learned if need.planned is not None), learned[0])
    return found
