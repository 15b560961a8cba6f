"""modes.yml brings one function back, the others stay out."""

import oldapi


def test_version() -> None:
    assert oldapi.VERSION == (1, 9)


def test_train() -> None:
    assert oldapi.train


def test_evaluate() -> None:
    assert oldapi.evaluate


def test_export() -> None:
    assert oldapi.export


def test_resume() -> None:
    assert oldapi.resume
