"""Pruning a small trained network with ratios up to 1, where a layer loses all of its weights.

Five layers of 64 units, on scikit-learn's digits. Each is pruned by single weights or by whole
units; the value is 2 - accuracy - share of the weights that are gone, after one more epoch. A
network that guesses, with an accuracy below 0.2, has failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from typing import Any

import torch
from torch.nn import Linear, ReLU, Sequential
from torch.nn.functional import cross_entropy
from torch.nn.utils.prune import l1_unstructured, ln_structured

from raybo.benchmarks.feasibility.digits import TRAINED, descend, digits
from raybo.space.parameters import Choice, Float
from raybo.space.space import Space

LAYERS, UNITS = 5, 64
GUESSES = 0.2  # accuracy; one digit in ten is right by chance


def pruning_space() -> Space:
    """Return a way to prune and a ratio for each layer."""
    ratio = {"ratio": Float(0, 1)}
    return Space({f"layer{i}": Choice({"weights": ratio, "units": ratio}) for i in range(LAYERS)})


def prune(config: Mapping[str, Any]) -> tuple[float, float]:
    """Return the value and the accuracy after pruning and one epoch."""
    net = deepcopy(_trained())
    layers: list[Any] = [net[2 * i] for i in range(LAYERS)]
    for i, layer in enumerate(layers):
        [(way, own)] = config[f"layer{i}"].items()
        if way == "weights":
            n_gone = round(own["ratio"] * UNITS**2)
            l1_unstructured(layer, "weight", n_gone)  # type: ignore[no-untyped-call]
        else:
            n_gone = round(own["ratio"] * UNITS)
            ln_structured(layer, "weight", n_gone, n=2, dim=0)  # type: ignore[no-untyped-call]
    accuracy = _train(net, 1e-3, epochs=1)  # pruned weights stay 0
    gone = sum(int((layer.weight == 0).sum()) for layer in layers) / (LAYERS * UNITS**2)
    return 2.0 - accuracy - gone, accuracy


@cache
def _trained() -> Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        hidden = [part for _ in range(LAYERS) for part in (Linear(UNITS, UNITS), ReLU())]
        net = Sequential(*hidden, Linear(UNITS, 10))
    _train(net, 3e-3, epochs=15)
    return net


def _train(net: Sequential, rate: float, epochs: int) -> float:
    """Train by Adam and return the accuracy on the other images."""
    X, y = digits()
    order = torch.Generator().manual_seed(0)
    descend(net, torch.optim.Adam(net.parameters(), rate), cross_entropy, y, order, epochs)
    with torch.no_grad():
        return float((net(X[TRAINED:]).argmax(1) == y[TRAINED:]).float().mean())
