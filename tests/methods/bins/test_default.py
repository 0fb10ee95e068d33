"""Method bins: how its bins grow, and what it finds."""

from __future__ import annotations

import json
import pickle
import tracemalloc
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from raybo.benchmarks.problems.registry import get_problem
from raybo.errors import MethodError, SpaceError
from raybo.methods.base import EFFORTS, Data, Effort
from raybo.methods.bins.default import BINS, MOST_BINS, RESULTS_PER_BIN, Bins, grown
from raybo.methods.bins.partition import MEMO, Partition
from raybo.space.box import Box
from raybo.space.parameters import Categorical, Choice, Float
from raybo.space.space import Space
from raybo.study.optimizer import Optimizer
from tests.helpers.data import data_of

HUGE = Box(10**12)


def run(space: Box | Space, objective: Any, n: int, method: str = "bins", **options) -> Optimizer:
    optimizer = Optimizer(space, method, seed=options.pop("seed", 0), **options)
    for _ in range(n):
        trial = optimizer.ask()
        optimizer.tell(trial.number, objective(trial.config))
    return optimizer


def bowl(config: Mapping[str, Any]) -> float:
    """A function of three of many coordinates."""
    x = config["x"]
    return float(sum((x[i] - 0.4) ** 2 for i in (3, len(x) // 2, len(x) - 5)))


def told(bins: Partition, n: int, lengths: list[float]) -> Data:
    """The own data of n results, of which the last notes a fit of these length-scales."""
    U = np.random.default_rng(0).random((n, bins.d))
    memos = [bins.proposal(u, {}).memo for u in U]
    memos[-1] |= {"theta": {"lengthscale": lengths, "noise": 1e-4}, "fitted": n}
    return bins.data(data_of(bins.space, n, U.sum(1), X=U, memos=memos))


def test_the_bins_that_hide_most_are_split_one_for_every_few_results() -> None:
    bins = Partition(Box(100), 0, (10, 20, 99, 100))
    lengths = [0.1, 10.0, 0.2, 0.01]  # relevance times size: 1000, 0.1, 1975 and one coordinate
    one, two = (grown(bins, told(bins, n * RESULTS_PER_BIN, lengths)) for n in (5, 6))
    assert one == bins.split([2])
    assert two == bins.split([2, 0])
    assert grown(bins, told(bins, 4 * RESULTS_PER_BIN, lengths)) == bins


def test_there_are_never_more_than_the_most_bins() -> None:
    bins = Partition.of_lane(HUGE, MOST_BINS - 1, 0, 0)
    lengths = np.linspace(1.0, 2.0, bins.d).tolist()
    more = grown(bins, told(bins, 3 * MOST_BINS * RESULTS_PER_BIN, lengths))
    assert more == bins.split([0])
    assert more.d == MOST_BINS


def test_an_ask_takes_the_same_memory_in_any_dimension() -> None:
    peaks = []
    for dim in (10**3, 10**12):
        optimizer = run(Box(dim), bowl, 14)
        tracemalloc.start()
        optimizer.ask()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0] + 10**6


def test_bins_split_until_each_has_one_coordinate() -> None:
    optimizer = run(Box(10), lambda c: float(np.square(np.asarray(c["x"])).sum()), 44)
    numbers = [len(trial.memo[MEMO]["ends"]) for trial in optimizer.trials]
    assert numbers == sorted(numbers)
    assert (numbers[0], numbers[-1]) == (BINS, 10)


def test_a_point_of_many_dimensions_stays_small_and_is_read_at_once() -> None:
    optimizer = run(HUGE, bowl, 30)
    trial = optimizer.ask()
    assert len(trial.config["x"]) == 10**12
    assert len(pickle.dumps(trial.config)) < 2000
    assert len(json.dumps(trial.memo)) < 4000
    x = trial.config["x"]
    signed = np.abs(x[np.arange(10**12 - 500, 10**12)])
    assert set(np.round(signed, 9)) <= set(np.round(np.abs(trial.memo[MEMO]["values"]), 9))


def test_lanes_have_orders_of_their_own_and_the_same_one_each_time() -> None:
    optimizer = Optimizer(HUGE, "bins", k=3)
    seeds = [optimizer.ask().config["x"].source.seed for _ in range(6)]
    assert seeds[:3] == seeds[3:]
    assert len(set(seeds)) == 3


def test_several_points_at_a_time_differ_and_note_their_bins() -> None:
    method = Bins(HUGE)
    optimizer = run(HUGE, bowl, 24)
    bins = method.partition(data_of(HUGE, 0, np.empty(0), number=24))
    memos = tuple(trial.memo for trial in optimizer.trials)
    loss = np.array([trial.value for trial in optimizer.trials])
    data = data_of(HUGE, 24, loss, memos=memos)
    found = method.propose_many(data, [np.random.default_rng(i) for i in range(4)])
    assert len(found) == 4
    points = bins.joined(memos).joined(one.memo for one in found)
    own = points.data(data_of(HUGE, 4, np.zeros(4), memos=[f.memo for f in found], number=28))
    gaps = np.abs(own.X[:, None] - own.X).max(-1)[np.triu_indices(4, 1)]
    assert gaps.min() > 1e-6


@pytest.mark.parametrize("effort", EFFORTS, ids=lambda effort: effort.name)
def test_every_effort_proposes(effort: Effort) -> None:
    bins = Partition.of_lane(HUGE, BINS, 0, 0)
    U = np.random.default_rng(0).random((14, BINS))
    memos = tuple(bins.proposal(u, {}).memo for u in U)
    data = replace(data_of(HUGE, 14, np.sin(U.sum(1)), memos=memos), effort=effort)
    found = Bins(HUGE).propose(data, np.random.default_rng(0))
    assert np.abs(found.memo[MEMO]["values"]).max() <= 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"d": 9}, "d must be at most the dimension of the space, 3, got 9"),
        ({"d": 0}, "d must be an integer of at least 1, got 0"),
        ({"k": 1.5}, "k must be an integer of at least 1, got 1.5"),
    ],
)
def test_bad_options_are_refused(options: dict, message: str) -> None:
    with pytest.raises(MethodError, match=message):
        Bins(Box(3), **options)


