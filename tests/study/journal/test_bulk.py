from __future__ import annotations

import gc

import pytest

from raybo.study.journal.bulk import in_bulk


@in_bulk
def is_collecting(fails: bool) -> bool:
    if fails:
        raise ValueError("no")
    return gc.isenabled()


def test_the_collector_is_paused_and_goes_on_also_after_an_error() -> None:
    assert gc.isenabled()
    assert not is_collecting(fails=False)
    assert gc.isenabled()
    with pytest.raises(ValueError, match="no"):
        is_collecting(fails=True)
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        is_collecting(fails=False)
        assert not gc.isenabled()
    finally:
        gc.enable()
