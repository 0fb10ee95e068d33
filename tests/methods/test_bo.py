"""What bo does beyond the contracts of all methods."""

from __future__ import annotations

from collections import deque

import numpy as np

from raybo import Optimizer
from raybo.benchmarks.problems.registry import get_problem
from raybo.methods.bo.default import Bo
from raybo.space.parameters import Float
from raybo.space.space import Space
from raybo.study.objective import Objective
from raybo.study.study import Study


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


def test_in_haste_the_design_goes_on_until_as_many_values_are_known() -> None:
    space = Space({"x": Float(0, 1), "y": Float(0, 1)})
    for haste in (0, 1):
        study = Study(space, Bo(space), Objective("min"), seed=0)
        for number in range(8):
            study.ask(number, haste)
        for number in range(3):  # of the four of the design
            study.tell(number, float(number))
        assert bool(study.ask(8, haste).memo) is (haste == 0)
        study.tell(3, 3.0)
        assert "theta" in (study.ask(9, haste).memo or study.trials[8].memo)
