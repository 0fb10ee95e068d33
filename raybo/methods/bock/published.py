"""BOCK: Bayesian optimisation with cylindrical kernels.

Oh, Gavves, Welling (2018), sections 3 and 4 and the supplement.

Paper            Code              Meaning
T(x) = (r, a)    cylinder(x)       radius, divided by R = sqrt(d), and direction; eq. 5
K_cyl            Cylindrical       radial kernel times angular kernel; eqs. 6 to 8
P, c_p           degree, weights   degree and weights of the angular kernel; eq. 7
alpha, beta      alpha, beta       of the Kumaraswamy warping of the radius; eq. 8
x_center         at_centre         datum that takes the direction of the query; section 3.3
mu, sigma^2      CentreGP          posteriors given D, one for each sample; eqs. 2, 3 and 10
sigma_obs^2      noise             variance of the observational noise; eqs. 2 and 3

What the paper leaves open. From the authors' code: the bounds and priors of the hyperparameters,
ten samples that continue one chain, its burn-in, the two first points and the jittered best ones.
Chosen here: the weights sum to 1 and the variance is a hyperparameter; the mean is the likeliest
constant; the chain sees the rows off the centre; losses are standardised; the steps of Adam. The
supplement's log(alpha) > 0 > log(beta) makes a convex warping where section 3.2 asks for a concave
one, so the signs are those of the authors' code. What the paper does not have: proposals stay in
the user's box, and the ball around it is only the scale of the radii; pending points are at their
posterior mean; columns of integers are searched on their grids; `inference="map"` replaces the
samples by one fit, for quick trials.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raybo.acquisition.maximizers.base import Acquisition, Region, values
from raybo.acquisition.maximizers.grid import climb_grid
from raybo.acquisition.starts import spread
from raybo.arrays import Array
from raybo.lazy import torch
from raybo.methods.base import Data, Proposal
from raybo.methods.bock.centre import CentreGP, off_centre
from raybo.methods.bock.design import N_INIT, design_point
from raybo.methods.bock.kernel import NOISE_HYPER, Cylindrical
from raybo.methods.bock.options import check_options
from raybo.methods.bock.samples import N_SAMPLES, mean_ei, sweep
from raybo.methods.options import check_choice
from raybo.methods.search import search_region, success_of, untried
from raybo.space.any_space import AnySpace
from raybo.surrogate.linalg import one_thread
from raybo.surrogate.map import NegativeLogPosterior, minimize_from, starting_theta
from raybo.surrogate.outcomes import standardize

BURN_IN = 99  # sweeps before the first sample; the authors' code
N_SOBOL = 2**14  # points that are screened; section 4 has 20,000, a Sobol set has a power of two
N_JITTERED, JITTER = 10, 1e-3  # points about the best one, and their deviation; the authors' code
N_STARTS = 20  # of Adam; section 4
RATE = 0.005  # of Adam in the unit cube: 0.01 in [-1, 1]; the authors' code
STEPS, PATIENCE = 200, 10  # of Adam, and those without a gain that end it: time against precision


@dataclass(frozen=True)
class PublishedBock:
    """Search by radius and direction from the centre of the space."""

    space: AnySpace
    n_init: int | None = None  # the centre, then uniform points; 2 unless given
    degree: int = 3  # P; section 4.1, "Robustness"
    warp: bool = True  # False: BOCK-W
    boundary: bool = False  # True: BOCK+B
    inference: str = "sample"  # or "map"

    lanes = 1

    def __post_init__(self) -> None:
        check_options(self.space, self.n_init, self.degree, self.warp, self.inference)
        check_choice("boundary", self.boundary, (True, False))

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Maximum of the expected improvement, averaged over the samples (section 4)."""
        X, n_init = torch.as_tensor(data.X), self.n_init or N_INIT
        if data.needs_design(n_init) or not off_centre(X).any():
            return Proposal(x=design_point(self.space, data, rng))
        with one_thread():
            y = torch.as_tensor(standardize(data.loss))
            kernel = Cylindrical(self.space.dim, self.degree, self.warp)
            off = off_centre(X)
            density = NegativeLogPosterior(kernel, X[off], y[off], NOISE_HYPER)
            samples, memo = self.samples(density, data, rng)
            theta = density.theta(torch.as_tensor(samples))
            gp = CentreGP.of(kernel, theta, X, y, boundary=self.boundary)
            gp = gp.condition_on_mean(torch.as_tensor(data.pending))
            f = mean_ei(gp.posterior, y.min().expand(len(samples)), len(gp.gp.X))
            success = success_of(self.space, data)
            f = untried(success.weigh(f), self.space, data)
            x = adam(f, self._region(data, rng), rng)
        return Proposal(x=x, memo=memo | success.memo)

    def samples(
        self, density: NegativeLogPosterior, data: Data, rng: np.random.Generator
    ) -> tuple[Array, dict[str, Any]]:
        """Log-hyperparameters (s, h), and what to remember of them."""
        last, n = data.last_fit("samples"), len(data.loss)
        if last is not None and last["fitted"] == n:
            return np.array(last["samples"]), {}
        if last is None:
            states = density.logs(starting_theta(density.kernel, NOISE_HYPER))[None]
        else:
            states = np.array(last["samples"])
        if self.inference == "map":
            states = minimize_from(density, [states[-1]], density.bounds)[None]
        else:
            states = next_states(density, states[-1:], rng, burn_in=0 if last else BURN_IN)
        return states, {"samples": states.tolist(), "fitted": n}

    def _region(self, data: Data, rng: np.random.Generator) -> Region:
        """The box, with Sobol points, the data and jittered best points (section 4)."""
        dim = self.space.dim
        near = data.best_rows(1) + JITTER * rng.standard_normal((N_JITTERED, dim))
        starts = np.concatenate([spread(dim, N_SOBOL, rng), data.X, np.clip(near, 0.0, 1.0)])
        return replace(search_region(self.space, data, rng), starts=self.space.snap(starts))


