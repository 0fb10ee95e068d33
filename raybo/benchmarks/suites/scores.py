"""Scores of a suite: normalised regret, ranks, and the default against every other tuner.

Normalised regret is 0 at the best known value of a problem and 1 at the median of its configs. It
is not clipped. On a noisy problem it is that of the config which the tuner recommends, without the
noise; elsewhere that of the best config evaluated.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range, wilcoxon

from raybo.arrays import Array
from raybo.benchmarks.problems.registry import get_problem
from raybo.benchmarks.results import Finished, rounded
from raybo.study.objective import Objective

_RANDOM_CONFIGS = 1000
_SEED = 20_000  # of the random configs; no run has it
_ALPHA = 0.05  # level of the critical difference


@dataclass(frozen=True)
class Scale:
    """The losses of a problem at which normalised regret is 0 and 1.

    Attributes
    ----------
    best, median : float
        Loss of the best known value, and of the median config.
    known : bool
        Whether `best` belongs to the problem; else it is the best of the runs at hand.
    """

    best: float
    median: float
    known: bool = True

    def regret(self, loss: float) -> float:
        """Return the normalised regret of a loss."""
        return (loss - self.best) / (self.median - self.best)


def scales(runs: Sequence[Finished], cache: Path) -> dict[str, Scale]:
    """Return the scale of every problem of the runs.

    Parameters
    ----------
    runs
        Runs; where a problem's best value is not known, the best of its runs stands for it.
    cache
        JSON file of medians, and of the best values of random configs; missing ones are computed
        and added, so that runs are scored without the data of their problems.
    """
    stored = json.loads(cache.read_text(encoding="utf-8")) if cache.exists() else {}
    found = {}
    for name in dict.fromkeys(run.cell.problem for run in runs):
        own = [run for run in runs if run.cell.problem == name]
        loss = Objective(own[0].mode).loss
        if name not in stored:
            stored[name] = _known_values(name)
            cache.parent.mkdir(parents=True, exist_ok=True)
            cache.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
        median = loss(stored[name]["median"])
        optimum = next((run.optimum for run in own if run.optimum is not None), None)
        if optimum is None:
            losses = [best_loss(run, run.cell.evaluations) for run in own]
            drawn = [loss(stored[name]["best"])] if "best" in stored[name] else []
            found[name] = Scale(min(losses + drawn), median, known=False)
        else:
            found[name] = Scale(loss(rounded(optimum)), median)
    return found


def _known_values(name: str) -> dict[str, float]:
    """Return the median of a problem, and where it has none those of random configs."""
    problem = get_problem(name)
    if problem.median is not None:
        return {"median": problem.median}
    space, loss = problem.space, Objective(problem.mode).loss
    rows = space.sample(_RANDOM_CONFIGS, np.random.default_rng(_SEED))
    losses = [loss(float(problem.objective(space.decode(row)))) for row in rows]
    return {"median": loss(float(np.median(losses))), "best": loss(min(losses))}


def best_loss(run: Finished, n: int) -> float:
    """Return the loss of what a run would deploy after n evaluations.

    On a noisy problem n must be one of the numbers in `run.deployed`.
    """
    loss = Objective(run.mode).loss
    if run.deployed:
        return loss(next(d.recommended for d in run.deployed if d.evaluations == n))
    return min(map(loss, run.values[:n]))


def luckiest_loss(run: Finished, n: int) -> float:
    """Return the loss, without noise, of the config of the best value told by then."""
    loss = Objective(run.mode).loss
    if run.deployed:
        return loss(next(d.luckiest for d in run.deployed if d.evaluations == n))
    return best_loss(run, n)


def is_scored(run: Finished, n: int) -> bool:
    """Return whether a run can be scored after n evaluations."""
    if run.deployed:
        return any(d.evaluations == n for d in run.deployed)
    return n <= len(run.values)


@dataclass(frozen=True)
class Versus:
    """One tuner against another over the same problems and seeds; p is of Wilcoxon's test."""

    wins: int
    ties: int
    losses: int
    p: float


