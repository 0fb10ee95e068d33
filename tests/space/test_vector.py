import json
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybo.errors import SpaceError
from raybo.space.vector import (
    Binned,
    Dense,
    Embedded,
    Uniform,
    Vector,
    gaussian_rows,
    permuted,
    random_signs,
    vector_from_json,
)

properties = settings(derandomize=True, deadline=None, max_examples=60)

SOURCES = [
    Dense(np.linspace(-1, 1, 1000)),
    Uniform(7),
    Embedded(3, (0.4,)),
    Embedded(2**63 + 5, tuple(np.linspace(-1, 1, 11))),
    Binned(2**63 + 5, (1, 400, 1000), (0.5, -1.0, 0.25)),
]
sources = pytest.mark.parametrize("source", SOURCES, ids=lambda s: type(s).__name__)


def splitmix64(h):
    """The finaliser in python integers, from Steele, Lea and Flood (2014)."""
    mask = 2**64 - 1
    h = ((h ^ (h >> 30)) * 0xBF58476D1CE4E5B9) & mask
    h = ((h ^ (h >> 27)) * 0x94D049BB133111EB) & mask
    return h ^ (h >> 31)


@properties
@given(st.integers(0, 2**64 - 1), st.integers(0, 10**12), st.integers(0, 40))
def test_gaussian_entries_are_a_hash_of_seed_row_and_column(seed, row, column):
    from scipy.special import ndtri

    golden, mask = 0x9E3779B97F4A7C15, 2**64 - 1
    key = splitmix64((seed + golden) & mask)
    key = splitmix64((key + (row + 1) * golden) & mask)
    bits = splitmix64((key + (column + 1) * golden) & mask)
    expected = ndtri(((bits >> 12) + 0.5) / 2**52)
    assert gaussian_rows(seed, [row], column + 1)[0, column] == expected


@pytest.mark.parametrize("dim", [1, 2, 3, 7, 25, 64, 1000, 4097])
def test_every_coordinate_has_a_place_of_its_own(dim):
    orders = [permuted(seed, np.arange(dim), dim).tolist() for seed in (0, 1, 2**63)]
    for order in orders:
        assert sorted(order) == list(range(dim))
    assert dim < 7 or len({tuple(order) for order in orders}) == 3


