"""Compressing a trained network: method and strength for each layer.

Add-Tree, section 5.2: FC3, a 784-1000-1000-10 network trained on MNIST, whose first two layers are
each replaced by a truncated singular value decomposition or have their small weights removed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from raybo.benchmarks.problems.base import Problem
from raybo.benchmarks.problems.datasets import cached
from raybo.benchmarks.problems.networks.mnist import Pixels, mnist
from raybo.space.parameters import Choice, Float, Int
from raybo.space.space import Space

logger = logging.getLogger(__name__)

Weights = NDArray[np.float32]
SIZES = (784, 1000, 1000, 10)
GAMMA = 0.01  # weight of the distance between the networks' outputs (eq. 17)
SAMPLES = 50  # images that estimate it
EPOCHS = 2


def fc3_space() -> Space:
    """Return the space: SVD rank or L1 threshold for each of the first two layers."""
    layer: dict[str, dict[str, Any]] = {
        "svd": {"rank": Int(10, 500)},
        "l1": {"threshold": Float(0, 1)},
    }
    return Space({"layer1": Choice(layer), "layer2": Choice(layer)})


@dataclass(frozen=True)
class Fc3:
    """0.01 mean |f~(x) - f(x)|^2 over 50 images, plus the share of weights kept (eq. 17)."""

    def __call__(self, config: Mapping[str, Any]) -> float:
        """Return the value; the network is trained on first use and kept in the cache."""
        net = _network()
        h: Any = net["images"]
        kept = float(net["w2"].size)
        for i in (0, 1):
            [(method, own)] = config[f"layer{i + 1}"].items()
            if method == "svd":
                rank = own["rank"]
                h = (h @ net[f"v{i}"][:rank].T) @ net[f"u{i}"][:, :rank].T
                kept += rank * (SIZES[i] + SIZES[i + 1])
            else:
                weights = net[f"w{i}"]
                left = np.abs(weights) >= own["threshold"]
                h = h @ np.where(left, weights, np.float32(0)).T
                kept += float(np.count_nonzero(left))
            h = np.maximum(h + net[f"b{i}"], np.float32(0))
        distance = np.sum((h @ net["w2"].T + net["b2"] - net["logits"]) ** 2, axis=1).mean()
        total = sum(a * b for a, b in pairwise(SIZES))
        return float(GAMMA * distance + kept / total)


def fc3() -> Problem:
    """Return the problem of Figure 4c."""
    return Problem(
        "fc3",
        fc3_space,
        Fc3(),
        evaluations=80,
        description="Compressing a 784-1000-1000-10 network: SVD rank or L1 threshold per layer",
        cost="milliseconds, after about 2 minutes of training on first use",
    )


@lru_cache(maxsize=1)
def _network() -> dict[str, Weights]:
    """Return weights, factors of the first two layers, the images and their outputs."""
    path = cached(f"fc3-{EPOCHS}.npz", _make_network)
    with np.load(path) as stored:
        return {name: stored[name] for name in stored.files}


def _make_network(path: Path) -> None:
    images, labels = mnist()["train"]
    logger.info("training the network of fc3: %d epochs, once", EPOCHS)
    net: dict[str, Weights] = {}
    layers = _train(images, labels)
    for i, layer in enumerate(layers):
        net[f"w{i}"], net[f"b{i}"] = (p.detach().numpy() for p in (layer.weight, layer.bias))
    for i in (0, 1):
        U, s, V = np.linalg.svd(net[f"w{i}"].astype(np.float64), full_matrices=False)
        net[f"u{i}"], net[f"v{i}"] = (U * s).astype(np.float32), V.astype(np.float32)
    h = net["images"] = images[np.random.default_rng(0).choice(len(images), SAMPLES, False)]
    for i in (0, 1):
        h = np.maximum(h @ net[f"w{i}"].T + net[f"b{i}"], 0)
    net["logits"] = h @ net["w2"].T + net["b2"]
    with path.open("wb") as file:
        np.savez(file, **net)  # type: ignore[arg-type]  # numpy's stubs: names are no options


def _train(images: Pixels, labels: NDArray[np.int64]) -> list[nn.Linear]:
    """Return the layers after Adam on batches of 128; they repeat with the same torch."""
    state = torch.random.get_rng_state()
    torch.manual_seed(0)
    layers = [nn.Linear(a, b) for a, b in pairwise(SIZES)]
    torch.random.set_rng_state(state)
    model = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])
    optimizer = torch.optim.Adam(model.parameters())
    X, y = torch.from_numpy(images), torch.from_numpy(labels)
    rng = np.random.default_rng(0)
    for _ in range(EPOCHS):
        for batch in np.array_split(rng.permutation(len(X)), len(X) // 128):
            optimizer.zero_grad()
            rows = torch.from_numpy(batch)
            loss = nn.functional.cross_entropy(model(X[rows]), y[rows])
            torch.autograd.backward(loss)
            optimizer.step()
    return layers
