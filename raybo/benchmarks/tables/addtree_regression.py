"""Test error of models of a conditional function, by number of points (Add-Tree, Figure 4b).

    raybo bench addtree-regression --seeds 10

Points are drawn as in section 5.1: every choice a fair coin, every parameter uniform. The table
shows the median over the seeds of log10 of the mean squared error on 50 other points, for the
Add-Tree process and for one process per leaf. In the paper's figure an error of 1e-4 takes 24
points with Add-Tree and 44 with independent processes.
"""

from __future__ import annotations

from collections.abc import Callable

import click
import numpy as np
import torch
from rich.table import Table

from raybo.arrays import Array
from raybo.benchmarks.problems.base import Problem
from raybo.benchmarks.problems.registry import get_problem
from raybo.benchmarks.terminal import single_thread, wide_console
from raybo.benchmarks.tuners.independent_gps import leaves
from raybo.methods.addtree.default import SPREAD
from raybo.methods.addtree.kernel import tree_kernel
from raybo.space.any_space import AnySpace
from raybo.space.tree import vertices
from raybo.surrogate.gp import GP
from raybo.surrogate.linalg import one_thread
from raybo.surrogate.map import FREE_NOISE, fit, starting_theta

Model = Callable[[AnySpace, Array, Array, Array], Array]  # X, y and rows to predict: their values
TEST_POINTS = 50


def by_tree(space: AnySpace, X: Array, y: Array, Z: Array) -> Array:
    """Return the predictions of the Add-Tree process at Z."""
    kernel = tree_kernel(space, vertices(space), spread=SPREAD)
    start = starting_theta(kernel, FREE_NOISE)
    rows, values = torch.as_tensor(X), torch.as_tensor(y)
    theta = fit(kernel, rows, values, [start], noise=FREE_NOISE, mean=0.0)
    return GP.of(kernel, theta, rows, values, 0.0).posterior(torch.as_tensor(Z)).mean.numpy()


def by_leaf(space: AnySpace, X: Array, y: Array, Z: Array) -> Array:
    """Return the predictions of one process per leaf at Z; without points, the mean of y."""
    predicted = np.full(len(Z), y.mean())
    for leaf in leaves(space):
        inside, asked = (
            np.all(rows[:, _choices(space, leaf.base)] == _at(space, leaf.base), axis=1)
            for rows in (X, Z)
        )
        if inside.any() and asked.any():
            gp = leaf.gp(X[inside], y[inside])
            predicted[asked] = gp.posterior(torch.as_tensor(Z[asked])).mean.numpy()
    return predicted


def _choices(space: AnySpace, base: tuple[float, ...]) -> list[int]:
    """Return the choices that are active in the leaf of the row `base`."""
    active = space.active(np.array([base]))[0]
    return [c.index for c in space.columns if c.kind == "choice" and active[c.index]]


def _at(space: AnySpace, base: tuple[float, ...]) -> Array:
    return np.array(base)[_choices(space, base)]


MODELS: dict[str, Model] = {"Add-Tree": by_tree, "independent": by_leaf}


def log_error(problem: Problem, model: Model, n: int, seed: int) -> float:
    """Return log10 of the mean squared error on 50 points of a model of n points."""
    space, rng = problem.space, np.random.default_rng(seed)
    rows = space.sample(n + TEST_POINTS, rng)
    values = np.array([problem.objective(space.decode(row)) for row in rows])
    centre, spread = values[:n].mean(), values[:n].std()
    with one_thread():
        found = model(space, rows[:n], (values[:n] - centre) / spread, rows[n:])
    return float(np.log10(np.mean((found * spread + centre - values[n:]) ** 2)))


@click.command()
@click.option("--seeds", default=10, show_default=True, help="training sets per number of points")
@click.option("--points", default="16,20,24,30,36,44", help="numbers of training points")
@click.option("--problem", default="jenatton", show_default=True)
def command(seeds: int, points: str, problem: str) -> None:
    """Print the test errors of models of a conditional function."""
    single_thread()
    sizes = [int(text) for text in points.split(",")]
    table = Table(title=f"{problem}: log10 of the test error, median of {seeds}")
    table.add_column("model")
    for n in sizes:
        table.add_column(f"n = {n}", justify="right")
    for name, model in MODELS.items():
        errors = [
            [log_error(get_problem(problem), model, n, seed) for seed in range(seeds)]
            for n in sizes
        ]
        table.add_row(name, *(f"{np.median(row):.2f}" for row in errors))
    wide_console().print(table)
