"""Real problems: against other code where there is some, on small stand-ins for their data."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from sklearn.linear_model import Lasso
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from raybo.benchmarks.problems import alloy, body_parts, cosmology
from raybo.benchmarks.problems import lasso_svm as high_tasks
from raybo.benchmarks.problems.registry import get_problem
from raybo.benchmarks.problems.datasets import DatasetError
from raybo.benchmarks.problems.networks import pruning, stochastic_depth
from raybo.benchmarks.tables.registry import TASKS

DIMS = {
    "lasso-dna": 180,
    "svm-mdrr": 344,
    "body-parts": 14,
    "cosmology": 40,
    "alloy": 12,
    "stochastic-depth": 24,
    "swimmer": 16,
    "hopper": 33,
    "half-cheetah": 102,
    "activations": 15,
    "pruning": 21,
    "resnet-activations": 15,
    "vgg-pruning": 21,
}


@pytest.fixture
def digits(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> Iterator[None]:
    """Ten noisy patterns in the place of MNIST, and short trainings."""
    rng = np.random.default_rng(0)
    patterns = rng.random((10, 784)) > 0.7
    labels = rng.integers(10, size=1500)
    images = (0.8 * patterns[labels] + 0.2 * rng.random((1500, 784))).astype(np.float32)
    monkeypatch.setenv("RAYBO_CACHE", str(tmp_path))
    for module in (pruning, stochastic_depth):
        monkeypatch.setattr(module, "mnist", lambda: {"train": (images, labels)})
        monkeypatch.setattr(module, "IMAGES", 1000)
        monkeypatch.setattr(module, "VALIDATION", 500)
        monkeypatch.setattr(module, "BASE_EPOCHS", 3)
        module._images.cache_clear()
    yield
    for module in (pruning, stochastic_depth):
        module._images.cache_clear()


@pytest.mark.parametrize("name", DIMS)
def test_problem_has_the_papers_dimension_and_travels_to_workers(name: str) -> None:
    problem = get_problem(name)
    assert problem.space.dim == DIMS[name]
    assert pickle.loads(pickle.dumps(problem.objective)) == problem.objective


def test_every_application_belongs_to_a_task_that_can_be_run() -> None:
    named = {problem for task in TASKS.values() for problem in task.problems}
    assert named >= set(DIMS)
    for task in TASKS.values():
        assert task.reference in task.rivals


def test_weighted_lasso_is_the_plain_one_where_penalties_are_equal() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    y = X @ [1.0, 0.0, -2.0, 0.0] + 0.1 * rng.standard_normal(60)
    errors = []
    for fold in range(5):
        out = np.arange(60) % 5 == fold
        model = Lasso(alpha=0.3, tol=1e-3).fit(X[~out], y[~out])
        errors.append(np.mean((model.predict(X[out]) - y[out]) ** 2))
    found = high_tasks.lasso_error(X, y, np.full(4, 0.3))
    assert found == pytest.approx(np.mean(errors), rel=1e-2)
    # A large penalty on what matters not, none to speak of on what does.
    assert high_tasks.lasso_error(X, y, np.array([1e-3, 9.0, 1e-3, 9.0])) < found / 3


def test_svm_error_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3))
    y = (X[:, 0] > 0).astype(np.int8)
    scaled = X / math.sqrt(np.mean(X**2))
    folds = [
        (np.flatnonzero(np.arange(50) % 5 != k), np.flatnonzero(np.arange(50) % 5 == k))
        for k in range(5)
    ]
    wanted = 1 - cross_val_score(SVC(C=2.0, gamma=0.5), scaled, y, cv=folds).mean()
    assert high_tasks.svm_error(X, y, 2.0, 0.5) == pytest.approx(wanted)
    assert high_tasks.svm_error(X * [10, 0.1, 0.1], y, 2.0, 0.5) < wanted


def test_lasso_and_svm_name_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(high_tasks.importlib, "import_module", missing)
    with pytest.raises(DatasetError, match="pip install rdata"):
        high_tasks.read_r("DNA.rda", "lasso-dna")
    with pytest.raises(DatasetError, match="pip install camb"):
        cosmology._camb()
    alloy._workspace.cache_clear()
    with pytest.raises(DatasetError, match="pip install pycalphad"):
        alloy.phases(alloy.AA2050, 700.0)


def test_a_rendered_body_shows_its_parts_in_front_of_the_background() -> None:
    rng = np.random.default_rng(0)
    images = [body_parts.render(rng) for _ in range(8)]
    seen = set()
    for depth, label in images:
        assert ((label >= 0) == (depth < body_parts.FAR)).all()
        assert 1.5 < depth.min() < 3.5
        seen |= set(label[label >= 0].tolist())
    assert seen == set(range(len(body_parts.PARTS)))
    assert len(body_parts.PARTS) == 19


def test_depth_differences_are_those_of_a_loop() -> None:
    rng = np.random.default_rng(0)
    depth = rng.uniform(1.0, 4.0, (body_parts.HEIGHT, body_parts.WIDTH)).astype(np.float32)
    at = np.array([[5, 7], [60, 80], [118, 3]])
    u, v = rng.uniform(-60, 60, (2, 4, 2))

    def probe(row: float, column: float) -> float:
        r, c = round(row), round(column)
        inside = 0 <= r < body_parts.HEIGHT and 0 <= c < body_parts.WIDTH
        return float(depth[r, c]) if inside else body_parts.FAR

    found = body_parts.differences(depth, at, u, v)
    for i, (row, column) in enumerate(at):
        here = float(depth[row, column])
        for j in range(4):
            wanted = probe(row + u[j, 1] / here, column + u[j, 0] / here)
            wanted -= probe(row + v[j, 1] / here, column + v[j, 0] / here)
            assert found[i, j] == pytest.approx(wanted, abs=1e-5)


def test_forest_learns_and_more_offsets_help(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    images = [body_parts.render(rng) for _ in range(14)]
    depth = np.array([d for d, _ in images], dtype=np.float32)
    label = np.array([part for _, part in images])
    monkeypatch.setattr(body_parts, "load", lambda: (depth, label))
    monkeypatch.setattr(body_parts, "TRAINING", 10)
    config = body_parts.body_space().decode(np.full(14, 0.5))
    config |= {f"{name}_mean_{axis}": 0.0 for name in ("u", "v") for axis in ("x", "y")}
    config |= {"offsets": 200, "depth": 15, "min_split": 2, "sample": 1.0}
    objective = body_parts.BodyParts(images=10, pixels=100)
    good = objective(config)
    assert good == objective(config)
    assert good < objective({**config, "offsets": 1, "depth": 1}) - 0.1


def test_offsets_have_the_wanted_mean_and_covariance_also_from_an_invalid_one() -> None:
    config = {"u_mean_x": 3.0, "u_mean_y": -2.0, "u_var_x": 4.0, "u_var_y": 9.0, "u_cov": 3.0}
    drawn = body_parts.draw_offsets({**config, "offsets": 20_000}, "u", np.random.default_rng(0))
    np.testing.assert_allclose(drawn.mean(0), [3.0, -2.0], atol=0.1)
    np.testing.assert_allclose(np.cov(drawn.T), [[4.0, 3.0], [3.0, 9.0]], atol=0.3)
    wrong = {**config, "u_cov": 100.0, "offsets": 100}
    assert np.isfinite(body_parts.draw_offsets(wrong, "u", np.random.default_rng(0))).all()


@pytest.mark.parametrize("method", ["l1", "l2"])
def test_masks_drop_the_smallest_weights_or_columns(method: str) -> None:
    weights = torch.tensor([[1.0, -5.0, 0.1], [2.0, 4.0, -0.2]])
    mask = pruning.keep_mask(weights, method, 1 / 3)
    assert mask.tolist() == [[1, 1, 0], [1, 1, 0]]
    assert pruning.keep_mask(weights, method, 0.0).all()
    assert not pruning.keep_mask(weights, method, 1.0).any()


@pytest.mark.usefixtures("digits")
def test_pruning_counts_what_is_gone_and_everything_gone_knows_nothing() -> None:
    space = get_problem("pruning").space
    config = space.decode(np.full(space.dim, 0.25))

    def with_ratio(ratio: float) -> dict:
        return {
            block: {name: dict.fromkeys(own, ratio) for name, own in chosen.items()}
            for block, chosen in config.items()
        }

    objective = pruning.Pruning()
    assert objective(with_ratio(0.0)) > 0.9  # all of it accuracy
    assert objective(with_ratio(0.5)) == pytest.approx(1.5, abs=0.1)
    assert objective(with_ratio(1.0)) == pytest.approx(1.1, abs=0.1)
    assert objective(with_ratio(0.5)) == objective(with_ratio(0.5))


@pytest.mark.usefixtures("digits")
def test_a_block_s_activations_are_torchs_with_its_parameters() -> None:
    elu = {"elu": {"first": 0.3, "others": 0.6}}
    config = {"block0": elu, "block1": {"lrelu": {"first": 0.2, "others": 0.9}}, "block2": elu}
    found = pruning.chosen_activations(config)
    nn = torch.nn
    wanted = [nn.ELU(0.3), nn.ELU(0.6), nn.ELU(0.6)]
    wanted = [*wanted, nn.LeakyReLU(0.2), nn.LeakyReLU(0.9), nn.LeakyReLU(0.9), *wanted]
    Z = torch.linspace(-2, 2, 9)
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours(Z), theirs(Z))
    assert pruning.Activations()(config) > 0.8


@pytest.mark.usefixtures("digits")
def test_blocks_that_never_live_leave_a_linear_network() -> None:
    objective = stochastic_depth.StochasticDepth()
    alive, dead = objective({"x": np.full(24, -1.0)}), objective({"x": np.ones(24)})
    assert alive == objective({"x": np.full(24, -1.0)})
    assert alive != dead
    X = torch.rand(5, 784)
    net = stochastic_depth.start()
    linear = torch.nn.functional.layer_norm(X @ net[0], (64,)) @ net[-1]
    torch.testing.assert_close(stochastic_depth.logits(X, net, np.zeros(24)), linear)


def test_cosmology_reads_nine_mixed_coordinates() -> None:
    assert len(cosmology.RANGES) == 9
    centre = cosmology.cosmology_at(np.zeros(40))
    assert centre["w"] == pytest.approx(-1.0)
    assert centre["H0"] == pytest.approx(70.0)
    x = np.zeros(40)
    x[39] = 1.0  # a dummy, mixed in
    moved = cosmology.cosmology_at(x)
    assert moved["H0"] == pytest.approx(70.0 + 15.0 * cosmology.mixing()[2, 39])


def test_planck_prefers_plancks_cosmology() -> None:
    pytest.importorskip("camb", reason="needs camb")
    try:
        cosmology.measured()
    except DatasetError as error:
        pytest.skip(str(error))
    best = {"ombh2": 0.02236, "omch2": 0.1201, "H0": 67.3, "tau": 0.0543, "log_As": 3.045}
    best |= {"ns": 0.965, "w": -1.0, "mnu": 0.06, "calibration": 1.0}
    found = cosmology.log_likelihood(best)
    assert -330 < found < -270  # 613 bins and 8 distances: chi^2 near its degrees of freedom
    assert cosmology.log_likelihood({**best, "ns": 0.9}) < found - 100


def test_an_alloy_melts_when_hot_and_hardens_when_aged() -> None:
    pytest.importorskip("pycalphad", reason="needs pycalphad")
    hot, solid, aged = (alloy.phases(alloy.AA2050, kelvin) for kelvin in (850.0, 775.0, 428.0))
    for found in (hot, solid, aged):
        assert sum(found.values()) == pytest.approx(1.0, abs=1e-6)
    assert hot["LIQUID"] > 0.03
    assert solid["FCC_A1"] > 0.99
    assert aged["ALCULI_T1"] > 0.01
    assert aged["FCC_A1"] < 0.9


def test_a_policy_of_zeros_stands_still_and_values_repeat() -> None:
    pytest.importorskip("mujoco", reason="needs mujoco")
    pytest.importorskip("gymnasium", reason="needs gymnasium")
    from raybo.benchmarks.problems.locomotion import LinearPolicy

    rng = np.random.default_rng(0)
    for robot, dim in (("hopper", 33), ("swimmer", 16)):
        objective = LinearPolicy(robot)
        configs = [{"x": rng.uniform(-1, 1, dim)} for _ in range(3)]
        values = [objective(config) for config in configs]
        assert len(set(values)) == 3
        assert objective(configs[0]) == values[0]
    assert objective({"x": np.zeros(16)}) == pytest.approx(0.0, abs=1e-6)
