"""Behind scripts/wait_for_label.py: whether a commit may run, and what is recorded of that.

The pull request, who may write, and the record are asked of GitHub; of other jobs only the configuration and
whether anything is to be tested are taken. Standard library only.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from gpuci.github import approval_text, environments, record
from gpuci.github.approval import Decision, decide
from gpuci.github.approval_facts import Facts, asks, earliest, facts_of, is_foreign, may_wait, quiet, revokes
from gpuci.github.approval_text import Place
from gpuci.github.client import Client, client_of
from gpuci.github.events import pull_request_of, subject_of, with_pull_request
from gpuci.github.messages import ApiError
from gpuci.github.model import PullRequest, Subject
from gpuci.github.step import Step
from gpuci.reporting.links import Links
from gpuci.reporting.text import about
from gpuci.steps import approval_input
from gpuci.steps.approval_input import ApprovalInput
from gpuci_node.contract import EXIT_CODES

VARIABLES = approval_input.VARIABLES
_WRITES = ("statuses", "pull-requests")
# With all else that a run of 12 shards asks for they make 30 requests.
_LOOKS = 6
_PAUSE_SECONDS = 20.0


@dataclass
class _Work:
    """What a run knows. `live`: the pull request as it is now, None if it was not asked for."""

    step: Step
    given: ApprovalInput
    client: Client
    subject: Subject
    live: PullRequest | None = None


def run(step: Step) -> int:
    """Decide and record; 0 unless the set-up is at fault. Raises ConfigError and ApiError."""
    given = approval_input.read(step)
    work = _Work(step, given, client_of(step, writes=_WRITES), _subject(step, given))
    facts = _facts(work)
    decision = _decide(work, facts)
    _act(work, decision, facts)
    if decision.record == "approve" and facts.event != "workflow_dispatch":
        decision, facts = _looked_again(work, decision, facts)
    if given.wait_seconds and may_wait(facts):
        facts = _waited(work, facts)
        if facts.appeared:
            decision = _decide(work, facts)
            _act(work, decision, facts)
    return _answer(work, decision, facts)


def _subject(step: Step, given: ApprovalInput) -> Subject:
    name = step.environ.get("GITHUB_EVENT_NAME", "")
    return subject_of(name, step.event(), step.environ, sha=given.sha, pull_request=given.pull_request)


def _facts(work: _Work) -> Facts:
    """All that the table needs for this event, and no request more."""
    facts = _of_event(work)
    if not facts.pull_request or is_foreign(facts):
        return facts
    if asks(facts) or revokes(facts):
        facts = _with_live(work, facts)
    if facts.affected:
        facts = _with_status(work, facts)
    if facts.affected and asks(facts):
        return _with_record(work, facts) if facts.rerun else _with_permission(work, facts)
    if facts.labeled or work.given.wait_seconds:
        return _with_record(work, facts)
    return facts


def _of_event(work: _Work) -> Facts:
    given = work.given
    return facts_of(
        work.subject,
        given.label,
        configured=given.configured,
        affected=given.affected,
        quiet_seconds=given.quiet_seconds,
        remove=given.remove_on_push,
    )


def _with_live(work: _Work, facts: Facts) -> Facts:
    """Head and state as they are now; a dispatch names its pull request only by number."""
    assert work.subject.pull_request is not None
    document = work.client.pull_request(work.subject.pull_request.number)
    live = work.live = pull_request_of(document)
    if facts.event == "workflow_dispatch":
        work.subject = with_pull_request(work.subject, document)
        facts = facts._replace(fork=work.subject.fork)
    facts = facts._replace(labeled=work.given.label in live.labels)
    return facts._replace(head=live.head_sha == work.subject.sha, open=live.open)


def _with_status(work: _Work, facts: Facts) -> Facts:
    found = work.client.status(work.subject.sha, work.given.use.context)
    return facts._replace(status=found.state if found else "")


def _with_record(work: _Work, facts: Facts) -> Facts:
    found = record.approved(work.client, work.subject.sha)
    return facts._replace(recorded=found is not None, approver=found.login if found else "")


def _with_permission(work: _Work, facts: Facts) -> Facts:
    """What an approval takes, asked for only where it can still make a difference."""
    if not (facts.open and facts.head and facts.user):
        return facts
    access = work.client.access(facts.actor)
    facts = facts._replace(permission=access.permission, role=access.role)
    if facts.event == "workflow_dispatch":
        return facts
    pull = work.subject.pull_request
    assert pull is not None
    suites = work.client.check_suites(work.subject.sha)
    pushed = [earliest(str(suite.get("created_at", "")) for suite in suites)]
    pushed += [pull.head_pushed_at] if facts.fork else []
    return facts._replace(quiet=quiet(pull.updated_at, pushed, work.given.quiet_seconds))


def _decide(work: _Work, facts: Facts) -> Decision:
    """The environment is asked for last: only where something would run."""
    decision = decide(facts)
    if not decision.approved:
        return decision
    if work.given.accept_unprotected:
        work.step.notice(f"the protection of the environment {work.given.environment} was not checked")
        return decision
    return decide(facts._replace(environment=environments.problem(work.client, work.given.environment)))


def _waited(work: _Work, facts: Facts) -> Facts:
    """Look for an approval of this commit until it is there or the time is over."""
    seconds = work.given.wait_seconds
    looks = max(1, min(_LOOKS, int(seconds // _PAUSE_SECONDS)))
    work.step.say(f"waiting {about(seconds)} at most for an approval of {work.subject.sha}")
    for _ in range(looks):
        time.sleep(seconds / looks)
        found = _with_record(work, facts)
        if found.recorded:
            return _with_live(work, found._replace(appeared=True))
    return facts


def _looked_again(work: _Work, decision: Decision, facts: Facts) -> tuple[Decision, Facts]:
    """Whether the label is still on, now that the approval is recorded.

    The run of its removal takes back what is recorded by then. It can be over before this one, when GitHub
    answers late.
    """
    now = _with_live(work, facts)
    if now.labeled:
        return decision, facts
    record.revoke(work.client, work.subject.sha, "", _links(work).run_url)
    decision = decide(now)
    _act(work, decision, now)
    return decision, now


def _act(work: _Work, decision: Decision, facts: Facts) -> None:
    """Write down what was decided. Only a record that can't be written is an error."""
    if decision.record == "revoke":
        _revoke(work, facts)
    elif decision.record == "approve":
        door = "dispatch" if facts.event == "workflow_dispatch" else "label"
        record.approve(work.client, work.subject.sha, facts.actor, door, _links(work).run_url)
    try:
        if decision.pending:
            _set_pending(work, decision, facts)
        if decision.remove_label and work.subject.pull_request is not None:
            work.client.remove_label(work.subject.pull_request.number, facts.label)
    except ApiError as error:
        work.step.warning(error.words())


