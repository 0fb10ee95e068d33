"""What every maximizer promises."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from raybo.acquisition.maximizers.base import Maximizer, Region, values
from raybo.acquisition.maximizers.cma import CmaEs
from raybo.acquisition.maximizers.direct import Direct
from raybo.acquisition.maximizers.elastic import Elastic
from raybo.acquisition.maximizers.lbfgsb import Lbfgsb

PEAK = torch.tensor([0.3, -0.9, 1.7], dtype=torch.float64)


def bowl(X: torch.Tensor) -> torch.Tensor:
    return -((X - PEAK) ** 2).sum(1)


MAXIMIZERS = [Lbfgsb(), Elastic(lambda _: bowl, top=4.0), Direct(300), CmaEs(300)]


def with_nan(X: torch.Tensor) -> torch.Tensor:
    return torch.where(X[:, 0] > 0.5, torch.nan, bowl(X))


def flat(X: torch.Tensor) -> torch.Tensor:
    return 0.0 * X.sum(1)


def region(n: int = 16) -> Region:
    lower, upper = np.array([-1.0, -1.0, -1.0]), np.array([1.0, 1.0, 1.5])
    starts = lower + (upper - lower) * np.random.default_rng(3).random((n, 3))
    return Region(lower, upper, starts)


@pytest.mark.parametrize("maximizer", MAXIMIZERS, ids=lambda m: type(m).__name__)
class TestMaximizer:
    @pytest.mark.parametrize("f", [bowl, with_nan, flat])
    def test_stays_in_the_box_and_is_no_worse_than_the_best_start(
        self, maximizer: Maximizer, f: object
    ) -> None:
        box = region()
        x = maximizer(f, box, np.random.default_rng(0))
        assert x.shape == (3,)
        assert ((box.lower <= x) & (x <= box.upper)).all()
        assert values(f, x[None])[0] >= values(f, box.starts).max()

    def test_finds_a_peak_outside_the_box_at_its_edge(self, maximizer: Maximizer) -> None:
        x = maximizer(bowl, region(), np.random.default_rng(0))
        np.testing.assert_allclose(x, [0.3, -0.9, 1.5], atol=0.1)

    def test_same_generator_same_answer(self, maximizer: Maximizer) -> None:
        a = maximizer(bowl, region(), np.random.default_rng(5))
        b = maximizer(bowl, region(), np.random.default_rng(5))
        np.testing.assert_array_equal(a, b)

    def test_one_value_columns_stay(self, maximizer: Maximizer) -> None:
        box = Region(np.array([0.0, 0.5, 0.0]), np.array([1.0, 0.5, 1.0]), np.full((1, 3), 0.5))
        x = maximizer(bowl, box, np.random.default_rng(0))
        assert x[1] == 0.5
        np.testing.assert_allclose(x[0], 0.3, atol=0.05)

    def test_answer_is_snapped(self, maximizer: Maximizer) -> None:
        box = region()
        grid = np.linspace(-1.0, 1.0, 5)

        def snap(X: np.ndarray) -> np.ndarray:
            X = X.copy()
            X[:, 0] = grid[np.abs(X[:, :1] - grid).argmin(1)]
            return X

        mixed = Region(box.lower, box.upper, snap(box.starts), {0: grid}, snap)
        x = maximizer(bowl, mixed, np.random.default_rng(0))
        assert x[0] == 0.5
        np.testing.assert_allclose(x[1:], [-0.9, 1.5], atol=0.1)
