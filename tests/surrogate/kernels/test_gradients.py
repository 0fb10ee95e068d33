"""Gradients in closed form are those of autograd, for every kernel that has them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from raybo.errors import SurrogateError
from raybo.lazy import Tensor
from raybo.surrogate.kernels.additive import Additive
from raybo.surrogate.kernels.base import (
    Kernel,
    OnColumns,
    Product,
    Sum,
    has_gradient,
    require_gradient,
)
from raybo.surrogate.kernels.hamming import Hamming
from raybo.surrogate.kernels.projected import Projected
from raybo.surrogate.kernels.spherical import Spherical
from raybo.surrogate.kernels.stationary import SE, Matern52

DIM, CATEGORIES = 5, (1, 3)  # columns of the points, and which of them hold categories
ALL = tuple(range(DIM))
KERNELS: dict[str, Kernel] = {
    "matern": Matern52(DIM),
    "matern, one length-scale": Matern52(DIM, ard=False, scaled=True),
    "se": SE(DIM, scaled=True),
    "spherical": Spherical(DIM),
    "hamming": Hamming(DIM),
    "mixed": Product(
        (OnColumns(Matern52(3, scaled=True), (0, 2, 4)), OnColumns(Hamming(2), CATEGORIES))
    ),
    "three factors": Product((SE(DIM), OnColumns(Hamming(2), CATEGORIES), Matern52(DIM))),
    "additive": Additive(((0, 2), (4,))),
    "additive, categories": Additive(((0, 1, 2), (3, 4)), CATEGORIES),
    "projected": Projected(Matern52(2), DIM),
    "projected, clipped": Projected(SE(2, scaled=True), DIM, clip=True),
}
each_kernel = pytest.mark.parametrize("name", KERNELS)


def points(n: int, seed: int) -> Tensor:
    X = np.random.default_rng(seed).random((n, DIM))
    X[:, CATEGORIES] = np.round(2 * X[:, CATEGORIES]) / 2
    return torch.tensor(X)


def logs_of(kernel: Kernel, seed: int = 3) -> dict[str, Tensor]:
    rng = np.random.default_rng(seed)
    return {h.name: torch.tensor(rng.normal(-0.3, 0.5, h.shape)) for h in kernel.hypers}


def exp(logs: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.exp() for name, value in logs.items()}


def arrays(logs: dict[str, Tensor]) -> dict[str, np.ndarray]:
    return {name: value.detach().exp().numpy() for name, value in logs.items()}


@each_kernel
def test_of_a_fit(name: str) -> None:
    kernel = require_gradient(KERNELS[name])
    X, logs = points(7, 0).requires_grad_(), logs_of(kernel)
    W = torch.tensor(np.random.default_rng(2).random((7, 7)))
    W = W + W.T
    for value in logs.values():
        value.requires_grad_()
    K = kernel(X, X, exp(logs))
    total = (W * K).sum() + 0.0 * X.sum()  # categories alone have no gradient
    wanted = torch.autograd.grad(total, [*logs.values(), X])
    found, gradient = kernel.with_gradient(X.detach().numpy(), arrays(logs))
    np.testing.assert_allclose(found, K.detach(), atol=1e-12)
    by_hypers, by_rows = gradient(W.numpy())
    flat = torch.cat([part.reshape(-1) for part in wanted[:-1]])
    np.testing.assert_allclose(by_hypers, flat, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(by_rows, wanted[-1], rtol=1e-7, atol=1e-9)


@each_kernel
def test_of_a_search(name: str) -> None:
    kernel = require_gradient(KERNELS[name])
    X, logs = points(7, 0), logs_of(kernel)
    cross = kernel.cross(X.numpy(), arrays(logs))
    for seed in (1, 4):  # what is prepared serves all points
        Z = points(4, seed).requires_grad_()
        W = torch.tensor(np.random.default_rng(seed).standard_normal((4, 7)))
        K = kernel(Z, X, exp(logs))
        total = (W * K).sum() + 0.0 * Z.sum()  # categories alone have no gradient
        (wanted,) = torch.autograd.grad(total, Z)
        found, gradient = cross(Z.detach().numpy())
        np.testing.assert_allclose(found, K.detach(), atol=1e-12)
        np.testing.assert_allclose(gradient(W.numpy()), wanted, rtol=1e-7, atol=1e-9)


def test_a_kernel_has_them_if_all_its_parts_have() -> None:
    without = Sum((SE(2), SE(2)))
    assert not has_gradient(without)
    assert not has_gradient(Product((SE(2), OnColumns(without, (0, 1)))))
    with pytest.raises(SurrogateError, match="gradient in closed form is needed, not Sum"):
        require_gradient(without)
