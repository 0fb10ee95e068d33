"""RayBOSearch beyond Ray's contract: what users ask for in vain elsewhere."""

from __future__ import annotations

import json
import math
import pickle
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from ray import cloudpickle, tune
from ray.tune.search import ConcurrencyLimiter, Searcher

from raybo import Box, Float, Int, Optimizer, Space
from raybo.errors import MethodError, RayboError, SpaceError, StudyError
from raybo.methods.random_search import RandomSearch
from raybo.study.trial import State, TrialRecord
from raybo.tune import RayBOSearch, pareto_front
from raybo.tune.space.param_space import ParamSpace

SPACE: dict[str, Any] = {
    "lr": tune.loguniform(1e-4, 1e-1),
    "net": {"width": tune.randint(8, 64), "depth": 2},
    "opt": tune.choice([{"name": "sgd", "m": tune.uniform(0, 1)}, {"name": "adam"}]),
}
POINT = {"lr": 0.01, "net": {"width": 16}, "opt": {"name": "adam"}}


def searcher(space: Any = SPACE, **options: Any) -> RayBOSearch:
    made = RayBOSearch(**{"metric": "loss", "mode": "min", "method": "random", **options})
    assert made.set_search_properties(None, None, space)
    return made


def state(search: RayBOSearch) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        search.save(f"{folder}/state")
        saved: dict[str, Any] = json.loads(Path(folder, "state").read_text())
        return saved


def trials(search: RayBOSearch) -> list[TrialRecord]:
    book = state(search)["book"] or {"trials": []}
    return [TrialRecord.from_json(item) for item in book["trials"]]


def restored(search: RayBOSearch, folder: Path, **options: Any) -> RayBOSearch:
    search.save(str(folder / "state.json"))
    made = RayBOSearch(**options)
    made.restore(str(folder / "state.json"))
    return made


# --- settings ---


def test_metric_and_mode_of_the_tune_config_are_kept_beside_an_own_space() -> None:
    search = RayBOSearch({"a": Float(0, 1)}, method="random")
    assert search.set_search_properties("loss", "max", {"constant": 1}) is False
    assert (search.metric, search.mode) == ("loss", "max")
    assert 0 <= search.suggest("t0")["a"] <= 1


def test_mode_alone_optimises_what_a_returned_number_is_called() -> None:
    search = RayBOSearch({"a": Float(0, 1)}, mode="max", method="random")
    search.suggest("t0")
    search.on_trial_complete("t0", {"_metric": 4.0})
    assert trials(search)[0].value == 4.0


def test_domains_of_tune_as_space_work_with_rays_warning(caplog: pytest.LogCaptureFixture) -> None:
    search = RayBOSearch(SPACE, "loss", "min", method="random")
    assert "contained unresolved search space definitions" in caplog.text
    assert 8 <= search.suggest("t0")["net"]["width"] < 64


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "tpe"}, "method 'tpe' is not known; choose one of auto"),
        ({"mode": "best"}, "mode must be 'min' or 'max', got 'best'"),
        ({"metric": ["a", "b"], "mode": "min"}, "of several metrics each has its mode"),
        ({"metric": ["a", "b"], "mode": ["min", "best"]}, "got 'best'"),
        ({"evaluated_rewards": [1.0]}, "1 evaluated_rewards for 0 points_to_evaluate"),
        ({"space": lambda trial: trial}, "space is a function"),
    ],
)
def test_bad_settings_are_refused_at_once(options: dict[str, Any], words: str) -> None:
    with pytest.raises(RayboError, match=words):
        RayBOSearch(**options)


def test_bad_option_of_a_method_is_refused_when_it_is_built() -> None:
    search = searcher({"a": tune.uniform(0, 1)}, method="sobol", method_options={"bogus": 1})
    with pytest.raises(MethodError, match="method 'sobol' has no option 'bogus'"):
        search.suggest("t0")


