from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from raybo.benchmarks.problems.registry import get_problem
from raybo.errors import MethodError, SpaceError
from raybo.methods.base import Data
from raybo.methods.bock.default import (
    POWERS,
    Bock,
    likeliest,
    mean_ei,
    moved_chains,
    next_states,
    remembered,
)
from raybo.methods.bock.kernel import Cylindrical
from raybo.methods.bock.posterior import CylinderData, CylinderGP
from raybo.space.box import Box
from raybo.space.parameters import Categorical, Choice, Float, Int
from raybo.space.space import Space
from raybo.study.optimizer import Optimizer


def data_of(X: np.ndarray, loss: np.ndarray, memos=None, pending=None, number=None) -> Data:
    n, d = X.shape
    pending = np.empty((0, d)) if pending is None else pending
    return Data(
        number=n + len(pending) if number is None else number,
        seed=0,
        X=X,
        loss=loss,
        failed=np.zeros(n, dtype=bool),
        memos=tuple(memos or [{}] * n),
        pending=pending,
        pending_memos=({},) * len(pending),
    )


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
        {"inference": "map", "boundary": True},
        {"inference": "map", "degree": 5},
    ],
    ids=str,
)
def test_every_variant_improves_on_its_start(options: dict) -> None:
    opt = Optimizer(Box(4), "bock", seed=0, **options)
    assert run(opt, 20) < 0.16 - 0.05  # the value at the centre is 4 * 0.2^2


def test_the_paper_s_preset_improves_on_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raybo.methods.bock.default.BURN_IN", 9)
    assert run(Optimizer(Box(2), "bock", seed=0, preset="paper"), 9) < 0.08 - 0.03


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


def test_a_centre_that_is_no_point_of_the_grid_is_no_special_datum() -> None:
    space = Space({"n": Int(0, 1), "x": Float(0, 1)})
    X = space.sample(6, np.random.default_rng(0))
    proposal = Bock(space, inference="map").propose(data_of(X, X.sum(1)), np.random.default_rng(1))
    assert np.isfinite(proposal.x).all()


def test_only_the_centre_told_gives_a_uniform_point() -> None:
    X = np.full((3, 2), 0.5)
    X[1] += 1e-12  # near enough to have no direction
    proposal = Bock(Box(2)).propose(data_of(X, np.arange(3.0)), np.random.default_rng(1))
    assert not (proposal.x == 0.5).any()


def test_memo_holds_only_the_chains_that_moved_and_nothing_without_new_data() -> None:
    X, loss = some(60)
    bock = Bock(Box(4))
    first = bock.propose(data_of(X[:50], loss[:50]), np.random.default_rng(0))
    assert sorted(first.memo["chains"], key=int) == [str(i) for i in range(10)]
    memos = [*([{}] * 49), json.loads(json.dumps(first.memo))]
    again = bock.propose(data_of(X[:50], loss[:50], memos, X[50:51]), np.random.default_rng(1))
    assert again.memo == {}
    later = bock.propose(data_of(X[:51], loss[:51], [*memos, {}]), np.random.default_rng(2))
    assert sorted(later.memo["chains"]) == ["0", "1", "2"]  # 200 // 51 of them
    memos = [*memos, json.loads(json.dumps(later.memo))]
    last = bock.propose(data_of(X[:52], loss[:52], [*memos]), np.random.default_rng(3))
    assert sorted(last.memo["chains"]) == ["3", "4", "5"]  # those that rested longest
    samples, steps, n, fitted, power = remembered(data_of(X[:52], loss[:52], memos), 10)
    assert (n, fitted) == (51, 50)
    assert power in POWERS
    np.testing.assert_array_equal(samples[0], later.memo["chains"]["0"])
    np.testing.assert_array_equal(samples[9], first.memo["chains"]["9"])
    assert steps.tolist() == [51] * 3 + [50] * 7


def test_samples_of_another_number_of_hyperparameters_are_not_taken_up() -> None:
    # A study begun with a version whose kernel had one less goes on with a fit of its own.
    X, loss = some(20)
    bock = Bock(Box(4), inference="map")
    old = {"chains": {"0": [0.0] * 9}, "step": 19, "rows": 20, "fitted": 20, "power": 1.0}
    memo = bock.propose(data_of(X, loss, [*[{}] * 19, old]), np.random.default_rng(0)).memo
    assert [len(logs) for logs in memo["chains"].values()] == [10]


def test_map_refits_when_the_data_have_grown_by_a_tenth() -> None:
    X, loss = some(60)
    bock = Bock(Box(4), inference="map")
    first = bock.propose(data_of(X[:50], loss[:50]), np.random.default_rng(0))
    memos = [first.memo, *([{}] * 59)]
    assert list(first.memo["chains"]) == ["0"]
    assert not bock.propose(data_of(X[:54], loss[:54], memos[:54]), np.random.default_rng(0)).memo
    assert bock.propose(data_of(X[:55], loss[:55], memos[:55]), np.random.default_rng(0)).memo


