"""A random forest that labels the parts of a body in depth images, 14 parameters (REMBO, app. D).

The paper tunes the body-part classifier of Shotton et al. (2011) on images of motion capture that
are not published. Here an articulated figure of 19 parts, its joints bent at random, is rendered
from spheres to a depth image. A feature of a pixel p is d(p + u / d(p)) - d(p + v / d(p)), the
offsets u and v drawn from two Gaussians. Their means (4) and covariances (6), the number of
offsets, the depth of the trees, the fewest samples that are split and the share of samples that a
tree sees are the 14 parameters. A budget of work, pixels x offsets x depth, limits the number of
trees. The paper limits the time instead; here a value does not depend on the machine.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybo.arrays import Array
from raybo.benchmarks.problems.base import Problem
from raybo.benchmarks.problems.datasets import DatasetError, cached
from raybo.space.parameters import Float, Int
from raybo.space.space import Space

WIDTH, HEIGHT = 160, 120
FOCAL = 140.0  # pixels
FAR = 10.0  # metres: what the background is given
# Name: parent, length and radius in metres, direction at rest (x right, y up), bend in radians.
PARTS: dict[str, tuple[str, float, float, tuple[float, float], float]] = {
    "pelvis": ("", 0.12, 0.15, (0.0, 1.0), 0.3),
    "belly": ("pelvis", 0.18, 0.14, (0.0, 1.0), 0.2),
    "chest": ("belly", 0.22, 0.13, (0.0, 1.0), 0.2),
    "neck": ("chest", 0.30, 0.07, (0.0, 1.0), 0.2),
    "head": ("neck", 0.12, 0.11, (0.0, 1.0), 0.3),
    **{
        f"{side}-{name}": (f"{side}-{parent}" if own else parent, length, radius, (s * x, y), bend)
        for side, s in (("left", -1.0), ("right", 1.0))
        for name, parent, own, length, radius, x, y, bend in (
            ("shoulder", "chest", False, 0.20, 0.08, 1.0, 0.1, 0.2),
            ("upper-arm", "shoulder", True, 0.26, 0.06, 0.6, -0.8, 1.0),
            ("lower-arm", "upper-arm", True, 0.24, 0.05, 0.4, -0.9, 1.0),
            ("hand", "lower-arm", True, 0.10, 0.05, 0.2, -1.0, 0.6),
            ("upper-leg", "pelvis", False, 0.42, 0.09, 0.35, -0.95, 0.6),
            ("lower-leg", "upper-leg", True, 0.40, 0.07, 0.05, -1.0, 0.5),
            ("foot", "lower-leg", True, 0.14, 0.06, 0.3, -0.5, 0.4),
        )
    },
}
TRAINING, VALIDATION = 120, 40  # images
WORK = 6e7  # pixels x offsets x levels, over all trees of a forest
MOST_TREES = 10


def joints(rng: np.random.Generator) -> list[tuple[Array, Array, float]]:
    """Return start, end and radius of each part in a random pose; z is the camera's distance."""
    turn, found = rng.uniform(-0.7, 0.7), []
    ends: dict[str, Array] = {}
    directions: dict[str, Array] = {}
    for name, (parent, length, radius, rest, bend) in PARTS.items():
        start = ends[parent] if parent else np.array([0.0, 0.0, rng.uniform(2.2, 3.2)])
        base = np.array([*rest, 0.0])
        if name.endswith(("lower-arm", "hand", "lower-leg")):  # follows its parent
            base = directions[parent] + 0.3 * base
        direction = base + bend * rng.uniform(-1.0, 1.0, 3)
        direction /= np.linalg.norm(direction)
        directions[name] = direction
        ends[name] = start + length * direction
        found.append((start, ends[name], radius))
    rotate = np.array(
        [[np.cos(turn), 0, np.sin(turn)], [0, 1, 0], [-np.sin(turn), 0, np.cos(turn)]]
    )
    centre = np.array([0.0, 0.0, found[0][0][2]])
    return [
        ((a - centre) @ rotate + centre, (b - centre) @ rotate + centre, r) for a, b, r in found
    ]


def render(rng: np.random.Generator) -> tuple[Array, NDArray[np.int8]]:
    """Return the depth image (120, 160) of a random pose, and each pixel's part, -1 for none."""
    depth = np.full((HEIGHT, WIDTH), FAR)
    label = np.full((HEIGHT, WIDTH), -1, dtype=np.int8)
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    for part, (start, end, radius) in enumerate(joints(rng)):
        for share in np.linspace(0.0, 1.0, 8):
            x, y, z = start + share * (end - start)
            across, down, size = FOCAL * x / z, -FOCAL * y / z, FOCAL * radius / z
            left, top = int(across - size + WIDTH / 2), int(down - size + HEIGHT / 2)
            window = (
                slice(max(top, 0), max(top + int(2 * size) + 3, 0)),
                slice(max(left, 0), max(left + int(2 * size) + 3, 0)),
            )
            off = columns[window] - WIDTH / 2 - across, rows[window] - HEIGHT / 2 - down
            square = (off[0] ** 2 + off[1] ** 2) / size**2
            near = z - radius * np.sqrt(np.maximum(1.0 - square, 0.0))
            front = (square < 1.0) & (near < depth[window])
            depth[window] = np.where(front, near, depth[window])
            label[window] = np.where(front, np.int8(part), label[window])
    return depth, label


