from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.problems.networks import layer as module
from raybo.benchmarks.problems.registry import get_problem


@pytest.fixture
def digits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ten noisy patterns instead of MNIST."""
    rng = np.random.default_rng(0)
    patterns = rng.random((10, 784)) > 0.7

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        labels = rng.integers(10, size=n)
        images = 0.8 * patterns[labels] + 0.2 * rng.random((n, 784))
        return images.astype(np.float32), labels

    made = {"train": draw(1500), "test": draw(300)}
    monkeypatch.setattr(module, "mnist", lambda: made)
    module._tensors.cache_clear()
    yield
    module._tensors.cache_clear()


@pytest.mark.usefixtures("digits")
def test_the_value_is_a_function_of_the_config_alone() -> None:
    problem = get_problem("layer100")
    config = {"x": np.random.default_rng(1).uniform(-1, 1, 100)}
    torch.manual_seed(1)
    first = problem.objective(config)
    torch.manual_seed(2)
    assert problem.objective(config) == first
    assert problem.space.dim == 100


@pytest.mark.usefixtures("digits")
def test_no_weights_know_nothing_and_random_ones_something() -> None:
    problem = get_problem("layer200")
    assert problem.objective({"x": np.zeros(200)}) == pytest.approx(math.log(10), abs=0.05)
    some = problem.objective({"x": np.random.default_rng(1).uniform(-1, 1, 200)})
    assert some < 1.5


def test_a_layer_has_ten_weights_for_each_hidden_unit() -> None:
    with pytest.raises(BenchmarkError, match="10 weights for each hidden unit, got 105"):
        module.layer(105)
