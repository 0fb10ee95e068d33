"""Real runs of Ray Tune."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ray import tune
from ray.tune.schedulers import ASHAScheduler

from raybo import Box, Float, Optimizer, Space
from raybo.tune import RayBOSearch, pareto_front

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
    return tuner(trainable, folder, search, space, **options).fit()


def tuner(
    trainable: Any,
    folder: Path,
    search: RayBOSearch,
    space: Any,
    callbacks: Any = None,
    **options: Any,
) -> tune.Tuner:
    config = {"metric": "loss", "mode": "min", "reuse_actors": True, **options}
    return tune.Tuner(
        trainable,
        param_space=space,
        tune_config=tune.TuneConfig(search_alg=search, **config),
        run_config=tune.RunConfig(
            storage_path=str(folder), name="run", verbose=0, callbacks=callbacks
        ),
    )


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
    search = RayBOSearch(points_to_evaluate=points, method="random", seed=4)
    results = run(objective(), tmp_path, search, SPACE, max_concurrent_trials=1, num_samples=5)
    assert len(results) == 5
    assert results.num_errors == 1
    states = [t["state"] for t in state_of(tmp_path)["book"]["trials"]]
    assert states == ["failed", "failed", *["done"] * 3]
    best = results.get_best_result()
    assert best.metrics["loss"] <= 1.0
    assert best.config["constant"] == {"deep": [1, 2]}
    follow_up = RayBOSearch(metric="loss", mode="min")
    follow_up.set_search_properties(None, None, SPACE)
    follow_up.add_evaluated_trials(results, "loss")
    follow_up.save(str(tmp_path / "follow-up"))
    assert len(json.loads((tmp_path / "follow-up").read_text())["book"]["trials"]) == 5


def test_one_trial_at_a_time_is_the_sequential_run_of_the_optimizer(tmp_path: Path) -> None:
    def loss(config: dict[str, Any]) -> float:
        return float((config["a"] - 0.3) ** 2 + config["b"])

    def train(config: dict[str, Any]) -> dict[str, float]:
        return {"loss": loss(config)}

    space = Space({"a": Float(0, 1), "b": Float(0, 1)})
    search = RayBOSearch(space, "loss", "min", seed=8, method_options={"n_init": 3})
    run(train, tmp_path, search, {}, max_concurrent_trials=1, num_samples=6)
    optimizer = Optimizer(space, seed=8, n_init=3)
    for item in state_of(tmp_path)["book"]["trials"]:
        trial = optimizer.ask()
        assert item["config"] == pytest.approx(trial.config, abs=1e-4)  # for rounding
        optimizer.tell(trial.number, loss(dict(trial.config)))
    assert len(optimizer.trials) == 6


def test_space_of_raybo_with_a_constant_and_a_scheduler_of_tune(tmp_path: Path) -> None:
    def train(config: dict[str, Any]) -> None:
        for i in range(1, 5):
            tune.report({"loss": float(config["x"][10**8]) + config["constant"] + 1 / i})

    results = run(
        train,
        tmp_path,
        RayBOSearch(Box(10**9), method="random", seed=1),
        {"constant": 10.0},
        scheduler=ASHAScheduler(max_t=4, grace_period=1, reduction_factor=2),
        max_concurrent_trials=1,
        num_samples=8,
    )
    assert results.num_errors == 0
    lengths = [r.metrics["training_iteration"] for r in results]
    assert min(lengths) < max(lengths) == 4
    trials = state_of(tmp_path)["book"]["trials"]
    last = [t["curve"][-1][1] for t in trials]
    assert sorted(last) == sorted(r.metrics["loss"] for r in results)
    assert min(last) >= 9.0
    for trial in trials:  # those that ASHA stopped have their curves, and no value
        complete = len(trial["curve"]) == 4
        assert trial["state"] == ("done" if complete else "stopped")
        assert (trial["value"] is not None) == complete


@pytest.mark.slow
def test_the_search_keeps_a_bound_on_another_metric(tmp_path: Path) -> None:
    def train(config: dict[str, Any]) -> dict[str, float]:
        return {"loss": -config["x"], "cost": 10 * config["x"]}

    search = RayBOSearch(seed=1, constraints={"cost": (None, 4.0)})
    space = {"x": tune.uniform(0, 1)}
    results = run(train, tmp_path, search, space, num_samples=14, max_concurrent_trials=1)
    kept = [r.metrics["loss"] for r in results if r.metrics["cost"] <= 4.0]
    assert -0.4 <= min(kept) < -0.39  # without the bound the search ends at 1
    saved = state_of(tmp_path)
    assert saved["constraints"] == {"cost": [None, 4.0]}
    for trial in saved["book"]["trials"]:
        assert trial["extra"]["cost"] == pytest.approx(10 * trial["config"]["x"])


def test_restore_learns_from_failed_trials_run_again(tmp_path: Path) -> None:
    limit = tmp_path / "limit"
    limit.write_text("0.5")

    def train(config: dict[str, Any]) -> dict[str, float]:
        if config["a"] > float(limit.read_text()):
            raise RuntimeError("not yet")
        return {"loss": config["a"]}

    def values() -> list[float | None]:
        return [t["value"] for t in state_of(tmp_path)["book"]["trials"]]

    points = [{"a": a} for a in (0.1, 0.6, 0.7)]
    search = RayBOSearch(points_to_evaluate=points, method="random", seed=5)
    space = {"a": tune.uniform(0, 1), "b": tune.uniform(0, 1)}
    results = run(train, tmp_path, search, space, num_samples=3, max_concurrent_trials=1)
    assert results.num_errors == 2
    assert values() == [0.1, None, None]
    # "resume" runs failed trials again under their ids, "restart" under new ones that the searcher
    # never suggested; Ray's limiter passes on neither end.
    for how, repaired in (("resume", 0.65), ("restart", 0.75)):
        limit.write_text(str(repaired))
        again = tune.Tuner.restore(str(tmp_path / "run"), train, **{f"{how}_errored": True})
        results = again.fit()
        assert values() == [0.1, 0.6, None if how == "resume" else 0.7]
    assert results.num_errors == 0


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

    search, space = RayBOSearch(method="random", seed=5), {"a": tune.uniform(0, 1)}
    options: dict[str, Any] = {"num_samples": 6, "max_concurrent_trials": 2}
    with pytest.raises((RuntimeError, tune.TuneError)):
        tuner(train, tmp_path, search, space, callbacks=[Interrupt()], **options).fit()
    before = state_of(tmp_path)["book"]
    assert len(before["trials"]) < 6
    results = tune.Tuner.restore(str(tmp_path / "run"), train).fit()
    assert len(results) == 6
    assert results.num_errors == 0
    after = state_of(tmp_path)["book"]
    kept = {t["number"]: t["config"] for t in after["trials"]}
    assert all(kept[t["number"]] == t["config"] for t in before["trials"])


def test_process_of_suggestions_gives_what_this_process_would(
    monkeypatch: pytest.MonkeyPatch, pid_of_actor: Callable[[str], int | None]
) -> None:
    def suggestions(kill: bool) -> list[Any]:
        search, seen = RayBOSearch(SPACE, "loss", "min", seed=4, method_options={"n_init": 2}), []
        for i in range(6):
            seen.append(search.suggest(f"t{i}"))
            search.on_trial_complete(f"t{i}", {"loss": seen[-1]["a"]})
            if kill and i == 3:
                pid = pid_of_actor("ProposerActor")
                assert pid is not None
                os.kill(pid, signal.SIGKILL)
        return seen

    remote = suggestions(kill=True)
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    assert remote == suggestions(kill=False)


def test_several_metrics_of_a_run_have_a_front(tmp_path: Path) -> None:
    def train(config: dict[str, Any]) -> dict[str, float]:
        return {"loss": config["x"] ** 2, "speed": config["x"]}

    names, modes = ["loss", "speed"], ["min", "max"]
    search = RayBOSearch(metric=names, mode=modes, method="random", seed=1)
    space = {"x": tune.uniform(-1, 1)}
    options: dict[str, Any] = {"num_samples": 8, "max_concurrent_trials": 1}
    results = run(train, tmp_path, search, space, metric=None, mode=None, **options)
    front = pareto_front(results, names, modes)
    points = [result.config["x"] for result in results]
    assert len(points) == 8
    losses = [result.metrics["loss"] for result in front]
    assert losses == sorted(losses)
    assert losses[0] == min(x**2 for x in points)
    assert front[-1].metrics["speed"] == max(points)


def test_a_returned_number_is_optimised_when_only_a_mode_is_given(tmp_path: Path) -> None:
    def train(config: dict[str, Any]) -> float:
        return float(config["x"])

    search, space = RayBOSearch(seed=1, method="random"), {"x": tune.uniform(-1, 1)}
    options: dict[str, Any] = {"num_samples": 3, "max_concurrent_trials": 1}
    results = run(train, tmp_path, search, space, metric=None, mode="max", **options)
    told = [trial["value"] for trial in state_of(tmp_path)["book"]["trials"]]
    assert sorted(told) == sorted(result.config["x"] for result in results)
