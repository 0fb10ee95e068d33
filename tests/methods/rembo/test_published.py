"""REMBO as published: Algorithm 3, the process, the kernels of section 3.2."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from raybo.errors import MethodError
from raybo.methods.base import Data
from raybo.methods.rembo.embedding import Embedding
from raybo.methods.rembo.published import (
    HIGHEST,
    KERNELS,
    PublishedRembo,
    State,
    features_of,
    fit_lengthscale,
    last_state,
    negative_log_likelihood,
    process,
    update,
)
from raybo.space.box import Box
from raybo.space.parameters import Categorical, Float, Int
from raybo.space.space import Space
from raybo.space.vector import gaussian_rows
from raybo.study.optimizer import Optimizer
from tests.helpers.data import data_in

MIXED = Space(
    {"a": Float(0, 1), "c": Categorical(list("uvw")), "n": Int(1, 9), "b": Categorical(list("xy"))}
)
VALUES = Space({str(i): Categorical(list("abc")) for i in range(8)})


def told(method: PublishedRembo, n: int, pending: int = 0) -> Data:
    """Data with n told points of the first embedding and some pending."""
    embedding = Embedding.of_lane(method.space, method.dim, method.dim**0.5, 0, 0)
    return data_in(embedding, n, pending)


def squared_distances(name: str, embedding: Embedding, Z: np.ndarray) -> np.ndarray:
    F = features_of(name, embedding)(torch.tensor(Z)).numpy()
    return ((F[:, None] - F[None]) ** 2).sum(2)


class TestKernels:
    Z = np.random.default_rng(1).uniform(-1.5, 1.5, (6, 3))

    def test_low_is_the_distance_of_the_points(self) -> None:
        expected = ((self.Z[:, None] - self.Z[None]) ** 2).sum(2)
        found = squared_distances("low", Embedding(Box(30), 3, 2, 1.7), self.Z)
        np.testing.assert_allclose(found, expected)

    def test_high_is_the_distance_of_the_images(self) -> None:
        x = np.clip(self.Z @ gaussian_rows(2, np.arange(30), 3).T, -1, 1)
        expected = ((x[:, None] - x[None]) ** 2).sum(2)
        found = squared_distances("high", Embedding(Box(30), 3, 2, 1.7), self.Z)
        np.testing.assert_allclose(found, expected, atol=1e-10)

    def test_mixed_adds_squared_distances_and_the_number_of_categories_that_differ(self) -> None:
        embedding = Embedding(MIXED, 3, 2, 1.7)
        found = squared_distances("mixed", embedding, self.Z)
        U = embedding.images(self.Z)
        configs = [MIXED.decode(u) for u in U]
        for i, a in enumerate(configs):
            for j, b in enumerate(configs):
                apart = 4 * ((U[i] - U[j])[[0, 2]] ** 2).sum()
                expected = apart + (a["c"] != b["c"]) + (a["b"] != b["b"])
                assert found[i, j] == pytest.approx(expected, abs=1e-10)

    def test_the_kernel_as_printed_is_not_positive_semidefinite_and_this_one_is(self) -> None:
        space = Space({"a": Categorical(list("xy")), "b": Categorical(list("xy"))})
        U = np.array([[0.25, 0.25], [0.25, 0.75], [0.75, 0.25], [0.75, 0.75]])
        h = (U[:, None] != U[None]).sum(2)
        assert np.linalg.eigvalsh(np.exp(-0.05 * h**2)).min() < -1e-3
        embedding = Embedding(space, 2, 1, 4.0)
        Z = embedding.from_cube(np.random.default_rng(0).random((40, 2)))
        sq = squared_distances("categorical", embedding, Z)
        assert set(np.round(sq, 9).ravel()) == {0.0, 1.0, 2.0}
        assert np.linalg.eigvalsh(np.exp(-0.05 * sq)).min() > -1e-10


def test_the_process_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    X, y, Z = rng.random((12, 2)), rng.standard_normal(12), rng.random((5, 2))
    found = process(X, y, 0.3).posterior(torch.tensor(Z))
    other = GaussianProcessRegressor(RBF(0.3), alpha=1e-10, optimizer=None)
    mean, sd = other.fit(X, y).predict(Z, return_std=True)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-6)
    np.testing.assert_allclose(found.variance.sqrt(), sd, rtol=1e-5)
    expected = -other.log_marginal_likelihood_value_
    assert negative_log_likelihood(X, y, 0.3) == pytest.approx(expected, rel=1e-9)


class TestAlgorithm3:
    def test_the_bound_shrinks_after_five_exploiting_steps(self) -> None:
        rng = np.random.default_rng(2)
        X, y = rng.random((25, 2)), rng.standard_normal(25)
        after = update(State(ell=0.8, U=50.0, C=5, fitted=20, step=24), X, y)
        assert pytest.approx(0.9 * 0.8) == after.U
        assert after.ell <= after.U * (1 + 1e-12)
        assert (after.C, after.fitted) == (0, 25)

    def test_the_bound_does_not_shrink_below_the_lower_one(self) -> None:
        rng = np.random.default_rng(2)
        after = update(State(ell=0.0105, C=5), rng.random((25, 2)), rng.standard_normal(25))
        assert (after.ell, after.U) == (0.01, 0.01)

    def test_the_length_scale_is_fitted_every_twenty_points(self) -> None:
        rng = np.random.default_rng(3)
        X, y = rng.random((40, 2)), rng.standard_normal(40)
        waiting = State(fitted=21)
        assert update(waiting, X, y) == waiting
        due = update(replace(waiting, fitted=20), X, y)
        assert due.fitted == 40
        assert due.U == HIGHEST

    def test_the_length_scale_has_the_highest_likelihood_of_a_grid(self) -> None:
        rng = np.random.default_rng(4)
        X = rng.uniform(-1, 1, (30, 2))
        y = np.sin(3 * X[:, 0]) + X[:, 1]
        found = negative_log_likelihood(X, y, fit_lengthscale(X, y, 50.0))
        assert (
            found < min(negative_log_likelihood(X, y, e) for e in np.geomspace(0.01, 50, 60)) + 1
        )

    def test_the_state_noted_last_counts_whatever_the_order(self) -> None:
        items = [
            {"ell": 1.0, "U": 2.0, "C": c, "fitted": 3, "step": s} for c, s in ((1, 4), (2, 9))
        ]
        data = told(PublishedRembo(Box(5), d=2, k=1), 2, pending=1)
        memos = tuple({**m, "algorithm3": i} for m, i in zip(data.memos, items[::-1], strict=True))
        assert last_state(replace(data, memos=memos)).C == 2

    def test_it_exploits_where_the_deviation_is_below_the_threshold(self) -> None:
        # On a line with a point every 0.01, no point of the box is unknown to a long length-scale.
        method = PublishedRembo(Box(5), d=1, k=1)
        data = told(method, 2)
        Z = np.linspace(-1, 1, 201)
        noted = {"ell": 1.0, "U": 50.0, "C": 3, "fitted": 201, "step": 201}
        memos = tuple({"z": [z], "algorithm3": noted} for z in Z)
        X = np.zeros((201, 5))
        dense = replace(data, X=X, loss=np.sin(Z), memos=memos)
        proposal = method.propose(dense, np.random.default_rng(0))
        assert proposal.memo["algorithm3"]["C"] == 4
        few = replace(dense, X=X[::60], loss=np.sin(9 * Z[::60]))
        short = {**noted, "ell": 0.05}
        few = replace(few, memos=tuple({"z": [z], "algorithm3": short} for z in Z[::60]))
        assert method.propose(few, np.random.default_rng(0)).memo["algorithm3"]["C"] == 0


@pytest.mark.parametrize("kernel", [None, *KERNELS])
def test_every_kernel_proposes_with_fifty_pending(kernel: str | None) -> None:
    space = {"mixed": MIXED, "categorical": VALUES}.get(str(kernel), Box(8))
    method = PublishedRembo(space, d=3, k=1, kernel=kernel)
    data = told(method, 8, pending=50)
    proposal = method.propose(data, np.random.default_rng(0))
    assert proposal.memo == method.propose(data, np.random.default_rng(0)).memo
    assert np.abs(proposal.memo["z"]).max() <= 3**0.5


@pytest.mark.parametrize("losses", [np.full(8, 3.0), np.geomspace(1e-300, 1e300, 8)])
def test_equal_and_extreme_losses(losses: np.ndarray) -> None:
    method = PublishedRembo(Box(10**9), d=2, k=1)
    data = replace(told(method, 8), loss=losses)
    assert np.isfinite(method.propose(data, np.random.default_rng(0)).memo["z"]).all()


def test_the_box_is_that_of_section_3() -> None:
    optimizer = Optimizer(Box(50), "rembo", preset="paper", d=4, k=1, n_init=33)
    Z = np.array([optimizer.ask().memo["z"] for _ in range(33)])
    assert 0.9 * 2 < np.abs(Z).max() <= 2


@pytest.mark.parametrize("kernel", ["learned", "warped"])
def test_kernels_that_are_not_the_papers_are_refused(kernel: str) -> None:
    with pytest.raises(MethodError, match="one of 'low', 'high', 'categorical', 'mixed'"):
        PublishedRembo(Box(5), kernel=kernel)


def test_resumes_with_the_same_points() -> None:
    first = Optimizer(Box(1000), "rembo", d=2, k=2, preset="paper")
    for _ in range(12):
        trial = first.ask()
        first.tell(trial.number, float(trial.config["x"][1] ** 2))
    second = Optimizer.from_state(json.loads(json.dumps(first.state())))
    for _ in range(3):
        a, b = first.ask(), second.ask()
        assert a.memo == b.memo
        first.tell(a.number, 0.5)
        second.tell(b.number, 0.5)
