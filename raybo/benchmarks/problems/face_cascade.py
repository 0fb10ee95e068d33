"""Stage thresholds of OpenCV's face detector, for the best balanced accuracy (RPP, section 5.2).

A window of 20 x 20 pixels is a face if in each of the 22 stages of the cascade (Viola & Jones
2001) the votes of the stage's stumps add up to its threshold. The votes do not depend on the
thresholds: they are computed once for all windows, and an evaluation compares numbers. Windows
are cut from the 100 faces of scikit-image's subset of LFW, shifted and mirrored, and from its
pictures of other things. The paper's windows are not published.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from raybo.arrays import Array
from raybo.benchmarks.problems.base import Problem
from raybo.benchmarks.problems.datasets import DatasetError, cached
from raybo.space.box import Box

Pixels = NDArray[np.uint8]

FILE = "haarcascade_frontalface_alt.xml"  # the one of OpenCV's cascades that has 22 stages
N_STAGES = 22
SIDE = 20  # pixels of a window
PICTURES = (  # of scikit-image, no face among them
    "brick.png",
    "chelsea.png",
    "coffee.png",
    "coins.png",
    "grass.png",
    "gravel.png",
    "hubble_deep_field.jpg",
    "ihc.png",
    "moon.png",
    "motorcycle_left.png",
    "page.png",
    "rocket.jpg",
)
STRIDE = 8  # pixels between two windows of a picture
SHRINK = 0.75  # of a picture, until it is a few windows wide
_CHUNK = 2000  # windows at a time


@dataclass(frozen=True)
class Cascade:
    """Stumps of a cascade.

    Attributes
    ----------
    features : sparse array (441, w)
        By column, what a stump's feature takes of the integral image, its corners row by row.
    split, low, high : ndarray (w,)
        Threshold of each stump, and its votes below the threshold and from it on.
    stage : ndarray of int (w,)
        Stage of each stump.
    thresholds : ndarray (s,)
        Of the stages, as published.
    """

    features: csr_array
    split: Array
    low: Array
    high: Array
    stage: NDArray[np.intp]
    thresholds: Array


def parse_cascade(text: str) -> Cascade:
    """Return the cascade of stumps on upright Haar features, from OpenCV's XML."""
    root = ElementTree.fromstring(text)[0]
    corners = [_corners(feature) for feature in root.findall("features/_")]
    columns, stumps, stages, thresholds = [], [], [], []
    for number, stage in enumerate(root.findall("stages/_")):
        thresholds.append(float(stage.findtext("stageThreshold", "")))
        for stump in stage.findall("weakClassifiers/_"):
            _, _, feature, split = stump.findtext("internalNodes", "").split()
            low, high = stump.findtext("leafValues", "").split()
            columns.append(corners[int(feature)])
            stumps.append((float(split), float(low), float(high)))
            stages.append(number)
    split, low, high = np.array(stumps).T
    features = csr_array(np.array(columns).T)
    return Cascade(features, split, low, high, np.array(stages), np.array(thresholds))


def _corners(feature: ElementTree.Element) -> Array:
    """Return the weights (441,) of the integral image's corners in a sum of rectangles."""
    weights = np.zeros((SIDE + 1, SIDE + 1))
    for rectangle in feature.findall("rects/_"):
        x, y, width, height, weight = map(float, (rectangle.text or "").split())
        left, top, right, bottom = int(x), int(y), int(x + width), int(y + height)
        weights[[top, bottom], [left, right]] += weight
        weights[[top, bottom], [right, left]] -= weight
    return weights.reshape(-1)


def stage_sums(cascade: Cascade, windows: Pixels) -> Array:
    """Return the votes (n, s) of the stages for windows (n, 20, 20).

    Notes
    -----
    As in OpenCV, a feature is divided by sqrt(N sum p^2 - (sum p)^2) over the N = 18^2 pixels p
    inside the window's border.
    """
    members = csr_array(
        (np.ones(len(cascade.stage)), (np.arange(len(cascade.stage)), cascade.stage))
    )
    sums = []
    for start in range(0, len(windows), _CHUNK):
        pixels = windows[start : start + _CHUNK].astype(np.float64)
        integral = np.zeros((len(pixels), SIDE + 1, SIDE + 1))
        integral[:, 1:, 1:] = pixels.cumsum(axis=1).cumsum(axis=2)
        inner = pixels[:, 1:-1, 1:-1].reshape(len(pixels), -1)
        spread = inner.shape[1] * np.square(inner).sum(1) - np.square(inner.sum(1))
        values = integral.reshape(len(pixels), -1) @ cascade.features
        values /= np.sqrt(np.maximum(spread, 1.0))[:, None]
        sums.append(np.where(values < cascade.split, cascade.low, cascade.high) @ members)
    return np.concatenate(sums)


