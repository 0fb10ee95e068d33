"""Projections learnt by marginal likelihood, and their restriction to near the identity.

Projection pursuit of Gilboa, Saatci, Cunningham (2013) for groups of directions, and eqs. 7 and 8
of Li, Kandasamy, Poczos, Schneider (2016). A projection W (D, D) takes a row x to z = W'x; its
columns are the directions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from raybo.arrays import Array, Indices
from raybo.errors import MethodError
from raybo.lazy import Tensor, torch
from raybo.methods.base import Data
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.additive import Additive
from raybo.surrogate.kernels.base import Theta
from raybo.surrogate.map import NOISE_HYPER, NegativeLogPosterior, minimize_from

LARGEST_ENTRY = 10.0  # bound on the entries of W, whose columns have about the length of I's
DIGITS = 6  # of the D^2 entries of W in a memo; the data know fewer
HALVINGS = 40  # of the interval of alpha: more than enough for a thousandth of 1 - alpha


@dataclass(frozen=True)
class Projection:
    """A learnt projection, and how much of the identity is mixed into it."""

    W: Array  # (D, D)
    alpha: float  # of eq. 7

    @classmethod
    def last(cls, data: Data) -> Projection | None:
        """What was learnt last, from the memos; None at first."""
        memo = data.last_fit("groups", "W")
        return None if memo is None else cls(np.array(memo["W"]), float(memo["alpha"]))

    def to_memo(self) -> dict[str, Any]:
        """JSON of it, for the memo of the trial that learnt it."""
        return {"W": self.W.tolist(), "alpha": self.alpha}

    @property
    def restricted(self) -> Array:
        """(1 - alpha) W + alpha I (eq. 7)."""
        return blend(self.W, self.alpha)


def likeliest_columns(
    kernel: Additive,
    X: Tensor,
    y: Tensor,
    W: Array,
    theta: Theta,
    columns: Sequence[int],
    max_iterations: int,
) -> tuple[Array, dict[str, Tensor]]:
    """W with other columns and hyperparameters, of highest marginal likelihood near W and theta.

    Parameters
    ----------
    kernel
        Covariance of the projected rows.
    X, y
        Rows (n, D) and their standardised values (n,).
    W, theta
        Where to start: unit columns, and the kernel's hyperparameters with the noise.
    columns
        Columns of W to learn; the others are held.
    max_iterations
        Bound on the iterations of L-BFGS-B.

    Returns
    -------
    tuple
        W with unit columns, and theta.
    """
    hypers = NegativeLogPosterior(kernel, X, y, NOISE_HYPER)
    rows, block, size = X.numpy(), list(columns), W.shape[0] * len(columns)

    def split(flat: Array) -> tuple[Array, Array]:
        """W with the columns in `flat`, and their lengths before they were scaled to 1."""
        found = flat[:size].reshape(len(W), -1)
        lengths = np.linalg.norm(found, axis=0)
        learnt = W.copy()
        learnt[:, block] = found / lengths
        return learnt, lengths

    def loss(flat: Array) -> tuple[float, Array]:
        learnt, lengths = split(flat)
        value, by_logs, by_rows = hypers.at_rows(rows @ learnt, flat[size:])
        unit, by_unit = learnt[:, block], (rows.T @ by_rows)[:, block]
        across = (by_unit - unit * (unit * by_unit).sum(0)) / lengths
        return value, np.concatenate([across.reshape(-1), by_logs])

    start = np.concatenate([W[:, block].reshape(-1), hypers.logs(theta)])
    bounds = [(-LARGEST_ENTRY, LARGEST_ENTRY)] * size + hypers.bounds
    found = minimize_from(loss, [start], bounds, max_iterations)
    with torch.no_grad():
        return split(found)[0], hypers.theta(torch.as_tensor(found[size:]))


def likeliest_near_identity(gp: GP, W: Array, spread: float, max_iterations: int) -> Array:
    """W (D, D) of highest posterior density for the rows of `gp`, with its hyperparameters held.

    The entries of W - I are normal with deviation `spread` before any data.
    """
    hypers = NegativeLogPosterior(gp.kernel, gp.X, gp.y, NOISE_HYPER)
    rows, logs, eye = gp.X.numpy(), hypers.logs(gp.theta), np.eye(len(W))

    def loss(flat: Array) -> tuple[float, Array]:
        learnt = flat.reshape(W.shape)
        value, _, by_rows = hypers.at_rows(rows @ learnt, logs)
        off = (learnt - eye) / spread
        by_W = rows.T @ by_rows + off / spread
        return value + 0.5 * float(np.square(off).sum()), by_W.reshape(-1)

    bounds = [(-LARGEST_ENTRY, LARGEST_ENTRY)] * W.size
    return minimize_from(loss, [W.reshape(-1)], bounds, max_iterations).reshape(W.shape)


def align(W: Array) -> tuple[Array, Indices]:
    """Columns of W in the order and with the signs nearest to I, and which column went where.

    The model knows neither order nor sign of its directions, but mixing W with I does: without
    this, (1 - a) W + a I is no blend of the two models and may be singular.

    Returns
    -------
    tuple
        Unit columns (D, D), and for each of them its number in W.
    """
    columns = W / np.linalg.norm(W, axis=0)
    _, order = scipy.optimize.linear_sum_assignment(-np.abs(columns))
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
    """Least alpha for which (1 - alpha) W + alpha I keeps `log_ratio` within a limit."""
    if log_limit <= 0.0:
        return 1.0
    if log_ratio(W) <= log_limit:
        return 0.0
    low, high = 0.0, 1.0  # high keeps it
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if log_ratio(blend(W, middle)) > log_limit:
            low = middle
        else:
            high = middle
    return high


def outer_box(W: Array) -> tuple[Array, Array]:
    """Bounds (D,) of z = W'x for x in the unit cube."""
    return np.minimum(W, 0.0).sum(0), np.maximum(W, 0.0).sum(0)


def unprojected(z: Array, W: Array) -> Array:
    """Point x (D,) whose projection W'x is z; it may lie outside the cube."""
    return np.asarray(np.linalg.solve(W.T, z), dtype=np.float64)


def checked_delta(delta: Any) -> float | str | None:
    """Delta, an infinite one as text: descriptions of methods are JSON, which has no infinity."""
    is_number = isinstance(delta, int | float) and not isinstance(delta, bool)
    if delta is None or (is_number and 0 <= delta < math.inf):
        return delta  # type: ignore[no-any-return]
    if delta in (math.inf, "inf"):
        return "inf"
    raise MethodError(
        f"delta must be a number of at least 0, or inf for any projection, got {delta!r}"
    )
