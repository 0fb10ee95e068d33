"""Real runs of Ray Tune."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import ray
from ray import tune
from ray.tune.schedulers import ASHAScheduler

from raybo import Box
from raybo.tune import RayBOSearch

pytestmark = [
    pytest.mark.ray,
    pytest.mark.usefixtures("ray_cluster"),
    # Ray's own, in a run that has nothing to do with raybo: deprecations inside Tune.
    pytest.mark.filterwarnings("default"),
]

SPACE: dict[str, Any] = {
    "a": tune.uniform(0, 1),
    "n": tune.randint(1, 30),
    "model": tune.choice([{"kind": "one", "x": tune.uniform(0, 1)}, {"kind": "two"}]),
    "constant": {"deep": [1, 2]},
}


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AIR_NEW_OUTPUT", "0")


def objective() -> Callable[[dict[str, Any]], dict[str, float]]:
    """A trainable that travels to workers by value: they cannot import this file."""

    def train(config: dict[str, Any]) -> dict[str, float]:
        assert config["constant"] == {"deep": [1, 2]}
        extra = config["model"]["x"] if config["model"]["kind"] == "one" else 0.5
        if config["n"] == 13:
            raise RuntimeError("unlucky")
        return {"loss": float("nan") if config["n"] == 14 else config["a"] + extra}

    return train


def run(trainable: Any, folder: Path, search: RayBOSearch, space: Any, **options: Any) -> Any:
    config = {"metric": "loss", "mode": "min", "num_samples": 6, "reuse_actors": True, **options}
    tuner = tune.Tuner(
        trainable,
        param_space=space,
        tune_config=tune.TuneConfig(search_alg=search, **config),
        run_config=tune.RunConfig(storage_path=str(folder), name="run", verbose=0),
    )
    return tuner.fit()


def state_of(folder: Path) -> dict[str, Any]:
    """Latest state that the searcher saved in an experiment.

    Tune copies it there in a thread that goes on when a run is interrupted.
    """
    path = max((folder / "run").glob("searcher-state-*.pkl"))
    deadline = time.monotonic() + 30.0
    while True:
        try:
            state: dict[str, Any] = json.loads(path.read_text())
        except json.JSONDecodeError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return state


def test_run_with_failures_in_a_conditional_space(tmp_path: Path) -> None:
    points = [{"n": 13}, {"n": 14}, {"a": 0.5, "n": 1, "model": {"kind": "two"}}]
    search = RayBOSearch(points_to_evaluate=points, seed=3)
    results = run(objective(), tmp_path, search, SPACE, max_concurrent_trials=2, num_samples=7)
    assert len(results) == 7
    assert results.num_errors == 1
    states = [t["state"] for t in state_of(tmp_path)["book"]["trials"]]
    assert states == ["failed", "failed", *["done"] * 5]
    best = results.get_best_result()
    assert best.metrics["loss"] <= 1.0
    assert best.config["constant"] == {"deep": [1, 2]}
    follow_up = RayBOSearch(metric="loss", mode="min")
    follow_up.set_search_properties(None, None, SPACE)
    follow_up.add_evaluated_trials(results, "loss")
    assert len(follow_up._book.trials) == 7


def test_one_trial_at_a_time_repeats_exactly(tmp_path: Path) -> None:
    def train(config: dict[str, Any]) -> dict[str, float]:
        return {"loss": (config["a"] - 0.3) ** 2 + config["b"]}

    space = {"a": tune.uniform(0, 1), "b": tune.uniform(0, 1)}
    runs = []
    for name in ("one", "two"):
        search = RayBOSearch(seed=8, method_options={"n_init": 3})
        run(train, tmp_path / name, search, space, max_concurrent_trials=1)
        runs.append([t["config"] for t in state_of(tmp_path / name)["book"]["trials"]])
    assert runs[0] == runs[1]
    assert len(runs[0]) == 6


def test_scheduler_that_stops_trials_early(tmp_path: Path) -> None:
    def train(config: dict[str, Any]) -> None:
        for i in range(1, 5):
            tune.report({"loss": config["a"] + 1 / i})

    results = run(
        train,
        tmp_path,
        RayBOSearch(seed=1),
        {"a": tune.uniform(0, 1)},
        scheduler=ASHAScheduler(max_t=4, grace_period=1, reduction_factor=2),
        num_samples=8,
    )
    lengths = [r.metrics["training_iteration"] for r in results]
    assert min(lengths) < max(lengths) == 4
    trials = state_of(tmp_path)["book"]["trials"]
    assert sorted(t["value"] for t in trials) == sorted(r.metrics["loss"] for r in results)


def test_space_of_raybo_with_constants_of_tune(tmp_path: Path) -> None:
    def train(config: dict[str, Any]) -> dict[str, float]:
        return {"loss": float(config["x"][10**8]) + config["constant"]}

    search = RayBOSearch(Box(10**9), method="random")
    results = run(train, tmp_path, search, {"constant": 10.0}, num_samples=2)
    assert results.num_errors == 0
    assert results.get_best_result().metrics["loss"] >= 9.0


@pytest.mark.parametrize("how", ["resume", "restart"])
def test_restore_learns_from_failed_trials_run_again(tmp_path: Path, how: str) -> None:
    marker = tmp_path / "repaired"

    def train(config: dict[str, Any]) -> dict[str, float]:
        if config["a"] > 0.5 and not marker.exists():
            raise RuntimeError("not yet")
        return {"loss": config["a"]}

    points = [{"a": a} for a in (0.1, 0.6, 0.7, 0.2)]
    search = RayBOSearch(points_to_evaluate=points, seed=5)
    space = {"a": tune.uniform(0, 1), "b": tune.uniform(0, 1)}
    results = run(train, tmp_path, search, space, num_samples=4, max_concurrent_trials=2)
    assert results.num_errors == 2
    assert [t["value"] for t in state_of(tmp_path)["book"]["trials"]] == [0.1, None, None, 0.2]
    marker.touch()
    # "resume" runs them again under their ids, "restart" under new ones, never heard of before;
    # Ray's limiter passes on neither end.
    tuner = tune.Tuner.restore(str(tmp_path / "run"), train, **{f"{how}_errored": True})
    assert tuner.fit().num_errors == 0
    values = [t["value"] for t in state_of(tmp_path)["book"]["trials"]]
    assert values == [0.1, 0.6, 0.7, 0.2]


def test_interrupted_run_is_restored_with_its_pending_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUNE_GLOBAL_CHECKPOINT_S", "0")
    marker = tmp_path / "interrupted"

    class Interrupt(tune.Callback):
        def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
            finished = sum(trial.status == "TERMINATED" for trial in trials)
            if finished >= 2 and not marker.exists():
                marker.touch()
                raise RuntimeError("the driver is lost")

    def train(config: dict[str, Any]) -> dict[str, float]:
        return {"loss": config["a"]}

    tuner = tune.Tuner(
        train,
        param_space={"a": tune.uniform(0, 1)},
        tune_config=tune.TuneConfig(
            search_alg=RayBOSearch(seed=5),
            metric="loss",
            mode="min",
            num_samples=7,
            max_concurrent_trials=2,
        ),
        run_config=tune.RunConfig(
            storage_path=str(tmp_path), name="run", verbose=0, callbacks=[Interrupt()]
        ),
    )
    with pytest.raises((RuntimeError, tune.TuneError)):
        tuner.fit()
    before = state_of(tmp_path)["book"]
    assert len(before["trials"]) < 7
    results = tune.Tuner.restore(str(tmp_path / "run"), train).fit()
    assert len(results) == 7
    assert results.num_errors == 0
    after = state_of(tmp_path)["book"]
    kept = {t["number"]: t["config"] for t in after["trials"]}
    assert all(kept[t["number"]] == t["config"] for t in before["trials"])


def test_process_of_suggestions_gives_what_this_process_would(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def suggestions(kill: bool) -> list[Any]:
        search, seen = RayBOSearch(SPACE, "loss", "min", seed=4, method_options={"n_init": 2}), []
        for i in range(6):
            seen.append(search.suggest(f"t{i}"))
            search.on_trial_complete(f"t{i}", {"loss": seen[-1]["a"]})
            if kill and i == 3:
                assert search._ahead is not None
                ray.kill(search._ahead._worker._actor)
        return seen

    remote = suggestions(kill=True)
    monkeypatch.setattr("raybo.tune.worker.ray.is_initialized", lambda: False)
    assert remote == suggestions(kill=False)
