"""The elastic search, on models whose acquisition is flat where it starts."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from raybo.acquisition.functions import ei
from raybo.acquisition.maximizers.base import Acquisition, Region, values
from raybo.acquisition.maximizers.elastic import (
    SLOPE,
    Elastic,
    Family,
    _Climbers,
    _Stairs,
    largest_multiple,
    scale_lengthscales,
)
from raybo.acquisition.maximizers.lbfgsb import Lbfgsb
from raybo.methods.search import acquisition_family, acquisition_of
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.base import OnColumns, Product
from raybo.surrogate.kernels.hamming import Hamming
from raybo.surrogate.kernels.stationary import SE, Matern52

ACQUISITIONS = ["ei", "log_ei", "ucb"]


def tensor(value: object) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.float64)


def model(d: int = 20, n: int = 30, lengthscale: float = 0.1, seed: int = 0) -> GP:
    """A process whose data say: the nearer to (0.3, ..., 0.3), the better."""
    X = torch.as_tensor(np.random.default_rng(seed).random((n, d)))
    y = (X - 0.3).square().sum(1)
    y = (y - y.mean()) / y.std()
    theta = {"lengthscale": tensor(lengthscale), "noise": tensor(1e-6)}
    return GP.of(SE(d, ard=False), theta, X, y, mean=0.0)


def cube(d: int, n: int = 6, seed: int = 1) -> Region:
    return Region(np.zeros(d), np.ones(d), np.random.default_rng(seed).random((n, d)))


def family_of(gp: GP, name: str) -> Family:
    return acquisition_family(
        gp, lambda wide: acquisition_of(wide, name, wide.fitted().min(), len(wide.X))
    )


def elastic(gp: GP, name: str, **options: object) -> Elastic:
    return Elastic(family_of(gp, name), largest_multiple(gp), **options)


def hill(centre: float, width: float) -> Acquisition:
    """A bump that floating point cannot see from further away than 39 of its widths."""
    return lambda X: torch.exp(-0.5 * ((X - centre) / width).square().sum(1))


class TestAlgorithm2:
    @pytest.mark.parametrize("name", ACQUISITIONS)
    def test_crosses_flat_ground_that_holds_multistart(self, name: str) -> None:
        gp = model()
        f = acquisition_of(gp, name, gp.fitted().min(), len(gp.X))
        region = cube(20)
        from_start = values(f, region.starts).max()
        held = values(f, Lbfgsb()(f, region, np.random.default_rng(0))[None])[0]
        found = values(f, elastic(gp, name)(f, region, np.random.default_rng(0))[None])[0]
        assert held == pytest.approx(from_start, rel=1e-6)  # the plain is truly flat
        assert found > held + 0.01 * abs(held)

    def test_reaches_the_best_peak_of_a_model_of_one_datum(self) -> None:
        # Around a single datum EI has its peak on a sphere: checked by a scan along a ray.
        X, y = tensor([[0.2] * 10]), tensor([-1.0])
        theta = {"lengthscale": tensor(0.1), "noise": tensor(1e-6)}
        gp = GP.of(SE(10, ard=False), theta, X, y, mean=0.0)

        def f(Z: torch.Tensor) -> torch.Tensor:
            return ei(gp.posterior(Z), tensor(-1.0))

        ray = X + torch.linspace(0.0, 0.5, 5001, dtype=torch.float64)[:, None] / math.sqrt(10)
        region = cube(10)
        x = Elastic(family_of(gp, "ei"), 30.0)(f, region, np.random.default_rng(0))
        assert values(f, x[None])[0] == pytest.approx(float(f(ray).max()), rel=1e-4)

    def test_a_start_rises_to_the_first_stair_that_slopes_and_no_further(self) -> None:
        made: list[float] = []

        def family(multiple: float) -> Acquisition:
            made.append(multiple)
            return hill(0.9, 0.005 * multiple)

        # At distance 0.8 the slope is exp(-0.5 (0.8/w)^2) 0.8/w^2 of a value of the same size:
        # it underflows to 0 for w < 0.8/38.6 = 0.0207, and any value above 0 has a steep one.
        region = Region(np.zeros(1), np.ones(1), np.full((1, 1), 0.1))
        search = Elastic(family, 64.0, ratio=2.0, halvings=2)
        x = search(hill(0.9, 0.005), region, np.random.default_rng(0))
        assert max(made) == pytest.approx(8.0)  # widths 0.01, 0.02 and 0.04
        assert x[0] == pytest.approx(0.9, abs=1e-4)

    def test_a_stuck_start_takes_half_steps_from_where_it_was(self) -> None:
        made: list[float] = []

        def family(multiple: float) -> Acquisition:
            made.append(multiple)
            # The peak runs away as the width shrinks: a whole step loses it, a part does not.
            return hill(0.2 + 0.15 * math.log2(multiple), 0.01 * multiple**0.25)

        start = np.full((1, 1), 0.2 + 0.15 * 5)
        region = Region(np.zeros(1), np.ones(1), start)
        search = Elastic(family, 32.0, ratio=32.0, halvings=4)
        target = hill(0.2, 0.01)
        assert values(target, start)[0] == 0.0
        x = search(target, region, np.random.default_rng(0))
        assert x[0] == pytest.approx(0.2, abs=1e-4)
        # From 32 a whole step to 1 is flat; sqrt(32) is the first half step, taken once.
        assert made[:2] == pytest.approx([32.0, math.sqrt(32.0)])

    def test_a_start_on_a_peak_has_arrived_and_halves_nothing(self) -> None:
        made: list[float] = []

        def family(multiple: float) -> Acquisition:
            made.append(multiple)
            return hill(0.5, 0.01 * multiple)

        region = Region(np.zeros(1), np.ones(1), np.zeros((1, 1)))
        Elastic(family, 27.0, ratio=3.0)(hill(0.5, 0.01), region, np.random.default_rng(0))
        assert sorted(set(made)) == pytest.approx([3.0])  # no stairs between whole ones

    def test_a_start_that_stays_stuck_is_dropped(self) -> None:
        calls: list[float] = []

        def family(multiple: float) -> Acquisition:
            calls.append(multiple)
            return hill(0.5, 1.0) if multiple > 31.9 else lambda X: 0.0 * X.sum(1)

        region = Region(np.zeros(1), np.ones(1), np.full((1, 1), 0.1))
        search = Elastic(family, 32.0, ratio=2.0, halvings=3)
        x = search(lambda X: 0.0 * X.sum(1), region, np.random.default_rng(0))
        assert 0.0 <= x[0] <= 1.0
        assert len(calls) == 5 + 3  # the stairs on the way up, then halves, each factor made once

    def test_one_factor_per_stair_whatever_the_number_of_starts(self) -> None:
        gp, made = model(), []
        family = family_of(gp, "ei")

        def counted(multiple: float) -> Acquisition:
            made.append(multiple)
            return family(multiple)

        f = acquisition_of(gp, "ei", gp.fitted().min(), len(gp.X))
        for n_starts in (1, 6):
            made.clear()
            search = Elastic(counted, largest_multiple(gp), n_starts=n_starts)
            search(f, cube(20, 12), np.random.default_rng(0))
            assert len(made) == len(set(made)) > 0

    def test_without_room_above_it_is_multistart(self) -> None:
        def never(multiple: float) -> Acquisition:
            raise AssertionError(multiple)

        gp = model(lengthscale=5.0)
        assert largest_multiple(gp) == 1.0
        f = acquisition_of(gp, "log_ei", gp.fitted().min(), len(gp.X))
        region = cube(20)
        search = Elastic(never, 1.0, n_screened=6)
        a = search(f, region, np.random.default_rng(0))
        b = Lbfgsb(6)(f, region, np.random.default_rng(0))
        np.testing.assert_allclose(values(f, a[None]), values(f, b[None]), rtol=1e-6)


class TestStairs:
    def test_stairs_are_geometric_and_end_at_the_top(self) -> None:
        def identity(multiple: float) -> Acquisition:
            return lambda X: X.sum(1) * multiple

        stairs = _Stairs(hill(0.5, 1.0), identity, 10.0, 1.5, 3)
        X = torch.ones(1, 1, dtype=torch.float64)
        found = [float(stairs.at(h)(X)) for h in range(stairs.stair, stairs.top + 1, stairs.stair)]
        ratios = np.diff(np.log(found))
        assert found[-1] == pytest.approx(10.0)
        np.testing.assert_allclose(ratios, ratios[0])
        assert math.exp(ratios[0]) <= 1.5
        halves = float(stairs.at(stairs.stair + stairs.stair // 2)(X))
        assert halves == pytest.approx(math.sqrt(found[0] * found[1]))

    def test_slope_beside_tells_a_peak_from_a_plain(self) -> None:
        family: Family = lambda multiple: hill(0.5, 1.0)  # noqa: E731
        region = Region(np.zeros(2), np.ones(2), np.zeros((1, 2)))
        X = np.array([[0.5, 0.5], [0.0, 0.0]])
        for f, flat in ((hill(0.5, 0.1), False), (lambda Z: 1.0 + 1e-9 * Z.sum(1), True)):
            climbers = _Climbers(
                _Stairs(f, family, 1.0, 1.5, 3), region, X, 10, np.random.default_rng(0)
            )
            assert climbers._is_flat(0, np.arange(2)).tolist() == [flat, flat]
        assert SLOPE > 1e-9


class TestScaledLengthscales:
    def test_equals_a_model_built_with_the_longer_scale(self) -> None:
        gp = model(d=3, n=8)
        Z = torch.as_tensor(np.random.default_rng(3).random((5, 3)))
        ours = scale_lengthscales(gp, 4.0).posterior(Z)
        direct = model(d=3, n=8, lengthscale=0.4).posterior(Z)
        np.testing.assert_allclose(ours.mean, direct.mean, rtol=1e-9)
        np.testing.assert_allclose(ours.variance, direct.variance, rtol=1e-7)

    def test_multiplies_the_lengthscales_of_a_composite_and_nothing_else(self) -> None:
        kernel = Product((OnColumns(Matern52(2), (0, 1)), OnColumns(Hamming(1), (2,))))
        theta = {
            "0.lengthscale": tensor([0.1, 0.4]),
            "1.weight": tensor([0.5]),
            "noise": tensor(1e-3),
        }
        X = torch.as_tensor(np.random.default_rng(0).random((4, 3)))
        gp = GP.of(kernel, theta, X, X.sum(1))
        wide = scale_lengthscales(gp, 3.0).theta
        np.testing.assert_allclose(wide["0.lengthscale"], [0.3, 1.2])
        assert wide["1.weight"] == 0.5
        assert wide["noise"] == 1e-3
        assert largest_multiple(gp) == pytest.approx(math.sqrt(3) / 0.2)

    def test_a_model_without_lengthscales_has_no_room(self) -> None:
        theta = {"weight": tensor([0.5]), "noise": tensor(1e-3)}
        X = tensor([[0.25], [0.75]])
        assert largest_multiple(GP.of(Hamming(1), theta, X, X[:, 0])) == 1.0


def test_discrete_columns_are_searched_on_their_grid() -> None:
    gp = model(d=4, n=12)
    grid = np.linspace(0.0, 1.0, 5)

    def snap(X: np.ndarray) -> np.ndarray:
        X = X.copy()
        X[:, 0] = grid[np.abs(X[:, :1] - grid).argmin(1)]
        return X

    region = cube(4)
    region = replace(region, starts=snap(region.starts), grids={0: grid}, snap=snap)
    f = acquisition_of(gp, "ei", gp.fitted().min(), len(gp.X))
    x = elastic(gp, "ei")(f, region, np.random.default_rng(0))
    assert x[0] in grid
    assert values(f, x[None])[0] > values(f, region.starts).max()
