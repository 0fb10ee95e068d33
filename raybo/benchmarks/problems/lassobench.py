"""LassoBench (Šehić, Gramfort, Salmon & Nardi 2022): a penalty for each feature of a Lasso.

lassobench-dna                  180 features of 2000 genes, classes 1, 2, 3
lassobench-breast-cancer        10 features of 683 patients, classes 2 and 4
lassobench-diabetes             8 features of 768 patients, classes -1 and 1
lassobench-medium, -high, -hard 100, 300 and 1000 correlated features, of which 5% matter

The value is the cross-validated squared error of a Lasso without intercept on 85% of the rows; for
the synthetic data, divided by the error of the true weights. The real data are those of LIBSVM,
built from R's mlbench (Debian's r-cran-mlbench): DNA's first 2000 rows as they are, the others
scaled to [-1, 1], the number of the patient included. The synthetic ones come from celer.
LassoBench solves with celer to a tolerance of 1e-4, and raybo with scikit-learn to the same, which
takes a third of the time on DNA: values differ by 0.1%, and by up to 0.5% at random penalties.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from raybo.arrays import Array
from raybo.benchmarks.problems.base import Problem, one_of
from raybo.benchmarks.problems.datasets import DatasetError, fetch
from raybo.benchmarks.problems.lasso_svm import (
    BREAST_CANCER,
    DIABETES,
    DNA,
    MLBENCH,
    read_r,
    sklearn_module,
)
from raybo.space.box import Box

SEED, FOLDS, TEST = 42, 5, 0.15
REAL_SPAN, SYNTHETIC_SPAN = 1e5, 1e2  # highest over lowest penalty
TOLERANCE, STEPS = 1e-4, 20_000  # of the solver
SYNTHETIC = {"medium": 100, "high": 300, "hard": 1000}  # features


@dataclass(frozen=True, eq=False)
class Data:
    """The rows that a Lasso is fitted to.

    Attributes
    ----------
    folds : tuple of (X, y, X, y)
        Rows to fit and rows to predict.
    highest : float
        Least equal penalty at which all coefficients of all rows are 0.
    unit : float
        Error that counts as 1.
    """

    folds: tuple[tuple[Array, Array, Array, Array], ...]
    highest: float
    unit: float


def _scaled(X: Array) -> Array:
    low = X.min(axis=0)
    scaled: Array = 2.0 * (X - low) / (X.max(axis=0) - low) - 1.0
    return scaled


def _table(file: str, name: str) -> Any:
    [table] = read_r(fetch(MLBENCH)[file], name).values()
    return table


def _dna() -> tuple[Array, Array]:
    table = _table(DNA, "lassobench-dna").iloc[:2000]
    return table.iloc[:, :180].astype(float).to_numpy(), table["Class"].cat.codes.to_numpy() + 1.0


def _breast_cancer() -> tuple[Array, Array]:
    table = _table(BREAST_CANCER, "lassobench-breast-cancer").dropna()
    X = table.iloc[:, :10].astype(str).astype(float).to_numpy()
    return _scaled(X), np.where(table["Class"] == "malignant", 4.0, 2.0)


def _diabetes() -> tuple[Array, Array]:
    table = _table(DIABETES, "lassobench-diabetes")
    X = table.iloc[:, :8].to_numpy(dtype=np.float64)
    return _scaled(X), np.where(table["diabetes"] == "pos", 1.0, -1.0)


REAL: dict[str, tuple[int, Callable[[], tuple[Array, Array]]]] = {  # features, rows
    "dna": (180, _dna),
    "breast-cancer": (10, _breast_cancer),
    "diabetes": (8, _diabetes),
}


def _synthetic(dim: int) -> tuple[Array, Array, Array]:
    """Rows, values and true weights: 1, -1, 1, ... at every 20th feature."""
    try:
        datasets = importlib.import_module("celer.datasets")
    except ImportError:
        raise DatasetError(
            "problems lassobench-medium, -high and -hard need celer; pip install celer"
        ) from None
    weights = np.zeros(dim)
    weights[::20] = (-1.0) ** np.arange(dim // 20)
    X, y, _ = datasets.make_correlated_data(
        n_samples=dim // 2, n_features=dim, corr=0.6, w_true=weights, snr=10, random_state=SEED
    )
    return X, y, weights


@lru_cache(maxsize=6)
def data(key: str) -> Data:
    """Return the rows of a problem."""
    if key in REAL:
        X, y = REAL[key][1]()
        weights = None
    else:
        X, y, weights = _synthetic(SYNTHETIC[key])
    selection = sklearn_module("model_selection", f"lassobench-{key}")
    X, _, y, _ = selection.train_test_split(X, y, test_size=TEST, random_state=SEED)
    splits = selection.KFold(FOLDS, shuffle=True, random_state=SEED).split(X)
    folds = tuple((X[kept], y[kept], X[out], y[out]) for kept, out in splits)
    unit = 1.0 if weights is None else float(np.mean((X @ weights - y) ** 2))
    return Data(folds, float(np.abs(X.T @ y).max()) / len(y), unit)


def error(rows: Data, penalties: Array) -> float:
    """Return the mean over the folds of the squared error of a Lasso with these penalties.

    Notes
    -----
    It minimises |y - X b|^2 / (2 n) + sum_i l_i |b_i|: a Lasso with penalty 1 on X_i / l_i.
    """
    lasso, errors = sklearn_module("linear_model", "lassobench").Lasso, []
    for X, y, X_out, y_out in rows.folds:
        model = lasso(
            alpha=1.0,
            fit_intercept=False,
            precompute=len(X) > X.shape[1],
            tol=TOLERANCE,
            max_iter=STEPS,
        ).fit(X / penalties, y)
        errors.append(np.mean((y_out - X_out @ (model.coef_ / penalties)) ** 2))
    return float(np.mean(errors)) / rows.unit


@dataclass(frozen=True)
class LassoBench:
    """Error of a Lasso with the penalties {"x": x}, their logarithms scaled to [-1, 1]."""

    key: str

    def __call__(self, config: Mapping[str, Any]) -> float:
        """Return the value at a config."""
        rows, span = data(self.key), REAL_SPAN if self.key in REAL else SYNTHETIC_SPAN
        x = np.asarray(config["x"], dtype=np.float64)
        return error(rows, rows.highest * span ** ((x - 1.0) / 2.0))


def lassobench(name: str) -> Problem:
    """Return the problem "lassobench-..." of the module's docstring."""
    dims = {**{key: dim for key, (dim, _) in REAL.items()}, **SYNTHETIC}
    key = one_of(name, (f"lassobench-{key}" for key in dims)).removeprefix("lassobench-")
    return Problem(
        name,
        partial(Box, dims[key]),
        LassoBench(key),
        evaluations=500,
        description=f"LassoBench's {key}: penalties of {dims[key]} features, error of a Lasso",
        cost="0.15 s" if key in ("dna", "hard") else "10 to 40 ms",
    )
