"""Optimizer: ask/tell without Ray."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from raybo.errors import StudyError
from raybo.methods.base import Method
from raybo.methods.registry import build_method, describe_method
from raybo.space.any_space import AnySpace, as_space
from raybo.space.definition import difference, space_from_definition
from raybo.study.objective import Objective
from raybo.study.study import Study
from raybo.study.trial import Trial, TrialRecord, decode, encode

STATE_VERSION = 1


class Optimizer:
    """Search a space by asking for trials and telling their values.

    Parameters
    ----------
    space
        `Space`, `Box`, or a dict of parameters.
    method
        Name of a method, or a method object.
    mode
        "min" or "max".
    seed
        The same seed and the same results give the same trials.
    **options
        Options of the method.
    """

    def __init__(
        self,
        space: AnySpace | Mapping[str, Any],
        method: str | Method = "bo",
        mode: str = "min",
        seed: int = 0,
        **options: Any,
    ) -> None:
        space = as_space(space)
        self._study = Study(space, build_method(method, space, options), Objective(mode), seed)

    @property
    def space(self) -> AnySpace:
        """Space that is searched."""
        return self._study.space

    @property
    def trials(self) -> list[Trial]:
        """All trials so far, by number."""
        return list(self._study.trials.values())

    @property
    def best(self) -> Trial | None:
        """Trial with the best value; None while there is none."""
        return self._study.best

    def ask(self) -> Trial:
        """Return the next trial to evaluate; any number of trials may be pending."""
        return self._study.ask()

    def tell(self, number: int, value: float) -> Trial:
        """Record the value of a trial; a NaN or an infinity makes it a failure."""
        return self._study.tell(number, value)

    def fail(self, number: int, reason: str = "") -> Trial:
        """Record that a trial has no value, and why."""
        return self._study.fail(number, reason)

    def add(self, config: Mapping[str, Any], value: float | None = None) -> Trial:
        """Add a point that was not asked for: pending, or with its known value."""
        self.space.check_allowed(config)
        trial = self._study.add(Trial(self._study.next_number, config))
        return trial if value is None else self._study.tell(trial.number, value)

    def state(self) -> dict[str, Any]:
        """Return the state as a JSON dict, for `from_state`."""
        study = self._study
        return {
            "version": STATE_VERSION,
            "space": study.space.definition(),
            "method": describe_method(study.method),
            "mode": study.objective.mode,
            "seed": study.seed,
            "trials": [encode(trial, study.space).to_json() for trial in study.trials.values()],
        }

    @classmethod
    def from_state(
        cls,
        state: Mapping[str, Any],
        space: AnySpace | Mapping[str, Any] | None = None,
        method: Method | None = None,
    ) -> Optimizer:
        """Return an optimizer that continues as the one that gave `state`.

        `space` and `method` are needed only where JSON cannot hold them: categorical values that
        are objects, and methods that were given as objects.
        """
        if state.get("version") != STATE_VERSION:
            raise StudyError(
                f"this state has version {state.get('version')!r}, "
                f"this release reads version {STATE_VERSION}"
            )
        if space is None:
            space = space_from_definition(state["space"])
        space = as_space(space)
        changes = difference(state["space"], space.definition())
        if changes:
            raise StudyError("the state was saved with another space: " + "; ".join(changes))
        name, options = state["method"]["name"], state["method"]["options"]
        made = cls(
            space, method or name, state["mode"], state["seed"], **({} if method else options)
        )
        for item in state["trials"]:
            made._study.add(decode(TrialRecord.from_json(item), space))
        return made
