from __future__ import annotations

import sys

import numpy as np
import pytest

from raybo.benchmarks.problems import cosmology
from raybo.benchmarks.problems.datasets import DatasetError


def test_cosmology_reads_nine_mixed_coordinates() -> None:
    assert len(cosmology.RANGES) == 9
    centre = cosmology.cosmology_at(np.zeros(40))
    assert centre["w"] == pytest.approx(-1.0)
    assert centre["H0"] == pytest.approx(70.0)
    x = np.zeros(40)
    x[39] = 1.0  # a dummy, mixed in
    moved = cosmology.cosmology_at(x)
    assert moved["H0"] == pytest.approx(70.0 + 15.0 * cosmology.mixing()[2, 39])


def test_planck_prefers_plancks_cosmology() -> None:
    pytest.importorskip("camb", reason="needs camb")
    try:
        cosmology.measured()
    except DatasetError as error:
        pytest.skip(str(error))
    best = {"ombh2": 0.02236, "omch2": 0.1201, "H0": 67.3, "tau": 0.0543, "log_As": 3.045}
    best |= {"ns": 0.965, "w": -1.0, "mnu": 0.06, "calibration": 1.0}
    found = cosmology.log_likelihood(best)
    assert -330 < found < -270  # 613 bins and 8 distances: chi^2 near its degrees of freedom
    assert cosmology.log_likelihood({**best, "ns": 0.9}) < found - 100


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "camb", None)
    with pytest.raises(DatasetError, match="pip install camb"):
        cosmology.log_likelihood({})