def test_method_object_needs_its_own_space() -> None:
    space = Space({"a": Float(0, 1)})
    assert RayBOSearch(space, "loss", "min", method=RandomSearch(space)).suggest("t0")
    with pytest.raises(MethodError, match="belongs to a space of raybo"):
        searcher(method=RandomSearch(space))


def test_random_seed_is_kept_by_a_copy() -> None:
    search = RayBOSearch({"a": Float(0, 1)}, "loss", "min", method="random", seed=None)
    copy = cloudpickle.loads(cloudpickle.dumps(search))
    assert copy.suggest("t0") == search.suggest("t0")


def test_box_is_suggested_as_a_lazy_vector() -> None:
    search = RayBOSearch(Box(10**9), "loss", "min", method="random")
    config = search.suggest("t0")
    assert len(str(config["x"])) < 200
    assert -1 <= config["x"][10**8] <= 1


# --- the loop ---


def test_max_concurrent_limits_and_a_limiter_replaces_it() -> None:
    search = searcher(max_concurrent=1)
    assert search.suggest("t0")
    assert search.suggest("t1") is None
    search.on_trial_complete("t0", None, error=True)
    assert search.suggest("t2")
    limited = ConcurrencyLimiter(searcher(max_concurrent=1), max_concurrent=2)
    assert limited.suggest("t0")
    assert limited.suggest("t1")
    assert limited.suggest("t2") is None


def test_finite_space_ends_with_an_explanation(caplog: pytest.LogCaptureFixture) -> None:
    search = searcher({"a": tune.choice(["x", "y"])})
    assert {search.suggest(f"t{i}")["a"] for i in range(2)} == {"x", "y"}
    assert search.suggest("t2") == Searcher.FINISHED
    assert "no more suggestions: all 2 points of the space have been tried" in caplog.text


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, "text", None, [1.0], 10**400])
def test_bad_values_are_failures_and_never_values(bad: Any) -> None:
    search = searcher()
    search.suggest("t0")
    search.on_trial_result("t0", {"loss": bad})
    search.on_trial_complete("t0", {"loss": bad})
    [trial] = trials(search)
    assert (trial.state, trial.value) == (State.FAILED, None)
    assert trial.reason


def test_last_report_counts_where_the_end_says_nothing() -> None:
    search = searcher()
    for i in range(3):
        search.suggest(f"t{i}")
        search.on_trial_result(f"t{i}", {"loss": 2.0})
        search.on_trial_result(f"t{i}", {"loss": 1.0})
        search.on_trial_result(f"t{i}", {"other": 1.0})
    search.on_trial_complete("t0", {"other": 1.0})
    search.on_trial_complete("t1")
    search.on_trial_complete("t2", error=True)
    assert [t.value for t in trials(search)] == [1.0, 1.0, None]


def test_trial_stopped_before_it_ran_is_forgotten() -> None:
    search = searcher()
    search.suggest("t0")
    search.on_trial_complete("t0")
    assert trials(search) == []
    assert search.suggest("t1")


def test_numpy_values_and_nested_metrics_are_read() -> None:
    search = searcher(metric="eval/loss")
    search.suggest("t0")
    search.suggest("t1")
    search.on_trial_complete("t0", {"eval/loss": np.float32(0.5)})
    search.on_trial_complete("t1", {"eval": {"loss": np.array(0.25)}})
    assert [t.value for t in trials(search)] == [0.5, 0.25]


def test_failed_trial_that_is_run_again_counts_with_its_value() -> None:
    search = searcher(method="bo")
    search.suggest("t0")
    search.on_trial_complete("t0", error=True)
    assert trials(search)[0].state is State.FAILED
    search.on_trial_complete("t0", {"loss": 3.0})
    assert (trials(search)[0].state, trials(search)[0].value) == (State.DONE, 3.0)
    search.on_trial_complete("t0", {"loss": 9.0})
    assert trials(search)[0].value == 3.0


