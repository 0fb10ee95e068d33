"""What bo does beyond the contracts of all methods."""

from __future__ import annotations

from collections import deque

import numpy as np

from raybo import Optimizer
from raybo.benchmarks.problems import get_problem


def test_points_in_flight_are_seldom_tried_again_beside_themselves() -> None:
    """16 of 80 here; with the usual prior of the noise, and the best of told points alone, 38."""
    branin = get_problem("branin")
    near = 0
    for seed in (0, 1):
        opt = Optimizer(branin.space, "bo", seed=seed)
        running: deque[tuple[int, np.ndarray, float]] = deque()
        rng = np.random.default_rng(seed)
        for i in range(50):
            trial = opt.ask()
            x = branin.space.encode(trial.config)
            if i >= 10:
                near += min(float(np.abs(x - other).max()) for _, other, _ in running) < 0.01
            running.append((trial.number, x, branin.objective(trial.config)))
            if len(running) == 8:
                running.rotate(int(rng.integers(4)))  # they do not finish in order
                number, _, value = running.popleft()
                opt.tell(number, value)
    assert near < 26
