"""Can't even be imported; nothing of it is brought back, so nobody tries."""

from oldapi.export import write


def test_text() -> None:
    assert write("text")


def test_binary() -> None:
    assert write("binary")


class TestArchive:
    def test_zip(self) -> None:
        assert write("zip")

    def test_tar(self) -> None:
        assert write("tar")
