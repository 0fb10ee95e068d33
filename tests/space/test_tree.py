import numpy as np
import pytest

from raybo.errors import SpaceError
from raybo.space.box import Box
from raybo.space.parameters import Choice, Float, Int
from raybo.space.space import Space
from raybo.space.tree import active_vertices, expanded, paths, vertices

UNIT = Float(0, 1)


@pytest.fixture
def layers():
    """Two independent choices, the first of them with a choice inside."""
    by = Choice({"r": {}, "c": {"p": UNIT}})
    return Space(
        {
            "lr": UNIT,
            "one": Choice({"svd": {"rank": Int(1, 9), "by": by}, "l1": {"t": UNIT}}),
            "two": Choice({"svd": {"rank": Int(1, 9)}, "none": {}}),
        }
    )


def test_vertices_come_breadth_first(layers):
    tree = vertices(layers)
    names = [c.name for c in layers.columns]
    assert [v.index for v in tree] == list(range(7))
    assert [v.parent for v in tree] == [None, 0, 0, 0, 0, 1, 1]
    assert [None if v.choice is None else names[v.choice] for v in tree] == [
        None, "one", "one", "two", "two", "one/svd/by", "one/svd/by"
    ]  # fmt: skip
    assert [v.branch for v in tree] == [None, 0, 1, 0, 1, 0, 1]
    assert [[names[c] for c in v.columns] for v in tree] == [
        ["lr"], ["one/svd/rank"], ["one/l1/t"], ["two/svd/rank"], [], [], ["one/svd/by/c/p"]
    ]  # fmt: skip
    assert [v.children for v in tree] == [((1, 2), (3, 4)), ((5, 6),), (), (), (), (), ()]


def test_paths_are_all_sets_of_vertices_active_together(layers):
    assert list(paths(vertices(layers))) == [
        (0, 1, 3, 5), (0, 1, 4, 5), (0, 1, 3, 6), (0, 1, 4, 6), (0, 2, 3), (0, 2, 4)
    ]  # fmt: skip
    U = layers.sample(200, np.random.default_rng(0))
    seen = {tuple(np.flatnonzero(row).tolist()) for row in active_vertices(layers, U)}
    assert seen == set(paths(vertices(layers)))


def test_one_choice_per_level_gives_root_to_leaf_paths():
    space = Space({"a": Choice({"l": {"b": Choice({"l": {}, "r": {}})}, "r": {"x": UNIT}})})
    assert list(paths(vertices(space))) == [(0, 1, 3), (0, 1, 4), (0, 2)]


def test_a_flat_space_is_one_vertex():
    for space in (Space({"a": UNIT, "b": {"c": UNIT}}), Box(2)):
        [root] = vertices(space)
        assert root.columns == (0, 1)
        assert root.children == ()
        assert list(paths([root])) == [(0,)]
        assert active_vertices(space, np.zeros((3, 2))).tolist() == [[True]] * 3


def test_a_choice_may_have_more_than_ten_branches():
    space = Space({"a": Choice({f"b{k}": {"x": UNIT} for k in range(12)})})
    U = space.sample(300, np.random.default_rng(0))
    assert active_vertices(space, U).sum(axis=1).tolist() == [2] * 300
    assert len(vertices(space)) == 13


def test_expanded_independent_choices_follow_each_other(layers):
    tree = vertices(layers)
    chain = expanded(tree)
    assert all(len(vertex.children) <= 1 for vertex in chain)
    settled = {frozenset(chain[path[-1]].condition) for path in paths(chain)}
    together = {frozenset(c for i in path for c in tree[i].condition) for path in paths(tree)}
    assert settled == together
    assert len(list(paths(chain))) == 6
    with pytest.raises(SpaceError, match="more than 5 vertices"):
        expanded(tree, limit=5)


def test_expanded_keeps_a_tree_with_one_choice_per_vertex():
    space = Space({"a": Choice({"l": {"b": Choice({"l": {}, "r": {}})}, "r": {"x": UNIT}})})
    assert expanded(vertices(space)) == vertices(space)
