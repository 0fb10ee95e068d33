"""What bo does beyond the contracts of all methods."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

from raybo import Optimizer
from raybo.benchmarks.problems.registry import get_problem
from raybo.methods.base import EFFORTS, FULL, REDUCED, Effort
from raybo.methods.bo.default import Bo
from raybo.space.box import Box
from raybo.space.parameters import Categorical, Float, Int
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


def test_with_less_effort_the_design_goes_on_until_as_many_values_are_known() -> None:
    space = Space({"x": Float(0, 1), "y": Float(0, 1)})
    for effort in (FULL, REDUCED):
        study = Study(space, Bo(space), Objective("min"), seed=0)
        for number in range(8):
            study.ask(number, effort)
        for number in range(3):  # of the four of the design
            study.tell(number, float(number))
        assert bool(study.ask(8, effort).memo) is (effort is FULL)
        study.tell(3, 3.0)
        assert study.ask(9, effort).memo or study.trials[8].memo


@pytest.mark.parametrize("effort", EFFORTS, ids=lambda e: e.name)
def test_every_effort_proposes_points_of_the_space(effort: Effort) -> None:
    space = Space({"x": Float(0, 1), "n": Int(1, 5), "c": Categorical(["a", "b"])})
    study = Study(space, Bo(space), Objective("min"), seed=0)
    for number in range(12):
        trial = study.ask(number, effort)
        study.tell(number, (trial.config["x"] - 0.3) ** 2 + trial.config["n"])
    assert study.best is not None
    assert study.best.config["n"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("acquisition", ["ei", "ucb"])
def test_the_published_baseline_improves_on_its_design(acquisition: str) -> None:
    opt = Optimizer(Box(2), "bo", seed=0, preset="paper", acquisition=acquisition, n_init=5)
    values = []
    for _ in range(9):
        trial = opt.ask()
        values.append(float(((np.asarray(trial.config["x"]) - 0.2) ** 2).sum()))
        opt.tell(trial.number, values[-1])
    assert min(values[5:]) < 0.3 * min(values[:5])