@pytest.mark.parametrize("dim", [24, 10**12])
def test_places_and_signs_of_two_coordinates_are_independent(dim):
    pairs = np.array([permuted(seed, [3, dim - 4], dim) for seed in range(4000)])
    together = np.mean(pairs[:, 0] // (dim // 8) == pairs[:, 1] // (dim // 8))
    assert together == pytest.approx((dim / 8 - 1) / (dim - 1), abs=0.02)
    assert pairs.mean(0) == pytest.approx([dim / 2] * 2, rel=0.05)
    signs = np.array([random_signs(seed, [3, dim - 4]) for seed in range(4000)])
    assert set(signs.ravel()) == {-1.0, 1.0}
    assert [*signs.mean(0), signs.prod(1).mean()] == pytest.approx([0.0] * 3, abs=0.08)


def test_a_binned_vector_has_one_size_of_value_in_each_bin():
    source = Binned(5, (30, 50, 100), (0.5, -0.25, 1.0))
    x = Vector(100, -1.0, 1.0, source)
    values, counts = np.unique(np.abs(np.asarray(x)), return_counts=True)
    assert (values.tolist(), counts.tolist()) == ([0.25, 0.5, 1.0], [20, 30, 50])
    places = permuted(5, np.arange(100), 100)
    assert set(np.abs(x[np.flatnonzero(places < 30)])) == {0.5}


@pytest.mark.parametrize(
    ("ends", "values"), [((), ()), ((5, 5), (0.1, 0.2)), ((3, 10), (0.1,)), ((10,), (1.5,))]
)
def test_bins_that_are_none_are_refused(ends, values):
    with pytest.raises(SpaceError, match="binned vector"):
        Binned(0, ends, values)


def test_gaussian_rows_are_standard_normal_at_any_offset():
    from scipy.stats import kstest

    for seed, start in [(0, 0), (1, 0), (0, 10**12 - 20_000)]:
        G = gaussian_rows(seed, np.arange(start, start + 20_000), 5)
        assert G.shape == (20_000, 5)
        for column in G.T:
            assert kstest(column, "norm").pvalue > 1e-3
        assert kstest((G**2).sum(axis=1), "chi2", args=(5,)).pvalue > 1e-3


def test_gaussian_rows_are_independent_across_rows_columns_and_seeds():
    n = 20_000
    G = gaussian_rows(0, np.arange(n), 4)
    other = gaussian_rows(1, np.arange(n), 4)
    limit = 4.5 / np.sqrt(n)
    together = np.hstack([G[1:], G[:-1], other[1:], G[1:] ** 2 - 1])
    correlation = np.corrcoef(together.T) - np.eye(together.shape[1])
    assert np.abs(correlation).max() < limit


def test_gaussian_rows_can_be_read_in_any_order_and_number_of_columns():
    G = gaussian_rows(5, np.arange(1000), 6)
    rows = np.random.default_rng(0).integers(0, 1000, 50)
    np.testing.assert_array_equal(gaussian_rows(5, rows, 6), G[rows])
    np.testing.assert_array_equal(gaussian_rows(5, rows, 2), G[rows, :2])


@sources
def test_every_way_of_reading_gives_the_same_bits(source):
    x = Vector(1000, -3.0, 5.0, source)
    dense = np.asarray(x)
    assert dense.shape == x.shape == (1000,)
    assert len(x) == x.dim == 1000
    assert [x[i] for i in (0, 5, -1, -1000)] == [dense[i] for i in (0, 5, -1, -1000)]
    assert type(x[5]) is float
    assert x[np.int64(7)] == dense[7]
    for key in (
        slice(3, 40, 7), slice(None, None, -90), slice(5, 5), [3, 8, -2, 3], np.array([9]),
        np.array([[1, 2], [3, -4]]), np.array([3, 200], dtype=np.uint8), dense > 0,
        np.array([5, -6], dtype=np.int8),
    ):  # fmt: skip
        np.testing.assert_array_equal(x[key], dense[key])
    assert x[[]].shape == (0,)
    assert list(x) == dense.tolist()
    parts = list(x.chunks(size=300))
    assert [start for start, _ in parts] == [0, 300, 600, 900]
    np.testing.assert_array_equal(np.concatenate([part for _, part in parts]), dense)


@sources
def test_coordinates_stay_in_the_bounds(source):
    dense = np.asarray(Vector(1000, 0.1, 0.7, source))
    assert dense.min() >= 0.1
    assert dense.max() <= 0.7


def test_uniform_coordinates_are_uniform():
    from scipy.stats import kstest

    x = Vector(10**12, 2.0, 4.0, Uniform(0))
    for start in (0, 10**12 - 20_000):
        assert kstest(x[start : start + 20_000], "uniform", args=(2, 2)).pvalue > 1e-3
    assert x[0] != Vector(10**12, 2.0, 4.0, Uniform(1))[0]


def test_embedded_coordinates_are_the_clipped_projection():
    z = np.array([0.6, -1.1, 0.3])
    x = Vector(500, -1.0, 1.0, Embedded(9, tuple(z)))
    expected = np.clip(gaussian_rows(9, np.arange(500), 3) @ z, -1, 1)
    np.testing.assert_allclose(np.asarray(x), expected, atol=1e-14)
    assert (np.abs(expected) == 1).any()
    np.testing.assert_allclose(
        np.asarray(Vector(500, 10.0, 14.0, x.source)), 12 + 2 * expected, atol=1e-13
    )


@sources
def test_bad_indices_are_refused(source):
    x = Vector(1000, -1.0, 1.0, source)
    for key in (1000, -1001, [0, 1000], [-1001, 5]):
        with pytest.raises(IndexError, match="is out of range for a Vector of 1000 coordinates"):
            x[key]
    for key in (0.5, [0.5], "a", None):
        with pytest.raises(IndexError, match="indexed by integers, slices and masks"):
            x[key]
    with pytest.raises(IndexError, match="a mask has the shape of the vector"):
        x[np.array([True, False])]


def test_what_would_not_fit_in_memory_is_refused():
    x = Vector(10**12, -1.0, 1.0, Uniform(0))
    with pytest.raises(SpaceError, match=r"slice of 1,000,000,000,000 .* over x.chunks\(\)"):
        x[:]
    with pytest.raises(SpaceError, match=r"array of 1,000,000,000,000 .* over x.chunks\(\)"):
        np.asarray(x)
    with pytest.raises(SpaceError, match="too large"):
        x + 1
    assert x[-3:].shape == (3,)
    assert next(iter(x)) == x[0]
    with pytest.raises(ValueError, match="has to make one"):
        x.__array__(copy=False)  # what numpy 2 calls for np.asarray(x, copy=False)


def test_arithmetic_is_elementwise():
    x, y = Vector(4, -1.0, 1.0, Uniform(0)), Vector(4, -1.0, 1.0, Uniform(1))
    a, b = np.asarray(x), np.asarray(y)
    np.testing.assert_array_equal(x + y, a + b)
    np.testing.assert_array_equal(2 * x - 1, 2 * a - 1)
    np.testing.assert_array_equal(b * x, b * a)
    np.testing.assert_array_equal(-x, -a)
    assert (x == x).all()
    assert not (x == y).any()
    assert np.sum(x) == a.sum()
    assert np.linalg.norm(x) == np.linalg.norm(a)
    assert np.asarray(x, dtype=np.float32).dtype == np.float32


@sources
def test_json_and_pickle_give_the_same_vector_back(source):
    x = Vector(1000, -3.0, 5.0, source)
    back = vector_from_json(json.loads(json.dumps(x.to_json())))
    for copy in (back, pickle.loads(pickle.dumps(x))):
        assert copy.same_as(x)
        np.testing.assert_array_equal(np.asarray(copy), np.asarray(x))
    assert not x.same_as(Vector(1000, -3.0, 6.0, source))
    assert not x.same_as(np.asarray(x))


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"dim": 3, "low": 0, "high": 1},
        {"dim": 3, "low": 0, "high": 1, "gauss": {"seed": 1}},
        {"dim": 3, "low": 0, "high": 1, "uniform": {"seed": 1, "extra": 2}},
        {"dim": 3, "low": 0, "high": 1, "uniform": {"seed": "one"}},
        {"dim": 3, "low": 0, "high": 1, "uniform": {"seed": 1.5}},
        {"dim": 3, "low": 0, "high": 1, "embedded": {"seed": 1, "z": ["a"]}},
        {"dim": 3, "low": 0, "high": 1, "embedded": {"seed": 1, "z": [float("nan")]}},
        {"dim": 3, "low": 0, "high": 1, "dense": {"values": [0, 0]}},
        {"dim": 3, "low": 0, "high": 1, "dense": {"values": [0, 0, 2]}},
        {"dim": 3, "low": 0, "high": 1, "binned": {"seed": 1, "ends": [2], "values": [0]}},
        {"dim": 3, "low": 0, "high": 1, "binned": {"seed": 1, "ends": [2, 4], "values": [0, 0]}},
        {"dim": 3, "low": 0, "high": 1, "binned": {"seed": 1, "ends": [1e999], "values": [0]}},
    ],
    ids=str,
)
def test_json_that_is_no_vector_is_refused(bad):
    with pytest.raises(SpaceError):
        vector_from_json(bad)


def test_a_vector_is_small_whatever_its_dimension():
    for source in (Uniform(1), Embedded(1, (0.1, 0.2, 0.3))):
        x = Vector(10**12, -1.0, 1.0, source)
        assert len(pickle.dumps(x)) < 400
        assert len(repr(x)) < 100


def test_a_dense_source_does_not_change_with_its_array():
    values = np.zeros(3)
    x = Vector(3, -1.0, 1.0, Dense(values))
    values[0] = 1
    assert x[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        x.source.values[0] = 1
