"""Where trials succeed: the probability that a point gives a value, within all bounds.

A failure is an outcome with a bound like any other: 1/2 above it where a trial failed, 1/2 below
it where the trial has a value (least-squares classification, Rasmussen & Williams 2006, section
6.5). Every such outcome has a Gaussian process of its own, beside the model of the losses, and a
point is feasible with the product of the probabilities that its outcomes keep their bounds.

The noise of an outcome is fitted without a prior. Failures that have no place become noise: the
probability is then the same everywhere, and the search goes on as without them. Failures that have
a place become a function, and its edge is learnt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from raybo.acquisition.closed_form import ClosedForm
from raybo.acquisition.functions import log_below
from raybo.acquisition.maximizers.base import Acquisition, values, with_gradient
from raybo.arrays import Array
from raybo.lazy import Tensor, torch
from raybo.methods.base import Data
from raybo.methods.model import theta_from_json, theta_to_json
from raybo.surrogate.gp import GP, NOISE, Posterior
from raybo.surrogate.kernels.base import Kernel, Theta, has_gradient
from raybo.surrogate.map import FREE_NOISE, fit, mostly_noise, starting_theta
from raybo.surrogate.outcomes import standardize_excess

MEMO = "feasibility"


@dataclass(frozen=True)
class Feasibility:
    """What is known of where trials succeed.

    Attributes
    ----------
    parts : tuple of acquisitions
        Logarithms of the probabilities that each outcome keeps its bound; none while every trial
        has a value and there are no bounds.
    walls : (w, d) array
        Failed rows where the other trials say that most fail: failures that have a place.
    memo : dict
        What to remember of the models.
    """

    parts: tuple[Acquisition, ...]
    walls: Array
    memo: dict[str, Any]

    def weigh(self, f: Acquisition) -> Acquisition:
        """The acquisition `f`, a logarithm or a bound, plus the log probability of success."""
        return Sum((f, *self.parts)) if self.parts else f

    def log_probability(self, X: Array) -> Array:
        """Logarithm of the probability that the rows X are feasible: (m,)."""
        return values(Sum(self.parts), X)


def feasibility(kernel: Kernel, data: Data) -> Feasibility:
    """Models of the outcomes of all trials so far; `kernel` is of stationary covariances."""
    outcomes = dict(_outcomes(data))
    if not outcomes:
        return Feasibility((), data.X[:0], {})
    noted = [memo[MEMO] for memo in data.all_memos if MEMO in memo]
    last = max(noted, key=lambda item: int(item["fitted"]), default=None)
    thetas = {} if last is None else last["theta"]
    n = data.n_told + len(data.failed)
    due = last is None or thetas.keys() != outcomes.keys() or data.is_due(last["fitted"], n)
    if due:
        thetas = {
            name: theta_to_json(_fitted(kernel, X, excess, thetas.get(name), data))
            for name, (X, excess) in outcomes.items()
        }
    models = {name: _model(kernel, thetas[name], *outcomes[name]) for name in outcomes}
    walls = data.X[:0]
    if len(data.failed):
        gp, bound = models["failure"]
        walls = data.failed[(gp.left_out().mean > bound).numpy()[len(data.X) :]]
    parts = tuple(_log_kept(gp, bound) for gp, bound in models.values())
    return Feasibility(parts, walls, {MEMO: {"fitted": n, "theta": thetas}} if due else {})


@dataclass(frozen=True)
class Sum:
    """Sum of acquisitions, with its gradient."""

    parts: tuple[Acquisition, ...]

    def __call__(self, X: Tensor) -> Tensor:
        """Values (m,)."""
        return sum((part(X) for part in self.parts), start=X.new_zeros(len(X)))

    def with_gradient(self, X: Array) -> tuple[Array, Array]:
        """Values (m,) and gradients (m, d)."""
        value, gradient = np.zeros(len(X)), np.zeros_like(X)
        for part in self.parts:
            more, slope = with_gradient(part, X)
            value, gradient = value + more, gradient + slope
        return value, gradient


def _outcomes(data: Data) -> Iterator[tuple[str, tuple[Array, Array]]]:
    """Rows and excesses by the name of their outcome."""
    if len(data.failed):
        excess = np.repeat([-0.5, 0.5], [len(data.X), len(data.failed)])
        yield "failure", (np.concatenate([data.X, data.failed]), excess)
    if data.excess.size:
        for index, excess in enumerate(data.excess.T):
            yield str(index), (data.X, excess)


def _fitted(
    kernel: Kernel, X: Array, excess: Array, last: Mapping[str, Any] | None, data: Data
) -> Theta:
    """Hyperparameters of an outcome, from those of its last fit, and from nothing but noise."""
    y, _ = standardize_excess(excess)
    start = starting_theta(kernel, FREE_NOISE) if last is None else theta_from_json(last)
    return fit(
        kernel,
        torch.as_tensor(X),
        torch.as_tensor(y),
        [start, mostly_noise(kernel, FREE_NOISE)],
        noise=FREE_NOISE,
        max_iterations=data.effort.fit_iterations,
    )


def _model(kernel: Kernel, theta: Mapping[str, Any], X: Array, excess: Array) -> tuple[GP, float]:
    """The process of an outcome, and the bound that it has to keep."""
    y, bound = standardize_excess(excess)
    return GP.of(kernel, theta_from_json(theta), torch.as_tensor(X), torch.as_tensor(y)), bound


def _log_kept(gp: GP, bound: float) -> Acquisition:
    """Logarithm of the probability that an outcome, with its noise, keeps its bound."""
    noise = float(gp.theta[NOISE])
    if has_gradient(gp.kernel):
        return ClosedForm(gp, "log_below", bound, noise)

    def log_kept(Z: Tensor) -> Tensor:
        mean, variance = gp.posterior(Z)
        return log_below(Posterior(mean, variance + noise), torch.as_tensor(bound))

    return log_kept
