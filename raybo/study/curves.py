"""What the curve of an unfinished trial says of the loss that it would have in the end.

By how much a loss still changes is learnt from the trials that have finished, by a Gaussian
process of where the curve stands at a step, how it has moved since half of the steps, and the
config: some networks learn slowly and end well. Trials that finish soon crowd where the best are;
far from them the process knows that it knows little, while a line through them would be sure of
itself (examples/RESULTS.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from raybo.arrays import Array
from raybo.study.objective import Objective
from raybo.study.trial import Trial, TrialRecord
from raybo.surrogate.outcomes import Scale

# Length-scales and variances of the noise, compared by their evidence. All columns of a config
# together are as far apart as two losses, about 1, and the process has about the variance 1.
_SCALES, _NOISES = (0.3, 1.0, 3.0), (1e-4, 1e-2, 1.0)
_MOST = 100  # trials that have finished, the latest: more take longer and predict no better


@dataclass(frozen=True)
class Course:
    """How a trial went so far.

    Attributes
    ----------
    row : (d,) array
        Its config in the unit cube; no columns for a box too large to have any.
    curve : dict
        Losses by step; not empty where there is no final loss.
    final : float, optional
        Its loss, if it has finished.
    """

    row: Array
    curve: Mapping[int, float]
    final: float | None = None

    def at(self, step: int) -> float:
        """The latest loss up to a step, or the first if that comes later."""
        if step in self.curve:
            return self.curve[step]
        return self.curve[max((s for s in self.curve if s <= step), default=min(self.curve))]


def course_of(trial: Trial | TrialRecord, row: Array, objective: Objective) -> Course:
    """How a trial went so far; `row` is its config in the unit cube."""
    curve = {step: objective.loss(value) for step, value in trial.curve.items()}
    return Course(row, curve, None if trial.value is None else objective.loss(trial.value))


def expected_losses(courses: Sequence[Course]) -> tuple[Array, Array]:
    """Losses (n,) at the end, and the deviations of those that are only expected, 0 elsewhere."""
    last = np.array([0 if c.final is not None else max(c.curve) for c in courses])
    loss = np.array([0.0 if c.final is None else c.final for c in courses])
    spread = np.zeros(len(loss))
    ended = [c for c in courses if c.final is not None and c.curve][-_MOST:]
    finals = np.array([c.final for c in ended], dtype=np.float64)
    for step in set(last.tolist()) - {0}:
        here = np.flatnonzero(last == step)
        came = [*ended, *(courses[int(i)] for i in here)]
        # The losses at the step are spread widely also when all that finish are about the same.
        now = np.array([c.at(step) for c in came])
        scale = Scale.of(now)
        F = _features(came, step, scale)
        mean, deviation = _ends(F[: len(ended)], scale(finals), F[len(ended) :])
        # Those that finished say little of curves far worse than theirs: none is expected to end
        # worse than the worst loss that was seen.
        mean = np.minimum(mean, scale(np.append(finals, now)).max())
        low, high = scale.inverse(mean - deviation), scale.inverse(mean + deviation)
        loss[here] = scale.inverse(mean)
        spread[here] = np.maximum((high - low) / 2.0, np.finfo(np.float64).tiny)
    return loss, spread


def _features(courses: Sequence[Course], step: int, scale: Scale) -> Array:
    """What the process looks at: the loss, its gain since half of the steps, the config."""
    rows = np.array([c.row for c in courses])
    now = scale(np.array([c.at(step) for c in courses], dtype=np.float64))
    half = scale(np.array([c.at(step // 2) for c in courses], dtype=np.float64))
    # All columns of the config together weigh as much as the loss.
    config = (2.0 * rows - 1.0) / np.sqrt(max(1, rows.shape[1]))
    return np.column_stack([now, now - half, config])


def _ends(A: Array, y: Array, B: Array) -> tuple[Array, Array]:
    """Mean and deviation of the losses in the end at B, those at A being y.

    The first column is the loss now. Before a trial has finished it is its own expectation, give
    or take half of the variance of all losses.
    """
    if not len(y):
        return B[:, 0], np.full(len(B), np.sqrt(0.5))
    pairs = product(_SCALES, _NOISES)
    fits = (_Process.of(A, y - A[:, 0], scale, noise) for scale, noise in pairs)
    change, deviation = max(fits, key=lambda process: process.evidence).at(B)
    return B[:, 0] + change, deviation


@dataclass(frozen=True)
class _Process:
    """A Gaussian process given its values at rows.

    Trials are judged where they are recorded, in processes that load neither torch nor scipy,
    which `raybo.surrogate.gp` and its kernels need.

    Notes
    -----
    Its mean is the likeliest, and its variance has a prior of 1/2 that weighs as much as one
    value. With C = L L' the correlations, noise included, r = L^-1 (values - mean) and
    q = 1/2 + r'r, the variance is q / (n + 1) and the evidence -log det L - (n + 1)/2 log q.
    """

    rows: Array  # (n, p)
    scale: float
    noise: float  # variance of the noise, as a share of the process's
    chol: Array  # (n, n): L
    mean: float
    rest: Array  # (n,): r
    variance: float
    evidence: float

    @classmethod
    def of(cls, rows: Array, values: Array, scale: float, noise: float) -> _Process:
        """Condition a process of mean and variance unknown."""
        n = len(rows)
        C = _correlations(rows, rows, scale) + noise * np.eye(n)
        chol = np.asarray(np.linalg.cholesky(C), dtype=np.float64)
        half, one = np.linalg.solve(chol, np.column_stack([values, np.ones(n)])).T
        mean = float((one @ half) / (one @ one))
        rest = half - mean * one
        q = 0.5 + float(rest @ rest)
        evidence = -float(np.log(chol.diagonal()).sum()) - 0.5 * (n + 1) * np.log(q)
        return cls(rows, scale, noise, chol, mean, rest, q / (n + 1), evidence)

    def at(self, rows: Array) -> tuple[Array, Array]:
        """Mean and deviation (m,), noise included."""
        half = np.linalg.solve(self.chol, _correlations(self.rows, rows, self.scale))
        variance = self.variance * np.maximum(1.0 + self.noise - (half**2).sum(0), 0.0)
        return self.mean + half.T @ self.rest, np.sqrt(variance)


def _correlations(A: Array, B: Array, scale: float) -> Array:
    """Matern-5/2 correlations (n, m) of rows."""
    squares = (A**2).sum(1)[:, None] + (B**2).sum(1) - 2.0 * A @ B.T
    r = np.sqrt(5.0 * np.maximum(squares, 0.0)) / scale
    return np.asarray((1.0 + r + r**2 / 3.0) * np.exp(-r))
