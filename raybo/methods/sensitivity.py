"""What a study says about its parameters: a model of its values, and their shares in it.

The model is the one of `bo` on the points that have a value, whatever method proposed them. A
parameter's share is its first-order Sobol index: the variance of the model's mean that remains
when everything but this parameter is averaged out, over the variance of the mean (Sobol 1993).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from raybo.arrays import Array, Indices
from raybo.errors import StudyError
from raybo.lazy import torch
from raybo.methods.model import mixed_kernel, standardized
from raybo.space.any_space import AnySpace
from raybo.space.design import design_size
from raybo.surrogate.gp import GP
from raybo.surrogate.linalg import one_thread
from raybo.surrogate.map import FREE_NOISE, fit, mostly_noise, starting_theta
from raybo.surrogate.outcomes import SHORT_TAIL

# A fit takes time with the third power of its rows: 300 take about a second.
MOST_ROWS = 300
# Points of the space at which the mean is averaged, and groups that a numeric column is cut into.
# A parameter without effect then gets 0.03% give or take, and a straight line loses 0.4%.
POINTS, GROUPS = 16_384, 16
_BLOCK = 1024  # points at a time, so that memory stays small in thousands of dimensions


@dataclass(frozen=True)
class Surface:
    """The model's mean of a study's losses over its space; make one with `Surface.of`."""

    space: AnySpace
    gp: GP
    loss: Array  # (n,) of the modelled rows, ascending
    y: Array  # (n,) the same, standardised

    @classmethod
    def of(cls, space: AnySpace, X: Array, loss: Array, spread: Array | None = None) -> Surface:
        """Fit the model to the rows X (n, d) and their losses; of very many rows, to some.

        `spread` are the deviations of losses that are only expected, 0 for the others.

        Raises
        ------
        StudyError
            When the data cannot tell: too few values, or all of them equal.
        """
        least = design_size(space.dim)
        if len(loss) < least:
            raise StudyError(
                f"a model of {space.dim} parameters needs at least {least} trials with a value, "
                f"there are {len(loss)}"
            )
        few = _some(loss)
        X, loss = X[few], loss[few]
        unsure = np.empty(0) if spread is None else spread[few]
        y, variances = standardized(loss, unsure, SHORT_TAIL)
        if not y.any():
            raise StudyError("all values are equal: they say nothing about the parameters")
        with one_thread():
            kernel = mixed_kernel(space, "matern52", scaled=True)
            rows, values, own = map(torch.as_tensor, (X, y, variances))
            starts = [starting_theta(kernel, FREE_NOISE), mostly_noise(kernel, FREE_NOISE)]
            theta = fit(kernel, rows, values, starts, noise=FREE_NOISE, own=own)
            order = np.argsort(loss, kind="stable")
            gp = GP.of(kernel, theta, rows, values, own=own)
            return cls(space, gp, loss[order], y[order])

    def mean(self, U: Array) -> Array:
        """Expected losses (m,) at rows U (m, d): within the range of the losses seen."""
        return np.interp(self._standardised(U), self.y, self.loss)

    @cached_property
    def explained(self) -> float:
        """Share of the variance of the values that the model predicts, each left out in turn."""
        errors = self.gp.y - self.gp.left_out().mean
        return max(0.0, 1.0 - float(errors.square().mean() / self.gp.y.var(correction=0)))

    @cached_property
    def shares(self) -> Array:
        """First-order Sobol indices (d,) of the mean; they sum to at most 1.

        Notes
        -----
        Points are drawn uniformly from the cube and grouped by a column: its values, or groups
        of equal width. The variance between the groups is reduced by what a column without
        effect has by chance, (k - 1) / (N - 1) of the rest for k groups of N points. What is
        missing to 1 are interactions. A column that is inactive for some points counts by what it
        does to all of them.
        """
        rng, columns = np.random.default_rng(0), self.space.columns
        sums, counts = np.zeros((2, len(columns), GROUPS))
        total = squares = 0.0
        places = GROUPS * np.arange(len(columns))
        for _ in range(POINTS // _BLOCK):
            U = rng.random((_BLOCK, len(columns)))
            mean = self._standardised(self.space.whole.snap(U))
            groups = np.minimum(GROUPS * U, GROUPS - 1).astype(np.intp)
            for i, column in enumerate(columns):
                grid = column.parameter.grid
                if grid is not None and grid.size < GROUPS:
                    groups[:, i] = grid.indices(U[:, i])
            flat = (groups + places).ravel()
            weights = np.repeat(mean, len(columns))
            sums += np.bincount(flat, weights, sums.size).reshape(sums.shape)
            counts += np.bincount(flat, minlength=sums.size).reshape(sums.shape)
            total, squares = total + mean.sum(), squares + (mean**2).sum()
        average = total / POINTS
        variance = squares / POINTS - average**2
        if not variance > 0.0:
            return np.zeros(len(columns))
        means = np.divide(sums, counts, out=np.full_like(sums, average), where=counts > 0)
        between = (counts * (means - average) ** 2).sum(1) / POINTS / variance
        chance = ((counts > 0).sum(1) - 1) / (POINTS - 1)
        found = np.maximum(0.0, (between - chance) / (1.0 - chance))
        return np.asarray(found / max(1.0, found.sum()))

    def _standardised(self, U: Array) -> Array:
        K = self.gp.kernel(torch.as_tensor(U), self.gp.X, self.gp.theta)
        return np.asarray((K @ self.gp.alpha + self.gp.mean).numpy())


def _some(loss: Array) -> Indices:
    """Indices of the rows to model: all, or the best and an even sample of the others."""
    if len(loss) <= MOST_ROWS:
        return np.arange(len(loss))
    ranked = np.argsort(loss, kind="stable")
    best, others = ranked[: MOST_ROWS // 5], np.sort(ranked[MOST_ROWS // 5 :])
    even = np.linspace(0, len(others) - 1, MOST_ROWS - len(best)).astype(np.intp)
    return np.sort(np.concatenate([best, others[even]]))
