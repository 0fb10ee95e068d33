"""Where and what a method searches for its next point: acquisitions, regions and starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from raybo.acquisition.closed_form import ClosedForm
from raybo.acquisition.functions import ACQUISITIONS, exploration
from raybo.acquisition.maximizers.base import Acquisition, Region
from raybo.acquisition.maximizers.elastic import Family, scale_lengthscales
from raybo.acquisition.starts import around, spread
from raybo.arrays import Array, Bools
from raybo.lazy import Tensor, torch
from raybo.methods.base import Data
from raybo.methods.feasibility import Feasibility, feasibility
from raybo.methods.model import incumbent, mixed_kernel, unordered_columns
from raybo.space.any_space import AnySpace
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.base import has_gradient

Bars = Callable[[Array], Bools]  # which rows (m, d) are not to be proposed

LISTED = 4096  # rows of a list compared for a proposal, of a longer list drawn: time, memory
GRID_LIMIT = 64  # values of a column tried one by one; more are continuous, to save time


def weighed_acquisition(
    gp: GP, name: str, data: Data, success: Feasibility, best: Tensor | None = None
) -> Acquisition:
    """The acquisition called `name` over the incumbent or `best`, weighed by what may succeed.

    Where trials fail or have bounds, "ei" is taken by its logarithm: log EI + log P has its
    maximum where EI * P has it.
    """
    best = incumbent(gp, data) if best is None else best
    return success.weigh(acquisition_of(gp, named(name, success), best, len(data.loss)))


def named(name: str, success: Feasibility) -> str:
    """Name of the acquisition to take for the one called `name`."""
    return "log_ei" if name == "ei" and success.parts else name


def level_of(gp: GP, name: str, best: Tensor, n: int) -> Tensor:
    """What the acquisition called `name` compares a posterior of n told rows with."""
    return best.new_tensor(exploration(gp.X.shape[1], n)) if name == "ucb" else best


def acquisition_of(gp: GP, name: str, best: Tensor, n: int) -> Acquisition:
    """The acquisition called `name` of a model of n told rows."""
    level = level_of(gp, name, best, n)
    if gp.X.device.type == "cpu" and has_gradient(gp.kernel):
        return ClosedForm(gp, name, float(level))
    plain = ACQUISITIONS[name]
    return lambda X: plain(gp.posterior(X), level.to(X.device))


def acquisition_family(gp: GP, of: Callable[[GP], Acquisition]) -> Family:
    """The acquisitions `of` the process with longer length-scales, for an elastic search."""
    return lambda multiple: of(scale_lengthscales(gp, multiple))


def success_of(space: AnySpace, data: Data) -> Feasibility:
    """What the rows of a space with columns say of where trials succeed."""
    return feasibility(mixed_kernel(space, "matern52", scaled=True), data)


def untried(f: Acquisition, space: AnySpace, data: Data) -> Acquisition:
    """`f`, with -inf at points that are not allowed or were tried before."""
    return Barred(f, barred(space, data))


def barred(space: AnySpace, data: Data) -> Bars:
    """Which rows are not allowed or were tried before.

    Of a continuous space a search comes back to its corners to the last digit, and where values
    are noisy a model sees something to gain in the best point itself.
    """
    tried = {row.tobytes() for row in (*data.X, *data.failed, *data.pending, *data.earlier)}

    def bars(X: Array) -> Bools:
        seen = np.array([row.tobytes() in tried for row in X], dtype=bool)
        return seen | ~space.allowed(X) if space.constrained else seen

    return bars


class Embeds(Protocol):
    """A small space whose points have images in the space of a study."""

    @property
    def space(self) -> AnySpace:
        """The space of the study."""

    def images(self, Z: Array, /) -> Array:
        """Rows (n, D) of the unit cube that the rows of Z (n, d) map to."""


def barred_images(embedding: Embeds, data: Data, own: Data) -> Bars:
    """Which points z have an image that is not allowed or was tried before.

    `own` holds the points whose images `data` holds; where images are too large to be made, the
    points stand for them.
    """
    if not embedding.space.dense:
        return barred(embedding.space, own)
    bars = barred(embedding.space, data)
    return lambda Z: bars(embedding.images(Z))


@dataclass(frozen=True)
class Barred:
    """An acquisition with -inf at some points."""

    f: Acquisition
    bars: Bars

    def __call__(self, X: Tensor) -> Tensor:
        """Values (m,)."""
        barred = torch.as_tensor(self.bars(X.detach().cpu().numpy()), device=X.device)
        return torch.where(barred, -torch.inf, self.f(X))

    @property
    def with_gradient(self) -> Callable[[Array], tuple[Array, Array]]:
        """Values (m,) and gradients (m, d); no such attribute unless `f` has it."""
        unbarred: Callable[[Array], tuple[Array, Array]] = self.f.with_gradient  # type: ignore[attr-defined]

        def masked(X: Array) -> tuple[Array, Array]:
            value, gradient = unbarred(X)
            return np.where(self.bars(X), -np.inf, value), gradient

        return masked


def search_region(
    space: AnySpace, data: Data, rng: np.random.Generator, device: str = "cpu"
) -> Region:
    """The cube with its grids, and starts: spread over it, and around the best points so far."""
    n = data.effort.n_screened
    near = around(data.best_rows(), n, rng, unordered_columns(space))
    if space.listed is not None:
        rows = space.listed
        if len(rows) > LISTED:
            rows = np.concatenate([space.sample(LISTED, rng), space.snap(near)])
        zeros = np.zeros(space.dim)
        return Region(zeros, zeros + 1.0, rows, snap=space.snap, device=device, listed=True)
    over = space.sample(n, rng) if space.constrained else spread(space.dim, n, rng)
    starts = np.concatenate([over, near])
    grids = {i: g for i in range(space.dim) if (g := grid_of(space, i)) is not None}
    return Region(
        np.zeros(space.dim),
        np.ones(space.dim),
        space.snap(starts),
        grids,
        space.snap,
        device,
        space.constrained,
    )


def grid_of(space: AnySpace, column: int) -> Array | None:
    """Positions of a discrete column's values, or None for one searched as continuous."""
    return space.grid(column, GRID_LIMIT if space.columns[column].ordered else 10**6)
