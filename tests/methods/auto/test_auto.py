"""Auto: shares follow predictions, members share all data, noise does not choose the config."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from raybo.errors import MethodError, SurrogateError
from raybo.methods.auto.assumptions import ASSUMPTIONS
from raybo.methods.auto.default import MEMBERS, Auto, members_of, view_of
from raybo.methods.auto.shares import FLOOR, better_half, log_densities, shares
from raybo.methods.bins.default import Bins
from raybo.methods.bins.partition import MEMO
from raybo.methods.bo.default import Bo
from raybo.methods.egp.default import Egp
from raybo.space.box import Box
from raybo.space.parameters import Categorical, Choice, Float
from raybo.space.space import Space
from raybo.space.vector import Binned, Embedded
from raybo.study.optimizer import Optimizer
from raybo.study.study import Study
from raybo.surrogate.gp import GP, NOISE
from raybo.surrogate.kernels.stationary import Matern52
from tests.helpers.data import data_of


def test_a_share_is_proportional_to_the_geometric_mean_of_the_densities() -> None:
    found = shares({"a": np.log([2.0, 8.0]), "b": np.log([1.0, 1.0])})
    assert found["a"] == pytest.approx((1 - FLOOR) * 4 / 5 + FLOOR / 2)
    assert sum(found.values()) == pytest.approx(1.0)


def test_no_member_starves() -> None:
    found = shares({"a": np.array([0.0]), "b": np.array([-1e6]), "c": np.array([-np.inf])})
    assert found["b"] == found["c"] == pytest.approx(FLOOR / 3)


def test_a_density_is_that_of_each_result_by_the_others_in_units_of_the_loss() -> None:
    rng = np.random.default_rng(0)
    X = torch.as_tensor(rng.random((9, 2)))
    loss = rng.random(9)
    kernel = Matern52(2)
    theta = {"lengthscale": torch.tensor([0.5, 0.5]).double(), NOISE: torch.tensor(0.1).double()}
    y = torch.as_tensor(3.0 * loss)  # a standardised loss changes three times as fast
    gp = GP.of(kernel, theta, X, y, mean=0.2)
    wanted = []
    for i in np.flatnonzero(better_half(loss)):
        rest = torch.arange(9) != i
        seen = GP.of(kernel, theta, X[rest], y[rest], mean=0.2).posterior(X[i : i + 1])
        variance = float(seen.variance) + 0.1
        error = float(y[i] - seen.mean)
        density = math.exp(-0.5 * error**2 / variance) / math.sqrt(2 * math.pi * variance)
        wanted.append(math.log(3.0 * density))
    assert log_densities(gp, loss) == pytest.approx(wanted)


def test_equal_losses_have_densities() -> None:
    data = data_of(Box(2, 0, 1), 6, np.ones(6))
    gp, _ = Bo(Box(2, 0, 1)).model(data)
    assert np.isfinite(log_densities(gp, data.loss)).all()


def run(space: Any, f: Any, n: int, **options: Any) -> Study:
    study = Study(space, Auto(space, **options), seed=3)
    for _ in range(n):
        trial = study.ask()
        study.tell(trial.number, f(study.space.encode(trial.config)))
    return study


def test_the_member_whose_assumption_holds_proposes_most() -> None:
    """One column of eight matters: scales of their own hold, one scale for all does not."""
    study = run(Box(8, 0, 1), lambda u: math.sin(9 * u[3]) + u[3], 40)
    share = list(study.trials.values())[-1].memo["shares"]
    assert share["bo"] > 0.7
    proposed = Counter(t.memo.get("member") for t in study.trials.values())
    assert proposed["bo"] > proposed["egp"] > 0


def test_members_learn_from_all_results_and_note_for_themselves() -> None:
    space = Box(3, 0, 1)
    study = run(space, lambda u: float(((u - 0.4) ** 2).sum()), 16)
    data = study.data(16)
    for name, kind in (("bo", Bo), ("egp", Egp)):
        view = view_of(name, kind(space, n_init=1), data)
        assert len(view.gp.X) == 16
        assert np.array_equal(view.data.X, data.X)
        fits = [memo["fitted"] for memo in view.data.memos if "fitted" in memo]
        assert fits == sorted(fits)
        assert len(fits) < 16  # not at every proposal


def test_what_was_expected_is_noted_for_every_member() -> None:
    study = run(Box(2, 0, 1), lambda u: float(((u - 0.4) ** 2).sum()), 20)
    last = list(study.trials.values())[-1]
    for mean, deviation in last.memo["expected"].values():
        assert abs(mean - last.value) < 0.05
        assert 0.0 < deviation < 0.1


@pytest.mark.parametrize(
    ("space", "names"),
    [
        (Box(3), ("bo", "egp")),
        (Space({"a": Float(0, 1), "b": Categorical(["x", "y"])}), ("bo", "egp")),
        (Space({"c": Choice({"l": {"x": Float(0, 1)}, "r": {}})}), ("addtree", "bo")),
    ],
)
def test_the_space_decides_who_takes_part(space: Any, names: tuple[str, ...]) -> None:
    assert members_of(space) == names
    assert tuple(Auto(space).methods) == names


def test_a_box_without_columns_is_left_to_bins_with_its_lanes() -> None:
    auto = Auto(Box(10**9))
    assert isinstance(auto.only, Bins)
    assert auto.lanes == auto.only.lanes
    trial = Optimizer(Box(10**9), "auto").ask()
    assert MEMO in trial.memo


def test_a_study_of_a_huge_box_that_rembo_began_goes_on() -> None:
    """As auto did before: its points are embedded, and say nothing of bins."""
    before = Optimizer(Box(10**9), "rembo", seed=3)
    for _ in range(14):
        trial = before.ask()
        before.tell(trial, float(np.sum(trial.config["x"][:3] ** 2)))
    state = before.state()
    state["method"] = {"name": "auto", "options": {}}
    after = Optimizer.from_state(state)
    for _ in range(14):
        trial = after.ask()
        after.tell(trial, float(np.sum(trial.config["x"][:3] ** 2)))
    assert [type(t.config["x"].source) for t in after.trials] == [Embedded] * 14 + [Binned] * 14
    assert after.best is not None


def test_members_can_be_named() -> None:
    assert tuple(Auto(Box(3), members=("egp",)).methods) == ("egp",)
    with pytest.raises(MethodError, match=r"members must be one of .*got 'tpe'"):
        Auto(Box(3), members=("bo", "tpe"))


def test_every_member_has_its_assumption_in_words() -> None:
    assert ASSUMPTIONS.keys() == MEMBERS.keys()


def test_a_member_whose_model_fails_is_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(self: Egp, data: Any) -> Any:
        raise SurrogateError("no model today")

    monkeypatch.setattr(Egp, "model", fail)
    study = run(Box(2, 0, 1), lambda u: float(u.sum()), 8)
    assert "proposed without egp: no model today" in caplog.text
    assert list(study.trials.values())[-1].memo["shares"] == {"bo": 1.0}


def test_the_recommended_config_is_not_the_luckiest() -> None:
    """Noise of 0.3 on a bowl: the best value is luck, the recommended config near the bottom."""
    gaps = []
    for seed in range(3):
        opt, rng = Optimizer({"x": Float(0, 1)}, seed=seed), np.random.default_rng(seed)
        for _ in range(30):
            trial = opt.ask()
            opt.tell(trial, 4 * (trial.config["x"] - 0.3) ** 2 + 0.3 * rng.standard_normal())
        found = opt.recommend()
        assert found is not None
        assert found.deviation is not None
        assert opt.best is not None
        assert found.expected > opt.best.value  # which it takes for luck
        gaps.append(abs(found.config["x"] - 0.3))
    assert max(gaps) < 0.2


def test_a_recommended_config_keeps_the_constraints() -> None:
    opt = Optimizer({"x": Float(0, 1)}, constraints={"size": (None, 0.5)})
    for _ in range(12):
        trial = opt.ask()
        opt.tell(trial, -trial.config["x"], extra={"size": trial.config["x"]})
    found = opt.recommend()
    assert found is not None
    assert found.config["x"] <= 0.5


def test_without_a_model_the_best_trial_is_recommended() -> None:
    opt = Optimizer({"x": Float(0, 1)}, "random")
    assert opt.recommend() is None
    for value in (3.0, 1.0, 2.0):
        opt.tell(opt.ask(), value)
    found = opt.recommend()
    assert found is not None
    assert (found.expected, found.deviation, found.trial.number) == (1.0, None, 1)


def test_a_view_does_not_change_the_data() -> None:
    study = run(Box(2, 0, 1), lambda u: float(u.sum()), 8)
    data = study.data(8)
    before = replace(data, cache={})
    view_of("bo", Bo(Box(2, 0, 1)), data)
    assert replace(data, cache={}).memos == before.memos
