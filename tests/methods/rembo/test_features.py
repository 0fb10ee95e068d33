"""Features of an embedding: distances of images, of values, of the warping."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from raybo.errors import MethodError
from raybo.methods.rembo.embedding import Embedding
from raybo.methods.rembo.features import Warped, images, indicators, require_few_values
from raybo.methods.rembo.kernels import KERNELS, view_of
from raybo.space.box import Box
from raybo.space.parameters import Categorical, Float, Int
from raybo.space.space import Space
from raybo.space.vector import gaussian_rows

MIXED = Space(
    {"a": Float(0, 1), "n": Int(1, 9), "c": Categorical(list("uvw")), "b": Categorical(list("xy"))}
)
VALUES = Space({str(i): Categorical(list("abc")[: 2 + i % 2]) for i in range(7)})
BOX = Box(40)


def rows(m: int, d: int, seed: int = 0) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(seed).standard_normal((m, d)))


def points(n: int, d: int, seed: int = 1) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(seed).uniform(-1.5, 1.5, (n, d)))


def psi(A: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The warping of Binois et al. (2015) in R^D, step by step."""
    x = np.clip(A @ z, -1, 1)
    if (np.abs(A @ z) <= 1).all():
        return A @ z
    back = A @ np.linalg.inv(A.T @ A) @ A.T @ x
    pivot = back / np.abs(back).max()
    return pivot + np.linalg.norm(x - pivot) * back / np.linalg.norm(back)


def test_images_are_the_clipped_products() -> None:
    embedding, Z = Embedding(Box(30), 3, 2, 1.7), points(5, 3)
    expected = np.clip(Z.numpy() @ gaussian_rows(2, np.arange(30), 3).T, -1, 1)
    np.testing.assert_allclose(images(embedding, range(30))(Z), expected, atol=1e-12)


def test_images_of_discrete_columns_are_those_of_their_values() -> None:
    embedding, Z = Embedding(MIXED, 2, 3, 1.0), points(6, 2)
    configs = [MIXED.decode(u) for u in embedding.images(Z.numpy())]
    expected = 2 * np.array([MIXED.encode(config)[1] for config in configs]) - 1
    np.testing.assert_allclose(images(embedding, [1])(Z)[:, 0], expected, atol=1e-12)


def test_the_squared_distance_of_indicators_counts_the_values_that_differ() -> None:
    embedding, Z = Embedding(VALUES, 3, 2, 1.7), points(12, 3)
    F = indicators(embedding, range(7))(Z).numpy()
    configs = [VALUES.decode(u) for u in embedding.images(Z.numpy())]
    for i, a in enumerate(configs):
        for j, b in enumerate(configs):
            differ = sum(a[name] != b[name] for name in a)
            assert ((F[i] - F[j]) ** 2).sum() == pytest.approx(differ, abs=1e-12)


def test_warped_distances_are_those_of_the_warping() -> None:
    A, Z = rows(9, 3), points(12, 3)
    Z[0] *= 0.1
    assert (np.abs(A.numpy() @ Z[0].numpy()) < 1).all()  # nothing is clipped there
    F = Warped(A)(Z)
    exact = np.array([psi(A.numpy(), z) for z in Z.numpy()])
    distances = np.linalg.norm(exact[:, None] - exact[None], axis=2)
    np.testing.assert_allclose(torch.cdist(F, F), distances, atol=1e-7)


def test_the_warping_is_continuous_where_clipping_begins() -> None:
    A, z = rows(9, 2), torch.tensor([[0.6, -0.8]], dtype=torch.float64)
    edge = z / (z @ A.T).abs().max()
    inside, outside = Warped(A)(edge * (1 - 1e-9)), Warped(A)(edge * (1 + 1e-9))
    np.testing.assert_allclose(inside, outside, atol=1e-3)  # the push grows as a square root


def test_the_gradient_of_the_warping() -> None:
    warp = Warped(rows(7, 2))
    assert torch.autograd.gradcheck(warp, (points(5, 2).requires_grad_(),))
    origin = torch.zeros(1, 2, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(warp(origin).sum(), origin)
    assert torch.isfinite(gradient).all()


class TestViews:
    def test_points_of_one_image_look_equal_where_the_kernel_looks_at_images(self) -> None:
        embedding = Embedding(Box(2), 1, 7, 100.0)
        far = torch.tensor([[60.0], [90.0]], dtype=torch.float64)  # clipped in both coordinates
        for kernel, same in {"low": False, "high": True, "warped": True}.items():
            features = view_of(kernel, embedding).features
            assert features is not None
            a, b = features(far)
            assert bool(torch.allclose(a, b)) is same

    @pytest.mark.parametrize(
        ("name", "space"),
        [
            *((name, VALUES) for name in KERNELS),
            *(
                (name, space)
                for name in KERNELS
                if name != "categorical"
                for space in (MIXED, BOX)
            ),
        ],
    )
    def test_the_kernel_fits_the_features(self, name: str, space: Space | Box) -> None:
        embedding, Z = Embedding(space, 2, 5, 1.4), points(9, 2)
        view = view_of(name, embedding)
        F = Z if view.features is None else view.features(Z)
        theta = {h.name: torch.full(h.shape, h.start).double() for h in view.kernel.hypers}
        K = view.kernel(F, F, theta)
        assert torch.linalg.eigvalsh(K).min() > -1e-10

    def test_a_sample_of_the_rows_gives_nearly_the_distances_of_all(self) -> None:
        Z, embedding = points(2, 4), Embedding(Box(20_000), 4, 9, 1.0)
        features = view_of("high", embedding).features
        assert features is not None
        F = features(Z)
        x = np.clip(Z.numpy() @ gaussian_rows(9, np.arange(20_000), 4).T, -1, 1)
        exact = np.sqrt(np.mean((x[0] - x[1]) ** 2))
        assert F.shape[1] < 1000
        assert float((F[0] - F[1]).norm()) == pytest.approx(exact, rel=0.15)


@pytest.mark.parametrize("space", [MIXED, Box(4), Box(10**9), Space({"n": Int(1, 5000)})])
def test_indicators_are_refused_where_there_are_too_many_values(space: Space | Box) -> None:
    with pytest.raises(MethodError, match="use kernel 'mixed'"):
        require_few_values(space)
