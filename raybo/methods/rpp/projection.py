"""Projections learnt by marginal likelihood, and their restriction to near the identity.

Projection pursuit of Gilboa, Saatci, Cunningham (2013) for groups of directions, and eqs. 7 and 8
of Li, Kandasamy, Poczos, Schneider (2016). A projection W (D, D) takes a row x to z = W'x; its
columns are the directions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment, minimize
from torch import Tensor

from raybo.arrays import Array
from raybo.surrogate.gp import NOISE
from raybo.surrogate.kernels.base import Kernel, Theta
from raybo.surrogate.map import NOISE_HYPER, Target, likelihood


def pursue(
    kernel: Kernel,
    X: Tensor,
    y: Tensor,
    W: Array,
    theta: Theta,
    blocks: Sequence[Sequence[int]],
    *,
    spread: float | None = None,
    max_iterations: int = 30,
) -> tuple[Array, dict[str, Tensor]]:
    """Projection and hyperparameters of higher marginal likelihood, reached from W and theta.

    Parameters
    ----------
    kernel
        Covariance of the projected rows.
    X, y
        Rows (n, D) and their standardised values (n,).
    W, theta
        Where to start: unit columns, and the kernel's hyperparameters with the noise.
    blocks
        Columns of W, learnt block by block with the others held; one block holds all of them.
    spread
        Standard deviation of the entries of W around those of I under a normal prior; no prior
        unless given.
    max_iterations
        Bound on the iterations for each block.

    Returns
    -------
    tuple
        W with unit columns, and theta.
    """
    target = _Target(kernel, X, y, spread)
    for block in blocks:
        W, theta = target.climb(W, theta, list(block), max_iterations)
    return W, dict(theta)


class _Target:
    """Negative log posterior of some columns of W and the log-hyperparameters."""

    def __init__(self, kernel: Kernel, X: Tensor, y: Tensor, spread: float | None) -> None:
        self.kernel, self.X, self.y, self.spread = kernel, X, y, spread
        self.hypers = Target(kernel, X, y, NOISE_HYPER)
        self.eye = torch.eye(X.shape[1], dtype=X.dtype, device=X.device)

    def climb(
        self, W: Array, theta: Theta, block: list[int], max_iterations: int
    ) -> tuple[Array, dict[str, Tensor]]:
        """Best columns in `block` and hyperparameters near W and theta, the other columns held."""
        held = torch.as_tensor(W, device=self.X.device)
        size = W.shape[0] * len(block)
        logs = self.hypers.logs(theta)

        def loss(flat: Array) -> tuple[float, Array]:
            point = torch.as_tensor(flat, device=self.X.device).requires_grad_()
            columns = point[:size].reshape(len(W), len(block))
            whole = held.index_copy(1, torch.tensor(block, device=held.device), unit(columns))
            hypers = self.hypers.theta(point[size:])
            Z = self.X @ whole
            K = self.kernel(Z, Z, hypers) + hypers[NOISE] * self.hypers.eye
            with torch.no_grad():
                value, slope, _ = likelihood(K, self.y)
            rest = self.hypers.penalty(point[size:])
            if self.spread is not None:
                rest = rest + 0.5 * ((columns - self.eye[:, block]) / self.spread).square().sum()
            (gradient,) = torch.autograd.grad((K * slope).sum() + rest, point)
            return float(value + rest.detach()), gradient.cpu().numpy()

        found = minimize(
            loss,
            np.concatenate([W[:, block].reshape(-1), logs]),
            jac=True,
            method="L-BFGS-B",
            bounds=[(-10.0, 10.0)] * size + self.hypers.bounds,
            options={"maxiter": max_iterations, "ftol": 1e-7, "maxcor": 10},
        )
        if not np.isfinite(found.fun):
            return W, dict(theta)
        columns = unit(torch.as_tensor(found.x[:size]).reshape(len(W), len(block))).numpy()
        learnt = W.copy()
        learnt[:, block] = columns
        with torch.no_grad():
            return learnt, self.hypers.theta(torch.as_tensor(found.x[size:], device=held.device))


def unit(columns: Tensor) -> Tensor:
    """Columns scaled to length 1."""
    length: Tensor = torch.linalg.vector_norm(columns, dim=0, keepdim=True)
    return columns / length.clamp_min(1e-12)


def align(W: Array) -> tuple[Array, NDArray[np.intp]]:
    """Columns of W in the order and with the signs nearest to I, and which column went where.

    The model knows neither order nor sign of its directions, but mixing W with I does: without
    this, (1 - a) W + a I is no blend of the two models and may be singular.

    Returns
    -------
    tuple
        Unit columns (D, D), and for each of them its number in W.
    """
    columns = W / np.linalg.norm(W, axis=0)
    _, order = linear_sum_assignment(-np.abs(columns))
    columns = columns[:, order]
    return columns * np.where(np.diag(columns) < 0, -1.0, 1.0), order


def blend(W: Array, alpha: float) -> Array:
    """(1 - alpha) W + alpha I (eq. 7)."""
    return (1.0 - alpha) * W + alpha * np.eye(len(W))


def log_ratio(W: Array) -> float:
    """Logarithm of the volume of the outer box over that of the projected cube (eq. 8).

    Notes
    -----
    sum_d log |w_d|_1 - log |det W|: never negative, 0 for I, infinite for a singular W.
    """
    _, log_det = np.linalg.slogdet(W)
    if not np.isfinite(log_det):
        return math.inf
    return float(np.log(np.abs(W).sum(0)).sum() - log_det)


def least_mixing(W: Array, log_limit: float) -> float:
    """Least alpha from which on all (1 - alpha) W + alpha I keep `log_ratio` within a limit."""
    if log_limit <= 0.0:
        return 1.0
    limit = log_limit + 1e-9  # rounding of the logarithms
    low, high = 0.0, 1.0  # high keeps it
    for alpha in np.linspace(1.0, 0.0, 41)[1:]:
        if log_ratio(blend(W, alpha)) > limit:
            low = float(alpha)
            break
        high = float(alpha)
    for _ in range(40 if high > low else 0):
        middle = 0.5 * (low + high)
        if log_ratio(blend(W, middle)) > limit:
            low = middle
        else:
            high = middle
    return high


def outer_box(W: Array) -> tuple[Array, Array]:
    """Bounds (D,) of z = W'x for x in the unit cube."""
    return np.minimum(W, 0.0).sum(0), np.maximum(W, 0.0).sum(0)
