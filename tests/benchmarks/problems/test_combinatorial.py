from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from raybo.benchmarks.problems import combinatorial
from raybo.benchmarks.problems.registry import get_problem

NAMES = {"ackley-53": 53, "labs-50": 50, "contamination": 25, "pest-control": 25, "maxsat-60": 60}


@pytest.mark.parametrize("name", NAMES)
def test_no_random_config_is_better_than_the_optimum_and_values_repeat(name: str) -> None:
    problem = pickle.loads(pickle.dumps(get_problem(name)))
    assert problem.name == name
    assert len(problem.space.columns) == NAMES[name]
    rng = np.random.default_rng(0)
    configs = [problem.space.draw(rng) for _ in range(200)]
    values = [problem.objective(config) for config in configs]
    assert min(map(problem.regret, values)) > 0
    assert [problem.objective(config) for config in configs] == values


@pytest.mark.parametrize("name", ["contamination", "pest-control", "maxsat-60"])
def test_no_change_of_two_variables_improves_the_best_config(name: str) -> None:
    problem = get_problem(name)
    constant = {"maxsat-60": "BEST_MAXSAT"}.get(name, f"BEST_{name.upper().replace('-', '_')}")
    best = combinatorial._config(getattr(combinatorial, constant))
    assert problem.regret(problem.objective(best)) == 0
    choices = problem.space.columns[0].parameter.values
    rng = np.random.default_rng(0)
    for _ in range(500):
        changes = {f"x{i}": int(rng.choice(choices)) for i in rng.integers(len(best), size=2)}
        assert problem.regret(problem.objective({**best, **changes})) >= 0


def test_known_values() -> None:
    assert get_problem("contamination").optimum == pytest.approx(21.32)
    assert get_problem("maxsat-60").optimum == 15850
    assert get_problem("labs-50").optimum == pytest.approx(8.170, abs=1e-3)
    barker = {f"x{i}": int(sign) for i, sign in enumerate("1111100110101")}
    assert combinatorial.merit_factor(barker) == pytest.approx(169 / 12)
    zeros = {f"x{i}": 0 for i in range(53)}
    assert combinatorial.ackley(zeros) == pytest.approx(0, abs=1e-12)
    # cos(2 pi x) is 1 for every binary variable: only the first term remains.
    ones = {f"x{i}": 1 for i in range(53)}
    assert combinatorial.ackley(ones) == pytest.approx(20 - 20 * math.exp(-0.2))


def test_labs_is_the_sum_of_squared_autocorrelations() -> None:
    rng = np.random.default_rng(0)
    signs = rng.integers(0, 2, 50) * 2 - 1
    energy = sum(int(signs[k:] @ signs[:-k]) ** 2 for k in range(1, 50))
    config = {f"x{i}": int(sign > 0) for i, sign in enumerate(signs)}
    assert combinatorial.merit_factor(config) == pytest.approx(2500 / (2 * energy))


def test_contamination_without_inspections_costs_what_is_contaminated() -> None:
    first, growth, _ = combinatorial._food()
    total = 0.0
    for rates in growth:
        first = rates * (1 - first) + first
        total += 0.95 - np.mean(first < 0.1)
    found = combinatorial.contamination({f"x{i}": 0 for i in range(25)})
    assert found == pytest.approx(total)
    assert combinatorial.contamination({f"x{i}": 1 for i in range(25)}) == pytest.approx(
        25 * (1.01 - 0.05), abs=1.0
    )


def test_bocode_gives_the_same_values() -> None:
    pytest.importorskip("bocode", reason="needs bocode")
    torch = pytest.importorskip("torch", reason="needs torch")
    from bocode.opt_problems.combinatorial.MaxSAT import MaxSAT
    from bocode.opt_problems.combinatorial.PestControl import PestControl

    rng = np.random.default_rng(0)
    for name, peer, sign in (("maxsat-60", MaxSAT(), 1), ("pest-control", PestControl(), -1)):
        problem = get_problem(name)
        for _ in range(10):
            config = problem.space.draw(rng)
            x = torch.tensor([list(map(float, config.values()))], dtype=torch.float64)
            _, [[value]] = peer._evaluate_implementation(x)
            assert problem.objective(config) == pytest.approx(sign * float(value))
