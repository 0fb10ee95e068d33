"""Death rates of the blocks of a network of stochastic depth (BOCK, section 4.3).

The paper tunes the rates of a ResNet-110 on CIFAR-100; here it is a network that a core can train:
24 residual blocks of 64 units on 8,000 digits of MNIST. In training a block is skipped with its
death rate p, and in testing its output is multiplied by 1 - p (Huang et al. 2016, eq. 5). As in
the paper, an evaluation continues from one network that was trained with linear rates, and returns
the loss on the validation set; here always with the same draws, so that the value depends on the
config alone.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, layer_norm, relu

from raybo.arrays import Array
from raybo.benchmarks.problems.base import Problem
from raybo.benchmarks.problems.datasets import cached
from raybo.benchmarks.problems.networks.mnist import mnist
from raybo.space.box import Box

logger = logging.getLogger(__name__)

BLOCKS, WIDTH, CLASSES = 24, 64, 10
IMAGES, VALIDATION, BATCH = 8_000, 4_000, 128
BASE_EPOCHS, BASE_RATE = 6, 1e-3
EPOCHS, RATE = 2, 5e-4
LINEAR = np.linspace(0.0, 0.5, BLOCKS)  # Huang et al.: from 0 to 1/2


@lru_cache(maxsize=1)
def _images() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    X, y = (torch.from_numpy(part) for part in mnist()["train"])
    until = IMAGES + VALIDATION
    return X[:IMAGES], y[:IMAGES], X[IMAGES:until], y[IMAGES:until]


def start() -> list[Tensor]:
    """Return the weights: into the blocks, two of each block, out of them."""
    rng = np.random.default_rng(0)
    shapes = [(784, WIDTH), *[(WIDTH, WIDTH)] * (2 * BLOCKS), (WIDTH, CLASSES)]
    return [
        torch.tensor(rng.standard_normal(shape) * np.sqrt(2.0 / shape[0]), dtype=torch.float32)
        for shape in shapes
    ]


def logits(X: Tensor, net: list[Tensor], scales: Array) -> Tensor:
    """Return the network's outputs; block i's is multiplied by scales[i], and 0 skips it."""
    h = X @ net[0]
    for i, scale in enumerate(scales):
        if scale:
            inner = relu(layer_norm(h, (WIDTH,)) @ net[1 + 2 * i]) @ net[2 + 2 * i]
            h = h + float(scale) * inner
    return layer_norm(h, (WIDTH,)) @ net[-1]


def train(net: list[Tensor], rates: Array, epochs: int, rate: float) -> float:
    """Train `net` by Adam with these death rates, and return its validation loss."""
    X, y, X_valid, y_valid = _images()
    optimizer = torch.optim.Adam([part.requires_grad_() for part in net], rate)
    rng = np.random.default_rng(1)
    for _ in range(epochs):
        for batch in np.array_split(rng.permutation(len(X)), len(X) // BATCH):
            alive = (rng.random(BLOCKS) >= rates).astype(np.float64)
            rows = torch.from_numpy(batch)
            optimizer.zero_grad()
            loss = cross_entropy(logits(X[rows], net, alive), y[rows])
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    with torch.no_grad():
        return float(cross_entropy(logits(X_valid, net, 1.0 - rates), y_valid))


@dataclass(frozen=True)
class StochasticDepth:
    """Validation loss after two more epochs with the death rates (x + 1) / 2, x in [-1, 1]."""

    def __call__(self, config: Mapping[str, Any]) -> float:
        """Return the value at {"x": one number for each block}."""
        rates = (np.asarray(config["x"], dtype=np.float64) + 1.0) / 2.0
        with np.load(cached(f"stochastic-depth-{BASE_EPOCHS}.npz", _make_base)) as stored:
            net = [torch.from_numpy(stored[f"p{i}"]) for i in range(2 * BLOCKS + 2)]
        return train(net, rates, EPOCHS, RATE)


def _make_base(path: Path) -> None:
    logger.info("training the network of stochastic-depth: %d epochs, once", BASE_EPOCHS)
    net = start()
    train(net, LINEAR, BASE_EPOCHS, BASE_RATE)
    with path.open("wb") as file:
        parts: dict[str, Any] = {f"p{i}": part.detach().numpy() for i, part in enumerate(net)}
        np.savez(file, **parts)


def stochastic_depth() -> Problem:
    """Return the problem in 24 dimensions."""
    return Problem(
        "stochastic-depth",
        partial(Box, BLOCKS),
        StochasticDepth(),
        evaluations=100,
        description="Death rates of 24 residual blocks on MNIST: validation loss",
        cost="1 s, after some seconds of training on first use",
    )
