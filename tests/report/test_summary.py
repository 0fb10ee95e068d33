from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from raybo.report import summary
from raybo.result import Result
from raybo.space.box import Box
from raybo.study.trial import State, Trial

Make = Callable[..., Result]


def test_best_so_far_follows_the_mode_and_the_order_of_finishing(make_result: Make) -> None:
    for mode, better in (("min", np.minimum), ("max", np.maximum)):
        result = make_result(60, mode)
        trials = summary.done(result)
        assert [t.finished for t in trials] == sorted(t.finished for t in trials)
        found = summary.best_so_far(result)
        np.testing.assert_array_equal(found, better.accumulate([t.value for t in trials]))
        assert found[-1] == result.best_value


def test_importances_rank_what_matters_first(make_result: Make) -> None:
    shares = summary.importances(make_result(300))
    assert next(iter(shares)) == "lr"
    assert shares["lr"] > 0.3
    assert shares["comp"] > 0.05
    assert shares["width"] < 0.05
    assert all(0.0 <= share <= 1.0 for share in shares.values())


def test_importances_of_too_few_trials_are_zero(make_result: Make) -> None:
    assert set(summary.importances(make_result(2)).values()) <= {0.0}


def test_no_two_trials_of_a_slot_overlap(make_result: Make) -> None:
    placed = summary.timeline(make_result(100))
    assert len(placed) == 100
    for slot in {s for s, _ in placed}:
        own = sorted((t.started, t.finished) for s, t in placed if s == slot)
        assert all(end <= start + 1e-2 for (_, end), (start, _) in pairwise(own))


def test_branches_count_evaluations_and_keep_the_best(make_result: Make) -> None:
    result = make_result(100)
    found = {node.path: node for node in summary.branches(result)}
    assert found[("comp",)].count == 100
    assert sum(found[("comp", b)].count for b in ("svd", "l1", "none")) == 100
    svd = [t for t in result.trials if "svd" in t.config["comp"]]
    assert found[("comp", "svd")].count == len(svd)
    assert found[("comp", "svd")].best == min(t.value for t in svd if t.value is not None)
    inner = found[("comp", "svd", "inner", "a")].count + found[("comp", "svd", "inner", "b")].count
    assert inner == len(svd)


def test_failures_are_grouped_by_reason(make_result: Make) -> None:
    ((reason, count, first),) = summary.failures(make_result(60))
    assert reason.startswith("ValueError")
    assert (count, first) == (4, [5, 22, 39, 56])


def test_lanes_tell_evaluations_best_and_clipping_per_embedding(make_result: Make) -> None:
    space = Box(10**9)
    trials = [
        Trial(i, space.draw(np.random.default_rng(i)), float(i), State.DONE, memo={"clipped": 0.5})
        for i in range(6)
    ]
    result = replace(make_result(1), space=space, trials=trials, lanes=2, mode="max")
    assert summary.lanes(result) == [
        {"embedding": 1, "evaluations": 3, "best": 4.0, "clipped": 0.5},
        {"embedding": 2, "evaluations": 3, "best": 5.0, "clipped": 0.5},
    ]
    assert summary.columns(result) == {}
    assert summary.lanes(make_result(5)) == []
