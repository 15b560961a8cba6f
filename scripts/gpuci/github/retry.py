"""Whether a request is sent again, and when: a table. Pure.

Source: docs.github.com, "Best practices for using the REST API" and "Rate limits for the REST API": wait for
`retry-after`; else, with `x-ratelimit-remaining: 0`, until `x-ratelimit-reset`; else a minute, then longer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

ATTEMPTS = 5
LONGEST_PAUSE = 30.0
# What a run waits in all, over all of its requests.
WAIT_SECONDS = 120.0
_SECONDARY_SECONDS = 60.0
_TRANSIENT = frozenset({500, 502, 503, 504})
_SECONDARY = re.compile(r"secondary rate limit|abuse detection", re.IGNORECASE)


class Kind(Enum):
    """What came of a request."""

    DONE = "an answer"
    LIMITED = "refused for now, not carried out"
    UNREACHED = "no connection, not carried out"
    UNSURE = "it may have been carried out"
    FINAL = "again would be the same"


@dataclass(frozen=True)
class Outcome:
    """`status` 0: no answer. `sent`: the request may have arrived. `text`: the message in the answer."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    sent: bool = True
    hopeless: bool = False


@dataclass(frozen=True)
class Again:
    """Send it again after `seconds`."""

    seconds: float


def kind_of(outcome: Outcome) -> Kind:
    """The row of the table: the first that fits."""
    if 200 <= outcome.status < 400:
        return Kind.DONE
    if outcome.status == 429 or (outcome.status == 403 and _says_limit(outcome)):
        return Kind.LIMITED
    if outcome.hopeless:
        return Kind.FINAL
    if outcome.status == 0:
        return Kind.UNSURE if outcome.sent else Kind.UNREACHED
    return Kind.UNSURE if outcome.status in _TRANSIENT else Kind.FINAL


def is_repeated(kind: Kind, *, harmless: bool) -> bool:
    """Whether a request of this kind may be sent again; `harmless`: twice is as good as once."""
    return kind in (Kind.LIMITED, Kind.UNREACHED) or (kind is Kind.UNSURE and harmless)


def decide(
    outcome: Outcome, *, attempt: int, harmless: bool, left: float, now: float, jitter: float
) -> Again | None:
    """Again, or None for never: `attempt` (from 1) was the last allowed, or the pause is longer than `left`.

    `left` in seconds, `now` in seconds since the epoch, `jitter` from 0 to 1.
    """
    kind = kind_of(outcome)
    if attempt >= ATTEMPTS or not is_repeated(kind, harmless=harmless):
        return None
    seconds = pause(outcome, attempt=attempt, now=now, jitter=jitter)
    return Again(seconds) if seconds <= left else None


def pause(outcome: Outcome, *, attempt: int, now: float, jitter: float) -> float:
    """Seconds until the next attempt: what GitHub asks for, else 1, 2, 4 ... s, each from half to 1.5."""
    asked = _number(outcome.headers.get("retry-after", ""))
    if asked is not None:
        return max(1.0, asked) + jitter
    if kind_of(outcome) is not Kind.LIMITED:
        return min(LONGEST_PAUSE, 2.0 ** (attempt - 1)) * (0.5 + jitter)
    reset = _number(outcome.headers.get("x-ratelimit-reset", ""))
    if outcome.headers.get("x-ratelimit-remaining") == "0" and reset is not None:
        return max(1.0, reset - now) + jitter
    return _SECONDARY_SECONDS * 2.0 ** (attempt - 1) * (1 + jitter / 10)


def _says_limit(outcome: Outcome) -> bool:
    headers = outcome.headers
    told = "retry-after" in headers or headers.get("x-ratelimit-remaining") == "0"
    return told or _SECONDARY.search(outcome.text) is not None


def _number(text: str) -> float | None:
    return float(text) if text.isascii() and text.isdigit() and len(text) < 16 else None
