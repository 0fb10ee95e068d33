"""What every kernel promises."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch

from raybo.methods.addtree.kernel import tree_kernel
from raybo.methods.addtree.published import published_kernel
from raybo.methods.addtree.vertex import AtVertex
from raybo.methods.bock.kernel import Cylindrical
from raybo.space.parameters import Choice, Float
from raybo.space.space import Space
from raybo.space.tree import vertices
from raybo.surrogate.kernels.additive import Additive
from raybo.surrogate.kernels.base import Kernel, OnColumns, Product, Sum
from raybo.surrogate.kernels.hamming import Hamming
from raybo.surrogate.kernels.projected import Projected
from raybo.surrogate.kernels.spherical import Spherical
from raybo.surrogate.kernels.stationary import SE, Matern52

D = 3
# Three columns: a; the choice, whose branch l is below 1/2; x, which belongs to that branch.
TREE = Space({"a": Float(0, 1), "c": Choice({"l": {"x": Float(0, 1)}, "r": {}})})
# General families first, then those of one method; each is a function of rows (n, D).
KERNELS: dict[str, Kernel] = {
    "se": SE(D),
    "se-isotropic": SE(D, ard=False, scaled=True),
    "matern": Matern52(D),
    "matern-isotropic": Matern52(D, ard=False, scaled=True),
    "hamming": Hamming(D),
    "additive": Additive(((0, 2), (1,))),
    "additive-mixed": Additive(((0, 2), (1,)), unordered=(2,)),
    "sum": Sum((OnColumns(SE(1, scaled=True), (0,)), OnColumns(Matern52(2), (1, 2)))),
    "product": Product((OnColumns(Matern52(2), (0, 1)), OnColumns(Hamming(1), (2,)))),
    "bock-published": Cylindrical(D),
    "bock-not-warped": Cylindrical(D, degree=5, warp=False),
    "bock-default": Cylindrical(D, fades=True),
    "rembo-default": Projected(Matern52(2), D, clip=True),
    "linear-default": Spherical(D),
    "ridge-default": Projected(Matern52(D, ard=False, scaled=True, lengthscale=1.0), D),
    "addtree-vertex": AtVertex(((2, 1, 2),), (0,), (1,)),
    "addtree-root": AtVertex((), (0, 1), ()),
    "addtree-published": published_kernel(TREE, vertices(TREE)),
    "addtree-default": tree_kernel(TREE, vertices(TREE), spread=0.3),
}
# Kernels that jump where a category or a branch changes have no gradient in the rows.
JUMPS = {
    "hamming",
    "product",
    "additive-mixed",
    "addtree-vertex",
    "addtree-published",
    "addtree-default",
}
SMOOTH = [name for name in KERNELS if name not in JUMPS]


def starting_theta(kernel: Kernel) -> dict[str, torch.Tensor]:
    return {h.name: torch.full(h.shape, h.start, dtype=torch.float64) for h in kernel.hypers}


def points(n: int, seed: int) -> torch.Tensor:
    X = np.random.default_rng(seed).random((n, D))
    X[:, 2] = np.round(X[:, 2] * 3) / 3  # with equal values, for kernels on categories
    return torch.tensor(X)


@pytest.mark.parametrize("name", KERNELS)
class TestKernel:
    def test_is_symmetric_positive_semidefinite_and_agrees_with_its_diagonal(
        self, name: str
    ) -> None:
        kernel, X = KERNELS[name], points(20, 0)
        X[3] = X[4]
        K = kernel(X, X, starting_theta(kernel))
        assert K.shape == (20, 20)
        np.testing.assert_allclose(K, K.T, atol=1e-12)
        assert torch.linalg.eigvalsh(K).min() > -1e-10
        np.testing.assert_allclose(
            K.diagonal(), kernel.diag(X, starting_theta(kernel)), atol=1e-12
        )

    def test_gradient_in_theta(self, name: str) -> None:
        kernel, X, Z = KERNELS[name], points(5, 0), points(4, 1)
        Z[0] = X[0]
        start = starting_theta(kernel)

        def f(*values: torch.Tensor) -> torch.Tensor:
            return kernel(X, Z, dict(zip(start, values, strict=True)))

        assert torch.autograd.gradcheck(f, tuple(v.requires_grad_() for v in start.values()))

    def test_pickles(self, name: str) -> None:
        assert pickle.loads(pickle.dumps(KERNELS[name])) == KERNELS[name]

    def test_a_wrong_name_in_theta_raises(self, name: str) -> None:
        with pytest.raises(KeyError):
            KERNELS[name](points(2, 0), points(2, 1), {"flavour": torch.tensor(1.0)})


@pytest.mark.parametrize("name", KERNELS)
def test_vmap_over_theta_equals_a_loop(name: str) -> None:
    kernel, X = KERNELS[name], points(5, 0)
    start = starting_theta(kernel)
    scales = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    many = {k: torch.stack([v * s for s in scales]) for k, v in start.items()}
    batched = torch.func.vmap(lambda theta: kernel(X, X, theta))(many)
    for i, s in enumerate(scales):
        alone = kernel(X, X, {k: v * s for k, v in start.items()})
        np.testing.assert_allclose(batched[i], alone, atol=1e-12)


@pytest.mark.parametrize("name", SMOOTH)
def test_gradient_in_the_points_also_at_equal_rows(name: str) -> None:
    kernel: Kernel = KERNELS[name]
    Z = points(4, 1)
    X = points(3, 0)
    theta = starting_theta(kernel)
    assert torch.autograd.gradcheck(lambda x: kernel(x, Z, theta), (X.requires_grad_(),))
    same = Z.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(kernel(same, Z, theta).diagonal().sum(), same)
    np.testing.assert_allclose(gradient, np.zeros((4, D)), atol=1e-6)
