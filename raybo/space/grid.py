"""Grid: a finite, evenly spaced set of values as intervals of [0, 1]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

from raybo.arrays import Array

EXACT = 2**50  # with more values, float64 no longer distinguishes neighbours


@dataclass(frozen=True)
class Grid:
    """The values low + k * step, k = 0 .. size - 1, each owning an interval of [0, 1].

    Parameters
    ----------
    size : int
        Number of values.
    low, step : float
        First value and distance of neighbours; they matter on a log scale only.
    log : bool
        Whether positions are affine in the logarithm of the value.

    Notes
    -----
    The cube spans low - step/2 to high + step/2, on a log scale low - min(step, low)/2 so that
    the logarithm exists. Log positions are written with log1p of the distance from that edge:
    a short range far from zero (10**17 to 10**17 + 5) keeps its resolution.
    """

    size: int
    low: float = 0.0
    step: float = 1.0
    log: bool = False

    @cached_property
    def _margin(self) -> float:
        return min(self.step, self.low) / 2

    @cached_property
    def _edge(self) -> float:
        return self.low - self._margin

    @cached_property
    def _span(self) -> float:
        return math.log1p((self._margin + (self.size - 0.5) * self.step) / self._edge)

    @cached_property
    def exact(self) -> bool:
        """Whether float64 positions distinguish all values."""
        return self.size * (max(1.0, self._span) if self.log else 1.0) <= EXACT

    def _position(self, k: Any, xp: ModuleType) -> Any:
        if not self.log:
            return (k + 0.5) / self.size
        return xp.log1p((k * self.step + self._margin) / self._edge) / self._span

    def _index(self, u: Any, xp: ModuleType) -> Any:
        if not self.log:
            return xp.floor(u * self.size)
        distance = xp.expm1(u * self._span) * self._edge - self._margin
        return xp.floor(distance / self.step + 0.5)

    def position(self, k: int) -> float:
        """Return the position in [0, 1] of value number k."""
        return min(float(self._position(k, math)), 1.0)

    def index(self, u: float) -> int:
        """Return the number of the value whose interval holds u."""
        return min(max(int(self._index(u, math)), 0), self.size - 1)

    def positions(self) -> Array:
        """Return the positions of all values, shape (size,)."""
        return self._clipped(np.arange(self.size, dtype=np.float64))

    def indices(self, u: Array) -> Array:
        """Return the numbers (as floats) of the values whose intervals hold the entries of u."""
        k: Array = np.clip(self._index(u, np), 0, self.size - 1)
        return k

    def snap(self, u: Array) -> Array:
        """Return the positions of the values that u decodes to; u itself if not exact."""
        return self._clipped(self.indices(u)) if self.exact else u

    def _clipped(self, k: Array) -> Array:
        u: Array = np.minimum(self._position(k, np), 1.0)
        return u