def test_unknown_trial_is_learnt_from_by_the_config_in_its_result() -> None:
    search = searcher()
    flat = {"config/lr": 0.01, "config/net/width": 16, "config/opt/name": "adam", "config/z": 1}
    search.on_trial_complete("elsewhere", {"loss": 0.5, **flat})
    search.on_trial_complete("elsewhere", {"loss": 0.7, **flat})
    [trial] = trials(search)
    assert trial.value == 0.5
    assert trial.config["net"]["width"] == 16


@pytest.mark.parametrize("suggested", [True, False])
def test_reports_of_a_trial_run_again_count_at_once(suggested: bool) -> None:
    """Ray's ConcurrencyLimiter does not pass on the end of a trial that it did not see begin."""
    search = searcher(points_to_evaluate=[POINT])
    search.suggest("t0")
    search.on_trial_complete("t0", error=True)
    name = "t0" if suggested else "restarted"
    flat = {"config/lr": 0.01, "config/net/width": 16, "config/opt/name": "adam"}
    search.on_trial_result(name, {"other": 1.0, **flat})
    assert [t.state for t in trials(search)] == [State.FAILED]
    for value in (3.0, 2.0):
        search.on_trial_result(name, {"loss": value, **flat})
        assert [(t.state, t.value) for t in trials(search)] == [(State.DONE, value)]
    search.on_trial_complete(name, {"loss": 1.0, **flat})
    search.on_trial_complete(name, {"loss": 0.5, **flat})
    assert [t.value for t in trials(search)] == [1.0]


@pytest.mark.parametrize("result", [None, {}, {"loss": 1.0}, {"loss": 1.0, "config/lr": 99.0}])
def test_unknown_trial_without_a_usable_config_is_ignored(result: Any) -> None:
    search = searcher()
    search.on_trial_result("elsewhere", result)
    search.on_trial_complete("elsewhere", result)
    search.on_trial_complete("elsewhere", error=True)
    assert trials(search) == []
    RayBOSearch().on_trial_complete("elsewhere", result)


def test_the_method_sees_the_rounded_values_that_the_trainable_gets() -> None:
    space = {"a": tune.uniform(0, 1), "noise": tune.qrandn(0.0, 1.0, 0.25)}
    search = searcher(space, method="bo", method_options={"n_init": 2})
    for i in range(4):
        shown = search.suggest(f"t{i}")
        assert trials(search)[-1].config == ParamSpace(space).read(shown)[0]
        search.on_trial_complete(f"t{i}", {"loss": shown["noise"]})


# --- warm start ---


@pytest.mark.parametrize(
    "point",
    [POINT, {"lr": 0.01, "net/width": 16, "opt/name": "adam"}, {**POINT, "net": {"width": 16.0}}],
)
def test_points_may_be_nested_or_flat(point: dict[str, Any]) -> None:
    config = searcher(points_to_evaluate=[point]).suggest("t0")
    assert config == {"lr": 0.01, "net": {"width": 16, "depth": 2}, "opt": {"name": "adam"}}


def test_partial_points_are_completed_alike_for_a_seed() -> None:
    first, again, other = (
        searcher(points_to_evaluate=[{"lr": 0.01}], seed=seed).suggest("t0") for seed in (1, 1, 2)
    )
    assert first == again != other
    assert first["lr"] == other["lr"] == 0.01


@pytest.mark.parametrize(
    ("point", "words"),
    [
        ({"lr": 5.0}, "'lr': 5.0 is outside"),
        ({"net/witdh": 16}, "'net/witdh': no such key"),
        ({"opt": {"name": "sgd", "m": 2.0}}, "'opt': .* fits no branch"),
    ],
)
def test_bad_points_are_refused_before_anything_runs(point: dict[str, Any], words: str) -> None:
    with pytest.raises(SpaceError, match=words):
        searcher(points_to_evaluate=[point])


