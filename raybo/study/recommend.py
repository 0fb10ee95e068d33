"""Recommendation: the config to use, by what the model expects and not by the luckiest value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from raybo.errors import MALFORMED, RayboError
from raybo.methods.registry import build_method
from raybo.study.outcome import Outcome
from raybo.study.study import Study
from raybo.study.trial import Trial, best_of, detached


@dataclass(frozen=True)
class Recommendation:
    """The config of a trial that is expected to be best.

    Attributes
    ----------
    trial : Trial
        The trial, or one of those that evaluated the config.
    expected : float
        Value that the model expects of it, without the noise of a single evaluation; the value of
        the trial where the method has no model.
    deviation : float, optional
        Of what is expected; None where the method has no model.
    """

    trial: Trial
    expected: float
    deviation: float | None = None

    @property
    def config(self) -> dict[str, Any]:
        """The config to use."""
        return dict(self.trial.config)


def recommend(study: Study) -> Recommendation | None:
    """Return what a study recommends; None while no trial is within the constraints.

    A study in lanes has a model for each, and recommends its best trial.
    """
    from raybo.methods.predict import has_model, predicted_losses, recommended_row  # noqa: PLC0415

    best = best_of(study.trials.values(), study.objective)
    if best is None or best.value is None:
        return None
    told = [t for t in study.trials.values() if study.is_told(t)]
    if study.method.lanes > 1 or not has_model(study.method) or len(told) < 2:
        return Recommendation(detached(best), best.value)
    data = study.data(study.next_number)
    row = recommended_row(study.method, data)
    mean, deviation = predicted_losses(study.method, data, data.X[row : row + 1])
    expected = study.objective.loss(float(mean[0]))  # the sign is its own inverse
    return Recommendation(detached(told[row]), expected, float(deviation[0]))


def recommendation_of(outcome: Outcome) -> Recommendation | None:
    """Return what a study read from its journal recommends.

    That is its best trial where the journal does not give the method back: one that was given as
    an object, or options and memos that this release cannot read.
    """
    try:
        return recommend(_study_of(outcome, outcome.method["name"], outcome.method["options"]))
    except (RayboError, *MALFORMED):
        return recommend(_study_of(outcome, "random", {}))


def _study_of(outcome: Outcome, method: str, options: Mapping[str, Any]) -> Study:
    built = build_method(method, outcome.space, options)
    study = Study(outcome.space, built, outcome.goal, outcome.seed or 0)
    for trial in outcome.trials:
        study.add(trial)
    return study
