"""The contract of Ray's searchers, for RayBOSearch and, where it is installed, OptunaSearch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ray import cloudpickle, tune
from ray.tune.search import ConcurrencyLimiter, Searcher
from ray.tune.search.optuna import OptunaSearch

from raybo.tune import RayBOSearch

SPACE = {"lr": tune.loguniform(1e-4, 1e-1), "net": {"width": tune.randint(8, 64)}, "fixed": 3}
RESULT = {"loss": 1.0, "training_iteration": 1, "time_total_s": 1.0}

Build = Callable[..., Searcher]


def build_raybo(**options: Any) -> Searcher:
    return RayBOSearch(method="random", **options)


def build_optuna(**options: Any) -> Searcher:
    return OptunaSearch(**options)


@pytest.fixture(
    params=[
        pytest.param(build_raybo, id="raybo"),
        pytest.param(build_optuna, id="optuna"),
    ]
)
def build(request: pytest.FixtureRequest) -> Build:
    made: Build = request.param
    return made


@pytest.fixture
def ready(build: Build) -> Build:
    def ready_searcher(**options: Any) -> Searcher:
        searcher = build(metric="loss", mode="min", seed=1, **options)
        assert searcher.set_search_properties(None, None, SPACE) is True
        return searcher

    return ready_searcher


def check_config(config: Any) -> None:
    assert isinstance(config, dict)
    assert 1e-4 <= config["lr"] <= 1e-1
    assert type(config["lr"]) is float
    assert config["net"]["width"] in range(8, 64)
    assert type(config["net"]["width"]) is int


def test_blank_searcher_pickles(build: Build) -> None:
    copy = cloudpickle.loads(cloudpickle.dumps(build(metric="loss", mode="min")))
    assert copy.set_search_properties(None, None, SPACE) is True
    check_config(copy.suggest("t0"))


def test_searcher_without_a_space_says_so(build: Build) -> None:
    with pytest.raises(RuntimeError, match="no search space has been defined"):
        build(metric="loss", mode="min").suggest("t0")


def test_searcher_without_metric_and_mode_says_so(build: Build) -> None:
    searcher = build()
    searcher.set_search_properties(None, None, SPACE)
    with pytest.raises(RuntimeError, match=r"`metric`.*or `mode`.*have not been set"):
        searcher.suggest("t0")


def test_metric_and_mode_may_come_with_the_param_space(build: Build) -> None:
    searcher = build()
    assert searcher.set_search_properties("loss", "max", SPACE) is True
    assert (searcher.metric, searcher.mode) == ("loss", "max")
    check_config(searcher.suggest("t0"))


def test_second_param_space_is_not_accepted(ready: Build) -> None:
    assert ready().set_search_properties("loss", "min", SPACE) is False


def test_suggestions_are_nested_plain_and_inside_the_domains(ready: Build) -> None:
    searcher = ready()
    for i in range(20):
        check_config(searcher.suggest(f"t{i}"))
        searcher.on_trial_result(f"t{i}", RESULT)
        searcher.on_trial_complete(f"t{i}", RESULT)


def test_same_id_gets_the_same_config(ready: Build) -> None:
    searcher = ready()
    assert searcher.suggest("t0") == searcher.suggest("t0") != searcher.suggest("t1")


def test_same_seed_gives_the_same_suggestions(ready: Build) -> None:
    runs = []
    for _ in range(2):
        searcher, run = ready(), []
        for i in range(6):
            run.append(searcher.suggest(f"t{i}"))
            searcher.on_trial_complete(f"t{i}", {**RESULT, "loss": float(i)})
        runs.append(run)
    assert runs[0] == runs[1]


@pytest.mark.parametrize(
    ("result", "error"),
    [
        (RESULT, False),
        (None, True),
        (None, False),
        ({**RESULT, "loss": float("nan")}, False),
        ({"training_iteration": 1}, False),
    ],
)
def test_any_end_of_a_trial_is_accepted(ready: Build, result: Any, error: bool) -> None:
    searcher = ready()
    searcher.suggest("t0")
    searcher.on_trial_complete("t0", result, error=error)
    searcher.on_trial_complete("t0", result, error=error)
    check_config(searcher.suggest("t1"))


def test_points_come_first_and_unchanged(ready: Build) -> None:
    points = [{"lr": 0.01, "net/width": 9}, {"lr": 0.02, "net/width": 10}]
    searcher = ready(points_to_evaluate=points)
    for i, point in enumerate(points):
        config = searcher.suggest(f"t{i}")
        assert config["lr"] == point["lr"]
        assert config["net"]["width"] == point["net/width"]
    assert points == [{"lr": 0.01, "net/width": 9}, {"lr": 0.02, "net/width": 10}]


def test_points_with_rewards_are_not_tried_again(ready: Build) -> None:
    points = [{"lr": 0.01, "net/width": 9}]
    searcher = ready(points_to_evaluate=points, evaluated_rewards=[0.5])
    assert searcher.suggest("t0")["lr"] != 0.01


def test_evaluated_point_is_accepted(ready: Build) -> None:
    searcher = ready()
    searcher.add_evaluated_point({"lr": 0.01, "net/width": 9}, 0.5)
    check_config(searcher.suggest("t0"))


def test_restored_searcher_goes_on_alike(ready: Build, build: Build, tmp_path: Path) -> None:
    searcher = ready()
    for i in range(4):
        searcher.suggest(f"t{i}")
    searcher.on_trial_complete("t0", RESULT)
    searcher.save_to_dir(str(tmp_path), "session")
    restored = build()
    restored.restore_from_dir(str(tmp_path))
    assert (restored.metric, restored.mode) == ("loss", "min")
    restored.on_trial_complete("t1", RESULT)
    searcher.on_trial_complete("t1", RESULT)
    assert restored.suggest("t2") == searcher.suggest("t2")
    assert restored.suggest("t4") == searcher.suggest("t4")


def test_unused_points_survive_a_restore(ready: Build, build: Build, tmp_path: Path) -> None:
    points = [{"lr": 0.01 * k, "net/width": 9} for k in (1, 2)]
    searcher = ready(points_to_evaluate=points)
    searcher.suggest("t0")
    searcher.save(str(tmp_path / "state"))
    restored = build()
    restored.restore(str(tmp_path / "state"))
    assert restored.suggest("t1")["lr"] == 0.02


def test_concurrency_limiter_limits(ready: Build) -> None:
    searcher = ConcurrencyLimiter(ready(), max_concurrent=2)
    assert searcher.suggest("t0")
    assert searcher.suggest("t1")
    assert searcher.suggest("t2") is None
    searcher.on_trial_complete("t0", RESULT)
    assert searcher.suggest("t3")


def test_batch_of_the_concurrency_limiter_is_told_at_once(ready: Build) -> None:
    searcher = ConcurrencyLimiter(ready(), max_concurrent=2, batch=True)
    for i in range(2):
        assert searcher.suggest(f"t{i}")
    searcher.on_trial_complete("t0", RESULT)
    assert searcher.suggest("t2") is None
    searcher.on_trial_complete("t1", RESULT)
    assert searcher.suggest("t3")
    assert searcher.suggest("t4")


@pytest.mark.parametrize("entry", [tune.grid_search([1, 2]), tune.sample_from(lambda: 1)])
def test_grids_and_functions_are_refused(build: Build, entry: Any) -> None:
    searcher = build(metric="loss", mode="min")
    with pytest.raises(ValueError, match=r"(?i)grid|function|search space"):
        searcher.set_search_properties(None, None, {**SPACE, "x": entry})
