"""When a request is sent again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.github.retry import (
    ATTEMPTS,
    LONGEST_PAUSE,
    Again,
    Kind,
    Outcome,
    decide,
    is_repeated,
    kind_of,
    pause,
)

SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes."


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (Outcome(200), Kind.DONE),
        (Outcome(204), Kind.DONE),
        (Outcome(301), Kind.DONE),
        (Outcome(429), Kind.LIMITED),
        (Outcome(403, {"retry-after": "60"}), Kind.LIMITED),
        (Outcome(403, {"x-ratelimit-remaining": "0"}), Kind.LIMITED),
        (Outcome(403, {}, SECONDARY), Kind.LIMITED),
        (Outcome(403, {}, "You have triggered an abuse detection mechanism."), Kind.LIMITED),
        (Outcome(403, {"x-ratelimit-remaining": "10"}, "Resource not accessible by integration"), Kind.FINAL),
        (Outcome(404, {"x-ratelimit-remaining": "0"}), Kind.FINAL),
        (Outcome(401), Kind.FINAL),
        (Outcome(422), Kind.FINAL),
        (Outcome(500), Kind.UNSURE),
        (Outcome(502), Kind.UNSURE),
        (Outcome(503, {"retry-after": "2"}), Kind.UNSURE),
        (Outcome(504), Kind.UNSURE),
        (Outcome(501), Kind.FINAL),
        (Outcome(0, sent=False), Kind.UNREACHED),
        (Outcome(0, sent=True), Kind.UNSURE),
        (Outcome(0, sent=False, hopeless=True), Kind.FINAL),
    ],
    ids=lambda value: value.name if isinstance(value, Kind) else f"{value.status} {dict(value.headers)}",
)
def test_kind(outcome: Outcome, kind: Kind) -> None:
    assert kind_of(outcome) is kind


@pytest.mark.parametrize(
    ("kind", "harmless", "again"),
    [
        (Kind.DONE, True, False),
        (Kind.LIMITED, False, True),
        (Kind.UNREACHED, False, True),
        (Kind.UNSURE, False, False),
        (Kind.UNSURE, True, True),
        (Kind.FINAL, True, False),
    ],
)
def test_what_may_have_happened_is_repeated_only_if_harmless(kind: Kind, harmless: bool, again: bool) -> None:
    assert is_repeated(kind, harmless=harmless) is again


@pytest.mark.parametrize(
    ("outcome", "attempt", "seconds"),
    [
        (Outcome(502), 1, 1),
        (Outcome(502), 3, 4),
        (Outcome(502), 10, LONGEST_PAUSE),
        (Outcome(503, {"retry-after": "7"}), 1, 7.5),
        (Outcome(503, {"retry-after": "Mon, 30 Nov 2026 02:00:00 GMT"}), 2, 2),
        (
            Outcome(429, {"retry-after": "30", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "9999"}),
            1,
            30.5,
        ),
        (Outcome(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1040"}), 1, 40.5),
        (Outcome(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "900"}), 1, 1.5),
        (Outcome(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "soon"}), 1, 63),
        (Outcome(403, {"x-ratelimit-reset": "5000"}, SECONDARY), 1, 63),
        (Outcome(403, {}, SECONDARY), 2, 126),
        (Outcome(429, {"retry-after": "-5"}), 1, 63),
    ],
)
def test_pause(outcome: Outcome, attempt: int, seconds: float) -> None:
    assert pause(outcome, attempt=attempt, now=1000.0, jitter=0.5) == pytest.approx(seconds)


def test_a_pause_that_is_too_long_is_not_begun() -> None:
    limited = Outcome(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1121"})
    assert decide(limited, attempt=1, harmless=True, left=120.0, now=1000.0, jitter=0.0) is None
    assert decide(limited, attempt=1, harmless=True, left=121.0, now=1000.0, jitter=0.0) == Again(121.0)


outcomes = st.builds(
    Outcome,
    st.sampled_from([0, 200, 301, 401, 403, 404, 422, 429, 500, 502, 503, 504]),
    st.dictionaries(
        st.sampled_from(["retry-after", "x-ratelimit-remaining", "x-ratelimit-reset"]),
        st.one_of(st.integers(0, 3000).map(str), st.text(max_size=20)),
    ),
    st.sampled_from(["", SECONDARY]),
    sent=st.booleans(),
    hopeless=st.booleans(),
)


@given(st.lists(outcomes, min_size=8), st.booleans(), st.floats(0, 1), st.floats(0, 2000))
def test_a_request_ends_whatever_comes(
    some: list[Outcome], harmless: bool, jitter: float, now: float
) -> None:
    left, attempt = 120.0, 0
    for attempt, outcome in enumerate(some, 1):
        again = decide(outcome, attempt=attempt, harmless=harmless, left=left, now=now, jitter=jitter)
        if again is None:
            break
        assert again.seconds > 0
        assert harmless or kind_of(outcome) is not Kind.UNSURE
        left -= again.seconds
    assert left >= 0
    assert attempt <= ATTEMPTS
