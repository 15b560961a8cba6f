"""The lease: whoever follows a job rewrites a counter; a job whose counter stands still ends itself. Pure.

Runs on the compute node (Python >= 3.8, standard library only). The clock is this process's own: the counter
is compared with itself, so that clocks of nodes and file servers don't matter. "Can't be read" (a server that
is away, a stale handle, a file that is being replaced) is not "stands still".
"""

from typing import Optional

_MOST_SECONDS = 10.0  # between two looks
_LOOKS = 20  # in the time of a lease


class Lease:
    """What is known of a lease of `seconds`. Times are monotonic seconds."""

    def __init__(self, seconds: float, now: float) -> None:
        self._seconds = seconds
        self._content: Optional[bytes] = None
        self._still = 0.0  # seconds during which it was seen to be the same
        self._seen = now
        self.due = now  # when to look next

    def see(self, content: Optional[bytes], now: float) -> bool:
        """Take what the file holds (None or nothing: it can't be read); return whether the lease ran out.

        Only time between two looks that both saw the file counts, and of that not more than twice what was
        meant to be: when a file server was away, or the job suspended, whoever follows needs a moment too.
        """
        every = min(_MOST_SECONDS, self._seconds / _LOOKS)
        self.due = now + every
        if not content:
            self._seen = now
            return False
        if content == self._content:
            self._still += min(now - self._seen, 2 * every)
        else:
            self._still = 0.0
        self._content, self._seen = content, now
        return self._still >= self._seconds
