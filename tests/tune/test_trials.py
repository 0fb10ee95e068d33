"""What a searcher keeps of Tune's trials."""

from __future__ import annotations

from raybo.study.objective import Objective
from raybo.study.trial import State, Trial
from raybo.tune.trials import Trials

GOAL = Objective("min", "loss")


def curve_of(trials: Trials, trial_id: str, values: list[float]) -> None:
    for step, value in enumerate(values, start=1):
        trials.report(trial_id, {"loss": value, "training_iteration": step}, GOAL)
    trials.complete(trial_id, {"loss": values[-1], "training_iteration": len(values)}, False, GOAL)


def test_trials_that_a_scheduler_stops_keep_their_curves() -> None:
    trials = Trials()
    for i, trial_id in enumerate(("short", "long")):
        trials.add(Trial(i, {"x": 0.1}), trial_id)
    curve_of(trials, "short", [3.0, 2.0])
    assert trials.cut_short() == []
    assert trials.by_number[0].value == 2.0  # nothing longer is known yet
    curve_of(trials, "long", [3.0, 2.0, 1.0])
    assert trials.cut_short() == [0]
    short, long = trials.by_number.values()
    assert (short.state, short.value, short.curve) == (State.STOPPED, None, {1: 3.0, 2: 2.0})
    assert (long.state, long.value) == (State.DONE, 1.0)
    assert trials.n_values == 2
    assert not trials.unfinished("short")
    assert trials.cut_short() == []
