from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import spearmanr

from raybo.errors import StudyError
from raybo.result import Result
from raybo.space.box import Box
from raybo.space.parameters import Categorical, Float, Int
from raybo.space.space import Space
from raybo.study.optimizer import Optimizer
from raybo.study.restarts import RESTART
from raybo.study.trial import State, Trial
from raybo.views import plots, summary
from raybo.views.summary import Scale, Sheet, column_ticks, round_numbers, short

Make = Callable[..., Result]


def test_importances_rank_what_matters_first_and_sum_to_at_most_one(make_result: Make) -> None:
    shares = make_result(120).importances()
    assert list(shares)[:2] == ["lr", "comp"]
    assert shares["lr"] > 0.3
    assert shares["comp"] > 0.05
    assert shares["width"] < 0.02
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    assert 0.9 < sum(shares.values()) <= 1.0


def test_importances_do_not_depend_on_the_mode(make_result: Make) -> None:
    low, high = make_result(60, "min").importances(), make_result(60, "max").importances()
    assert low == pytest.approx(high)


@pytest.mark.slow
def test_importances_know_weights_that_searches_of_60_dimensions_found(make_result: Make) -> None:
    """60 trials say little of 60 parameters, so four searches are asked."""
    space = Space({f"x{i}": Float(-1, 1) for i in range(60)})
    weights = 1.0 / (1.0 + np.arange(60))
    places, correlations = [], []
    for seed in range(1, 5):
        optimizer = Optimizer(space, method="bo", seed=seed)
        for _ in range(60):
            trial = optimizer.ask()
            x = np.array(list(trial.config.values()))
            optimizer.tell(trial.number, float(weights @ (x - 0.3) ** 2))
        shares = replace(make_result(1), space=space, trials=optimizer.trials).importances()
        places.append(list(shares).index("x0"))
        found = [shares[f"x{i}"] for i in range(60)]
        correlations.append(spearmanr(found, weights).statistic)
    assert np.median(places) < 3
    assert np.mean(correlations) > 0.15


def test_importances_of_a_parameter_without_effect_are_small(make_result: Make) -> None:
    space = Space(
        {
            "lr": Float(1e-4, 1e-1, log=True),
            "width": Int(8, 256, log=True),
            "batch": Categorical([16, 32, 64]),
            "dropout": Float(0, 0.5),
            "momentum": Float(0.5, 1),
            "none": Float(1e-6, 1e-2, log=True),
        }
    )
    optimizer = Optimizer(space, method="bo", seed=0)
    for _ in range(30):
        trial = optimizer.ask()
        c = trial.config
        value = (np.log10(c["lr"]) + 2) ** 2 + 0.3 * (np.log2(c["width"]) - 6) ** 2
        value += (c["batch"] != 32) + 3 * (c["dropout"] - 0.2) ** 2 + (c["momentum"] - 0.9) ** 2
        optimizer.tell(trial.number, float(value))
    shares = replace(make_result(1), space=space, trials=optimizer.trials).importances()
    assert shares["none"] < 0.03


def test_importances_say_when_they_cannot_be_computed(make_result: Make) -> None:
    with pytest.raises(StudyError, match=r"needs at least \d+ trials with a value, there are 2"):
        make_result(2).importances()
    result = make_result(30)
    equal = [replace(t, value=None if t.value is None else 1.0) for t in result.trials]
    with pytest.raises(StudyError, match="all values are equal"):
        replace(result, trials=equal).importances()
    with pytest.raises(StudyError, match="too many coordinates"):
        replace(result, space=Box(10**9), trials=[]).importances()


@pytest.mark.parametrize(
    ("low", "high", "log", "texts"),
    [
        (1e-5, 1e-1, True, ["1e-5", "1e-4", "1e-3", "0.01", "0.1"]),
        (1e-4, 1.0, True, ["1e-4", "1e-3", "0.01", "0.1", "1"]),
        (8, 256, True, ["10", "20", "50", "100", "200"]),
        (0.0, 0.5, False, ["0", "0.1", "0.2", "0.3", "0.4", "0.5"]),
        (-1.0, 1.0, False, ["-1", "-0.5", "0", "0.5", "1"]),
    ],
)
def test_ticks_are_round_numbers_that_a_person_writes(
    low: float, high: float, log: bool, texts: list[str]
) -> None:
    assert [short(v) for v in round_numbers(low, high, log)] == texts


