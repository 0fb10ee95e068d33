"""The oracle of `raybo bench noise-limit`."""

from __future__ import annotations

import numpy as np

from raybo.benchmarks.suites.noise_limit import Oracle, neighbours


def test_neighbours_are_one_step_away_where_values_have_an_order_and_all_others_elsewhere():
    table = np.array([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]])
    found = neighbours(table, [0])
    assert found[0, 0] == (8.0 + 2.0) / 2
    assert found[0, 1] == (16.0 + 1.0 + 4.0) / 3
    assert found[1, 2] == (4.0 + 16.0) / 2


def oracle(noise: float) -> Oracle:
    """100 configs of equal neighbours, whose own values are drawn with this deviation."""
    rng = np.random.default_rng(0)
    regret = 0.1 * rng.standard_normal(100)
    draws = noise * rng.standard_normal((100, 400))
    return Oracle(np.zeros(100), regret, regret[:, None] + draws - draws.mean(1)[:, None])


def test_without_noise_an_oracle_finds_the_best_of_the_configs_it_draws():
    exact = oracle(noise=1e-6)
    assert exact.mean_regret(100, repeats=3) == exact.regret.min()
    assert exact.mean_regret(12, repeats=3) == exact.regret[:12].min()


def test_noise_costs_regret():
    noisy = oracle(noise=0.3)
    assert noisy.regret.min() < noisy.mean_regret(100, repeats=50) < noisy.regret.mean()


def test_repeated_draws_save_some_of_the_regret():
    noisy = oracle(noise=0.3)
    only = np.arange(20)
    few = Oracle(noisy.expected[only], noisy.regret[only], noisy.draws[only])
    once = np.mean([few.regret[_lowest_of_one_draw(few, seed)] for seed in range(50)])
    assert few.mean_regret(20, repeats=50) < once


def _lowest_of_one_draw(table: Oracle, seed: int) -> int:
    columns = np.random.default_rng(seed).integers(table.draws.shape[1], size=len(table.draws))
    return int(np.argmin(table.draws[np.arange(len(table.draws)), columns]))
