"""Real problems of hundreds of dimensions: a weighted Lasso, and a support vector machine.

`lasso-dna` tunes a penalty for each of the 180 features of the DNA data for the smallest
cross-validated error. It resembles LassoBench's task but is not the same (rows, scaling, intercept
and range of the penalties): that one is `lassobench-dna`. `svm-mdrr` stands in
for the SVM benchmark of Eriksson & Jankowiak (2021), whose data are in no package: a scale for
each of 342 molecular descriptors, and the machine's C and gamma.
"""

from __future__ import annotations

import importlib
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybo.arrays import Array
from raybo.benchmarks.problems.base import Problem
from raybo.benchmarks.problems.datasets import DatasetError, Package, fetch
from raybo.space.box import Box

DNA, BREAST_CANCER, DIABETES = (
    f"usr/lib/R/site-library/mlbench/data/{name}.rda"
    for name in ("DNA", "BreastCancer", "PimaIndiansDiabetes")
)
_MDRR = "usr/lib/R/site-library/caret/data/mdrr.RData"
MLBENCH = Package(
    "debian",
    "r-cran-mlbench",
    "",
    {
        DNA: "df941ad89a49f705a29bf38e52c91dc34029539cedb13fa24f803f1224278c9e",
        BREAST_CANCER: "1fcf1b82128c287b2777005a93a2b76fdb4d6749ed6df05231f85953f1fc7c2b",
        DIABETES: "fc134e041577d3ff2b784e1610b6fbbe165f815abc83652ba77a28f4bccb89ec",
    },
)
CARET = Package(
    "debian",
    "r-cran-caret",
    "",
    {_MDRR: "2f37a45deb08fc10821358a809fab4ef4dba702be4175a92e2d6aaf5b7ac41e1"},
)
DNA_ROWS = 1500  # of 3186, for half the time
FOLDS = 5
STEPS = 20_000  # of the SVM's solver, which takes minutes with some scales
SCALES = 342  # descriptors of mdrr


def read_r(path: Path, problem: str) -> dict[str, Any]:
    """Return the objects of a file of R."""
    try:
        rdata = importlib.import_module("rdata")
    except ImportError:
        raise DatasetError(
            f"problem {problem!r} needs a reader of R's files; pip install rdata"
        ) from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about attributes of R that Python has not
        found: dict[str, Any] = rdata.read_rda(path)
    return found


def sklearn_module(module: str, problem: str) -> Any:
    """Return a module of scikit-learn."""
    try:
        return importlib.import_module(f"sklearn.{module}")
    except ImportError:
        raise DatasetError(
            f"problem {problem!r} needs scikit-learn; pip install scikit-learn"
        ) from None


@lru_cache(maxsize=1)
def dna() -> tuple[Array, Array]:
    """Return 180 standardised binary features of 1500 genes, and their class (1, 2, 3)."""
    table = read_r(fetch(MLBENCH)[DNA], "lasso-dna")["DNA"]
    X = table.iloc[:, :180].astype(float).to_numpy()
    y = table["Class"].cat.codes.to_numpy() + 1.0
    rows = np.random.default_rng(0).permutation(len(X))[:DNA_ROWS]
    X, y = X[rows], y[rows]
    return (X - X.mean(0)) / X.std(0), y


@dataclass(frozen=True)
class WeightedLasso:
    """Cross-validated squared error of a Lasso with a penalty for each feature.

    Notes
    -----
    Coordinate i of [-1, 1] is the logarithm of its penalty, from lambda_max / 10^2 to lambda_max,
    the smallest at which all coefficients are 0. A penalty l_i is a Lasso
    with penalty 1 on the column divided by l_i.
    """

    def __call__(self, config: Mapping[str, Any]) -> float:
        """Return the value at {"x": the penalties}."""
        X, y = dna()
        u = (np.asarray(config["x"], dtype=np.float64) + 1.0) / 2.0
        highest = np.abs(X.T @ (y - y.mean())).max() / len(X)
        return lasso_error(X, y, highest * 10.0 ** (2.0 * (u - 1.0)))


def lasso_error(X: Array, y: Array, penalties: Array) -> float:
    """Return the mean squared error over five folds of a Lasso with these penalties."""
    lasso = sklearn_module("linear_model", "lasso-dna").Lasso
    scaled, errors = X / penalties, []
    for fold in range(FOLDS):
        out = np.arange(len(X)) % FOLDS == fold
        model = lasso(alpha=1.0, tol=1e-3).fit(scaled[~out], y[~out])
        errors.append(np.mean((model.predict(scaled[out]) - y[out]) ** 2))
    return float(np.mean(errors))


@lru_cache(maxsize=1)
def mdrr() -> tuple[Array, NDArray[np.int8]]:
    """Return 342 standardised descriptors of 528 molecules, and whether each is active."""
    found = read_r(fetch(CARET)[_MDRR], "svm-mdrr")
    X = found["mdrrDescr"].to_numpy(dtype=float)
    deviation = X.std(0)
    X = (X - X.mean(0)) / np.where(deviation > 0, deviation, 1.0)
    return X, np.asarray(found["mdrrClass"].codes, dtype=np.int8)


@dataclass(frozen=True)
class ScaledSvm:
    """Cross-validated error of a support vector machine on scaled features.

    Notes
    -----
    Coordinates of [-1, 1]: for each feature log10 of its scale, in [-2, 2]; log10 C in [-2, 3];
    log10 of gamma times the number of features, in [-2, 2].
    """

    def __call__(self, config: Mapping[str, Any]) -> float:
        """Return the value at {"x": scales, C, gamma}."""
        X, y = mdrr()
        x = np.asarray(config["x"], dtype=np.float64)
        C, gamma = 10.0 ** (0.5 + 2.5 * x[-2]), 10.0 ** (2.0 * x[-1]) / SCALES
        return svm_error(X * 10.0 ** (2.0 * x[:-2]), y, C, gamma)


def svm_error(X: Array, y: NDArray[np.int8], C: float, gamma: float) -> float:
    """Return the share of molecules put into the wrong class, over five folds."""
    svc = sklearn_module("svm", "svm-mdrr").SVC
    X = X / math.sqrt(np.mean(X**2))  # only the ratios of the scales matter
    model, wrong = svc(C=C, gamma=gamma, max_iter=STEPS), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about solvers stopped at the limit
        for fold in range(FOLDS):
            out = np.arange(len(X)) % FOLDS == fold
            wrong += int(np.sum(model.fit(X[~out], y[~out]).predict(X[out]) != y[out]))
    return wrong / len(X)


def lasso_dna() -> Problem:
    """Return the problem in 180 dimensions."""
    return Problem(
        "lasso-dna",
        partial(Box, 180),
        WeightedLasso(),
        evaluations=400,
        description="DNA: a penalty for each of 180 features, error of a Lasso",
        cost="0.05 s",
    )


def svm_mdrr() -> Problem:
    """Return the problem in 344 dimensions."""
    return Problem(
        "svm-mdrr",
        partial(Box, SCALES + 2),
        ScaledSvm(),
        evaluations=400,
        description="SVM on molecules: scales of 342 descriptors, C and gamma; error",
        cost="0.3 s",
    )
