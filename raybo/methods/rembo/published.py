"""The published REMBO: one length-scale under Algorithm 3, EI by DIRECT and by CMA-ES.

Paper     Code        Meaning
L, U      LOWEST, U   bounds of the length-scale; U shrinks when the search only exploits
l         ell         length-scale of the squared exponential kernel
t_sigma   EXPLOITING  posterior standard deviation below which a proposal exploits
C         C           consecutive proposals that exploited

The process has mean 0 and variance 1 on the losses as they are (section 2), not on standardised
ones, so that t_sigma is in the units of the objective; on standardised losses the search explores
too much for the printed gaps (Branin in 25 dimensions, one embedding that holds the optimum, 125
evaluations: gap 5e-2, against 1e-5). Where the paper is silent, the authors' released settings
count: first length-scale 0.1, noise 1e-10, EI on a logarithmic scale. Its budgets are ours.

Single points are evaluated by the hundred here, so all of it is numpy: one product with the
inverse factor per point.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import direct
from torch import Tensor

from raybo.acquisition.closed_form import log_h
from raybo.acquisition.maximizers.base import Region, values
from raybo.acquisition.maximizers.cma import CmaEs
from raybo.acquisition.maximizers.direct import Direct
from raybo.acquisition.starts import around
from raybo.arrays import Array
from raybo.errors import SurrogateError
from raybo.methods.base import Data
from raybo.methods.rembo.kernels import Features

LOWEST, HIGHEST = 0.01, 50.0  # [L, U] (section 3.4)
EXPLOITING = 0.002  # t_sigma (section 3.4)
PATIENCE = 5  # C at which U shrinks
REFIT_EVERY = 20
FIRST_LENGTHSCALE = 0.1
NOISE = 1e-10  # variance: the paper's functions have none, Cholesky needs some
LARGEST = 1e6  # losses are clipped here: further out, squares of them drown the rest
FIT_EVALUATIONS = 40  # of DIRECT on log l


@dataclass(frozen=True)
class State:
    """What Algorithm 3 carries from one proposal to the next."""

    ell: float = FIRST_LENGTHSCALE
    U: float = HIGHEST
    C: int = 0
    fitted: int = 0  # number of told points at the last fit
    step: int = -1  # number of the proposal that noted it


class Gp:
    """Zero-mean process with a squared exponential kernel of unit variance."""

    def __init__(self, X: Array, y: Array, ell: float) -> None:
        self.X, self.ell = X / ell, ell
        self.sq = (self.X**2).sum(1)
        K = self._kernel(self.X) + NOISE * np.eye(len(X))
        self.chol = _cholesky(K)
        self.y = y
        self.alpha = cho_solve((self.chol, True), y)
        self._inverse: Array | None = None

    def _kernel(self, Z: Array) -> Array:
        sq = (Z**2).sum(1)[:, None] + self.sq - 2.0 * Z @ self.X.T
        K: Array = np.exp(-0.5 * np.maximum(sq, 0.0))  # definition 4
        return K

    @property
    def log_likelihood(self) -> float:
        """Log marginal likelihood (Rasmussen & Williams 2006, eq. 2.30), up to a constant."""
        return -0.5 * float(self.y @ self.alpha) - float(np.log(self.chol.diagonal()).sum())

    def posterior(self, Z: Array) -> tuple[Array, Array]:
        """Mean and standard deviation at the rows of Z (m, p)."""
        if self._inverse is None:
            self._inverse = solve_triangular(self.chol, np.eye(len(self.X)), lower=True)
        K = self._kernel(Z / self.ell)
        half = K @ self._inverse.T
        return K @ self.alpha, np.sqrt(np.maximum(1.0 - (half**2).sum(1), 1e-18))

    def tell(self, Z: Array) -> Gp:
        """The process with pending rows told their own mean."""
        if not len(Z):
            return self
        X = np.concatenate([self.X * self.ell, Z])
        return Gp(X, np.concatenate([self.y, self.posterior(Z)[0]]), self.ell)


def search(
    data: Data, features: Features, bound: float, rng: np.random.Generator
) -> tuple[Array, dict[str, Any]]:
    """Next z, and what to note of Algorithm 3 with it.

    Parameters
    ----------
    data
        Of one embedding: X holds the rows of z.
    features
        What the kernel looks at.
    bound
        Half the width of the box of z.
    """

    def look(Z: Array) -> Array:
        return features(torch.as_tensor(Z)).numpy()

    X, y = look(data.X), np.clip(data.loss, -LARGEST, LARGEST)
    before = last_state(data)
    state = update(before, X, y)
    gp = Gp(X, y, state.ell)
    best = float(y.min())
    gp = gp.tell(look(data.pending))
    d = data.X.shape[1]

    def gain(Z: Tensor) -> Tensor:
        mean, sd = gp.posterior(features(Z).numpy())
        return torch.from_numpy(np.log(sd) + log_h((best - mean) / sd)[0])  # log EI

    near = around(data.X[[np.argmin(y)]] / (2.0 * bound) + 0.5, 16, rng)
    starts = np.concatenate([rng.random((16, d)), near])
    region = Region(np.full(d, -bound), np.full(d, bound), (2.0 * starts - 1.0) * bound)
    budget = 100 + 100 * d  # evaluations of each; the paper states none
    found = np.stack(
        [  # the better of the two (section 4.1)
            Direct(budget)(gain, region, rng),
            CmaEs(budget)(gain, region, rng),
        ]
    )
    z = found[np.argmax(values(gain, found))]  # Alg. 3, line 3
    exploits = gp.posterior(look(z[None]))[1][0] < EXPLOITING  # line 4
    state = replace(state, C=state.C + 1 if exploits else 0)  # lines 5 to 7
    changed = replace(state, step=before.step) != before
    step = len(data.loss) + len(data.pending)
    return z, {"algorithm3": asdict(replace(state, step=step))} if changed else {}


def last_state(data: Data) -> State:
    """The state noted last; that of line 1 when there is none."""
    noted = [m["algorithm3"] for m in (*data.memos, *data.pending_memos) if "algorithm3" in m]
    return State(**_last(noted)) if noted else State()


def _last(noted: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    return max(noted, key=lambda item: int(item["step"]))


def update(state: State, X: Array, y: Array) -> State:
    """Lines 10 to 16 of Algorithm 3: the length-scale fitted again, when it is time to."""
    shrink = state.C >= PATIENCE
    if not shrink and len(y) - state.fitted < REFIT_EVERY:  # line 10
        return state
    U = max(0.9 * state.ell, LOWEST) if shrink else state.U  # line 12
    ell = state.ell if U <= LOWEST else fit_lengthscale(X, y, U)  # line 15
    return State(min(ell, U), U, 0 if shrink else state.C, len(y), state.step)


def fit_lengthscale(X: Array, y: Array, U: float) -> float:
    """Length-scale in [L, U] of highest marginal likelihood, by DIRECT on its logarithm."""
    found = direct(
        lambda log: -Gp(X, y, math.exp(log[0])).log_likelihood,
        [(math.log(LOWEST), math.log(U))],
        maxfun=FIT_EVALUATIONS,
    )
    return float(math.exp(found.x[0]))


def _cholesky(K: Array) -> Array:
    """Lower factor, with the least jitter that gives one."""
    for jitter in (0.0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-3):
        try:
            factor: Array = cholesky(K + jitter * np.eye(len(K)), lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            continue
        return factor
    raise SurrogateError(f"{len(K)} rows: no Cholesky factor at jitter 1e-3; use preset 'default'")
