import itertools

import numpy as np
import pytest

from raybo.errors import SpaceError
from raybo.space.any_space import as_space
from raybo.space.box import Box
from raybo.space.parameters import Categorical, Choice, Float, Int
from raybo.space.space import Space

INF = float("inf")


@pytest.fixture
def space():
    return Space(
        {
            "lr": Float(1e-5, 1e-1, log=True),
            "act": Categorical(["relu", "gelu"]),
            "net": {"width": Int(16, 512, log=True)},
            "compress": Choice(
                {
                    "svd": {"rank": Int(10, 500)},
                    "l1": {"by": Choice({"row": {"p": Float(0, 1)}, "col": {}})},
                    "none": {},
                }
            ),
        }
    )


def test_columns_carry_path_kind_and_condition(space):
    assert [(c.name, c.kind, c.condition) for c in space.columns] == [
        ("lr", "float", ()),
        ("act", "categorical", ()),
        ("net/width", "int", ()),
        ("compress", "choice", ()),
        ("compress/svd/rank", "int", ((3, 0),)),
        ("compress/l1/by", "choice", ((3, 1),)),
        ("compress/l1/by/row/p", "float", ((3, 1), (5, 0))),
    ]
    assert [c.index for c in space.columns] == list(range(space.dim))
    assert space.dense


def test_configs_nest_like_the_space(space):
    assert space.decode([0, 0, 0, 0, 0, 0, 0])["compress"] == {"svd": {"rank": 10}}
    assert space.decode([0, 0, 0, 1, 0, 0, 0])["compress"] == {"none": {}}
    assert space.decode([0, 0, 0, 0.5, 0, 0, 1])["compress"] == {"l1": {"by": {"row": {"p": 1.0}}}}
    assert space.decode([0, 0, 1, 0, 0, 0, 0])["net"] == {"width": 512}


def test_inactive_columns_are_one_half(space):
    row = space.encode({"lr": 0.1, "act": "gelu", "net": {"width": 16}, "compress": {"none": {}}})
    np.testing.assert_allclose(row[[0, 1, 3, 4, 5, 6]], [1, 0.75, 5 / 6, 0.5, 0.5, 0.5])
    assert not space.active(row[None])[0, 4:].any()


def test_decode_is_total(space):
    wild = [float("nan"), INF, -INF, 7.0, -7.0, 0.5, 1e300]
    for u in itertools.permutations(wild[:4] + wild[6:], 5):
        row = np.array([*u, 0.5, 0.5])
        config = space.decode(row)
        np.testing.assert_allclose(space.snap(row[None])[0], space.encode(config), atol=1e-12)
    with pytest.raises(SpaceError, match="a row of 7 columns, got shape \\(3,\\)"):
        space.decode([0, 0, 0])
    with pytest.raises(SpaceError, match="rows of 7 columns, got shape \\(7,\\)"):
        space.snap(np.zeros(7))


def test_decoded_values_are_plain_python(space):
    config = space.decode(np.full(7, 0.1))
    assert type(config["lr"]) is float
    assert type(config["net"]["width"]) is int
    assert type(config["act"]) is str


def test_decoded_configs_share_nothing(space):
    first, second = space.decode(np.zeros(7)), space.decode(np.zeros(7))
    first["compress"]["svd"]["rank"] = 0
    assert second["compress"]["svd"]["rank"] == 10


