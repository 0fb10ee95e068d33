"""The kernels of an embedding: what a model looks at in place of z, and the kernel on that.

Name         Looks at
learned      z; the kernel is of clip(B z), with rows B fitted to the data
low          z
high         the image
warped       the warped image
categorical  which values of the image differ
mixed        the image where values have an order, and which of the other values differ

Distances of images are root mean squares over the coordinates, so that one prior of the
length-scale serves any number of them, and a sample of the rows of A gives nearly the distances of
all rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from raybo.lazy import torch
from raybo.methods.rembo.embedding import Embedding
from raybo.methods.rembo.features import (
    Features,
    images,
    indicators,
    value_counts,
    warped_images,
)
from raybo.surrogate.kernels.base import Kernel, OnColumns, Product
from raybo.surrogate.kernels.projected import Projected
from raybo.surrogate.kernels.stationary import SE, Matern52, Stationary, lengthscale_prior

KERNELS = ("learned", "low", "high", "warped", "categorical", "mixed")
MOST_ROWS = 6  # of B; `raybo bench peers-high`: Hartmann6 has six directions, Branin two


@dataclass(frozen=True)
class View:
    """What a model looks at in place of z, and the kernel on that."""

    features: Features | None  # None: z itself
    kernel: Kernel
    smooth: bool  # whether features have a useful derivative in z


def view_of(name: str, embedding: Embedding) -> View:
    """Return the view of the kernel called `name`."""
    d, everything = embedding.d, tuple(range(len(embedding.columns)))
    if name == "learned":
        return View(None, Projected(Matern52(min(d, MOST_ROWS)), d, clip=True), smooth=True)
    if name == "low":
        return View(lambda Z: (Z / embedding.bound + 1.0) / 2.0, Matern52(d), smooth=True)
    if name == "warped":
        features = _divided(warped_images(embedding), len(everything))
        return View(features, Matern52(d), smooth=not embedding.discrete)
    if name == "high":
        return _image_view(embedding, everything, ())
    if name == "categorical":
        return _image_view(embedding, (), everything)
    ordered = tuple(i for i in everything if i not in embedding.unordered)
    return _image_view(embedding, ordered, embedding.unordered)


def _image_view(
    embedding: Embedding, ordered: tuple[int, ...], unordered: tuple[int, ...]
) -> View:
    """By distance at some columns of the image, by equality at others, or the product of both."""
    prior = lengthscale_prior(embedding.d)
    parts: list[tuple[Features, Stationary]] = []
    if ordered:
        kernel = Matern52(len(ordered), ard=False, prior=prior)
        parts.append((_divided(images(embedding, ordered), len(ordered)), kernel))
    if unordered:
        kernel = SE(sum(value_counts(embedding.space, unordered)), ard=False, prior=prior)
        parts.append((_divided(indicators(embedding, unordered), len(unordered)), kernel))
    smooth = not (unordered or embedding.discrete)
    if len(parts) == 1:
        return View(*parts[0], smooth)
    (distances, by_distance), (values, by_equality) = parts
    edges = range(by_distance.dim), range(by_distance.dim, by_distance.dim + by_equality.dim)
    both = Product(
        (OnColumns(by_distance, tuple(edges[0])), OnColumns(by_equality, tuple(edges[1])))
    )
    return View(lambda Z: torch.cat([distances(Z), values(Z)], 1), both, smooth)


def _divided(features: Features, m: int) -> Features:
    """Features over the root of the number of coordinates: distances are root mean squares."""
    return lambda Z: features(Z) / math.sqrt(m)