def _revoke(work: _Work, facts: Facts) -> None:
    """On the commit that the event tells, and on the one that is the head by now.

    The label may have been set again, and the run of that may be the faster one: what it approved stays.
    """
    pull = work.subject.pull_request
    since = pull.updated_at if pull and facts.labeled else ""
    heads = {work.subject.sha, work.live.head_sha if work.live else work.subject.sha}
    for sha in sorted(heads):
        record.revoke(work.client, sha, work.subject.actor, _links(work).run_url, but_after=since)


def _set_pending(work: _Work, decision: Decision, facts: Facts) -> None:
    text = approval_text.status_text(decision, facts, _number(work))
    context = work.given.use.context
    work.client.set_status(work.subject.sha, context, "pending", text, _links(work).run_url)


def _answer(work: _Work, decision: Decision, facts: Facts) -> int:
    step, subject = work.step, work.subject
    step.output("approved", "true" if decision.approved else "false")
    step.output("sha", subject.sha)
    step.output("approver", _approver(decision, facts))
    step.output("decision", decision.row)
    step.output("reason", decision.reason)
    step.say(approval_text.log_line(decision, subject.sha))
    step.summary(approval_text.summary(decision, facts, _place(work)))
    if decision.fault:
        step.error(f"{decision.reason}\n{decision.advice}", title="gpuci wait-for-label")
        return EXIT_CODES["config_error"]
    if (asks(facts) or not facts.configured) and not decision.approved and facts.affected:
        step.warning(f"{decision.reason}\n{decision.advice}", title="gpuci wait-for-label")
    return 0


def _approver(decision: Decision, facts: Facts) -> str:
    """The login; empty if nobody approved, or if the record that was found does not tell it."""
    if not decision.approved:
        return ""
    return facts.approver if facts.recorded and decision.record is None else facts.actor


def _place(work: _Work) -> Place:
    file = approval_text.workflow_file(work.step.environ.get("GITHUB_WORKFLOW_REF", ""))
    head = work.live.head_sha if work.live else work.subject.sha
    return Place(_links(work), _number(work), head, file)


def _number(work: _Work) -> int | None:
    pull = work.subject.pull_request
    return pull.number if pull else None


def _links(work: _Work) -> Links:
    environ = work.step.environ
    server = environ.get("GITHUB_SERVER_URL") or "https://github.com"
    run_id, attempt = environ.get("GITHUB_RUN_ID", ""), str(work.subject.run_attempt)
    return Links(server, work.subject.repository, work.subject.sha, run_id, attempt)
