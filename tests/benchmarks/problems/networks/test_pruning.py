from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from raybo.benchmarks.problems.networks import pruning, stochastic_depth
from raybo.benchmarks.problems.registry import get_problem


@pytest.fixture
def digits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Ten noisy patterns instead of MNIST, and short trainings."""
    rng = np.random.default_rng(0)
    patterns = rng.random((10, 784)) > 0.7
    labels = rng.integers(10, size=1500)
    images = (0.8 * patterns[labels] + 0.2 * rng.random((1500, 784))).astype(np.float32)
    monkeypatch.setenv("RAYBO_CACHE", str(tmp_path))
    for module in (pruning, stochastic_depth):
        monkeypatch.setattr(module, "mnist", lambda: {"train": (images, labels)})
        monkeypatch.setattr(module, "IMAGES", 1000)
        monkeypatch.setattr(module, "VALIDATION", 500)
        monkeypatch.setattr(module, "BASE_EPOCHS", 3)
        module._images.cache_clear()
    yield
    for module in (pruning, stochastic_depth):
        module._images.cache_clear()


@pytest.mark.parametrize("method", ["l1", "l2"])
def test_masks_drop_the_smallest_weights_or_columns(method: str) -> None:
    weights = torch.tensor([[1.0, -5.0, 0.1], [2.0, 4.0, -0.2]])
    mask = pruning.keep_mask(weights, method, 1 / 3)
    assert mask.tolist() == [[1, 1, 0], [1, 1, 0]]
    assert pruning.keep_mask(weights, method, 0.0).all()
    assert not pruning.keep_mask(weights, method, 1.0).any()


@pytest.mark.usefixtures("digits")
def test_pruning_counts_what_is_gone_and_everything_gone_knows_nothing() -> None:
    space = get_problem("pruning").space
    config = space.decode(np.full(space.dim, 0.25))

    def with_ratio(ratio: float) -> dict:
        return {
            block: {name: dict.fromkeys(own, ratio) for name, own in chosen.items()}
            for block, chosen in config.items()
        }

    objective = pruning.Pruning()
    assert objective(with_ratio(0.0)) > 0.9  # all of it accuracy
    halved = objective(with_ratio(0.5))
    assert halved == pytest.approx(1.5, abs=0.1)
    assert objective(with_ratio(1.0)) == pytest.approx(1.1, abs=0.1)
    assert objective(with_ratio(0.5)) == halved


@pytest.mark.usefixtures("digits")
def test_a_block_s_activations_are_torchs_with_its_parameters() -> None:
    elu = {"elu": {"first": 0.3, "others": 0.6}}
    config = {"block0": elu, "block1": {"lrelu": {"first": 0.2, "others": 0.9}}, "block2": elu}
    found = pruning.chosen_activations(config)
    nn = torch.nn
    wanted = [nn.ELU(0.3), nn.ELU(0.6), nn.ELU(0.6)]
    wanted = [*wanted, nn.LeakyReLU(0.2), nn.LeakyReLU(0.9), nn.LeakyReLU(0.9), *wanted]
    Z = torch.linspace(-2, 2, 9)
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours(Z), theirs(Z))
    assert pruning.Activations()(config) > 0.8


@pytest.mark.usefixtures("digits")
def test_blocks_that_never_live_leave_a_linear_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stochastic_depth, "BASE_EPOCHS", 1)
    objective = stochastic_depth.StochasticDepth()
    alive, dead = objective({"x": np.full(24, -1.0)}), objective({"x": np.ones(24)})
    assert alive == objective({"x": np.full(24, -1.0)})
    assert alive != dead
    X = torch.rand(5, 784)
    net = stochastic_depth.start()
    linear = torch.nn.functional.layer_norm(X @ net[0], (64,)) @ net[-1]
    torch.testing.assert_close(stochastic_depth.logits(X, net, np.zeros(24)), linear)
