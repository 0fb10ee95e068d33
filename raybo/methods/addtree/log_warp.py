"""Scales of columns between linear and logarithmic, to be learnt."""

from __future__ import annotations

import torch
from torch import Tensor

from raybo.surrogate.kernels.base import Hyper, LogNormal

SPREAD = 1.5  # of the logarithm of a ratio about 0


def stretch(U: Tensor, ratio: Tensor) -> Tensor:
    """Positions in [0, 1] on a scale whose slope at 0 is `ratio` times that at 1.

    log(1 + (ratio - 1) u) / log(ratio): 1 leaves them as they are; high / low makes the scale of a
    range from low to high logarithmic; below 1 the other end is stretched. Users give parameters
    linear scales that should not have one: the rank of a layer from 10 to 500, whose best value is
    40 (`fc3`).
    """
    k = ratio.log()
    small = k.abs() < 1e-4  # where the quotient is 0 / 0
    safe = torch.where(small, torch.ones_like(k), k)
    exact = torch.log1p(torch.expm1(safe) * U) / safe
    return torch.where(small, U + 0.5 * k * U * (1.0 - U), exact)


def stretch_hypers(n: int) -> tuple[Hyper]:
    """Ratios of n columns."""
    return (Hyper("stretch", (n,), 1e-3, 1e3, 1.0, LogNormal.with_mode(1.0, SPREAD)),)
