"""VGG16 and ResNet20 on CIFAR-10: their trees, masks and trainings, tiny ones on the CPU."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.problems.networks import cifar10, resnet_activations, small_cnn, vgg_pruning
from raybo.benchmarks.problems.registry import get_problem

TINY = (4,) * 5


def config_of(methods: str, ratio: float) -> dict[str, Any]:
    """Three blocks, each pruned by the method of its digit, 1 or 2, with the same ratio."""
    ratios = {f"ratio{i}": ratio for i in range(3)}
    return {f"block{k}": {f"l{method}": ratios} for k, method in enumerate(methods)}


ACTIVATIONS = {
    "block0": {"elu": {"first": 0.3, "others": 0.6}},
    "block1": {"lrelu": {"first": 0.2, "others": 0.9}},
    "block2": {"elu": {"first": 0.1, "others": 0.4}},
}


@pytest.fixture
def images(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Dark and bright images instead of CIFAR-10, narrow networks and short trainings."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=160)
    pixels = (labels[:, None, None, None] * 120 + rng.integers(120, size=(160, 32, 32, 3))).astype(
        np.uint8
    )
    monkeypatch.setenv("RAYBO_CACHE", str(tmp_path))
    monkeypatch.setattr(cifar10, "cifar10", lambda: (pixels, labels))
    monkeypatch.setattr(cifar10, "IMAGES", 120)
    monkeypatch.setattr(cifar10, "VALIDATION", 40)
    monkeypatch.setattr(vgg_pruning, "BATCH", 20)
    monkeypatch.setattr(vgg_pruning, "BASE_EPOCHS", 4)
    narrow = vgg_pruning.vgg16(TINY)
    state = {name: value.clone() for name, value in narrow.state_dict().items()}

    def fresh() -> torch.nn.Sequential:
        narrow.load_state_dict(state)
        return narrow

    monkeypatch.setattr(vgg_pruning, "vgg16", fresh)
    cifar10._on_device.cache_clear()
    vgg_pruning._base.cache_clear()
    yield
    cifar10._on_device.cache_clear()
    vgg_pruning._base.cache_clear()


def test_vgg16_has_the_papers_blocks() -> None:
    sizes = [weight.numel() for weight in vgg_pruning.convolutions(vgg_pruning.vgg16())]
    assert len(sizes) == 13
    assert sum(sizes[: vgg_pruning.FIRST]) / sum(sizes) == pytest.approx(0.0177, abs=5e-5)


def test_masks_take_weights_or_whole_channels_of_the_last_three_blocks() -> None:
    net = vgg_pruning.vgg16(TINY)
    masks = vgg_pruning.masks_of(net, config_of("121", 0.5))
    pruned = vgg_pruning.convolutions(net)[4:]
    assert [id(weight) for weight, _ in masks] == [id(weight) for weight in pruned]
    for i, (weight, mask) in enumerate(masks):
        kept = mask.flatten(1)
        assert kept.mean() == 0.5
        size = weight.detach().flatten(1)
        if i // 3 == 1:  # by channel
            assert sorted(kept.sum(1).tolist()) == [0, 0, size.shape[1], size.shape[1]]
            norm = size.norm(dim=1)
            assert norm[kept[:, 0] == 0].max() < norm[kept[:, 0] == 1].min()
        else:
            assert size.abs()[kept == 0].max() < size.abs()[kept == 1].min()
    weights = sum(weight.numel() for weight in vgg_pruning.convolutions(net))
    gone = sum(weight.numel() for weight in pruned) / 2
    assert vgg_pruning.sparsity(net, masks) == pytest.approx(gone / weights)


@pytest.mark.usefixtures("images")
def test_pruning_is_share_gone_plus_accuracy() -> None:
    objective = vgg_pruning.VggPruning("cpu")
    whole = objective(config_of("111", 0.0))
    assert 0.9 < whole <= 1.0  # all of it accuracy
    halved = objective(config_of("112", 0.5))
    assert halved == objective(config_of("112", 0.5))
    share = 0.5 * 9 / (12 + 3 / 4)  # of 12 convolutions of 4 channels and one of 3
    assert 0.5 <= halved - share <= 1.0


@pytest.mark.usefixtures("images")
def test_masked_weights_stay_zero_in_training() -> None:
    net = vgg_pruning._on(torch.device("cpu"))
    masks = vgg_pruning.masks_of(net, config_of("121", 0.5))
    with torch.no_grad():
        for weight, mask in masks:
            weight *= mask
    before = masks[0][0].detach().clone()
    cifar10.train(net, 1, 20, lambda _: 0.1, 5e-4, masks)
    for weight, mask in masks:
        assert not weight[mask == 0].any()
    assert not torch.equal(before, masks[0][0])


def test_learning_rates_are_those_described() -> None:
    rate = vgg_pruning.triangle(0.5, 10)
    assert [rate(t) for t in (0, 1, 2, 6, 10)] == pytest.approx([0, 0.25, 0.5, 0.25, 0])
    steps = [resnet_activations.rate(t) for t in (0, 5.99, 6, 7.99, 8, 9.99)]
    assert steps == [0.1, 0.1, 0.01, 0.01, 0.001, 0.001]


def test_resnet20_has_its_size_and_the_activations_of_the_config() -> None:
    net = resnet_activations.ResNet(ACTIVATIONS)
    assert sum(weight.numel() for weight in net.parameters()) == 269_722  # He et al.: 0.27 M
    nn = torch.nn
    wanted = [(nn.ELU(0.3), nn.ELU(0.6)), (nn.LeakyReLU(0.2), nn.LeakyReLU(0.9))]
    wanted.append((nn.ELU(0.1), nn.ELU(0.4)))
    Z = torch.linspace(-2, 2, 9)
    for i, block in enumerate(net.blocks):
        first, second = wanted[i // 3]
        torch.testing.assert_close(block.first(Z), first(Z))
        torch.testing.assert_close(block.second(Z), second(Z))
    assert net(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


@pytest.mark.usefixtures("images")
def test_activations_train_the_same_network_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resnet_activations, "EPOCHS", 3)
    monkeypatch.setattr(resnet_activations, "BATCH", 20)
    monkeypatch.setattr(resnet_activations.ResNet.__init__, "__defaults__", ((2, 4, 8),))
    objective = resnet_activations.ResnetActivations("cpu")
    value = objective(ACTIVATIONS)
    assert value > 0.9
    assert objective(ACTIVATIONS) == value


def test_crops_are_shifted_and_mirrored_images() -> None:
    image = np.random.default_rng(0).integers(256, size=(1, 32, 32, 3), dtype=np.uint8)
    padded = torch.from_numpy(np.pad(image, ((0, 0), (4, 4), (4, 4), (0, 0)), mode="reflect"))
    rows = torch.tensor([0, 0, 0])
    moves = torch.tensor([[4, 4, 0], [4, 4, 1], [6, 1, 0]])
    plain, mirrored, moved = (127.5 * (cifar10.crop(padded, rows, moves) + 1)).round()
    np.testing.assert_array_equal(plain.permute(1, 2, 0), image[0])
    torch.testing.assert_close(mirrored, plain.flip(2))
    torch.testing.assert_close(moved[:, :30, 3:], plain[:, 2:, :29])


def test_images_are_decoded_once_from_the_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pixels = np.random.default_rng(0).integers(256, size=(6, 32, 32, 3), dtype=np.uint8)
    paths = {}
    for i in range(3):
        paths[f"{i}.png"] = tmp_path / f"{i}.png"
        Image.fromarray(pixels[2 * i : 2 * i + 2].reshape(2, 1024, 3)).save(paths[f"{i}.png"])
    paths["labels"] = tmp_path / "labels.json"
    paths["labels"].write_text(json.dumps([3, 1, 4, 1, 5, 9]))
    monkeypatch.setenv("RAYBO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cifar10, "fetch", lambda package: paths)
    for _ in range(2):
        images, labels = cifar10.cifar10()
        np.testing.assert_array_equal(images, pixels)
        assert labels.tolist() == [3, 1, 4, 1, 5, 9]
        monkeypatch.setattr(cifar10, "fetch", None)  # not needed again


@pytest.mark.parametrize(
    ("name", "instead"), [("vgg-pruning", "pruning"), ("resnet-activations", "activations")]
)
def test_without_a_gpu_the_error_names_the_problem_for_cpus(
    monkeypatch: pytest.MonkeyPatch, name: str, instead: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    problem = get_problem(name)
    with pytest.raises(BenchmarkError, match=f"{name} needs a GPU .* run '{instead}'"):
        problem.objective(problem.space.decode(np.full(problem.space.dim, 0.3)))


def test_a_small_network_yields_its_accuracy_after_every_epoch(
    images: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"EPOCHS": 12, "IMAGES": 120, "VALIDATION": 40}.items():
        monkeypatch.setattr(small_cnn, name, value)
    cube = {"lr": 0.05, "momentum": 0.9, "weight_decay": 1e-6, "batch": 20}
    config = {**cube, "width": 8, "depth": 1, "dropout": 0.0}
    found = list(small_cnn.accuracies(config, "cpu"))
    assert len(found) == 12
    assert found[-1] > 90.0  # bright or dark
    assert found == list(small_cnn.accuracies(config, "cpu"))


def test_a_config_of_the_small_network_sets_its_shape() -> None:
    space = small_cnn.SPACE
    rng = np.random.default_rng(0)
    for config in (space.decode(row) for row in space.sample(5, rng)):
        shape = [m for m in small_cnn.network(config) if isinstance(m, torch.nn.Conv2d)]
        assert len(shape) == 3 * config["depth"]
        assert shape[-1].out_channels == 4 * config["width"]
