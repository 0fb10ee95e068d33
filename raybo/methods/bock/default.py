"""BOCK: Bayesian optimisation with cylindrical kernels.

Oh, Gavves, Welling (2018), sections 3 and 4 and the supplement.

Paper            Code              Meaning
T(x) = (r, a)    cylinder(x)       radius, divided by R = sqrt(d), and direction; eq. 5
K_r, K_a, P      Cylindrical       radial and angular factors of the kernel, degree; eqs. 6 to 8
x_center         at_centre         datum that takes the direction of the query; section 3.3
mu, sigma^2      CylinderGP        posteriors given D, one for each sample; eqs. 2, 3 and 10
-                logs              samples (s, h) of the log-hyperparameters

Departures. Proposals stay in the user's box: the ball around it is only the scale of the radii.
Losses are standardised and pending points are told their posterior mean. By default, further:
directions fade towards the centre (kernels/cylindrical.py), which makes it a point like any other;
losses are bent by the power that makes them likeliest; ten chains, moved in turns as the data
grow, stand for ten states of one; the improvement is over the posterior mean of the data;
multi-start L-BFGS. preset="paper" leaves the datum at the centre out of the likelihood, has ten
states of one chain at every ask, after a burn-in of 99, the improvement over the best loss, and
Adam from the best 20 of 2^14 Sobol points (paper: 20,000), the data and jittered best points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from raybo.acquisition.functions import log_ei
from raybo.acquisition.maximizers.adam import Adam
from raybo.acquisition.maximizers.base import Acquisition, Region, values
from raybo.acquisition.maximizers.lbfgsb import Lbfgsb
from raybo.acquisition.starts import spread
from raybo.arrays import Array
from raybo.errors import SpaceError
from raybo.methods.base import Data, Proposal
from raybo.methods.bock.kernel import Cylindrical, cylinder
from raybo.methods.bock.posterior import NOISE_HYPER, CylinderData, CylinderGP, HyperDensity
from raybo.methods.bock.slice_sampling import slice_sweep
from raybo.methods.model import search_region, untried
from raybo.methods.options import PRESETS, check_choice, check_count, require_flat
from raybo.space.any_space import AnySpace
from raybo.space.design import centre
from raybo.surrogate.gp import NOISE
from raybo.surrogate.kernels.base import starting_theta
from raybo.surrogate.linalg import one_thread
from raybo.surrogate.map import fit
from raybo.surrogate.outcomes import bend, standardize

NDArrayInt = np.ndarray[tuple[int], np.dtype[np.intp]]
NDArrayBool = np.ndarray[tuple[int], np.dtype[np.bool_]]

N_SAMPLES = 10  # of the hyperparameters; the authors' code
BURN_IN = 99  # sweeps of the paper's chain before the first sample; the authors' code
FULL_TURN = 200  # chains moved at an ask * rows: ten up to 20 rows, one from 200 on
POWERS = (1.0, 0.5, 0.0, -1.0)  # by which losses may be bent
SCREENERS = 3  # samples that judge the many starts; all of them judge the best of these
CHUNK = 200_000  # entries of a covariance made at once: they stay in the cache


@dataclass(frozen=True)
class Bock:
    """Search by radius and direction from the centre of the space."""

    space: AnySpace
    preset: str = "default"
    n_init: int | None = None  # the centre, then uniform points; 2 unless given
    degree: int = 3  # P, of the angular kernel
    warp: bool = True  # False: BOCK-W
    boundary: bool = False  # True: BOCK+B
    inference: str = "sample"  # or "map": one fit instead of ten samples, faster

    lanes = 1

    def __post_init__(self) -> None:
        check_choice("preset", self.preset, PRESETS)
        check_count("n_init", self.n_init)
        check_count("degree", self.degree)
        check_choice("warp", self.warp, (True, False))
        check_choice("boundary", self.boundary, (True, False))
        check_choice("inference", self.inference, ("sample", "map"))
        require_flat("bock", self.space)
        name = next((c.name for c in self.space.columns if c.kind == "categorical"), None)
        if name is not None:
            raise SpaceError(
                f"method 'bock' needs a centre and directions from it, and {name!r} is "
                "Categorical: its values have no order; use method 'bo'"
            )

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Maximum of the expected improvement, averaged over the hyperparameters."""
        n_init = 2 if self.n_init is None else self.n_init
        if data.needs_design(n_init) or not off_centre(data.X).any():
            return Proposal(x=self._design(data, rng))
        paper = self.preset == "paper"
        with one_thread():
            rows, logs, memo = self._model(data, rng)
            gp = CylinderGP.of(rows, rows.theta(logs), boundary=self.boundary)
            gp = gp.told_mean(torch.as_tensor(data.pending))
            best = rows.least.expand(len(logs)) if paper else gp.fitted_min()
            f = untried(mean_ei(gp, best), self.space, data)
            region = self._region(data, rng)
            if paper:
                return Proposal(x=Adam()(f, region, rng), memo=memo)
            some = untried(mean_ei(gp.first(SCREENERS), best[:SCREENERS]), self.space, data)
            x = Lbfgsb()(f, screened(some, region), rng)
        return Proposal(x=x, memo=memo)

    def _design(self, data: Data, rng: np.random.Generator) -> Array:
        """The centre, then uniform points (section 4 and the authors' code)."""
        first = centre(self.space)
        asked = np.concatenate([data.X, data.pending])
        return self.space.sample(1, rng)[0] if (asked == first).all(1).any() else first

    def _model(
        self, data: Data, rng: np.random.Generator
    ) -> tuple[CylinderData, Array, dict[str, Any]]:
        """Data on the cylinder, samples (s, h) of the hyperparameters, and what is new in them."""
        n, paper = len(data.loss), self.preset == "paper"
        kernel = Cylindrical(self.space.dim, self.degree, self.warp, fades=not paper)
        last = remembered(data, 1 + sum(math.prod(h.shape) for h in kernel.hypers))
        samples, power, fitted = last.samples, last.power, last.fitted
        due = n - fitted >= max(1, fitted // 10)
        if last.rows == n or (self.inference == "map" and not due):
            return on_cylinder(kernel, data, power)[0], samples, {}
        if due and not (paper and len(samples)):
            power, best = likeliest(kernel, data, (1.0,) if paper else POWERS)
            begins = self.inference == "map" or power != last.power or not len(samples)
            samples, fitted = best if begins else samples, n
        rows = on_cylinder(kernel, data, power)[0]
        moved = np.arange(1 if self.inference == "map" else N_SAMPLES)
        if self.inference == "sample" and paper:
            samples = next_states(rows, samples, rng)
        elif self.inference == "sample":
            samples, moved = moved_chains(rows, samples, last.steps, n, rng)
        chains = {str(i): samples[i].tolist() for i in moved}
        memo = {"chains": chains, "step": data.number, "rows": n, "fitted": fitted, "power": power}
        return rows, samples, memo

    def _region(self, data: Data, rng: np.random.Generator) -> Region:
        """The box, and where to start in it."""
        region, dim = search_region(self.space, data, rng, "cpu"), self.space.dim
        if self.preset == "paper":
            best = data.X[np.argmin(data.loss)]
            near = best + 1e-3 * rng.standard_normal((10, dim))
            starts = np.concatenate([spread(dim, 2**14, rng), data.X, np.clip(near, 0.0, 1.0)])
        else:
            # The cube holds next to nothing near its centre; these fill every radius alike.
            inner = 0.5 + (spread(dim, 256, rng) - 0.5) * rng.random((256, 1))
            starts = np.concatenate([region.starts, inner])
        return replace(region, starts=self.space.snap(starts))


def mean_ei(gp: CylinderGP, best: Tensor) -> Acquisition:
    """Logarithm of the expected improvement below `best` (s,), averaged over the samples."""
    n_samples, n = gp.alpha.shape
    size = max(1, CHUNK // (n_samples * n))

    def f(X: Tensor) -> Tensor:
        found = [log_ei(gp.posterior(Z), best[:, None]).logsumexp(0) for Z in torch.split(X, size)]
        return torch.cat(found) - math.log(n_samples)

    return f


def screened(f: Acquisition, region: Region) -> Region:
    """The region with the best of its starts alone."""
    top = np.argsort(-values(f, region.starts), kind="stable")[:32]
    return replace(region, starts=region.starts[top])


class Last(NamedTuple):
    """What the memos know."""

    samples: Array  # (s, h), the latest of each chain
    steps: NDArrayInt  # (s,) trials that noted them
    rows: int  # number of data then
    fitted: int  # number of data at the last fit
    power: float  # by which losses are bent since


def remembered(data: Data, size: int) -> Last:
    """The latest samples in the memos, where they are of `size` hyperparameters."""
    memos = [m for m in (*data.memos, *data.pending_memos) if "chains" in m]
    memos = [m for m in memos if all(len(logs) == size for logs in m["chains"].values())]
    latest: dict[int, tuple[int, list[float]]] = {}
    rows, fitted, power = 0, 0, 1.0
    for memo in sorted(memos, key=lambda m: int(m["step"])):
        rows, fitted, power = max(rows, memo["rows"]), memo["fitted"], memo["power"]
        latest.update({int(i): (memo["step"], logs) for i, logs in memo["chains"].items()})
    kept = [latest[i] for i in sorted(latest)]
    samples, steps = np.array([logs for _, logs in kept]), np.array([step for step, _ in kept])
    return Last(samples, steps, rows, fitted, power)


def off_centre(X: Array) -> NDArrayBool:
    """Which rows have a direction."""
    return (cylinder(torch.as_tensor(X))[0] > 0.0).numpy()


def on_cylinder(kernel: Cylindrical, data: Data, power: float) -> tuple[CylinderData, float]:
    """The data, their losses bent, and the logarithm of the volume that this takes."""
    y, slopes = bend(standardize(data.loss), power)
    rows = CylinderData.of(kernel, torch.as_tensor(data.X), torch.as_tensor(y))
    return rows, float(slopes.sum())


def likeliest(kernel: Cylindrical, data: Data, powers: Sequence[float]) -> tuple[float, Array]:
    """The power under which the losses are most likely, and its best hyperparameters (1, h).

    Every power has a fit of its own: under the samples of the present one it would seem best.
    """
    found = []
    start = {**starting_theta(kernel), NOISE: torch.tensor(NOISE_HYPER.start).double()}
    for power in powers:
        rows, volume = on_cylinder(kernel, data, power)
        logs = rows.logs(fit(kernel, rows.X, rows.y, [start], noise=NOISE_HYPER))
        found.append((HyperDensity(rows)(logs)[0] + volume, power, logs))
    _, power, logs = max(found, key=lambda item: item[0])
    return power, logs


def next_states(rows: CylinderData, samples: Array, rng: np.random.Generator) -> Array:
    """Ten further states of the paper's chain."""
    density, bounds = HyperDensity(rows), rows.bounds
    state = samples[-1:]
    for _ in range(BURN_IN if len(samples) < N_SAMPLES else 0):
        state = slice_sweep(density, state, bounds, rng)
    states = [state := slice_sweep(density, state, bounds, rng) for _ in range(N_SAMPLES)]
    return np.concatenate(states)


def moved_chains(
    rows: CylinderData, samples: Array, steps: NDArrayInt, n: int, rng: np.random.Generator
) -> tuple[Array, NDArrayInt]:
    """The ten chains with those that rested longest moved by a sweep, and which these are."""
    density, bounds = HyperDensity(rows), rows.bounds
    if len(samples) < N_SAMPLES:
        samples = np.repeat(samples, N_SAMPLES, axis=0)
        for _ in range(min(10, 1 + 2 * FULL_TURN // n)):  # move apart from the fit
            samples = slice_sweep(density, samples, bounds, rng)
        return samples, np.arange(N_SAMPLES)
    count = min(N_SAMPLES, max(1, FULL_TURN // n))
    moved = np.argsort(steps, kind="stable")[:count]
    samples = samples.copy()
    samples[moved] = slice_sweep(density, samples[moved], bounds, rng)
    return samples, moved
