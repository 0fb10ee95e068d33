"""Trials as users see them and as journals hold them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from raybo.space.any_space import AnySpace
from raybo.space.box import Box
from raybo.space.parameters import Choice, Float, Int
from raybo.space.space import Space
from raybo.study.objective import Objective
from raybo.study.trial import State, Trial, TrialRecord, best_of, decode, encode


@pytest.mark.parametrize(
    "space", [Space({"x": Float(0, 1), "net": Choice({"a": {"n": Int(1, 9)}, "b": {}})}), Box(7)]
)
def test_a_trial_survives_json(space: AnySpace) -> None:
    config = space.draw(np.random.default_rng(0))
    trial = Trial(3, config, 0.5, State.DONE, None, 2, 1.0, 2.5, {"acc": 1}, {"z": [0.1]})
    text = json.dumps(encode(trial, space).to_json())
    read = decode(TrialRecord.from_json(json.loads(text)), space)
    assert space.to_json(read.config) == space.to_json(config)
    assert {**vars(read), "config": None} == {**vars(trial), "config": None}
    assert read.state is State.DONE


def test_the_best_trial_has_the_smallest_loss_and_a_value() -> None:
    trials = [Trial(0, {}), Trial(1, {}, -1.0, State.DONE), Trial(2, {}, 2.0, State.DONE)]
    assert best_of(trials, Objective()) is trials[1]
    assert best_of(trials, Objective("max")) is trials[2]
    assert best_of(trials[:1], Objective()) is None
