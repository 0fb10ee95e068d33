"""Choosing the activations of ResNet20 on CIFAR-10, on a GPU (Add-Tree, 5.4).

Each of the three stages has ELU or leaky ReLU, with a parameter for the first and one for the
second activation of all its basic blocks. As in the paper every evaluation trains for 10 epochs
by momentum, batches of 128, at rate 0.1, 0.01 from the 7th epoch and 0.001 from the 9th.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, pad, relu

from raybo.benchmarks.problems.base import Problem
from raybo.benchmarks.problems.conditional import BLOCKS
from raybo.benchmarks.problems.networks.cifar10 import GPUS, train, usable_device
from raybo.benchmarks.problems.networks.pruning import activation_space

EPOCHS, BATCH = 10, 128
WIDTHS, DEPTH = (16, 32, 64), 3  # of the stages; basic blocks of each


def activation(name: str, parameter: float) -> nn.Module:
    """Return ELU with alpha, or leaky ReLU with a slope."""
    return nn.ELU(parameter) if name == "elu" else nn.LeakyReLU(parameter)


class BasicBlock(nn.Module):
    """Two convolutions and a shortcut, which drops pixels and adds zero channels where needed."""

    def __init__(self, before: int, width: int, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.stride = width // before
        self.conv1 = nn.Conv2d(before, width, 3, self.stride, padding=1, bias=False)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
        self.first, self.second = first, second

    def forward(self, X: Tensor) -> Tensor:
        """Return the output of the block."""
        Z = self.norm2(self.conv2(self.first(self.norm1(self.conv1(X)))))
        new = Z.shape[1] - X.shape[1]
        short = pad(X[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, new // 2, new // 2))
        out: Tensor = self.second(Z + short)
        return out


class ResNet(nn.Module):
    """ResNet20 of He et al. (2016) for 32 x 32 pixels, its activations given; the same start."""

    def __init__(self, config: Mapping[str, Any], widths: Sequence[int] = WIDTHS) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.conv = nn.Conv2d(3, widths[0], 3, padding=1, bias=False)
            self.norm = nn.BatchNorm2d(widths[0])
            blocks = []
            before = widths[0]
            for k in range(BLOCKS):
                [(name, own)] = config[f"block{k}"].items()
                for _ in range(DEPTH):
                    both = (activation(name, own[which]) for which in ("first", "others"))
                    blocks.append(BasicBlock(before, widths[k], *both))
                    before = widths[k]
            self.blocks = nn.Sequential(*blocks)
            self.last = nn.Linear(before, 10)

    def forward(self, X: Tensor) -> Tensor:
        """Return the outputs of the network."""
        Z = self.blocks(relu(self.norm(self.conv(X))))
        logits: Tensor = self.last(avg_pool2d(Z, Z.shape[-1]).flatten(1))
        return logits


def rate(t: float) -> float:
    """Return the learning rate after t epochs."""
    return 0.1 if t < 6 else 0.01 if t < 8 else 0.001


@dataclass(frozen=True)
class ResnetActivations:
    """Validation accuracy of ResNet20 with the activations, trained from the same start."""

    device: str = "cuda"

    def __call__(self, config: Mapping[str, Any]) -> float:
        """Return the value at a config."""
        device = usable_device(self.device, "resnet-activations", "activations")
        net = ResNet(config).to(device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return train(net, EPOCHS, BATCH, rate)


def resnet_activations() -> Problem:
    """Return the problem of Figure 6."""
    return Problem(
        "resnet-activations",
        activation_space,
        ResnetActivations(),
        mode="max",
        evaluations=100,
        description="Activation of each of 3 stages of ResNet20 on CIFAR-10: accuracy",
        cost="half a minute of a GPU",
        gpus=GPUS,
    )
