"""How people are told to approve a commit."""

import pytest

from gpuci.github.approval import Decision, decide
from gpuci.github.approval_facts import Facts
from gpuci.github.approval_text import Place, summary
from gpuci.reporting.links import Links

SHA = "c" * 40
PLACE = Place(Links("https://github.com", "octo/shop", SHA, "7"), 12, SHA, "gpu.yml")
WAITS = Decision("not-asked", False, "nobody asked", "", None, True, False, False)


def test_a_misspelt_label_is_named_beside_ours() -> None:
    facts = Facts("pull_request_target", True, "labeled", False, True, label="gpu", named="gpuu <b>@all")
    decision = decide(facts)
    assert decision.row == "other-label"
    assert "is gpuu &#60;b&#62;&#64;all, not gpu</code>" in summary(decision, facts, PLACE)


@pytest.mark.parametrize(
    ("facts", "first", "last"),
    [
        (
            Facts("pull_request_target", True, "opened"),
            "sets the label",
            "if the workflow has `workflow_dispatch`",
        ),
        (Facts("workflow_dispatch", True), "runs `gpuci approve 12", "if the workflow listens to labels"),
    ],
    ids=["label", "by hand"],
)
def test_the_door_that_this_run_came_through_is_the_first_and_others_have_their_condition(
    facts: Facts, first: str, last: str
) -> None:
    facts = facts._replace(label="go", quiet_seconds=10.0)
    doors = [line for line in summary(WAITS, facts, PLACE).splitlines() if line.startswith("- ")]
    assert len(doors) == 3
    assert doors[0].startswith(f"- {first}")
    assert doors[0].endswith(", or")
    assert doors[2].endswith(last)
