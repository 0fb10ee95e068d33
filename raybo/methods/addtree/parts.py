"""Many small maximisations at once: one batched evaluation for all parts and all starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from raybo.acquisition.maximizers.lbfgsb import climb
from raybo.arrays import Array, Bools
from raybo.lazy import Tensor, torch

PartsAcquisition = Callable[[Tensor], Tensor]  # (p, s, c) -> (p, s): s points of each of p parts


@dataclass(frozen=True)
class Parts:
    """Where to search p independent parts of at most c columns, padded to c.

    Attributes
    ----------
    starts : ndarray (p, k, c)
        Snapped points to start from; padding holds any constant.
    free : ndarray of bool (p, c)
        Columns searched as continuous in [0, 1].
    grids : dict
        By column: allowed positions (p, g), filled up with NaN; all NaN in a part without.
    snap : callable
        Moves points (p, s, c) to those that can be evaluated.
    """

    starts: Array
    free: Bools
    grids: Mapping[int, Array] = field(default_factory=dict)
    snap: Callable[[Array], Array] = np.asarray


def maximize_parts(
    f: PartsAcquisition,
    parts: Parts,
    *,
    n_starts: int = 4,
    max_evaluations: int = 40,
    rounds: int = 2,
) -> tuple[Array, Array]:
    """Best point (p, c) and value (p,) found in every part.

    Screens the starts, climbs from the best of each part, then goes through the gridded columns
    one by one and takes the best position of each; `rounds` times where there are grids.
    """
    found = _values(f, parts.starts)
    top = np.argsort(-found, axis=1, kind="stable")[:, :n_starts]
    X = np.take_along_axis(parts.starts, top[:, :, None], axis=1)
    best = np.take_along_axis(found, top, axis=1)
    for _ in range(rounds if parts.grids else 1):
        X, best = _climb(f, parts, X, best, max_evaluations)
        for column, grid in parts.grids.items():
            X, best = _sweep(f, X, best, column, grid)
    winner = np.argmax(best, axis=1)
    each = np.arange(len(X))
    return X[each, winner], best[each, winner]


def _values(f: PartsAcquisition, X: Array) -> Array:
    with torch.no_grad():
        found = f(torch.as_tensor(X)).numpy()
    return np.where(np.isnan(found), -np.inf, found)


def _climb(
    f: PartsAcquisition, parts: Parts, X: Array, best: Array, max_evaluations: int
) -> tuple[Array, Array]:
    """Climb in the free columns; keep a point only if it is better once snapped."""
    p, s, c = X.shape
    if not parts.free.any():
        return X, best

    def flat(rows: Tensor) -> Tensor:  # (m, c + 1): a point and its place among the p * s
        place = rows[:, c].detach().long()
        everywhere = rows.new_zeros(p * s, c).index_copy(0, place, rows[:, :c])
        return f(everywhere.reshape(p, s, c)).reshape(p * s)[place]

    places = np.arange(p * s, dtype=np.float64)[:, None]
    rows = np.concatenate([X.reshape(p * s, c), places], axis=1)
    free = np.concatenate([np.repeat(parts.free, s, axis=0), np.zeros((p * s, 1), bool)], axis=1)
    moving = free.any(axis=1)
    lower, upper = np.where(free, 0.0, rows), np.where(free, 1.0, rows)
    climbed, _ = climb(flat, rows[moving], lower[moving], upper[moving], max_evaluations)
    rows[moving] = climbed
    return _better(f, parts.snap(rows[:, :c].reshape(p, s, c)), X, best)


def _sweep(
    f: PartsAcquisition, X: Array, best: Array, column: int, grid: Array
) -> tuple[Array, Array]:
    """Best position of one gridded column, the others held."""
    p, s, c = X.shape
    g = grid.shape[1]
    moved = np.repeat(X[:, :, None, :], g, axis=2)
    moved[..., column] = np.where(np.isnan(grid[:, None]), moved[..., column], grid[:, None])
    found = _values(f, moved.reshape(p, s * g, c)).reshape(p, s, g)
    top = np.argmax(found, axis=2)
    chosen = np.take_along_axis(moved, top[:, :, None, None], axis=2)[:, :, 0]
    gain = np.take_along_axis(found, top[:, :, None], axis=2)[:, :, 0]
    better = gain > best
    return np.where(better[..., None], chosen, X), np.where(better, gain, best)


def _better(f: PartsAcquisition, new: Array, X: Array, best: Array) -> tuple[Array, Array]:
    gain = _values(f, new)
    better = gain > best
    return np.where(better[..., None], new, X), np.where(better, gain, best)
