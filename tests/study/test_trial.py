"""Trials as users see them and as journals hold them."""

from __future__ import annotations

import json
import pickle
import re

import numpy as np
import pytest

from raybo.errors import JournalError
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


ASKED = {"kind": "asked", "number": 4, "config": {"x": 0.5}, "memo": {"z": [1.0, 2.0]}}


def test_a_trial_that_was_not_read_equals_one_that_was() -> None:
    plain = TrialRecord(4, {"x": 0.5}, memo={"z": [1.0, 2.0]})
    for look in (
        lambda trial: trial,
        lambda trial: pickle.loads(pickle.dumps(trial)),
        lambda trial: TrialRecord.from_json(json.loads(json.dumps(trial.to_json()))),
        lambda trial: encode(decode(trial, Space({"x": Float(0, 1)})), Space({"x": Float(0, 1)})),
    ):
        trial = look(TrialRecord.unread(4, json.dumps(ASKED)))
        assert trial == plain
        assert vars(trial) == vars(plain)  # the text is gone, once it was read


def test_what_is_noted_in_a_trial_that_was_not_read_stays() -> None:
    trial = TrialRecord.unread(4, json.dumps(ASKED))
    trial.memo["more"] = 1
    trial.config["x"] = 0.25
    assert (trial.memo, trial.config) == ({"z": [1.0, 2.0], "more": 1}, {"x": 0.25})
    with pytest.raises(AttributeError, match="confg"):
        trial.confg  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    "change", [{"memo": []}, {"memo": None}, {"config": ...}], ids=["list", "null", "no config"]
)
def test_a_malformed_trial_is_refused_whenever_it_is_looked_at(change: dict[str, object]) -> None:
    event = {k: v for k, v in {**ASKED, **change}.items() if v is not ...}
    trial = TrialRecord.unread(4, json.dumps(event))
    for _ in range(2):
        with pytest.raises(JournalError, match=re.escape("trial 4: its record in the journal")):
            trial.config  # noqa: B018
