import json
import pickle

import numpy as np
import pytest

from raybo.errors import SpaceError
from raybo.space.box import Box
from raybo.space.vector import Embedded, Uniform, Vector

HUGE = Box(10**12)


def test_a_dense_box_behaves_like_a_space_of_floats():
    box = Box(4, low=-2, high=6)
    assert box.dense
    assert box.cardinality is None
    assert [c.name for c in box.columns] == ["x[0]", "x[1]", "x[2]", "x[3]"]
    assert box.columns[3].kind == "float"
    assert box.grid(0) is None
    row = box.encode({"x": [-2, 0, 2, 6]})
    np.testing.assert_allclose(row, [0, 0.25, 0.5, 1])
    np.testing.assert_allclose(np.asarray(box.decode(row)["x"]), [-2, 0, 2, 6])
    U = box.sample(5, np.random.default_rng(0))
    np.testing.assert_array_equal(box.snap(U), U)
    assert box.active(U).all()
    for u in U:
        np.testing.assert_allclose(box.encode(box.decode(u)), u, atol=1e-15)


def test_decode_is_total():
    x = Box(4).decode([float("nan"), -3, 7, float("inf")])["x"]
    assert np.asarray(x).tolist() == [0, -1, 1, 1]


def test_draw_gives_a_lazy_vector_in_any_dimension():
    first, second = (HUGE.draw(np.random.default_rng(3))["x"] for _ in range(2))
    assert isinstance(first, Vector)
    assert len(first) == 10**12
    assert first.same_as(second)
    box = Box(3)
    config = box.draw(np.random.default_rng(0))
    np.testing.assert_allclose(2 * box.encode(config) - 1, np.asarray(config["x"]), atol=1e-15)


@pytest.mark.parametrize("source", [Uniform(3), Embedded(2, (0.5, 0.1))], ids=str)
def test_json_gives_the_same_config_back(source):
    config = {"x": HUGE.vector(source)}
    obj = json.loads(json.dumps(HUGE.to_json(config)))
    assert HUGE.from_json(obj)["x"].same_as(config["x"])
    assert len(json.dumps(obj)) < 200


def test_a_user_given_sequence_is_kept():
    box = Box(3, 0, 10)
    obj = json.loads(json.dumps(box.to_json({"x": np.array([1, 2, 3])})))
    np.testing.assert_allclose(np.asarray(box.from_json(obj)["x"]), [1, 2, 3])


@pytest.mark.parametrize(
    "use",
    [
        lambda box: box.columns,
        lambda box: box.encode(box.draw(np.random.default_rng(0))),
        lambda box: box.decode([0.5]),
        lambda box: box.snap(np.zeros((1, 1))),
        lambda box: box.active(np.zeros((1, 1))),
        lambda box: box.sample(1, np.random.default_rng(0)),
    ],
)
def test_a_huge_box_says_what_needs_columns_and_what_to_use(use):
    message = r"1,000,000,000,000 dimensions; this needs one column each \(at most 10,000\); use"
    with pytest.raises(SpaceError, match=message + " method 'bins', 'rembo' or 'random'"):
        use(HUGE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "'x': dim must be a whole number from 1 to"),
        ((10**13,), "'x': dim must be a whole number from 1 to"),
        ((1.5,), "'x': dim must be a whole number"),
        (("3",), "'x': dim must be a whole number"),
        ((3, 1, 0), "'x': needs low <= high"),
        ((3, 1, 1), "'x': needs low < high"),
        ((3, "a", 1), "'x': low must be a number"),
    ],
)
def test_a_bad_box_is_refused(arguments, message):
    with pytest.raises(SpaceError, match=message):
        Box(*arguments)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "'x': the config of a box is"),
        ({"x": [0, 0, 0], "y": 1}, "'x': the config of a box is"),
        (3, "'x': the config of a box is"),
        ({"x": [0, 0]}, r"'x': expected 3 numbers, got shape \(2,\)"),
        ({"x": "abc"}, "'x': expected numbers"),
        ({"x": [0, 2, 0]}, r"'x\[1\]': 2.0 is outside \[-1.0, 1.0\]"),
        ({"x": [0, 0, float("nan")]}, r"'x\[2\]': nan is outside"),
        ({"x": Box(4).vector(Uniform(0))}, "'x': .* is not of Box"),
    ],
)
def test_a_bad_config_is_refused(config, message):
    for read in (Box(3).encode, Box(3).to_json):
        with pytest.raises(SpaceError, match=message):
            read(config)


@pytest.mark.parametrize("bad", [3, {}, {"x": 3}, {"x": {"uniform": {}}}, {"x": {"dim": 4}}])
def test_bad_json_is_refused(bad):
    with pytest.raises(SpaceError):
        Box(3).from_json(bad)


def test_points_are_refused():
    with pytest.raises(SpaceError, match="'x' is continuous"):
        Box(3).points()


def test_boxes_compare_by_their_fields_and_pickle():
    assert Box(3) == Box(3.0, -1, 1)
    assert Box(3) != Box(4)
    assert pickle.loads(pickle.dumps(HUGE)) == HUGE
    assert HUGE.definition() == {"type": "box", "dim": 10**12, "low": -1.0, "high": 1.0}
