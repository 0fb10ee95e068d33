"""Add-Tree as published: Algorithms 1 and 2, A-GP-UCB."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from raybo.acquisition.functions import ucb
from raybo.benchmarks.problems.conditional import blocks_space
from raybo.benchmarks.problems.registry import get_problem
from raybo.errors import MethodError, SpaceError
from raybo.methods.addtree.kernel import TreeKernel, tree_kernel
from raybo.methods.addtree.published import (
    PublishedAddTree,
    a_gp_ucb,
    adapted,
    published_kernel,
)
from raybo.methods.addtree.search import TreeSearch
from raybo.methods.base import Data
from raybo.methods.model import theta_from_json
from raybo.space.parameters import Choice, Float
from raybo.space.space import Space
from raybo.space.tree import paths
from raybo.study.optimizer import Optimizer
from raybo.surrogate.gp import GP
from raybo.surrogate.outcomes import standardize
from tests.helpers.data import data_of

JENATTON = get_problem("jenatton")


def told(n: int) -> Data:
    return data_of(JENATTON.space, n, lambda x: JENATTON.objective(JENATTON.space.decode(x)))


def proposed(method: PublishedAddTree, data: Data) -> tuple[GP, np.ndarray]:
    """The fitted process of a proposal, and the proposal."""
    proposal = method.propose(data, np.random.default_rng(0))
    assert proposal.x is not None
    kernel = published_kernel(method.space, method.tree)
    theta = theta_from_json(proposal.memo["theta"])
    y = torch.tensor(standardize(data.loss))
    return GP.of(kernel, theta, torch.tensor(data.X), y, mean=0.0), proposal.x


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"expand": "yes"}, "expand must be one of False, True, got 'yes'"),
        ({"n_init": 0}, "n_init must be"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(MethodError, match=message):
        PublishedAddTree(JENATTON.space, **options)


def test_the_proposal_has_the_best_path_of_vertices_each_maximised_by_itself() -> None:
    method, data = PublishedAddTree(JENATTON.space), told(25)
    gp, x = proposed(method, data)
    gp = adapted(gp, 25, 1)
    beta = a_gp_ucb(gp, 25, 1)
    grid = torch.linspace(0, 1, 2001, dtype=torch.float64)
    tree = method.tree
    u, at = np.empty(len(tree)), np.full((len(tree), 1), 0.5)
    for v, vertex in enumerate(tree):
        Z = torch.full((len(grid), JENATTON.space.dim), 0.5, dtype=torch.float64)
        for column, branch in vertex.condition:
            Z[:, column] = (branch + 0.5) / 2
        if vertex.columns:
            Z[:, vertex.columns[0]] = grid
        bounds = ucb(gp.posterior(Z, part=v), beta)
        u[v], at[v, 0] = bounds.max(), grid[bounds.argmax()]
    best = max(paths(tree), key=lambda path: sum(u[v] for v in path))
    terms = tree_kernel(JENATTON.space, tree).terms
    search = TreeSearch(JENATTON.space, tree, terms, data, np.random.default_rng(0))
    np.testing.assert_allclose(x, search.assemble(frozenset(best), at), atol=1e-3)


def test_only_length_scales_and_noise_are_fitted() -> None:
    method, data = PublishedAddTree(JENATTON.space), told(25)
    gp, _ = proposed(method, data)
    assert {name: value.numel() for name, value in gp.theta.items()} == {
        "lengthscale": 6,
        "noise": 1,
    }
    tree, theta = method.tree, gp.theta
    assert isinstance(gp.kernel, TreeKernel)
    through = gp.kernel.active(gp.X).numpy()
    K = np.zeros((25, 25))
    scales = iter(theta["lengthscale"].tolist())
    for v, vertex in enumerate(tree):
        if vertex.columns:  # the root has none, hence no kernel
            x = data.X[:, vertex.columns[0]]
            se = np.exp(-0.5 * ((x[:, None] - x) / next(scales)) ** 2)  # section 4.3.1
            K += np.outer(through[:, v], through[:, v]) * se
    np.testing.assert_allclose(gp.kernel(gp.X, gp.X, theta).numpy(), K, atol=1e-9)


def test_a_branch_without_parameters_has_a_level() -> None:
    space = Space({"c": Choice({"none": {}, "some": {"x": Float(0, 1)}})})
    method = PublishedAddTree(space)
    kernel = published_kernel(space, method.tree)
    X = torch.tensor(space.sample(8, np.random.default_rng(0)))
    theta = {h.name: torch.full(h.shape, h.start).double() for h in kernel.hypers}
    none = kernel.active(X)[:, 1]
    K = kernel(X, X, theta)
    assert 0 < none.sum() < 8
    assert (K[none][:, none] == 1.0).all()
    assert (K[none][:, ~none] == 0.0).all()


def test_beta_is_that_of_equations_11_to_13() -> None:
    gp, _ = proposed(PublishedAddTree(JENATTON.space), told(20))
    noise = float(gp.theta["noise"])
    K = gp.kernel(gp.X, gp.X, gp.theta)
    gain = 0.5 * torch.logdet(torch.eye(20) + K / noise).item()
    for dim in (1, 3):  # b(t) = L^(1/4), g(t)^dim = L^(1/4)
        bound = math.sqrt(1 + math.log(21))
        root = bound + 4 * math.sqrt(noise * (gain + 1 + math.log(10)))
        assert a_gp_ucb(gp, 20, dim) == pytest.approx(root**2, rel=1e-6)


def test_length_scales_shrink_with_time_but_are_never_longer_than_fitted() -> None:
    gp, _ = proposed(PublishedAddTree(JENATTON.space), told(20))
    gp = gp.with_theta({"lengthscale": torch.linspace(0.1, 2.0, 6).double()})
    for dim in (1, 3):
        short = adapted(gp, 20, dim).theta["lengthscale"]
        assert short.max().item() == pytest.approx((1 + math.log(21)) ** (-0.25 / dim))
        assert short.min().item() == pytest.approx(0.1)


def test_independent_choices_are_multiplied_out() -> None:
    space = blocks_space()
    trees = PublishedAddTree(space).tree, PublishedAddTree(space, expand=False).tree
    assert [len(tree) for tree in trees] == [15, 7]
    assert [sum(len(v.columns) for v in tree) for tree in trees] == [42, 18]
    many = Space({f"c{k}": Choice({"a": {"x": Float(0, 1)}, "b": {}}) for k in range(13)})
    with pytest.raises(SpaceError, match="expand=False"):
        PublishedAddTree(many)


def test_no_point_of_a_finite_space_is_tried_twice() -> None:
    space = Space({"c": Choice({"a": {"d": Choice({"p": {}, "q": {}})}, "b": {}, "e": {}})})
    optimizer = Optimizer(space, "addtree", preset="paper", n_init=2)
    for _ in range(4):
        trial = optimizer.ask()
        optimizer.tell(trial.number, float(len(str(trial.config))))
    assert len({str(trial.config) for trial in optimizer.trials}) == 4


@pytest.mark.slow
def test_jenatton_function() -> None:
    """Log10(best - 0.1) is below -4 after 30 evaluations in 13 of 20 runs (Figure 4a).

    So the median is below -4, as in the figure. The seeds had no part in any choice: 15 of these
    runs were below, and 34 of 40 with the next 20 seeds (examples/RESULTS.md).
    """
    regrets = []
    for seed in range(2000, 2020):
        optimizer = Optimizer(JENATTON.space, "addtree", preset="paper", seed=seed)
        for _ in range(30):
            trial = optimizer.ask()
            optimizer.tell(trial.number, JENATTON.objective(trial.config))
        assert optimizer.best is not None
        regrets.append(math.log10(max(optimizer.best.value - 0.1, 1e-12)))
    assert sum(regret < -4 for regret in regrets) >= 13, regrets
