"""Pruning VGG16 on CIFAR-10, block by block, on a GPU (Add-Tree, 5.3).

The 13 convolutions form 4 blocks, of 4, 3, 3 and 3. The first holds 1.77 % of the weights and is
left alone; each of the others is pruned by L1 (the smallest weights go) or by L2 (the output
channels of the smallest norm go), with a ratio per convolution. The value is the paper's S + T:
the share of convolutional weights that are gone plus the accuracy after two epochs of fine-tuning.

The paper names neither the pre-trained network nor how it is tuned; here 15 epochs from scratch,
and both trainings by momentum with a rate that rises for a fifth of the time and falls to 0. The
ratios end at 0.99: a layer that lost everything lets nothing pass, whatever the others keep.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from raybo.benchmarks.problems.base import Problem
from raybo.benchmarks.problems.conditional import BLOCKS, RATIOS
from raybo.benchmarks.problems.datasets import cached
from raybo.benchmarks.problems.networks.cifar10 import GPUS, train, usable_device
from raybo.benchmarks.problems.networks.pruning import keep_mask, pruning_space

logger = logging.getLogger(__name__)

WIDTHS, DEPTHS = (64, 128, 256, 512, 512), (2, 2, 3, 3, 3)  # between the poolings
FIRST = 4  # convolutions of the block that is not pruned
BASE_EPOCHS, TUNING_EPOCHS = 15, 2
BATCH, RATE, TUNING_RATE, DECAY = 256, 0.1, 0.05, 5e-4


def vgg16(widths: Sequence[int] = WIDTHS) -> nn.Sequential:
    """Return VGG16 with batch normalisation, for 32 x 32 pixels, always with the same weights."""
    layers: list[nn.Module] = []
    before = 3
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for width, depth in zip(widths, DEPTHS, strict=True):
            for _ in range(depth):
                convolution = nn.Conv2d(before, width, 3, padding=1, bias=False)
                nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
                layers += [convolution, nn.BatchNorm2d(width), nn.ReLU()]
                before = width
            layers.append(nn.MaxPool2d(2))
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(before, 10))


def convolutions(net: nn.Module) -> list[Tensor]:
    """Return the weights of the convolutions, in order."""
    return [layer.weight for layer in net.modules() if isinstance(layer, nn.Conv2d)]


def masks_of(net: nn.Module, config: Mapping[str, Any]) -> list[tuple[Tensor, Tensor]]:
    """Return the weights of the blocks that are pruned, and 1 where they stay."""
    weights = convolutions(net)
    found = []
    for k in range(BLOCKS):
        [(method, ratios)] = config[f"block{k}"].items()
        for i, ratio in enumerate(ratios.values()):
            weight = weights[FIRST + k * RATIOS + i]
            by_channel = weight.detach().flatten(1).T  # a column is an output channel
            mask = keep_mask(by_channel, method, ratio).T.reshape(weight.shape)
            found.append((weight, mask.contiguous(memory_format=torch.channels_last)))
    return found


def sparsity(net: nn.Module, masks: Sequence[tuple[Tensor, Tensor]]) -> float:
    """Return the share of all convolutional weights that are gone."""
    gone = sum(mask.numel() - float(mask.sum()) for _, mask in masks)
    return gone / sum(weight.numel() for weight in convolutions(net))


def triangle(peak: float, epochs: int) -> Callable[[float], float]:
    """Return the learning rate by epochs: from 0 to the peak in a fifth of them, and to 0."""
    return lambda t: peak * min(5.0 * t / epochs, 1.25 * (1.0 - t / epochs))


@dataclass(frozen=True)
class VggPruning:
    """Share of convolutional weights that are gone, plus accuracy after two epochs; up to 2."""

    device: str = "cuda"

    def __call__(self, config: Mapping[str, Any]) -> float:
        """Return the value; the network is trained on first use and kept in the cache."""
        device = usable_device(self.device, "vgg-pruning", "pruning")
        net = _on(device)
        net.load_state_dict(_base(device))
        masks = masks_of(net, config)
        with torch.no_grad():
            for weight, mask in masks:
                weight.mul_(mask)
        rate = triangle(TUNING_RATE, TUNING_EPOCHS)
        accuracy = train(net, TUNING_EPOCHS, BATCH, rate, DECAY, masks)
        return sparsity(net, masks) + accuracy


def _on(device: torch.device) -> nn.Sequential:
    net = vgg16().to(device)
    return net.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


@lru_cache(maxsize=1)
def _base(device: torch.device) -> dict[str, Tensor]:
    def make(path: Path) -> None:
        logger.info("training the network of vgg-pruning: %d epochs, once", BASE_EPOCHS)
        net = _on(device)
        accuracy = train(net, BASE_EPOCHS, BATCH, triangle(RATE, BASE_EPOCHS), DECAY)
        logger.info("its validation accuracy is %.4f", accuracy)
        torch.save(net.state_dict(), path)

    path = cached(f"vgg-pruning-{BASE_EPOCHS}.pt", make)
    weights: dict[str, Tensor] = torch.load(path, map_location=device, weights_only=True)
    return weights


def vgg_pruning() -> Problem:
    """Return the problem of Figure 5a."""
    return Problem(
        "vgg-pruning",
        pruning_space,
        VggPruning(),
        mode="max",
        evaluations=100,
        description="Pruning 3 blocks of VGG16 on CIFAR-10: share of weights gone plus accuracy",
        cost="2.6 s of a GPU, after half a minute of training on first use",
        gpus=GPUS,
    )
