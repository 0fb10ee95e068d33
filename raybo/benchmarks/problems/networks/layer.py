"""A layer of a real network as a search space: its weights proposed, the others trained.

BOCK, section 4.2 and Figure 5: 784 - hidden - 10 with ReLU on MNIST. The objective gets W2, the
hidden x 10 weights of the last layer in [-1, 1], trains W1, b1 and b2 by Adam, and returns the
cross-entropy on the test set: it measures how well W2 was optimised, not how the network
generalises. The paper continues training from one evaluation to the next; here every evaluation
starts at the same W1, so that the value depends on the config alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from raybo.benchmarks.problems.base import BenchmarkError, Problem
from raybo.benchmarks.problems.networks.mnist import mnist
from raybo.space.box import Box

PIXELS, CLASSES = 784, 10
BATCH, RATE = 256, 3e-3


@dataclass(frozen=True)
class Layer:
    """Test loss of the network with W2 given, after one epoch of Adam on the rest.

    Attributes
    ----------
    dim : int
        Number of weights of W2, ten for each hidden unit.
    images : int
        Number of training images, at most 60,000.
    """

    dim: int
    images: int = 10_000

    def __call__(self, config: Mapping[str, Any]) -> float:
        """Return the value at {"x": the weights}."""
        W2 = torch.as_tensor(np.asarray(config["x"], dtype=np.float32)).reshape(-1, CLASSES)
        X, y, X_test, y_test = _tensors(self.images)
        rng = np.random.default_rng(0)  # the same start and the same batches every time
        start = rng.standard_normal((PIXELS, len(W2))) / np.sqrt(PIXELS / 2)
        W1 = torch.as_tensor(start, dtype=torch.float32)
        rest = [p.requires_grad_() for p in (W1, torch.zeros(len(W2)), torch.zeros(CLASSES))]
        optimizer = torch.optim.Adam(rest, lr=RATE)
        for batch in np.array_split(rng.permutation(len(X)), max(1, len(X) // BATCH)):
            rows = torch.from_numpy(batch)
            optimizer.zero_grad()
            loss = cross_entropy(_logits(X[rows], rest, W2), y[rows])
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        with torch.no_grad():
            return float(cross_entropy(_logits(X_test, rest, W2), y_test))


def _logits(X: Tensor, rest: list[Tensor], W2: Tensor) -> Tensor:
    W1, b1, b2 = rest
    return torch.relu(X @ W1 + b1) @ W2 + b2


@lru_cache(maxsize=2)
def _tensors(images: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return training images and labels, test images and labels."""
    data = mnist()
    (X, y), (X_test, y_test) = data["train"], data["test"]
    parts = (X[:images], y[:images], X_test, y_test)
    return tuple(torch.from_numpy(part) for part in parts)  # type: ignore[return-value]


def layer(dim: int) -> Problem:
    """Return the problem with `dim` weights: 100, 200 and 500 in the paper."""
    if dim % CLASSES or dim < CLASSES:
        raise BenchmarkError(f"a layer has 10 weights for each hidden unit, got {dim} weights")
    return Problem(
        f"layer{dim}",
        partial(Box, dim),
        Layer(dim),
        evaluations=200,
        description=f"Last layer of a 784-{dim // CLASSES}-10 network on MNIST: test loss",
        cost="about a second on one core, after MNIST was fetched",
    )
