"""Words and their numbers."""

from __future__ import annotations

import re
from typing import Iterable

UNKNOWN = 0


def tokenize(text: str) -> list[str]:
    """Split a text into lower-case words and punctuation."""
    return re.findall(r"\w+|[^\w\s]", text.lower())


class Vocabulary:
    """Numbers words from 1 in the order of their first appearance."""

    def __init__(self, words: Iterable[str]) -> None:
        self._numbers = {word: number for number, word in enumerate(dict.fromkeys(words), start=1)}
        self._words = {number: word for word, number in self._numbers.items()}

    def __len__(self) -> int:
        return len(self._numbers)

    def encode(self, words: Iterable[str]) -> list[int]:
        """Return the number of each word, UNKNOWN for one never seen."""
        return [self._numbers.get(word, UNKNOWN) for word in words]

    def decode(self, numbers: Iterable[int]) -> list[str]:
        """Return the word of each number; raises KeyError for UNKNOWN."""
        return [self._words[number] for number in numbers]
