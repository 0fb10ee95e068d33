"""Multi-start L-BFGS in a box: one state per start, one batched evaluation for all of them.

The starts are decoupled: each has its own history, direction and step, and leaves the batch when
it has converged. Bounds are kept by two-metric projection (Bertsekas 1982): the quasi-Newton
direction is taken over the free coordinates and the step is projected to the box. scipy's
L-BFGS-B takes one start at a time, and stacking starts into one problem couples their line
searches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from raybo.acquisition.maximizers.base import Acquisition, Region, values, with_gradient
from raybo.acquisition.maximizers.grid import climb_grid
from raybo.acquisition.maximizers.steps import climb_by_steps
from raybo.arrays import Array, Indices

_MEMORY = 6  # steps; 3 to 20 serve (Nocedal & Wright 2006, section 7.2), and each costs time
_ARMIJO = 1e-4  # c_1 of Nocedal & Wright (2006), section 3.1
_BACKTRACK = 0.3  # within 0.1 to 0.5 (Dennis & Schnabel 1983, section 6.3.2)
_ENOUGH = 1e-5  # a step that gains less than this share of |f| is the last: a log EI to 1e-3

ByRow = Callable[[Indices], Acquisition]  # rows (m,), or () for any m -> their acquisition


@dataclass(frozen=True)
class Lbfgsb:
    """Screen the region's starts, climb from the best of them, in the box and on the grids."""

    n_starts: int = 6
    max_evaluations: int = 40
    rounds: int = 3  # alternations of climbing in the box and on the grids, where there are any
    flat: float = 0.0  # a row all of whose partial derivatives are below this share of |f| stays

    def __call__(self, f: Acquisition, region: Region, rng: np.random.Generator) -> Array:
        """Best point found (d,)."""
        found = values(f, region.starts, region.device)
        top = np.argsort(-found, kind="stable")[: self.n_starts]
        X, best = self.search(f, region, region.starts[top], found[top], rng)
        return np.asarray(X[np.argmax(best)])

    def search(
        self, f: Acquisition, region: Region, X: Array, best: Array, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Local maxima (m, d) reached from the rows of X of values `best`, and their values."""
        if region.listed:
            return X, best
        if len(region.grids) == region.dim:
            return climb_grid(f, region, X, best, rng)
        X, best = X.copy(), best.copy()
        rows = np.arange(len(X))  # to be climbed from: those that a grid has moved
        for _ in range(self.rounds if region.grids else 1):
            x, gain = self._climb(lambda _: f, region, X[rows], best[rows])
            if region.walled:
                x, gain = climb_by_steps(f, region, x, gain, rng)
            X[rows], best[rows] = (
                climb_grid(f, region, x, gain, rng) if region.grids else (x, gain)
            )
            rows = rows[(X[rows] != x).any(axis=1)]
            if not len(rows):
                break
        return X, best

    def search_each(
        self, f: ByRow, region: Region, X: Array, best: Array, rng: np.random.Generator
    ) -> Array:
        """Local maxima (m, d), reached from each row of X on an acquisition of its own."""
        if region.listed:
            return X
        if len(region.grids) < region.dim:
            X, best = self._climb(f, region, X, best)
        if not region.grids and not region.walled:
            return X
        found = X[:0]
        for row in range(len(X)):
            own, here, value = f(np.array(row)), X[[row]], best[[row]]
            if region.walled:
                here, value = climb_by_steps(own, region, here, value, rng)
            if region.grids:
                here, value = climb_grid(own, region, here, value, rng)
            met = (found == here).all(axis=1).any()  # on a grid two may end at the same point
            found = np.concatenate([found, X[[row]] if met else here])
        return found

    def _climb(self, f: ByRow, region: Region, X: Array, best: Array) -> tuple[Array, Array]:
        """Climb with the gridded columns held; keep a point only if it is better once snapped."""
        lower = np.broadcast_to(region.lower, X.shape).copy()
        upper = np.broadcast_to(region.upper, X.shape).copy()
        held = list(region.grids)
        lower[:, held] = upper[:, held] = X[:, held]
        climbing = _Climb(f, X, lower, upper, region.device, self.flat, _ENOUGH)
        climbed, gain = climbing.run(self.max_evaluations)
        snapped = region.snap(climbed)
        if not np.array_equal(snapped, climbed):
            gain = values(f(np.arange(len(X))), snapped, region.device)
        better = gain > best
        return np.where(better[:, None], snapped, X), np.where(better, gain, best)


def climb(
    f: Acquisition,
    X: Array,
    lower: Array,
    upper: Array,
    max_evaluations: int,
    device: str = "cpu",
    flat: float = 0.0,
    enough: float = 1e-9,
) -> tuple[Array, Array]:
    """Climb f from every row of X inside the rows of bounds.

    Parameters
    ----------
    f
        Function to maximise, (m, d) -> (m,), each value a function of its own row.
    X, lower, upper
        Starts and bounds (m, d).
    max_evaluations
        Bound on the batched evaluations.
    flat
        Rows all of whose partial derivatives are below this share of |f| stay where they are.
    enough
        A row stops after a step that gains less than this share of |f|.

    Returns
    -------
    tuple
        Points (m, d) and their values (m,), none below its start's.
    """
    return _Climb(lambda _: f, X, lower, upper, device, flat, enough).run(max_evaluations)


class _Climb:
    """State of all starts; signs are turned here once, to minimise F = -f."""

    def __init__(
        self,
        f: ByRow,
        X: Array,
        lower: Array,
        upper: Array,
        device: str,
        flat: float,
        enough: float,
    ) -> None:
        self.f, self.device, self.enough = f, device, enough
        self.lower, self.upper = lower, upper
        self.X = np.clip(X, lower, upper)
        m, d = X.shape
        self.F, self.G = self._evaluate(self.X, np.arange(m))
        self.S, self.Y = np.zeros((2, _MEMORY, m, d))  # steps, changes of gradient; newest first
        self.rho = np.zeros((_MEMORY, m))
        self.count = np.zeros(m, dtype=int)
        self.direction = np.zeros((m, d))
        self.step = np.ones(m)
        self._aim(np.arange(m))
        self.active = np.isfinite(self.F) & (np.abs(self.direction).max(1) > 0)
        self.active &= np.abs(self.G).max(1) >= flat * np.abs(np.where(self.active, self.F, 0.0))

    def run(self, max_evaluations: int) -> tuple[Array, Array]:
        for _ in range(max_evaluations):
            rows = np.flatnonzero(self.active)
            if not len(rows):
                break
            self._advance(rows)
        return self.X, -self.F

    def _evaluate(self, X: Array, rows: Indices) -> tuple[Array, Array]:
        value, gradient = with_gradient(self.f(rows), X, self.device)
        F, G = -value, -gradient
        bad = ~(np.isfinite(F) & np.isfinite(G).all(1))
        F[bad], G[bad] = np.inf, 0.0
        return F, G

    def _advance(self, rows: Indices) -> None:
        """One trial step for each of `rows`."""
        X, G = self.X[rows], self.G[rows]
        step = self.step[rows, None] * self.direction[rows]
        new = np.clip(X + step, self.lower[rows], self.upper[rows])
        moved = new - X
        F, gradient = self._evaluate(new, rows)
        decrease = self.F[rows] - F
        ok = decrease >= -_ARMIJO * (G * moved).sum(1)
        ok &= np.isfinite(F)
        taken = rows[ok]
        self._remember(taken, moved[ok], (gradient - G)[ok])
        self.X[taken], self.F[taken], self.G[taken] = new[ok], F[ok], gradient[ok]
        self._aim(taken)
        # Relative to F alone: an expected improvement of 1e-12 is climbed like any other.
        self.active[taken] = (decrease[ok] > self.enough * np.abs(F[ok])) & (
            np.abs(self.direction[taken]).max(1, initial=0.0) > 1e-10
        )
        back = rows[~ok]
        self.step[back] *= _BACKTRACK
        self.active[back] = self.step[back] * np.abs(self.direction[back]).max(1, initial=0) > 1e-9

    def _remember(self, rows: Indices, s: Array, y: Array) -> None:
        curvature = (s * y).sum(1)
        good = curvature > 1e-10 * np.sqrt((s * s).sum(1) * (y * y).sum(1))
        good &= curvature > 1e-300  # its reciprocal is finite
        rows, s, y = rows[good], s[good], y[good]
        for memory, newest in ((self.S, s), (self.Y, y), (self.rho, 1.0 / curvature[good])):
            memory[1:, rows] = memory[:-1, rows]
            memory[0, rows] = newest
        self.count[rows] += 1

    def _aim(self, rows: Indices) -> None:
        """New directions for `rows`: the two-loop recursion over their free coordinates."""
        X, G = self.X[rows], self.G[rows]
        blocked = ((self.lower[rows] >= X) & (G > 0)) | ((self.upper[rows] <= X) & (G < 0))
        g = np.where(blocked, 0.0, G)
        q = g.copy()
        count = self.count[rows]
        depth = min(_MEMORY, int(count.max(initial=0)))
        free = ~blocked
        S, Y, rho = (
            self.S[:depth, rows] * free,
            self.Y[:depth, rows] * free,
            self.rho[:depth, rows],
        )
        a = np.zeros((depth, len(rows)))
        for j in range(depth):  # a memory that a row does not have yet has rho 0
            a[j] = rho[j] * _dot(S[j], q)
            q -= a[j, :, None] * Y[j]
        if depth:
            norm = _dot(Y[0], Y[0])
            fits = norm > 0
            scale = np.where(fits, _dot(S[0], Y[0]) / np.where(fits, norm, 1.0), 1.0)
            q *= np.where(scale > 0, scale, 1.0)[:, None]
        for j in reversed(range(depth)):
            q += (a[j] - rho[j] * _dot(Y[j], q))[:, None] * S[j]
        direction = np.where(blocked, 0.0, -q)
        uphill = (direction * g).sum(1) >= -1e-12 * np.abs(g).sum(1) * np.abs(direction).sum(1)
        first = uphill | (count == 0)
        # Without curvature: a step of a twentieth of the box along the steepest free descent.
        size = np.abs(g).max(1, initial=0.0)
        width = (self.upper[rows] - self.lower[rows]).max(1, initial=0.0)
        # In this order: the reciprocal of a slope below 1e-308 overflows.
        scaled = -(g / np.where(size > 0, size, 1.0)[:, None]) * (0.05 * width)[:, None]
        self.direction[rows] = np.where(first[:, None], scaled, direction)
        self.step[rows] = 1.0


def _dot(A: Array, B: Array) -> Array:
    """Products of the rows of A and B."""
    return np.asarray(np.einsum("ij,ij->i", A, B))
