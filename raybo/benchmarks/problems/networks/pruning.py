"""Pruning a trained network, and choosing its activations, block by block (Add-Tree, 5.3 and 5.4).

The paper prunes VGG16 and searches the activations of ResNet20 on CIFAR-10, with GPUs. The trees
here are the paper's, on a network that a core trains in seconds: 9 hidden layers of 160 units in 3
blocks, on 10,000 digits of MNIST. `device` moves it to a GPU.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, elu, leaky_relu, relu

from raybo.benchmarks.problems.base import Problem
from raybo.benchmarks.problems.conditional import BLOCKS, blocks_space
from raybo.benchmarks.problems.datasets import cached
from raybo.benchmarks.problems.networks.mnist import mnist
from raybo.space.parameters import Choice, Float
from raybo.space.space import Space

logger = logging.getLogger(__name__)

LAYERS = 3  # of a block
SIZES = (784, *(160,) * (BLOCKS * LAYERS), 10)
IMAGES, VALIDATION = 10_000, 5_000  # the first of MNIST's training set, and those after them
BATCH, RATE = 128, 1e-3
BASE_EPOCHS, TUNING_EPOCHS, ACTIVATION_EPOCHS = 8, 2, 3

Activation = Callable[[Tensor], Tensor]


@lru_cache(maxsize=1)
def _images(device: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return training images and labels, validation images and labels."""
    X, y = (torch.from_numpy(part).to(device) for part in mnist()["train"])
    until = IMAGES + VALIDATION
    return X[:IMAGES], y[:IMAGES], X[IMAGES:until], y[IMAGES:until]


def start(device: str) -> list[Tensor]:
    """Return weights and biases in turn, always the same."""
    rng = np.random.default_rng(0)
    found = []
    for a, b in pairwise(SIZES):
        found += [rng.standard_normal((a, b)) * np.sqrt(2.0 / a), np.zeros(b)]
    return [torch.tensor(part, dtype=torch.float32, device=device) for part in found]


def logits(X: Tensor, net: list[Tensor], activations: list[Activation]) -> Tensor:
    """Return the outputs of the network; the last layer has no activation."""
    for i, activation in enumerate(activations):
        X = activation(X @ net[2 * i] + net[2 * i + 1])
    return X @ net[-2] + net[-1]


def train(
    net: list[Tensor], activations: list[Activation], epochs: int, masks: Mapping[int, Tensor]
) -> float:
    """Train `net` by Adam, masked entries staying 0, and return its validation accuracy."""
    X, y, X_valid, y_valid = _images(net[0].device.type)
    parameters = [part.requires_grad_() for part in net]
    optimizer = torch.optim.Adam(parameters, RATE)
    rng = np.random.default_rng(1)
    for _ in range(epochs):
        for batch in np.array_split(rng.permutation(len(X)), len(X) // BATCH):
            rows = torch.from_numpy(batch).to(X.device)
            optimizer.zero_grad()
            loss = cross_entropy(logits(X[rows], net, activations), y[rows])
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            with torch.no_grad():
                for i, mask in masks.items():
                    net[i] *= mask
    with torch.no_grad():
        right = logits(X_valid, net, activations).argmax(1) == y_valid
        return float(right.float().mean())


def pruning_space() -> Space:
    """Return a method per block, a ratio per layer; a layer pruned at 1 would output nothing."""
    return blocks_space(0.99)


def keep_mask(weights: Tensor, method: str, ratio: float) -> Tensor:
    """Return 1 where a weight stays: "l1" drops small weights, "l2" columns of small norm."""
    score = weights.abs() if method == "l1" else weights.norm(dim=0)
    n_gone = round(ratio * score.numel())
    gone = torch.zeros(score.numel(), dtype=torch.bool, device=weights.device)
    gone[score.flatten().argsort()[:n_gone]] = True
    return (~gone).reshape(score.shape).expand_as(weights).to(weights.dtype)


@dataclass(frozen=True)
class Pruning:
    """Accuracy after pruning and two epochs, plus the share of weights that are gone; up to 2."""

    device: str = "cpu"

    def __call__(self, config: Mapping[str, Any]) -> float:
        """Return the value; the network is trained on first use and kept in the cache."""
        net = [part.to(self.device) for part in _base()]
        masks = {}
        for k in range(BLOCKS):
            [(method, ratios)] = config[f"block{k}"].items()
            for i, ratio in enumerate(ratios.values()):
                at = 2 * (k * LAYERS + i)
                masks[at] = keep_mask(net[at], method, ratio)
        for at, mask in masks.items():
            net[at] = net[at] * mask
        kept = sum(float(mask.sum()) for mask in masks.values())
        share = kept / sum(mask.numel() for mask in masks.values())
        return train(net, [relu] * (BLOCKS * LAYERS), TUNING_EPOCHS, masks) + 1.0 - share


def _base() -> list[Tensor]:
    with np.load(cached(f"pruning-{BASE_EPOCHS}.npz", _make_base)) as stored:
        return [torch.from_numpy(stored[f"p{i}"]) for i in range(2 * (len(SIZES) - 1))]


def _make_base(path: Path) -> None:
    logger.info("training the network of pruning: %d epochs, once", BASE_EPOCHS)
    net = start("cpu")
    train(net, [relu] * (BLOCKS * LAYERS), BASE_EPOCHS, {})
    with path.open("wb") as file:
        parts: dict[str, Any] = {f"p{i}": part.detach().numpy() for i, part in enumerate(net)}
        np.savez(file, **parts)


def activation_space() -> Space:
    """Return ELU or leaky ReLU per block, with a parameter for its first layer and the others."""
    both = {"first": Float(0, 1), "others": Float(0, 1)}
    choice = Choice({"elu": both, "lrelu": both})
    return Space({f"block{k}": choice for k in range(BLOCKS)})


@dataclass(frozen=True)
class Activations:
    """Validation accuracy of the network, trained from the same start."""

    device: str = "cpu"

    def __call__(self, config: Mapping[str, Any]) -> float:
        """Return the value at a config."""
        return train(start(self.device), chosen_activations(config), ACTIVATION_EPOCHS, {})


def chosen_activations(config: Mapping[str, Any]) -> list[Activation]:
    """Return the activation of each hidden layer."""
    found: list[Activation] = []
    for k in range(BLOCKS):
        [(name, own)] = config[f"block{k}"].items()
        found.append(_activation(name, own["first"]))
        found += [_activation(name, own["others"])] * (LAYERS - 1)
    return found


def _activation(name: str, parameter: float) -> Activation:
    if name == "elu":
        return lambda X: elu(X, alpha=parameter)
    return lambda X: leaky_relu(X, negative_slope=parameter)


def pruning() -> Problem:
    """Return the problem of 3 blocks, each with 2 methods of 3 ratios."""
    return Problem(
        "pruning",
        pruning_space,
        Pruning(),
        mode="max",
        evaluations=100,
        description="Pruning 3 blocks of a network on MNIST: accuracy plus share of weights gone",
        cost="2 s, after half a minute of training on first use",
    )


def activations() -> Problem:
    """Return the problem of 3 blocks, each with 2 activations of 2 parameters."""
    return Problem(
        "activations",
        activation_space,
        Activations(),
        mode="max",
        evaluations=100,
        description="Activation of each of 3 blocks of a network on MNIST: accuracy",
        cost="3 s",
    )
