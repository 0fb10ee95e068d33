from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from raybo.acquisition.maximizers.base import Region
from raybo.errors import MethodError
from raybo.methods.base import Data
from raybo.methods.bock.kernel import NOISE_HYPER, Cylindrical
from raybo.methods.bock.published import PublishedBock, adam, next_states
from raybo.space.box import Box
from raybo.space.parameters import Int
from raybo.space.space import Space
from raybo.study.optimizer import Optimizer
from raybo.surrogate.map import NegativeLogPosterior, starting_theta
from raybo.surrogate.outcomes import standardize
from tests.helpers.data import data_of

PEAK = torch.tensor([0.3, 0.7], dtype=torch.float64)


def told(X: np.ndarray, loss: np.ndarray, memos: list[dict] | None = None) -> Data:
    return data_of(Box(X.shape[1]), len(X), loss, X=X, memos=memos)


def density_of(X: np.ndarray, y: np.ndarray) -> NegativeLogPosterior:
    return NegativeLogPosterior(
        Cylindrical(X.shape[1]), torch.tensor(X), torch.tensor(y), NOISE_HYPER
    )


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="BOCK", marks=pytest.mark.slow),
        pytest.param({"warp": False}, id="BOCK-W", marks=pytest.mark.slow),
        pytest.param({"boundary": True}, id="BOCK+B", marks=pytest.mark.slow),
    ],
)
def test_every_variant_improves_on_the_centre(options: dict) -> None:
    opt = Optimizer(Box(2), "bock", preset="paper", inference="map", **options)
    for _ in range(9):
        trial = opt.ask()
        x = np.asarray(trial.config["x"])
        assert (np.abs(x) <= 1.0).all()
        opt.tell(trial.number, float(((x - 0.2) ** 2).sum()))
    assert opt.best.value < 0.75 * 0.08  # the value at the centre


def test_the_chain_continues_from_its_last_sample_when_results_arrive() -> None:
    X = np.random.default_rng(0).random((7, 2))
    X[0] = 0.5
    loss = ((X - 0.6) ** 2).sum(1)
    density = density_of(X[1:6], loss[1:6])
    start = density.logs(starting_theta(density.kernel, NOISE_HYPER))[None]
    first = next_states(density, start, np.random.default_rng(0), burn_in=0)
    bock = PublishedBock(Box(2))

    def after(n: int, samples: np.ndarray) -> Data:
        memos = [*[{}] * 5, {"samples": samples.tolist(), "fitted": 6}, {}]
        return told(X[:n], loss[:n], memos[:n])

    again, noted = bock.samples(density, after(6, first), np.random.default_rng(1))
    np.testing.assert_array_equal(again, first)  # no result since: the samples are used again
    assert not noted
    proposal = bock.propose(after(7, first), np.random.default_rng(1))
    assert np.isfinite(proposal.x).all()
    second = np.array(proposal.memo["samples"])
    assert not (second == first).any()
    density = density_of(X[1:], standardize(loss)[1:])
    same, _ = bock.samples(density, after(7, first[-1:]), np.random.default_rng(1))
    np.testing.assert_array_equal(same, second)  # the last sample alone counts


def test_states_stay_in_the_bounds_and_follow_each_other() -> None:
    X = np.random.default_rng(0).random((12, 4))
    density = density_of(X, X.sum(1) - 2.0)
    start = density.logs(starting_theta(density.kernel, NOISE_HYPER))[None]
    states = next_states(density, start, np.random.default_rng(0), burn_in=3)
    low, high = np.array(density.bounds).T
    assert states.shape == (10, len(low))
    assert ((states >= low) & (states <= high)).all()
    assert len(np.unique(states, axis=0)) == 10


def test_only_the_centre_told_gives_a_uniform_point() -> None:
    X = np.full((3, 2), 0.5)
    X[1] += 1e-12  # too near to have a direction
    proposal = PublishedBock(Box(2)).propose(told(X, np.arange(3.0)), np.random.default_rng(1))
    assert not (proposal.x == 0.5).any()


def test_adam_takes_the_steps_of_kingma_and_ba() -> None:
    def f(X: torch.Tensor) -> torch.Tensor:
        return torch.exp(-3.0 * ((X - PEAK) ** 2).sum(1)) + 0.1 * X[:, 0]

    start = np.array([[0.9, 0.2]])
    region = Region(np.zeros(2), np.ones(2), start)
    found = adam(f, region, np.random.default_rng(0), steps=40)
    x, m, v = start.copy(), np.zeros((1, 2)), np.zeros((1, 2))
    for t in range(1, 40):  # the point at which the last step ends is not looked at
        Z = torch.tensor(x, requires_grad=True)
        (gradient,) = torch.autograd.grad(f(Z).sum(), Z)
        m = 0.9 * m + 0.1 * gradient.numpy()
        v = 0.999 * v + 0.001 * gradient.numpy() ** 2
        x = x + 0.005 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    np.testing.assert_allclose(found, x[0], rtol=1e-9)


def test_adam_stays_in_the_box_and_keeps_the_best_point_on_the_way() -> None:
    def ridge(X: torch.Tensor) -> torch.Tensor:  # steps of the rate never settle on it
        return -(X - torch.tensor([0.3, 1.7])).abs().sum(1)

    start = np.array([[0.3012, 0.99]])
    found = adam(ridge, Region(np.zeros(2), np.ones(2), start), np.random.default_rng(0))
    assert found[1] == 1.0
    assert abs(found[0] - 0.3) <= 0.005  # one step


def test_adam_moves_to_no_row_that_is_not_finite() -> None:
    def with_nan(X: torch.Tensor) -> torch.Tensor:
        return torch.where(X[:, 0] > 0.5, torch.nan, -100.0 * ((X - PEAK) ** 2).sum(1))

    starts = np.array([[0.9, 0.2], [0.1, 0.2]])
    found = adam(with_nan, Region(np.zeros(2), np.ones(2), starts), np.random.default_rng(0))
    np.testing.assert_allclose(found, [0.3, 0.7], atol=0.02)


def test_a_finite_space_is_exhausted() -> None:
    opt = Optimizer(
        Space({"n": Int(0, 3), "m": Int(-1, 1)}), "bock", preset="paper", inference="map"
    )
    for _ in range(12):
        trial = opt.ask()
        opt.tell(trial.number, abs(trial.config["n"] - 3) + abs(trial.config["m"]))
    assert len({json.dumps(t.config) for t in opt.trials}) == 12


def test_bad_options_are_refused() -> None:
    with pytest.raises(MethodError, match="boundary must be one of True, False, got 3"):
        PublishedBock(Box(3), boundary=3)
