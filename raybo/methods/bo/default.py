"""Bayesian optimisation with one Gaussian process over the whole cube.

The default for flat spaces, and the baseline of the other methods. Matern-5/2 with a length-scale
per column under a prior that grows with the dimension (Hvarfner et al. 2024), which keeps it
useful in hundreds of dimensions; learned noise; log expected improvement (Ament et al. 2023)
maximised by batched multi-start L-BFGS; pending points told their posterior mean (Desautels et
al. 2014).

`preset="paper"` is the plain Bayesian optimisation that the papers of the other methods compare
with: squared exponential kernel, expected improvement, DIRECT.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from raybo.acquisition.maximizers.base import Maximizer
from raybo.acquisition.maximizers.cma import CmaEs
from raybo.acquisition.maximizers.direct import Direct
from raybo.acquisition.maximizers.elastic import Elastic, largest_stretch
from raybo.acquisition.maximizers.lbfgsb import Lbfgsb
from raybo.methods.base import Data, Proposal
from raybo.methods.model import (
    SMALL_NOISE,
    acquisition_family,
    acquisition_of,
    fitted_gp,
    mixed_kernel,
    search_region,
    untried,
    with_pending,
)
from raybo.methods.options import PRESETS, check_choice, check_count, require_columns
from raybo.space.any_space import AnySpace
from raybo.space.design import sobol_point
from raybo.surrogate.gp import GP
from raybo.surrogate.linalg import one_thread
from raybo.surrogate.map import fit
from raybo.surrogate.outcomes import MILD, STRONG

ACQUISITIONS = ("log_ei", "ei", "ucb")
MAXIMIZERS = ("lbfgsb", "direct", "cmaes", "elastic")


class Effort(NamedTuple):
    """What a proposal may cost."""

    refits: int  # when the data have grown by one in so many
    fit_iterations: int
    screened: int  # points over the cube, and as many around the best
    starts: int  # of them that are climbed from
    evaluations: int  # in a climb


# By haste. With 64 points in flight, 300 evaluations, median regret of three seeds on hartmann6:
# 3e-5, 6e-4 and 3e-4 at 35, 15 and 8 ms an ask (the last of four seeds); repeated over 20
# dimensions 0.66 and 0.93 at the second and the third.
EFFORTS = (Effort(10, 50, 256, 6, 40), Effort(5, 12, 64, 1, 10), Effort(2, 6, 32, 1, 4))


@dataclass(frozen=True)
class Bo:
    """Gaussian process optimisation of a flat or mixed space."""

    space: AnySpace
    preset: str = "default"
    n_init: int | None = None  # points of the initial design
    acquisition: str | None = None  # one of ACQUISITIONS
    maximizer: str | None = None  # one of MAXIMIZERS
    device: str = "cpu"

    lanes = 1

    def __post_init__(self) -> None:
        check_choice("preset", self.preset, PRESETS)
        check_choice("acquisition", self.acquisition, (None, *ACQUISITIONS))
        check_choice("maximizer", self.maximizer, (None, *MAXIMIZERS))
        check_count("n_init", self.n_init)
        require_columns("bo", self.space)

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Maximum of the acquisition under the model of the data."""
        paper = self.preset == "paper"
        if data.needs_design(self.n_init or min(10, self.space.dim + 2)):
            return Proposal(x=sobol_point(self.space, data.number, data.seed))
        with one_thread():
            # A learnt variance lets long length-scales model a trend: on the sum of ten Branins,
            # 100 evaluations, median of 3 seeds, 3.6 with it and 5.5 without.
            kernel = mixed_kernel(self.space, "se" if paper else "matern52", scaled=not paper)
            # A model that must explain how bad the bad points are has less to say about the good
            # ones: 20 dimensions, 100 evaluations, median of 6 seeds, mild against strong,
            # Rosenbrock 16,400 and 5,400; the mean of ten Branins 5.6 and 3.8.
            tail = MILD if paper else STRONG
            effort = EFFORTS[data.haste]
            quick = partial(fit, max_iterations=effort.fit_iterations)
            gp, memo = fitted_gp(
                kernel,
                data,
                self.device,
                noise=SMALL_NOISE,
                fit=quick,
                bad_side=tail,
                refits=effort.refits,
            )
            gp = with_pending(gp, data)
            best = gp.fitted().min()  # of pending points too, or they would be proposed again
            acquisition = self.acquisition or ("ei" if paper else "log_ei")
            f = untried(acquisition_of(gp, acquisition, best, len(data.loss)), self.space, data)
            name = self.maximizer or ("direct" if paper else "lbfgsb")
            maximize = maximizer(name, gp, acquisition, data)
            region = search_region(self.space, data, rng, self.device, effort.screened)
            x = maximize(f, region, rng)
        return Proposal(x=x, memo=memo)


def maximizer(name: str, gp: GP, acquisition: str, data: Data) -> Maximizer:
    """Maximizer called `name`, for an acquisition of `gp`."""
    if name == "direct":
        return Direct()
    if name == "cmaes":
        return CmaEs()
    effort = EFFORTS[data.haste]
    if name == "elastic":
        family = acquisition_family(gp, acquisition, len(data.loss))
        return Elastic(family, largest_stretch(gp), effort.starts)
    return Lbfgsb(effort.starts, effort.evaluations)
