"""Tasks with known answers, and runs of tuners that are told of failures and bounds."""

import csv
import math
from importlib.util import find_spec

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.optimize import minimize

from raybo.benchmarks.feasibility.problems import (
    BOUNDED,
    CENTRES,
    TASKS,
    Evaluation,
    get_task,
)
from raybo.benchmarks.feasibility.program import command, read, run
from raybo.benchmarks.feasibility.tuners import build
from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.terminal import THREAD_VARIABLES
from raybo.errors import MethodError


def local_optimum(name: str) -> float:
    """Smallest allowed value that SLSQP finds from 30 starts."""
    problem = BOUNDED[name]
    low = np.array([p.low for p in problem.parameters.values()], dtype=float)
    high = np.array([p.high for p in problem.parameters.values()], dtype=float)

    def outcome(u):
        value, excess = problem.function(*(low + (high - low) * np.clip(u, 0, 1)))
        return value, np.array(excess)

    best, rng = math.inf, np.random.default_rng(0)
    for _ in range(30):
        start = rng.random(len(low))
        scale = np.maximum(np.abs(outcome(start)[1]), 1.0)
        found = minimize(
            lambda u: outcome(u)[0],
            start,
            bounds=[(0, 1)] * len(low),
            constraints={"type": "ineq", "fun": lambda u, scale=scale: -outcome(u)[1] / scale},
            options={"maxiter": 500, "ftol": 1e-14},
        )
        value, excess = outcome(found.x)
        if max(excess / scale) < 1e-9:
            best = min(best, value)
    return best


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of scipy's line search
@pytest.mark.parametrize("name", list(BOUNDED))
def test_no_allowed_value_is_below_the_optimum_and_slsqp_reaches_it(name):
    assert local_optimum(name) == pytest.approx(BOUNDED[name].optimum, rel=1e-6)


def test_the_published_designs_keep_their_bounds_and_cost_what_is_published():
    value, excess = BOUNDED["welded-beam"].function(0.205730, 3.470489, 9.036624, 0.205730)
    assert value == pytest.approx(1.724852, abs=1e-5)
    assert max(np.array(excess) / [13600, 30000, 1, 5, 1, 1, 6000]) < 1e-5
    design = (3.5, 0.7, 17, 7.3, 7.71532, 3.350215, 5.286654)
    value, excess = BOUNDED["speed-reducer"].function(*design)
    assert value == pytest.approx(2994.471, abs=1e-2)
    assert max(excess) < 1e-5


@pytest.mark.parametrize(("failures", "share"), [("5%", 0.05), ("20%", 0.2), ("tube", 0.95)])
def test_as_many_points_fail_as_the_name_says(failures, share):
    task, rng = get_task(f"hartmann6/{failures}"), np.random.default_rng(0)
    rows = rng.random((3000, task.space.dim))
    failed = [task.evaluate(task.space.decode(x), rng).value is None for x in rows]
    assert np.mean(failed) == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize("problem", ["branin", "hartmann6"])
@pytest.mark.parametrize("failures", ["none", "half", "tube"])
def test_the_optimum_itself_never_fails(problem, failures):
    task = get_task(f"{problem}/{failures}")
    found = task.evaluate(task.space.decode(CENTRES[problem]), np.random.default_rng(0))
    assert found.value == pytest.approx(task.optimum, abs=1e-5)


def test_failures_without_a_place_are_counted_beside_the_length_of_a_run():
    found = run("random", "branin/20%", seed=0, length=40)
    assert found.allowed == 40 < found.trials
    found = run("random", "branin/tube", seed=0, length=40)
    assert found.trials == 40 > found.allowed


@pytest.mark.parametrize("spec", ["bo", "optuna-tpe", "optuna-gp"])
def test_every_tuner_takes_failures_and_bounds(spec):
    if spec.startswith("optuna"):
        pytest.importorskip("optuna")
    for name in ("branin/half", "gramacy"):
        found = run(spec, name, seed=3, length=14)
        assert found.trials == 14
        assert found.regret >= 0


def test_peers_are_asked_for_configs_of_conditional_spaces():
    pytest.importorskip("optuna")
    task = get_task("pruning")
    config = build("optuna-tpe", task, 0).ask()
    assert {way for layer in config.values() for way in layer} == {"weights", "units"}
    assert len(task.space.encode(config)) == task.space.dim


def test_smac_is_told_of_a_crash_at_the_worst_value_there_is():
    pytest.importorskip("smac")
    tuner = build("smac", get_task("branin/tube"), 0)
    for value in (None, None, 5.0, 3.0, None):
        tuner.ask()
        tuner.tell(Evaluation(value))
    costs = [trial.cost for trial in tuner._smac.runhistory.values()]
    assert sorted(costs) == [3.0, 5.0, 5.0, 5.0, 5.0]


def test_a_value_counts_only_where_it_keeps_its_bounds():
    assert Evaluation(1.0, (0.0, -1.0)).allowed
    assert not Evaluation(1.0, (0.1, -1.0)).allowed
    assert not Evaluation(None).allowed


def test_a_results_file_is_continued(tmp_path, monkeypatch):
    for variable in THREAD_VARIABLES:
        monkeypatch.setenv(variable, "1")
    path = tmp_path / "runs.csv"
    arguments = ["--tuners", "random", "--tasks", "branin/half", "--length", "5"]
    options = ["--seeds", "2", "--results", str(path)]
    result = CliRunner().invoke(command, [*arguments, *options], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    before = path.read_text()
    result = CliRunner().invoke(command, [*arguments, *options, "--seeds", "3"])
    assert path.read_text().startswith(before)
    assert [done.seed for done in read(path)] == [0, 1, 2]
    assert len(list(csv.reader(path.open()))) == 4
    assert "branin/half" in result.output


def test_unknown_names_are_refused_with_those_there_are():
    with pytest.raises(BenchmarkError, match="gramacy"):
        get_task("gramacy-2")
    with pytest.raises(BenchmarkError, match="optuna-gp"):
        build("nobody", get_task("gramacy"), 0)
    if find_spec("smac") is None:
        with pytest.raises(MethodError, match="needs the package 'smac'"):
            build("smac", get_task("branin/half"), 0)
    assert [get_task(name).name for name in TASKS] == TASKS


def test_a_network_without_a_layer_guesses_and_a_whole_one_does_not():
    pytest.importorskip("sklearn")
    task, rng = get_task("pruning"), np.random.default_rng(0)
    whole = {f"layer{i}": {"weights": {"ratio": 0.0}} for i in range(5)}
    found = task.evaluate(whole, rng)
    assert found.value == pytest.approx(1.1, abs=0.1)  # accuracy 0.9, no weight gone
    assert task.evaluate(whole, rng) == found
    for way in ("weights", "units"):
        broken = {**whole, "layer2": {way: {"ratio": 1.0}}}
        assert task.evaluate(broken, rng).value is None


def test_a_network_diverges_at_high_rates_and_near_the_edge_only_sometimes():
    pytest.importorskip("sklearn")
    task, rng = get_task("divergence"), np.random.default_rng(0)

    def errors(rate):
        config = {"rate": rate, "momentum": 0.5, "units": 32, "decay": 1e-6}
        return [task.evaluate(config, rng).value for _ in range(6)]

    assert all(error is not None and error < 0.08 for error in errors(0.5))
    assert errors(50.0) == [None] * 6
    near = [*errors(2.2), *errors(2.2)]  # from new weights each time
    assert 0 < near.count(None) < 12