def test_ticks_of_a_column_stand_where_the_space_has_its_values() -> None:
    parameters = {
        "lr": Float(1e-5, 1e-1, log=True),
        "n": Int(1, 6),
        "k": Float(0, 1, step=0.3),
        "batch": Categorical([16, 32, 64]),
    }
    lr, n, k, batch = Space(parameters).columns
    np.testing.assert_allclose([u for u, _ in column_ticks(lr)], [0, 0.25, 0.5, 0.75, 1])
    assert [(round(6 * u - 0.5), text) for u, text in column_ticks(n)] == [
        (i, str(i + 1)) for i in range(6)
    ]
    assert {text for _, text in column_ticks(k)} <= {"0", "0.3", "0.6", "0.9"}
    assert column_ticks(batch) == [
        (pytest.approx((i + 0.5) / 3), t) for i, t in enumerate(("16", "32", "64"))
    ]


def test_a_scale_leaves_out_a_few_bad_values_and_no_good_one() -> None:
    values = np.array([*np.linspace(-1, 1, 50), 300.0])
    low = Scale.of(values, "min")
    assert not low.log
    assert low.low == -1
    assert 1 <= low.high < 3
    high = Scale.of(-values, "max")
    assert (high.low, high.high) == (-low.high, -low.low)
    assert Scale.of(np.array([1e-4, 1.0]), "min").log
    assert Scale.of(np.array([0.0, 1.0]), "min") == Scale(0.0, 1.0)
    logs = Scale(1e-4, 1.0, log=True)  # what a model expects may lie below every value
    np.testing.assert_allclose(logs.place(np.array([-1.0, 0.0, 1e-2, 9.0])), [0, 0, 0.5, 1])


def test_of_very_many_trials_every_improvement_is_drawn_and_others_evenly(
    make_result: Make,
) -> None:
    result = make_result(2500)
    sheet = Sheet(result)
    assert len(sheet.ended) == len([t for t in result.trials if t.state is not State.PENDING])
    assert 1000 <= len(sheet.trials) <= summary.MOST_TRIALS
    drawn = [t.number for t in sheet.trials]
    assert drawn == sorted(set(drawn))
    assert max(np.diff(drawn)) <= 4
    best = result.best_trial
    assert sheet.best is not None
    assert sheet.trials[sheet.best] is best
    values = [t.value for t in sheet.ended if t.value is not None]
    assert set(np.minimum.accumulate(values)) == set(sheet.best_so_far[sheet.done])
    assert f"{len(drawn):,} of {len(sheet.ended):,} trials" in sheet.sampled


def test_each_of_few_trials_is_drawn_and_nothing_is_said(make_result: Make) -> None:
    sheet = Sheet(make_result(100))
    assert sheet.trials == sheet.ended
    assert sheet.sampled == ""


def test_a_row_too_long_for_many_trials_leaves_a_thousand(
    make_result: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary, "_MOST_ENTRIES", 1)
    sheet = Sheet(make_result(1500))
    assert 500 <= len(sheet.trials) <= 1000


def test_no_two_trials_of_a_slot_overlap(make_result: Make) -> None:
    placed = summary.timeline(make_result(100))
    assert len(placed) == 100
    for slot in {s for s, _ in placed}:
        own = sorted((t.started, t.finished) for s, t in placed if s == slot)
        assert all(end <= start + 1e-2 for (_, end), (start, _) in pairwise(own))


def test_branches_hold_the_values_and_failures_of_their_trials(make_result: Make) -> None:
    result = make_result(100)
    found = {node.path: node for node in summary.branches(result)}
    outer = [found[("comp", b)] for b in ("svd", "l1", "none")]
    assert sum(len(b.values) + b.failed for b in outer) == 100
    svd = [t for t in result.trials if "svd" in t.config["comp"]]
    values = [t.value for t in svd if t.value is not None]
    assert found[("comp", "svd")].values.tolist() == values
    assert found[("comp", "svd")].failed == len(svd) - len(values)
    inner = [found[("comp", "svd", "inner", b)] for b in "ab"]
    assert sum(len(b.values) for b in inner) == len(values)


def test_failures_that_differ_by_numbers_are_grouped(make_result: Make) -> None:
    result = make_result(60)
    (reason,) = summary.failures(result)
    assert reason.text.startswith("ValueError")
    assert [t.number for t in reason.trials] == [5, 22, 39, 56]
    named = [
        replace(t, reason=f"out of memory: {1.5 * t.number} GB") if t.number % 2 else t
        for t in result.trials
    ]
    texts = [(r.text, len(r.trials)) for r in summary.failures(replace(result, trials=named))]
    assert texts == [("out of memory: 7.5 GB", 2), (reason.text, 2)]


