"""Plain Bayesian optimisation, the baseline of the papers of the other methods.

Algorithm 1 of Wang, Zoghi, Matheson, Hutter, de Freitas (2013), sections 2 and 4.1.

Paper       Code              Meaning
k           mixed_kernel      squared exponential kernel
u(x | D)    acquisition_of    expected improvement; section 2
-           Direct            maximiser of the acquisition; section 4.1

`acquisition="ucb"` is GP-UCB, the baseline of Add-GP-UCB and RPP (Li et al. 2016, section 5).

What the paper leaves open: losses are standardised, the mean is the likeliest constant, a
length-scale for each column and the noise are fitted when the data have grown by the share that
the effort says, and the improvement is over the least posterior mean, which noise does not lower.
What it does not have: pending points, columns of categories, and failed trials; a point that was
evaluated before, or is not allowed, is not proposed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raybo.acquisition.maximizers.direct import Direct
from raybo.methods.base import Data, Proposal
from raybo.methods.model import fitted_gp, mixed_kernel, with_pending
from raybo.methods.options import check_choice, check_count, require_columns
from raybo.methods.search import search_region, success_of, untried, weighed_acquisition
from raybo.space.any_space import AnySpace
from raybo.space.design import design_size, random
from raybo.surrogate.linalg import one_thread
from raybo.surrogate.map import NOISE_HYPER

ACQUISITIONS = ("ei", "log_ei", "ucb")


@dataclass(frozen=True)
class PublishedBo:
    """Bayesian optimisation with a squared exponential kernel and DIRECT."""

    space: AnySpace
    n_init: int | None = None  # points of the initial design
    acquisition: str = "ei"  # one of ACQUISITIONS

    lanes = 1

    def __post_init__(self) -> None:
        check_choice("acquisition", self.acquisition, ACQUISITIONS)
        check_count("n_init", self.n_init)
        require_columns("bo", self.space)

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Maximum of the acquisition under the model of the data (Algorithm 1, line 2)."""
        if data.needs_design(self.n_init or design_size(self.space.dim)):
            return Proposal(x=random(self.space, 1, data.seed, data.number)[0])
        with one_thread():
            gp, memo = fitted_gp(mixed_kernel(self.space, "se"), data, noise=NOISE_HYPER)
            success = success_of(self.space, data)
            gp = with_pending(gp, data, success.walls)
            f = weighed_acquisition(gp, self.acquisition, data, success)
            region = search_region(self.space, data, rng)
            x = Direct()(untried(f, self.space, data), region, rng)
        return Proposal(x=x, memo=memo | success.memo)
