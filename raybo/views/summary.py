"""Compute the numbers that a report shows; nothing is drawn here."""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from raybo.arrays import Array, Bools, Indices
from raybo.errors import StudyError
from raybo.methods.base import lane_of
from raybo.space.box import Box
from raybo.space.columns import Column
from raybo.study.curves import course_of, expected_losses
from raybo.study.objective import Objective
from raybo.study.outcome import Outcome, flat_config
from raybo.study.restarts import RESTART
from raybo.study.trial import State, Trial, best_of

if TYPE_CHECKING:
    from raybo.methods.feasibility import Feasibility
    from raybo.methods.sensitivity import Surface
    from raybo.study.recommend import Recommendation

MOST_TRIALS = 2000  # drawn: a browser shows as many at once, and more hide each other
_MOST_ENTRIES = 20_000_000  # of the rows of these trials: 160 MB
_MOST_RECOMMENDED = 1000  # trials of which a model is made in a second
_DECADES = 2.0  # positive values that range over more are drawn on a log scale


@dataclass(frozen=True)
class Scale:
    """How values are drawn: on a log scale, or between bounds beyond which few bad ones lie."""

    low: float
    high: float
    log: bool = False

    @classmethod
    def of(cls, values: Array, mode: str) -> Scale:
        """Scale of the values; a linear one leaves out values far worse than nine in ten."""
        if not len(values):
            return cls(0.0, 1.0)
        low, high = float(values.min()), float(values.max())
        if low > 0 and math.log10(high / low) > _DECADES:
            return cls(low, high, log=True)
        if mode == "min":
            usual = float(np.quantile(values, 0.9))
            high = min(high, usual + 0.5 * (usual - low))
        else:
            usual = float(np.quantile(values, 0.1))
            low = max(low, usual - 0.5 * (high - usual))
        return cls(low, high) if high > low else cls(low - 0.5, high + 0.5)

    def place(self, values: Array) -> Array:
        """Positions of the values, from 0 at `low` to 1 at `high`, and no further."""
        f = np.log10 if self.log else np.asarray
        low, high = float(f(self.low)), float(f(self.high))
        return np.asarray((f(np.clip(values, self.low, self.high)) - low) / (high - low))

    def ticks(self) -> list[tuple[float, str]]:
        """Positions of round values, with their texts."""
        nice = np.array(round_numbers(self.low, self.high, self.log))
        return [(float(u), short(v)) for u, v in zip(self.place(nice), nice, strict=True)]


@dataclass(frozen=True)
class Members:
    """Who proposed the trials of `auto`."""

    trials: list[Trial]  # those that a member proposed
    names: list[str]
    shares: Array  # (trials, names)

    @property
    def leader(self) -> tuple[str, float]:
        """Member with the largest share at the end, and that share."""
        best = int(self.shares[-1].argmax())
        return self.names[best], float(self.shares[-1, best])

    def expected(self, name: str, goal: Objective) -> tuple[Array, Array]:
        """What a member expected of the trials that have a value, and the values: (m,) each."""
        pairs = [
            (goal.loss(t.memo["expected"][name][0]), t.value)
            for t in self.trials
            if t.value is not None and name in t.memo.get("expected", {})
        ]
        found = np.array(pairs, dtype=float).reshape(-1, 2)
        return found[:, 0], found[:, 1]


