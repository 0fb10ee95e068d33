"""Slice sampling (Neal 2003): one coordinate at a time, all chains in one evaluation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from raybo.arrays import Array

Rows = NDArray[np.intp]
LogDensity = Callable[[Array], Array]  # (k, h) -> (k,), up to a constant; -inf is allowed
Along = Callable[[Rows, Array], Array]  # chains, new values of one coordinate -> densities

_STEPS = 8  # widths over which an interval may grow
_SHRINKS = 100  # by then an interval is the present state alone


def slice_sweep(
    log_density: LogDensity,
    states: Array,
    bounds: Array,
    rng: np.random.Generator,
    width: float = 1.5,
) -> Array:
    """States after every coordinate of every chain was drawn once.

    Parameters
    ----------
    log_density
        Of rows of states; the chains have it in common and do not see each other.
    states
        Present states (k, h), inside the bounds and of finite density.
    bounds
        Lower and upper bounds (h, 2); the density beyond them is 0.
    rng
        Source of all draws.
    width
        First guess of the width of a slice: it changes the cost, not the distribution.

    Returns
    -------
    ndarray
        New states (k, h).

    Notes
    -----
    Neal (2003), figures 3 (stepping out) and 5 (shrinkage), the coordinates in random order.
    """
    states = states.copy()
    density = log_density(states)
    for j in rng.permutation(states.shape[1]):
        level = density + np.log(rng.random(len(states)))
        along = _along(log_density, states.copy(), int(j))
        ends = _step_out(along, states[:, j], bounds[j], level, rng, width)
        states[:, j], density = _shrink(along, states[:, j], density, ends, level, rng)
    return states


def _along(log_density: LogDensity, states: Array, j: int) -> Along:
    """Density as a function of coordinate j."""

    def density(chains: Rows, values: Array) -> Array:
        moved = states[chains]
        moved[:, j] = values
        return log_density(moved)

    return density


def _step_out(
    along: Along,
    x: Array,
    bounds: Array,
    level: Array,
    rng: np.random.Generator,
    width: float,
) -> Array:
    """Intervals (k, 2) around x that reach out of the slices, or as far as is allowed."""
    left = x - width * rng.random(len(x))
    ends = np.stack([left, left + width], axis=1)
    ends[np.isneginf(level)] = bounds  # a state of no density, which new data may leave behind
    steps = rng.integers(_STEPS, size=len(x))
    room = np.stack([steps, _STEPS - 1 - steps], axis=1)  # a random split keeps it reversible
    while True:
        chains, side = np.nonzero((ends > bounds[0]) & (ends < bounds[1]) & (room > 0))
        if not len(chains):
            return np.clip(ends, bounds[0], bounds[1])
        grows = along(chains, ends[chains, side]) > level[chains]
        room[chains, side] = np.where(grows, room[chains, side] - 1, 0)
        ends[chains, side] += np.where(grows, width * (2 * side - 1), 0.0)


def _shrink(
    along: Along,
    x: Array,
    density: Array,
    ends: Array,
    level: Array,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Draws (k,) from the slices, and their densities."""
    drawn, density, ends = x.copy(), density.copy(), ends.copy()
    chains = np.arange(len(x))
    for _ in range(_SHRINKS):
        low, high = ends[chains].T
        new = low + (high - low) * rng.random(len(chains))
        found = along(chains, new)
        taken = found > level[chains]
        drawn[chains[taken]], density[chains[taken]] = new[taken], found[taken]
        chains, new = chains[~taken], new[~taken]
        ends[chains, (new > x[chains]).astype(np.intp)] = new
        if not len(chains):
            break
    return drawn, density
