from __future__ import annotations

import pickle

import numpy as np
import pytest

from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.problems.noise import CONFIGS, SHARE
from raybo.benchmarks.problems.registry import get_problem


def test_draws_scatter_about_the_exact_value_by_a_tenth_of_the_quartiles() -> None:
    exact, noisy = get_problem("branin"), get_problem("branin-noisy")
    noisy = pickle.loads(pickle.dumps(noisy))
    assert (noisy.name, noisy.optimum) == ("branin-noisy", exact.optimum)
    rng, space = np.random.default_rng(0), exact.space
    config = space.draw(np.random.default_rng(1))
    assert noisy.objective(config) == exact.objective(config)
    assert noisy.draw is not None
    draws = [noisy.draw(config, rng) for _ in range(2000)]
    values = [exact.objective(space.draw(rng)) for _ in range(CONFIGS)]
    deviation = SHARE * np.subtract(*np.quantile(values, [0.75, 0.25]))
    assert np.std(draws) == pytest.approx(deviation, rel=0.15)
    assert np.mean(draws) == pytest.approx(exact.objective(config), abs=4 * deviation / 2000**0.5)


def test_noise_is_added_once() -> None:
    with pytest.raises(BenchmarkError, match="'branin-noisy' is noisy already"):
        get_problem("branin-noisy-noisy")
