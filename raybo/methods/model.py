"""What methods with a Gaussian process share: its fit from the data, and where to search."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from raybo.acquisition.closed_form import ClosedForm
from raybo.acquisition.functions import ACQUISITIONS
from raybo.acquisition.maximizers.base import Acquisition, Region
from raybo.acquisition.maximizers.elastic import Family, stretch
from raybo.acquisition.starts import around, spread
from raybo.methods.base import Array, Data
from raybo.space.any_space import AnySpace
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.base import (
    Hyper,
    Kernel,
    LogNormal,
    OnColumns,
    Product,
    Theta,
    starting_theta,
)
from raybo.surrogate.kernels.hamming import Hamming
from raybo.surrogate.kernels.stationary import SE, Matern52, Stationary
from raybo.surrogate.map import NOISE_HYPER, fit
from raybo.surrogate.outcomes import MILD, Tail, standardize

Fit = Callable[..., dict[str, Tensor]]  # like `raybo.surrogate.map.fit`

# Most objectives are exact, or nearly. Under the usual prior, LogNormal(-4, 1), the noise of the
# first fits is large enough that points are tried again beside themselves: regret of bo after 100
# evaluations, median of 10 seeds, 3e-7 on Branin and 8e-6 on Hartmann6, with eight in flight 3e-6
# and 3e-5; under this one 6e-7 and 8e-7, 2e-7 and 2e-6. Where values are noisy it searches wider:
# Hartmann6 with deviation 0.2, the last 20 of 70 points 0.59 above the minimum, not 0.33, 6 seeds.
SMALL_NOISE = Hyper("noise", (), 1e-8, 1.0, 1e-4, LogNormal(-8.0, 2.0))

GRID_LIMIT = 64  # values of a column searched one by one; a longer range is searched as continuous


def mixed_kernel(space: AnySpace, shape: str, *, ard: bool = True, scaled: bool = False) -> Kernel:
    """Kernel over all columns: by distance where values have an order, else by equality."""
    unordered = unordered_columns(space)
    ordered = tuple(i for i in range(space.dim) if i not in unordered)
    stationary = Matern52 if shape == "matern52" else SE
    if not unordered:
        return stationary(space.dim, ard=ard, scaled=scaled)
    by_equality = OnColumns(Hamming(len(unordered)), unordered)
    if not ordered:
        return by_equality
    by_distance = OnColumns(stationary(len(ordered), ard=ard, scaled=scaled), ordered)
    return Product((by_distance, by_equality))


def unordered_columns(space: AnySpace) -> tuple[int, ...]:
    """Columns whose values have no order."""
    return tuple(i for i, c in enumerate(space.columns) if c.kind in ("categorical", "choice"))


def fitted_gp(
    kernel: Kernel,
    data: Data,
    device: str,
    *,
    noise: Hyper = NOISE_HYPER,
    fit: Fit = fit,
    bad_side: Tail = MILD,
    refits: int = 10,
) -> tuple[GP, dict[str, Any]]:
    """The Gaussian process of the told rows, and what to remember of it.

    Hyperparameters are fitted again when the data have grown by 1/`refits` since the last fit,
    which is found in the memos; in between the model costs one Cholesky factor, and nothing where
    no result has come since the last proposal. A fit starts from the last one; `fit` is for
    kernels that have a better way to it than the common one.
    """
    X = torch.as_tensor(data.X, device=device)
    y = torch.as_tensor(standardize(data.loss, bad_side), device=device)
    names = {h.name for h in kernel.hypers}  # a study of an earlier version may lack some
    last = max(
        (m for m in (*data.memos, *data.pending_memos) if names <= m.get("theta", {}).keys()),
        key=lambda m: m["fitted"],
        default=None,
    )
    n = len(y)
    memo: dict[str, Any] = {}
    if last is not None and n - last["fitted"] < max(1, last["fitted"] // refits):
        known: _Known | None = data.scratch.get("gp")
        if known is not None and known.serves(kernel, data, last["theta"]):
            return known.gp, memo
        theta = theta_from_json(last["theta"], device)
    else:
        start = {**starting_theta(kernel), "noise": torch.tensor(noise.start, dtype=torch.float64)}
        first = start if last is None else theta_from_json(last["theta"], device)
        theta = fit(kernel, X, y, [first], noise=noise)
        memo = {"theta": theta_to_json(theta), "fitted": n}
    gp = GP.of(kernel, theta, X, y)
    data.scratch["gp"] = _Known(gp, theta_to_json(theta), data.X, data.loss)
    return gp, memo


@dataclass(frozen=True)
class _Known:
    """The model of an earlier proposal."""

    gp: GP
    theta: Mapping[str, Any]  # JSON
    X: Array
    loss: Array

    def serves(self, kernel: Kernel, data: Data, theta: Mapping[str, Any]) -> bool:
        return (
            kernel == self.gp.kernel
            and theta == self.theta
            and np.array_equal(self.loss, data.loss)
            and np.array_equal(self.X, data.X)
        )


def with_pending(gp: GP, data: Data) -> GP:
    """The process with the pending rows told their means (Desautels et al. 2014).

    In haste, proposals with no result between them extend one factor row by row. That differs
    from the factor of all rows in the last digits, so otherwise, where a replayed study is to
    propose the same points to the last digit, there is one for all.
    """
    told, pending, known = data.scratch.get("pending", (None, data.pending, gp))
    n = len(pending)
    if not data.haste or told is not gp or not np.array_equal(pending, data.pending[:n]):
        n, known = 0, gp
    gp_now: GP = known.condition_on_mean(torch.as_tensor(data.pending[n:], device=gp.X.device))
    data.scratch["pending"] = gp, data.pending, gp_now
    return gp_now


def theta_to_json(theta: Theta) -> dict[str, Any]:
    """Hyperparameters as JSON."""
    return {name: value.tolist() for name, value in theta.items()}


def theta_from_json(item: Mapping[str, Any], device: str = "cpu") -> dict[str, Tensor]:
    """Hyperparameters written by `theta_to_json`."""
    return {k: torch.tensor(v, dtype=torch.float64, device=device) for k, v in item.items()}


def acquisition_of(gp: GP, name: str, best: Tensor, n: int) -> Acquisition:
    """The acquisition called `name` of a model of n told rows."""
    beta = 0.2 * gp.X.shape[1] * math.log(2.0 * n)  # Kandasamy et al. 2015
    level = torch.as_tensor(beta).to(best) if name == "ucb" else best
    if isinstance(gp.kernel, Stationary) and gp.X.device.type == "cpu":
        return ClosedForm(gp, name, float(level))
    plain = ACQUISITIONS[name]
    return lambda X: plain(gp.posterior(X), level)


def acquisition_family(gp: GP, name: str, n: int) -> Family:
    """The acquisition of a process of n told rows, for an elastic search."""

    def at(multiple: float) -> Acquisition:
        wide = stretch(gp, multiple)
        return acquisition_of(wide, name, wide.fitted().min(), n)

    return at


def untried(f: Acquisition, space: AnySpace, data: Data) -> Acquisition:
    """`f` with points of a finite space that were tried before ruled out."""
    if space.cardinality is None:
        return f
    tried = {row.tobytes() for row in (*data.X, *data.pending)}

    def fresh(X: Tensor) -> Tensor:
        known = [row.tobytes() in tried for row in X.detach().cpu().numpy()]
        return torch.where(torch.tensor(known, device=X.device), -torch.inf, f(X))

    return fresh


def search_region(
    space: AnySpace, data: Data, rng: np.random.Generator, device: str, n: int = 256
) -> Region:
    """The cube with its grids, and starts: spread over it, and around the best points so far."""
    unordered = unordered_columns(space)
    best = data.X[np.argsort(data.loss, kind="stable")[:3]]
    starts = np.concatenate([spread(space.dim, n, rng), around(best, n, rng, unordered)])
    grids = {i: g for i in range(space.dim) if (g := grid_of(space, i)) is not None}
    return Region(
        np.zeros(space.dim), np.ones(space.dim), space.snap(starts), grids, space.snap, device
    )


def grid_of(space: AnySpace, column: int) -> Array | None:
    """Positions of a discrete column's values, or None for one searched as continuous."""
    unordered = space.columns[column].kind in ("categorical", "choice")
    return space.grid(column, 10**6 if unordered else GRID_LIMIT)
