"""A small convolutional network on a part of CIFAR-10: its accuracy after every epoch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

from raybo.benchmarks.problems.networks.cifar10 import training, usable_device
from raybo.space.parameters import Float, Int
from raybo.space.space import Space

EPOCHS = 27  # 3, 9 and 27 are the rungs of ASHA
IMAGES, VALIDATION = 10_000, 2_500  # the first of the training set, and those after them
STAGES = 3  # each halves the sides of the image and doubles the channels

SPACE = Space(
    {
        "lr": Float(1e-4, 1.0, log=True),
        "momentum": Float(0.0, 0.99),
        "weight_decay": Float(1e-6, 1e-1, log=True),
        "batch": Int(128, 1024, log=True),
        "width": Int(8, 64, log=True),
        "depth": Int(1, 3),
        "dropout": Float(0.0, 0.7),
    }
)


def network(config: Mapping[str, Any]) -> nn.Sequential:
    """Return the network of a config; the same start for the same shape."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers: list[nn.Module] = []
        before, width = 3, int(config["width"])
        for _ in range(STAGES):
            for _ in range(config["depth"]):
                layers += [
                    nn.Conv2d(before, width, 3, padding=1, bias=False),
                    nn.BatchNorm2d(width),
                    nn.ReLU(),
                ]
                before = width
            layers.append(nn.MaxPool2d(2))
            width *= 2
        pooled = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(config["dropout"])]
        return nn.Sequential(*layers, *pooled, nn.Linear(before, 10))


def accuracies(config: Mapping[str, Any], device: str) -> Iterator[float]:
    """Train, the rate falling along half a cosine; yield the accuracy in percent at each epoch."""
    place = usable_device(device, "cifar10-cnn", "a data set of LCBench")
    net = network(config).to(place)

    def rate(t: float) -> float:
        return float(config["lr"]) * 0.5 * (1.0 + math.cos(math.pi * t / EPOCHS))

    found = training(
        net,
        EPOCHS,
        config["batch"],
        rate,
        config["weight_decay"],
        momentum=config["momentum"],
        count=(IMAGES, VALIDATION),
        judged=range(1, EPOCHS + 1),
    )
    yield from (100.0 * accuracy for accuracy in found)