GOOD = {"lr": 0.1, "act": "gelu", "net": {"width": 16}, "compress": {"svd": {"rank": 40}}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lr": 3.0}, r"'lr': 3.0 is outside \[1e-05, 0.1\]"),
        ({"lr": "x"}, r"'lr': expected a number, got 'x' \(str\)"),
        ({"lr": True}, r"'lr': expected a number, got True \(bool\)"),
        ({"act": "tanh"}, r"'act': 'tanh' \(str\) is not one of 'relu', 'gelu'"),
        ({"net": {"width": 16.5}}, r"'net/width': expected a whole number, got 16.5 \(float\)"),
        ({"net": {"width": 1024}}, r"'net/width': 1024 is outside 16..512"),
        ({"net": {}}, r"'net/width': missing from the config"),
        ({"net": 3}, r"'net': expected a dict, got 3"),
        ({"net": {"width": 16, "depth": 2}}, r"'net/depth': no such parameter.*'width'"),
        ({"momentum": 0.9}, r"'momentum': no such parameter; known here: 'lr', 'act', 'net'"),
        (
            {"compress": "none"},
            r"'compress': expected \{branch: .*'l1', 'none', got 'none'",
        ),
        ({"compress": {}}, r"'compress': expected \{branch"),
        ({"compress": {"svd": {"rank": 40}, "none": {}}}, r"'compress': expected \{branch"),
        ({"compress": {"pca": {}}}, r"'compress': 'pca' is not one of the branches 'svd', 'l1'"),
        ({"compress": {"svd": {"rank": 5}}}, r"'compress/svd/rank': 5 is outside 10..500"),
        ({"compress": {"none": {"rank": 5}}}, r"'compress/none/rank': no such parameter.*none"),
        ({"compress": {"l1": {"by": {"row": {}}}}}, r"'compress/l1/by/row/p': missing"),
    ],
)
def test_encode_names_the_path_of_what_is_wrong(space, change, message):
    for read in (space.encode, space.to_json, space.from_json):
        with pytest.raises(SpaceError, match=message):
            read({**GOOD, **change})
    with pytest.raises(SpaceError, match="'lr': missing from the config"):
        space.encode({})
    with pytest.raises(SpaceError, match="config: expected a dict, got 3"):
        space.encode(3)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "the space is empty"),
        ([Float(0, 1)], "a space is a dict of parameters, got"),
        ({"a": {}}, "'a': an empty group"),
        ({"a": (0, 1)}, r"'a': expected a Float, Int, Categorical, Choice or a dict of them, got"),
        ({"a": {"b": Float}}, r"'a/b': expected a Float, Int"),
        ({"a": Float(1, 0)}, "'a': needs low <= high, got low=1.0, high=0.0"),
        ({"a": Int(1, 0)}, "'a': needs low <= high, got low=1, high=0"),
        ({"a": Float(0, INF)}, "'a': high must be a number within ±8e307, got inf"),
        ({"a": Float(float("nan"), 1)}, "'a': low must be a number within ±8e307, got nan"),
        ({"a": Float(0, 10**400)}, "'a': high must be a number"),
        ({"a": Float("0", 1)}, r"'a': low must be a number within ±8e307, got '0' \(str\)"),
        ({"a": Float(False, 1)}, r"'a': low must be a number within ±8e307, got False \(bool\)"),
        ({"a": Int(0, 1.5)}, r"'a': high must be a whole number within ±2\*\*64, got 1.5"),
        ({"a": Int(0, True)}, r"'a': high must be a whole number"),
        ({"a": Int(0, 10**400)}, r"'a': high must be a whole number"),
        ({"a": Int(0, 9, log=True)}, "'a': log=True needs 0 < low < high, got low=0, high=9"),
        ({"a": Float(1, 9, log="yes")}, "'a': log must be True or False, got 'yes'"),
        ({"a": Float(0, 1, step=0)}, "'a': step must be a positive float, got 0.0"),
        ({"a": Float(0, 1, step=-1)}, "'a': step must be a positive float, got -1.0"),
        ({"a": Float(0, 1, step=2)}, "'a': step=2.0 exceeds high - low = 1.0"),
        ({"a": Float(0, 1, step=1e-300)}, r"'a': step=1e-300 gives over 2\*\*50 values"),
        ({"a": Int(0, 9, step=0.5)}, "'a': step must be a positive int, got 0.5"),
        ({"a": Int(0, 9, step=10)}, "'a': step=10 exceeds high - low = 9"),
        ({"a": Int(0, 9, step=None)}, "'a': step must be a positive int, got None"),
        ({"a": Categorical([])}, "'a': values is empty"),
        ({"a": Categorical("abc")}, "'a': values must be a list, got 'abc'"),
        ({"a": Categorical({"b", "c"})}, "'a': values must be a list"),
        ({"a": Categorical([1, True, 1])}, "'a': the value 1 is given twice"),
        ({"a": Choice({})}, "'a': branches is empty"),
        ({"a": Choice(["b", "c"])}, "'a': branches must be a dict .*use Categorical"),
        ({"a": Choice({"b": Float(0, 1)})}, r"'a/b': a branch is a dict of parameters, \{\} for"),
        ({"a": Choice({1: {}})}, "'a': names must be non-empty strings, got 1"),
        ({"": Float(0, 1)}, "names must be non-empty strings, got ''"),
        ({"a/b": Int(0, 1), "a": {"b": Int(0, 1)}}, "'a/b': two parameters have this path"),
        (
            {"model": Choice({"svm": {"C": Float(0, 10, log=True)}})},
            "'model/svm/C': log=True needs 0 < low < high, got low=0.0, high=10.0; raise low or "
            "drop log",
        ),
    ],
)
def test_a_bad_space_names_the_path_of_what_is_wrong(parameters, message):
    with pytest.raises(SpaceError, match=message):
        Space(parameters)


