"""The face detector's cascade, against a naive loop and against OpenCV itself."""

from __future__ import annotations

import importlib
import math
from pathlib import Path

import numpy as np
import pytest

from raybo.benchmarks.problems import face_cascade
from raybo.benchmarks.problems.datasets import DatasetError
from raybo.benchmarks.problems.face_cascade import (
    FILE,
    SIDE,
    balanced_accuracy,
    face_windows,
    parse_cascade,
    picture_windows,
    stage_sums,
    threshold_ranges,
)
from raybo.benchmarks.problems.registry import get_problem

RECTANGLES = [  # of three features: x, y, width, height, weight
    [(3, 7, 14, 4, -1.0), (3, 9, 14, 2, 2.0)],
    [(0, 0, 20, 20, -1.0), (5, 5, 10, 10, 4.0)],
    [(1, 2, 4, 6, -1.0), (1, 2, 2, 6, 2.0), (10, 10, 3, 3, 1.5)],
]
STAGES = [  # threshold, then feature, split and votes of each stump
    (0.5, [(0, 0.01, 0.1, 0.9), (2, -0.02, 0.7, 0.2)]),
    (1.0, [(1, 0.3, -0.5, 1.5)]),
]


def xml() -> str:
    features = "".join(
        "<_><rects>" + "".join(f"<_>{' '.join(map(str, r))}</_>" for r in rects) + "</rects></_>"
        for rects in RECTANGLES
    )
    stages = "".join(
        f"<_><stageThreshold>{threshold}</stageThreshold><weakClassifiers>"
        + "".join(
            f"<_><internalNodes>0 -1 {feature} {split}</internalNodes>"
            f"<leafValues>{low} {high}</leafValues></_>"
            for feature, split, low, high in stumps
        )
        + "</weakClassifiers></_>"
        for threshold, stumps in STAGES
    )
    return f"<s><cascade><stages>{stages}</stages><features>{features}</features></cascade></s>"


def test_stage_sums_are_those_of_a_naive_loop() -> None:
    windows = np.random.default_rng(0).integers(0, 256, (7, SIDE, SIDE)).astype(np.uint8)
    found = stage_sums(parse_cascade(xml()), windows)
    for window, row in zip(windows.astype(float), found, strict=True):
        inner = window[1:-1, 1:-1]
        norm = math.sqrt(inner.size * (inner**2).sum() - inner.sum() ** 2)
        for (_, stumps), total in zip(STAGES, row, strict=True):
            expected = 0.0
            for feature, split, low, high in stumps:
                value = sum(
                    weight * window[y : y + h, x : x + w].sum()
                    for x, y, w, h, weight in RECTANGLES[feature]
                )
                expected += low if value / norm < split else high
            assert total == pytest.approx(expected, rel=1e-12)


def test_balanced_accuracy_counts_what_passes_every_stage() -> None:
    faces = np.array([[1.0, 1.0], [2.0, 0.0], [3.0, 3.0], [1.0, 5.0]])
    others = np.array([[0.0, 9.0], [1.0, 1.0], [0.0, 0.0], [-1.0, 2.0], [5.0, 0.5]])
    assert balanced_accuracy(faces, others, np.array([1.0, 1.0])) == pytest.approx(
        (3 / 4 + 4 / 5) / 2
    )
    low, _ = threshold_ranges(faces)
    np.testing.assert_array_equal(low, [1.0, 0.0])
    assert balanced_accuracy(faces, others, low) == pytest.approx((1 + 3 / 5) / 2)


def test_windows_of_faces_are_shifted_and_mirrored() -> None:
    images = np.random.default_rng(0).random((3, 25, 25))
    windows = face_windows(images)
    assert windows.shape == (36, SIDE, SIDE)
    assert windows.dtype == np.uint8
    np.testing.assert_array_equal(windows[0], np.round(255 * images[0, 1:21, 2:22]))
    np.testing.assert_array_equal(windows[18], windows[0][:, ::-1])


def test_windows_of_pictures_are_cut_at_all_sizes_and_flat_ones_left_out() -> None:
    picture = np.zeros((80, 100), dtype=np.uint8)
    picture[:, 60:] = np.random.default_rng(0).integers(0, 256, (80, 40))

    def resize(image: np.ndarray, size: tuple[int, int], interpolation: int) -> np.ndarray:
        assert interpolation == 3
        return image[: size[1], : size[0]]

    found = list(picture_windows(picture, resize))
    assert len(found) == 2  # 80 x 100 and 60 x 75; the next is too small
    assert all(w.std() > 1 for windows in found for w in windows)


@pytest.mark.parametrize("missing", ["cv2", "skimage.data"])
def test_a_missing_package_is_named(
    missing: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def load(name: str) -> object:
        if name == missing:
            raise ImportError(name)
        return object()

    monkeypatch.setenv("RAYBO_CACHE", str(tmp_path))
    monkeypatch.setattr(importlib, "import_module", load)
    face_cascade.load.cache_clear()
    with pytest.raises(DatasetError, match=r"needs .*; pip install '"):
        face_cascade.load()


def test_an_opencv_without_cascades_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Five:
        __version__ = "5.0.0"

    monkeypatch.setenv("RAYBO_CACHE", str(tmp_path))
    monkeypatch.setattr(importlib, "import_module", lambda _: Five())
    face_cascade.load.cache_clear()
    with pytest.raises(DatasetError, match=r"OpenCV 4, this is 5\.0\.0; pip install"):
        face_cascade.load()


def test_the_problem_has_a_threshold_for_each_stage() -> None:
    assert get_problem("face-cascade").space.dim == 22


def test_decisions_are_those_of_opencv() -> None:
    cv2 = pytest.importorskip("cv2", reason="needs opencv-python-headless<5")
    data = pytest.importorskip("skimage.data", reason="needs scikit-image")
    path = Path(cv2.data.haarcascades, FILE)
    cascade = parse_cascade(path.read_text(encoding="utf-8"))
    assert len(cascade.thresholds) == 22
    folder = Path(data.__file__).parent
    faces = face_windows(np.load(folder / "lfw_subset.npy")[:100])[:600]
    cat = cv2.imread(str(folder / "chelsea.png"), 0)
    windows = np.concatenate([faces, *picture_windows(cat, cv2.resize)])[:1500]
    ours = (stage_sums(cascade, windows) >= cascade.thresholds - 1e-5).all(axis=1)
    detector = cv2.CascadeClassifier(str(path))
    theirs = [
        len(detector.detectMultiScale(np.ascontiguousarray(w), 1.05, 0)) > 0 for w in windows
    ]
    np.testing.assert_array_equal(ours, theirs)
    assert 0 < ours.sum() < len(ours)
