"""EGP: Bayesian optimisation whose acquisition is searched by an elastic Gaussian process.

Rana, Li, Gupta, Nguyen, Venkatesh (2017), "High dimensional Bayesian optimization with elastic
Gaussian process", Algorithm 1; Algorithm 2 is raybo/acquisition/maximizers/elastic.py.

Paper         Code                  Meaning
l_tau         target_lengthscale    length-scale of the model, 0.1, the same for every column
l_max         largest_multiple      sqrt(d), the longest length-scale of the search
delta l_min   HALVINGS              least step of the length-scale, 1e-5
a(x | l)      acquisition_family    expected improvement under another length-scale
T_opt         seconds               time of the search for each proposal

What the paper does not have: pending points, discrete columns searched on their grids, and a
noise of 1e-6, without which Cholesky factors of long length-scales fail.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from raybo.acquisition.maximizers.base import Acquisition, Maximizer, Region, values
from raybo.acquisition.maximizers.direct import Direct
from raybo.acquisition.maximizers.elastic import Elastic, largest_multiple
from raybo.acquisition.maximizers.lbfgsb import Lbfgsb
from raybo.acquisition.maximizers.timed import Timed
from raybo.arrays import Array
from raybo.lazy import torch
from raybo.methods.base import Data, Proposal
from raybo.methods.model import mixed_kernel, with_pending
from raybo.methods.options import (
    check_choice,
    check_count,
    check_number,
    check_seconds,
    require_flat,
)
from raybo.methods.search import (
    acquisition_family,
    search_region,
    success_of,
    untried,
    weighed_acquisition,
)
from raybo.space.any_space import AnySpace
from raybo.space.design import random
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.stationary import LENGTHSCALE_BOUNDS
from raybo.surrogate.linalg import one_thread
from raybo.surrogate.map import NOISE_HYPER, starting_theta
from raybo.surrogate.outcomes import standardize

ACQUISITIONS = ("ei", "log_ei", "ucb")
MAXIMIZERS = ("elastic", "multistart", "direct")  # the last two are what section 4 compares with
SECONDS = 0.1  # of search per dimension: Figure 4; 0.01 and 0.001 in Figure 3
NOISE = replace(NOISE_HYPER, start=1e-6)  # without it Cholesky factors fail
HALVINGS = 12  # of the step from 0.1 to 0.15: delta l_min = 1e-5 (section 4)
ELASTIC_STARTS = 2  # of each search repeated until the time is up; more cost a longer last search
MULTISTARTS = 100  # likewise: starts on flat ground end at once
MOST_EVALUATIONS = 1_000_000  # of DIRECT: scipy allocates memory for all of them


@dataclass(frozen=True)
class PublishedEgp:
    """Gaussian process of a given length-scale; its acquisition searched elastically."""

    space: AnySpace
    n_init: int | None = None  # points of the initial design; d + 1 unless given (section 4)
    target_lengthscale: float = 0.1  # l_tau, in the unit cube (section 4)
    acquisition: str = "ei"  # one of ACQUISITIONS
    maximizer: str = "elastic"  # one of MAXIMIZERS
    seconds: float | None = None  # T_opt; SECONDS for each dimension unless given

    lanes = 1

    def __post_init__(self) -> None:
        check_choice("acquisition", self.acquisition, ACQUISITIONS)
        check_choice("maximizer", self.maximizer, MAXIMIZERS)
        check_count("n_init", self.n_init)
        check_number(
            "target_lengthscale",
            self.target_lengthscale,
            *LENGTHSCALE_BOUNDS,
            "0.1 is the paper's",
        )
        check_seconds(self.seconds)
        require_flat("egp", self.space)

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Maximum of the acquisition under the model of the data (Algorithm 1, line 2)."""
        if data.needs_design(self.n_init or self.space.dim + 1):
            return Proposal(x=random(self.space, 1, data.seed, data.number)[0])
        with one_thread():
            success = success_of(self.space, data)
            gp = with_pending(self.model(data)[0], data, success.walls)

            def f(gp: GP) -> Acquisition:
                gain = weighed_acquisition(gp, self.acquisition, data, success)
                return untried(gain, self.space, data)

            family = cache(acquisition_family(gp, f))
            elastic = partial(Elastic, family, largest_multiple(gp))
            x = self._search(f(gp), elastic, data, rng)
        return Proposal(x=x, memo=success.memo)

    def model(self, data: Data) -> tuple[GP, dict[str, Any]]:
        """The process of the told rows, of mean 0 and variance 1 (Algorithm 1, line 5)."""
        lengthscale = self.target_lengthscale
        kernel = mixed_kernel(self.space, "se", ard=False, lengthscale=lengthscale)
        X, y = torch.as_tensor(data.X), torch.as_tensor(standardize(data.loss))
        return GP.of(kernel, starting_theta(kernel, NOISE), X, y, mean=0.0), {}

    def _search(
        self,
        f: Acquisition,
        elastic: Callable[..., Elastic],
        data: Data,
        rng: np.random.Generator,
    ) -> Array:
        """Best point found in T_opt."""
        seconds = self.seconds or SECONDS * self.space.dim
        n_starts = MULTISTARTS if self.maximizer == "multistart" else ELASTIC_STARTS

        def starts() -> Array:
            return self.space.sample(n_starts, rng)  # Algorithm 2, input

        region = replace(search_region(self.space, data, rng), starts=starts())
        if self.maximizer == "direct":  # finds the same each time: one longer search
            return Direct(_evaluations(f, region, seconds))(f, region, rng)
        search: Maximizer = Lbfgsb(n_starts)
        if self.maximizer == "elastic":
            search = elastic(n_starts, n_screened=0, halvings=HALVINGS)
        return Timed(search, starts, seconds)(f, region, rng)


def _evaluations(f: Acquisition, region: Region, seconds: float) -> int:
    """How many evaluations, one after another, fit into a time."""
    begin = time.thread_time()
    for x in region.starts:
        values(f, x[None])
    each = (time.thread_time() - begin) / len(region.starts)
    return min(MOST_EVALUATIONS, max(100, int(seconds / each)))
