"""The Gaussian process of a method's data: which kernel, when it is fitted again, what is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from raybo.arrays import Array
from raybo.lazy import Tensor, torch
from raybo.methods.base import FULL, Data, Method
from raybo.space.any_space import AnySpace
from raybo.surrogate.gp import GP, NOISE
from raybo.surrogate.kernels.base import Hyper, Kernel, OnColumns, Product, Theta
from raybo.surrogate.kernels.hamming import Hamming
from raybo.surrogate.kernels.stationary import Stationary
from raybo.surrogate.map import FREE_NOISE, fit, mostly_noise, starting_theta
from raybo.surrogate.outcomes import WIDE_TAIL, Scale, Tail

_LARGEST = 1e150  # of the losses that are expected: their squares are finite
Starts = Callable[[Theta], Sequence[Theta]]  # last hyperparameters -> others to start a fit from


@runtime_checkable
class Modelled(Method, Protocol):
    """A method with one model of all its data."""

    def model(self, data: Data) -> tuple[GP, dict[str, Any]]:
        """The process of the told rows, and what to remember of it."""


def mixed_kernel(
    space: AnySpace,
    shape: str,
    *,
    ard: bool = True,
    scaled: bool = False,
    lengthscale: float | None = None,
) -> Kernel:
    """Kernel over all columns: by distance where values have an order, else by equality."""
    unordered = unordered_columns(space)
    ordered = tuple(i for i in range(space.dim) if i not in unordered)
    by_distance = Stationary(len(ordered), shape, ard, scaled, lengthscale=lengthscale)
    if not unordered:
        return by_distance
    by_equality = OnColumns(Hamming(len(unordered)), unordered)
    if not ordered:
        return by_equality
    return Product((OnColumns(by_distance, ordered), by_equality))


def unordered_columns(space: AnySpace) -> tuple[int, ...]:
    """Columns whose values have no order."""
    return tuple(i for i, c in enumerate(space.columns) if not c.ordered)


def fitted_gp(
    kernel: Kernel,
    data: Data,
    *,
    noise: Hyper = FREE_NOISE,
    mean: float | None = None,
    bad_side: Tail = WIDE_TAIL,
    more_starts: Starts | None = None,
    more_iterations: int = 1,
    device: str = "cpu",
) -> tuple[GP, dict[str, Any]]:
    """The Gaussian process of the told rows, and what to remember of it.

    Hyperparameters are fitted again when the data have grown by the share that the effort says,
    from those of the last fit, which the memos hold. In between the model costs one Cholesky
    factor, and nothing where no result has come since the last proposal.

    Parameters
    ----------
    kernel
        Covariance of the process.
    data
        Rows, losses and memos.
    noise, mean
        As in `raybo.surrogate.map.fit`.
    bad_side
        How far losses much worse than the median are drawn in, as in `standardize`.
    more_starts
        Makes further starts of a fit from the first one.
    more_iterations
        Multiple of the effort's iterations, for kernels of very many hyperparameters.
    device
        Where torch computes.
    """
    names = [h.name for h in (*kernel.hypers, noise)]
    last = data.last_fit("theta")
    known = last is not None and last["theta"].keys() >= set(names)
    theta = starting_theta(kernel, noise, device)
    if last is not None and known:
        theta = theta_from_json({name: last["theta"][name] for name in names}, device)
    kept: _Cached | None = data.cache.get("gp")
    due = last is None or not known or data.is_refit_due(last["fitted"])
    if not due and kept is not None and kept.serves(kernel, data, theta_to_json(theta)):
        return kept.gp, {}
    X = torch.as_tensor(data.X, device=device)
    values, variances = standardized(data.loss, data.spread, bad_side)
    y, own = torch.as_tensor(values, device=device), torch.as_tensor(variances, device=device)
    memo: dict[str, Any] = {}
    if due:
        more = more_starts(theta) if more_starts else ()
        starts = [theta, mostly_noise(kernel, noise, device), *more]
        iterations = more_iterations * data.effort.fit_iterations
        theta = fit(
            kernel, X, y, starts, noise=noise, mean=mean, max_iterations=iterations, own=own
        )
        memo = {"theta": theta_to_json(theta), "fitted": data.n_told}
    gp = GP.of(kernel, theta, X, y, mean, own)
    data.cache["gp"] = _Cached(gp, theta_to_json(theta), data.X, data.loss, data.spread)
    return gp, memo


@dataclass(frozen=True)
class _Cached:
    """The model of an earlier proposal."""

    gp: GP
    theta: Mapping[str, Any]  # JSON
    X: Array
    loss: Array
    spread: Array

    def serves(self, kernel: Kernel, data: Data, theta: Mapping[str, Any]) -> bool:
        """Whether it is the model of `data` under `theta`."""
        return (
            kernel == self.gp.kernel
            and theta == self.theta
            and np.array_equal(self.loss, data.loss)
            and np.array_equal(self.spread, data.spread)
            and np.array_equal(self.X, data.X)
        )


def standardized(loss: Array, spread: Array, bad_side: Tail = WIDE_TAIL) -> tuple[Array, Array]:
    """Standardised losses (n,), and their own variances where they are expected ones.

    `spread` are the deviations of the losses, or empty where all are known.
    """
    scale = Scale.of(loss, bad_side)
    if not spread.size:
        return scale(loss), np.zeros(len(loss))
    return scale(loss), ((scale(loss + spread) - scale(loss - spread)) / 2.0) ** 2


def incumbent(gp: GP, data: Data) -> Tensor:
    """Value to improve on: the least posterior mean at told rows within all bounds.

    Pending rows count too, or they would be proposed again, unless they may break a bound. While
    no row keeps its bounds, every row is an improvement.
    """
    fitted, n = gp.fitted(), len(data.loss)
    if not data.excess.size:
        return fitted[..., : n + len(data.pending)].amin(-1)
    if not data.feasible.any():
        return fitted[..., :n].amax(-1)
    return fitted[..., :n][..., torch.as_tensor(data.feasible)].amin(-1)


def with_pending(gp: GP, data: Data, walls: Array | None = None) -> GP:
    """The process with the pending rows at their posterior mean (Desautels et al. 2014).

    `walls`, rows that failed where most fail, are held to be no improvement: no value will ever
    say so, and the search would stay at the edge behind which the model expects better values.

    With less than full effort, proposals with no result between them extend one factor row by
    row. That differs from the factor of all rows in the last digits, so with full effort, where a
    replayed study proposes the same points to the last digit, there is one factor for all.
    """
    told, pending, extended = data.cache.get("pending", (None, data.pending, gp))
    n = len(pending)
    if data.effort == FULL or told is not gp or not np.array_equal(pending, data.pending[:n]):
        n, extended = 0, gp
    rows = torch.as_tensor(data.pending[n:], device=gp.X.device)
    conditioned: GP = extended.condition_on_mean(rows)
    data.cache["pending"] = gp, data.pending, conditioned
    if walls is None or not len(walls):
        return conditioned
    rows = torch.as_tensor(walls, device=gp.X.device)
    return conditioned.condition_at_least(rows, incumbent(conditioned, data))


def in_losses(gp: GP, loss: Array, rows: Array, noise: bool = False) -> tuple[Array, Array]:
    """Mean and deviation (m,) of the losses at rows (m, d), by a model of the losses (n,) told.

    A model sees standardised losses. They increase with the losses, so the way back is the
    inverse, linear between the losses that are known and beyond them. With `noise` they are those
    of results, else of their means.
    """
    found = gp.posterior(torch.as_tensor(rows, device=gp.X.device))
    mean, variance = found.mean, found.variance
    if noise:
        variance = variance + gp.theta[NOISE][..., None]
    if mean.ndim > 1:  # samples of hyperparameters
        variance = variance.mean(0) + mean.var(0, correction=0)
        mean = mean.mean(0)
    y = gp.y.cpu().numpy()
    centre, spread = mean.cpu().numpy(), variance.sqrt().cpu().numpy()
    low, middle, high = (_inverse(y, loss, centre + k * spread) for k in (-1, 0, 1))
    return middle, np.minimum((high - low) / 2, _LARGEST)


def _inverse(y: Array, loss: Array, at: Array) -> Array:
    """Losses of standardised losses, by the pairs (y, loss) that are known."""
    known, first = np.unique(y, return_index=True)
    values = loss[first]
    if len(known) == 1:
        return np.full(len(at), values[0])
    i = np.clip(np.searchsorted(known, at) - 1, 0, len(known) - 2)
    with np.errstate(over="ignore"):
        slope = (values[i + 1] - values[i]) / (known[i + 1] - known[i])
        found = values[i] + slope * (at - known[i])
    return np.clip(found, -_LARGEST, _LARGEST)


def theta_to_json(theta: Theta) -> dict[str, Any]:
    """Hyperparameters as JSON."""
    return {name: value.tolist() for name, value in theta.items()}


def theta_from_json(item: Mapping[str, Any], device: str = "cpu") -> dict[str, Tensor]:
    """Hyperparameters written by `theta_to_json`."""
    return {k: torch.tensor(v, dtype=torch.float64, device=device) for k, v in item.items()}