def _render_all(path: Path) -> None:
    rng = np.random.default_rng(0)
    images = [render(rng) for _ in range(TRAINING + VALIDATION)]
    np.savez_compressed(
        path,
        depth=np.array([d for d, _ in images], dtype=np.float32),
        label=np.array([part for _, part in images]),
    )


@lru_cache(maxsize=1)
def load() -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    """Return depth images and labels, rendered on first use in a few seconds."""
    with np.load(cached("body-parts-1.npz", _render_all)) as file:
        return file["depth"], file["label"]


def body_space() -> Space:
    """Return the space of the paper's 14 parameters."""
    gaussian = {
        f"{name}_{term}": Float(low, high)
        for name in ("u", "v")
        for term, low, high in (
            ("mean_x", -50.0, 50.0),
            ("mean_y", -50.0, 50.0),
            ("var_x", 1.0, 200.0),
            ("var_y", 1.0, 200.0),
            ("cov", -200.0, 200.0),
        )
    }
    return Space(
        {
            **gaussian,
            "offsets": Int(1, 1000, log=True),
            "depth": Int(1, 60, log=True),
            "min_split": Int(2, 100),
            "sample": Float(0.05, 1.0),
        }
    )


def draw_offsets(config: Mapping[str, Any], name: str, rng: np.random.Generator) -> Array:
    """Return offsets (n, 2) from the Gaussian `name`, with the nearest valid covariance."""
    cov = config[f"{name}_cov"]
    matrix = np.array([[config[f"{name}_var_x"], cov], [cov, config[f"{name}_var_y"]]])
    values, vectors = np.linalg.eigh(matrix)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    mean = np.array([config[f"{name}_mean_x"], config[f"{name}_mean_y"]])
    drawn: Array = mean + rng.standard_normal((config["offsets"], 2)) @ root.T
    return drawn


def differences(
    depth: NDArray[np.float32], at: NDArray[np.intp], u: Array, v: Array
) -> NDArray[np.float32]:
    """Return features (pixels, offsets) of the pixels `at` (row, column) of one image."""
    here = depth[at[:, 0], at[:, 1]]

    def probe(offset: Array) -> NDArray[np.float32]:
        moved = at[:, None, :] + offset[None, :, ::-1] / here[:, None, None]
        row, column = np.rint(moved).astype(np.intp).transpose(2, 0, 1)
        outside = (row < 0) | (row >= HEIGHT) | (column < 0) | (column >= WIDTH)
        found = depth[row.clip(0, HEIGHT - 1), column.clip(0, WIDTH - 1)]
        return np.where(outside, np.float32(FAR), found)

    return probe(u) - probe(v)


@dataclass(frozen=True)
class BodyParts:
    """Share of the figure's pixels whose part the forest names wrongly.

    Attributes
    ----------
    images : int
        Training images; there are 120.
    pixels : int
        Of each training image.
    """

    images: int = TRAINING
    pixels: int = 40

    def __call__(self, config: Mapping[str, Any]) -> float:
        """Return the value at a config."""
        trees = _trees()
        depth, label = load()
        rng = np.random.default_rng(0)
        u, v = (draw_offsets(config, name, rng) for name in ("u", "v"))
        X, y = _table(depth[: self.images], label[: self.images], u, v, self.pixels, rng)
        count = int(WORK / (len(X) * config["offsets"] * min(config["depth"], 20)))
        Z, truth = _table(depth[TRAINING:], label[TRAINING:], u, v, 50, rng)
        votes = np.zeros((len(Z), len(PARTS)))
        for number in range(min(max(count, 1), MOST_TREES)):
            tree = trees(
                max_depth=config["depth"],
                min_samples_split=config["min_split"],
                max_features="sqrt",
                random_state=number,
            )
            rows = rng.choice(len(X), max(1, int(config["sample"] * len(X))))
            tree.fit(X[rows], y[rows])
            votes[:, tree.classes_] += tree.predict_proba(Z)
        return float(np.mean(votes.argmax(1) != truth))


def _table(
    depth: NDArray[np.float32],
    label: NDArray[np.int8],
    u: Array,
    v: Array,
    pixels: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    """Return features and parts of some pixels of each image."""
    rows, parts = [], []
    for image, own in zip(depth, label, strict=True):
        at = np.argwhere(own >= 0)
        at = at[rng.choice(len(at), min(pixels, len(at)), replace=False)]
        rows.append(differences(image, at, u, v))
        parts.append(own[at[:, 0], at[:, 1]])
    return np.concatenate(rows), np.concatenate(parts)


def _trees() -> Any:
    try:
        return importlib.import_module("sklearn.tree").DecisionTreeClassifier
    except ImportError:
        raise DatasetError(
            "problem 'body-parts' needs scikit-learn; pip install scikit-learn"
        ) from None


def body_parts() -> Problem:
    """Return the problem in 14 dimensions."""
    return Problem(
        "body-parts",
        body_space,
        BodyParts(),
        evaluations=200,
        description="Random forest for body parts in depth images: error, 14 parameters",
        cost="1 s, after some seconds of rendering",
    )
