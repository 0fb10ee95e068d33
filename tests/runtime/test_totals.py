"""Totals: what the live view shows of the trials that ended."""

from __future__ import annotations

from raybo.runtime.session import Settings
from raybo.runtime.totals import Totals
from raybo.study.journal.record import Entry
from raybo.study.objective import Objective
from raybo.study.trial import State, TrialRecord


def test_the_shares_shown_are_those_of_the_newest_trial() -> None:
    totals = Totals(Objective(), lanes=1)
    for number in (1, 3, 2):
        shares = {"bo": number / 4, "egp": 1 - number / 4}
        memo = {"shares": shares}
        totals.add(Entry(TrialRecord(number, {"x": 0.0}, 1.0, State.DONE, memo=memo)))
    settings = Settings(10, None, None, 1, {"num_cpus": 1}, None, 0)
    assert totals.progress("s", "running", 0.0, 1.0, (), settings).shares["bo"] == 0.75
