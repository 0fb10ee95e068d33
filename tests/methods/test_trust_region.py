"""Trust region: its length by what came of its points, what it leaves, and where methods look."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from raybo.acquisition.maximizers.base import Region
from raybo.errors import MethodError
from raybo.methods.addgp.default import AddGp
from raybo.methods.base import Data
from raybo.methods.bins.default import Bins
from raybo.methods.bo.default import Bo
from raybo.methods.bock.default import Bock
from raybo.methods.rembo.default import Rembo, box_bound
from raybo.methods.trust_region import (
    FAILURES,
    LENGTH,
    LONGEST,
    SHORTEST,
    SUCCESSES,
    TrustRegion,
    length_of,
)
from raybo.space.box import Box
from raybo.study.optimizer import Optimizer
from tests.helpers.data import data_of

INSIDE = {LENGTH: 0.1}  # the memo of a point proposed in the region; the number is not read


def after(losses: list[float], others: int = 1) -> Data:
    """Data of `others` points of other methods at loss 0, then points of the region."""
    memos = [{}] * others + [INSIDE] * len(losses)
    return data_of(Box(2), len(memos), np.array([0.0] * others + losses), memos=memos)


def test_failures_halve_the_region_and_successes_double_it() -> None:
    failures = [1.0] * 2 * FAILURES
    assert length_of(after(failures)) == pytest.approx(LONGEST / 4)
    successes = [-1.0 - i for i in range(SUCCESSES)]
    assert length_of(after(failures + successes)) == pytest.approx(LONGEST / 2)
    assert length_of(after(successes)) == LONGEST  # the cube is not left


def test_one_success_in_five_keeps_the_length() -> None:
    shrunk = [1.0] * 3 * FAILURES
    rounds = [loss for i in range(20) for loss in (1.0, 1.0, 1.0, 1.0, -1.0 - i)]
    assert length_of(after(shrunk + rounds)) == pytest.approx(length_of(after(shrunk)))


def test_a_region_that_has_shrunk_too_far_starts_again() -> None:
    n = round(np.log2(LONGEST / SHORTEST)) * FAILURES
    lengths = [length_of(after([1.0] * k)) for k in (n - 1, n, n + 2)]
    assert lengths[0] < 1.1 * SHORTEST
    assert max(lengths[1:]) > LONGEST / 2


def test_points_of_other_methods_are_neither_successes_nor_failures() -> None:
    assert length_of(after([], others=50)) == LONGEST
    shrunk, others = after([1.0] * 6), after([1.0] * 6, others=30)
    assert length_of(shrunk) == length_of(others) < LONGEST
    beaten = data_of(Box(2), 3, np.array([0.0, -5.0, -1.0]), memos=[{}, {}, INSIDE])
    assert length_of(beaten) < LONGEST  # no success: another method has found better


def test_trials_that_fail_shrink_the_region() -> None:
    data = after([-1.0])
    failed = replace(data, failed=np.zeros((4, 2)), failed_memos=(INSIDE,) * 4)
    assert length_of(failed) < length_of(data)


def nothing_barred(X: np.ndarray) -> np.ndarray:
    return np.zeros(len(X), dtype=bool)


def confine(
    whole: Region, centre: np.ndarray, length: float, unordered: tuple[int, ...] = ()
) -> Region:
    trust = TrustRegion(centre, length, unordered, nothing_barred)
    return trust.confine(whole, np.random.default_rng(0))


def region(grids: dict[int, np.ndarray] | None = None) -> Region:
    return Region(np.zeros(3), np.ones(3), np.zeros((64, 3)), grids or {})


def test_a_confined_region_is_a_box_around_the_centre_within_the_cube() -> None:
    centre = np.array([0.5, 0.02, 1.0])
    found = confine(region(), centre, 0.1)
    assert found.lower == pytest.approx([0.45, 0.0, 0.95])
    assert found.upper == pytest.approx([0.55, 0.07, 1.0])
    assert found.starts.shape == (64, 3)
    assert (found.starts >= found.lower).all()
    assert (found.starts <= found.upper).all()
    assert np.ptp(found.starts, axis=0) == pytest.approx(found.upper - found.lower, abs=0.01)


def test_the_length_is_a_share_of_the_box() -> None:
    whole = Region(np.full(2, -3.0), np.full(2, 3.0), np.zeros((8, 2)))
    found = confine(whole, np.array([0.0, 2.9]), 0.1)
    assert found.lower == pytest.approx([-0.3, 2.6])
    assert found.upper == pytest.approx([0.3, 3.0])


def test_a_region_without_a_start_that_may_be_proposed_is_left() -> None:
    whole = region()
    trust = TrustRegion(np.full(3, 0.5), 0.1, (), lambda X: np.abs(X - 0.5).max(1) < 0.2)
    assert trust.confine(whole, np.random.default_rng(0)) is whole


def test_ordered_grids_keep_the_values_in_the_box_and_the_centre() -> None:
    grid = (np.arange(5) + 0.5) / 5
    for length, wanted in ((0.5, grid[1:4]), (0.1, grid[2:3])):
        found = confine(region({1: grid}), np.full(3, 0.5), length)
        assert found.grids[1] == pytest.approx(wanted)
        assert set(found.starts[:, 1]) <= set(wanted)


def test_the_share_of_unordered_columns_that_may_change_is_the_length() -> None:
    grid = np.array([0.25, 0.75])
    rng = np.random.default_rng(0)
    trust = TrustRegion(np.array([0.5, 0.25, 0.5]), 0.3, (1,), nothing_barred)
    free = 0
    for _ in range(200):
        found = trust.confine(region({1: grid}), rng)
        free += len(found.grids[1]) == 2
        assert len(found.grids[1]) == 2 or set(found.starts[:, 1]) == {0.25}
    assert 40 <= free <= 80


@pytest.mark.parametrize("cls", [Bo, AddGp, Bock])
def test_methods_propose_in_the_region_if_asked_to(cls: type[Any]) -> None:
    space = Box(3, 0, 1)
    X = space.sample(12, np.random.default_rng(0))
    memos = [{}] + [INSIDE] * 11  # none better than the first
    data = data_of(space, 12, np.arange(12) / 12, X=X, memos=memos)
    found = cls(space, trust_region=True).propose(data, np.random.default_rng(0))
    assert found.memo[LENGTH] == pytest.approx(0.5 ** (11 / FAILURES))
    assert np.abs(np.asarray(found.x) - X[0]).max() <= found.memo[LENGTH] / 2 + 1e-9
    assert LENGTH not in cls(space).propose(data, np.random.default_rng(0)).memo


def test_several_points_at_a_time_are_all_in_the_region() -> None:
    space = Box(3, 0, 1)
    X = space.sample(12, np.random.default_rng(0))
    data = data_of(space, 12, np.arange(12) / 12, X=X, memos=[{}] + [INSIDE] * 11)
    rngs = [np.random.default_rng(i) for i in range(4)]
    for method in (Bo(space, trust_region=True), AddGp(space, trust_region=True)):
        found = method.propose_many(data, rngs)
        assert len(found) == 4
        for one in found:
            assert np.abs(np.asarray(one.x) - X[0]).max() <= one.memo[LENGTH] / 2 + 1e-9


def test_the_region_of_an_embedding_is_in_its_small_box() -> None:
    optimizer = Optimizer(Box(40, -1, 1), "rembo", seed=0, d=3)
    for i in range(10):
        optimizer.tell(optimizer.ask(), float(i))  # the first stays the best
    first, last = optimizer.trials[0], optimizer.trials[-1]
    lengths = [trial.memo[LENGTH] for trial in optimizer.trials if LENGTH in trial.memo]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] == 1.0
    width = 2 * box_bound(3)
    moved = np.abs(np.subtract(last.memo["z"], first.memo["z"])).max()
    assert moved <= lengths[-1] / 2 * width + 1e-9


@pytest.mark.parametrize("n", [1, 3])
def test_the_region_of_bins_is_of_their_values(n: int) -> None:
    optimizer = Optimizer(Box(40, -1, 1), "bins", seed=0, d=4, n_init=4)
    for i in range(12 // n):
        for trial in optimizer.ask(n):
            optimizer.tell(trial, float(i))  # the first stays the best
    lengths = [trial.memo.get(LENGTH) for trial in optimizer.trials]
    inside = [length for length in lengths if length is not None]
    assert len(inside) in (6, 8)
    assert inside[0] == 1.0
    assert inside == sorted(inside, reverse=True)
    first, last = (np.asarray(optimizer.trials[i].config["x"][:40]) for i in (0, -1))
    assert np.abs(last - first).max() <= inside[-1] + 1e-9
    free = Optimizer(Box(40, -1, 1), "bins", seed=0, n_init=1, trust_region=False)
    free.tell(free.ask(), 1.0)
    assert LENGTH not in free.ask().memo


@pytest.mark.parametrize("cls", [Bo, AddGp, Bock, Rembo, Bins])
def test_a_trust_region_is_wanted_or_not(cls: type[Any]) -> None:
    with pytest.raises(MethodError, match=r"trust_region must be one of True, False, got 0.5"):
        cls(Box(3), trust_region=0.5)
