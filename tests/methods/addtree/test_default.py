"""Add-Tree: what it finds, in trees of all kinds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from raybo.acquisition.functions import log_ei
from raybo.benchmarks.problems.conditional import blocks_space
from raybo.benchmarks.problems.registry import get_problem
from raybo.errors import MethodError, SpaceError
from raybo.methods.addtree.default import AddTree, shorten_off_path
from raybo.methods.addtree.kernel import tree_kernel
from raybo.methods.base import FULL, LEAST, REDUCED, Data
from raybo.methods.model import theta_from_json
from raybo.methods.registry import describe_method, is_same_method, method_class
from raybo.space.parameters import Categorical, Choice, Float, Int
from raybo.space.space import Space
from raybo.space.tree import paths, vertices
from raybo.study.optimizer import Optimizer
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.stationary import SE
from raybo.surrogate.map import NOISE_HYPER, starting_theta
from raybo.surrogate.outcomes import standardize
from tests.helpers.data import data_of

JENATTON = get_problem("jenatton")
FLAT = Space({"x": Float(0, 1), "y": Float(0, 1)})


def deep(levels: int) -> Space:
    """A choice below a choice below a choice, a parameter at every second level."""
    inside: dict[str, Any] = {"x": Float(0, 1)}
    for level in range(levels):
        own = {f"p{level}": Float(0, 1)} if level % 2 else {}
        inside = {**own, f"c{level}": Choice({"down": inside, "stop": {}})}
    return Space(inside)


def told(space: Space, n: int, loss: Callable[[dict[str, Any]], float]) -> Data:
    return data_of(space, n, lambda x: loss(space.decode(x)))


def run(
    space: Space, loss: Callable[[dict[str, Any]], float], n: int, seed: int = 0, **options: Any
) -> Optimizer:
    optimizer = Optimizer(space, "addtree", seed=seed, **options)
    for _ in range(n):
        trial = optimizer.ask()
        optimizer.tell(trial.number, loss(trial.config))
    return optimizer


def flat_loss(config: dict[str, Any]) -> float:
    return math.sin(5 * config["x"]) + (config["y"] - 0.3) ** 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"acquisition": "pi"}, "acquisition must be one of 'log_ei', 'ei', 'ucb', got 'pi'"),
        ({"expand": "yes"}, "expand must be one of False, True, got 'yes'"),
        ({"n_init": 0}, "n_init must be"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(MethodError, match=message):
        AddTree(FLAT, **options)


def test_a_flat_space_has_a_plain_gaussian_process_and_its_expected_improvement() -> None:
    data = told(FLAT, 14, flat_loss)
    proposal = AddTree(FLAT).propose(data, np.random.default_rng(0))
    assert proposal.x is not None
    theta = theta_from_json(proposal.memo["theta"])
    plain = GP.of(
        SE(2, scaled=True),
        {**theta, "variance": theta["variance"][0]},
        torch.tensor(data.X),
        torch.tensor(standardize(data.loss)),
        mean=0.0,
    )

    def gain(X: torch.Tensor) -> torch.Tensor:
        return log_ei(plain.posterior(X), plain.fitted().min())

    side = torch.linspace(0, 1, 201, dtype=torch.float64)
    grid = torch.cartesian_prod(side, side)
    assert gain(torch.tensor(proposal.x[None])).item() >= gain(grid).max().item() - 1e-3


def test_a_branch_tried_in_one_combination_is_known_in_all() -> None:
    space = Space({f"c{k}": Choice({"a": {"x": Float(0, 1)}, "b": {}}) for k in range(2)})
    shared, whole = AddTree(space), AddTree(space, expand=True)
    assert [sum(len(v.columns) for v in m.tree) for m in (shared, whole)] == [2, 3]
    assert len(AddTree(blocks_space()).tree) == 7
    many = Space({f"c{k}": Choice({"a": {"x": Float(0, 1)}, "b": {}}) for k in range(13)})
    with pytest.raises(SpaceError, match="expand=False"):
        AddTree(many, expand=True)


@pytest.mark.parametrize("effort", [FULL, REDUCED, LEAST], ids=lambda effort: effort.name)
def test_every_effort_gives_a_point_of_the_space(effort: Any) -> None:
    data = replace(told(JENATTON.space, 15, JENATTON.objective), effort=effort)
    x = AddTree(JENATTON.space).propose(data, np.random.default_rng(0)).x
    assert x is not None
    np.testing.assert_array_equal(x, JENATTON.space.snap(x[None])[0])


def test_a_fit_of_another_model_in_the_memos_is_ignored() -> None:
    data = told(JENATTON.space, 15, JENATTON.objective)
    other = {"theta": {"lengthscale.1": [1.0], "stretch": [1.0], "noise": 0.1}, "fitted": 15}
    known = replace(data, memos=(*data.memos[:-1], other))
    x, again = (
        AddTree(JENATTON.space).propose(d, np.random.default_rng(0)).x for d in (data, known)
    )
    np.testing.assert_array_equal(x, again)


def test_a_flat_space_is_searched() -> None:
    best = run(FLAT, flat_loss, 15).best
    assert best is not None
    assert best.value < -1 + 1e-3


@pytest.mark.slow
def test_branches_without_parameters_have_an_effect_of_their_own() -> None:
    space = Space({"c": Choice({str(k): {} for k in range(12)}), "x": Float(0, 1)})
    effects = np.random.default_rng(1).permutation(12)

    def loss(config: dict[str, Any]) -> float:
        [branch] = config["c"]
        return float(effects[int(branch)] + (config["x"] - 0.6) ** 2)

    best = run(space, loss, 24).best
    assert best is not None
    assert best.value < 1e-2


@pytest.mark.slow
def test_a_deep_tree_is_searched_to_its_last_level() -> None:
    space = deep(6)
    assert max(len(v.condition) for v in vertices(space)) == 6

    def loss(config: dict[str, Any]) -> float:
        value, level = 0.0, 5
        while level >= 0:
            value += 0.1 * config.get(f"p{level}", 0.0)
            [(branch, config)] = config[f"c{level}"].items()
            if branch == "stop":
                return value + 0.3 * (1 + level)
            level -= 1
        return value + (config["x"] - 0.5) ** 2

    best = run(space, loss, 25).best
    assert best is not None
    assert best.value < 0.05  # the best that stops a level earlier has 0.3


@pytest.mark.parametrize("preset", ["default", pytest.param("paper", marks=pytest.mark.slow)])
def test_integers_logarithms_and_categories_may_be_at_a_vertex(preset: str) -> None:
    leaf = {"n": Int(1, 300), "r": Float(1e-4, 1, log=True), "k": Categorical(["u", "v", "w"])}
    space = Space({"c": Choice({"a": leaf, "b": {"n": Int(1, 3)}})})

    def loss(config: dict[str, Any]) -> float:
        [(branch, own)] = config["c"].items()
        if branch == "b":
            return 1.0 + own["n"]
        away = abs(own["n"] - 200) / 300 + abs(math.log10(own["r"]) + 2) / 4
        return away + {"u": 0.5, "v": 0.0, "w": 0.3}[own["k"]]

    optimizer = run(space, loss, 18, preset=preset)
    for trial in optimizer.trials:
        [own] = trial.config["c"].values()
        assert isinstance(own["n"], int)
        assert 1e-4 <= own.get("r", 1.0) <= 1.0
    assert optimizer.best is not None
    assert optimizer.best.value < 0.35


def test_more_leaves_than_can_be_searched_one_by_one() -> None:
    many = Space({f"c{k}": Choice({"a": {"x": Float(0, 1)}, "b": {}}) for k in range(6)})
    assert len(list(paths(vertices(many)))) == 64  # 32 are searched one by one

    def loss(config: dict[str, Any]) -> float:
        return sum(
            own["a"]["x"] if "a" in own else 0.5 * (1 if k % 2 else -1)
            for k, own in enumerate(config.values())
        )

    optimizer = run(many, loss, 20)
    assert optimizer.best is not None
    assert optimizer.best.value < -1.4  # the optimum is -1.5


@pytest.mark.parametrize("acquisition", ["log_ei", "ucb"])
def test_pending_points_are_kept_away_from(acquisition: str) -> None:
    method = AddTree(JENATTON.space, acquisition=acquisition)
    data = told(JENATTON.space, 15, JENATTON.objective)
    memo: dict[str, Any] = {}
    for _ in range(5):
        proposal = method.propose(data, np.random.default_rng(0))
        assert proposal.x is not None
        memo = proposal.memo or memo
        assert proposal.memo in ({}, memo)  # fitted once: nothing was told since
        apart = np.abs(data.pending - proposal.x).max(axis=1, initial=0.0)
        assert not len(data.pending) or apart.min() > 1e-3
        data = replace(
            data,
            number=data.number + 1,
            pending=np.vstack([data.pending, proposal.x]),
            pending_memos=(*data.pending_memos, memo),
        )


@pytest.mark.parametrize("acquisition", ["log_ei", "ucb"])
def test_no_point_of_a_finite_space_is_tried_twice(acquisition: str) -> None:
    space = Space({"c": Choice({"a": {"n": Int(1, 6)}, "b": {"k": Categorical([1, 2, 3])}})})
    optimizer = run(space, lambda config: float(len(str(config))), 9, acquisition=acquisition)
    assert len({str(trial.config) for trial in optimizer.trials}) == 9


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_options_that_a_journal_holds_as_none_are_at_their_defaults(preset: str) -> None:
    options = {"preset": preset, "n_init": None, "expand": None, "acquisition": None}
    old = {"name": "addtree", "options": options}
    cls = method_class("addtree", preset)
    assert is_same_method(old, describe_method(cls(FLAT)))
    assert not is_same_method(old, describe_method(cls(FLAT, n_init=5)))
    assert not is_same_method(old, describe_method(cls(FLAT, expand=preset == "default")))


@pytest.mark.slow
def test_a_good_branch_seen_in_poor_places_is_not_given_up() -> None:
    """At least four of five runs find the best branches of three added Hartmann functions."""
    problem = get_problem("blocks-hartmann")
    bests = []
    for seed in range(5):
        best = run(problem.space, problem.objective, 100, seed).best
        assert best is not None
        bests.append(best.value)
    assert sum(value < 0.4 for value in bests) >= 4, bests  # another branch costs 0.5 or more


@pytest.mark.slow
def test_jenatton_function() -> None:
    """The median of 10 runs of log10(best - 0.1) is below -4 after 30 evaluations."""
    regrets = []
    for seed in range(10):
        best = run(JENATTON.space, JENATTON.objective, 30, seed).best
        assert best is not None
        regrets.append(math.log10(max(best.value - 0.1, 1e-12)))
    assert np.median(regrets) < -4
    assert max(regrets) < -2  # every run finds the right one of the four leaves


def test_vertices_off_the_best_path_get_shorter_lengthscales_and_the_others_keep_theirs() -> None:
    branch = {name: Float(0, 1) for name in "xyz"}
    branches = {"l": branch, "r": branch, "one": {"x": Float(0, 1)}}
    space = Space({"a": Float(0, 1), "c": Choice(branches)})
    kernel = tree_kernel(space, vertices(space))
    X = torch.as_tensor(space.sample(12, np.random.default_rng(0)))
    gp = GP.of(kernel, starting_theta(kernel, NOISE_HYPER), X, X.sum(1))
    passed = kernel.active(X[gp.fitted().argmin()][None])[0]
    ratio = shorten_off_path(gp, kernel).theta["lengthscale"] / gp.theta["lengthscale"]
    for vertex, term in enumerate(kernel.terms):
        expected = 1.0 if passed[vertex] else {0: 1.0, 1: 1.0, 3: 0.5}[len(term.columns)]
        np.testing.assert_allclose(ratio[kernel.owners("lengthscale") == vertex], expected)
    assert (ratio == 0.5).any()
