from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import raybo
from raybo.acquisition.maximizers.base import with_gradient
from raybo.methods.base import Data
from raybo.methods.feasibility import Feasibility, Sum
from raybo.methods.model import incumbent
from raybo.methods.search import success_of, weighed_acquisition
from raybo.space.space import Space
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.stationary import Matern52
from raybo.surrogate.map import NOISE_HYPER, starting_theta
from tests.helpers.data import data_of

SPACE = Space({"x": raybo.Float(0, 1), "y": raybo.Float(0, 1), "z": raybo.Float(0, 1)})
POINTS = SPACE.sample(200, np.random.default_rng(1))


def data(n: int, fails: np.ndarray, excess: np.ndarray | None = None) -> Data:
    """Points drawn from the space; those of the mask `fails` have no value."""
    found = data_of(SPACE, n, lambda x: float(np.sum((x - 0.4) ** 2)), seed=3)
    return replace(
        found,
        X=found.X[~fails],
        loss=found.loss[~fails],
        memos=found.memos[: n - fails.sum()],
        failed=found.X[fails],
        failed_memos=({},) * int(fails.sum()),
        excess=np.empty((0, 0)) if excess is None else excess,
    )


def drawn(n: int) -> np.ndarray:
    return data_of(SPACE, n, np.zeros(n), seed=3).X


def test_without_failures_and_bounds_an_acquisition_is_left_as_it_is() -> None:
    success = success_of(SPACE, data(20, np.zeros(20, dtype=bool)))
    f = torch.sum
    assert success.weigh(f) is f
    assert (success.parts, success.memo, len(success.walls)) == ((), {}, 0)


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_failures_at_random_leave_most_of_the_space_as_likely_as_all(share: float) -> None:
    fails = np.random.default_rng(5).random(80) < share
    success = success_of(SPACE, data(80, fails))
    p = np.exp(success.log_probability(POINTS))
    assert p.mean() == pytest.approx(1.0 - fails.mean(), abs=0.1)
    assert (p < 0.5).mean() < 0.1
    assert len(success.walls) <= 0.2 * fails.sum()


def test_the_edge_of_a_region_where_trials_fail_is_learnt() -> None:
    success = success_of(SPACE, data(60, drawn(60)[:, 1] > 0.6))
    p = np.exp(success.log_probability(POINTS))
    beyond, short_of = p[POINTS[:, 1] > 0.7], p[POINTS[:, 1] < 0.5]
    assert beyond.max() < 0.5 < short_of.min()
    assert beyond.mean() < 0.05
    assert short_of.mean() > 0.95
    assert len(success.walls) > 15


def test_bounds_of_outcomes_are_learnt_from_their_values() -> None:
    X = drawn(30)
    excess = np.stack([X[:, 0] - 0.5, 1e6 * (0.2 - X[:, 2])], axis=1)
    found = data(30, np.zeros(30, dtype=bool), excess)
    p = np.exp(success_of(SPACE, found).log_probability(POINTS))
    kept = (POINTS[:, 0] < 0.45) & (POINTS[:, 2] > 0.25)
    broken = (POINTS[:, 0] > 0.55) | (POINTS[:, 2] < 0.15)
    assert p[kept].min() > 0.7
    assert p[broken].max() < 0.3
    np.testing.assert_array_equal(found.feasible, (X[:, 0] <= 0.5) & (X[:, 2] >= 0.2))
    assert found.best_rows(1)[0, 0] <= 0.5


def test_the_gradient_is_that_of_the_values() -> None:
    success = success_of(SPACE, data(40, drawn(40)[:, 1] > 0.6))
    f = success.weigh(lambda X: -X.square().sum(1))
    rows = POINTS[:5]
    value, gradient = with_gradient(f, rows)
    for column in range(3):
        step = 1e-6 * np.eye(3)[column]
        rise = with_gradient(f, rows + step)[0] - with_gradient(f, rows - step)[0]
        np.testing.assert_allclose(gradient[:, column], rise / 2e-6, rtol=1e-4, atol=1e-6)
    by_torch = f(torch.as_tensor(rows)).numpy()
    np.testing.assert_allclose(value, by_torch, rtol=1e-6, atol=1e-9)


