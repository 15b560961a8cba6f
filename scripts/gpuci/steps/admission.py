"""Whether a commit's code may be run: GitHub's API is asked, no word of another job counts."""

from __future__ import annotations

from gpuci.github.client import client_of
from gpuci.github.events import full_sha, subject_of
from gpuci.github.record import Unauthorized, require
from gpuci.github.step import Step


def approver(step: Step, event: str, sha: str) -> str:
    """Who answers for the commit; empty where GitHub started nothing, or does not tell.

    For the very commit of an event of people with write access (push, schedule, merge group, dispatch on a
    branch) that is who caused it. Any other commit has to have its approval on record. `sha` empty: a
    directory as it lies there. Raises Unauthorized, ApiError, ConfigError.
    """
    if not (event or step.on_actions):
        return ""
    subject = subject_of(event, step.event(), step.environ)
    if subject.trusted and sha in ("", subject.sha):
        return subject.actor
    if not sha:
        raise Unauthorized(
            "a directory as it lies there can't be approved",
            why="an approval stands on a commit, and the code of a pull request needs one",
            then="give the input `sha`, and leave `tree` out",
        )
    return require(client_of(step), full_sha(sha)).login
