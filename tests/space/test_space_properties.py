"""Properties of every space: conversions, snapping, structure, JSON."""

import json
import math
import pickle

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from raybo.space.definition import difference, space_from_definition
from raybo.space.parameters import Categorical, Choice, Float, Int
from raybo.space.space import Space
from raybo.space.tree import active_vertices, paths, vertices

properties = settings(derandomize=True, deadline=None, max_examples=60)

names = st.text("abcdefgh_/ é", min_size=1, max_size=3)


@st.composite
def floats(draw):
    log = draw(st.booleans())
    if log:
        low = 10.0 ** draw(st.floats(-6, 3))
        high = low * 10.0 ** draw(st.floats(0.01, 6))
    else:
        low = draw(st.floats(-1e3, 1e3))
        high = low + draw(st.floats(1e-2, 1e4))
    step = draw(st.sampled_from([None, None, (high - low) / 7, (high - low) * 0.3]))
    return Float(low, high, log, step)


@st.composite
def ints(draw):
    log = draw(st.booleans())
    low = draw(st.integers(1, 10**6) if log else st.integers(-(10**17), 10**17))
    size = draw(st.integers(0, 50) | st.integers(0, 2**44 if log else 2**50 - 1))
    step = draw(st.integers(1, max(size, 1)) | st.just(1))
    return Int(low, low + size, log, step)


halves = st.integers(-6, 6).map(lambda k: k / 2)
scalars = st.none() | st.booleans() | st.integers(-3, 3) | halves | st.text("ab1", max_size=2)
categoricals = st.lists(
    scalars | st.tuples(scalars), min_size=1, max_size=5, unique_by=lambda v: (type(v), repr(v))
).map(Categorical)

leaves = floats() | ints() | categoricals


def groups(children, min_size=1):
    return st.dictionaries(names, children, min_size=min_size, max_size=3)


nodes = st.recursive(
    leaves,
    lambda children: (
        groups(children)
        | st.dictionaries(names, groups(children, 0), min_size=1, max_size=3).map(Choice)
    ),
    max_leaves=8,
)


def is_distinct(parameters):
    """Whether no two paths with slashes are the same."""
    try:
        Space(parameters)
    except ValueError as error:
        if "two parameters have this path" in str(error):
            return False
        raise
    return True


spaces = groups(nodes).filter(is_distinct).map(Space)
seeds = st.integers(0, 2**32)


def close(a, b):
    """Equal configs, floats to 1e-12 of their size (or of 1)."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(close(a[key], b[key]) for key in a)
    if isinstance(a, float):
        return type(b) is float and math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-10)
    return type(a) is type(b) and a == b


@properties
@given(spaces, seeds)
def test_decode_inverts_encode(space, seed):
    config = space.draw(np.random.default_rng(seed))
    assert close(space.decode(space.encode(config)), config)


@properties
@given(spaces, seeds)
def test_encode_of_decode_is_snap(space, seed):
    U = np.random.default_rng(seed).uniform(-0.1, 1.1, (5, space.dim))
    expected = [space.encode(space.decode(u)) for u in U]
    np.testing.assert_allclose(space.snap(U), expected, rtol=0, atol=1e-9)


@properties
@given(spaces, seeds)
def test_snap_is_idempotent_and_keeps_its_argument(space, seed):
    U = np.random.default_rng(seed).random((20, space.dim))
    U.flags.writeable = False
    S = space.snap(U)
    np.testing.assert_array_equal(space.snap(S), S)
    assert S.min() >= 0
    assert S.max() <= 1


@properties
@given(spaces, seeds)
def test_active_columns_agree_with_the_tree_and_with_snap(space, seed):
    U = space.sample(20, np.random.default_rng(seed))
    tree = vertices(space)
    on, active = active_vertices(space, U), space.active(U)
    for vertex in tree:
        own = list(vertex.columns) + [tree[group[0]].choice for group in vertex.children]
        for column in own:
            np.testing.assert_array_equal(active[:, column], on[:, vertex.index])
    assert sorted(c for v in tree for c in v.columns) == [
        c.index for c in space.columns if c.kind != "choice"
    ]
    assert (U[~active] == 0.5).all()
    possible = set(paths(tree))
    assert {tuple(np.flatnonzero(row).tolist()) for row in on} <= possible


@properties
@given(spaces, seeds)
def test_json_gives_the_same_config_back(space, seed):
    config = space.draw(np.random.default_rng(seed))
    text = json.dumps(space.to_json(config), allow_nan=False)
    back = space.from_json(json.loads(text))
    assert back == config
    assert repr(back) == repr(config)


@properties
@given(spaces)
def test_definition_gives_the_same_space_back(space):
    if any("$object" in str(c.parameter.definition()) for c in space.columns):
        return  # refused by name: test_definition.py
    back = space_from_definition(json.loads(json.dumps(space.definition())))
    assert back == space
    assert hash(back) == hash(space)
    assert difference(space.definition(), back.definition()) == []


@properties
@given(spaces)
def test_spaces_pickle(space):
    assert pickle.loads(pickle.dumps(space)) == space


@properties
@given(spaces)
def test_cardinality_is_the_number_of_points(space):
    if space.cardinality is None or space.cardinality > 500:
        return
    points = list(space.points())
    assert len(points) == space.cardinality
    assert len({repr(point) for point in points}) == space.cardinality
    for point in points[:20]:
        assert close(space.decode(space.encode(point)), point)
