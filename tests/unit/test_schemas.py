"""Schemas are found in a clone; that they are found when installed is in tests/meta/test_wheel.py."""

import pytest

from gpuci.schemas import load_schema
from gpuci_node.contract import SCHEMAS


@pytest.mark.parametrize("name", ["nothing", "../config", "", "config.schema"])
def test_a_name_of_no_document_is_refused(name: str) -> None:
    with pytest.raises(KeyError):
        load_schema(name)


def test_a_schema_is_found() -> None:
    assert load_schema("config")["$id"] == "urn:" + SCHEMAS["config"].replace("/", ":")
