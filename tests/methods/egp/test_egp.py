"""Method egp, as published and as raybo runs it: model, options, proposals."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from raybo.errors import MethodError, SpaceError
from raybo.methods.base import Data, Method
from raybo.methods.egp.published import ACQUISITIONS, MAXIMIZERS, PublishedEgp
from raybo.methods.registry import build_method
from raybo.methods.search import acquisition_of
from raybo.space.any_space import AnySpace
from raybo.space.box import Box
from raybo.space.parameters import Categorical, Choice, Float, Int
from raybo.space.space import Space
from raybo.study.optimizer import Optimizer
from raybo.surrogate.outcomes import standardize
from tests.helpers.data import data_of


def make_data(n: int, d: int, pending: int = 0, seed: int = 0) -> Data:
    X = np.random.default_rng(seed).random((n + pending, d))
    loss = ((X[:n] - 0.3) ** 2).sum(1)
    return data_of(Box(d), n, loss, pending=pending, X=X)


def egp(space: AnySpace, **options: object) -> Method:
    return build_method("egp", space, options)


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"preset": "fast"}, "'default', 'paper'"),
            ({"n_init": 0}, "n_init must be an integer of at least 1, got 0"),
            ({"acquisition": "pi"}, "'log_ei', 'ei', 'ucb'"),
            ({"maximizer": "direct"}, "has no option 'maximizer'"),
            ({"preset": "paper", "maximizer": "cmaes"}, "'elastic', 'multistart', 'direct'"),
            ({"preset": "paper", "device": "cuda"}, "with preset 'paper' has no option 'device'"),
            ({"target_lengthscale": 0.0}, r"from 0.005 to 1000, got 0.0; .* 0.1"),
            ({"target_lengthscale": "auto"}, "got 'auto'"),
            ({"target_lengthscale": float("nan")}, "got nan"),
            ({"target_lengthscale": True}, "got True"),
            ({"seconds": 0}, "seconds must be a positive number, .* got 0; leave it out"),
            ({"seconds": "1s"}, "got '1s'"),
            ({"seconds": float("inf")}, "got inf"),
        ],
    )
    def test_bad_values_are_refused_with_what_is_allowed(
        self, options: dict[str, object], words: str
    ) -> None:
        with pytest.raises(MethodError, match=words):
            egp(Box(3), **options)

    def test_a_conditional_space_is_sent_to_addtree(self) -> None:
        with pytest.raises(SpaceError, match="use method 'addtree'"):
            egp(Space({"c": Choice({"a": {"x": Float(0, 1)}, "b": {}})}))

    def test_a_huge_box_is_sent_to_a_method_for_it(self) -> None:
        with pytest.raises(SpaceError, match="use method 'bins', 'rembo'"):
            egp(Box(10**9))


class TestModel:
    def test_paper_is_a_noiseless_unit_process_of_length_a_tenth(self) -> None:
        data = make_data(12, 4)
        gp, _ = PublishedEgp(Box(4)).model(data)
        rival = GaussianProcessRegressor(RBF(0.1), alpha=1e-6, optimizer=None)
        rival.fit(data.X, standardize(data.loss))
        Z = data.X[:6] + 0.03
        mean, sd = rival.predict(Z, return_std=True)
        ours = gp.posterior(torch.as_tensor(Z))
        np.testing.assert_allclose(ours.mean, mean, rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(ours.variance.sqrt(), sd, rtol=1e-7)

    def test_default_learns_one_lengthscale_and_remembers_it(self) -> None:
        data = make_data(30, 4)
        gp, memo = egp(Box(4)).model(data)
        assert gp.theta["lengthscale"].shape == ()
        assert memo == json.loads(json.dumps(memo)) != {}
        again = make_data(30, 4)
        again = replace(again, memos=(memo, *again.memos[1:]))
        assert egp(Box(4)).model(again)[1] == {}

    @pytest.mark.parametrize("preset", ["default", "paper"])
    def test_a_target_lengthscale_is_kept(self, preset: str) -> None:
        space = Space({"a": Float(0, 1), "b": Float(0, 1), "c": Categorical(["x", "y"])})
        data = make_data(12, 3)
        data = replace(data, X=space.snap(data.X))
        gp, _ = egp(space, preset=preset, target_lengthscale=0.25).model(data)
        assert float(gp.theta["0.lengthscale"]) == pytest.approx(0.25)

    def test_a_target_lengthscale_leaves_the_noise_to_the_fit(self) -> None:
        data = make_data(40, 2)
        noisy = replace(data, loss=rng().standard_normal(40))
        smooth = egp(Box(2), target_lengthscale=0.5).model(data)[0].theta["noise"]
        rough = egp(Box(2), target_lengthscale=0.5).model(noisy)[0].theta["noise"]
        assert float(rough) > 5 * float(smooth)


class TestPropose:
    @pytest.mark.parametrize("preset", ["default", "paper"])
    @pytest.mark.parametrize("n", [0, 1, 2, 25])
    @pytest.mark.parametrize("pending", [0, 50])
    def test_any_number_of_rows(self, preset: str, n: int, pending: int) -> None:
        x = (
            egp(Box(5), preset=preset, n_init=2, seconds=0.01)
            .propose(make_data(n, 5, pending), rng())
            .x
        )
        assert x.shape == (5,)
        assert ((x >= 0) & (x <= 1)).all()

    @pytest.mark.parametrize("loss", [0.0, 1e300, -1e-300])
    @pytest.mark.parametrize("preset", ["default", "paper"])
    def test_equal_losses_and_equal_rows(self, loss: float, preset: str) -> None:
        data = make_data(6, 3)
        same = np.repeat(data.X[:1], 6, axis=0)
        data = replace(data, X=same, loss=np.full(6, loss))
        x = egp(Box(3), preset=preset, n_init=2, seconds=0.01).propose(data, rng()).x
        assert np.isfinite(x).all()

    @pytest.mark.parametrize("maximizer", MAXIMIZERS)
    @pytest.mark.parametrize("acquisition", ACQUISITIONS)
    def test_every_acquisition_with_every_maximizer(
        self, acquisition: str, maximizer: str
    ) -> None:
        method = PublishedEgp(Box(3), acquisition=acquisition, maximizer=maximizer, seconds=0.01)
        x = method.propose(make_data(12, 3), rng()).x
        assert ((x >= 0) & (x <= 1)).all()

    @pytest.mark.parametrize("maximizer", MAXIMIZERS)
    def test_more_time_finds_no_less(self, maximizer: str) -> None:
        data, found = make_data(30, 8), []
        for seconds in (1e-9, 0.5):
            method = PublishedEgp(Box(8), maximizer=maximizer, seconds=seconds)
            gp, _ = method.model(data)
            f = acquisition_of(gp, "ei", gp.fitted().min(), 30)
            found.append(float(f(torch.as_tensor(method.propose(data, rng()).x[None]))))
        assert found[0] <= found[1]

    def test_the_same_data_and_generator_give_the_same_point(self) -> None:
        once = 1e-9  # seconds: one search, however fast the machine
        for options in ({}, {"preset": "paper", "seconds": once}):
            method, data = egp(Box(6), **options), make_data(20, 6, 3)
            np.testing.assert_array_equal(
                method.propose(data, rng()).x, method.propose(data, rng()).x
            )

    def test_paper_begins_with_one_more_point_than_dimensions(self) -> None:
        method = PublishedEgp(Box(4))
        designed = [method.propose(make_data(n, 4), rng()).x for n in (3, 4)]
        again = method.propose(make_data(4, 4, seed=9), np.random.default_rng(0)).x
        np.testing.assert_array_equal(designed[1], again)  # by (seed, number) alone
        modelled = [method.propose(make_data(5, 4, seed=s), rng()).x for s in (1, 2)]
        assert not np.array_equal(*modelled)

    def test_discrete_columns_get_their_own_values(self) -> None:
        space = Space({"n": Int(1, 5), "c": Categorical(["a", "b", "c"]), "x": Float(0, 1)})
        X = space.sample(12, np.random.default_rng(0))
        data = make_data(12, 3)
        data = replace(data, X=X, loss=X.sum(1))
        for preset in ("default", "paper"):
            x = egp(space, preset=preset, seconds=0.01).propose(data, rng()).x
            np.testing.assert_array_equal(space.snap(x[None])[0], x)


def test_a_rebuilt_study_goes_on_as_the_first() -> None:
    def told(opt: Optimizer, n: int) -> list[dict[str, object]]:
        configs = []
        for i in range(n):
            trial = opt.ask()
            x = np.asarray(trial.config["x"])
            configs.append(x.tolist())
            if i % 4 == 3:
                opt.fail(trial.number, "no value")
            elif i % 4 != 2:  # every fourth stays pending
                opt.tell(trial.number, float((x**2).sum()))
        return configs

    opt = Optimizer(Box(3), "egp", seed=3, n_init=4)
    told(opt, 10)
    copy = Optimizer.from_state(json.loads(json.dumps(opt.state())))
    assert told(copy, 4) == told(opt, 4)


def test_bo_searches_elastically_too() -> None:
    opt = Optimizer(Box(3), "bo", maximizer="elastic", n_init=4)
    for _ in range(8):
        trial = opt.ask()
        opt.tell(trial.number, float((np.asarray(trial.config["x"]) ** 2).sum()))
    assert opt.best.value < 0.5
