from __future__ import annotations

import numpy as np
import torch

from raybo.acquisition.maximizers.adam import Adam
from raybo.acquisition.maximizers.base import Region

PEAK = torch.tensor([0.3, 0.7], dtype=torch.float64)


def region(starts: np.ndarray) -> Region:
    return Region(np.zeros(2), np.ones(2), starts)


def test_steps_are_those_of_torch() -> None:
    def f(X: torch.Tensor) -> torch.Tensor:
        return torch.exp(-3.0 * ((X - PEAK) ** 2).sum(1)) + 0.1 * X[:, 0]

    start = np.array([[0.9, 0.2]])
    found = Adam(n_starts=1, steps=40)(f, region(start), np.random.default_rng(0))
    x = torch.tensor(start, requires_grad=True)
    optimizer = torch.optim.Adam([x], lr=0.005)
    for _ in range(39):  # ours looks at the point where it stands before each step
        optimizer.zero_grad()
        (-f(x)).sum().backward()
        optimizer.step()
    np.testing.assert_allclose(found, x.detach().numpy()[0], rtol=1e-9)


def test_the_best_point_on_the_way_is_kept() -> None:
    def ridge(X: torch.Tensor) -> torch.Tensor:  # a step of the rate overshoots it for ever
        return -(X - PEAK).abs().sum(1)

    start = np.array([[0.3012, 0.7013]])
    found = Adam(n_starts=1)(ridge, region(start), np.random.default_rng(0))
    assert ridge(torch.tensor(found[None])) >= ridge(torch.tensor(start))


def test_every_start_has_its_own_moments() -> None:
    def f(X: torch.Tensor) -> torch.Tensor:
        return -((X - PEAK) ** 2).sum(1)

    starts = np.array([[0.9, 0.9], [0.35, 0.7]])
    alone = Adam(n_starts=1, steps=20)(f, region(starts[1:]), np.random.default_rng(0))
    both = Adam(n_starts=2, steps=20)(f, region(starts), np.random.default_rng(0))
    np.testing.assert_array_equal(alone, both)
