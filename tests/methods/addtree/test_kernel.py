"""The Add-Tree covariance: Definition 5, its batched form, and its prior."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
import torch

from raybo.methods.addtree.kernel import PooledPrior, TreeKernel, batches, tree_kernel
from raybo.space.parameters import Categorical, Choice, Float, Int
from raybo.space.space import Space
from raybo.space.tree import expanded, vertices
from raybo.surrogate.kernels.base import LogNormal

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
    return {h.name: torch.tensor(rng.uniform(0.3, 2.0, h.shape)) for h in kernel.hypers}


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
@pytest.mark.parametrize("n", [3, 20, 150])  # in one batch of vertices, or in several
@pytest.mark.parametrize("ard", [True, False])
def test_the_batched_kernel_is_the_sum_of_its_vertices(tree: tuple, n: int, ard: bool) -> None:
    kernel = tree_kernel(MIXED, tree, ard=ard)
    theta, X, Z = random_theta(kernel), rows(n), rows(7, 1)
    terms = [kernel.term(v, theta) for v in range(len(tree))]
    torch.testing.assert_close(kernel(X, Z, theta), sum(t(X, Z, own) for t, own in terms))
    torch.testing.assert_close(kernel.diag(X, theta), kernel(X, X, theta).diagonal())
    assert torch.linalg.eigvalsh(kernel(X, X, theta)).min() > -1e-9
    assert pickle.loads(pickle.dumps(kernel)) == kernel


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_every_parameter_or_every_vertex_has_a_length_scale(tree: tuple) -> None:
    ordered = [[MIXED.columns[c].kind != "categorical" for c in v.columns] for v in tree]
    for ard, expected in ((True, sum(map(sum, ordered))), (False, sum(map(any, ordered)))):
        shapes = {h.name: h.shape for h in tree_kernel(MIXED, tree, ard=ard).hypers}
        assert shapes["lengthscale"] == (expected,)
        assert shapes["variance"] == (len(tree),)


def test_the_gradient_in_theta_is_right() -> None:
    kernel = tree_kernel(MIXED, TREES["shared"])
    theta, X, Z = random_theta(kernel), rows(6), rows(4, 1)

    def f(*values: torch.Tensor) -> torch.Tensor:
        return kernel(X, Z, dict(zip(theta, values, strict=True)))

    assert torch.autograd.gradcheck(f, tuple(v.requires_grad_() for v in theta.values()))


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
    variance = torch.tensor([1.0, 2.0, 4.0, 8.0, 16.0]).double()
    theta = {"variance": variance, "lengthscale": torch.full((4,), 0.5).double()}
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


def test_vertices_of_few_points_share_a_batch_and_empty_ones_have_none() -> None:
    assert batches([300, 5, 0, 60, 400, 70]) == [[0, 4], [1, 3], [5]]


def test_a_pooled_prior_keeps_values_near_each_other() -> None:
    own = LogNormal(0.0, 1.0)
    prior = PooledPrior(own, 0.3)
    equal, apart = torch.tensor([0.2, 0.2, 0.2]), torch.tensor([0.2, 0.2, 1.0])
    torch.testing.assert_close(prior.log_density(equal), own.log_density(equal))
    lost = (own.log_density(apart) - prior.log_density(apart)).sum()
    # deviations from the mean: -0.8/3, -0.8/3, 1.6/3
    assert lost.item() == pytest.approx(0.5 * (2 * 0.8**2 + 1.6**2) / 9 / 0.3**2, rel=1e-5)