def test_rewards_need_complete_points() -> None:
    with pytest.raises(SpaceError, match="'net/width': missing from the config; add it"):
        searcher(points_to_evaluate=[{"lr": 0.01}], evaluated_rewards=[1.0])


def test_evaluated_points_are_known_and_not_run() -> None:
    search = searcher(points_to_evaluate=[POINT], evaluated_rewards=[0.5])
    assert [t.value for t in trials(search)] == [0.5]


def test_evaluated_points_may_come_before_the_space() -> None:
    search = RayBOSearch(metric="loss", mode="min", method="random")
    search.add_evaluated_points([POINT, POINT], [0.5, 0.25])
    copy = cloudpickle.loads(cloudpickle.dumps(search))
    copy.set_search_properties(None, None, SPACE)
    assert [t.value for t in trials(copy)] == [0.5, 0.25]


def test_evaluated_point_may_hold_constants_and_fail(caplog: pytest.LogCaptureFixture) -> None:
    search = searcher()
    whole = {**POINT, "net": {"width": 16, "depth": 5}, "data": "path"}
    search.add_evaluated_point(whole, 0.5)
    search.add_evaluated_point(whole, math.nan)
    search.add_evaluated_point(whole, None, error=True)
    search.add_evaluated_point(whole, None, pruned=True, intermediate_values=[3.0, 2.0])
    search.add_evaluated_point(whole, None)
    assert [t.value for t in trials(search)] == [0.5, None, None, 2.0]
    assert "a point without a value says nothing" in caplog.text


def test_trials_of_an_earlier_run_are_added(caplog: pytest.LogCaptureFixture) -> None:
    search = searcher()
    old = [
        SimpleNamespace(config={**POINT, "x": 1}, last_result={"loss": 0.5}, status="TERMINATED"),
        SimpleNamespace(config=POINT, last_result={}, status="ERROR"),
        SimpleNamespace(config={**POINT, "lr": 9}, last_result={"loss": 1}, status="TERMINATED"),
    ]
    search.add_evaluated_trials(old, "loss")
    search.add_evaluated_trials(SimpleNamespace(trials=old[:1]), "loss")
    search.add_evaluated_trials([SimpleNamespace(config=POINT, metrics={"loss": 2.0})], "loss")
    assert [t.value for t in trials(search)] == [0.5, None, 0.5, 2.0]
    assert "'lr': 9 is outside" in caplog.text


# --- constraints ---

BOUND = {"perf/latency": (None, 10.0)}


def test_what_is_bounded_is_kept_with_the_value_and_modelled_as_by_the_optimizer() -> None:
    space = {"x": tune.uniform(0, 1), "y": tune.uniform(0, 1)}
    search = searcher(space, method="bo", seed=2, constraints=BOUND)
    same = Optimizer(
        {"x": Float(0, 1), "y": Float(0, 1)}, "bo", seed=2, constraints={"latency": (None, 10.0)}
    )
    for i in range(9):
        config, trial = search.suggest(f"t{i}"), same.ask()
        assert config == pytest.approx(trial.config)  # Tune leaves the upper end out
        latency = 20 * config["x"]
        search.on_trial_complete(f"t{i}", {"loss": -config["x"], "perf": {"latency": latency}})
        same.tell(trial, -config["x"], {"latency": latency})
    found = trials(search)
    assert found[3].extra == {"perf/latency": 20 * found[3].config["x"]}
    kept = [t.value for t in found if t.extra["perf/latency"] <= 10]
    assert min(kept) == same.best.value


