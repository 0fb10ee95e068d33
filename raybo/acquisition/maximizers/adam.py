"""Adam (Kingma & Ba 2015) from many starts at once, projected to the box."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from raybo.acquisition.maximizers.base import Acquisition, Region, values
from raybo.acquisition.maximizers.grid import climb_grid
from raybo.arrays import Array

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8  # Kingma & Ba, algorithm 1


@dataclass(frozen=True)
class Adam:
    """Screen the region's starts, climb from the best of them with steps of a fixed rate."""

    n_starts: int = 20
    steps: int = 200
    rate: float = 0.005  # of the width of the box; BOCK: 0.01 of [-1, 1]
    patience: int = 10  # steps without a gain after which a start rests

    def __call__(self, f: Acquisition, region: Region, rng: np.random.Generator) -> Array:
        """Best point found (d,)."""
        found = values(f, region.starts, region.device)
        top = np.argsort(-found, kind="stable")[: self.n_starts]
        X, best = region.starts[top], found[top]
        if len(region.grids) < region.dim:
            climbed = region.snap(self._climb(f, region, X, best))
            gain = values(f, climbed, region.device)
            better = gain > best
            X, best = np.where(better[:, None], climbed, X), np.where(better, gain, best)
        if region.grids:
            X, best = climb_grid(f, region, X, best, rng)
        return np.asarray(X[np.argmax(best)])

    def _climb(self, f: Acquisition, region: Region, X: Array, best: Array) -> Array:
        """Best point on the way of every start; gridded columns are held."""
        step = self.rate * (region.upper - region.lower)
        step[list(region.grids)] = 0.0
        top, best, X = X.copy(), best.copy(), X.copy()
        first, second = np.zeros_like(X), np.zeros_like(X)  # moments of the gradient
        since = np.zeros(len(X), dtype=int)
        for t in range(1, self.steps + 1):
            rows = np.flatnonzero(since < self.patience)
            if not len(rows):
                break
            value, gradient = _evaluate(f, X[rows], region.device)
            rises = value > best[rows]
            since[rows] = np.where(rises, 0, since[rows] + 1)
            top[rows[rises]], best[rows[rises]] = X[rows[rises]], value[rises]
            first[rows] = _BETA1 * first[rows] + (1 - _BETA1) * gradient
            second[rows] = _BETA2 * second[rows] + (1 - _BETA2) * gradient**2
            mean, spread = first[rows] / (1 - _BETA1**t), second[rows] / (1 - _BETA2**t)
            moved = X[rows] + step * mean / (np.sqrt(spread) + _EPSILON)
            X[rows] = np.clip(moved, region.lower, region.upper)
        return top


def _evaluate(f: Acquisition, X: Array, device: str) -> tuple[Array, Array]:
    """Values and gradients; what is not finite is worthless and flat."""
    Z = torch.as_tensor(X, device=device).requires_grad_()
    value = f(Z)
    (gradient,) = torch.autograd.grad(value.sum(), Z)
    F, G = value.detach().cpu().numpy(), gradient.cpu().numpy()
    bad = ~(np.isfinite(F) & np.isfinite(G).all(1))
    return np.where(bad, -np.inf, F), np.where(bad[:, None], 0.0, G)
