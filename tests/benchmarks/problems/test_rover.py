from __future__ import annotations

import numpy as np
import pytest

from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.problems.registry import get_problem
from raybo.benchmarks.problems.rover import CENTRES, cost_rate


def test_a_path_in_a_box_or_outside_the_square_is_expensive() -> None:
    points = np.array([CENTRES[0], [-0.01, 0.5], [0.5, 1.0], [0.05, 0.05]])
    assert cost_rate(points) == pytest.approx([20.05, 20.05, 20.05, 0.05])


def test_a_straight_path_costs_what_it_crosses() -> None:
    problem = get_problem("rover-60")
    x = (np.repeat(np.linspace(0.05, 0.95, 30), 2) + 0.1) / 1.2
    path = np.repeat(np.linspace(0.05, 0.95, 2000)[:, None], 2, axis=1)
    cost = cost_rate(path).mean() * np.hypot(0.9, 0.9)
    assert problem.objective({"x": x}) == pytest.approx(5 - cost, abs=0.15)
    assert problem.space.dim == 60


def test_bocode_gives_the_same_value() -> None:
    pytest.importorskip("bocode", reason="needs bocode")
    torch = pytest.importorskip("torch", reason="needs torch")
    from bocode.opt_problems.engineering.Rover import Rover

    rng = np.random.default_rng(0)
    for dim in (60, 100):
        for _ in range(3):
            x = rng.random(dim)
            _, [[value]] = Rover(dim=dim)._evaluate_implementation(torch.tensor(x)[None])
            found = get_problem(f"rover-{dim}").objective({"x": x})
            assert found == pytest.approx(float(value), rel=1e-6)


@pytest.mark.parametrize("name", ["rover-7", "rover-6", "rover-x"])
def test_a_path_of_too_few_points_is_refused(name: str) -> None:
    with pytest.raises(BenchmarkError, match="rover-60"):
        get_problem(name)
