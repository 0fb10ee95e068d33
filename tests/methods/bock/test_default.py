from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from raybo.benchmarks.problems.registry import get_problem
from raybo.errors import MethodError, SpaceError
from raybo.methods.base import LEAST, Data
from raybo.methods.bock.default import Bock, at_every_radius
from raybo.space.box import Box
from raybo.space.parameters import Categorical, Choice, Float, Int
from raybo.space.space import Space
from raybo.study.optimizer import Optimizer
from tests.helpers.data import data_of


def told(X: np.ndarray, loss: np.ndarray, memos: list[dict] | None = None) -> Data:
    return data_of(Box(X.shape[1]), len(X), loss, X=X, memos=memos)


def some(n: int, d: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).random((n, d))
    X[0] = 0.5
    return X, ((X - 0.6) ** 2).sum(1)


def run(opt: Optimizer, n: int) -> float:
    for _ in range(n):
        trial = opt.ask()
        x = np.asarray(trial.config["x"])
        assert (np.abs(x) <= 1.0).all()
        opt.tell(trial.number, float(((x - 0.2) ** 2).sum()))
    return opt.best.value


def test_starts_at_the_centre_then_at_one_uniform_point() -> None:
    opt = Optimizer(Box(5), "bock", seed=1, inference="map")
    first, second = opt.ask(), opt.ask()
    np.testing.assert_array_equal(np.asarray(first.config["x"]), np.zeros(5))
    assert np.abs(np.asarray(second.config["x"])).min() > 0
    other = Optimizer(Box(5), "bock", seed=2, inference="map")
    other.ask()
    assert not other.ask().config["x"].same_as(second.config["x"])


def test_the_centre_is_proposed_once_and_not_when_the_user_has_given_it() -> None:
    opt = Optimizer(Box(3), "bock", inference="map")
    opt.add({"x": np.zeros(3)}, 1.0)
    assert np.abs(np.asarray(opt.ask().config["x"])).max() > 0


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"inference": "map", "warp": False},
        {"inference": "map", "degree": 5},
    ],
    ids=str,
)
@pytest.mark.slow
def test_every_variant_improves_on_its_start(options: dict) -> None:
    opt = Optimizer(Box(4), "bock", seed=0, **options)
    assert run(opt, 20) < 0.16 - 0.05  # the value at the centre is 4 * 0.2^2


@pytest.mark.slow
def test_finds_the_minimum_of_a_quadratic_in_ten_dimensions() -> None:
    assert run(Optimizer(Box(10), "bock", seed=0, inference="map"), 45) < 0.02


def test_ints_are_searched_on_their_grid_and_a_finite_space_is_exhausted() -> None:
    space = Space({"n": Int(0, 4), "m": Int(-1, 1)})
    opt = Optimizer(space, "bock", inference="map")
    for _ in range(15):
        trial = opt.ask()
        opt.tell(trial.number, abs(trial.config["n"] - 3) + abs(trial.config["m"]))
    assert len({json.dumps(t.config) for t in opt.trials}) == 15
    assert opt.best.config == {"n": 3, "m": 0}


def test_a_space_whose_grid_misses_the_centre_is_searched() -> None:
    space = Space({"n": Int(0, 1), "x": Float(0, 1)})
    X = space.sample(6, np.random.default_rng(0))
    proposal = Bock(space, inference="map").propose(told(X, X.sum(1)), np.random.default_rng(1))
    assert np.isfinite(proposal.x).all()


def test_a_row_at_the_centre_is_predicted_like_the_others() -> None:
    X, loss = some(12)
    gp, _ = Bock(Box(4)).model(told(X, loss))
    assert gp.mean.shape == (10,)
    near = torch.tensor(X[:1]) + 1e-8 * torch.tensor(np.random.default_rng(1).random((5, 4)))
    found = gp.posterior(torch.cat([torch.tensor(X[:1]), near])).mean
    np.testing.assert_allclose(found, found[:, :1].expand_as(found), atol=1e-3)