def test_a_conditional_space_is_referred_to_addtree() -> None:
    space = Space({"c": Choice({"l": {"x": Float(0, 1)}, "r": {}})})
    with pytest.raises(SpaceError, match="'c' is a Choice; use method 'addtree'"):
        Bins(space)


def test_a_finite_space_is_searched_until_it_is_exhausted() -> None:
    space = Space({"a": Categorical([1, 2, 3]), "b": Categorical([1, 2])})
    optimizer = run(space, lambda c: c["a"] * c["b"], 6, n_init=2)
    assert len({tuple(t.config.values()) for t in optimizer.trials}) == 6


def test_every_trial_is_a_new_point_of_the_bins_also_where_a_corner_is_best() -> None:
    optimizer = run(Box(2), lambda c: float(c["x"][0] + c["x"][1]), 20)
    assert not any("replaced" in trial.memo for trial in optimizer.trials)


@pytest.mark.parametrize("seeds", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_a_bowl_in_very_many_dimensions_is_found(seeds: int) -> None:
    """Far below what as many random points find, in the median of the seeds."""

    def best(method: str, seed: int) -> float:
        found = run(HUGE, bowl, 40, method, seed=seed).best
        assert found is not None
        return float(found.value)

    bins, random = (np.median([best(m, s) for s in range(seeds)]) for m in ("bins", "random"))
    assert bins < 0.1 * random


@pytest.mark.slow
def test_hartmann6_is_found_in_a_thousand_dimensions() -> None:
    problem = get_problem("hartmann6-1000")
    values = [
        run(problem.space, problem.objective, 100, seed=seed).best.value for seed in range(3)
    ]
    assert np.median(values) < -3.0