def test_the_paper_s_chain_goes_on_from_its_last_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raybo.methods.bock.default.BURN_IN", 9)
    X, loss = some(12)
    rows = CylinderData.of(Cylindrical(4), torch.tensor(X), torch.tensor(loss - loss.mean()))
    first = next_states(rows, rows.bounds.mean(1)[None], np.random.default_rng(0))
    assert first.shape == (10, 9)
    assert len(np.unique(first, axis=0)) == 10
    low, high = rows.bounds.T
    assert ((first >= low) & (first <= high)).all()
    a = next_states(rows, first, np.random.default_rng(1))
    first[:-1] = first[0]
    b = next_states(rows, first, np.random.default_rng(1))
    np.testing.assert_array_equal(a, b)


def test_losses_are_bent_where_that_makes_them_likelier() -> None:
    X, _ = some(60, d=3)
    kernel = Cylindrical(3)
    smooth = np.sin(2 * X).sum(1) - 1.5 * X[:, 0]
    plain, skewed = data_of(X, smooth), data_of(X, np.exp(4 * smooth))
    assert likeliest(kernel, plain, POWERS)[0] == 1.0
    assert likeliest(kernel, skewed, POWERS)[0] < 1.0


def test_chains_begin_again_when_another_power_is_likelier() -> None:
    X, _ = some(60, d=3)
    loss = np.exp(4 * (np.sin(2 * X).sum(1) - 1.5 * X[:, 0]))
    bock = Bock(Box(3))
    first = bock.propose(data_of(X[:50], loss[:50]), np.random.default_rng(0)).memo
    assert first["power"] < 1.0
    memos = [{**first, "power": 1.0}, *([{}] * 59)]
    kept = bock.propose(data_of(X[:51], loss[:51], memos[:51]), np.random.default_rng(1)).memo
    assert (kept["power"], kept["fitted"], len(kept["chains"])) == (1.0, 50, 3)
    later = bock.propose(data_of(X[:55], loss[:55], memos[:55]), np.random.default_rng(2)).memo
    assert (later["power"] < 1.0, later["fitted"], len(later["chains"])) == (True, 55, 10)


def test_the_paper_s_losses_are_not_bent() -> None:
    X, loss = some(8, d=2)
    bock = Bock(Box(2), preset="paper", inference="map")
    memo = bock.propose(data_of(X, np.exp(9 * loss)), np.random.default_rng(0)).memo
    assert memo["power"] == 1.0


@pytest.mark.slow
def test_chains_agree_with_the_paper_s_single_chain_in_distribution() -> None:
    X, loss = some(15)
    y = torch.tensor((loss - loss.mean()) / loss.std())
    rows = CylinderData.of(Cylindrical(4), torch.tensor(X), y)
    rng = np.random.default_rng(0)
    many = rows.bounds.mean(1)[None]
    kept = []
    for _ in range(20):
        many, _ = moved_chains(rows, many, np.zeros(10, dtype=int), 15, rng)
        kept.append(many)
    one = next_states(rows, rows.bounds.mean(1)[None], rng)
    single = [one := next_states(rows, one, rng) for _ in range(20)]
    a, b = np.concatenate(kept), np.concatenate(single)
    spread = np.concatenate([a, b]).std(0)
    assert (np.abs(a.mean(0) - b.mean(0)) < 0.6 * spread).all()


def test_acquisition_is_the_logarithm_of_the_mean_of_the_improvements() -> None:
    X, loss = some(12)
    y = torch.tensor((loss - loss.mean()) / loss.std())
    rows = CylinderData.of(Cylindrical(4), torch.tensor(X), y)
    low, high = rows.bounds.T
    logs = low + (high - low) * np.random.default_rng(0).uniform(0.4, 0.6, (3, len(low)))
    gp = CylinderGP.of(rows, rows.theta(logs))
    Q = torch.tensor(np.random.default_rng(1).random((7, 4)))
    best = torch.tensor([-1.0, -0.9, -1.1], dtype=torch.float64)
    found = mean_ei(gp, best)(Q)
    mean, variance = gp.posterior(Q)
    draws = torch.tensor(np.random.default_rng(2).standard_normal(200_000))
    for i in range(7):
        gains = [
            float((best[s] - mean[s, i] - variance[s, i].sqrt() * draws).clamp_min(0).mean())
            for s in range(3)
        ]
        assert math.exp(float(found[i])) == pytest.approx(np.mean(gains), rel=0.05, abs=1e-6)


def test_chunks_of_the_acquisition_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    X, loss = some(12)
    rows = CylinderData.of(Cylindrical(4), torch.tensor(X), torch.tensor(loss))
    gp = CylinderGP.of(rows, rows.theta(rows.bounds.mean(1)[None]))
    Q = torch.tensor(np.random.default_rng(1).random((50, 4)))
    whole = mean_ei(gp, torch.tensor([0.0]).double())(Q)
    monkeypatch.setattr("raybo.methods.bock.default.CHUNK", 100)
    np.testing.assert_allclose(mean_ei(gp, torch.tensor([0.0]).double())(Q), whole)


def test_pending_points_are_not_proposed_again() -> None:
    X, loss = some(20, d=6)  # in 2 dimensions these data leave no doubt where the optimum is
    bock = Bock(Box(6), inference="map")
    asked = np.empty((0, 6))
    for i in range(8):
        data = data_of(X, loss, pending=asked)
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
    with pytest.raises(SpaceError, match="use method 'rembo'"):
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
