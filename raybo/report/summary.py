"""Compute the numbers that a report shows; nothing is drawn here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybo.methods.base import lane_of
from raybo.study.objective import Objective
from raybo.study.outcome import Outcome, flat_config
from raybo.study.trial import State, Trial

Array = NDArray[np.float64]

_BINS = 8  # groups of equal size that a numeric parameter is cut into


@dataclass(frozen=True)
class Branch:
    """One branch of a choice: how often it was tried, and the best value there."""

    path: tuple[str, ...]  # names from the root: choice, branch, choice, branch ...
    count: int
    best: float | None


def done(outcome: Outcome) -> list[Trial]:
    """Trials that have a value, in the order in which they finished."""
    trials = [t for t in outcome.trials if t.value is not None]
    return sorted(trials, key=lambda t: (t.finished is None, t.finished or 0.0, t.number))


def values(trials: list[Trial]) -> Array:
    """Values of finished trials."""
    return np.array([t.value for t in trials], dtype=np.float64)


def best_so_far(outcome: Outcome) -> Array:
    """Best value after each finished trial."""
    found = values(done(outcome))
    return np.minimum.accumulate(found) if outcome.mode == "min" else np.maximum.accumulate(found)


def columns(outcome: Outcome) -> dict[str, list[Any]]:
    """Values of each parameter over the finished trials by its path; None where inactive.

    Empty for a box too large to have columns. A vector has one entry per coordinate.
    """
    if not outcome.space.dense:
        return {}
    rows = [_flat(outcome, t.config) for t in done(outcome)]
    names = [c.name for c in outcome.space.columns]
    return {name: [row.get(name) for row in rows] for name in names}


def _flat(outcome: Outcome, config: Mapping[str, Any]) -> dict[str, Any]:
    vector = config.get("x")
    if hasattr(vector, "chunks"):
        return {f"x[{i}]": float(v) for i, v in enumerate(np.asarray(vector))}
    return flat_config(config, outcome.space)


def importances(outcome: Outcome) -> dict[str, float]:
    """Share of the spread of the values that each parameter explains alone, largest first.

    Notes
    -----
    The ranks of the values are cut into groups by the parameter (categories, or eight groups of
    equal size; inactive is a group of its own), and the share of their variance between the
    groups is what it explains, less what a parameter without effect explains by chance,
    (k - 1) / (n - 1) for k groups of n. Ranks, since a few huge losses would decide alone.
    Interactions do not show, and a model that has searched one region has looked at the others
    less.
    """
    ranks = np.argsort(np.argsort(values(done(outcome)), kind="stable"), kind="stable")
    shares = {
        name: _explained(ranks.astype(np.float64), _groups(entries))
        for name, entries in columns(outcome).items()
    }
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def _groups(entries: list[Any]) -> NDArray[np.intp]:
    numeric = all(
        isinstance(e, int | float) and not isinstance(e, bool) for e in entries if e is not None
    )
    if not numeric or len(set(entries)) <= _BINS:
        labels = {e: i for i, e in enumerate(dict.fromkeys(map(repr, entries)))}
        return np.array([labels[repr(e)] for e in entries])
    known = np.array([np.nan if e is None else e for e in entries], dtype=np.float64)
    edges = np.nanquantile(known, np.linspace(0, 1, _BINS + 1)[1:-1])
    return np.where(np.isnan(known), _BINS, np.searchsorted(edges, known))


def _explained(ranks: Array, groups: NDArray[np.intp]) -> float:
    n, total = len(ranks), float(ranks.var())
    if n < 3 or total == 0.0:  # two points lie on any line
        return 0.0
    present = [ranks[groups == g] for g in np.unique(groups)]
    between = sum(len(p) * (p.mean() - ranks.mean()) ** 2 for p in present) / n
    chance = (len(present) - 1) / (n - 1)
    share = between / total
    return max(0.0, (share - chance) / (1.0 - chance)) if chance < 1.0 else 0.0


def timeline(outcome: Outcome) -> list[tuple[int, Trial]]:
    """Trials with the worker slot each ran in: the first that was free when it started."""
    ran = [t for t in outcome.trials if t.started is not None and t.finished is not None]
    free: list[float] = []  # when each slot is free again
    placed = []
    for trial in sorted(ran, key=lambda t: t.started or 0.0):
        start, end = float(trial.started or 0.0), float(trial.finished or 0.0)
        slot = next((i for i, at in enumerate(free) if at <= start + 1e-3), len(free))
        free[slot : slot + 1] = [end]
        placed.append((slot, trial))
    return placed


def branches(outcome: Outcome) -> list[Branch]:
    """Every branch that was tried, with the number of evaluations and the best value."""
    if not outcome.space.dense or all(c.kind != "choice" for c in outcome.space.columns):
        return []
    better = Objective(outcome.mode).better
    count: Counter[tuple[str, ...]] = Counter()
    best: dict[tuple[str, ...], float] = {}
    choices = {c.path for c in outcome.space.columns if c.kind == "choice"}
    for trial in outcome.trials:
        for path in _chosen(trial.config, (), choices):
            for node in (path[:-1], path):
                count[node] += 1
                if trial.value is not None and (
                    node not in best or better(trial.value, best[node])
                ):
                    best[node] = trial.value
    return [Branch(path, n, best.get(path)) for path, n in sorted(count.items())]


def _chosen(
    part: Mapping[str, Any], path: tuple[str, ...], choices: set[tuple[str, ...]]
) -> Iterator[tuple[str, ...]]:
    for key, value in part.items():
        here = (*path, key)
        if isinstance(value, Mapping):
            if here in choices:
                yield (*here, str(next(iter(value))))
            yield from _chosen(value, here, choices)


def failures(outcome: Outcome) -> list[tuple[str, int, list[int]]]:
    """Reasons of failures, most frequent first, with the count and the first few trials."""
    failed = [t for t in outcome.trials if t.state is State.FAILED]
    counts = Counter(t.reason or "no reason given" for t in failed)
    return [
        (reason, n, [t.number for t in failed if (t.reason or "no reason given") == reason][:5])
        for reason, n in counts.most_common()
    ]


def lanes(outcome: Outcome) -> list[dict[str, Any]]:
    """Return one row per lane (embedding of REMBO), counted from 1; none for a single lane."""
    if outcome.lanes == 1:
        return []
    objective = Objective(outcome.mode)
    rows = []
    for lane in range(outcome.lanes):
        own = [t for t in outcome.trials if lane_of(t.number, outcome.lanes) == lane]
        found = [t.value for t in own if t.value is not None]
        clipped = [t.memo["clipped"] for t in own if "clipped" in t.memo]
        rows.append(
            {
                "embedding": lane + 1,
                "evaluations": len(found),
                "best": min(found, key=objective.loss, default=None),
                "clipped": float(np.mean(clipped)) if clipped else None,
            }
        )
    return rows


def structure(outcome: Outcome) -> Mapping[str, Any]:
    """What an additive method last noted of its model; empty of other methods."""
    return next((t.memo for t in reversed(outcome.trials) if "groups" in t.memo), {})


def directions(outcome: Outcome) -> Array | None:
    """Directions (parameters, directions) that the model learnt last; None without any."""
    memo = structure(outcome)
    if "ridge" in memo:
        return np.array(memo["ridge"]["W"])
    if "W" not in memo:
        return None
    W, alpha = np.array(memo["W"]), memo["alpha"]
    return np.asarray((1.0 - alpha) * W + alpha * np.eye(len(W)))
