from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.optimize import minimize

from raybo.benchmarks.problems.base import BenchmarkError, Problem
from raybo.benchmarks.problems.registry import FAMILIES, PROBLEMS, get_problem, names
from raybo.benchmarks.problems.vectors import VectorObjective, embedded, rotated, rotation_matrix
from raybo.benchmarks.tables.registry import TASKS

# Functions, evaluated in microseconds; applications are tested with their modules.
FUNCTIONS = sorted(
    name
    for name in {problem for task in TASKS.values() for problem in task.problems}
    if get_problem(name).optimum is not None and get_problem(name).cost == "microseconds"
)
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


class Spy:
    """A vector of 10^12 coordinates, all 0.25, that notes which are read."""

    def __init__(self):
        self.read = []

    def __getitem__(self, rows):
        self.read += rows
        return np.full(len(rows), 0.25)

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("the whole vector was asked for")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_problem_of_a_task_evaluates_and_pickles(name):
    problem = pickle.loads(pickle.dumps(get_problem(name)))
    config = problem.space.draw(np.random.default_rng(0))
    value = problem.objective(config)
    assert problem.name == name
    assert isinstance(value, float)
    assert np.isfinite(value)
    assert problem.regret(value) >= 0
    assert problem.regret(problem.optimum) == 0


def test_an_embedding_in_a_trillion_dimensions_reads_two_coordinates():
    problem = get_problem("branin-1e12")
    assert problem.space.dim == 10**12
    spy = Spy()
    value = problem.objective({"x": spy})
    assert value == get_problem("branin").objective({"x": np.array([0.25, 0.25])})
    assert len(spy.read) == 2
    assert set(spy.read) == set(problem.objective.coordinates)


def test_embedded_reads_the_given_coordinates_in_their_order():
    problem = embedded(get_problem("branin"), 5, (3, 1))
    x = np.array([9, 0.5, 9, -0.5, 9]) / 10
    plain = get_problem("branin").objective({"x": np.array([-0.05, 0.05])})
    assert problem.objective({"x": x}) == plain


def test_the_optimum_is_reached_in_the_embedding():
    problem = get_problem("levy-20-in-1000")
    x = problem.objective.optimizer(1000)
    assert problem.objective({"x": x}) == pytest.approx(problem.optimum, abs=1e-12)


def test_rotation_keeps_the_optimum_of_branin_in_25_dimensions():
    problem = get_problem("branin-25-rotated")
    x = problem.objective.optimizer(25)
    assert np.all(np.abs(x) <= 1)
    assert problem.objective({"x": x}) == pytest.approx(problem.optimum, abs=1e-12)
    found = minimize(
        lambda z: problem.objective({"x": z}), x + 0.01, bounds=[(-1, 1)] * 25, method="L-BFGS-B"
    )
    assert found.fun >= problem.optimum - 1e-12


def test_rotation_whose_optimum_leaves_the_box_has_no_known_optimum():
    problem = rotated(get_problem("hartmann6"), seed=0)
    inside = np.all(np.abs(problem.objective.optimizer(6)) <= 1)
    assert (problem.optimum is not None) == inside
    assert rotated(get_problem("repeated-branin-20"), seed=0).regret(1.0) is None


def test_rotation_matrix_is_a_rotation():
    R = rotation_matrix(25, 4)
    np.testing.assert_allclose(R @ R.T, np.eye(25), atol=1e-12)
    assert np.linalg.det(R) == pytest.approx(1.0)


def test_coordinates_depend_on_the_seed_only():
    a, b, c = (embedded(get_problem("branin"), 1000, seed) for seed in (1, 1, 2))
    assert a.objective == b.objective
    assert a.objective != c.objective


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bramin", "not known; there are jenatton, "),
        ("Branin", "not known"),
        ("levy", "needs a dimension: levy-20"),
        ("gaussian-7", "an even number of coordinates, got 7"),
        ("repeated-hartmann6-5", "at least 6 coordinates, got 5"),
        ("levy-1e6", "at most 10000"),
        ("branin-1", "embed it in 2 to 10^12, got 1"),
        ("branin-1e13", "embed it in 2 to 10^12"),
        ("branin-25-in-30", "two dimensions"),
        ("branin-1e9-rotated", "offered up to 2000"),
        ("jenatton-5", "cannot be embedded"),
        ("jenatton-rotated", "cannot be rotated"),
    ],
)
def test_a_wrong_name_says_what_is_allowed(name, message):
    with pytest.raises(BenchmarkError) as error:
        get_problem(name)
    assert message in str(error.value)


def test_wrong_coordinates_are_refused():
    with pytest.raises(BenchmarkError, match="2 different coordinates below 5"):
        embedded(get_problem("branin"), 5, (3, 3))
    with pytest.raises(BenchmarkError, match="2 different coordinates below 5"):
        embedded(get_problem("branin"), 5, (3, 5))


def test_names_cover_the_registry():
    assert len(names()) == len(PROBLEMS) + len(FAMILIES)
    assert "branin[-D]" in names()
    assert "levy-D" in names()


def test_regret_of_a_maximised_problem_is_positive():
    problem = get_problem("gaussian-20")
    assert problem.mode == "max"
    assert problem.regret(0.25) == pytest.approx(0.75)


def test_a_problem_without_an_optimum_has_no_regret():
    objective = VectorObjective(get_problem("branin").objective.function)
    assert Problem("mine", get_problem("branin").build_space, objective).regret(1.0) is None


@pytest.mark.parametrize("name", DIMS)
def test_an_application_has_the_papers_dimension_and_pickles(name):
    problem = get_problem(name)
    assert problem.space.dim == DIMS[name]
    assert pickle.loads(pickle.dumps(problem.objective)) == problem.objective


def test_every_application_belongs_to_a_task():
    assert {problem for task in TASKS.values() for problem in task.problems} >= set(DIMS)
