"""What a method is: a pure function of the data of a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from raybo.arrays import Array, Bools

Memo = Mapping[str, Any]


@dataclass(frozen=True)
class Effort:
    """How much a proposal may cost: full where there is time, less where workers wait for it."""

    name: str
    refit_share: int  # fit again when the data have grown by 1 / refit_share
    fit_iterations: int  # of L-BFGS-B, from each start of a fit
    n_screened: int  # points over the space, and as many around the best, where a search starts
    n_starts: int  # of these that are climbed from
    max_evaluations: int  # of the acquisition in a climb


# `raybo bench asynchrony` compares them: 64 points in flight, 300 evaluations of Hartmann6, median
# regret of three seeds 3e-5, 6e-4 and 3e-4 at 35, 15 and 8 ms for a proposal.
FULL = Effort("full", 10, 50, 256, 6, 40)
REDUCED = Effort("reduced", 5, 12, 64, 1, 10)
LEAST = Effort("least", 2, 6, 32, 1, 4)
EFFORTS = (FULL, REDUCED, LEAST)


@dataclass(frozen=True)
class Data:
    """All that a method may look at when it proposes trial `number`.

    Rows are in the order of their trial numbers and hold the points that were truly evaluated,
    as rows of the unit cube (no columns for a box too large to have any: `space.dense` is false).
    """

    number: int  # of the trial to propose
    seed: int  # of the study
    X: Array  # (n, d) told points
    loss: Array  # (n,) finite; a failed trial counts as the worst finite loss told so far
    failed: Bools  # (n,)
    memos: tuple[Memo, ...]  # (n) what the method noted when it proposed them
    pending: Array  # (p, d) asked, not yet told
    pending_memos: tuple[Memo, ...]  # (p)
    effort: Effort = FULL
    # Results of earlier proposals of this process, to be reused; may be empty at any time, and
    # changes a proposal by rounding at most.
    cache: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def n_told(self) -> int:
        """Number of points whose loss is known, failures not counted."""
        return int(np.count_nonzero(~self.failed))

    @property
    def n_rows(self) -> int:
        """Number of points asked so far: told, failed and pending."""
        return len(self.loss) + len(self.pending_memos)

    def needs_design(self, n_init: int) -> bool:
        """Whether the next point belongs to the initial design: too few asked, or too few told.

        One value has no scale, so a model needs two. With less than full effort it waits for the
        values of the whole design.
        """
        return self.n_rows < n_init or self.n_told < (2 if self.effort == FULL else n_init)

    def last_fit(self, *keys: str) -> Memo | None:
        """Memo of the latest fit that holds all `keys`; None before the first."""
        fits = (m for m in (*self.memos, *self.pending_memos) if {"fitted", *keys} <= m.keys())
        return max(fits, key=lambda memo: int(memo["fitted"]), default=None)

    def is_refit_due(self, fitted: int) -> bool:
        """Whether to fit again, the last fit being of `fitted` rows."""
        return len(self.loss) - fitted >= max(1, fitted // self.effort.refit_share)

    def best_rows(self, n: int = 3) -> Array:
        """The n rows of least loss, best first."""
        return np.asarray(self.X[np.argsort(self.loss, kind="stable")[:n]])


@dataclass(frozen=True)
class Proposal:
    """A point to evaluate: a row of the cube, or a config where there are no rows."""

    x: Array | None = None
    config: Mapping[str, Any] | None = None
    # JSON; comes back in Data.memos, with "replaced": True if Study evaluated another point
    # because this one had been proposed before.
    memo: dict[str, Any] = field(default_factory=dict)


class Method(Protocol):
    """A search method, built once per study as `Class(space, **options)`; `self` never changes.

    One with `reads_data = False` is given no trials, so that its proposals cost the same after
    ten trials and after ten thousand.
    """

    @property
    def lanes(self) -> int:
        """Number of independent searches; a trial sees only the trials of its own lane."""

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Next point to evaluate."""


def lane_of(number: int, lanes: int) -> int:
    """Return the lane, from 0 to `lanes` - 1, that trial `number` belongs to."""
    return number % lanes
