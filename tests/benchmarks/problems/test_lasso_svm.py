from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from sklearn.linear_model import Lasso
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from raybo.benchmarks.problems.datasets import DatasetError
from raybo.benchmarks.problems.lasso_svm import lasso_error, read_r, svm_error


def test_weighted_lasso_is_the_plain_one_where_penalties_are_equal() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    y = X @ [1.0, 0.0, -2.0, 0.0] + 0.1 * rng.standard_normal(60)
    errors = []
    for fold in range(5):
        out = np.arange(60) % 5 == fold
        model = Lasso(alpha=0.3, tol=1e-3).fit(X[~out], y[~out])
        errors.append(np.mean((model.predict(X[out]) - y[out]) ** 2))
    found = lasso_error(X, y, np.full(4, 0.3))
    assert found == pytest.approx(np.mean(errors), rel=1e-2)
    # A large penalty on features without effect, nearly none on the others.
    assert lasso_error(X, y, np.array([1e-3, 9.0, 1e-3, 9.0])) < found / 3


def test_svm_error_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3))
    y = (X[:, 0] > 0).astype(np.int8)
    scaled = X / math.sqrt(np.mean(X**2))
    folds = [
        (np.flatnonzero(np.arange(50) % 5 != k), np.flatnonzero(np.arange(50) % 5 == k))
        for k in range(5)
    ]
    wanted = 1 - cross_val_score(SVC(C=2.0, gamma=0.5), scaled, y, cv=folds).mean()
    assert svm_error(X, y, 2.0, 0.5) == pytest.approx(wanted)
    assert svm_error(X * [10, 0.1, 0.1], y, 2.0, 0.5) < wanted


def test_a_missing_reader_of_r_files_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rdata", None)
    with pytest.raises(DatasetError, match="pip install rdata"):
        read_r("DNA.rda", "lasso-dna")
