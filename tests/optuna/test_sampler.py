"""RayBOSampler: what it makes of the trials of a study."""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState

from raybo.errors import MethodError
from raybo.optuna import RayBOSampler
from raybo.optuna.sampler import NOTE

X, Y = FloatDistribution(-1.0, 1.0), FloatDistribution(-1.0, 1.0)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(optuna.logging.INFO)


def bowl(trial: optuna.Trial) -> float:
    x, y = trial.suggest_float("x", -1, 1), trial.suggest_float("y", -1, 1)
    return (x - 0.3) ** 2 + (y + 0.5) ** 2


def study_of(objective: Any, n: int, *, direction: str = "minimize", **options: Any) -> Any:
    study = optuna.create_study(
        direction=direction, sampler=RayBOSampler(**{"seed": 0, **options})
    )
    study.optimize(objective, n_trials=n, catch=(ArithmeticError,))
    return study


def test_the_model_finds_the_minimum_and_the_maximum() -> None:
    assert study_of(bowl, 18).best_value < 1e-2
    assert study_of(lambda t: -bowl(t), 18, direction="maximize").best_value > -1e-2


def test_the_same_seed_gives_the_same_trials_and_another_gives_others() -> None:
    one, two, other = study_of(bowl, 9), study_of(bowl, 9), study_of(bowl, 9, seed=1)
    assert [t.params for t in one.trials] == [t.params for t in two.trials]
    assert one.trials[-1].params != other.trials[-1].params


def test_a_pickled_sampler_goes_on_as_the_first_one() -> None:
    study, sampler = optuna.create_study(), RayBOSampler(seed=3)
    study.sampler = sampler
    study.optimize(bowl, n_trials=8)
    trial = study._storage.get_trial(study._storage.create_new_trial(study._study_id))
    space = {"x": X, "y": Y}
    expected = sampler.sample_relative(study, trial, space)
    assert pickle.loads(pickle.dumps(sampler)).sample_relative(study, trial, space) == expected
    assert RayBOSampler(seed=3).sample_relative(study, trial, space) == expected


def test_a_sampler_may_be_used_for_one_study_after_another() -> None:
    sampler = RayBOSampler(seed=0)
    for _ in range(2):
        study = optuna.create_study(sampler=sampler)
        study.optimize(bowl, n_trials=12)
    alone = optuna.create_study(sampler=RayBOSampler(seed=0))
    alone.add_trials(study.trials[:11])
    trial = alone.ask({"x": X, "y": Y})
    assert trial.params == study.trials[11].params


def conditional(trial: optuna.Trial) -> float:
    kind = trial.suggest_categorical("kind", ["line", "ring"])
    if kind == "line":
        return abs(trial.suggest_float("slope", -1, 1) - 0.4)
    inner = trial.suggest_categorical("inner", [None, 1.5])
    radius = 0.5 if inner is None else trial.suggest_float("radius", 0, 2)
    return 0.2 + abs(radius - 0.5)


def test_parameters_of_branches_are_proposed_with_their_choice(
    caplog: pytest.LogCaptureFixture,
) -> None:
    study = study_of(conditional, 16)
    assert study.best_params["kind"] == "line"
    assert study.best_value < 0.02
    for done in study.trials:
        assert ("slope" in done.params) == (done.params["kind"] == "line")
    assert not caplog.records
    relative = study.sampler.infer_relative_search_space(study, study.ask())
    assert sorted(relative) == ["inner", "kind", "radius", "slope"]


def test_the_first_trial_is_the_middle_of_all_ranges() -> None:
    def objective(trial: optuna.Trial) -> float:
        lr = trial.suggest_float("lr", 1e-4, 1e-2, log=True)
        n, kind = trial.suggest_int("n", 1, 9), trial.suggest_categorical("kind", ["a", "b", "c"])
        return lr * n + len(kind)

    study = optuna.create_study(sampler=RayBOSampler(seed=3))
    study.optimize(objective, n_trials=2)
    first, second = (trial.params for trial in study.trials)
    assert first == {"lr": pytest.approx(1e-3), "n": 5, "kind": "b"}
    assert second != first
    given = optuna.create_study(
        sampler=RayBOSampler(seed=3, independent_sampler=optuna.samplers.RandomSampler(seed=3))
    )
    given.optimize(objective, n_trials=1)
    assert given.trials[0].params != first


def test_what_no_category_decides_is_sampled_independently_and_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def layers(trial: optuna.Trial) -> float:
        n = trial.suggest_int("layers", 1, 3)
        return sum(trial.suggest_float(f"width {i}", 0, 1) for i in range(n))

    with caplog.at_level(logging.WARNING):
        study = study_of(layers, 15)
    relative = study.sampler.infer_relative_search_space(study, study.ask())
    assert sorted(relative) == ["layers", "width 0"]
    said = [record.getMessage() for record in caplog.records]
    assert 1 <= len(said) <= 2
    assert all("sampled independently, by TPESampler" in text for text in said)


def test_a_region_where_trials_fail_is_left() -> None:
    def fails(trial: optuna.Trial) -> float:
        value = bowl(trial)
        if value < 0.09:  # around the minimum
            raise ArithmeticError
        return value

    study = study_of(fails, 24)
    failed = [t.state is TrialState.FAIL for t in study.trials]
    assert 1 <= sum(failed) <= 14
    assert study.best_value < 0.15


