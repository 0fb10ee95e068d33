"""Fit of the kernel `LearntRows`: many short starts, with the gradient by hand.

The likelihood has as many maxima as there are wrong guesses of the rows that matter, so what
counts is the number of starts that a fit can afford. Hence numpy, where a value and its gradient
cost a fraction of what they cost through autograd at the sizes of one embedding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.optimize import minimize
from torch import Tensor

from raybo.arrays import Array
from raybo.errors import SurrogateError
from raybo.methods.rembo.features import LearntRows
from raybo.surrogate.gp import MEAN
from raybo.surrogate.kernels.base import Hyper, LogNormal, Theta
from raybo.surrogate.kernels.stationary import matern52_and_slope

RANDOM_STARTS = 3  # with rows drawn as A was
FIRST_STARTS = 8  # the same in the first fit, which has no last one to go on from
MAX_ITERATIONS = 120
_JITTER = 1e-6
_NO_FACTOR = 1e10


class Target:
    """Negative log posterior of (B, log length-scales, log noise), as one flat vector."""

    def __init__(self, kernel: LearntRows, Z: Array, y: Array, noise: Hyper) -> None:
        self.shape = (kernel.n_rows, kernel.dim)
        self.Z, self.y = Z, y
        self.hypers = {h.name: h for h in (*kernel.hypers, noise)}
        self.diagonal = np.arange(len(y))

    def split(self, flat: Array) -> tuple[Array, Array, float]:
        """B (e, d), log length-scales (e,), log noise."""
        e, d = self.shape
        return flat[: e * d].reshape(e, d), flat[e * d : -1], float(flat[-1])

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Bounds of the flat vector."""
        e, d = self.shape
        names = ["rows"] * (e * d) + ["lengthscale"] * e + ["noise"]
        return [(math.log(self.hypers[n].lower), math.log(self.hypers[n].upper)) for n in names]

    def __call__(self, flat: Array) -> tuple[float, Array]:
        """Value and gradient."""
        B, logs, log_noise = self.split(flat)
        inner = self.Z @ B.T
        scale = 0.5 * np.exp(-logs)
        F = np.clip(inner, -1.0, 1.0) * scale
        K, slope = _correlations(F)
        noise = math.exp(log_noise)
        K[self.diagonal, self.diagonal] += noise
        solved = _solve(K, self.y)
        if solved is None:
            return _NO_FACTOR, np.zeros_like(flat)
        value, inverse, alpha, _ = solved
        G = 0.5 * (inverse - np.outer(alpha, alpha))  # d value / d K (Rasmussen 2006, eq. 5.9)
        W = G * slope
        dF = 4.0 * (W.sum(1)[:, None] * F - W @ F)
        dB = (dF * (np.abs(inner) < 1.0) * scale).T @ self.Z
        parts = [("rows", B, dB), ("lengthscale", logs, -(dF * F).sum(0))]
        parts.append(("noise", np.array(log_noise), np.array(noise * np.trace(G))))
        gradient = []
        for name, at, slope_at in parts:
            penalty, push = _penalty(self.hypers[name], at)
            value += penalty
            gradient.append(np.ravel(slope_at + push))
        return value, np.concatenate(gradient)

    def mean(self, flat: Array) -> float:
        """Constant mean of highest likelihood."""
        B, logs, log_noise = self.split(flat)
        K, _ = _correlations(np.clip(self.Z @ B.T, -1.0, 1.0) * 0.5 * np.exp(-logs))
        K[self.diagonal, self.diagonal] += math.exp(log_noise)
        solved = _solve(K, self.y)
        return 0.0 if solved is None else solved[3]


