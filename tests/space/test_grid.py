import numpy as np
import pytest

from raybo.space.grid import Grid

GRIDS = [
    Grid(1),
    Grid(2),
    Grid(7),
    Grid(2**50),
    Grid(497, 16.0, 1.0, log=True),
    Grid(10, 0.1, 0.5, log=True),  # low - step/2 < 0: the edge is low/2
    Grid(6, 1e17, 1.0, log=True),
    Grid(2**44, 1.0, 1.0, log=True),
]


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_index_inverts_position(grid):
    ends = [0, grid.size // 3, grid.size // 2, grid.size - 1]
    assert grid.exact
    assert [grid.index(grid.position(k)) for k in ends] == ends


@pytest.mark.parametrize("grid", GRIDS[:3] + GRIDS[4:7], ids=str)
def test_scalar_and_vector_conversions_agree(grid):
    u = grid.positions()
    assert u.shape == (grid.size,)
    assert (np.diff(u) > 0).all()
    assert u[0] > 0
    assert u[-1] < 1
    np.testing.assert_allclose(u, [grid.position(k) for k in range(grid.size)], rtol=1e-14)
    np.testing.assert_array_equal(grid.indices(u), np.arange(grid.size))
    np.testing.assert_array_equal(grid.snap(u), u)


def test_linear_values_own_equal_intervals():
    np.testing.assert_allclose(Grid(4).positions(), [0.125, 0.375, 0.625, 0.875])


def test_log_positions_are_affine_in_the_logarithm_between_the_edges():
    low, high = 16, 512
    k = np.arange(low, high + 1)
    edges = np.log([low - 0.5, high + 0.5])
    expected = (np.log(k) - edges[0]) / (edges[1] - edges[0])
    np.testing.assert_allclose(Grid(497, 16.0, 1.0, log=True).positions(), expected, rtol=1e-12)


def test_a_grid_finer_than_float64_is_left_alone():
    grid = Grid(10**18)
    u = np.random.default_rng(0).random(5)
    assert not grid.exact
    np.testing.assert_array_equal(grid.snap(u), u)
    assert grid.index(1.0) == 10**18 - 1
    assert grid.index(0.0) == 0
