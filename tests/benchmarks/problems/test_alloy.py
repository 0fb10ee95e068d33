from __future__ import annotations

import sys

import pytest

from raybo.benchmarks.problems import alloy
from raybo.benchmarks.problems.datasets import DatasetError


def test_an_alloy_melts_when_hot_and_hardens_when_aged() -> None:
    pytest.importorskip("pycalphad", reason="needs pycalphad")
    hot, solid, aged = (alloy.phases(alloy.AA2050, kelvin) for kelvin in (850.0, 775.0, 428.0))
    for found in (hot, solid, aged):
        assert sum(found.values()) == pytest.approx(1.0, abs=1e-6)
    assert hot["LIQUID"] > 0.03
    assert solid["FCC_A1"] > 0.99
    assert aged["ALCULI_T1"] > 0.01
    assert aged["FCC_A1"] < 0.9


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pycalphad", None)
    alloy._workspace.cache_clear()
    with pytest.raises(DatasetError, match="pip install pycalphad"):
        alloy.phases(alloy.AA2050, 700.0)