def next_states(
    density: NegativeLogPosterior, state: Array, rng: np.random.Generator, burn_in: int
) -> Array:
    """Ten further states (s, h) of the chain that is at `state` (1, h)."""
    for _ in range(burn_in):
        state = sweep(density, state, rng)
    states = [state := sweep(density, state, rng) for _ in range(N_SAMPLES)]
    return np.concatenate(states)


def adam(
    f: Acquisition,
    region: Region,
    rng: np.random.Generator,
    n_starts: int = N_STARTS,
    steps: int = STEPS,
) -> Array:
    """Best point (d,) that Adam reaches from the best of the region's starts (section 4)."""
    found = values(f, region.starts)
    top = np.argsort(-found, kind="stable")[:n_starts]
    X, best = region.starts[top], found[top]
    climbed = region.snap(climb(f, region, X, steps))
    gain = values(f, climbed)
    X, best = np.where((gain > best)[:, None], climbed, X), np.maximum(gain, best)
    if region.grids:
        X, best = climb_grid(f, region, X, best, rng)
    return np.asarray(X[np.argmax(best)])


def climb(f: Acquisition, region: Region, X: Array, steps: int) -> Array:
    """Best point on the way of Adam from each row of X; columns on grids do not move."""
    lower, upper = torch.as_tensor(region.lower), torch.as_tensor(region.upper)
    Z = torch.tensor(X, requires_grad=True)
    optimizer = torch.optim.Adam([Z], lr=RATE, maximize=True)
    top, best = Z.detach().clone(), torch.full((len(X),), -torch.inf, dtype=torch.float64)
    since = 0
    for _ in range(steps):
        value = f(Z)
        (gradient,) = torch.autograd.grad(value.sum(), Z)
        gradient[:, list(region.grids)] = 0.0
        Z.grad = gradient.nan_to_num(0.0, 0.0, 0.0)
        with torch.no_grad():
            gains = value > best
            since = 0 if gains.any() else since + 1
            top, best = torch.where(gains[:, None], Z, top), torch.where(gains, value, best)
            if since == PATIENCE:
                break
            optimizer.step()
            Z.clamp_(lower, upper)
    return top.numpy()