def test_samples_are_kept_until_the_data_have_grown_by_a_tenth() -> None:
    X, loss = some(60)
    bock = Bock(Box(4))
    first, noted = bock.model(told(X[:50], loss[:50]))
    memos = [json.loads(json.dumps(noted)), *([{}] * 59)]
    kept, nothing = bock.model(told(X[:54], loss[:54], memos[:54]))
    assert not nothing
    moved, again = bock.model(told(X[:55], loss[:55], memos[:55]))
    assert again
    for name, samples in first.theta.items():
        np.testing.assert_array_equal(kept.theta[name], samples)
        assert (moved.theta[name] != samples).any()
    hasty = replace(told(X[:55], loss[:55], memos[:55]), effort=LEAST)
    assert not bock.model(hasty)[1]


def test_a_study_of_an_older_version_goes_on() -> None:
    X, loss = some(20)
    old = {"chains": {"0": [0.0] * 10}, "step": 19, "rows": 20, "fitted": 20, "power": 1.0}
    for inference in ("sample", "map"):
        bock = Bock(Box(4), inference=inference)
        proposal = bock.propose(told(X, loss, [*[{}] * 19, old]), np.random.default_rng(0))
        assert np.isfinite(proposal.x).all()
        assert proposal.memo


def test_one_fit_replaces_the_samples_when_asked() -> None:
    X, loss = some(20)
    gp, _ = Bock(Box(4), inference="map").model(told(X, loss))
    assert gp.mean.shape == (1,)


def test_starts_fill_every_radius() -> None:
    X = at_every_radius(50, 256, np.random.default_rng(0))
    assert ((X >= 0) & (X <= 1)).all()
    radii = np.linalg.norm(2 * X - 1, axis=1) / np.sqrt(50)
    shares = np.histogram(radii, bins=[0, 0.15, 0.3, 0.45])[0] / len(X)
    assert (shares > 0.15).all()


def test_pending_points_are_not_proposed_again() -> None:
    X, loss = some(20, d=6)
    bock = Bock(Box(6), inference="map")
    asked = np.empty((0, 6))
    for i in range(4):
        data = data_of(bock.space, 20, loss, pending=i, X=np.vstack([X, asked]))
        x = bock.propose(data, np.random.default_rng([0, i])).x
        if len(asked):
            assert np.linalg.norm(asked - x, axis=1).min() > 1e-3
        asked = np.vstack([asked, x])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"degree": 0}, "degree must be an integer of at least 1, got 0"),
        ({"inference": "vb"}, "inference must be one of 'sample', 'map', got 'vb'"),
        ({"warp": "yes"}, "warp must be one of True, False, got 'yes'"),
        ({"boundary": 3}, "boundary must be one of True, False, got 3"),
        ({"boundary": True}, 'give preset="paper" with it'),
    ],
)
def test_bad_options_are_refused(options: dict, says: str) -> None:
    with pytest.raises(MethodError, match=says):
        Bock(Box(3), **options)


def test_spaces_without_a_centre_are_refused_with_the_method_to_use() -> None:
    with pytest.raises(SpaceError, match=r"'k' is Categorical.*use method 'bo'"):
        Bock(Space({"x": Float(0, 1), "k": Categorical(["a", "b"])}))
    with pytest.raises(SpaceError, match="'c' is a Choice; use method 'addtree'"):
        Bock(Space({"c": Choice({"a": {}, "b": {"x": Float(0, 1)}})}))
    with pytest.raises(SpaceError, match="use method 'bins', 'rembo'"):
        Bock(Box(10**6))


@pytest.mark.slow
def test_is_ahead_of_random_search_on_repeated_hartmann6() -> None:
    # 20 dimensions, 50 evaluations: ahead by 0.5 or more in at least 5 of 7 seeds.
    problem = get_problem("repeated-hartmann6-20")

    def best(method: str, seed: int, **options: str) -> float:
        opt = Optimizer(problem.space, method, seed=seed, **options)
        for _ in range(50):
            trial = opt.ask()
            opt.tell(trial.number, problem.objective(trial.config))
        return opt.best.value

    wins = [best("bock", s, inference="map") < best("random", s) - 0.5 for s in range(7)]
    assert sum(wins) >= 5
