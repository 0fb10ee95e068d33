from __future__ import annotations

import pickle
import sys
import warnings

import numpy as np
import pytest
from sklearn.linear_model import lasso_path

from raybo.benchmarks.problems.datasets import DatasetError
from raybo.benchmarks.problems.lassobench import REAL_SPAN, data, error
from raybo.benchmarks.problems.registry import get_problem

# Rows to fit and to predict, value in the centre, and loss of LassoCV as LassoBench computes it.
REAL = {
    "dna": (1700, 180, 0.3046, 0.3054),
    "breast-cancer": (580, 10, 0.2625, 0.26182),
    "diabetes": (652, 8, 0.6600, 0.65900),
}
# Features and values in the centre and at the true support, by celer.
SYNTHETIC = {
    "medium": (100, 4.61975, 1.25815),
    "high": (300, 5.38308, 1.16474),
    "hard": (1000, 7.87805, 1.25689),
}


def needs_rows(key: str) -> None:
    pytest.importorskip("rdata", reason="needs rdata")
    try:
        data(key)
    except DatasetError as error:
        pytest.skip(f"r-cran-mlbench cannot be fetched: {error}")


@pytest.mark.parametrize("key", REAL)
def test_the_rows_are_those_of_lassobench(key: str) -> None:
    needs_rows(key)
    n_rows, dim, centre, lasso_cv = REAL[key]
    problem = pickle.loads(pickle.dumps(get_problem(f"lassobench-{key}")))
    rows = data(key)
    assert sum(len(y) for *_, y in rows.folds) == n_rows
    assert problem.space.dim == rows.folds[0][0].shape[1] == dim
    assert problem.objective({"x": np.zeros(dim)}) == pytest.approx(centre, abs=1e-4)
    alphas = np.geomspace(rows.highest, rows.highest / REAL_SPAN, 100)
    errors = np.empty((100, 5))
    for fold, (X, y, X_out, y_out) in enumerate(rows.folds):
        _, coefficients, _ = lasso_path(X, y, alphas=alphas, tol=1e-5)
        errors[:, fold] = np.mean((y_out[:, None] - X_out @ coefficients) ** 2, axis=0)
    least = np.argwhere(errors == errors.min())[0, 0]  # the penalty of the one best fold
    assert errors[least].mean() == pytest.approx(lasso_cv, abs=1e-4)


@pytest.mark.parametrize("key", SYNTHETIC)
def test_the_synthetic_values_are_those_of_celer(key: str) -> None:
    pytest.importorskip("celer", reason="needs celer")
    dim, centre, support = SYNTHETIC[key]
    objective = get_problem(f"lassobench-{key}").objective
    assert objective({"x": np.zeros(dim)}) == pytest.approx(centre, rel=1e-3)
    x = np.where(np.arange(dim) % 20 == 0, -1.0, 1.0)
    assert objective({"x": x}) == pytest.approx(support, rel=1e-3)


def test_celer_solves_to_the_same_error() -> None:
    celer = pytest.importorskip("celer", reason="needs celer")
    rng = np.random.default_rng(0)
    rows = data("medium")
    for _ in range(3):
        penalties = rows.highest * 100.0 ** ((rng.uniform(-1, 1, 100) - 1) / 2)
        errors = []
        for X, y, X_out, y_out in rows.folds:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = celer.Lasso(
                    alpha=1.0, weights=penalties, fit_intercept=False, max_iter=100, tol=1e-4
                ).fit(X, y)
            errors.append(np.mean((y_out - X_out @ model.coef_) ** 2))
        assert error(rows, penalties) == pytest.approx(np.mean(errors) / rows.unit, rel=1e-2)


def test_a_missing_celer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "celer.datasets", None)
    data.cache_clear()
    with pytest.raises(DatasetError, match="pip install celer"):
        get_problem("lassobench-high").objective({"x": np.zeros(300)})
