"""packages/trainer has a file of the same name, for the cpu pool. This one runs on a GPU node."""

import pytest
from serving.config import Address, parse


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("gpu1", Address("gpu1", 8000)),
        ("gpu1:9000", Address("gpu1", 9000)),
        (":9000", Address("localhost", 9000)),
        ("", Address("localhost", 8000)),
    ],
    ids=["host", "both", "port", "nothing"],
)
def test_parse(text: str, address: Address) -> None:
    assert parse(text) == address


@pytest.mark.parametrize("text", ["gpu1:port", "gpu1:65536"])
def test_bad_port(text: str) -> None:
    with pytest.raises(ValueError, match="port"):
        parse(text)
