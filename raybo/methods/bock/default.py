"""BOCK in practice: a function of the distance from the centre and of the direction from it.

The assumption is that the optimum lies inside rather than at the corners, and that the function
varies with the radius and with the direction. What differs from BOCK (Oh et al. 2018):

- Directions fade towards the centre (`Cylindrical.fades`): the model is smooth there, and a datum
  at the centre is a row like the others. Levy in 20 dimensions, 100 evaluations, seeds 2300 to
  2309: median regret 0.7 instead of 0.9 (8 : 2); `raybo bench bock-table1`, five seeds:
  Rosenbrock 6.2 instead of 2.4.
- Ten chains with one state each stand for ten states of one chain (`model`). They move in one
  batch, and only when a fit is due, which takes less than a tenth of the time.
- Losses far on the bad side are drawn in, so that the model need not explain how bad they are, as
  in raybo/methods/bo/default.py.
- The improvement is over the least posterior mean, which noise does not lower.
- L-BFGS climbs from the best of starts at every radius (`at_every_radius`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raybo.acquisition.maximizers.base import Region
from raybo.acquisition.maximizers.lbfgsb import Lbfgsb
from raybo.acquisition.starts import spread
from raybo.arrays import Array
from raybo.lazy import torch
from raybo.methods.base import Data, Proposal
from raybo.methods.bock.design import N_INIT, design_point
from raybo.methods.bock.kernel import NOISE_HYPER, Cylindrical
from raybo.methods.bock.options import check_options, refuse_boundary
from raybo.methods.bock.samples import N_SAMPLES, mean_ei, sweep
from raybo.methods.model import incumbent, standardized, with_pending
from raybo.methods.options import check_choice
from raybo.methods.search import Barred, barred, search_region, success_of
from raybo.methods.trust_region import trusted
from raybo.space.any_space import AnySpace
from raybo.surrogate.gp import GP
from raybo.surrogate.linalg import one_thread
from raybo.surrogate.map import NegativeLogPosterior, minimize_from, starting_theta
from raybo.surrogate.outcomes import SHORT_TAIL


@dataclass(frozen=True)
class Bock:
    """Search by radius and direction from the centre of the space."""

    space: AnySpace
    n_init: int | None = None  # the centre, then uniform points; 2 unless given
    degree: int = 3  # of the angular kernel
    warp: bool = True  # whether the radius is warped
    boundary: bool = False  # True is refused
    inference: str = "sample"  # or "map": one fit instead of ten samples, faster
    trust_region: bool = False  # whether only a part around the best point is searched

    lanes = 1

    def __post_init__(self) -> None:
        check_options(self.space, self.n_init, self.degree, self.warp, self.inference)
        refuse_boundary(self.boundary)
        check_choice("trust_region", self.trust_region, (True, False))

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Maximum of the expected improvement, averaged over the hyperparameters."""
        if data.needs_design(self.n_init or N_INIT):
            return Proposal(x=design_point(self.space, data, rng))
        data = data.thinned()
        effort = data.effort
        with one_thread():
            gp, memo = self.model(data)
            success = success_of(self.space, data)
            gp = with_pending(gp, data, success.walls)
            f = success.weigh(mean_ei(gp.posterior, incumbent(gp, data), len(gp.X)))
            search = Lbfgsb(effort.n_starts, effort.max_evaluations)
            bars = barred(self.space, data)
            trust = trusted(self.trust_region, data, (), bars)
            x = search(Barred(f, bars), trust.confine(self._region(data, rng), rng), rng)
        return Proposal(x=x, memo={**memo, **success.memo, **trust.memo})

    def model(self, data: Data) -> tuple[GP, dict[str, Any]]:
        """Processes of the told rows, one for each sample, and what to remember of them.

        The chains start at a fit. All of them move by a sweep when a fit is due: in between, the
        data are too much like those of the last sweep to change the samples.
        """
        kernel = Cylindrical(self.space.dim, self.degree, self.warp, fades=True)
        values, variances = standardized(data.loss, data.spread, SHORT_TAIL)
        X, y, own = map(torch.as_tensor, (data.X, values, variances))
        density = NegativeLogPosterior(kernel, X, y, NOISE_HYPER, own=own)
        last, memo = data.last_fit("samples"), dict[str, Any]()
        if last is None:
            samples = density.logs(starting_theta(kernel, NOISE_HYPER))[None]
        else:
            samples = np.array(last["samples"])
        if last is None or data.is_refit_due(last["fitted"]):
            if last is None or self.inference == "map":
                iterations = data.effort.fit_iterations
                samples = minimize_from(density, [samples[0]], density.bounds, iterations)[None]
            if self.inference == "sample":
                chains = np.repeat(samples, N_SAMPLES // len(samples), axis=0)
                samples = sweep(density, chains, data.rng)
            memo = {"samples": samples.tolist(), "fitted": data.n_told}
        return GP.of(kernel, density.theta(torch.as_tensor(samples)), X, y, own=own), memo

    def _region(self, data: Data, rng: np.random.Generator) -> Region:
        """The box, and where to start in it."""
        region = search_region(self.space, data, rng)
        inner = self.space.snap(at_every_radius(self.space.dim, data.effort.n_screened, rng))
        return replace(region, starts=np.concatenate([region.starts, inner]))


def at_every_radius(dim: int, n: int, rng: np.random.Generator) -> Array:
    """Points (n, d) of the cube, drawn towards its centre by shares from 0 to 1.

    In many dimensions nearly all of a cube, and of points spread over it, is far from its centre.
    """
    return np.asarray(0.5 + (spread(dim, n, rng) - 0.5) * rng.random((n, 1)))