def test_failures_at_random_change_nothing_about_the_values() -> None:
    def flaky(trial: optuna.Trial) -> float:
        value = bowl(trial)
        if trial.number % 4 == 3:
            raise ArithmeticError
        return value

    assert study_of(flaky, 22).best_value < 1e-2


def test_a_pruned_trial_counts_as_what_its_intermediate_values_promise() -> None:
    def asked(bad: bool) -> dict[str, float]:
        study = optuna.create_study(sampler=RayBOSampler("bo", seed=0))
        for x in (-0.8, -0.3, 0.2, 0.6):
            study.add_trial(
                optuna.create_trial(params={"x": x}, distributions={"x": X}, value=x**2)
            )
        study.add_trial(
            optuna.create_trial(
                state=TrialState.PRUNED,
                params={"x": 0.05},
                distributions={"x": X},
                intermediate_values={1: 7.0, 3: 9.0 if bad else -5.0},
            )
        )
        return study.ask({"x": X}).params

    assert abs(asked(bad=False)["x"] - 0.05) < 0.3
    assert abs(asked(bad=True)["x"] - 0.05) > 0.1


def test_bounds_are_kept_by_either_way_to_give_them() -> None:
    def bounded(trial: optuna.Trial) -> float:
        value = bowl(trial)
        trial.set_constraint("x", trial.params["x"] + 0.2)  # x <= -0.2
        return value

    studies = [study_of(bowl, 25, constraints_func=lambda t: (t.params["x"] + 0.2,))]
    if hasattr(optuna.Trial, "set_constraint"):  # since Optuna 5
        studies.append(study_of(bounded, 25))
    for study in studies:
        assert study.best_params["x"] <= -0.2
        assert study.best_value < 0.26  # 0.25 on the bound
        assert sum(t.params["x"] <= -0.2 for t in study.trials[15:]) >= 3


def test_points_of_other_processes_are_pending(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/study.db"
    one = optuna.create_study(storage=storage, study_name="s", sampler=RayBOSampler(seed=0))
    one.optimize(bowl, n_trials=10)
    two = optuna.load_study(storage=storage, study_name="s", sampler=RayBOSampler(seed=0))
    waiting = [study.ask({"x": X, "y": Y}) for study in (one, two, one, two)]
    points = np.array([[t.params["x"], t.params["y"]] for t in waiting])
    gaps = np.abs(points[:, None] - points[None]).max(axis=2) + np.eye(len(points))
    assert gaps.min() > 1e-3
    assert any(key.startswith(NOTE) for key in two.trials[-1].system_attrs)


def test_long_notes_are_kept_in_parts(tmp_path: Path) -> None:
    def wide(trial: optuna.Trial) -> float:
        return sum(trial.suggest_float(f"a parameter {i}", 0, 1) for i in range(60))

    study = optuna.create_study(
        storage=f"sqlite:///{tmp_path}/study.db", sampler=RayBOSampler("bo", seed=0)
    )
    study.sampler._options = {"n_init": 2}
    study.optimize(wide, n_trials=5)
    assert any(f"{NOTE}1" in t.system_attrs for t in study.trials)
    resumed = RayBOSampler("bo", seed=0, method_options={"n_init": 2})
    trial = study.ask()
    space = study.sampler.infer_relative_search_space(study, trial._cached_frozen_trial)
    frozen = trial._cached_frozen_trial
    expected = study.sampler.sample_relative(study, frozen, space)
    assert resumed.sample_relative(study, frozen, space) == expected


def test_threads_share_a_sampler() -> None:
    study = optuna.create_study(sampler=RayBOSampler(seed=0))
    study.optimize(bowl, n_trials=16, n_jobs=4)
    points = {(t.params["x"], t.params["y"]) for t in study.trials}
    assert len(points) == 16


def test_several_objectives_are_weighed_anew_for_each_trial() -> None:
    def two(trial: optuna.Trial) -> tuple[float, float]:
        x, y = trial.suggest_float("x", -1, 1), trial.suggest_float("y", -1, 1)
        return (x + 0.5) ** 2 + y**2, 100.0 - (x - 0.5) ** 2 - y**2

    study = optuna.create_study(
        directions=["minimize", "maximize"], sampler=RayBOSampler("bo", seed=0)
    )
    study.optimize(two, n_trials=30)
    front = [t for t in study.best_trials if abs(t.params["y"]) < 0.1]
    assert len(front) >= 8
    along = sorted(t.params["x"] for t in front)
    assert along[0] < -0.2
    assert along[-1] > 0.2


def test_points_repeat_when_a_finite_space_is_exhausted() -> None:
    study = study_of(lambda t: t.suggest_int("n", 0, 2), 6)
    assert {t.params["n"] for t in study.trials[:4]} == {0, 1, 2}
    assert len(study.trials) == 6


def test_enqueued_points_are_data_like_any_other() -> None:
    study = optuna.create_study(sampler=RayBOSampler(seed=0))
    for x in (0.3, 0.31):
        study.enqueue_trial({"x": x, "y": -0.5})
    study.optimize(bowl, n_trials=12)
    assert study.best_value == 0.0


def test_an_unknown_method_is_refused_by_name() -> None:
    with pytest.raises(
        MethodError, match=r"'boo' is not known \(did you mean 'bo'\?\); choose one of auto"
    ):
        RayBOSampler("boo")


def test_without_optuna_the_error_names_the_extra() -> None:
    code = "import sys; sys.modules['optuna'] = None; from raybo.optuna import RayBOSampler"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'raybo[optuna]'" in done.stderr
