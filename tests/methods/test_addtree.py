"""Add-Tree: Algorithm 2, A-GP-UCB, what it does with odd trees, and expected improvement."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from raybo.acquisition.functions import ucb
from raybo.benchmarks.problems.conditional import blocks_space
from raybo.benchmarks.problems.registry import get_problem
from raybo.errors import MethodError, SpaceError
from raybo.methods.addtree.default import (
    GROWTH,
    AddTree,
    a_gp_ucb,
    design_size,
    doubt,
    improve,
    shorten,
)
from raybo.methods.addtree.kernel import tree_kernel
from raybo.methods.addtree.search import _MOST_LEAVES, assemble, best_path
from raybo.methods.base import Data
from raybo.methods.model import theta_from_json
from raybo.space.parameters import Categorical, Choice, Float, Int
from raybo.space.space import Space
from raybo.space.tree import expanded, paths, vertices
from raybo.study.optimizer import Optimizer
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.base import starting_theta
from raybo.surrogate.kernels.stationary import SE
from raybo.surrogate.outcomes import standardize

JENATTON = get_problem("jenatton")
FLAT = Space({"x": Float(0, 1), "y": Float(0, 1)})


def deep(levels: int) -> Space:
    """A choice below a choice below a choice, a parameter at every second level."""
    inside: dict[str, Any] = {"x": Float(0, 1)}
    for level in range(levels):
        own = {f"p{level}": Float(0, 1)} if level % 2 else {}
        inside = {**own, f"c{level}": Choice({"down": inside, "stop": {}})}
    return Space(inside)


def data_of(space: Space, n: int, loss: Callable[[dict[str, Any]], float]) -> Data:
    X = space.sample(n, np.random.default_rng(0))
    return Data(
        number=n,
        seed=1,
        X=X,
        loss=np.array([loss(space.decode(x)) for x in X]),
        failed=np.zeros(n, dtype=bool),
        memos=({},) * n,
        pending=np.empty((0, space.dim)),
        pending_memos=(),
    )


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


def fitted(method: AddTree, data: Data) -> tuple[GP, np.ndarray]:
    """The process that a proposal was made with, and the proposal."""
    proposal = method.propose(data, np.random.default_rng(0))
    theta = theta_from_json(proposal.memo["theta"])
    kernel, tail = method.prior(method.tree)
    y = torch.tensor(standardize(data.loss, tail))
    assert proposal.x is not None
    return GP.of(kernel, theta, torch.tensor(data.X), y), proposal.x


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "best"}, "preset must be one of 'default', 'paper', got 'best'"),
        ({"acquisition": "pi"}, "acquisition must be one of 'ucb', 'ei', got 'pi'"),
        ({"expand": "yes"}, "expand must be one of False, True, got 'yes'"),
        ({"n_init": 0}, "n_init must be"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(MethodError, match=message):
        AddTree(FLAT, **options)


@pytest.mark.parametrize(
    "tree",
    [
        vertices(deep(6)),
        vertices(blocks_space()),
        expanded(vertices(blocks_space())),
        vertices(Space({"c": Choice({str(k): {"x": Float(0, 1)} for k in range(13)})})),
    ],
    ids=["deep", "independent", "expanded", "wide"],
)
def test_the_best_path_has_the_largest_sum_of_all(tree: tuple) -> None:
    for seed in range(20):
        u = np.random.default_rng(seed).normal(size=len(tree))
        best = max(paths(tree), key=lambda path: sum(u[v] for v in path))
        assert best_path(tree, u) == frozenset(best)


def test_the_papers_preset_maximises_every_vertex_by_itself() -> None:
    data = data_of(JENATTON.space, 25, JENATTON.objective)
    method = AddTree(JENATTON.space, preset="paper")
    gp, x = fitted(method, data)
    gp = shorten(gp, 25, 1)
    beta = a_gp_ucb(gp, 25)
    grid = torch.linspace(0, 1, 2001, dtype=torch.float64)
    tree, kernel = method.tree, gp.kernel
    u, at = np.empty(len(tree)), np.full((len(tree), 1), 0.5)
    for v, vertex in enumerate(tree):
        Z = torch.full((len(grid), JENATTON.space.dim), 0.5, dtype=torch.float64)
        for column, branch in vertex.condition:
            Z[:, column] = (branch + 0.5) / 2
        if vertex.columns:
            Z[:, vertex.columns[0]] = grid
        bounds = ucb(gp.posterior(Z, part=v), beta)
        u[v], at[v, 0] = bounds.max(), grid[bounds.argmax()]
    expected = assemble(JENATTON.space, kernel.terms, best_path(tree, u), at)
    np.testing.assert_allclose(x, expected, atol=1e-3)


def test_beta_and_length_scales_are_those_of_a_gp_ucb() -> None:
    data = data_of(JENATTON.space, 20, JENATTON.objective)
    gp, _ = fitted(AddTree(JENATTON.space, preset="paper"), data)
    noise = float(gp.theta["noise"])
    K = gp.kernel(gp.X, gp.X, gp.theta)
    gain = 0.5 * torch.logdet(torch.eye(20) + K / noise).item()
    bound = math.sqrt(1 + math.log(21))
    root = bound + 4 * math.sqrt(noise * (gain + 1 + math.log(10)))
    assert a_gp_ucb(gp, 20) == pytest.approx(root**2, rel=1e-6)
    longest = (1 + math.log(21)) ** -0.25
    short = shorten(gp.with_theta({"lengthscale.1": torch.linspace(0.1, 2.0, 6).double()}), 20, 1)
    assert short.theta["lengthscale.1"].max().item() == pytest.approx(longest)
    assert short.theta["lengthscale.1"].min().item() == pytest.approx(0.1)


def test_ucb_on_a_flat_space_is_plain_gp_ucb() -> None:
    data = data_of(FLAT, 14, flat_loss)
    gp, x = fitted(AddTree(FLAT, acquisition="ucb"), data)
    theta = {
        "lengthscale": gp.theta["lengthscale.2"][0],
        "variance": gp.theta["variance"][0],
        "noise": gp.theta["noise"],
        "mean": gp.theta["mean"],
    }
    plain = GP.of(SE(2, scaled=True), theta, gp.X, gp.y)
    side = torch.linspace(0, 1, 201, dtype=torch.float64)
    grid = torch.cartesian_prod(side, side)
    beta = GROWTH * math.log(2 * 14)
    bounds = ucb(plain.posterior(grid), beta)
    reached = ucb(plain.posterior(torch.tensor(x[None])), beta).item()
    assert reached >= bounds.max().item() - 1e-6
    np.testing.assert_allclose(x, grid[bounds.argmax()], atol=0.01)


def test_a_flat_space_is_searched() -> None:
    best = run(FLAT, flat_loss, 15).best
    assert best is not None
    assert best.value < -1 + 1e-3


def test_expected_improvement_is_the_default() -> None:
    data = data_of(JENATTON.space, 12, JENATTON.objective)
    found = {
        name: AddTree(JENATTON.space, acquisition=name).propose(data, np.random.default_rng(0)).x
        for name in (None, "ei", "ucb")
    }
    np.testing.assert_array_equal(found[None], found["ei"])
    assert not np.allclose(found["ei"], found["ucb"])


def test_a_model_that_expects_no_improvement_is_given_shorter_length_scales() -> None:
    data = data_of(FLAT, 14, flat_loss)
    gp, _ = fitted(AddTree(FLAT), data)
    repeat = 0.5 * math.log(float(gp.theta["noise"]) / (2 * math.pi))
    seen: list[np.ndarray] = []

    def search(limit: float) -> Callable[[Any], tuple[np.ndarray, float]]:
        def found(f: Any) -> tuple[np.ndarray, float]:
            seen.append(f.args[0].theta["lengthscale.2"].numpy())
            return np.zeros(2), limit

        return found

    improve(gp, gp.fitted().min(), search(repeat + 0.01), 3)
    assert len(seen) == 1
    improve(gp, gp.fitted().min(), search(repeat - 0.01), 3)
    own = gp.theta["lengthscale.2"].numpy()
    np.testing.assert_allclose(seen, [own, own, own / 2, own / 4, own / 8])


def test_branches_without_parameters_have_an_effect_of_their_own() -> None:
    space = Space({"c": Choice({str(k): {} for k in range(12)}), "x": Float(0, 1)})
    effects = np.random.default_rng(1).permutation(12)

    def loss(config: dict[str, Any]) -> float:
        [branch] = config["c"]
        return float(effects[int(branch)] + (config["x"] - 0.6) ** 2)

    best = run(space, loss, 24).best
    assert best is not None
    assert best.value < 1e-2


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


def test_integers_logarithms_and_categories_may_be_at_a_vertex() -> None:
    leaf = {"n": Int(1, 300), "r": Float(1e-4, 1, log=True), "k": Categorical(["u", "v", "w"])}
    space = Space({"c": Choice({"a": leaf, "b": {"n": Int(1, 3)}})})

    def loss(config: dict[str, Any]) -> float:
        [(branch, own)] = config["c"].items()
        if branch == "b":
            return 1.0 + own["n"]
        away = abs(own["n"] - 200) / 300 + abs(math.log10(own["r"]) + 2) / 4
        return away + {"u": 0.5, "v": 0.0, "w": 0.3}[own["k"]]

    for preset in ("default", "paper"):
        optimizer = run(space, loss, 18, preset=preset)
        for trial in optimizer.trials:
            [own] = trial.config["c"].values()
            assert isinstance(own["n"], int)
            assert 1e-4 <= own.get("r", 1.0) <= 1.0
        assert optimizer.best is not None
        assert optimizer.best.value < 0.35


def test_independent_choices_share_subtrees_unless_expanded() -> None:
    space = blocks_space()
    shared, whole = AddTree(space), AddTree(space, expand=True)
    assert [sum(len(v.columns) for v in m.tree) for m in (shared, whole)] == [18, 42]
    assert [len(m.tree) for m in (shared, whole)] == [7, 15]
    assert AddTree(space, preset="paper").tree == whole.tree
    assert AddTree(space, preset="paper", expand=False).tree == shared.tree
    many = Space({f"c{k}": Choice({"a": {"x": Float(0, 1)}, "b": {}}) for k in range(13)})
    with pytest.raises(SpaceError, match="expand=False"):
        AddTree(many, expand=True)


def test_more_leaves_than_can_be_searched_one_by_one() -> None:
    many = Space({f"c{k}": Choice({"a": {"x": Float(0, 1)}, "b": {}}) for k in range(6)})
    assert len(list(paths(vertices(many)))) > _MOST_LEAVES

    def loss(config: dict[str, Any]) -> float:
        return sum(
            own["a"]["x"] if "a" in own else 0.5 * (1 if k % 2 else -1)
            for k, own in enumerate(config.values())
        )

    optimizer = run(many, loss, 20)
    assert optimizer.best is not None
    assert optimizer.best.value < -1.4  # the optimum is -1.5


@pytest.mark.parametrize("acquisition", ["ei", "ucb"])
def test_pending_points_are_kept_away_from(acquisition: str) -> None:
    method = AddTree(JENATTON.space, acquisition=acquisition)
    data = data_of(JENATTON.space, 15, JENATTON.objective)
    memo: dict[str, Any] = {}
    for _ in range(5):
        proposal = method.propose(data, np.random.default_rng(0))
        assert proposal.x is not None
        memo = proposal.memo or memo
        assert proposal.memo in ({}, memo)  # fitted once: nothing was told since
        apart = np.abs(data.pending - proposal.x).max(axis=1, initial=0.0)
        assert not len(data.pending) or apart.min() > 1e-3
        data = Data(
            **{
                **vars(data),
                "number": data.number + 1,
                "pending": np.vstack([data.pending, proposal.x]),
                "pending_memos": (*data.pending_memos, memo),
            }
        )


@pytest.mark.parametrize("acquisition", ["ei", "ucb"])
def test_no_point_of_a_finite_space_is_tried_twice(acquisition: str) -> None:
    space = Space({"c": Choice({"a": {"n": Int(1, 6)}, "b": {"k": Categorical([1, 2, 3])}})})
    optimizer = run(space, lambda config: float(len(str(config))), 9, acquisition=acquisition)
    assert len({str(trial.config) for trial in optimizer.trials}) == 9


def test_the_design_reaches_every_vertex_of_a_small_tree() -> None:
    assert design_size(vertices(JENATTON.space)) == 7
    assert design_size(vertices(FLAT)) == 4
    assert design_size(expanded(vertices(blocks_space()))) == 10
    assert design_size(vertices(blocks_space())) == 18  # choices are independent: all parameters


def test_only_branches_of_several_parameters_beside_the_best_are_doubted() -> None:
    space = Space(
        {
            "a": Choice({"one": {"x": Float(0, 1), "y": Float(0, 1), "z": Float(0, 1)}, "no": {}}),
            "b": Choice({"one": {"x": Float(0, 1), "y": Float(0, 1), "z": Float(0, 1)}, "no": {}}),
            "c": Choice({"one": {"x": Float(0, 1)}, "two": {"x": Float(0, 1)}}),
        }
    )
    tree = vertices(space)
    kernel = tree_kernel(space, tree)
    X = torch.tensor(space.sample(12, np.random.default_rng(0)))
    y = torch.linspace(1.0, 2.0, 12, dtype=torch.float64)
    theta = {**starting_theta(kernel), "noise": y.new_tensor(1e-6), "mean": y.new_zeros(())}
    for best in range(12):
        gp = GP.of(kernel, theta, X, y.index_fill(0, torch.tensor([best]), 0.0))
        taken = kernel.active(X[best : best + 1])[0]
        of_three = [v for v, vertex in enumerate(tree) if len(vertex.columns) == 3]
        expected = [1.0 if taken[v] else 0.5 for v in of_three]
        changed = doubt(gp, kernel).theta
        ratio = changed["lengthscale.3"] / gp.theta["lengthscale.3"]
        torch.testing.assert_close(
            ratio, torch.tensor(expected, dtype=torch.float64)[:, None].expand(2, 3)
        )
        same = set(changed) - {"lengthscale.3"}
        assert all(torch.equal(changed[name], gp.theta[name]) for name in same)


@pytest.mark.parametrize(("parameters", "few"), [(1, True), (2, True), (3, False)])
def test_scales_and_a_term_of_the_whole_only_where_a_point_has_few_parameters(
    parameters: int, few: bool
) -> None:
    own = {f"x{i}": Float(0, 1) for i in range(parameters)}
    space = Space({f"c{k}": Choice({"a": own, "b": own}) for k in range(2)})
    data = data_of(space, 20, lambda config: float(len(str(config))))

    def learnt(**options: Any) -> tuple[bool, bool]:
        theta = AddTree(space, **options).propose(data, np.random.default_rng(0)).memo["theta"]
        return "whole.variance" in theta, "stretch" in theta

    assert learnt() == (few, few)
    assert learnt(expand=True) == (False, few)  # nothing is shared
    assert learnt(acquisition="ucb") == (few, False)
    assert learnt(preset="paper") == learnt(preset="paper", expand=False) == (False, False)


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
