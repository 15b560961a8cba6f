"""An archive and a registry for the tests of images."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.fakes.oci import Layout
from tests.fakes.registry import Fake, serving


@pytest.fixture
def archive(tmp_path: Path) -> Callable[..., Path]:
    """An archive of a layout with these parts."""
    return lambda **parts: Layout(**parts).write(tmp_path / "image.tar")


@pytest.fixture
def fake() -> Iterator[Fake]:
    """An open registry."""
    with serving(Fake()) as started:
        yield started