def test_a_fit_is_remembered_until_the_data_have_grown() -> None:
    found = data(60, drawn(60)[:, 1] > 0.6)
    first = success_of(SPACE, found)
    noted = replace(found, memos=(first.memo, *found.memos[1:]))
    again = success_of(SPACE, noted)
    assert again.memo == {}
    np.testing.assert_allclose(
        again.log_probability(POINTS), first.log_probability(POINTS), rtol=1e-9
    )


def test_walls_are_no_improvement_and_their_neighbours_hardly() -> None:
    X = torch.linspace(0.0, 0.5, 6, dtype=torch.float64)[:, None]
    kernel = Matern52(1)
    gp = GP.of(kernel, starting_theta(kernel, NOISE_HYPER), X, -4.0 * X[:, 0])
    wall = torch.tensor([[0.55], [0.6], [0.7]], dtype=torch.float64)
    level = gp.fitted().min()
    assert gp.posterior(wall).mean.min() < level
    held = gp.condition_at_least(wall, level)
    assert held.posterior(wall).mean.min() > level - 0.05
    assert held.posterior(X).mean == pytest.approx(gp.posterior(X).mean, abs=0.2)


def test_the_incumbent_keeps_the_bounds() -> None:
    found = data(30, np.zeros(30, dtype=bool))
    kernel = Matern52(3)
    theta = starting_theta(kernel, NOISE_HYPER)
    gp = GP.of(kernel, theta, torch.as_tensor(found.X), torch.as_tensor(found.loss))
    order = np.argsort(found.loss)
    excess = np.full((30, 1), -1.0)
    excess[order[:3]] = 1.0
    best = float(incumbent(gp, replace(found, excess=excess)))
    assert best == pytest.approx(float(gp.fitted()[order[3:].tolist()].min()))
    assert float(incumbent(gp, found)) == float(gp.fitted().min())
    assert float(incumbent(gp, replace(found, excess=-excess * 0.0 + 1.0))) == float(
        gp.fitted().max()
    )


def test_expected_improvement_is_weighed_by_its_logarithm() -> None:
    found = data(30, drawn(30)[:, 1] > 0.6)
    success = success_of(SPACE, found)
    kernel = Matern52(3)
    theta = starting_theta(kernel, NOISE_HYPER)
    gp = GP.of(kernel, theta, torch.as_tensor(found.X), torch.as_tensor(found.loss))
    rows = torch.as_tensor(POINTS)
    weighed = weighed_acquisition(gp, "ei", found, success)(rows)
    plain = weighed_acquisition(gp, "ei", found, Feasibility((), found.failed, {}))(rows)
    np.testing.assert_allclose(weighed, plain.log() + Sum(success.parts)(rows), rtol=1e-6)


def test_failures_as_worst_are_rows_like_others() -> None:
    found = data(10, drawn(10)[:, 1] > 0.6)
    worst = found.with_failures_as_worst()
    assert len(worst.X) == len(worst.loss) == len(worst.memos) == 10
    assert (worst.loss[len(found.loss) :] == found.loss.max()).all()
    assert not len(worst.failed)


def bowl(config: dict[str, float]) -> float:
    return (config["x"] - 0.31) ** 2 + (config["y"] - 0.62) ** 2


def test_failures_at_random_do_not_mislead_a_search() -> None:
    space = {"x": raybo.Float(0, 1), "y": raybo.Float(0, 1)}
    rng = np.random.default_rng(0)
    optimizer = raybo.Optimizer(space, seed=1)
    for _ in range(40):
        trial = optimizer.ask()
        if rng.random() < 0.3:
            optimizer.fail(trial.number, "flaky")
        else:
            optimizer.tell(trial.number, bowl(trial.config))
    assert optimizer.best is not None
    assert optimizer.best.value < 1e-5


def test_a_region_where_trials_fail_is_left() -> None:
    """Of the last ten of thirty trials at most two are lost."""
    optimizer = raybo.Optimizer({"x": raybo.Float(0, 1), "y": raybo.Float(0, 1)}, seed=1)
    failures = []
    for _ in range(30):
        trial = optimizer.ask()
        failures.append(trial.config["x"] > 0.5)
        if failures[-1]:
            optimizer.fail(trial.number, "too large")
        else:
            optimizer.tell(trial.number, bowl(trial.config))
    assert optimizer.best is not None
    assert optimizer.best.value < 1e-3
    assert sum(failures[20:]) <= 2