def test_a_trial_without_what_is_bounded_fails_and_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    search = searcher(constraints={"latency": (None, 10.0)})
    ends = [{"loss": 1.0}, {"loss": 1.0, "latency": math.nan}, {"loss": 1.0, "latency": 12}]
    for i, result in enumerate(ends):
        search.suggest(f"t{i}")
        search.on_trial_complete(f"t{i}", result)
    missing, infinite, beyond = trials(search)
    assert (missing.state, missing.cause) == (State.FAILED, "metric")
    assert missing.reason == "the trial reported no 'latency', which constraints= bounds"
    assert "no 'latency'" in caplog.text
    assert "reported loss" in caplog.text
    assert (infinite.state, infinite.cause) == (State.FAILED, "result")
    assert "'latency' is nan" in str(infinite.reason)
    assert (beyond.state, beyond.value) == (State.DONE, 1.0)
    assert beyond.extra == {"latency": 12.0}


def test_the_last_complete_report_counts_where_the_end_says_nothing_of_the_metric() -> None:
    search = searcher(constraints={"latency": (None, 10.0)})
    search.suggest("t0")
    search.on_trial_result("t0", {"loss": 3.0, "latency": 5.0})
    search.on_trial_result("t0", {"loss": 2.0})  # not complete
    search.on_trial_complete("t0", {"other": 1.0})
    [trial] = trials(search)
    assert (trial.value, trial.extra) == (3.0, {"latency": 5.0})


def test_points_known_before_need_what_is_bounded() -> None:
    known = {"loss": 1.0, "latency": 4.0}
    search = searcher(
        constraints={"latency": (None, 10.0)},
        points_to_evaluate=[POINT],
        evaluated_rewards=[known],
    )
    search.add_evaluated_point(POINT, known)
    old = [SimpleNamespace(config=POINT, metrics={"error": 1.0, "latency": 4.0})]
    search.add_evaluated_trials(old, "error")
    assert [(t.value, t.extra) for t in trials(search)] == 3 * [(1.0, {"latency": 4.0})]
    with pytest.raises(StudyError, match=r"has no 'latency'.*dict with loss, latency"):
        search.add_evaluated_point(POINT, 1.0)
    with pytest.raises(StudyError, match="has no 'loss'"):
        search.add_evaluated_point(POINT, {"latency": 1.0})


def test_constraints_come_back_with_a_state(tmp_path: Path) -> None:
    search = searcher(constraints=BOUND, evaluated_rewards=[], points_to_evaluate=[])
    search.suggest("t0")
    again = restored(search, tmp_path, method="random")
    again.on_trial_complete("t0", {"loss": 1.0})
    assert trials(again)[0].cause == "metric"


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        ({"loss": (None, 1.0)}, "is the metric"),
        ({"latency": 10.0}, "give \\(low, high\\)"),
        (["latency"], "not a dict"),
    ],
)
def test_bad_constraints_are_refused_at_once(constraints: Any, words: str) -> None:
    with pytest.raises(StudyError, match=words):
        RayBOSearch(metric="loss", mode="min", constraints=constraints)


def test_a_bound_on_the_metric_of_the_tune_config_is_refused() -> None:
    search = RayBOSearch(constraints={"loss": (None, 1.0)})
    with pytest.raises(StudyError, match="is the metric"):
        search.set_search_properties("loss", "min", SPACE)


# --- state ---


def test_state_is_json_and_is_read_without_pickle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = searcher(points_to_evaluate=[POINT, {"lr": 0.02}])
    search.suggest("t0")
    search.on_trial_complete("t0", {"loss": 1.0})
    search.suggest("t1")
    search.save(str(tmp_path / "state"))
    saved = json.loads((tmp_path / "state").read_text())
    assert saved["metric"] == "loss"
    monkeypatch.setattr(pickle, "load", None)
    monkeypatch.setattr(pickle, "loads", None)
    again = RayBOSearch(method="random")
    again.restore(str(tmp_path / "state"))
    again.save(str(tmp_path / "again"))
    assert json.loads((tmp_path / "again").read_text()) == saved


