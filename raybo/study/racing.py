"""Racing: a config that is surely worse than the best one is dropped.

Solvers are run on the same instances, networks on the same folds, one after the other. A config is
compared with the best complete one on the instances that it has seen, by a paired t-test, as
F-Race does with several at once (Birattari et al. 2002, "A Racing Algorithm for Configuring
Metaheuristics").
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from raybo.arrays import Array
from raybo.study.curves import Course

FIRST_TEST = 5  # instances before the first test; irace's `firstTest`
LEVEL = 0.05  # irace's `confidence` is 0.95


def surely_worse(number: int, courses: Mapping[int, Course]) -> bool:
    """Whether a trial is worse than the best complete one, on the instances that it has seen."""
    complete = [c for c in courses.values() if c.final is not None and c.curve]
    if not complete:
        return False
    seen = instances(courses[number])
    best = instances(min(complete, key=lambda c: c.final or 0.0))
    n = min(len(seen), len(best))
    gap = seen[:n] - best[:n]
    deviation = float(gap.std(ddof=1)) if n > 1 else 0.0
    if deviation == 0.0:
        return float(gap.mean()) > 0.0
    from scipy.special import stdtr  # noqa: PLC0415  (every process would pay for it)

    t = float(gap.mean()) / (deviation / np.sqrt(n))
    return 1.0 - float(stdtr(n - 1, t)) < LEVEL


def instances(course: Course) -> Array:
    """Losses on each instance (n,): a curve over instances holds the means up to each."""
    means = np.array([course.curve[step] for step in sorted(course.curve)])
    sums = means * np.arange(1, len(means) + 1)
    return np.diff(sums, prepend=0.0)
