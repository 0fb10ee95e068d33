"""Wildlife corridors against brute force, and two real solvers at work on them."""

from __future__ import annotations

import pickle
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from raybo.benchmarks.problems.datasets import DatasetError
from raybo.benchmarks.problems.solvers import lp_solve as module
from raybo.benchmarks.problems.solvers.corridor import (
    Corridor,
    draw_corridor,
    lp_text,
    optimum,
    program,
)
from raybo.benchmarks.problems.solvers.lp_solve import (
    CHOICES,
    LpSolve,
    libraries,
    lp_solve_space,
    settings,
)


@pytest.fixture
def library() -> None:
    try:
        libraries()
    except DatasetError as error:
        pytest.skip(str(error))


def random_configs(space: object, n: int) -> list[dict]:
    rng = np.random.default_rng(0)
    return [space.decode(rng.random(space.dim)) for _ in range(n)]


@pytest.mark.parametrize("seed", range(4))
def test_optimum_is_that_of_all_subsets(seed: int) -> None:
    instance = draw_corridor(3, seed)
    utilities = [instance.utility_of(np.flatnonzero(s)) for s in product((0, 1), repeat=9)]
    valid = [utility for utility in utilities if utility is not None]
    if not valid:
        pytest.fail("no corridor within the budget: choose another seed")
    assert optimum(instance) == max(valid)


def test_a_corridor_holds_the_reserves_keeps_the_budget_and_is_connected() -> None:
    # 0 1 2
    # 3 4 5
    # 6 7 8, reserves at 0 and 2
    instance = Corridor(3, (0, 5, 0, 1, 2, 3, 9, 9, 9), (0, 7, 0, 1, 2, 3, 9, 9, 9), (0, 2), 6)
    assert instance.utility_of([0, 1, 2]) == 7
    assert instance.utility_of([0, 3, 4, 5, 2]) == 6
    assert instance.utility_of([0, 3, 1, 2]) == 8
    assert instance.utility_of([0, 4, 1, 2]) is None  # 7: over the budget
    assert instance.utility_of([0, 2, 3]) is None  # 2 is cut off
    assert instance.utility_of([0, 1, 4]) is None  # without 2
    assert instance.utility_of([0, 1, 2, 9]) is None  # there is no cell 9
    assert optimum(instance) == 8
    assert instance.gap([[0, 2, 3], [0, 1, 2]]) == pytest.approx(1 / 8)
    assert instance.gap([[0, 2]]) == 1.0


def test_the_flow_program_has_a_point_for_each_corridor_and_for_nothing_else() -> None:
    instance = draw_corridor(3, 0)
    p = program(instance)
    assert p.matrix.shape == (1 + 9 + 24 + 1, 9 + 24 + 1)
    valid = 0
    for subset in list(product((0.0, 1.0), repeat=9))[::3]:
        low, high = p.low.copy(), p.high.copy()
        low[:9], high[:9] = np.maximum(low[:9], subset), np.minimum(high[:9], subset)
        utility = instance.utility_of(np.flatnonzero(subset))
        if (low <= high).all():
            rows = LinearConstraint(p.matrix, p.below, p.above)
            found = milp(-p.gain, bounds=Bounds(low, high), constraints=rows)
            assert found.success == (utility is not None)
            valid += found.success
        else:
            assert utility is None  # without a reserve
    assert valid


def test_the_space_is_the_papers_and_settings_add_up_bits() -> None:
    space = lp_solve_space()
    sizes = [column.parameter.cardinality for column in space.columns]
    assert sizes.count(2) == 40
    assert len(sizes) == 47
    config = dict.fromkeys(list(space.decode(np.zeros(47))), False)
    config.update({name: next(iter(of)) for name, of in CHOICES.items()})
    config |= {"presolve.rows": True, "presolve.duals": True, "pivoting.adaptive": True}
    config |= {"pivoting": "devex", "simplextype": "dual-dual"}
    found = settings(config)
    assert found["set_presolve"] == [1 + 524288, -1]
    assert found["set_pivoting"] == [2 + 32]
    assert found["set_simplextype"] == [10]
    assert found["set_bb_rule"] == [0]


@pytest.mark.usefixtures("library")
def test_lp_solve_given_enough_iterations_finds_the_optimum_of_scipys_solver() -> None:
    instance = draw_corridor(4, 0)
    gaps = [LpSolve(4, 0, 200_000)(config) for config in random_configs(lp_solve_space(), 6)]
    assert min(gaps) == 0.0
    assert optimum(instance) > 0


@pytest.mark.usefixtures("library")
def test_lp_solve_repeats_its_answer_and_keeps_its_budget() -> None:
    objective = pickle.loads(pickle.dumps(LpSolve(6, 3, 300)))
    instance = draw_corridor(objective.side, objective.seed)
    configs = random_configs(lp_solve_space(), 3)
    answers = [objective.run(config, instance) for config in configs]
    assert objective.run(configs[0], instance) == answers[0]
    assert all(answer["iterations"] <= objective.iterations + 1 for answer in answers)
    assert len({instance.gap(answer["solutions"]) for answer in answers}) > 1


def test_a_crash_of_the_library_is_no_solution_and_an_error_of_ours_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAYBO_CACHE", str(tmp_path))
    monkeypatch.setattr(module, "libraries", lambda: ("nowhere.so",))
    [config] = random_configs(lp_solve_space(), 1)
    with pytest.raises(DatasetError, match=r"nowhere\.so"):
        LpSolve(3)(config)
    child = tmp_path / "child.py"
    child.write_text("import os; os.abort()")
    monkeypatch.setattr(module.lp_solve_child, "__file__", str(child))
    assert LpSolve(3)(config) == 1.0


def test_the_model_lists_every_column_in_order() -> None:
    text = lp_text(draw_corridor(3, 0))
    first = text.splitlines()[0]
    assert [word for word in first.rstrip(";").split() if word[0] == "x"] == [
        f"x{i}" for i in range(9 + 24 + 1)
    ]


def test_scip_has_116_parameters_and_finds_the_optimum_of_a_small_instance() -> None:
    pytest.importorskip("pyscipopt", reason="needs pyscipopt")
    from raybo.benchmarks.problems.solvers.scip import Scip, scip_space

    assert scip_space().dim == 116  # of SCIP 10
    assert Scip(4, 0)({}) == 0.0
    [config] = random_configs(scip_space(), 1)
    assert 0.0 <= Scip(4, 0, 0.5)(config) <= 1.0
