"""Samples of the hyperparameters of a Gaussian process, and the acquisition averaged over them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from raybo.acquisition.functions import log_ei
from raybo.acquisition.maximizers.base import Acquisition
from raybo.arrays import Array
from raybo.lazy import Tensor, torch
from raybo.methods.bock.slice_sampling import slice_sweep
from raybo.surrogate.gp import Posterior
from raybo.surrogate.map import NegativeLogPosterior

N_SAMPLES = 10  # the authors' code
CHUNK = 200_000  # covariances computed at once: they fit in the cache, which halves the time


def sweep(density: NegativeLogPosterior, states: Array, rng: np.random.Generator) -> Array:
    """States (k, h) of k chains over log-hyperparameters after a sweep of slice sampling."""

    def log_density(logs: Array) -> Array:  # the sum changes the variables to the logarithms
        return np.asarray(logs.sum(1) - density.values(logs))

    return slice_sweep(log_density, states, np.array(density.bounds), rng)


def mean_ei(posterior: Callable[[Tensor], Posterior], best: Tensor, n_rows: int) -> Acquisition:
    """Logarithm of the expected improvement below `best` (s,), averaged over s samples.

    Parameters
    ----------
    posterior
        Maps m points to means and variances (s, m).
    best
        Value to improve on under each sample.
    n_rows
        Number of rows of the data: points are taken by as many as keep covariances in the cache.
    """
    n_samples = len(best)
    size = max(1, CHUNK // (n_samples * n_rows))

    def f(X: Tensor) -> Tensor:
        parts = [log_ei(posterior(Z), best[:, None]).logsumexp(0) for Z in torch.split(X, size)]
        return torch.cat(parts) - math.log(n_samples)

    return f