def test_restored_model_continues_exactly(tmp_path: Path) -> None:
    search = searcher(method="bo", seed=4, method_options={"n_init": 3})
    for i in range(7):
        config = search.suggest(f"t{i}")
        if i != 5:
            search.on_trial_complete(f"t{i}", {"loss": config["lr"] + config["net"]["width"]})
    again = restored(search, tmp_path)
    assert trials(again)[5].state is State.PENDING
    assert again.suggest("t7") == search.suggest("t7")
    for one in (search, again):
        one.on_trial_complete("t5", {"loss": 3.0})
    assert again.suggest("t8") == search.suggest("t8")


def test_saving_with_a_suggestion_in_the_making_changes_nothing(tmp_path: Path) -> None:
    search = searcher()
    for i in range(4):
        search.suggest(f"t{i}")
    search.on_trial_complete("t0", {"loss": 1.0, "time_total_s": 0.1})
    search.suggest("t4")
    assert state(search)["book"]["next"] == 5  # though the next suggestion is being computed
    assert restored(search, tmp_path).suggest("t5") == search.suggest("t5")


def test_orphans_do_not_block_a_restored_searcher(tmp_path: Path) -> None:
    search = searcher(max_concurrent=2)
    search.suggest("t0")
    search.suggest("t1")
    again = restored(search, tmp_path, max_concurrent=2)
    assert again.suggest("t2")
    assert again.suggest("t3")
    assert again.suggest("t4") is None


def test_objects_come_from_the_param_space_given_again(tmp_path: Path) -> None:
    def relu() -> None: ...
    def gelu() -> None: ...

    space = {"lr": tune.uniform(0, 1), "act": tune.choice([relu, gelu])}
    search = searcher(space)
    search.suggest("t0")
    search.save(str(tmp_path / "state"))
    lost = RayBOSearch()
    lost.restore(str(tmp_path / "state"))
    lost.on_trial_complete("t0", {"loss": 1.0})
    with pytest.raises(StudyError, match=r"'act': its values are objects.*param_space again"):
        lost.suggest("t1")
    again = searcher(space)
    again.restore(str(tmp_path / "state"))
    assert again.suggest("t1")["act"] in (relu, gelu)


def test_trials_that_no_longer_fit_a_changed_space_are_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    search = searcher({"a": tune.randint(0, 10)}, points_to_evaluate=[{"a": 8}, {"a": 2}])
    for i in range(2):
        search.suggest(f"t{i}")
        search.on_trial_complete(f"t{i}", {"loss": 1.0})
    search.save(str(tmp_path / "state"))
    changed = searcher({"a": tune.randint(0, 5)})
    changed.restore(str(tmp_path / "state"))
    assert [t.config["a"] for t in trials(changed)] == [2]
    assert "saved with another space" in caplog.text
    changed.on_trial_complete("t0", {"loss": 1.0})


def test_searcher_saved_before_it_knew_a_space_is_restored(tmp_path: Path) -> None:
    search = RayBOSearch(metric="loss", mode="max", points_to_evaluate=[POINT], seed=9)
    search.add_evaluated_point(POINT, 1.0)
    again = restored(search, tmp_path)
    assert again.set_search_properties(None, None, SPACE) is True
    assert [t.value for t in trials(again)] == [1.0]
    assert again.suggest("t0")["lr"] == 0.01


def test_state_of_another_searcher_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(StudyError, match="not a saved state of RayBOSearch"):
        RayBOSearch().restore(str(tmp_path / "other"))


def test_method_comes_back_with_its_options(tmp_path: Path) -> None:
    search = RayBOSearch(
        {"a": Float(0, 1), "n": Int(1, 3)},
        "loss",
        "min",
        method="bo",
        method_options={"n_init": 4},
    )
    again = restored(search, tmp_path, method="random")
    assert state(again)["method"] == state(search)["method"]
    assert state(again)["method"]["name"] == "bo"


# --- what is allowed ---


