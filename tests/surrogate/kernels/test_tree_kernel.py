"""The Add-Tree covariance: Definition 5, its batched form, and the posteriors of its vertices."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
import torch

from raybo.methods.addtree.kernel import Alike, TreeKernel, buckets, tree_kernel
from raybo.methods.addtree.posteriors import VertexPosteriors
from raybo.space.parameters import Categorical, Choice, Float, Int
from raybo.space.space import Space
from raybo.space.tree import expanded, vertices
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.base import LogNormal, starting_theta

INNER = Choice({"p": {"y": Float(0, 1), "z": Float(1e-3, 1, log=True)}, "q": {}})
MIXED = Space(
    {
        "a": Float(0, 1),
        "k": Categorical(["u", "v", "w"]),
        "c": Choice({"l": {"n": Int(1, 9), "d": INNER}, "r": {"x": Float(-1, 1)}, "none": {}}),
        "e": Choice({"on": {"s": Float(0, 1), "t": Categorical([1, 2])}, "off": {}}),
    }
)
TREES = {"shared": vertices(MIXED), "expanded": expanded(vertices(MIXED))}


def rows(n: int, seed: int = 0) -> torch.Tensor:
    return torch.tensor(MIXED.sample(n, np.random.default_rng(seed)))


def random_theta(kernel: TreeKernel, seed: int = 0) -> dict[str, torch.Tensor]:
    rng = np.random.default_rng(seed)
    return {
        name: torch.tensor(rng.uniform(0.3, 2.0, value.shape))
        for name, value in starting_theta(kernel).items()
    }


def gp_of(kernel: TreeKernel, n: int) -> GP:
    theta = {**random_theta(kernel), "noise": torch.tensor(0.01), "mean": torch.tensor(0.0)}
    X = rows(n)
    return GP.of(kernel, theta, X, torch.sin(5 * X.sum(1)))


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
@pytest.mark.parametrize(("n", "few"), [(20, 10**6), (3, 0), (150, 0)])  # in one batch, in some
@pytest.mark.parametrize("stretched", [False, True])
def test_the_batched_kernel_is_the_sum_of_its_vertices(
    tree: tuple, n: int, few: int, stretched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raybo.methods.addtree.kernel._FEW", few)
    kernel = tree_kernel(MIXED, tree, stretched=stretched)
    theta, X, Z = random_theta(kernel), rows(n), rows(7, 1)
    terms = [kernel.term(v, theta) for v in range(len(tree))]
    torch.testing.assert_close(kernel(X, Z, theta), sum(t(X, Z, own) for t, own in terms))
    torch.testing.assert_close(kernel.diag(X, theta), kernel(X, X, theta).diagonal())
    assert torch.linalg.eigvalsh(kernel(X, X, theta)).min() > -1e-9
    assert pickle.loads(pickle.dumps(kernel)) == kernel


def test_the_whole_is_added_to_the_vertices() -> None:
    tree = TREES["shared"]
    plain, kernel = tree_kernel(MIXED, tree), tree_kernel(MIXED, tree, whole=True)
    theta, X, Z = random_theta(kernel), rows(20), rows(7, 1)
    theta["whole.variance"] = torch.tensor(0.3, dtype=torch.float64)
    extra = kernel(X, Z, theta) - plain(X, Z, theta)
    assert ((extra > 0) & (extra < 0.3)).all()
    torch.testing.assert_close(kernel.diag(X, theta), kernel(X, X, theta).diagonal())
    nearer = X + 0.01 * (Z[:1] - X)  # all columns matter, choices by being the same or not
    assert (kernel.whole(nearer, Z[:1], theta) >= kernel.whole(X, Z[:1], theta)).all()
    assert torch.linalg.eigvalsh(kernel(X, X, theta)).min() > -1e-9
    assert VertexPosteriors.of(gp_of(kernel, 30)).prior.shape == (len(tree),)


def test_two_points_have_in_common_what_lies_above_both_leaves() -> None:
    space = Space(
        {
            "r": Float(0, 1),
            "c": Choice(
                {
                    "l": {"s": Float(0, 1), "d": Choice({"p": {"y": Float(0, 1)}, "q": {}})},
                    "r": {"x": Float(0, 1)},
                }
            ),
        }
    )
    kernel = tree_kernel(space, vertices(space))  # root, l, r, p, q
    variance, lengthscale = torch.tensor([1.0, 2.0, 4.0, 8.0, 16.0]), torch.full((4, 1), 0.5)
    theta = {"variance": variance.double(), "lengthscale.1": lengthscale.double()}
    configs = [
        {"r": 0.0, "c": {"l": {"s": 0.0, "d": {"p": {"y": 0.3}}}}},
        {"r": 0.5, "c": {"l": {"s": 1.0, "d": {"q": {}}}}},
        {"r": 0.5, "c": {"r": {"x": 0.9}}},
    ]
    X = torch.tensor(np.array([space.encode(config) for config in configs]))
    one, two = math.exp(-0.5), math.exp(-2.0)  # correlations at one and two length-scales
    expected = [
        [1 + 2 + 8, one + 2 * two, one],
        [one + 2 * two, 1 + 2 + 16, 1],
        [one, 1, 1 + 4],
    ]
    np.testing.assert_allclose(kernel(X, X, theta), expected, rtol=1e-12)


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
@pytest.mark.parametrize("stretched", [False, True])
def test_posteriors_by_vertex_are_those_of_the_terms_and_add_up(
    tree: tuple, stretched: bool
) -> None:
    kernel = tree_kernel(MIXED, tree, stretched=stretched)
    gp = gp_of(kernel, 90)
    posteriors = VertexPosteriors.of(gp)
    X = rows(40, 1)
    active = kernel.active(X)
    width = max(len(term.columns) for term in kernel.terms)
    Z = torch.full((len(tree), len(X), width), 0.5, dtype=torch.float64)
    for v, term in enumerate(kernel.terms):
        Z[v, :, : len(term.columns)] = X[:, list(term.columns)]
    found = posteriors(Z)
    for v in range(len(tree)):
        expected = gp.posterior(X, part=v)
        passing = active[:, v]
        for mine, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(mine[v][passing], theirs[passing], atol=1e-9, rtol=1e-7)
    total = (found.mean * active.T).sum(0)
    torch.testing.assert_close(total, gp.posterior(X).mean)


def test_a_vertex_that_no_observation_passes_has_its_prior() -> None:
    kernel = tree_kernel(MIXED, TREES["shared"])
    gp = gp_of(kernel, 60)
    some = gp.X[~kernel.active(gp.X)[:, 3]]  # none of those with c = r
    away = GP.of(kernel, gp.theta, some, gp.y[: len(some)])
    width = max(len(term.columns) for term in kernel.terms)
    found = VertexPosteriors.of(away)(torch.full((len(kernel.terms), 1, width), 0.5).double())
    assert found.mean[3].item() == 0.0
    assert found.variance[3].item() == gp.theta["variance"][3].item()


def test_vertices_of_few_points_share_a_batch_and_empty_ones_have_none() -> None:
    assert buckets([300, 5, 0, 60, 400, 70]) == [[0, 4], [1, 3], [5]]


def test_a_vertex_is_thought_to_be_like_the_others() -> None:
    prior = Alike(LogNormal(0.0, 1.0), 3)
    alike = torch.tensor([[0.2], [0.2], [0.2]])
    apart = torch.tensor([[0.2], [0.2], [1.0]])
    own = LogNormal(0.0, 1.0)
    torch.testing.assert_close(prior.log_density(alike).sum(), own.log_density(alike).sum())
    lost = (own.log_density(apart) - prior.log_density(apart)).sum()
    # deviations from the mean: -0.8/3, -0.8/3, 1.6/3
    assert lost.item() == pytest.approx(0.5 * (2 * 0.8**2 + 1.6**2) / 9 / 0.3**2, rel=1e-5)


def test_a_column_is_thought_to_be_like_the_others_of_its_vertex() -> None:
    own = LogNormal(0.0, 1.0)
    prior = Alike(own, 2)
    even = torch.tensor([[0.4, 0.4], [0.4, 0.4]])
    uneven = torch.tensor([[0.4, 0.4], [0.1, 0.7]])  # of the same mean
    torch.testing.assert_close(prior.log_density(even).sum(), own.log_density(even).sum())
    lost = own.log_density(uneven) - prior.log_density(uneven)
    # deviations of 0.3 from the vertex's mean, none between the vertices
    expected = torch.tensor([[0.0, 0.0], [1.0, 1.0]]) * 0.5 * (0.3 / 0.5) ** 2
    torch.testing.assert_close(lost, expected)
