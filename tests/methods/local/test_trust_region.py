"""Trust region: its length by what came of its points, and the part of a region that it leaves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from raybo.acquisition.maximizers.base import Region
from raybo.methods.base import Data
from raybo.methods.local.trust_region import (
    FAILURES,
    LENGTH,
    LONGEST,
    SHORTEST,
    SUCCESSES,
    confine,
    length_of,
)
from raybo.space.box import Box
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


def region(grids: dict[int, np.ndarray] | None = None) -> Region:
    return Region(np.zeros(3), np.ones(3), np.zeros((64, 3)), grids or {})


def test_a_confined_region_is_a_box_around_the_centre_within_the_cube() -> None:
    centre = np.array([0.5, 0.02, 1.0])
    found = confine(region(), centre, 0.1, (), np.random.default_rng(0))
    assert found.lower == pytest.approx([0.45, 0.0, 0.95])
    assert found.upper == pytest.approx([0.55, 0.07, 1.0])
    assert found.starts.shape == (64, 3)
    assert (found.starts >= found.lower).all()
    assert (found.starts <= found.upper).all()
    assert np.ptp(found.starts, axis=0) == pytest.approx(found.upper - found.lower, abs=0.01)


def test_ordered_grids_keep_the_values_in_the_box_and_the_centre() -> None:
    grid = (np.arange(5) + 0.5) / 5
    for length, wanted in ((0.5, grid[1:4]), (0.1, grid[2:3])):
        found = confine(region({1: grid}), np.full(3, 0.5), length, (), np.random.default_rng(0))
        assert found.grids[1] == pytest.approx(wanted)
        assert set(found.starts[:, 1]) <= set(wanted)


def test_the_share_of_unordered_columns_that_may_change_is_the_length() -> None:
    grid = np.array([0.25, 0.75])
    rng, centre = np.random.default_rng(0), np.array([0.5, 0.25, 0.5])
    free = 0
    for _ in range(200):
        found = confine(region({1: grid}), centre, 0.3, (1,), rng)
        free += len(found.grids[1]) == 2
        assert len(found.grids[1]) == 2 or set(found.starts[:, 1]) == {0.25}
    assert 40 <= free <= 80
