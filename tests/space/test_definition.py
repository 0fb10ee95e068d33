import pytest

from raybo.errors import SpaceError
from raybo.space.box import Box
from raybo.space.definition import difference, space_from_definition
from raybo.space.parameters import Categorical, Choice, Float, Int
from raybo.space.space import Space

FULL = {
    "lr": {"type": "float", "low": 1e-5, "high": 0.1, "log": True},
    "type": {"type": "int", "low": 16, "high": 512, "step": 8},
    "net": {"act": {"type": "categorical", "values": ["relu", 1, 1.0, True, None, [64, 64]]}},
    "compress": {
        "type": "choice",
        "branches": {"svd": {"rank": {"type": "int", "low": 1, "high": 9}}, "none": {}},
    },
}


def test_a_definition_describes_the_space_fully():
    space = Space(
        {
            "lr": Float(1e-5, 0.1, log=True),
            "type": Int(16, 512, step=8),
            "net": {"act": Categorical(["relu", 1, 1.0, True, None, [64, 64]])},
            "compress": Choice({"svd": {"rank": Int(1, 9)}, "none": {}}),
        }
    )
    assert space.definition() == FULL
    assert space_from_definition(FULL) == space


def test_a_box_stands_alone():
    assert space_from_definition(Box(10**9, 0, 2).definition()) == Box(10**9, 0, 2)


UNIT = {"type": "float", "low": 0, "high": 1}


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        (3, "a definition is a mapping of parameters, got 3"),
        ({}, "the space is empty"),
        ({"type": "float", "low": 0, "high": 1}, "only a box has its type at the top"),
        ({"type": "box"}, "'x': type 'box' needs the key 'dim'"),
        ({"type": "box", "dim": 3, "hihg": 1}, "'x': unknown key 'hihg' for type 'box'"),
        ({"a": {"b": {"type": "box", "dim": 3}}}, "'a/b': a box stands alone"),
        ({"a": 3}, "'a': expected a mapping with a 'type', got 3"),
        ({"a": {"low": 0, "high": 1}}, "'a': type must be one of 'float', .*, got None"),
        ({"a": {"type": "real", "low": 0}}, "'a': type must be one of 'float', .*, got 'real'"),
        ({"a": {"type": "float", "low": 0}}, "'a': type 'float' needs the key 'high'"),
        ({"a": {"b": {**UNIT, "q": 1}}}, "'a/b': unknown key 'q' for type 'float'; known: 'low'"),
        ({"a": {**UNIT, "high": "one"}}, "'a': high must be a number within ±8e307, got 'one'"),
        ({"a": {**UNIT, "log": True}}, "'a': log=True needs 0 < low"),
        ({"a": {"type": "categorical", "values": "xy"}}, "'a': values must be a list"),
        ({"a": {"type": "choice", "branches": ["b"]}}, "'a': branches must be a dict"),
        ({"a": {"type": "choice", "branches": {"b": 3}}}, "'a/b': a branch is a dict"),
        ({"a": {"type": "choice", "branches": {"b": {"c": 3}}}}, "'a/b/c': expected a mapping"),
        ({"a": {"type": "choice", "branches": {"b": UNIT}}}, "'a/b/type': expected a mapping"),
        ({True: UNIT}, "names must be non-empty strings, got True"),
    ],
)
def test_a_bad_definition_names_the_path_of_what_is_wrong(definition, message):
    with pytest.raises(SpaceError, match=message):
        space_from_definition(definition)


def test_values_json_cannot_hold_need_the_space_itself():
    space = Space({"a": {"b": Categorical([int, (1, 2), len, object()])}})
    values = space.definition()["a"]["b"]["values"]
    assert values[:2] == [{"$object": "<class 'int'>"}, {"$object": "(1, 2)"}]
    assert values[3] == {"$object": "<object object>"}  # no address: equal in the next run
    with pytest.raises(SpaceError, match=r"'a/b': the value .*'int'.* pass the space itself"):
        space_from_definition(space.definition())


def test_difference_says_what_changed():
    old = Space(
        {
            "lr": Float(1e-5, 0.1, log=True),
            "n": Int(1, 9),
            "gone": Int(0, 1),
            "act": Categorical([1, "a"]),
            "c": Choice({"x": {"d": Float(0, 1)}, "y": {}}),
        }
    )
    new = Space(
        {
            "lr": Float(1e-5, 1.0),
            "n": Float(1, 9),
            "act": Categorical([True, "a"]),
            "c": Choice({"x": {"d": Float(0, 1), "e": Int(0, 1)}, "z": {}}),
        }
    )
    assert difference(old.definition(), new.definition()) == [
        "'gone': only in the old space",
        "'c/x/e': only in the new space",
        "'lr': high 0.1 -> 1.0",
        "'lr': log true -> false",
        "'n': type int -> float",
        '\'act\': values [1, "a"] -> [true, "a"]',
        '\'c\': branches ["x", "y"] -> ["x", "z"]',
    ]
    assert difference(old.definition(), old.definition()) == []


def test_difference_sees_boxes_and_order():
    a, b = Int(0, 1), Int(0, 2)
    ab, ba = Space({"a": a, "b": b}).definition(), Space({"b": b, "a": a}).definition()
    x = Space({"x": a}).definition()
    assert difference(Box(3).definition(), Box(4).definition()) == ["'x': dim 3 -> 4"]
    assert difference(Box(3).definition(), x) == ["'x': type box -> int"]
    assert difference(ab, ba) == [
        "the parameters are in another order: 'b', 'a', were 'a', 'b'",
    ]
