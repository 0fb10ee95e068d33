"""Posteriors of the functions of the vertices."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from raybo.errors import SurrogateError
from raybo.methods.addtree.kernel import TreeKernel, tree_kernel
from raybo.methods.addtree.posteriors import VertexPosteriors
from raybo.space.parameters import Categorical, Choice, Float, Int
from raybo.space.space import Space
from raybo.space.tree import expanded, vertices
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.stationary import SE

SPACE = Space(
    {
        "a": Float(0, 1),
        "c": Choice(
            {
                "l": {"n": Int(1, 9), "d": Choice({"p": {"y": Float(0, 1)}, "q": {}})},
                "r": {"x": Float(-1, 1), "k": Categorical(["u", "v", "w"])},
            }
        ),
        "e": Choice({"on": {"s": Float(0, 1), "t": Float(0, 1)}, "off": {}}),
    }
)
TREES = {"shared": vertices(SPACE), "expanded": expanded(vertices(SPACE))}


def rows(n: int, seed: int = 0) -> torch.Tensor:
    return torch.tensor(SPACE.sample(n, np.random.default_rng(seed)))


def gp_of(kernel: TreeKernel, X: torch.Tensor) -> GP:
    rng = np.random.default_rng(0)
    theta = {h.name: torch.tensor(rng.uniform(0.3, 2.0, h.shape)) for h in kernel.hypers}
    theta["noise"] = torch.tensor(0.01).double()
    return GP.of(kernel, theta, X, torch.sin(5 * X.sum(1)), mean=0.0)


def own_columns(kernel: TreeKernel, X: torch.Tensor) -> torch.Tensor:
    width = max(len(term.columns) for term in kernel.terms)
    Z = torch.full((len(kernel.terms), len(X), width), 0.5, dtype=torch.float64)
    for v, term in enumerate(kernel.terms):
        Z[v, :, : len(term.columns)] = X[:, list(term.columns)]
    return Z


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_they_are_those_of_the_terms_and_add_up(tree: tuple) -> None:
    kernel = tree_kernel(SPACE, tree)
    gp = gp_of(kernel, rows(90))
    X = rows(40, 1)
    active = kernel.active(X)
    found = VertexPosteriors.of(gp)(own_columns(kernel, X))
    for v in range(len(tree)):
        expected = gp.posterior(X, part=v)
        passing = active[:, v]
        for mine, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(mine[v][passing], theirs[passing], atol=1e-9, rtol=1e-7)
    total = (found.mean * active.T).sum(0)
    torch.testing.assert_close(total, gp.posterior(X).mean)


def test_a_vertex_that_no_observation_passes_has_its_prior() -> None:
    kernel = tree_kernel(SPACE, TREES["shared"])
    right = next(v for v, term in enumerate(kernel.terms) if len(term.unordered))  # c = r
    X = rows(60)
    gp = gp_of(kernel, X[~kernel.active(X)[:, right]])
    found = VertexPosteriors.of(gp)(own_columns(kernel, X))
    assert (found.mean[right] == 0.0).all()
    assert (found.variance[right] == gp.theta["variance"][right]).all()


def test_another_kernel_is_refused() -> None:
    theta = {"lengthscale": torch.ones(2).double(), "noise": torch.tensor(0.1).double()}
    X = torch.rand(3, 2).double()
    with pytest.raises(SurrogateError, match="need a TreeKernel"):
        VertexPosteriors.of(GP.of(SE(2), theta, X, X[:, 0]))
