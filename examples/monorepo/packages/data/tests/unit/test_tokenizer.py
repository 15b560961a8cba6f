import pytest
from dataloading.tokenizer import UNKNOWN, Vocabulary, tokenize


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("a b", ["a", "b"]),
        ("Hello, world", ["hello", ",", "world"]),
        ("  spaces\tand\nlines ", ["spaces", "and", "lines"]),
        ("x=1", ["x", "=", "1"]),
    ],
    ids=["empty", "two words", "punctuation", "white space", "no space"],
)
def test_tokenize(text: str, words: "list[str]") -> None:
    assert tokenize(text) == words


def test_round_trip() -> None:
    words = tokenize("the cat saw the dog")
    vocabulary = Vocabulary(words)
    assert vocabulary.decode(vocabulary.encode(words)) == words


def test_unknown_word() -> None:
    assert Vocabulary(["a"]).encode(["b"]) == [UNKNOWN]


class TestVocabulary:
    def test_counts_each_word_once(self) -> None:
        assert len(Vocabulary(["a", "b", "a"])) == 2

    def test_numbers_start_at_one(self) -> None:
        assert Vocabulary(["a", "b"]).encode(["a", "b"]) == [1, 2]

    def test_unknown_has_no_word(self) -> None:
        with pytest.raises(KeyError):
            Vocabulary(["a"]).decode([UNKNOWN])
