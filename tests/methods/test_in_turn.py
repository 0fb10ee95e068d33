"""Many points from one model are those of a loop that conditions the model on each of them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch

from raybo.acquisition.functions import log_ei
from raybo.acquisition.maximizers.base import Region, with_gradient
from raybo.methods.base import FULL, LEAST, REDUCED
from raybo.methods.in_turn import choose, each_given_those_before
from raybo.methods.model import mixed_kernel
from raybo.methods.registry import build_method
from raybo.space.parameters import Categorical, Float, Int
from raybo.space.space import Space
from raybo.study.study import Study
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.additive import Additive
from raybo.surrogate.kernels.base import Kernel
from raybo.surrogate.map import NOISE_HYPER, starting_theta

MIXED = Space({"a": Float(0, 1), "b": Float(0, 1), "c": Categorical(["u", "v", "w"])})
KERNELS: dict[str, Kernel] = {
    "stationary": mixed_kernel(Space({x: Float(0, 1) for x in "abc"}), "matern52", scaled=True),
    "additive": Additive(((0, 1), (2,)), ()),
    "mixed": mixed_kernel(MIXED, "matern52", scaled=True),
}


def process(kernel: Kernel) -> GP:
    rng = np.random.default_rng(0)
    X, y = torch.tensor(MIXED.snap(rng.random((12, 3)))), torch.tensor(rng.standard_normal(12))
    return GP.of(kernel, starting_theta(kernel, NOISE_HYPER), X, y)


def nothing(X: torch.Tensor) -> torch.Tensor:
    return 0.0 * X.sum(-1)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_starts_are_chosen_as_by_a_model_conditioned_on_each_of_them(kernel: Kernel) -> None:
    gp, rng = process(kernel), np.random.default_rng(1)
    starts = MIXED.snap(rng.random((40, 3)))
    region = Region(np.zeros(3), np.ones(3), starts)
    level = float(gp.fitted().min())
    chosen, found, levels = choose(gp, "log_ei", level, nothing, region, 6, falls=True)
    left = list(range(40))
    for i, best in enumerate(chosen):
        gains = log_ei(gp.posterior(torch.tensor(starts[left])), torch.tensor(level)).numpy()
        assert left[int(gains.argmax())] == best
        assert found[i] == pytest.approx(gains.max(), rel=1e-6)
        assert levels[i] == pytest.approx(level)
        point = torch.tensor(starts[[best]])
        level = min(level, float(gp.posterior(point).mean))
        gp = gp.condition_on_mean(point)
        left.remove(best)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_each_point_has_the_acquisition_of_a_model_given_those_before_it(kernel: Kernel) -> None:
    gp, rng = process(kernel), np.random.default_rng(2)
    given, X = MIXED.snap(rng.random((5, 3))), MIXED.snap(rng.random((5, 3)))
    levels = float(gp.fitted().min()) - 0.1 * np.arange(5.0)
    f = each_given_those_before(gp, "log_ei", levels, nothing, given, 12)
    value, gradient = with_gradient(f(np.arange(5)), X)
    for j in range(5):
        model = gp.condition_on_mean(torch.tensor(given[:j]))
        best = torch.tensor(levels[j])

        def naive(Z: torch.Tensor, model: GP = model, best: torch.Tensor = best) -> torch.Tensor:
            return log_ei(model.posterior(Z), best)

        wanted, slope = with_gradient(naive, X[[j]])
        np.testing.assert_allclose(value[[j]], wanted, rtol=1e-8)
        np.testing.assert_allclose(gradient[[j]], slope, rtol=1e-6, atol=1e-9)
        alone, _ = with_gradient(f(np.array(j)), X)
        np.testing.assert_allclose(alone, with_gradient(naive, X)[0], rtol=1e-8)


def study_of(method: str, space: Space, n: int = 12) -> Study:
    """A study with n results, and five points pending."""
    study = Study(space, build_method(method, space), seed=3)
    rng = np.random.default_rng(4)
    for number in range(n):
        study.ask(number)
        study.tell(number, float(rng.standard_normal()))
    for number in range(n, n + 5):
        study.ask(number)
    return study


def configs(study: Study, numbers: Sequence[int], effort: Any) -> list[list[Any]]:
    asked = study.ask_many(numbers, effort)
    return [[dict(trial.config) for trial in trials] for trials in asked]


@pytest.mark.parametrize("method", ["auto", "bo", "egp", "local", "addgp", "ridge", "linear"])
def test_one_point_is_that_of_ask_and_so_are_many_with_full_effort(method: str) -> None:
    space = Space({x: Float(0, 1) for x in "abc"})
    numbers = range(17, 20)
    study = study_of(method, space)
    one_by_one = deepcopy(study)
    wanted = [dict(one_by_one.ask(number).config) for number in numbers]
    assert configs(deepcopy(study), numbers, FULL) == [[one] for one in wanted]
    alone = dict(deepcopy(study).ask(17, REDUCED).config)
    assert configs(study, [17], REDUCED) == [[alone]]


@pytest.mark.parametrize("method", ["auto", "bo", "egp", "local", "addgp", "ridge", "linear"])
def test_many_points_come_from_one_search_and_none_repeats(method: str) -> None:
    space = Space({"a": Float(0, 1), "b": Float(0, 1), "n": Int(1, 9)})
    [points] = configs(study_of(method, space), range(17, 27), LEAST)
    assert len(points) == 10
    assert len({tuple(point.values()) for point in points}) == 10


def test_in_a_finite_space_a_batch_holds_each_point_once() -> None:
    space = Space({"n": Int(1, 6), "c": Categorical(["u", "v", "w", "x"])})
    study = study_of("bo", space, n=8)
    asked = [trial for trials in study.ask_many(range(13, 24), LEAST) for trial in trials]
    every = [tuple(trial.config.values()) for trial in study.trials.values()]
    assert len(every) == len(set(every)) == 24
    assert sum(bool(trial.memo.get("replaced")) for trial in asked) <= 2