@pytest.mark.parametrize("where", ["a <= b", lambda c: c["a"] <= c["b"]], ids=["text", "function"])
@pytest.mark.parametrize("method", ["random", "sobol", "bo"])
def test_suggestions_are_allowed(method: str, where: Any) -> None:
    space = Space({"a": tune.uniform(0, 1), "b": Float(0, 1)}, where=where)
    search = RayBOSearch(space, metric="loss", mode="min", method=method)
    search = cloudpickle.loads(cloudpickle.dumps(search))
    for i in range(4):
        config = search.suggest(f"t{i}")
        assert config is not None
        assert config["a"] <= config["b"]
        search.on_trial_complete(f"t{i}", {"loss": -config["a"]})


def test_points_that_are_not_allowed_are_refused(tmp_path: Path) -> None:
    space = Space({"a": Float(0, 1), "b": Float(0, 1)}, where="a <= b")
    bad, options = {"a": 1.0, "b": 0.0}, {"metric": "loss", "mode": "min"}
    with pytest.raises(SpaceError, match="is not allowed by where"):
        RayBOSearch(space, points_to_evaluate=[bad], **options)
    search = RayBOSearch(space, **options)
    with pytest.raises(SpaceError, match="is not allowed by where"):
        search.add_evaluated_point(bad, 1.0)
    again = restored(search, tmp_path)
    with pytest.raises(SpaceError, match="is not allowed by where"):
        again.add_evaluated_point(bad, 1.0)


# --- several metrics ---


def two_losses(x: float) -> dict[str, float]:
    return {"left": (x + 0.5) ** 2, "right": -((x - 0.5) ** 2), "time_total_s": 60.0}


def several(**options: Any) -> RayBOSearch:
    names = {"metric": ["left", "right"], "mode": ["min", "max"]}
    return RayBOSearch({"x": Float(-1, 1)}, method="bo", seed=0, **names, **options)


def test_several_metrics_are_weighed_anew_for_each_trial() -> None:
    search = several()
    points = []
    for i in range(20):
        points.append(search.suggest(f"t{i}")["x"])
        search.on_trial_complete(f"t{i}", two_losses(points[-1]))
    late = points[6:]
    assert sum(-0.6 < x < 0.6 for x in late) >= 12
    assert min(late) < -0.2
    assert max(late) > 0.2


def test_a_trial_without_one_of_several_metrics_fails_and_says_why() -> None:
    search = several()
    search.suggest("t0")
    search.on_trial_complete("t0", {"left": 1.0})
    assert trials(search)[0].reason == "the trial reported no 'right', which is a metric"


def test_several_metrics_come_back_with_a_state(tmp_path: Path) -> None:
    search, again = several(), several()
    for i in range(5):
        search.on_trial_complete(f"t{i}", two_losses(search.suggest(f"t{i}")["x"]))
    search.save(str(tmp_path / "state"))
    again.restore(str(tmp_path / "state"))
    assert again.metric == ["left", "right"]
    assert again.suggest("t5") == search.suggest("t5")


def test_known_points_need_all_of_several_metrics() -> None:
    search = several()
    search.add_evaluated_point({"x": 0.5}, {"left": 1.0, "right": 0.0})
    with pytest.raises(StudyError, match="a dict with left, right"):
        search.add_evaluated_point({"x": 0.4}, 1.0)


@dataclass
class Finished:
    metrics: dict[str, Any] | None


def test_the_front_holds_what_no_other_result_beats() -> None:
    rows = [(1.0, 1.0), (2.0, 5.0), (2.0, 4.0), (3.0, float("nan")), (0.5, 0.0)]
    results = [Finished({"loss": a, "perf": {"speed": b}}) for a, b in rows]
    results += [Finished({"loss": 0.0}), Finished(None)]
    front = pareto_front(results, ["loss", "perf/speed"], ["min", "max"])
    assert front == [results[4], results[0], results[1]]
    assert pareto_front(results[5:], ["loss", "perf/speed"], ["min", "max"]) == []
    with pytest.raises(StudyError, match="get_best_result"):
        pareto_front(results, "loss", "min")
