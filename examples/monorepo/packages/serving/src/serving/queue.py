"""Requests become batches; a server answers each request once."""

from __future__ import annotations

from typing import Iterable


def micro_batches(sizes: Iterable[int], limit: int) -> list[list[int]]:
    """Group request sizes in order, so that no group is larger than the limit.

    Raises ValueError for a request larger than the limit.
    """
    groups: list[list[int]] = []
    for size in sizes:
        if size > limit:
            raise ValueError(f"a request of {size} is larger than {limit}")
        if not groups or sum(groups[-1]) + size > limit:
            groups.append([])
        groups[-1].append(size)
    return groups


class Server:
    """Answers with the double of a number, while it is open."""

    def __init__(self) -> None:
        self.open = True
        self.answered = 0

    def answer(self, number: int) -> int:
        """Return 2 x number; raises ConnectionError after close."""
        if not self.open:
            raise ConnectionError("the server is closed")
        self.answered += 1
        return 2 * number

    def close(self) -> None:
        self.open = False
