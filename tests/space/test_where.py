"""Spaces in which only some configs are allowed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raybo.errors import SpaceError
from raybo.space.box import Box
from raybo.space.definition import difference, space_from_definition
from raybo.space.design import centre, random, sobol, sobol_point
from raybo.space.parameters import Choice, Float, Int
from raybo.space.space import Space
from raybo.space.yaml import space_from_yaml

UNIT = {"a": Float(0, 1), "b": Float(0, 1)}
TREE: dict[str, Any] = {
    "n": Int(1, 9),
    "c": Choice({"svd": {"rank": Int(1, 9)}, "l1": {"t": Float(0, 1)}}),
}
THIN = {
    "half": "a <= b",
    "a hundredth": "abs(a - b) < 0.005",
    "a ten-thousandth": lambda c: abs(c["a"] - c["b"]) < 5e-5,
}


@pytest.mark.parametrize("where", THIN.values(), ids=THIN)
def test_all_points_that_a_space_draws_are_allowed_and_differ(where: Any) -> None:
    space, rng = Space(UNIT, where=where), np.random.default_rng(0)
    rows = [space.sample(40, rng), sobol(space, 12, 3), random(space, 12, 3), [centre(space)]]
    for some in rows:
        assert space.allowed(np.asarray(some)).all()
        assert len(np.unique(some, axis=0)) == len(some)
    assert all(space.allows(space.draw(rng)) for _ in range(5))
    spread = rows[0][:, 0]
    assert spread.min() < 0.25
    assert spread.max() > 0.75


def test_rows_of_designs_depend_on_seed_and_number_only() -> None:
    space = Space(UNIT, where="a + b < 0.4")
    for make in (sobol, random):
        np.testing.assert_array_equal(make(space, 6, 5, start=3), make(space, 9, 5)[3:])
    np.testing.assert_array_equal(sobol_point(space, 4, 5), sobol(space, 5, 5)[4])


def test_sobol_points_are_the_allowed_elements_of_the_sequence() -> None:
    rows = sobol(Space(UNIT), 64, 7)
    expected = rows[rows[:, 0] <= rows[:, 1]]
    n = len(expected)
    np.testing.assert_array_equal(sobol(Space(UNIT, where="a <= b"), n, 7), expected)


@given(st.integers(0, 2**32), st.booleans())
def test_rows_and_configs_are_judged_alike(seed: int, log: bool) -> None:
    bounds = (1.0, 2.0) if log else (-1.0, 1.0)
    space = Space(
        {
            "a": Float(*bounds, log=log),
            "n": Int(0, 3),
            "c": Choice({"x": {"b": Float(*bounds)}, "y": {}}),
        },
        where="a + n / 7 < c.x.b * 2 or a == c.x.b",
    )
    U = np.random.default_rng(seed).random((20, space.dim))
    assert space.allowed(U).tolist() == [space.allows(space.decode(row)) for row in U]


def test_a_near_row_is_allowed_and_on_the_way() -> None:
    space = Space(UNIT, where="a + b <= 1")
    np.testing.assert_array_equal(space.nearest(np.array([0.2, 0.3])), [0.2, 0.3])
    moved = space.nearest(np.array([0.9, 0.9]))
    assert 0.999 < moved.sum() <= 1.0


def test_a_small_finite_space_knows_how_many_configs_are_allowed() -> None:
    space = Space({"a": Int(0, 10), "b": Int(0, 10)}, where="a + b == 10")
    assert space.cardinality == 11
    assert [c["a"] + c["b"] for c in space.points()] == [10] * 11


def test_a_function_that_reads_a_branch_not_chosen_constrains_nothing() -> None:
    text = Space(TREE, where="c.svd.rank < n")
    function = Space(TREE, where=lambda c: c["c"]["svd"]["rank"] < c["n"])
    for space in (text, function):
        assert space.allows({"n": 1, "c": {"l1": {"t": 0.5}}})
        assert space.allows({"n": 5, "c": {"svd": {"rank": 4}}})
        assert not space.allows({"n": 5, "c": {"svd": {"rank": 5}}})


@pytest.mark.parametrize(
    ("parameters", "where", "words"),
    [
        (UNIT, "a + b > 3", "0 of 100,000 points drawn are allowed.*widen it"),
        (UNIT, "a + b == 1", "0 of 100,000 points drawn are allowed.*leave out a parameter"),
        ({"a": Int(0, 9), "b": Int(0, 9)}, "a + b == 99", "0 of the 100 configs are allowed"),
        (UNIT, lambda c: c["a"] - c["b"], r"True or False, got .* \(float\) for the config {'a'"),
        (UNIT, lambda c: c["q"] < 1, "where raised KeyError: 'q' for the config {'a'"),
        (UNIT, lambda c: c["a"] / 0 < 1, "where raised ZeroDivisionError.* for the config {'a'"),
        (UNIT, 7, "a function of the config or a list of configs, got 7"),
    ],
)
def test_a_condition_that_makes_no_sense_is_refused(
    parameters: dict[str, Any], where: Any, words: str
) -> None:
    with pytest.raises(SpaceError, match=words):
        Space(parameters, where=where)


def test_a_config_of_the_user_that_is_not_allowed_is_refused() -> None:
    space = Space(UNIT, where="a <= b")
    space.check_allowed({"a": 0.5, "b": 0.5})
    with pytest.raises(SpaceError, match=r"{'a': 1, 'b': 0} is not allowed by where .'a <= b'"):
        space.check_allowed({"a": 1, "b": 0})
    with pytest.raises(SpaceError, match="'b': missing from the config"):
        Space(UNIT, where=lambda c: c["a"] <= c["b"]).check_allowed({"a": 0.5})


def test_a_text_is_part_of_the_definition_and_of_yaml() -> None:
    space = Space(UNIT, where="a <= b")
    again = space_from_definition(space.definition())
    assert again == space != Space(UNIT)
    assert not again.allows({"a": 1.0, "b": 0.0})
    assert space.definition()["where"] == "a <= b"
    read = space_from_yaml('a: {type: int, low: 0, high: 9}\nwhere: "a < 3"\n')
    assert not read.allows({"a": 5})
    named = {"where": {"type": "int", "low": 0, "high": 3}}
    assert space_from_definition(named).definition() == named
    changed = difference(space.definition(), Space(UNIT, where="a < b").definition())
    assert changed == ['where "a <= b" -> "a < b"']
    assert difference(space.definition(), Space(UNIT).definition()) == ['where "a <= b" -> null']


def limited(limit: float) -> Any:
    return lambda c: c["a"] <= limit


def test_a_function_is_told_from_another_and_cannot_be_rebuilt() -> None:
    space = Space(UNIT, where=limited(0.5))
    assert space == Space(UNIT, where=limited(0.5))
    assert space != Space(UNIT, where=limited(0.6))
    assert space != Space(UNIT, where=lambda c: c["a"] < 0.5)
    definition = space.definition()
    with pytest.raises(SpaceError, match=r"its where is the function .*pass the space itself"):
        space_from_definition(definition)
    assert not space_from_definition(definition, to_search=False).constrained


def test_a_box_refuses_a_condition() -> None:
    with pytest.raises(SpaceError, match="a Box takes no where; use a Space"):
        Box(3, where="x < 1")