@dataclass(frozen=True)
class Sheet:
    """What the figures of a study are drawn from; each part is computed once, when needed."""

    outcome: Outcome

    @cached_property
    def ended(self) -> list[Trial]:
        """Trials that finished or failed, by number."""
        return [t for t in self.outcome.trials if t.state in (State.DONE, State.FAILED)]

    @cached_property
    def trials(self) -> list[Trial]:
        """The trials that are drawn: those that `ended`, or a sample of very many of them."""
        return [self.ended[i] for i in self._drawn]

    @cached_property
    def _drawn(self) -> Indices:
        """Which of the trials that ended are drawn: those that were the best, others evenly."""
        n, most = len(self.ended), MOST_TRIALS
        if self.outcome.space.dense:
            most = min(most, max(1000, _MOST_ENTRIES // self.outcome.space.dim))
        if n <= most:
            return np.arange(n)
        best = self._best_after
        better = np.flatnonzero(np.append(np.nan, best[:-1]) != best)
        better = better[~np.isnan(best[better])]
        both = [every[_evenly(len(every), most // 2)] for every in (better, np.arange(n))]
        return np.unique(np.concatenate(both))

    @cached_property
    def values(self) -> Array:
        """Values of `trials`; NaN where one failed."""
        return np.array([np.nan if t.value is None else t.value for t in self.trials], dtype=float)

    @cached_property
    def done(self) -> Bools:
        """Which of `trials` have a value."""
        return ~np.isnan(self.values)

    @cached_property
    def best_so_far(self) -> Array:
        """Best value within the constraints after each of `trials`; NaN while there is none."""
        return np.asarray(self._best_after[self._drawn])

    @cached_property
    def _best_after(self) -> Array:
        goal = self.outcome.goal
        worst = np.inf if goal.mode == "min" else -np.inf
        counts = [t.value is not None and goal.allows(t.extra) for t in self.ended]
        pairs = zip(self.ended, counts, strict=True)
        values = [t.value if counted else worst for t, counted in pairs]
        better = np.minimum if goal.mode == "min" else np.maximum
        best = better.accumulate(np.array(values, dtype=float))
        return np.where(np.isinf(best), np.nan, best)

    @property
    def sampled(self) -> str:
        """What is said where not all trials are drawn; empty where all are."""
        if len(self.trials) == len(self.ended):
            return ""
        return (
            f"{len(self.trials):,} of {len(self.ended):,} trials are drawn, here and below: those "
            "that were the best so far, and others evenly."
        )

    @cached_property
    def best(self) -> int | None:
        """Index of the best of `trials`."""
        best = self.outcome.best_trial
        return next((i for i, t in enumerate(self.trials) if t is best), None)

    @cached_property
    def rows(self) -> Array:
        """Rows of `trials`; none for a box too large to have columns."""
        space = self.outcome.space
        if not space.dense:
            return np.empty((len(self.trials), 0))
        rows = [space.encode(t.config) for t in self.trials]
        return np.array(rows, dtype=float).reshape(len(rows), space.dim)

    @cached_property
    def active(self) -> Bools:
        """Which columns matter in which of `rows`."""
        return self.outcome.space.active(self.rows)

    @cached_property
    def scale(self) -> Scale:
        """How values are drawn."""
        return Scale.of(self.values[self.done], self.outcome.mode)

    @cached_property
    def recommended(self) -> Recommendation | None:
        """What the study recommends; None without values, or with so many that it takes long."""
        from raybo.study.recommend import recommendation_of  # noqa: PLC0415  (loads torch)

        if len(self.outcome.trials) > _MOST_RECOMMENDED:
            return None
        return recommendation_of(self.outcome)

    @cached_property
    def members(self) -> Members | None:
        """Shares and predictions of the members of `auto`; None for other methods."""
        trials = [t for t in self.trials if "shares" in t.memo]
        if not trials:
            return None
        names = list(dict.fromkeys(name for t in trials for name in t.memo["shares"]))
        parts = [[t.memo["shares"].get(name, 0.0) for name in names] for t in trials]
        return Members(trials, names, np.array(parts, dtype=float))

    @property
    def _learnt(self) -> tuple[Array, Array, Array | None]:
        """Rows, losses and deviations that a model learns from: curves of stopped trials, too."""
        goal, space = Objective(self.outcome.mode), self.outcome.space
        stopped = [t for t in self.outcome.trials if t.state is State.STOPPED]
        known = [t for t, done in zip(self.trials, self.done, strict=True) if done]
        rows = self.rows[self.done]
        if not stopped:
            return rows, np.array([goal.loss(v) for v in self.values[self.done]]), None
        more = np.array([space.encode(t.config) for t in stopped])
        rows = np.concatenate([rows, more.reshape(len(stopped), space.dim)])
        pairs = zip([*known, *stopped], rows, strict=True)
        return rows, *expected_losses([course_of(trial, row, goal) for trial, row in pairs])

    @cached_property
    def _model(self) -> Surface | StudyError:
        from raybo.methods.sensitivity import Surface  # noqa: PLC0415  (loads torch)

        space = self.outcome.space
        if not space.dense:
            return StudyError(f"{space!r} has too many coordinates to model each of them")
        rows, losses, spread = self._learnt
        try:
            return Surface.of(space, rows, losses, spread)
        except StudyError as error:
            return error

    @cached_property
    def success(self) -> Feasibility | None:
        """Model of where trials succeed; None where all do, or where it cannot be computed."""
        from raybo.methods.base import Data  # noqa: PLC0415
        from raybo.methods.search import success_of  # noqa: PLC0415  (loads torch)
        from raybo.methods.sensitivity import MOST_ROWS  # noqa: PLC0415

        space, goal = self.outcome.space, self.outcome.goal
        known = [i for i, t in enumerate(self.trials) if t.counts]
        known = known[:: -(-len(known) // MOST_ROWS) or 1]
        done = [i for i in known if self.done[i]]
        failed = [i for i in known if not self.done[i]]
        if not space.dense or len(done) < 2:
            return None
        data = Data(
            number=0,
            seed=0,
            X=self.rows[done],
            loss=np.zeros(len(done)),
            memos=({},) * len(done),
            pending=self.rows[:0],
            pending_memos=(),
            failed=self.rows[failed],
            excess=np.array([goal.excess(self.trials[i].extra) for i in done]),
        )
        found = success_of(space, data)
        return found if found.parts else None

    @property
    def why_no_model(self) -> str:
        """Why there is no model of the values; empty where there is one."""
        return str(self._model) if isinstance(self._model, StudyError) else ""

    @property
    def surface(self) -> Surface:
        """Model of the values; StudyError where the study cannot tell."""
        if isinstance(self._model, StudyError):
            raise self._model
        return self._model

    @cached_property
    def importances(self) -> dict[str, float]:
        """Share of each parameter, the largest first; StudyError where the study cannot tell."""
        shares = self.surface.shares
        names = [c.name for c in self.outcome.space.columns]
        return {names[i]: float(shares[i]) for i in np.argsort(-shares, kind="stable")}

    @cached_property
    def columns(self) -> list[Column]:
        """Columns of the space, those that matter most first; none for a very large box."""
        columns = self.outcome.space.columns if self.outcome.space.dense else ()
        if self.why_no_model:
            return list(columns)
        return sorted(columns, key=lambda c: -self.importances[c.name])

    def mean(self, rows: Array) -> Array:
        """Values that the model expects at rows of the cube."""
        loss = self.surface.mean(rows)
        return loss if self.outcome.mode == "min" else -loss


def _evenly(n: int, most: int) -> Indices:
    """At most `most` of n indices, the first and the last among them."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.intp))


def importances(outcome: Outcome) -> dict[str, float]:
    """Return the share of each parameter in the variation of the values, the largest first.

    Raises
    ------
    StudyError
        When the study cannot tell: too few values, or a box of too many coordinates.
    """
    return Sheet(outcome).importances


def round_numbers(low: float, high: float, log: bool) -> list[float]:
    """Return at most six round numbers between `low` and `high`."""
    if not low < high:
        return [low]
    if log:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        for digits, every in (((1, 2, 5), 1), ((1, 3), 1), *(((1,), k) for k in range(1, 400))):
            exponents = [e for e in range(first, last + 1) if e % every == 0]
            found = [float(f"{d}e{e}") for e in exponents for d in digits]
            found = [v for v in found if low * (1 - 1e-9) <= v <= high * (1 + 1e-9)]
            if len(found) <= 6:
                return found if len(found) > 1 else [low, high]
    step = 10.0 ** math.floor(math.log10((high - low) / 4))
    step *= next(k for k in (1, 2, 5, 10) if (high - low) / (k * step) <= 6)
    first = math.ceil(low / step - 1e-9)
    return [k * step + 0.0 for k in range(first, math.floor(high / step + 1e-9) + 1)]


def short(value: float) -> str:
    """Return a number as a label: 0.02, 1e-5, 250."""
    text = f"{value:.4g}"
    if value and abs(math.log10(abs(value)) - (e := round(math.log10(abs(value))))) < 1e-9:
        text = f"{value:.0e}" if e <= -3 or e >= 5 else text
    return re.sub(r"e([+-])0*(\d)", lambda m: f"e{m[1].strip('+')}{m[2]}", text)


def column_ticks(column: Column) -> list[tuple[float, str]]:
    """Return positions on a column, with the texts of the values there."""
    parameter: Any = column.parameter
    if not column.ordered:
        every = -(-parameter.cardinality // 12)
        values = [parameter.value(k) for k in range(0, parameter.cardinality, every)]
        return [(parameter.encode(v), str(v)) for v in values]
    ticks = {}
    for v in round_numbers(parameter.low, parameter.high, parameter.log):
        if parameter.grid is not None:  # only its own values have a place
            step = parameter.step or 1
            last = parameter.cardinality - 1
            v = parameter.value(min(max(round((v - parameter.low) / step), 0), last))
        ticks[parameter.encode(min(max(v, parameter.low), parameter.high))] = short(v)
    return list(ticks.items())


@dataclass(frozen=True)
class Branch:
    """One branch of a choice, with its trials."""

    path: tuple[str, ...]  # names from the root: choice, branch, choice, branch ...
    values: Array  # of its trials that have one
    numbers: tuple[int, ...]  # of these trials
    failed: int


@dataclass(frozen=True)
class Reason:
    """Failures that are alike."""

    text: str  # of the first
    trials: tuple[Trial, ...]


def timed(outcome: Outcome) -> list[Trial]:
    """Return the trials of which it is known when they started and ended."""
    return [t for t in outcome.trials if t.started is not None and t.finished is not None]


def timeline(outcome: Outcome) -> list[tuple[int, Trial]]:
    """Return the trials with their worker slots: the first that was free at the start of each."""
    free: list[int] = []  # slots, a heap
    busy: list[tuple[float, int]] = []  # when a slot is free again, a heap
    placed = []
    for trial in sorted(timed(outcome), key=lambda t: t.started or 0.0):
        start, end = float(trial.started or 0.0), float(trial.finished or 0.0)
        while busy and busy[0][0] <= start + 1e-3:
            heapq.heappush(free, heapq.heappop(busy)[1])
        slot = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (end, slot))
        placed.append((slot, trial))
    return placed


def branches(outcome: Outcome) -> list[Branch]:
    """Return every branch that was tried, outer ones before those inside them."""
    if not outcome.space.dense or all(c.kind != "choice" for c in outcome.space.columns):
        return []
    choices = {c.path for c in outcome.space.columns if c.kind == "choice"}
    members: dict[tuple[str, ...], list[Trial]] = {}
    for trial in outcome.trials:
        for path in _chosen(trial.config, (), choices):
            members.setdefault(path, []).append(trial)
    found = []
    for path, own in sorted(members.items()):
        done = [t for t in own if t.value is not None]
        found.append(
            Branch(
                path,
                np.array([t.value for t in done], dtype=float),
                tuple(t.number for t in done),
                sum(t.state is State.FAILED for t in own),
            )
        )
    return found


def _chosen(
    part: Mapping[str, Any], path: tuple[str, ...], choices: set[tuple[str, ...]]
) -> Iterator[tuple[str, ...]]:
    for key, value in part.items():
        here = (*path, key)
        if isinstance(value, Mapping):
            if here in choices:
                yield (*here, str(next(iter(value))))
            yield from _chosen(value, here, choices)


def failures(outcome: Outcome) -> list[Reason]:
    """Return the reasons of failures, most frequent first; alike but for numbers is one."""
    alike: dict[str, list[Trial]] = {}
    for trial in outcome.trials:
        if trial.state is State.FAILED:
            reason = trial.reason or "no reason given"
            alike.setdefault(re.sub(r"[-+]?\d[\d.,]*(e[-+]?\d+)?", "#", reason), []).append(trial)
    found = [Reason(own[0].reason or "no reason given", tuple(own)) for own in alike.values()]
    return sorted(found, key=lambda reason: -len(reason.trials))


@dataclass(frozen=True)
class Lane:
    """The trials of one embedding of REMBO that have a value and a place in it."""

    number: int  # from 1
    points: Array  # (n, d) places in the small box
    values: Array  # (n,)
    numbers: tuple[int, ...]
    clipped: float  # mean share of the coordinates that lay outside the box


def searches(outcome: Outcome) -> dict[int, float | None]:
    """Return the best value of each search of a study, by the number of its first trial.

    In each lane one search follows another.
    """
    found: dict[int, float | None] = {}
    for lane in range(outcome.lanes):
        trials = [t for t in outcome.trials if lane_of(t.number, outcome.lanes) == lane]
        firsts = sorted({lane, *(t.memo[RESTART] for t in trials if RESTART in t.memo)})
        for first, end in pairwise([*firsts, math.inf]):
            best = best_of([t for t in trials if first <= t.number < end], outcome.goal)
            found[int(first)] = best.value if best else None
    return dict(sorted(found.items()))


def lanes(outcome: Outcome) -> list[Lane]:
    """Return the embeddings of a study by REMBO; none for other methods."""
    found = []
    for lane in range(outcome.lanes):
        own = [
            t
            for t in outcome.trials
            if lane_of(t.number, outcome.lanes) == lane and t.value is not None and "z" in t.memo
        ]
        if own:
            points = np.array([t.memo["z"] for t in own], dtype=float)
            values = np.array([t.value for t in own], dtype=float)
            clipped = float(np.mean([t.memo.get("clipped", 0.0) for t in own]))
            numbers = tuple(t.number for t in own)
            found.append(Lane(lane + 1, points, values, numbers, clipped))
    return found


def structure(outcome: Outcome) -> Mapping[str, Any]:
    """Return the latest memo of an additive method; empty for other methods."""
    return next((t.memo for t in reversed(outcome.trials) if "groups" in t.memo), {})


def directions(outcome: Outcome) -> Array | None:
    """Return the directions (parameters, directions) of the latest model; None without any.

    The model of `ridge` knows its directions up to a rotation, so those of most effect are
    returned, the largest first, as far as they have a hundredth of its effect.
    """
    if outcome.method.get("name") == "ridge":
        fits = (t.memo["theta"] for t in reversed(outcome.trials) if "theta" in t.memo)
        theta = next(fits, None)
        if theta is None:
            return None
        _, size, axes = np.linalg.svd(np.log(np.array(theta["rows"], dtype=float)))
        kept = size > 0.01 * size[0]
        return np.asarray((size[:, None] * axes)[kept].T)
    memo = structure(outcome)
    if "ridge" in memo:
        return np.array(memo["ridge"]["W"])
    if "W" not in memo:
        return None
    W, alpha = np.array(memo["W"]), memo["alpha"]
    return np.asarray((1.0 - alpha) * W + alpha * np.eye(len(W)))


def flat(outcome: Outcome, trial: Trial) -> dict[str, Any]:
    """Return the active parameters of a trial by their names; coordinates of a box are x[i]."""
    if isinstance(outcome.space, Box):
        return {f"x[{i}]": float(v) for i, v in enumerate(np.asarray(trial.config["x"]))}
    return flat_config(trial.config, outcome.space)