def test_cardinality_respects_the_conditions():
    space = Space(
        {
            "a": Int(1, 3),
            "b": Choice({"x": {"c": Int(0, 9), "d": Categorical(["pq"])}, "y": {}}),
            "e": {"f": Float(0, 1, step=0.5)},
        }
    )
    assert space.cardinality == 3 * (10 * 1 + 1) * 3
    assert list(space.points()) == list(space.points())
    assert len({repr(point) for point in space.points()}) == space.cardinality


def test_points_are_lazy():
    space = Space({f"a{i}": Int(0, 10**9) for i in range(3000)})
    assert [point["a0"] for point in itertools.islice(space.points(), 3)] == [0, 1, 2]


def test_points_of_a_continuous_space_are_refused(space):
    assert space.cardinality is None
    with pytest.raises(SpaceError, match="'lr' is continuous: the configs cannot be listed"):
        space.points()


def test_grid_gives_the_positions_of_a_discrete_column(space):
    assert space.grid(0) is None
    np.testing.assert_array_equal(space.grid(1), [0.25, 0.75])
    widths = space.grid(2)
    assert len(widths) == 497
    np.testing.assert_array_equal(space.columns[2].snap(widths), widths)
    assert space.grid(2, limit=100) is None
    assert len(space.grid(3)) == 3


def test_sample_is_snapped_and_uniform_over_branches(space):
    U = space.sample(3000, np.random.default_rng(0))
    np.testing.assert_array_equal(space.snap(U), U)
    shares = [(U[:, 3] == u).mean() for u in space.grid(3)]
    np.testing.assert_allclose(shares, 1 / 3, atol=0.03)
    assert space.draw(np.random.default_rng(1)) == space.draw(np.random.default_rng(1))


def test_json_keeps_objects_by_their_number():
    values = [int, (1, 2), [3], float("nan"), 1, "s"]
    space = Space({"a": Categorical(values)})
    assert [space.to_json({"a": v})["a"] for v in values] == [
        {"$index": 0}, {"$index": 1}, {"$index": 2}, {"$index": 3}, 1, "s"
    ]  # fmt: skip
    assert all(space.from_json(space.to_json({"a": v}))["a"] is v for v in values)
    for bad in ({"$index": 6}, {"$index": True}, {"index": 0}):
        with pytest.raises(SpaceError, match="'a': expected"):
            space.from_json({"a": bad})


def test_a_space_does_not_change_with_the_dict_it_came_from():
    inside = {"a": Int(0, 1)}
    space = Space({"g": inside})
    inside["b"] = Int(0, 1)
    assert space.definition() == {"g": {"a": {"type": "int", "low": 0, "high": 1}}}


def test_equality_sees_types_and_order():
    a, b = Int(0, 1), Float(0, 1)
    assert Space({"a": a}) == Space({"a": Int(0, 1)})
    assert Space({"a": a}) != Space({"a": b})
    assert Space({"a": a, "b": b}) != Space({"b": b, "a": a})
    assert Space({"a": Categorical([1])}) != Space({"a": Categorical([True])})
    assert Space({"a": a}) != {"a": a}


def test_repr_rebuilds_the_space(space):
    assert eval(repr(space)) == space


def test_as_space_takes_a_dict_or_a_space(space):
    assert as_space(space) is space
    assert as_space({"a": Int(0, 1)}) == Space({"a": Int(0, 1)})
    assert as_space(Box(3)) == Box(3)
    with pytest.raises(SpaceError, match="got 3"):
        as_space(3)
