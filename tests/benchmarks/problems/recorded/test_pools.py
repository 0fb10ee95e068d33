from __future__ import annotations

import pickle

import numpy as np
import pytest

from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.problems.datasets import DatasetError
from raybo.benchmarks.problems.recorded.pools import LCBENCH, _keys, rows, scaled
from raybo.benchmarks.problems.registry import get_problem
from raybo.space.space import Space

POOLS = {  # name: file, key, number of points
    "hpob-4796-23": ("hpob", "4796_23", 300),
    "hpob-5906-3918": ("hpob", "5906_3918", 259),
    "hpob-6766-145953": ("hpob", "6766_145953", 47439),
    "lcbench-pool-fashion-mnist": ("lcbench", "Fashion_MNIST", 2000),
}


@pytest.fixture(scope="module")
def pools() -> None:
    try:
        _keys("hpob")
    except DatasetError as error:
        pytest.skip(f"bocode cannot be fetched: {error}")


needs_pools = pytest.mark.usefixtures("pools")


@needs_pools
def test_there_are_92_pools_of_hpo_b_and_35_of_lcbench() -> None:
    assert len(_keys("hpob")) == 92
    assert len({key.split("_")[0] for key in _keys("hpob")}) == 15
    assert len(_keys("lcbench")) == 35


@needs_pools
@pytest.mark.parametrize("name", POOLS)
def test_a_point_of_the_pool_has_its_value_and_others_that_of_the_nearest(name: str) -> None:
    problem = pickle.loads(pickle.dumps(get_problem(name)))
    file, key, n_points = POOLS[name]
    table = rows(file, key)
    assert len(table) == n_points
    names = [column.name for column in problem.space.columns]
    whole = [column.kind == "int" for column in problem.space.columns]
    assert len(names) == table.shape[1] - 1
    for row in table[:: n_points // 50]:
        config = {
            column: int(value) if is_int else float(value)
            for column, value, is_int in zip(names, row, whole, strict=False)
        }
        assert problem.space.decode(problem.space.encode(config)) == config
        assert problem.objective(config) == row[-1]
    parameters = dict(zip(names, (c.parameter for c in problem.space.columns), strict=True))
    cube = scaled(table[:, :-1], parameters)
    assert cube.min() >= 0
    assert cube.max() <= 1
    rng = np.random.default_rng(0)
    for _ in range(20):
        config = Space(parameters).draw(rng)
        point = scaled(np.array([[float(value) for value in config.values()]]), parameters)
        nearest = np.argmin(np.sum((cube - point) ** 2, axis=1))
        assert problem.objective(config) == table[nearest, -1]
    assert problem.optimum == table[:, -1].max()


def test_a_log_parameter_is_scaled_by_its_logarithm() -> None:
    middle = np.array([[512.0, 1e-4, 0.25, 256.0, 0.1, 4.0, 0.1]])
    assert scaled(middle, LCBENCH)[0] == pytest.approx([1, 0, 0.25, 0.5, 0, 1, 1])


@needs_pools
def test_an_unknown_pool_is_answered_with_those_there_are() -> None:
    with pytest.raises(BenchmarkError, match=r"hpob-1-1' is not known.*hpob-4796-23,"):
        get_problem("hpob-1-1")
