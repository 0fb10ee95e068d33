"""Training a small network with learning rates that are too high for it: where it diverges.

One hidden layer, on scikit-learn's digits, by stochastic gradient descent with momentum, from new
weights each time. The value is the mean squared error of the ten outputs on other images. Whether
a network diverges depends on the weights that it begins with, so the edge is blurred; it moves
with the momentum and the number of units.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from numpy.random import Generator
from torch.nn import Linear, Sequential, Tanh
from torch.nn.functional import mse_loss, one_hot

from raybo.benchmarks.feasibility.digits import TRAINED, descend, digits
from raybo.space.parameters import Float, Int
from raybo.space.space import Space

SPACE = Space(
    {
        "rate": Float(1e-3, 100, log=True),
        "momentum": Float(0, 0.99),
        "units": Int(8, 128, log=True),
        "decay": Float(1e-6, 0.1, log=True),
    }
)
DIVERGED = 1.0  # error; outputs of 0 have 0.1


def train(config: Mapping[str, Any], rng: Generator) -> float | None:
    """Return the error of a trained network; None if it has diverged."""
    X, y = digits()
    wanted = one_hot(y, 10).to(X.dtype)
    order = torch.Generator().manual_seed(int(rng.integers(2**31)))
    with torch.random.fork_rng():
        torch.manual_seed(int(rng.integers(2**31)))
        net = Sequential(Linear(64, config["units"]), Tanh(), Linear(config["units"], 10))
    optimizer = torch.optim.SGD(
        net.parameters(), config["rate"], config["momentum"], weight_decay=config["decay"]
    )
    descend(net, optimizer, mse_loss, wanted, order, epochs=5)
    with torch.no_grad():
        error = float(mse_loss(net(X[TRAINED:]), wanted[TRAINED:]))
    return error if error <= DIVERGED else None
