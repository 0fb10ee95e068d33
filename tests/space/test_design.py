import numpy as np
import pytest

from raybo.errors import SpaceError
from raybo.space import design
from raybo.space.box import Box
from raybo.space.design import centre, design_point, random, sobol, sobol_point, sobol_rows
from raybo.space.parameters import Choice, Float, Int
from raybo.space.space import Space

SPACE = Space({"a": Float(0, 1), "b": Int(1, 3), "c": Choice({"x": {"d": Float(0, 1)}, "y": {}})})


@pytest.mark.parametrize("make", [sobol, random])
def test_rows_depend_on_seed_and_number_only(make):
    whole = make(SPACE, 13, 5)
    assert whole.shape == (13, 4)
    np.testing.assert_array_equal(make(SPACE, 5, 5), whole[:5])
    np.testing.assert_array_equal(make(SPACE, 6, 5, start=7), whole[7:])
    np.testing.assert_array_equal(SPACE.snap(whole), whole)
    assert not np.array_equal(make(SPACE, 13, 6), whole)
    assert make(SPACE, 0, 5).shape == (0, 4)


def test_sobol_point_is_one_element_of_the_sequence():
    whole = sobol(SPACE, 70, 2)
    for i in (0, 1, 63, 64, 69):
        np.testing.assert_array_equal(sobol_point(SPACE, i, 2), whole[i])


def test_a_design_begins_with_the_centre_and_goes_on_with_the_sequence():
    space = Space({"a": Float(0, 1), "b": Int(1, 3)})
    np.testing.assert_array_equal(design_point(space, 0, 2), centre(space))
    for i in (1, 64):
        np.testing.assert_array_equal(design_point(space, i, 2), sobol_point(space, i, 2))


def test_values_without_an_order_have_no_middle():
    first = np.array([design_point(SPACE, 0, seed) for seed in range(20)])
    np.testing.assert_array_equal(first[:, [0, 1, 3]], np.full((20, 3), 0.5))
    assert set(first[:, 2]) == {0.25, 0.75}  # both branches


def test_rows_are_those_that_studies_on_disk_were_begun_with():
    # Computed by raybo 0.1.0, numpy 2 and scipy 1.17: a resumed study continues its sequence.
    space = Space({"a": Float(0, 1), "b": Float(0, 1), "c": Float(0, 1)})
    expected = [
        [0.12535427324473858, 0.6849696151912212, 0.7721031233668327],
        [0.6376623623073101, 0.021855078637599945, 0.26470613572746515],
        [0.626534734852612, 0.5522499633952975, 0.7828302551060915],
    ]
    np.testing.assert_array_equal(sobol(space, 3, 7, start=62), expected)


def test_unscrambled_rows_begin_at_the_origin_and_halve_the_cube():
    np.testing.assert_array_equal(
        sobol_rows(2, 0, 4), [[0, 0], [0.5, 0.5], [0.75, 0.25], [0.25, 0.75]]
    )
    np.testing.assert_array_equal(sobol_rows(2, 1, 2), [[0.5, 0.5], [0.75, 0.25]])
    assert sobol_rows(3, 0, 0).shape == (0, 3)


def test_sobol_covers_every_stratum_of_a_column_once():
    U = sobol(Box(6), 64, 0)
    for column in U.T:
        assert sorted((column * 64).astype(int).tolist()) == list(range(64))


def test_beyond_the_known_dimensions_sobol_is_random(monkeypatch):
    monkeypatch.setattr(design, "MAX_DIM", 3)
    np.testing.assert_array_equal(sobol(SPACE, 4, 1, 2), random(SPACE, 4, 1, 2))


def test_centre_is_snapped():
    np.testing.assert_array_equal(centre(SPACE), [0.5, 0.5, 0.75, 0.5])
    np.testing.assert_array_equal(centre(Box(3)), [0.5, 0.5, 0.5])


@pytest.mark.parametrize("make", [lambda b: sobol(b, 2, 0), lambda b: random(b, 2, 0), centre])
def test_a_huge_box_has_no_rows(make):
    with pytest.raises(SpaceError, match="needs one column each"):
        make(Box(10**12))
