from __future__ import annotations

import numpy as np
import pytest

from raybo.acquisition.starts import around, inside, spread


@pytest.mark.parametrize("dim", [1, 20, 1500])
def test_spread_fills_the_cube(dim: int) -> None:
    X = spread(dim, 256, np.random.default_rng(0))
    assert X.shape == (256, dim)
    assert ((X >= 0) & (X <= 1)).all()
    np.testing.assert_allclose(X.mean(0), 0.5, atol=0.12)


def test_around_moves_some_coordinates_of_each_point() -> None:
    centres = np.random.default_rng(0).random((3, 200))
    X = around(centres, 60, np.random.default_rng(1))
    moved = (centres[np.arange(60) % 3] != X).sum(1)
    assert (moved >= 1).all()
    assert moved.mean() < 30
    assert ((X >= 0) & (X <= 1)).all()


def test_unordered_columns_move_anywhere() -> None:
    X = around(np.full((1, 4), 0.5), 400, np.random.default_rng(1), unordered=[2])
    moved = X[X[:, 2] != 0.5, 2]
    assert moved.min() < 0.1
    assert moved.max() > 0.9


def test_half_of_the_points_inside_a_box_move_some_coordinates_of_its_centre() -> None:
    centre, lower, upper = np.full(100, 0.5), np.full(100, 0.4), np.full(100, 0.8)
    points = inside(centre, lower, upper, 64, np.random.default_rng(0))
    assert ((points >= lower) & (points <= upper)).all()
    moved = (points != centre).sum(1)
    assert moved[:32].min() > 90
    assert 1 <= moved[32:].min() <= moved[32:].max() < 50
