"""What the curve of an unfinished trial says of the loss that it would have in the end.

The loss at the end is regressed on where the curve stands at a step, how it has moved since half
of the steps, and the config: some networks learn slowly and end well. So much as these agree with
the ends of the trials that have finished, so much a curve says. On six data sets of LCBench a line
does as well as a Gaussian process of the config and the loss, and needs no fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raybo.arrays import Array
from raybo.study.objective import Objective
from raybo.study.trial import Trial, TrialRecord
from raybo.surrogate.outcomes import Scale


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
    ended = [c for c in courses if c.final is not None and c.curve]
    finals = np.array([c.final for c in ended], dtype=np.float64)
    for step in set(last.tolist()) - {0}:
        here = np.flatnonzero(last == step)
        came = [*ended, *(courses[int(i)] for i in here)]
        # The losses at the step are spread widely also when all that finish are about the same.
        now = np.array([c.at(step) for c in came])
        scale = Scale.of(now)
        F = _features(came, step, scale)
        mean, deviation = _line(F[: len(ended)], scale(finals), F[len(ended) :])
        # The line of those that finished says little of curves far worse than theirs: none is
        # expected to end worse than the worst loss that was seen.
        mean = np.minimum(mean, scale(np.append(finals, now)).max())
        low, high = scale.inverse(mean - deviation), scale.inverse(mean + deviation)
        loss[here] = scale.inverse(mean)
        spread[here] = np.maximum((high - low) / 2.0, np.finfo(np.float64).tiny)
    return loss, spread


def _features(courses: Sequence[Course], step: int, scale: Scale) -> Array:
    """What a line looks at: the loss, its gain since half of the steps, the config."""
    rows = np.array([c.row for c in courses])
    now = scale(np.array([c.at(step) for c in courses], dtype=np.float64))
    half = scale(np.array([c.at(step // 2) for c in courses], dtype=np.float64))
    # All columns of the config together weigh as much as the loss.
    config = (2.0 * rows - 1.0) / np.sqrt(max(1, rows.shape[1]))
    return np.column_stack([now, now - half, config])


def _line(A: Array, y: Array, B: Array) -> tuple[Array, Array]:
    """Mean and deviation of the values at B by a Bayesian line through the values y at A.

    Notes
    -----
    The prior says that losses differ at the end as they do now, up to half of the variance of all
    losses, and weighs as much as one pair: a unit information prior (Kass & Wasserman 1995). By
    how much all of them change is not shrunk: A and y are centred. With A = U S V', r = y - A w0
    and the shares c = s^2 / (1 + s^2) that the pairs decide, the weights are w0 + V (c / s) U'r,
    the variance of the rest is (1/2 + r'r - |sqrt(c) U'r|^2) / n, and that of a new value
    1 + b'b - |sqrt(c) V'b|^2 times as much.
    """
    prior = np.zeros(B.shape[1])
    prior[0] = 1.0
    if not len(y):
        return B @ prior, np.full(len(B), np.sqrt(0.5))
    middle = A.mean(0)
    A, B = A - middle, B - middle
    rest = y - y.mean() - A @ prior
    U, s, V = np.linalg.svd(A, full_matrices=False)
    along, share = U.T @ rest, s**2 / (1.0 + s**2)
    weights = prior + V.T @ (s / (1.0 + s**2) * along)
    variance = (0.5 + rest @ rest - share @ along**2) / len(y)
    wider = 1.0 + (B**2).sum(1) - share @ (V @ B.T) ** 2
    return y.mean() + B @ weights, np.sqrt(variance * wider)
