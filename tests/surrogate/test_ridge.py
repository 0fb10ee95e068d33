"""Ridge functions: the directions that are found, and what the model says along them."""

from __future__ import annotations

import json

import numpy as np
import torch

from raybo.methods.ridge.model import fit_ridge
from raybo.surrogate.outcomes import standardize

DIM = 8


def directions(seed: int = 0) -> np.ndarray:
    """Two orthonormal directions (DIM, 2)."""
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((DIM, 2)))[0]


def told(n: int, seed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    X = np.random.default_rng(seed).uniform(size=(n, DIM))
    z = (X - 0.5) @ directions()
    return torch.tensor(X), torch.tensor(standardize(np.sin(4 * z[:, 0]) + 2 * z[:, 1] ** 2))


def test_the_plane_of_a_function_is_found_and_other_directions_shrink() -> None:
    ridge = fit_ridge(*told(100))
    lengths = np.linalg.norm(ridge.W, axis=0)
    cosines = np.linalg.svd(directions().T @ (ridge.W / lengths)[:, :2])[1]
    assert cosines.min() > 0.99
    assert (np.diff(lengths) <= 0).all()
    assert (lengths[2:] < 0.1 * lengths[1]).all()


def test_rows_not_seen_are_foretold() -> None:
    X, y = told(160)
    ridge = fit_ridge(X[:100], y[:100])
    found = ridge.gp(X[:100], y[:100]).posterior(ridge.project(X[100:]))
    error = float((found.mean - y[100:]).square().mean().sqrt())
    assert error < 0.1 * float(y[100:].std())


def test_directions_are_the_same_when_read_from_json() -> None:
    ridge = fit_ridge(*told(30))
    np.testing.assert_array_equal(np.array(json.loads(json.dumps(ridge.W.tolist()))), ridge.W)


def test_values_that_say_nothing_are_no_trouble() -> None:
    X, _ = told(20)
    ridge = fit_ridge(X, torch.zeros(20, dtype=torch.float64))
    assert np.isfinite(ridge.W).all()
    assert all(torch.isfinite(v).all() for v in ridge.theta.values())
