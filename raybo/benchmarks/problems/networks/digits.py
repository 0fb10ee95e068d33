"""A small network on scikit-learn's digits: validation loss by seven hyperparameters."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from raybo.surrogate.linalg import one_thread

EPOCHS = 6
IMAGES = 1200  # to train on; the other 597 validate


@cache
def digits() -> tuple[Tensor, Tensor]:
    """Return the images as rows in [0, 1], and their digits."""
    X, y = load_digits(return_X_y=True)
    return torch.tensor(X, dtype=torch.float32) / 16, torch.tensor(y)


def validation_loss(config: Mapping[str, Any]) -> float:
    """Return the cross entropy after training; the same config gives the same value.

    Parameters
    ----------
    config
        `lr`, `momentum`, `weight_decay`, `width`, `layers`, `dropout`, `batch`.
    """
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return _train(config)


def _train(config: Mapping[str, Any]) -> float:
    X, y = digits()
    layers: list[nn.Module] = []
    width = 64
    for _ in range(config["layers"]):
        layers += [nn.Linear(width, config["width"]), nn.ReLU(), nn.Dropout(config["dropout"])]
        width = config["width"]
    net = nn.Sequential(*layers, nn.Linear(width, 10))
    optimizer = torch.optim.SGD(
        net.parameters(),
        lr=config["lr"],
        momentum=config["momentum"],
        weight_decay=config["weight_decay"],
    )
    for _ in range(EPOCHS):
        net.train()
        order = torch.randperm(IMAGES)
        for start in range(0, IMAGES, config["batch"]):
            batch = order[start : start + config["batch"]]
            optimizer.zero_grad()
            loss: Any = nn.functional.cross_entropy(net(X[batch]), y[batch])
            loss.backward()
            optimizer.step()
    net.eval()
    with torch.no_grad():
        return float(nn.functional.cross_entropy(net(X[IMAGES:]), y[IMAGES:]))
