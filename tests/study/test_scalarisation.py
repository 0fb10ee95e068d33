"""Random weightings of several metrics."""

from __future__ import annotations

import numpy as np

from raybo import Float, Space
from raybo.methods.registry import build_method
from raybo.study.objective import Objective
from raybo.study.scalarisation import RHO, draw_weights, pareto_front, scalarised
from raybo.study.study import Study


def test_weights_sum_to_one_and_differ_between_trials() -> None:
    every = np.array([draw_weights(3, 0, number) for number in range(200)])
    np.testing.assert_allclose(every.sum(axis=1), 1.0)
    assert len(np.unique(every, axis=0)) == 200
    np.testing.assert_allclose(every.mean(axis=0), 1 / 3, atol=0.06)
    np.testing.assert_array_equal(draw_weights(3, 0, 7), every[7])


def test_scalarised_is_the_augmented_chebyshev_function_of_scaled_losses() -> None:
    losses = np.array([[0.0, 30.0], [1.0, 10.0], [2.0, 20.0], [9.0, 20.0]])
    weights = np.array([0.25, 0.75])
    found = scalarised(losses, weights)
    for row, value in zip(losses, found, strict=True):
        scaled = [(row[0] - 0.0) / 1.5, (row[1] - 10.0) / 10.0]  # best 0, median 1
        weighted = [0.25 * scaled[0], 0.75 * scaled[1]]
        np.testing.assert_allclose(value, max(weighted) + RHO * sum(weighted))


def test_equal_losses_and_none_at_all_are_scalarised() -> None:
    np.testing.assert_array_equal(scalarised(np.ones((3, 2)), np.array([0.5, 0.5])), np.zeros(3))
    assert scalarised(np.empty((0, 2)), np.array([0.5, 0.5])).shape == (0,)


def test_pareto_front_agrees_with_a_loop() -> None:
    rows = np.random.default_rng(0).integers(0, 6, size=(60, 3)).astype(float)
    front = pareto_front(rows)
    for i, row in enumerate(rows):
        beaten = any((other <= row).all() and (other < row).any() for other in rows)
        assert front[i] == (not beaten)


def test_a_study_of_two_metrics_minimises_another_weighting_for_each_trial() -> None:
    space = Space({"x": Float(-1, 1)})
    goal = Objective("min", "a", others={"b": "max"})
    study = Study(space, build_method("bo", space), goal, seed=0)
    for number in range(20):
        trial = study.ask()
        x = trial.config["x"]
        study.tell(number, (x + 0.5) ** 2, {"b": -((x - 0.5) ** 2)})
    first, second = study.data(20), study.data(21)
    assert not np.allclose(first.loss, second.loss)
    expected = np.array([goal.losses(t.value or 0.0, t.extra) for t in study.trials.values()])
    np.testing.assert_allclose(first.loss, scalarised(expected, draw_weights(2, 0, 20)))
    assert first.last_fit("theta") is None  # a fit is of one weighting
    late = [study.trials[n].config["x"] for n in range(8, 20)]
    assert sum(-0.6 < x < 0.6 for x in late) >= 10
