"""Optimizer: ask/tell without Ray."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, overload

from raybo.arrays import Array
from raybo.errors import MALFORMED, RayboError, StudyError
from raybo.methods.base import Method
from raybo.methods.registry import build_method, describe_method
from raybo.space.any_space import AnySpace, as_space
from raybo.space.definition import difference, space_from_definition
from raybo.study.objective import Constraints, Objective
from raybo.study.recommend import Recommendation, recommend
from raybo.study.steps import Steps
from raybo.study.study import Study, checked_seed
from raybo.study.trial import Trial, TrialRecord, decode, detached, encode

STATE_VERSION = 1


class Optimizer:
    """Search a space by asking for trials and telling their values.

    The trials it returns are copies: changing their configs changes nothing here.

    Parameters
    ----------
    space
        `Space`, `Box`, or a dict of parameters.
    method
        Name of a method, or a method object.
    mode
        "min" or "max".
    seed
        The same seed and the same results give the same trials; None is any seed.
    constraints
        Bounds (low, high) of other outcomes by their names, None for no bound: `tell` takes their
        values as `extra`, and the best trial keeps all bounds.
    max_steps, stop_early, over
        Number of reports of a complete trial; whether `report` stops trials that are worse than
        most at the same step; "steps", or "instances" where a trial is the mean of its reports.
    **options
        Options of the method.
    """

    def __init__(
        self,
        space: AnySpace | Mapping[str, Any],
        method: str | Method = "auto",
        mode: str = "min",
        seed: int | None = 0,
        constraints: Constraints | None = None,
        max_steps: int | None = None,
        stop_early: bool = False,
        over: str = "steps",
        **options: Any,
    ) -> None:
        space, goal = as_space(space), Objective(mode, constraints=constraints or {})
        built = build_method(method, space, options)
        steps = Steps(max_steps, stop_early, over)
        self._study = Study(space, built, goal, checked_seed(seed), steps=steps)

    @property
    def space(self) -> AnySpace:
        """Space that is searched."""
        return self._study.space

    @property
    def trials(self) -> list[Trial]:
        """All trials so far, by number."""
        return [detached(trial) for trial in self._study.trials.values()]

    @property
    def best(self) -> Trial | None:
        """Trial with the best value; None while there is none."""
        best = self._study.best
        return None if best is None else detached(best)

    @overload
    def ask(self) -> Trial: ...

    @overload
    def ask(self, n: int) -> list[Trial]: ...

    def ask(self, n: int | None = None) -> Trial | list[Trial]:
        """Return the next trial to evaluate, or a list of `n`; any number may be pending."""
        if n is None:
            return detached(self._study.ask())
        return [detached(self._study.ask()) for _ in range(n)]

    def tell(
        self, trial: int | Trial, value: float, extra: Mapping[str, Any] | None = None
    ) -> Trial:
        """Record the value of a trial or its number; a NaN or an infinity makes it a failure.

        `extra` holds its other outcomes, at least those that are bounded by constraints.
        """
        return detached(self._study.tell(_number(trial), value, extra))

    def report(
        self,
        trial: int | Trial,
        step: int | None,
        value: float,
        extra: Mapping[str, Any] | None = None,
    ) -> bool:
        """Record a value of a trial on its way; return whether the trial goes on.

        `step` counts from 1 and increases; None is the next one. When False comes back the trial
        is over: stopped early, complete after `max_steps` reports (the last value is the trial's),
        or failed by a NaN. There is nothing left to tell. The model learns from the curves of
        stopped and of running trials, too.
        """
        return self._study.report(_number(trial), step, value, extra)

    def fail(self, trial: int | Trial, reason: str = "", cause: str = "exception") -> Trial:
        """Record that a trial, or the one of this number, has no value, and why.

        Where failures have a place the search learns to avoid it. With `cause` "lost" or
        "transient" the failure says nothing about the config, which may be proposed again.
        """
        return detached(self._study.fail(_number(trial), reason, cause))

    def predict(self, configs: Iterable[Mapping[str, Any]]) -> tuple[Array, Array]:
        """Return what the method's model expects at `configs`, shape (n,), and its deviations.

        Both are in units of the objective, without the noise of single values. The model is that
        of the finished trials; all but `bins`, `rembo`, `rpp`, `random` and `sobol` have one.
        """
        return self._study.predict(configs)

    def recommend(self) -> Recommendation | None:
        """Return the config to use: the best by what the model expects; None while there is none.

        Where values are noisy the best value is a lucky one, and another config may be better.
        """
        return recommend(self._study)

    def add(
        self,
        config: Mapping[str, Any],
        value: float | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Trial:
        """Add a point that was not asked for: pending, or with its known value and outcomes."""
        self.space.check_allowed(config)
        trial = self._study.add(detached(Trial(self._study.next_number, config)))
        if value is None:
            return detached(trial)
        try:
            return detached(self._study.tell(trial.number, value, extra))
        except StudyError:
            self._study.drop(trial.number)
            raise

    def state(self) -> dict[str, Any]:
        """Return the state as a JSON dict, for `from_state`."""
        study = self._study
        return {
            "version": STATE_VERSION,
            "space": study.space.definition(),
            "method": describe_method(study.method),
            "mode": study.objective.mode,
            "constraints": {k: list(b) for k, b in study.objective.constraints.items()},
            "seed": study.seed,
            **asdict(study.steps),
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
                f"this release reads version {STATE_VERSION}; give what state() returned"
            )
        try:
            return cls._from_state(state, space, method)
        except RayboError:
            raise
        except MALFORMED as error:
            raise StudyError(f"this is not a state that raybo wrote: {error!r}") from error

    @classmethod
    def _from_state(
        cls,
        state: Mapping[str, Any],
        space: AnySpace | Mapping[str, Any] | None,
        method: Method | None,
    ) -> Optimizer:
        if space is None:
            space = space_from_definition(state["space"])
        space = as_space(space)
        changes = difference(state["space"], space.definition())
        if changes:
            raise StudyError("the state was saved with another space: " + "; ".join(changes))
        name, options = state["method"]["name"], state["method"]["options"]
        made = cls(
            space,
            method or name,
            state["mode"],
            state["seed"],
            state.get("constraints"),
            state.get("max_steps"),
            state.get("stop_early", False),
            state.get("over", "steps"),
            **({} if method else options),
        )
        for item in state["trials"]:
            made._study.add(decode(TrialRecord.from_json(item), space))
        return made


def _number(trial: int | Trial) -> int:
    return trial.number if isinstance(trial, Trial) else trial
