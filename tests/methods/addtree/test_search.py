"""Where Add-Tree searches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from raybo.benchmarks.problems.conditional import blocks_space
from raybo.methods.addtree.kernel import tree_kernel
from raybo.methods.addtree.search import TreeSearch, VertexMaxima, best_path
from raybo.methods.base import FULL, LEAST, Effort
from raybo.space.parameters import Categorical, Choice, Float, Int
from raybo.space.space import Space
from raybo.space.tree import active_vertices, expanded, paths, vertices
from tests.helpers.data import data_of

BRANCHES = Space(
    {
        "r": Float(0, 1),
        "c": Choice(
            {
                "a": {"n": Int(1, 3), "x": Float(0, 1)},
                "b": {"k": Categorical(["u", "v"]), "y": Float(0, 1)},
            }
        ),
    }
)


def deep(levels: int) -> Space:
    """A choice below a choice below a choice, a parameter at every second level."""
    inside: dict[str, Any] = {"x": Float(0, 1)}
    for level in range(levels):
        own = {f"p{level}": Float(0, 1)} if level % 2 else {}
        inside = {**own, f"c{level}": Choice({"down": inside, "stop": {}})}
    return Space(inside)


@pytest.mark.parametrize(
    "tree",
    [
        vertices(deep(6)),
        vertices(blocks_space()),
        expanded(vertices(blocks_space())),
        vertices(Space({"c": Choice({str(k): {"x": Float(0, 1)} for k in range(13)})})),
    ],
    ids=["deep", "independent", "expanded", "wide"],
)
def test_the_best_path_has_the_largest_sum_of_all(tree: tuple) -> None:
    for seed in range(20):
        u = np.random.default_rng(seed).normal(size=len(tree))
        best = max(paths(tree), key=lambda path: sum(u[v] for v in path))
        assert best_path(tree, u) == frozenset(best)


def search_of(space: Space, effort: Effort = FULL) -> TreeSearch:
    tree = vertices(space)
    data = replace(data_of(space, 8, np.arange(8.0)), effort=effort)
    terms = tree_kernel(space, tree).terms
    return TreeSearch(space, tree, terms, data, np.random.default_rng(0))


def test_an_assembled_point_passes_the_path_and_has_its_columns() -> None:
    search = search_of(BRANCHES)
    terms = search.terms
    X = np.array([[0.1, 0.5], [0.3, 5 / 6], [0.7, 0.75]])  # ordered columns first
    for path in paths(search.tree):
        row = search.assemble(frozenset(path), X)
        assert set(np.flatnonzero(active_vertices(BRANCHES, row[None])[0])) == set(path)
        for v in path:
            own = list(terms[v].columns)
            np.testing.assert_allclose(row[own], BRANCHES.snap(row[None])[0, own])
            np.testing.assert_allclose(row[terms[v].ordered[0]], X[v, 0], atol=0.2)


def test_starts_of_a_vertex_can_be_evaluated_and_fewer_with_less_effort() -> None:
    efforts = (FULL, LEAST)
    starts = {e.name: search_of(BRANCHES, e).vertex_parts().starts for e in efforts}
    assert starts["least"].shape[1] < starts["full"].shape[1]
    for v, term in enumerate(search_of(BRANCHES).terms):
        for j, column in enumerate(term.columns):
            at = starts["full"][v, :, j]
            np.testing.assert_array_equal(at, BRANCHES.columns[column].snap(at))


@pytest.mark.parametrize("n_choices", [2, 7], ids=["each leaf", "more leaves than starts"])
def test_the_best_leaf_is_found(n_choices: int) -> None:
    branch = {"x": Float(0, 1)}
    space = Space({f"c{k}": Choice({"a": branch, "b": branch}) for k in range(n_choices)})
    search = search_of(space)
    goal = space.encode({f"c{k}": {"ab"[k % 2]: {"x": 0.8}} for k in range(n_choices)})
    matters = torch.tensor(space.active(goal[None])[0])

    def f(X: torch.Tensor) -> torch.Tensor:
        return -((X - torch.tensor(goal)).square() * matters).sum(1)

    u = np.zeros(len(search.tree))
    u[[v.index for v in search.tree if v.columns and matters[v.columns[0]]]] = 1.0
    maxima = VertexMaxima(np.full((len(u), 1), 0.4), u)
    x = search.maximize_leaves(f, maxima)
    np.testing.assert_allclose(x[matters.numpy()], goal[matters.numpy()], atol=1e-3)
    np.testing.assert_array_equal(x, space.snap(x[None])[0])
