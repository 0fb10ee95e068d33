"""Names of studies."""

from __future__ import annotations

from raybo.study.names import fresh_name


def test_no_two_names_are_the_same() -> None:
    assert len({fresh_name() for _ in range(50)}) == 50
