"""EGP: Bayesian optimisation whose acquisition is searched by an elastic Gaussian process.

Rana, Li, Gupta, Nguyen, Venkatesh (2017), "High dimensional Bayesian optimization with elastic
Gaussian process", Algorithm 1; Algorithm 2 is raybo/acquisition/maximizers/elastic.py.

Paper       Code                  Meaning
l_tau       target_lengthscale    length-scale of the model, the same for every column
l_max       largest_stretch       sqrt(d), the longest length-scale of the search
a(x | l)    acquisition_family    expected improvement under another length-scale
T_opt       seconds               time of the search for each proposal

Departures. By default a proposal is given a number of starts instead of a time, so that a run can
be repeated; l_tau, the noise and the mean are fitted rather than fixed at 0.1, 0 and 0, the kernel
is Matern-5/2, the acquisition the logarithm of the expected improvement, and half of the starts
are the best of many points spread over the cube and around the best so far; pending points;
integers and categories are searched on their own grid. `preset="paper"` is the paper's: squared
exponential, l_tau = 0.1, no noise, expected improvement, d + 1 random points to begin with, random
starts for 0.1 d seconds of processor time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from raybo.acquisition.maximizers.base import Acquisition, Maximizer, Region, values
from raybo.acquisition.maximizers.direct import Direct
from raybo.acquisition.maximizers.elastic import Elastic, is_length, largest_stretch
from raybo.acquisition.maximizers.lbfgsb import Lbfgsb
from raybo.acquisition.maximizers.timed import Timed
from raybo.errors import MethodError
from raybo.methods.base import Array, Data, Proposal
from raybo.methods.model import (
    acquisition_family,
    acquisition_of,
    fitted_gp,
    mixed_kernel,
    search_region,
    untried,
    with_pending,
)
from raybo.methods.options import PRESETS, check_choice, check_count, check_seconds, require_flat
from raybo.space.any_space import AnySpace
from raybo.space.design import random, sobol_point
from raybo.surrogate.gp import GP, MEAN, NOISE
from raybo.surrogate.kernels.base import Hyper, Kernel, Theta, starting_theta
from raybo.surrogate.kernels.stationary import LENGTHSCALE_BOUNDS
from raybo.surrogate.linalg import one_thread
from raybo.surrogate.outcomes import standardize

ACQUISITIONS = ("log_ei", "ei", "ucb")
MAXIMIZERS = ("elastic", "multistart", "direct")  # the last two are the paper's rivals
N_STARTS = 6
TIMED_STARTS = 2  # of each elastic search that is repeated for a time
PAPER_MULTISTARTS = 100  # of each of multi-start's: flat ground is left at once
DIRECT_LIMIT = 1_000_000  # evaluations; scipy makes room for all of them beforehand
PAPER_LENGTHSCALE = 0.1  # section 4
PAPER_NOISE = 1e-6  # the paper has none; Cholesky factors of long length-scales want some
PAPER_SECONDS = 0.1  # per dimension, Figure 4; with 0.01 and 0.001 in Figure 3
PAPER_HALVINGS = 12  # of the rung from 0.1 to 0.15: delta l_min = 1e-5, section 4


@dataclass(frozen=True)
class Egp:
    """Gaussian process with one length-scale; its acquisition searched elastically."""

    space: AnySpace
    preset: str = "default"
    n_init: int | None = None  # points of the initial design
    target_lengthscale: float | None = None  # of the unit cube; fitted unless given
    acquisition: str | None = None  # one of ACQUISITIONS
    maximizer: str = "elastic"  # one of MAXIMIZERS
    seconds: float | None = None  # of search for each proposal, in place of N_STARTS starts
    device: str = "cpu"

    lanes = 1

    def __post_init__(self) -> None:
        check_choice("preset", self.preset, PRESETS)
        check_choice("acquisition", self.acquisition, (None, *ACQUISITIONS))
        check_choice("maximizer", self.maximizer, MAXIMIZERS)
        check_count("n_init", self.n_init)
        _check_lengthscale(self.target_lengthscale)
        check_seconds(self.seconds)
        require_flat("egp", self.space)

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Maximum of the acquisition under the model of the data (Algorithm 1, line 2)."""
        dim, paper = self.space.dim, self.preset == "paper"
        if data.needs_design(self.n_init or (dim + 1 if paper else min(10, dim + 2))):
            return Proposal(x=self._design(data))
        with one_thread():
            gp, memo = self.model(data)
            gp = with_pending(gp, data)
            n, best = len(data.loss), gp.fitted().min()
            name = self.acquisition or ("ei" if paper else "log_ei")
            f = untried(acquisition_of(gp, name, best, n), self.space, data)
            x = self._search(gp, name, f, data, rng)
        return Proposal(x=x, memo=memo)

    def _design(self, data: Data) -> Array:
        if self.preset == "paper":
            row: Array = random(self.space, 1, data.seed, data.number)[0]
            return row
        return sobol_point(self.space, data.number, data.seed)

    def model(self, data: Data) -> tuple[GP, dict[str, Any]]:
        """The process of the told rows (Algorithm 1, line 5), and what to remember of it."""
        if self.preset == "paper":
            return self._paper_model(data), {}
        kernel = mixed_kernel(self.space, "matern52", ard=False)
        if self.target_lengthscale is not None:
            kernel = Pinned(kernel, self.target_lengthscale)
        return fitted_gp(kernel, data, self.device)

    def _paper_model(self, data: Data) -> GP:
        kernel = Pinned(
            mixed_kernel(self.space, "se", ard=False), self.target_lengthscale or PAPER_LENGTHSCALE
        )
        X = torch.as_tensor(data.X, device=self.device)
        y = torch.as_tensor(standardize(data.loss), device=self.device)
        theta = {**starting_theta(kernel, X.device), NOISE: y.new_tensor(PAPER_NOISE)}
        return GP.of(kernel, {**theta, MEAN: y.new_zeros(())}, X, y)

    def _search(
        self, gp: GP, acquisition: str, f: Acquisition, data: Data, rng: np.random.Generator
    ) -> Array:
        paper = self.preset == "paper"
        seconds = self.seconds or (PAPER_SECONDS * self.space.dim if paper else None)
        n_starts = self._n_starts(data, seconds is not None)

        def starts() -> Array:
            if paper:
                return self.space.sample(n_starts, rng)  # Algorithm 2, input
            return search_region(self.space, data, rng, self.device).starts

        region = search_region(self.space, data, rng, self.device)
        region = replace(region, starts=starts()) if paper else region
        if self.maximizer == "direct":  # finds the same each time: longer instead of again
            direct = Direct() if seconds is None else Direct(_evaluations(f, region, seconds))
            return direct(f, region, rng)
        search = self._local(gp, acquisition, len(data.loss), n_starts)
        if seconds is not None:
            search = Timed(search, starts, seconds)
        return search(f, region, rng)

    def _n_starts(self, data: Data, timed: bool) -> int:
        if timed:
            multistart = self.maximizer == "multistart" and self.preset == "paper"
            return PAPER_MULTISTARTS if multistart else TIMED_STARTS
        # With many points in flight, proposals are wanted fast and each matters less.
        return max(1, N_STARTS // (1 + len(data.pending_memos) // 8))

    def _local(self, gp: GP, acquisition: str, n: int, n_starts: int) -> Maximizer:
        if self.maximizer == "multistart":
            return Lbfgsb(n_starts)
        family = cache(acquisition_family(gp, acquisition, n))
        search = Elastic(family, largest_stretch(gp), n_starts)
        if self.preset == "paper":
            return replace(search, n_screened=0, halvings=PAPER_HALVINGS)
        return search


@dataclass(frozen=True)
class Pinned:
    """A kernel whose length-scale is given, not fitted."""

    kernel: Kernel
    lengthscale: float

    @property
    def hypers(self) -> tuple[Hyper, ...]:
        """Those of the kernel, with no room for the length-scale."""
        at = self.lengthscale
        return tuple(
            replace(h, lower=at, upper=at, start=at, prior=None) if is_length(h.name) else h
            for h in self.kernel.hypers
        )

    def __call__(self, X: Tensor, Z: Tensor, theta: Theta) -> Tensor:
        """Covariances (n, m)."""
        return self.kernel(X, Z, theta)

    def diag(self, X: Tensor, theta: Theta) -> Tensor:
        """Variances (n,)."""
        return self.kernel.diag(X, theta)


def _check_lengthscale(value: Any) -> None:
    low, high = LENGTHSCALE_BOUNDS
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (number and low <= value <= high):
        raise MethodError(
            f"target_lengthscale must be a number of the unit cube from {low} to {high:g}, "
            f"got {value!r}; 0.1 is the paper's, leave it out to have it fitted"
        )


def _evaluations(f: Acquisition, region: Region, seconds: float) -> int:
    """How many points fit into a time, one after another."""
    begin = time.thread_time()
    for x in region.starts[:20]:
        values(f, x[None], region.device)
    each = (time.thread_time() - begin) / len(region.starts[:20])
    return min(DIRECT_LIMIT, max(100, int(seconds / each)))
