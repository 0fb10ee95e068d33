"""What a method is: a pure function of the data of a study."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from raybo.arrays import Array, Bools

Memo = Mapping[str, Any]
NOTED = "noted"  # entry of a memo: what several methods noted, by their names


@dataclass(frozen=True)
class Effort:
    """How much a proposal may cost: full where there is time, less where workers wait for it."""

    name: str
    refit_share: int  # fit again when the data have grown by 1 / refit_share
    fit_iterations: int  # of L-BFGS-B, from each start of a fit
    n_screened: int  # points over the space, and as many around the best, where a search starts
    n_starts: int  # of these that are climbed from
    max_evaluations: int  # of the acquisition in a climb
    max_rows: int  # told points of which a model is made, the best and some others


# Less effort costs digits: 64 points in flight, 300 evaluations of Hartmann6 by `bo`, ten fresh
# seeds. With each effort five of them end in the best basin, with a regret of 10^-5.8, 10^-5.4
# and 10^-4.5 (medians), and five in the next one; 39, 13 and 10 ms for a proposal.
# A fit of `bo` with full effort to 2,000 rows takes a minute of one core, to 4,000 more than five.
FULL = Effort("full", 10, 50, 256, 6, 40, 2000)
REDUCED = Effort("reduced", 5, 12, 64, 1, 10, 1000)
LEAST = Effort("least", 2, 6, 32, 1, 4, 500)
EFFORTS = (FULL, REDUCED, LEAST)


def _no_rows() -> Array:
    return np.empty((0, 0))


def _no_values() -> Array:
    return np.empty(0)


@dataclass(frozen=True)
class Data:
    """All that a method may look at when it proposes trial `number`.

    Rows are in the order of their trial numbers and hold the points that were truly evaluated,
    as rows of the unit cube (no columns for a box too large to have any: `space.dense` is false).
    """

    number: int  # of the trial to propose
    seed: int  # of the study
    X: Array  # (n, d) told points
    loss: Array  # (n,) finite
    memos: tuple[Memo, ...]  # (n) what the method noted when it proposed them
    pending: Array  # (p, d) asked, not yet told
    pending_memos: tuple[Memo, ...]  # (p)
    effort: Effort = FULL
    failed: Array = field(default_factory=_no_rows)  # (f, d) points that gave no value
    failed_memos: tuple[Memo, ...] = ()  # (f)
    # (n, c) by how much the outcomes of told points exceed their bounds, allowed where <= 0; one
    # column per bound, none where the study has no bounds.
    excess: Array = field(default_factory=_no_rows)
    # (n,) deviations of losses that are expected of unfinished trials, by their curves so far, 0
    # where the loss is the trial's own; empty where all of them are.
    spread: Array = field(default_factory=_no_values)
    n_running: int = 0  # told points that are pending, too: their trials have reported
    dropped_memos: tuple[Memo, ...] = ()  # of told points that are too many for the effort
    first: int = 0  # number of the first trial of this search
    earlier: Array = field(default_factory=_no_rows)  # (e, d) points of the searches before it
    # Results of earlier proposals of this process, to be reused; may be empty at any time, and
    # changes a proposal by rounding at most.
    cache: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def rng(self) -> np.random.Generator:
        """Random numbers for what a model of these data draws."""
        return np.random.default_rng([self.seed, self.number, self.n_told])

    @property
    def n_told(self) -> int:
        """Number of points whose loss is known."""
        return len(self.loss) + len(self.dropped_memos)

    @property
    def n_rows(self) -> int:
        """Number of points asked so far: told, failed and pending."""
        return len(self.all_memos) - self.n_running

    @property
    def all_memos(self) -> tuple[Memo, ...]:
        """What the method noted with any point, whatever became of it."""
        return self.memos + self.dropped_memos + self.failed_memos + self.pending_memos

    @property
    def feasible(self) -> Bools:
        """Which told points are within all bounds: (n,)."""
        if not self.excess.size:
            return np.ones(len(self.loss), dtype=bool)
        return np.asarray((self.excess <= 0.0).all(axis=1))

    @property
    def finished(self) -> Bools:
        """Which told points have a loss of their own: (n,)."""
        return self.spread == 0.0 if self.spread.size else np.ones(len(self.loss), dtype=bool)

    def needs_design(self, n_init: int) -> bool:
        """Whether the next point belongs to the initial design: too few asked, or too few told.

        One value has no scale, so a model needs two. With less than full effort it waits for the
        values of the whole design.
        """
        return self.n_rows < n_init or self.n_told < (2 if self.effort == FULL else n_init)

    def last_fit(self, *keys: str) -> Memo | None:
        """Memo of the latest fit that holds all `keys`; None before the first."""
        noted = (memo for memo in self.all_memos if "fitted" in memo)
        fits = (memo for memo in noted if memo.keys() >= {*keys})
        return max(fits, key=lambda memo: int(memo["fitted"]), default=None)

    def is_refit_due(self, fitted: int) -> bool:
        """Whether to fit again, the last fit being of `fitted` rows."""
        return self.is_due(fitted, self.n_told)

    def is_due(self, fitted: int, rows: int) -> bool:
        """Whether to fit a model of `rows` rows again, its last fit being of `fitted`."""
        return rows - fitted >= max(1, fitted // self.effort.refit_share)

    def with_failures_as_worst(self) -> Data:
        """The data with failed points, and those that break a bound, at the worst loss.

        For methods that search their acquisition part by part: a probability of success is one of
        whole points.
        """
        worst = self.loss.max()
        return replace(
            self,
            X=np.concatenate([self.X, self.failed.reshape(-1, self.X.shape[1])]),
            loss=np.append(np.where(self.feasible, self.loss, worst), [worst] * len(self.failed)),
            memos=self.memos + self.failed_memos,
            failed=self.failed[:0],
            failed_memos=(),
            excess=self.excess[:0],
            spread=np.append(self.spread, [0.0] * len(self.failed))
            if self.spread.size
            else self.spread,
        )

    def only(
        self, holds: Callable[[Memo], bool], points: Callable[[Sequence[Memo]], Array]
    ) -> Data:
        """The data of the points whose memo `holds`, with the `points` of memos as their rows.

        For methods that search another space than that of the study, and note where in it a point
        lies. A point of the user has no such note, and one that the study drew in place of a
        duplicate is not the one in its memo.
        """

        def kept(memo: Memo) -> bool:
            return holds(memo) and not memo.get("replaced", False)

        told = [i for i, memo in enumerate(self.memos) if kept(memo)]
        memos = tuple(self.memos[i] for i in told)
        failed_memos = tuple(filter(kept, self.failed_memos))
        pending_memos = tuple(filter(kept, self.pending_memos))
        return replace(
            self,
            X=points(memos),
            loss=self.loss[told],
            excess=self.excess[told] if self.excess.size else self.excess,
            spread=self.spread[told] if self.spread.size else self.spread,
            memos=memos,
            failed=points(failed_memos),
            failed_memos=failed_memos,
            pending=points(pending_memos),
            pending_memos=pending_memos,
        )

    def without_fits(self) -> Data:
        """The data without earlier fits, which were of other losses at the same points."""
        return replace(
            self,
            memos=_without_fits(self.memos),
            pending_memos=_without_fits(self.pending_memos),
            dropped_memos=_without_fits(self.dropped_memos),
            failed_memos=_without_fits(self.failed_memos),
        )

    def thinned(self) -> Data:
        """The data with no more told points than the effort allows a model.

        Half of them are the best, the others are spread evenly over the rest. A model of all costs
        their number squared or cubed, and workers would wait for it.
        """
        n, most = len(self.loss), self.effort.max_rows
        if n <= most:
            return self
        order = np.lexsort((self.loss, ~self.feasible))
        best, rest = order[: most // 2], np.sort(order[most // 2 :])
        some = rest[np.linspace(0, len(rest) - 1, most - len(best)).astype(int)]
        keep = np.sort(np.concatenate([best, some]))
        kept = set(keep.tolist())
        return replace(
            self,
            X=self.X[keep],
            loss=self.loss[keep],
            memos=tuple(self.memos[i] for i in keep),
            excess=self.excess[keep] if self.excess.size else self.excess,
            spread=self.spread[keep] if self.spread.size else self.spread,
            dropped_memos=tuple(memo for i, memo in enumerate(self.memos) if i not in kept),
        )

    def after(self, number: int, X: Array, memos: Iterable[Memo]) -> Data:
        """The data of trial `number`, with more pending points X (k, d) and their memos."""
        return replace(
            self,
            number=number,
            pending=np.concatenate([self.pending, X]),
            pending_memos=(*self.pending_memos, *memos),
        )

    def best_rows(self, n: int = 3) -> Array:
        """The n rows of least loss, best first; those within all bounds before the others."""
        return np.asarray(self.X[np.lexsort((self.loss, ~self.feasible))[:n]])


def _without_fits(memos: Iterable[Memo]) -> tuple[Memo, ...]:
    """Memos, and those of the methods inside them, without the mark of a fit."""
    return tuple(_without_fit(memo) for memo in memos)


def _without_fit(memo: Memo) -> Memo:
    kept = {key: entry for key, entry in memo.items() if key != "fitted"}
    if NOTED in kept:
        kept[NOTED] = {name: _without_fit(own) for name, own in kept[NOTED].items()}
    return kept


@dataclass(frozen=True)
class Proposal:
    """A point to evaluate: a row of the cube, or a config where there are no rows."""

    x: Array | None = None
    config: Mapping[str, Any] | None = None
    # JSON; comes back in Data.memos, with "replaced": True if Study evaluated another point
    # because this one had been proposed before.
    memo: dict[str, Any] = field(default_factory=dict)


def proposals_at(X: Array, learnt: Memo, each: Memo | None = None) -> list[Proposal]:
    """Proposals of the rows X (k, d): the first notes what was learnt, all note `each`."""
    return [Proposal(x=x, memo={**({} if i else learnt), **(each or {})}) for i, x in enumerate(X)]


class Method(Protocol):
    """A search method, built once per study as `Class(space, **options)`; `self` never changes.

    One with `reads_data = False` is given no trials, so that its proposals cost the same after
    ten trials and after ten thousand. One with `restarts = True` is given those of its present
    search only (raybo/study/restarts.py). One with `propose_many(data, rngs)` is asked for several
    points at a time where workers wait for them; it returns at least one, the first of `rngs` is
    for the first of them, and with one generator it does what `propose` does.
    """

    @property
    def lanes(self) -> int:
        """Number of independent searches; a trial sees only the trials of its own lane."""

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Next point to evaluate."""


def ask_method(method: Method, data: Data, rngs: Sequence[np.random.Generator]) -> list[Proposal]:
    """Return at least one proposal, and as many as the method makes at a time for `rngs`."""
    many = getattr(method, "propose_many", None)
    if len(rngs) == 1 or many is None:
        return [method.propose(data, rngs[0])]
    found: list[Proposal] = many(data, rngs)
    return found


def lane_of(number: int, lanes: int) -> int:
    """Return the lane, from 0 to `lanes` - 1, that trial `number` belongs to."""
    return number % lanes
