"""Freezes the registry for good: no other file may share the process."""

import pytest
from kernels import registry

pytestmark = pytest.mark.isolated


def test_registration_after_freezing_is_refused() -> None:
    assert not registry.is_frozen()
    registry.freeze()
    with pytest.raises(RuntimeError, match="too late"):
        registry.register("late", sum)


def test_nothing_thaws_it() -> None:
    assert registry.is_frozen()