@dataclass(frozen=True)
class Scores:
    """Normalised regrets of the runs of a suite after some number of evaluations.

    Attributes
    ----------
    evaluations : int
        That number.
    regrets, luckiest : dict
        (problem, tuner) -> {seed: normalised regret}: of the recommended config, and of the config
        of the luckiest draw.
    """

    evaluations: int
    regrets: Mapping[tuple[str, str], Mapping[int, float]]
    luckiest: Mapping[tuple[str, str], Mapping[int, float]]

    @classmethod
    def of(cls, runs: Sequence[Finished], scale: Mapping[str, Scale], n: int) -> Scores:
        """Return the scores of those runs that are as long."""
        regrets: dict[tuple[str, str], dict[int, float]] = {}
        luckiest: dict[tuple[str, str], dict[int, float]] = {}
        for run in runs:
            if is_scored(run, n):
                cell = run.cell
                key, regret = (cell.problem, cell.tuner), scale[cell.problem].regret
                regrets.setdefault(key, {})[cell.seed] = regret(best_loss(run, n))
                luckiest.setdefault(key, {})[cell.seed] = regret(luckiest_loss(run, n))
        return cls(n, regrets, luckiest)

    @cached_property
    def problems(self) -> list[str]:
        """The problems, in the order of the runs."""
        return list(dict.fromkeys(problem for problem, _ in self.regrets))

    @cached_property
    def tuners(self) -> list[str]:
        """The tuners, in the order of the runs."""
        return list(dict.fromkeys(tuner for _, tuner in self.regrets))

    @cached_property
    def complete(self) -> list[str]:
        """The tuners with a run on every problem."""
        return [t for t in self.tuners if all((p, t) in self.regrets for p in self.problems)]

    def mean(self, tuner: str, luckiest: bool = False) -> float | None:
        """Return the mean over the problems of the means over seeds; None if not complete."""
        if tuner not in self.complete:
            return None
        table = self.luckiest if luckiest else self.regrets
        return float(np.mean([np.mean(list(table[p, tuner].values())) for p in self.problems]))

    @cached_property
    def _blocks(self) -> Array:
        """Means over the common seeds, (problems that have such seeds, complete tuners)."""
        rows = []
        for problem in self.problems:
            runs = [self.regrets[problem, tuner] for tuner in self.complete]
            seeds = set.intersection(*map(set, runs)) if runs else set()
            if seeds:
                rows.append([np.mean([run[seed] for seed in seeds]) for run in runs])
        return np.reshape(np.array(rows, dtype=np.float64), (len(rows), len(self.complete)))

    def mean_ranks(self) -> dict[str, float]:
        """Return the mean rank over the problems of every complete tuner; 1 is best."""
        if not len(self._blocks):
            return {}
        ranks = np.mean(rankdata(self._blocks, axis=1), axis=0)
        return dict(zip(self.complete, ranks.tolist(), strict=True))

    def friedman(self) -> float | None:
        """Return p of Friedman's test that all complete tuners are alike; None for under three."""
        if len(self.complete) < 3 or len(self._blocks) < 2:
            return None
        return float(friedmanchisquare(*self._blocks.T).pvalue)

    def critical_difference(self) -> float | None:
        """Return how far two mean ranks must differ at the 5% level (Nemenyi's test).

        Notes
        -----
        q sqrt(k (k + 1) / (6 N)) for k tuners and N problems, q the quantile of the studentised
        range with infinite degrees of freedom over sqrt 2 (Demsar 2006, section 3.2.2).
        """
        n, k = self._blocks.shape
        if k < 2 or not n:
            return None
        q = float(studentized_range.ppf(1.0 - _ALPHA, k, np.inf)) / math.sqrt(2.0)
        return q * math.sqrt(k * (k + 1) / (6.0 * n))

    def versus(self, one: str, other: str) -> Versus | None:
        """Return how `one` does against `other` on their common problems and seeds, if any."""
        differences = np.array(
            [
                regrets[seed] - self.regrets[problem, other][seed]
                for (problem, tuner), regrets in self.regrets.items()
                if tuner == one and (problem, other) in self.regrets
                for seed in regrets
                if seed in self.regrets[problem, other]
            ]
        )
        if not len(differences):
            return None
        wins, losses = int(np.sum(differences < 0)), int(np.sum(differences > 0))
        p = float(wilcoxon(differences).pvalue) if wins + losses else 1.0
        return Versus(wins, len(differences) - wins - losses, losses, p)

    def beyond(self) -> list[str]:
        """Say what is better than the best known value, and what is worse than the median."""
        flat = [
            (problem, tuner, regret)
            for (problem, tuner), regrets in self.regrets.items()
            for regret in regrets.values()
        ]
        below = sorted((r, p, t) for p, t, r in flat if r < 0)
        above = sorted(((r, p, t) for p, t, r in flat if r > 1), reverse=True)
        lines = []
        for name, found in (
            ("better than the best known", below),
            ("worse than the median", above),
        ):
            if found:
                regret, problem, tuner = found[0]
                lines.append(
                    f"{len(found)} of {len(flat)} runs are {name} value, the farthest {tuner} on "
                    f"{problem} at {regret:.3g}"
                )
        return lines
