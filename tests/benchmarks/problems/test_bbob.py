from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest

from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.problems.bbob import function
from raybo.benchmarks.problems.datasets import DatasetError
from raybo.benchmarks.problems.registry import get_problem


def test_a_function_has_its_optimum_where_ioh_says() -> None:
    pytest.importorskip("ioh", reason="needs ioh")
    for number, dim in ((1, 10), (15, 20), (24, 40)):
        problem = pickle.loads(pickle.dumps(get_problem(f"bbob-f{number}-{dim}")))
        best = np.asarray(function(number, dim).optimum.x)
        assert problem.objective({"x": best}) == pytest.approx(problem.optimum)
        rng = np.random.default_rng(0)
        assert all(
            problem.regret(problem.objective({"x": rng.uniform(-5, 5, dim)})) > 0
            for _ in range(100)
        )


def test_the_sphere_is_the_squared_distance_from_its_optimum() -> None:
    pytest.importorskip("ioh", reason="needs ioh")
    problem = get_problem("bbob-f1-10")
    x = np.random.default_rng(0).uniform(-5, 5, 10)
    square = np.sum((x - np.asarray(function(1, 10).optimum.x)) ** 2)
    assert problem.regret(problem.objective({"x": x})) == pytest.approx(square)


@pytest.mark.parametrize("name", ["bbob-f25-10", "bbob-f1-1", "bbob-15-20"])
def test_an_unknown_function_is_answered_with_how_names_are_made(name: str) -> None:
    with pytest.raises(BenchmarkError, match="bbob-f15-20"):
        get_problem(name)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ioh", None)
    with pytest.raises(DatasetError, match="pip install ioh"):
        get_problem("bbob-f3-17")
