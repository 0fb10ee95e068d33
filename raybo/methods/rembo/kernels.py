"""The kernels of REMBO: what a model looks at when it looks at z, and the kernel on that.

Name         Looks at                                                    Source
low          z                                                           definition 4
high         clip(A z)                                                   section 3.2
warped       clip(A z) back in the span of A, pushed outwards            Binois et al. 2015
learned      clip(B z), B fitted to the data                             here
categorical  which values s(A z) differ                                  section 3.2
mixed        both, each for its own columns, as a product                section 3.2

As printed, k = exp(-lambda/2 h^2) with h the number of differing values is not positive
semidefinite (two binary columns and small lambda: the eigenvalue 1 - 2 exp(-lambda/2) +
exp(-2 lambda) is negative). With h as the squared distance, exp(-lambda/2 h), it is: h is the
squared Euclidean distance of the indicator vectors, divided by 2. That is what is built here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from raybo.arrays import Array
from raybo.errors import MethodError
from raybo.methods.rembo.embedding import Embedding
from raybo.methods.rembo.features import Clipped, LearntRows, Warped
from raybo.space.any_space import AnySpace
from raybo.space.box import Box
from raybo.surrogate.kernels.base import Kernel, OnColumns, Product
from raybo.surrogate.kernels.stationary import SE, Matern52, lengthscale_prior

Features = Callable[[Tensor], Tensor]  # (n, d) -> (n, p)

KERNELS = ("low", "high", "warped", "learned", "categorical", "mixed")
MOST_ROWS = 6  # learned rows: directions of z that a model of some hundred points can tell apart
MOST_VALUES = 1000  # of a column under the categorical kernel


@dataclass(frozen=True)
class View:
    """How a model sees z: its features, and the kernel on them."""

    features: Features
    kernel: Kernel
    smooth: bool  # whether the features have a useful derivative in z


def view(name: str, embedding: Embedding) -> View:
    """View of the kernel called `name`."""
    d = embedding.d
    prior = lengthscale_prior(d)
    if name == "low":
        return View(lambda Z: Z / (2.0 * embedding.bound) + 0.5, Matern52(d), smooth=True)
    if name == "learned":
        return View(lambda Z: Z, LearntRows(d, min(d, MOST_ROWS)), smooth=True)
    smooth = not embedding.discrete
    if name == "warped":
        return View(warped(embedding), Matern52(d), smooth)
    if name == "high":
        ordered = tuple(range(len(embedding.columns)))
        kernel = Matern52(len(ordered), ard=False, prior=prior)
        return View(lambda Z: images(embedding, Z, ordered), kernel, smooth)
    ordered, unordered = split_columns(embedding.space)
    if name == "categorical" or not ordered:
        everything = tuple(range(embedding.space.dim))
        codes = indicator(embedding, everything)
        return View(codes, SE(1, ard=False, prior=prior), smooth=False)
    distances = Matern52(len(ordered), ard=False, prior=prior)
    if not unordered:
        return View(lambda Z: images(embedding, Z, ordered), distances, smooth)
    codes = indicator(embedding, unordered)
    width = codes(torch.zeros(1, d, dtype=torch.float64)).shape[1]
    n = len(ordered)
    both = Product(
        (
            OnColumns(distances, tuple(range(n))),
            OnColumns(SE(width, ard=False, prior=prior), tuple(range(n, n + width))),
        )
    )
    return View(
        lambda Z: torch.cat([images(embedding, Z, ordered), codes(Z)], 1), both, smooth=False
    )


def paper_features(name: str, embedding: Embedding) -> Features:
    """Features whose Euclidean distances are those of the paper's kernels.

    Every kernel of the paper is then exp(-r^2 / (2 l^2)) with one length-scale l; the categorical
    one has lambda = 1 / l^2, and a mixed one is the product at the same l.
    """
    if name == "low":
        return lambda Z: Z
    features = view(name, embedding).features
    # Distances are means over the coordinates there, sums in the paper.
    return lambda Z: features(Z) * embedding.space.dim**0.5


def default_kernel(space: AnySpace, preset: str) -> str:
    """Kernel that suits the columns of a space."""
    if not isinstance(space, Box) and split_columns(space)[1]:
        return "mixed"
    return "low" if preset == "paper" else "learned"


def check_kernel(name: str, space: AnySpace, preset: str) -> None:
    """Refuse a kernel that the space or the preset has no use for."""
    if name == "learned" and preset == "paper":
        raise MethodError(
            "kernel 'learned' is not the paper's; give no preset, or kernel 'low' or 'high'"
        )
    if name == "categorical" and not _few_values(space):
        raise MethodError(
            f"kernel 'categorical' needs columns of at most {MOST_VALUES} values each, and this "
            "space has others; use kernel 'mixed'"
        )


def _few_values(space: AnySpace) -> bool:
    return not isinstance(space, Box) and all(
        c.parameter.grid is not None and c.parameter.grid.size <= MOST_VALUES
        for c in space.columns
    )


def split_columns(space: AnySpace) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Columns whose values have an order, and the others."""
    unordered = tuple(i for i, c in enumerate(space.columns) if c.kind == "categorical")
    return tuple(i for i in range(space.dim) if i not in unordered), unordered


def images(embedding: Embedding, Z: Tensor, columns: tuple[int, ...]) -> Tensor:
    """Coordinates of the images at the columns looked at, root mean squares as distances."""
    chosen = list(columns)
    if not embedding.discrete:
        return Clipped(torch.as_tensor(embedding.rows[chosen]))(Z)
    return _snapped(embedding, Z)[:, chosen] / math.sqrt(len(chosen))


def warped(embedding: Embedding) -> Features:
    """Warped images, of the snapped values where there are any."""
    warp = Warped(torch.as_tensor(embedding.rows))
    if not embedding.discrete:
        return warp
    return lambda Z: warp.warp(Z @ warp.rows.T, _snapped(embedding, Z))


def indicator(embedding: Embedding, columns: tuple[int, ...]) -> Features:
    """Indicator vectors of the values at `columns`: squared distance = share that differs."""
    space = embedding.space
    sizes = [int(space.columns[i].parameter.cardinality or 0) for i in columns]
    offsets = np.cumsum([0, *sizes[:-1]])

    def codes(Z: Tensor) -> Tensor:
        U = embedding.images(Z.detach().cpu().numpy())
        values = np.stack([space.columns[i].indices(U[:, i]) for i in columns], 1).astype(int)
        found: Array = np.zeros((len(U), sum(sizes)))
        np.put_along_axis(found, values + offsets, 1.0, axis=1)
        return torch.as_tensor(found / (2.0 * len(columns)) ** 0.5)

    return codes


def _snapped(embedding: Embedding, Z: Tensor) -> Tensor:
    return torch.as_tensor(2.0 * embedding.images(Z.detach().cpu().numpy()) - 1.0)
