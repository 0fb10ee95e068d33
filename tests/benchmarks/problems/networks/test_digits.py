"""The network on digits: a fixed function of the config."""

from __future__ import annotations

import math

import torch

from raybo.benchmarks.problems.networks.digits import validation_loss

CONFIG = {
    "lr": 0.1,
    "momentum": 0.9,
    "weight_decay": 1e-5,
    "width": 16,
    "layers": 1,
    "dropout": 0.1,
    "batch": 128,
}


def test_training_learns_and_repeats_exactly() -> None:
    state = torch.random.get_rng_state()
    loss = validation_loss(CONFIG)
    assert loss < 1.0 < math.log(10)
    assert validation_loss(CONFIG) == loss
    assert torch.equal(torch.random.get_rng_state(), state)
