"""Learnt scales between linear and logarithmic."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from raybo.methods.addtree.log_warp import LogWarped, log_warp
from raybo.space.parameters import Choice, Float
from raybo.space.space import Space
from raybo.study.optimizer import Optimizer
from raybo.surrogate.kernels.stationary import SE

U = torch.linspace(0, 1, 101, dtype=torch.float64)


def at(ratio: float) -> torch.Tensor:
    return log_warp(U, torch.tensor(ratio, dtype=torch.float64))


def test_a_ratio_of_one_changes_nothing() -> None:
    torch.testing.assert_close(at(1.0), U, atol=0, rtol=0)


@pytest.mark.parametrize("ratio", [1e-3, 0.2, 1 - 2e-4, 1 - 5e-5, 1 + 5e-5, 1 + 2e-4, 5.0, 1e3])
def test_the_scale_goes_from_0_to_1_with_slopes_of_that_ratio_at_its_ends(ratio: float) -> None:
    V = at(ratio)
    assert (V.diff() > 0).all()
    torch.testing.assert_close(V[[0, -1]], U[[0, -1]], atol=1e-12, rtol=0)
    u = torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True)
    log_warp(u, torch.tensor(ratio, dtype=torch.float64)).sum().backward()
    assert float(u.grad[0] / u.grad[1]) == pytest.approx(ratio, rel=1e-6)
    torch.testing.assert_close(at(1 / ratio), 1 - V.flip(0), atol=1e-6, rtol=0)  # the other end


def test_the_ratio_of_a_range_makes_its_scale_logarithmic() -> None:
    low, high = 10.0, 500.0
    expected = torch.log((low + (high - low) * U) / low) / np.log(high / low)
    torch.testing.assert_close(at(high / low), expected)


def test_the_gradient_in_the_ratio_is_right_where_the_formula_is_0_by_0() -> None:
    for ratio in (1.0, 1.0 + 3e-5, 0.5):
        r = torch.tensor(ratio, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(lambda q: log_warp(U, q), (r,), atol=1e-5)


def test_a_warped_kernel_is_the_kernel_of_warped_rows() -> None:
    kernel = LogWarped(SE(3), (0, 2))
    ratios = torch.tensor([0.2, 9.0], dtype=torch.float64)
    theta = {"lengthscale": torch.tensor([0.3, 0.4, 0.5]).double(), "log_warp": ratios}
    assert {h.name for h in kernel.hypers} == set(theta)
    X, Z = torch.rand(5, 3).double(), torch.rand(4, 3).double()
    A, B = (
        torch.stack([log_warp(R[:, 0], ratios[0]), R[:, 1], log_warp(R[:, 2], ratios[1])], 1)
        for R in (X, Z)
    )
    torch.testing.assert_close(kernel(X, Z, theta), SE(3)(A, B, theta))
    torch.testing.assert_close(kernel.diag(X, theta), kernel(X, X, theta).diagonal())


@pytest.mark.slow
def test_a_parameter_on_the_wrong_scale_is_learnt() -> None:
    """A valley at 2 % of a range, steep on one side: five runs of 30 find it, in the median."""
    space = Space({"c": Choice({"a": {"x": Float(0, 1), "y": Float(0, 1)}, "b": {}})})
    bests = []
    for seed in range(5):
        optimizer = Optimizer(space, "addtree", seed=seed)
        for _ in range(30):
            trial = optimizer.ask()
            own = trial.config["c"].get("a")
            loss = 1.0 if own is None else sum(x + 4e-4 / (x + 1e-3) for x in own.values())
            optimizer.tell(trial.number, loss)
        assert optimizer.best is not None
        bests.append(optimizer.best.value)
    least = 2 * (2 * 0.02 - 1e-3)  # at x = 0.019
    assert np.median(bests) < least + 0.01, bests