def test_the_searches_of_a_study_are_told_apart(make_result: Make) -> None:
    values = [3.0, 1.0, 2.0, None, 0.5, 0.7, 4.0]
    noted: list[dict[str, int]] = [{}, {}, {}, {RESTART: 3}, {}, {RESTART: 3}, {RESTART: 6}]
    trials = [
        Trial(i, {"x": 0.1 * i}, value, State.FAILED if value is None else State.DONE, memo=memo)
        for i, (value, memo) in enumerate(zip(values, noted, strict=True))
    ]
    space = Space({"x": Float(0, 1)})
    result = replace(make_result(1), space=space, trials=trials)
    assert summary.searches(result) == {0: 1.0, 3: 0.5, 6: 4.0}
    assert "3 searches, one after another" in str(result)
    assert "0: 1, 3: 0.5, 6: 4" in str(result)
    lines = [shape.x0 for shape in plots.plot_history(Sheet(result)).layout.shapes]
    assert lines == [2.5, 5.5]
    lanes = replace(result, lanes=2)  # the third search begins in the first lane
    assert summary.searches(lanes) == {0: 0.5, 1: 1.0, 3: 0.7, 6: 4.0}
    assert "4 searches in 2 lanes" in str(lanes)
    assert len(plots.plot_history(Sheet(lanes)).layout.shapes) == 2
    whole = make_result(8)
    assert list(summary.searches(whole)) == [0]
    assert "searches" not in str(whole)
    assert not plots.plot_history(Sheet(whole)).layout.shapes


def test_lanes_hold_the_points_of_each_embedding(make_result: Make) -> None:
    space = Box(10**9)
    trials = [
        Trial(
            i,
            space.draw(np.random.default_rng(i)),
            float(i),
            State.DONE,
            memo={"clipped": 0.5, "z": [0.1 * i, 0.0]},
        )
        for i in range(6)
    ]
    result = replace(make_result(1), space=space, trials=trials, lanes=2, mode="max")
    first, second = summary.lanes(result)
    assert (first.number, first.numbers, first.values.tolist()) == (1, (0, 2, 4), [0, 2, 4])
    np.testing.assert_allclose(second.points, [[0.1, 0], [0.3, 0], [0.5, 0]])
    assert second.clipped == 0.5
    assert Sheet(result).columns == []
    assert summary.lanes(make_result(5)) == []


def test_directions_of_ridge_are_those_of_most_effect_whatever_the_rotation(
    make_result: Make,
) -> None:
    space = Box(3)
    W = np.array([[2.0, 2.0, 0.0], [0.0, 0.0, 0.5], [1e-4, 0.0, 0.0]])
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    memo = {"theta": {"rows": np.exp(turn @ W).tolist()}, "fitted": 1}
    trials = [Trial(0, space.draw(np.random.default_rng(0)), 1.0, State.DONE, memo=memo)]
    method = {"name": "ridge", "options": {}}
    result = replace(make_result(1), space=space, trials=trials, method=method)
    found = summary.directions(result)
    assert found is not None
    assert found.shape == (3, 2)
    np.testing.assert_allclose(np.abs(found), [[2, 0], [2, 0], [0, 0.5]], atol=1e-3)


def test_the_probability_of_success_falls_where_trials_failed(make_result: Make) -> None:
    result = make_result(80)
    trials = [
        Trial(t.number, t.config, None, State.FAILED, "diverged")
        if t.config["lr"] > 1e-2
        else Trial(t.number, t.config, 1.0 + t.number, State.DONE)
        for t in result.trials
    ]
    sheet = Sheet(replace(result, trials=trials))
    assert sheet.success is not None
    p = np.exp(sheet.success.log_probability(sheet.rows))
    assert p[~sheet.done].mean() < 0.2
    assert p[sheet.done].mean() > 0.8
    first, *_ = plots.success_slices(sheet)
    assert first.layout.xaxis.title.text == "lr"
    rate, share = first.data[0].x, first.data[0].y
    assert share[rate < 0.4].min() > 0.8  # up to 1e-3
    assert share[rate > 0.8].max() < 0.2  # from 1e-1
    assert len(first.data[2].x) == np.count_nonzero(~sheet.done)
    lost = [replace(t, cause="lost") if t.state is State.FAILED else t for t in trials]
    assert Sheet(replace(result, trials=lost)).success is None


def test_the_best_so_far_keeps_the_constraints(make_result: Make) -> None:
    result = make_result(1)
    trials = [
        Trial(i, result.trials[0].config, value, State.DONE, extra={"ms": ms})
        for i, (value, ms) in enumerate([(5.0, 20.0), (4.0, 5.0), (3.0, 11.0), (2.0, 9.0)])
    ]
    bounded = replace(result, trials=trials, constraints={"ms": (None, 10.0)})
    np.testing.assert_array_equal(Sheet(bounded).best_so_far, [np.nan, 4.0, 4.0, 2.0])
    assert bounded.best_value == 2.0
