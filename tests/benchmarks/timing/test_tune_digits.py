"""Searchers driven through the calls that Tune makes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from raybo.benchmarks.timing.tune_digits import SPACE, best, direct
from raybo.tune import RayBOSearch


def test_searchers_are_driven_through_the_calls_of_tune(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[dict[str, object]] = []

    def fake(config: dict[str, object]) -> dict[str, float]:
        seen.append(config)
        return {"loss": float("nan") if len(seen) == 2 else 1.0 / len(seen)}

    monkeypatch.setattr("raybo.benchmarks.timing.tune_digits.trial", fake)
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    search = RayBOSearch(method="random", metric="loss", mode="min")
    losses = direct(search, 4, seed=0)
    assert best(losses) == 0.25
    search.save(str(tmp_path / "state.json"))
    told = json.loads((tmp_path / "state.json").read_text())["book"]["trials"]
    assert [trial["value"] for trial in told] == [1.0, None, 1 / 3, 0.25]
    assert set(seen[0]) == set(SPACE)
    del seen[:]
    direct(None, 2, seed=0)
    first = list(seen)
    direct(None, 2, seed=0)
    assert seen[2:] == first
