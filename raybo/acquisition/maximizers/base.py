"""What a maximizer is: an acquisition, a region and a generator to the best point found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from raybo.arrays import Array
from raybo.lazy import Tensor, torch

Acquisition = Callable[[Tensor], Tensor]  # (m, d) -> (m,)


def _identity(X: Array) -> Array:
    return X


@dataclass(frozen=True)
class Region:
    """Where to search: a box, points worth starting from, and what is discrete in it."""

    lower: Array  # (d,)
    upper: Array  # (d,)
    starts: Array  # (k, d), snapped
    grids: Mapping[int, Array] = field(default_factory=dict)  # allowed positions of these columns
    snap: Callable[[Array], Array] = _identity  # rows moved to points that can be evaluated
    device: str = "cpu"
    walled: bool = False  # whether the acquisition is -inf in a part of the box
    listed: bool = False  # whether only the starts can be evaluated

    @property
    def dim(self) -> int:
        """Number of columns."""
        return len(self.lower)


class Maximizer(Protocol):
    """A search for the maximum of an acquisition over a region."""

    def __call__(self, f: Acquisition, region: Region, rng: np.random.Generator) -> Array:
        """Best point found (d,): in the region, snapped, no worse than the best start."""


def with_gradient(f: Acquisition, X: Array, device: str = "cpu") -> tuple[Array, Array]:
    """Acquisition at the rows of X (m,) and its gradients (m, d), as arrays."""
    closed_form = getattr(f, "with_gradient", None)
    if closed_form is not None:
        value, slope = closed_form(X)
        return value, slope
    Z = torch.as_tensor(X, device=device).requires_grad_()
    value = f(Z)
    (gradient,) = torch.autograd.grad(value.sum(), Z)
    return value.detach().cpu().numpy(), gradient.cpu().numpy()


def values(f: Acquisition, X: Array, device: str = "cpu") -> Array:
    """Acquisition at the rows of X, as an array; what is not a number counts as -inf."""
    with torch.no_grad():
        found = f(torch.as_tensor(X, device=device)).cpu().numpy()
    return np.where(np.isnan(found), -np.inf, found)
