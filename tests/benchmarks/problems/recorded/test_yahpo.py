from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest
from scipy.stats import spearmanr

from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.problems.datasets import DatasetError
from raybo.benchmarks.problems.recorded.yahpo import EPOCHS, SCENARIOS, folder_of, yahpo
from raybo.benchmarks.problems.registry import get_problem

LCBENCH, XGBOOST = "yahpo-lcbench-3945", "yahpo-xgboost-40981"


@pytest.fixture
def surrogates() -> None:
    pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    try:
        folder_of(SCENARIOS["yahpo-lcbench"])
        folder_of(SCENARIOS["yahpo-xgboost"])
    except DatasetError as error:
        pytest.skip(f"needs YAHPO's files: {error}")


needs_surrogates = pytest.mark.usefixtures("surrogates")


@needs_surrogates
@pytest.mark.parametrize("name", [LCBENCH, XGBOOST])
def test_a_random_config_has_a_value_below_the_best_known(name: str) -> None:
    problem = pickle.loads(pickle.dumps(get_problem(name)))
    rng = np.random.default_rng(1)
    values = [problem.objective(problem.space.draw(rng)) for _ in range(500)]
    top = 100.0 if name == LCBENCH else 1.0
    assert 0 <= min(values) < max(values) < problem.optimum <= top
    assert len(set(values)) > 450


@needs_surrogates
def test_a_curve_is_the_predictions_of_its_epochs_and_ends_at_the_objective() -> None:
    problem = get_problem(LCBENCH)
    config = problem.space.draw(np.random.default_rng(0))
    accuracy, seconds = problem.objective.curve(config)
    assert accuracy.shape == seconds.shape == (EPOCHS,)
    assert accuracy[-1] == pytest.approx(problem.objective(config), rel=1e-5)
    assert np.all(np.diff(seconds) >= 0)
    for epoch in (1, 9, 27):
        [outputs] = problem.objective.outputs([config], epoch=epoch)
        assert accuracy[epoch - 1] == pytest.approx(outputs[1], rel=1e-5)
        assert seconds[epoch - 1] >= outputs[0] - 1e-4


@needs_surrogates
def test_a_curve_of_xgboost_is_over_shares_of_the_data() -> None:
    problem = get_problem(XGBOOST)
    config = problem.space.draw(np.random.default_rng(0))
    accuracy, seconds = problem.objective.curve(config)
    assert accuracy.shape == seconds.shape == (27,)
    assert accuracy[-1] == pytest.approx(problem.objective(config), rel=1e-5)
    assert np.all(np.diff(seconds) >= 0)
    [outputs] = problem.objective.outputs([config], trainsize=9 / 27)
    assert accuracy[8] == pytest.approx(outputs[0], rel=1e-5)


@needs_surrogates
def test_the_first_epoch_says_nothing_of_the_last_and_later_ones_ever_more() -> None:
    problem = get_problem(LCBENCH)
    rng = np.random.default_rng(0)
    curves = np.array([problem.objective.curve(problem.space.draw(rng))[0] for _ in range(200)])
    ranks = [spearmanr(curves[:, epoch - 1], curves[:, -1])[0] for epoch in (1, 3, 9, 27)]
    assert abs(ranks[0]) < 0.4 < ranks[1] < ranks[2] < ranks[3] < 1


@needs_surrogates
def test_the_booster_decides_which_parameters_exist() -> None:
    problem = get_problem(XGBOOST)
    sizes = {"gblinear": 0, "gbtree": 6, "dart": 8}
    branches = problem.space.definition()["booster"]["branches"]
    assert {name: len(inside) for name, inside in branches.items()} == sizes
    assert len(problem.space.definition()) == 6
    config = problem.space.draw(np.random.default_rng(0))
    shared = {key: value for key, value in config.items() if key != "booster"}
    trees = {
        "colsample_bylevel": 0.5,
        "colsample_bytree": 0.5,
        "eta": 0.1,
        "gamma": 0.1,
        "max_depth": 5,
        "min_child_weight": 5.0,
    }
    values = {
        problem.objective({**shared, "booster": {"gbtree": {**trees, "max_depth": depth}}})
        for depth in (1, 5, 15)
    }
    values.add(problem.objective({**shared, "booster": {"gblinear": {}}}))
    assert len(values) == 4


@needs_surrogates
def test_an_unknown_data_set_is_answered_with_those_there_are() -> None:
    with pytest.raises(BenchmarkError, match=r"lcbench-1' is not known.*yahpo-lcbench-3945"):
        get_problem("yahpo-lcbench-1")


def test_a_missing_folder_is_named_with_what_to_do(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DatasetError, match=rf"{tmp_path}.*slds-lmu/yahpo_data.*RAYBO_DATA"):
        yahpo(LCBENCH, str(tmp_path))
    monkeypatch.delenv("RAYBO_DATA", raising=False)
    with pytest.raises(DatasetError, match="RAYBO_DATA"):
        yahpo(LCBENCH)


def test_a_missing_runtime_is_named(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "yahpo" / "lcbench"
    folder.mkdir(parents=True)
    space = (
        '{"conditions": [], "hyperparameters": [{"name": "OpenML_task_id", "type": "categorical",'
        ' "choices": ["7"]}, {"name": "num_layers", "type": "uniform_int", "lower": 1, "upper": 5,'
        ' "log": false}]}'
    )
    (folder / "config_space.json").write_text(space)
    (folder / "encoding.json").write_text('{"OpenML_task_id": {"7": 1}}')
    (folder / "model.onnx").touch()
    monkeypatch.setenv("RAYBO_CACHE", str(tmp_path))
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(DatasetError, match="pip install onnxruntime"):
        yahpo("yahpo-lcbench-7", str(tmp_path))