def fit_rows(
    kernel: LearntRows,
    X: Tensor,
    y: Tensor,
    starts: Sequence[Theta],
    *,
    noise: Hyper,
    rng: np.random.Generator,
) -> dict[str, Tensor]:
    """Hyperparameters of highest posterior density found; compare `raybo.surrogate.map.fit`.

    Parameters
    ----------
    kernel
        With the number of rows to learn.
    X, y
        Rows (n, d) of z and their standardised values (n,).
    starts
        The last fit, or where a first one starts.
    noise
        Bounds, start and prior of the noise variance.
    rng
        Draws the other starts: rows drawn as A was, and the last fit with some rows drawn anew.
    """
    target = Target(kernel, X.cpu().numpy(), y.cpu().numpy(), noise)
    given = [_flat(theta) for theta in starts]
    fresh = [_flat(_fresh(kernel, noise, rng)) for _ in range(_n_random(starts))]
    best: tuple[float, Array] | None = None
    for start in [*given, *(_crossed(given[0], f, kernel, rng) for f in fresh[:1]), *fresh]:
        found = minimize(
            target,
            np.clip(start, *np.transpose(target.bounds)),
            jac=True,
            method="L-BFGS-B",
            bounds=target.bounds,
            options={"maxiter": MAX_ITERATIONS, "ftol": 1e-7},
        )
        if found.fun < _NO_FACTOR and (best is None or found.fun < best[0]):
            best = (float(found.fun), found.x)
    if best is None:
        raise SurrogateError(f"{len(y)} rows: no start gives a finite likelihood")
    B, logs, log_noise = target.split(best[1])
    values = {"rows": np.exp(B), "lengthscale": np.exp(logs), "noise": math.exp(log_noise)}
    return {
        name: torch.as_tensor(value, dtype=torch.float64, device=X.device)
        for name, value in {**values, MEAN: target.mean(best[1])}.items()
    }


def _n_random(starts: Sequence[Theta]) -> int:
    fitted = any(MEAN in theta for theta in starts)
    return RANDOM_STARTS if fitted else FIRST_STARTS


def _fresh(kernel: LearntRows, noise: Hyper, rng: np.random.Generator) -> dict[str, Tensor]:
    hypers = {h.name: h for h in kernel.hypers}
    lengthscale = hypers["lengthscale"]
    return {
        "rows": torch.as_tensor(np.exp(rng.standard_normal(hypers["rows"].shape))),
        "lengthscale": torch.full(lengthscale.shape, lengthscale.start, dtype=torch.float64),
        "noise": torch.tensor(noise.start, dtype=torch.float64),
    }


def _crossed(last: Array, fresh: Array, kernel: LearntRows, rng: np.random.Generator) -> Array:
    """The last fit with about half of its rows drawn anew."""
    e, d = kernel.n_rows, kernel.dim
    anew = rng.random(e) < 0.5
    moved = last.copy()
    moved[: e * d] = np.where(np.repeat(anew, d), fresh[: e * d], last[: e * d])
    moved[e * d : -1] = np.where(anew, fresh[e * d : -1], last[e * d : -1])
    return moved


def _flat(theta: Theta) -> Array:
    parts = [theta[name].detach().cpu().numpy() for name in ("rows", "lengthscale", "noise")]
    flat: Array = np.log(np.concatenate([np.ravel(part) for part in parts]))
    return flat


def _correlations(F: Array) -> tuple[Array, Array]:
    """Correlations of the rows of F, and their derivatives in the squared distance."""
    size = (F * F).sum(1)
    sq = np.maximum(size[:, None] + size - 2.0 * (F @ F.T), 0.0)
    return matern52_and_slope(sq, np.exp)


def _solve(K: Array, y: Array) -> tuple[float, Array, Array, float] | None:
    """Negative log likelihood up to a constant, K^-1, K^-1 (y - mean) and the best mean."""
    factor, failed = dpotrf(K, lower=1)
    if failed:
        factor, failed = dpotrf(K + _JITTER * np.eye(len(K)), lower=1)
        if failed:
            return None
    inverse, _ = dpotri(factor, lower=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    rows = inverse.sum(1)
    mean = float(rows @ y) / float(rows.sum())
    residual = y - mean
    alpha = inverse @ residual
    value = 0.5 * float(residual @ alpha) + float(np.log(factor.diagonal()).sum())
    return value, inverse, alpha, mean


def _penalty(hyper: Hyper, log: Array) -> tuple[float, Array]:
    """Negative log prior and its gradient in the logarithm of the hyperparameter."""
    prior = hyper.prior
    if not isinstance(prior, LogNormal):
        raise SurrogateError(f"{hyper.name!r}: a fit of rows wants a LogNormal prior, got {prior}")
    t = (log - prior.mu) / prior.sigma
    return float((log + 0.5 * t * t).sum()), 1.0 + t / prior.sigma
