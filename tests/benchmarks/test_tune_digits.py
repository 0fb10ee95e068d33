"""The tuning task on digits: a fixed function of the config, the same calls as Tune's."""

from __future__ import annotations

import math

import pytest

from raybo.benchmarks.timing.tune_digits import best, direct, trial
from raybo.tune import RayBOSearch

CONFIG = {
    "lr": 0.1,
    "momentum": 0.9,
    "weight_decay": 1e-5,
    "width": 16,
    "layers": 1,
    "dropout": 0.1,
    "batch": 128,
}


def test_training_learns_and_repeats_exactly() -> None:
    loss = trial(CONFIG)["loss"]
    assert loss < 1.0 < math.log(10)
    assert trial(CONFIG)["loss"] == loss


def test_searchers_are_driven_through_the_calls_of_tune(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, object]] = []

    def fake(config: dict[str, object]) -> dict[str, float]:
        seen.append(config)
        return {"loss": float("nan") if len(seen) == 2 else 1.0 / len(seen)}

    monkeypatch.setattr("raybo.benchmarks.timing.tune_digits.trial", fake)
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    search = RayBOSearch(method="random", metric="loss", mode="min")
    losses = direct(search, 4, seed=0)
    assert best(losses) == 0.25
    assert [t.value for t in search._book.trials.values()] == [1.0, None, 1 / 3, 0.25]
    assert set(seen[0]) == set(CONFIG)
    del seen[:]
    direct(None, 2, seed=0)
    first = list(seen)
    direct(None, 2, seed=0)
    assert seen[2:] == first
