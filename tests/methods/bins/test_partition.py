"""Bins of coordinates: what they hold, and that a split changes no point and no model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from raybo.methods.base import Data
from raybo.methods.bins.partition import MEMO, Partition
from raybo.methods.model import theta_from_json
from raybo.space.box import Box
from raybo.space.parameters import Float, Int
from raybo.space.space import Space
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.stationary import Matern52
from tests.helpers.data import data_of

HUGE = Box(10**12)


def told(bins: Partition, n: int, theta: dict | None = None) -> Data:
    """Data of n told points of these bins, the last of which notes a fit."""
    U = np.random.default_rng(0).random((n, bins.d))
    memos = [bins.proposal(u, {}).memo for u in U]
    if theta is not None:
        memos[-1] |= {"theta": theta, "fitted": n}
    X = bins.images(U) if bins.space.dense else None
    return data_of(bins.space, n, np.sin(5 * U.sum(1)), X=X, memos=memos)


@pytest.mark.parametrize(("dim", "d"), [(8, 8), (25, 8), (10**12, 7)])
def test_the_first_bins_hold_all_coordinates_alike(dim: int, d: int) -> None:
    sizes = Partition.of_lane(Box(dim), d, 0, 0).sizes
    assert sizes.sum() == dim
    assert sizes.max() - sizes.min() <= 1


def test_a_split_halves_bins_of_two_coordinates_or_more() -> None:
    bins = Partition(Box(12), 1, (5, 6, 12))
    assert bins.split([0, 1]).ends == (2, 5, 6, 12)
    assert bins.split([2]).ends == (5, 6, 9, 12)
    everything = bins
    for _ in range(4):
        everything = everything.split(range(everything.d))
    assert everything.ends == tuple(range(1, 13))


@pytest.mark.parametrize("space", [Box(40), HUGE], ids=["dense", "huge"])
def test_a_split_changes_no_point(space: Box) -> None:
    bins = Partition.of_lane(space, 5, 3, 0)
    data = told(bins, 6)
    finer = bins.split([1, 3]).split([1, 2])
    coordinates = np.random.default_rng(1).integers(space.dim, size=200)
    for before, u in zip(bins.data(data).X, finer.data(data).X, strict=True):
        old, new = (p.proposal(v, {}).config for p, v in ((bins, before), (finer, u)))
        assert old is not None
        assert new is not None
        np.testing.assert_array_equal(old["x"][coordinates], new["x"][coordinates])


def test_a_split_changes_no_model_of_the_points_before() -> None:
    bins = Partition.of_lane(HUGE, 3, 0, 0)
    theta = {"lengthscale": [0.3, 2.0, 0.7], "variance": 1.5, "noise": 1e-4}
    data = told(bins, 8, theta)
    finer = bins.split([0, 2]).split([0])
    kernels = []
    for one in (bins, finer):
        own = one.data(data)
        fit = own.last_fit("theta")
        assert fit is not None
        X = torch.as_tensor(own.X)
        gp = GP.of(Matern52(one.d, scaled=True), theta_from_json(fit["theta"]), X, X.sum(1))
        kernels.append(gp.kernel(gp.X, gp.X, gp.theta))
    np.testing.assert_allclose(*kernels, rtol=1e-12)


def test_the_bins_of_a_study_are_those_of_all_its_points() -> None:
    first = Partition.of_lane(HUGE, 4, 0, 0)
    memos = [p.proposal(np.full(p.d, 0.5), {}).memo for p in (first.split([0]), first.split([2]))]
    joined = first.joined([{}, *memos])
    assert joined == first.split([0, 2])
    assert first.joined([{**memos[0], "replaced": True}]) == first


def test_points_of_the_user_and_of_other_methods_are_left_out() -> None:
    bins = Partition.of_lane(Box(30), 4, 0, 0)
    data = told(bins, 5)
    memos = (data.memos[0], {}, {"z": [0.1] * 4}, {**data.memos[3], "replaced": True}, {})
    own = bins.data(replace(data, memos=memos))
    np.testing.assert_array_equal(own.X, bins.data(data).X[:1])
    assert own.loss.tolist() == data.loss[:1].tolist()


def test_a_named_space_gets_the_image_snapped() -> None:
    space = Space({"a": Float(1e-4, 1, log=True), "n": Int(1, 9), "m": Int(1, 9)})
    bins = Partition.of_lane(space, 2, 0, 0)
    proposal = bins.proposal(np.array([0.9, 0.2]), {})
    assert proposal.x is not None
    np.testing.assert_array_equal(proposal.x, space.snap(proposal.x[None])[0])
    spread = np.abs(proposal.x - 0.5)
    assert set(np.round(spread, 1)) <= {0.4, 0.3}
    assert proposal.memo[MEMO]["values"] == pytest.approx([0.8, -0.6])
