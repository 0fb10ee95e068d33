"""Embeddings: images, lanes, which data belong to one, starts."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch

from raybo.methods.base import EFFORTS
from raybo.methods.rembo.embedding import Embedding
from raybo.methods.search import Barred, barred_images
from raybo.space.box import Box
from raybo.space.parameters import Categorical, Float, Int
from raybo.space.space import Space
from raybo.space.vector import gaussian_rows
from raybo.study.optimizer import Optimizer
from tests.helpers.data import data_in

MIXED = Space({"a": Float(1e-4, 1, log=True), "n": Int(1, 9), "c": Categorical(list("uvw"))})
FINITE = Space({"n": Int(1, 3), "c": Categorical(list("uvw"))})


def test_a_point_of_a_billion_dimensions_is_its_z_and_pickles_small() -> None:
    trial = Optimizer(Box(10**9), "rembo", seed=1, d=3).ask()
    x = trial.config["x"]
    assert len(x) == 10**9
    assert len(pickle.dumps(trial.config)) < 600
    rows = gaussian_rows(Embedding.of_lane(Box(10**9), 3, 1.0, 1, 0).seed, [5, 10**8], 3)
    expected = np.clip(rows @ np.array(x.source.z), -1, 1)
    np.testing.assert_allclose(x[[5, 10**8]], expected, atol=1e-12)


def test_a_named_space_gets_the_clipped_image_scaled_and_snapped() -> None:
    embedding, z = Embedding(MIXED, 2, 11, 1.0), np.array([0.7, -0.4])
    proposal = embedding.proposal(z, {})
    x = np.clip(gaussian_rows(11, np.arange(3), 2) @ z, -1, 1)
    assert MIXED.decode(proposal.x) == MIXED.decode((x + 1) / 2)


def test_lanes_have_different_embeddings_and_the_same_one_each_time() -> None:
    optimizer = Optimizer(Box(100), "rembo", k=3, d=2)
    seeds = [optimizer.ask().config["x"].source.seed for _ in range(6)]
    assert seeds[:3] == seeds[3:]
    assert len(set(seeds)) == 3


def test_the_clipped_share_is_that_of_the_coordinates() -> None:
    trial = Optimizer(Box(80), "rembo", d=2, k=1).ask()
    x = np.asarray(trial.config["x"])
    assert trial.memo["clipped"] == pytest.approx(np.mean(np.abs(x) == 1.0), abs=1e-3)


def test_the_rows_looked_at_are_all_or_a_fixed_sample() -> None:
    assert len(Embedding(Box(60), 2, 5, 1.0).columns) == 60
    many = Embedding(Box(10**12), 2, 5, 1.0).columns
    assert len(set(many)) == 100
    assert many.max() < 10**12
    np.testing.assert_array_equal(many, Embedding(Box(10**12), 2, 5, 1.0).columns)


def test_the_small_box_and_the_cube_map_to_each_other() -> None:
    embedding, U = Embedding(Box(9), 3, 5, 0.6), np.random.default_rng(0).random((4, 3))
    np.testing.assert_allclose(embedding.to_cube(embedding.from_cube(U)), U)
    np.testing.assert_allclose(embedding.from_cube(np.array([0.0, 0.5, 1.0])), [-0.6, 0.0, 0.6])


def test_points_of_the_user_and_replaced_duplicates_are_left_out() -> None:
    embedding = Embedding(MIXED, 2, 11, 1.0)
    data = data_in(embedding, 6, pending=2)
    memos = list(data.memos)
    memos[0], memos[3] = {}, {**memos[3], "replaced": True}
    own = embedding.data(replace(data, memos=tuple(memos), pending_memos=({}, memos[3])))
    np.testing.assert_array_equal(own.X, [memos[i]["z"] for i in (1, 2, 4, 5)])
    np.testing.assert_array_equal(own.loss, data.loss[[1, 2, 4, 5]])
    assert own.pending.shape == (0, 2)


@pytest.mark.parametrize("effort", EFFORTS)
def test_starts_lie_in_the_small_box_and_some_near_the_best_point(effort) -> None:
    embedding = Embedding(Box(9), 2, 5, 0.6)
    own = embedding.data(data_in(embedding, 12))
    region = embedding.region(own, effort.n_screened, np.random.default_rng(1))
    assert len(region.starts) == 2 * effort.n_screened
    assert np.abs(region.starts).max() <= 0.6
    assert np.abs(region.starts - own.best_rows(1)).max(1).min() < 0.1


def test_known_images_of_a_finite_space_are_excluded() -> None:
    embedding = Embedding(FINITE, 2, 4, 2.0)
    data = data_in(embedding, 3, pending=1)
    Z = embedding.from_cube(np.random.default_rng(5).random((60, 2)))
    f = Barred(lambda Z: Z.sum(1), barred_images(embedding, data, embedding.data(data)))
    known = {row.tobytes() for row in (*data.X, *data.pending)}
    expected = [
        -np.inf if row.tobytes() in known else z.sum()
        for row, z in zip(embedding.images(Z), Z, strict=True)
    ]
    assert 0 < np.isinf(expected).sum() < 60
    np.testing.assert_allclose(f(torch.tensor(Z)), expected)


@pytest.mark.parametrize("dim", [9, 10**9])
def test_points_that_were_tried_are_excluded(dim: int) -> None:
    """Where the space has columns, so are others with the same image: many have a corner's."""
    embedding = Embedding(Box(dim), 2, 5, 50.0)
    data = data_in(embedding, 6)
    own = embedding.data(data)
    tried = Barred(lambda Z: Z.sum(1), barred_images(embedding, data, own))

    def f(Z: np.ndarray) -> np.ndarray:
        return tried(torch.tensor(Z)).numpy()

    assert np.isneginf(f(own.X)).all()
    assert np.isfinite(f(own.X * 0.9)).any()
    if dim == 9:
        corners = (np.abs(embedding.images(own.X) - 0.5) == 0.5).all(axis=1)
        assert corners.any()
        assert np.isneginf(f(own.X[corners] * 0.999)).all()
