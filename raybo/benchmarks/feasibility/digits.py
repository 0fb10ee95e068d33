"""Scikit-learn's digits, and networks that are trained on them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor
from torch.nn import Sequential
from torch.optim import Optimizer

TRAINED = 1200  # images; the other 597 are for what a network is judged by


@cache
def digits() -> tuple[Tensor, Tensor]:
    """Return the images (1797, 64) and what they show."""
    from sklearn.datasets import load_digits  # noqa: PLC0415  (slow to import, seldom needed)

    X, y = load_digits(return_X_y=True)
    return torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)


def descend(
    net: Sequential,
    optimizer: Optimizer,
    loss: Callable[[Tensor, Tensor], Tensor],
    wanted: Tensor,
    order: torch.Generator,
    epochs: int,
) -> None:
    """Train on batches of 64 in random order; `wanted` is what the images should give."""
    X, _ = digits()
    for _ in range(epochs):
        for batch in torch.split(torch.randperm(TRAINED, generator=order), 64):
            optimizer.zero_grad()
            loss(net(X[batch]), wanted[batch]).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
