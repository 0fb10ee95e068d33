"""What a method is: a pure function of the data of a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Memo = Mapping[str, Any]

MOST_HASTE = 2


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
    failed: NDArray[np.bool_]  # (n,)
    memos: tuple[Memo, ...]  # (n) what the method noted when it proposed them
    pending: Array  # (p, d) asked, not yet told
    pending_memos: tuple[Memo, ...]  # (p)
    haste: int = 0  # 0 to MOST_HASTE: how much to save on effort, since workers wait
    # Work of earlier proposals of this process, for reuse; may be empty at any time.
    scratch: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

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

        One value has no scale; in haste a model waits for the values of a whole design.
        """
        return self.n_rows < n_init or self.n_told < (n_init if self.haste else 2)


@dataclass(frozen=True)
class Proposal:
    """A point to evaluate: a row of the cube, or a config where there are no rows."""

    x: Array | None = None
    config: Mapping[str, Any] | None = None
    memo: dict[str, Any] = field(default_factory=dict)  # JSON; comes back in Data.memos


class Method(Protocol):
    """A search method, built once per study as `Class(space, **options)`; `self` never changes."""

    @property
    def lanes(self) -> int:
        """Number of independent searches: trial i sees only trials j with i = j modulo lanes."""

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Next point to evaluate."""


def lane_of(number: int, lanes: int) -> int:
    """Return the lane, from 0 to `lanes` - 1, that trial `number` belongs to."""
    return number % lanes
