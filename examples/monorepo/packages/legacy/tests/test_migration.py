"""modes.yml brings one class back."""

import oldapi


class TestReader:
    def test_reads_the_oldest_version(self) -> None:
        assert oldapi.read_header("oldapi 1.0") == (1, 0)

    def test_upgrade_keeps_values(self) -> None:
        assert sum(oldapi.upgrade({"itr": 3, "seed": 4}).values()) == 7


class TestWriter:
    def test_writes_the_oldest_version(self) -> None:
        assert oldapi.write_header((1, 0))

    def test_downgrade(self) -> None:
        assert oldapi.downgrade({"step": 3})