def face_windows(images: Array) -> Pixels:
    """Return windows of faces: six shifts, and their mirror images, of each (25, 25) image."""
    pixels = np.round(images * 255).astype(np.uint8)
    crops = [pixels[:, y : y + SIDE, x : x + SIDE] for y in (1, 2, 3) for x in (2, 3)]
    return np.concatenate([*crops, *(crop[:, :, ::-1] for crop in crops)])


def picture_windows(picture: Pixels, resize: Any) -> Iterator[Pixels]:
    """Yield windows (n, 20, 20) of a grey picture at all sizes; `resize` is OpenCV's."""
    while min(picture.shape) >= 3 * SIDE:
        every = np.lib.stride_tricks.sliding_window_view(picture, (SIDE, SIDE))
        found = every[::STRIDE, ::STRIDE].reshape(-1, SIDE, SIDE)
        # OpenCV rejects flat windows unseen.
        yield found[found.reshape(len(found), -1).std(1) > 1.0]
        height, width = (int(n * SHRINK) for n in picture.shape)
        picture = resize(picture, (width, height), interpolation=3)  # INTER_AREA


def _modules() -> tuple[Any, Path]:
    """Return OpenCV, and the folder of scikit-image's pictures."""
    found = []
    for name, package in (("cv2", "opencv-python-headless<5"), ("skimage.data", "scikit-image")):
        try:
            found.append(importlib.import_module(name))
        except ImportError:
            raise DatasetError(
                f"problem 'face-cascade' needs {package}; pip install '{package}'"
            ) from None
    cv2, data = found
    if not hasattr(cv2, "CascadeClassifier"):
        raise DatasetError(
            f"problem 'face-cascade' needs the cascades of OpenCV 4, this is {cv2.__version__}; "
            "pip install 'opencv-python-headless<5'"
        )
    return cv2, Path(str(data.__file__)).parent


def _compute(path: Path) -> None:
    """Write the stage sums of all windows."""
    cv2, folder = _modules()
    cascade = parse_cascade(Path(cv2.data.haarcascades, FILE).read_text(encoding="utf-8"))
    others = [
        windows
        for name in PICTURES
        for windows in picture_windows(cv2.imread(str(folder / name), 0), cv2.resize)
    ]
    faces = face_windows(np.load(folder / "lfw_subset.npy")[:100])
    np.savez_compressed(
        path,
        faces=stage_sums(cascade, faces).astype(np.float32),
        others=stage_sums(cascade, np.concatenate(others)).astype(np.float32),
        thresholds=cascade.thresholds,
    )


@lru_cache(maxsize=1)
def load() -> tuple[Array, Array, Array]:
    """Return stage sums of faces (n, 22) and others (m, 22), and OpenCV's thresholds (22,).

    Computed on first use, in half a minute, and kept in the cache.
    """
    with np.load(cached("face-cascade-1.npz", _compute)) as file:
        return file["faces"], file["others"], file["thresholds"]


def threshold_ranges(faces: Array) -> tuple[Array, Array]:
    """Return bounds (22,) of the thresholds: all faces pass at the lower, a tenth at the upper."""
    return faces.min(axis=0), np.quantile(faces, 0.9, axis=0)


def balanced_accuracy(faces: Array, others: Array, thresholds: Array) -> float:
    """Return the mean of the share of faces that pass and the share of others that do not."""
    passed = [float(np.mean((sums >= thresholds).all(axis=1))) for sums in (faces, others)]
    return (passed[0] + 1.0 - passed[1]) / 2.0


@dataclass(frozen=True)
class FaceCascade:
    """Balanced accuracy of the cascade, by {"x": thresholds, each in [0, 1] of its range}."""

    def __call__(self, config: Mapping[str, Any]) -> float:
        """Return the value at a config."""
        faces, others, _ = load()
        low, high = threshold_ranges(faces)
        x = np.asarray(config["x"], dtype=np.float64)
        return balanced_accuracy(faces, others, low + x * (high - low))


def face_cascade() -> Problem:
    """Return the problem of the 22 thresholds."""
    return Problem(
        name="face-cascade",
        build_space=partial(Box, N_STAGES, low=0.0, high=1.0),
        objective=FaceCascade(),
        mode="max",
        evaluations=200,
        description="22 stage thresholds of OpenCV's face detector: balanced accuracy",
        cost="5 ms, after half a minute for the first",
    )
