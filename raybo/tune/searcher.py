"""RayBOSearch: any method of raybo as the search algorithm of a Ray Tune run.

A suggestion depends only on the seed, the settings and the calls that Tune made before it, in
their order, not on the time that computing takes (see `raybo.tune.suggestions`). So runs of one
trial at a time repeat exactly, and parallel runs repeat if Tune's calls come in the same order.
Where a model fails, a space-filling point is suggested instead; no exception reaches Tune.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ray.tune.search import (
    UNDEFINED_METRIC_MODE,
    UNDEFINED_SEARCH_SPACE,
    UNRESOLVED_SEARCH_SPACE,
    Searcher,
)

from raybo.errors import (
    MALFORMED,
    MethodError,
    RayboError,
    SpaceError,
    SpaceExhausted,
    StudyError,
)
from raybo.methods.base import Method
from raybo.methods.registry import check_method
from raybo.runtime.proposals.proposer import Search
from raybo.study.objective import Constraints, Objective, checked_constraints
from raybo.study.trial import Trial, decode
from raybo.tune.space.json import describe
from raybo.tune.space.param_space import (
    ParamSpace,
    SearchSpace,
    saved_search_space,
    search_space,
)
from raybo.tune.state import (
    check_objective,
    method_to_json,
    objective_of,
    read_state,
    restored_method,
    restored_points,
    write_state,
)
from raybo.tune.suggestions import BackgroundProposer, Suggestions
from raybo.tune.trials import Trials, config_of, finish, lookup

logger = logging.getLogger(__name__)

Evaluated = tuple[Mapping[str, Any], float | Mapping[str, Any] | None, bool]  # ..., value, error


class RayBOSearch(Searcher):
    """Search algorithm for `tune.TuneConfig(search_alg=...)`.

    Parameters
    ----------
    space
        A Space, Box or dict of parameters of raybo, whose configs the trainable then gets. By
        default the `param_space` of the Tuner, with Tune's own domains, is searched.
    metric, mode
        What to optimise, and "min" or "max"; by default those of the TuneConfig. With a list of
        metrics, each with its mode, every trial minimises another weighting of them, and
        `raybo.tune.pareto_front` returns the results that no other one beats.
    points_to_evaluate
        Configs to try first, nested or flat ("net/lr"). What they leave open is drawn at random.
    evaluated_rewards
        Values of the metric at these points, which are then not evaluated again; with constraints
        or several metrics, dicts of all of them.
    method, method_options
        Name of a method and its options, or a method object.
    max_concurrent
        Limit of trials at a time; `TuneConfig(max_concurrent_trials=...)` is the better way.
    seed
        The same seed and the same calls give the same suggestions; None takes a random one.
    constraints
        Bounds (low, high) of other metrics that the trials report, by their names, None for no
        bound: `{"latency": (None, 10.0)}`. They are modelled, and the search looks for the best
        trial that keeps them.

    Notes
    -----
    NaN, infinities and errors are failures, which the method avoids; they are never values. A
    trial that a scheduler stops early counts as what its curve promises; with several metrics, as
    its last values. A trial that ends without the metric, or without one that is bounded, fails
    too, but says nothing about its config.
    """

    def __init__(
        self,
        space: Any = None,
        metric: str | Sequence[str] | None = None,
        mode: str | Sequence[str] | None = None,
        points_to_evaluate: Sequence[Mapping[str, Any]] | None = None,
        *,
        evaluated_rewards: Sequence[float | Mapping[str, Any]] | None = None,
        method: str | Method = "auto",
        method_options: Mapping[str, Any] | None = None,
        max_concurrent: int | None = None,
        seed: int | None = 0,
        constraints: Constraints | None = None,
    ) -> None:
        check_objective(metric, mode)
        self._constraints = objective_of(metric, mode, constraints or {}).constraints
        super().__init__(metric=metric, mode=mode)  # type: ignore[arg-type]  # Ray allows lists
        if isinstance(method, str):
            check_method(method)
        self._method = method
        self._options = dict(method_options or {})
        self._seed = int(np.random.SeedSequence().generate_state(1)[0] if seed is None else seed)
        self._max_concurrent = max_concurrent
        self._points = [dict(point) for point in points_to_evaluate or ()]
        self._evaluated: list[Evaluated] = []
        self._trials = Trials()
        self._space: SearchSpace | None = None
        self._suggestions: Suggestions | None = None
        if evaluated_rewards is not None:
            self._take_rewards(list(evaluated_rewards))
        if space is not None:
            own = search_space(space)
            self._set_space(own)
            if isinstance(own, ParamSpace):
                logger.warning(UNRESOLVED_SEARCH_SPACE.format(par="space", cls="RayBOSearch"))

    # --- before Tune starts ---

    def set_search_properties(
        self,
        metric: str | Sequence[str] | None,
        mode: str | Sequence[str] | None,
        config: dict[str, Any],
        **spec: Any,  # noqa: ARG002  (Ray's signature)
    ) -> bool:
        """Take metric, mode and param_space; return whether the param_space is searched."""
        check_objective(metric, mode)
        self._metric = metric or self._metric  # type: ignore[assignment]
        self._mode = mode or self._mode  # type: ignore[assignment]
        _ = self._objective  # refuses constraints on the metric itself
        if self._space is not None:
            return False
        self._set_space(ParamSpace(config))
        return True

    def set_max_concurrency(self, max_concurrent: int) -> bool:  # noqa: ARG002  (Ray's signature)
        """Leave counting to the ConcurrencyLimiter, whose limit replaces that of the searcher.

        After a crash this searcher may count trials that Tune has forgotten, and would wait for
        them for ever.
        """
        self._max_concurrent = None
        return False

    # --- the loop ---

    def suggest(self, trial_id: str) -> dict[str, Any] | None:
        """Return the config for a trial; None: not yet; FINISHED: every point has been tried."""
        space, trials = self._ready_space(), self._trials
        if trial_id in trials.numbers:
            return space.show(trials.by_number[trials.numbers[trial_id]].config)
        if self._max_concurrent is not None and len(trials.live) >= self._max_concurrent:
            return None
        suggestions = self._started()  # also for a point: its process gets ready meanwhile
        if self._points:
            return self._next_point(space, trial_id)
        try:
            record = suggestions.ask()
        except SpaceExhausted as error:
            logger.warning("no more suggestions: %s", error)
            return Searcher.FINISHED  # type: ignore[return-value]  # so Ray documents it
        if record is None:
            return None
        trial = decode(record, space.space)
        self._add(trial, trial_id)
        suggestions.prepare()
        return space.show(trial.config)

    def on_trial_result(self, trial_id: str, result: Mapping[str, Any]) -> None:
        """Note an intermediate result: the model learns from curves, by their steps."""
        if self._knows(trial_id, result):
            trial = self._trials.report(trial_id, result, self._objective)
            if trial is not None:
                self._changed(trial.number)

    def on_trial_complete(
        self, trial_id: str, result: Mapping[str, Any] | None = None, error: bool = False
    ) -> None:
        """Learn from the end of a trial, also of one that this searcher did not suggest."""
        if self._knows(trial_id, result) and self._trials.unfinished(trial_id):
            number = self._trials.numbers[trial_id]
            trial = self._trials.complete(trial_id, result, error, self._objective)
            for changed in (*([] if trial is None else [number]), *self._trials.cut_short()):
                self._changed(changed)
            if trial is None and self._suggestions is not None:
                self._suggestions.dropped(number)

    # --- warm start ---

    def add_evaluated_point(
        self,
        parameters: Mapping[str, Any],
        value: float | Mapping[str, Any] | None,
        error: bool = False,
        pruned: bool = False,  # noqa: ARG002  (a value is a value)
        intermediate_values: Sequence[float] | None = None,
    ) -> None:
        """Add what is known of a point; keys that are not searched are ignored.

        Without a value the last intermediate one counts; NaN, infinities and errors are failures.
        With constraints or several metrics the value is a dict of all of them.

        Raises
        ------
        SpaceError
            With the path of a parameter that is missing, or outside its domain.
        StudyError
            When the metric, or what constraints bound, is missing.
        """
        if value is None and intermediate_values and not error:
            value = intermediate_values[-1]
        if value is None and not error:
            logger.warning("a point without a value says nothing and is ignored: %s", parameters)
            return
        if self._space is None:
            self._evaluated.append((dict(parameters), value, error))
            return
        inner, _ = self._space.read(parameters, strict=False)
        objective = self._objective
        result = value if isinstance(value, Mapping) else {str(objective.metric): value}
        wanted = [] if error else [str(objective.metric), *objective.entries]
        missing = [name for name in wanted if lookup(result, name) is None]
        if missing:
            raise StudyError(
                f"the point {dict(parameters)} has no {missing[0]!r}; with constraints= or "
                f"several metrics the value of a point is a dict with {', '.join(wanted)}"
            )
        trial = Trial(self._trials.take_number(), inner)
        finish(trial, result, error, objective)
        self._add(trial)

    def add_evaluated_points(
        self,
        points: Sequence[Mapping[str, Any]],
        values: Sequence[float | Mapping[str, Any] | None],
    ) -> None:
        """Add several points; see `add_evaluated_point`."""
        for point, value in zip(points, values, strict=True):
            self.add_evaluated_point(point, value)

    def add_evaluated_trials(self, trials_or_analysis: Any, metric: str) -> None:
        """Add the trials of an earlier run: trials, an analysis, or the results of a Tuner.

        Trials that do not fit the space, or lack an entry that is bounded, are left out, with a
        warning.
        """
        known = getattr(trials_or_analysis, "trials", trials_or_analysis)
        for trial in [known] if hasattr(known, "config") else known:
            result = getattr(trial, "last_result", None) or getattr(trial, "metrics", None) or {}
            error = getattr(trial, "status", "") == "ERROR" or getattr(trial, "error", None)
            value = lookup(result, metric)
            if self._objective.entries and value is not None:
                value = {**result, str(self._objective.metric): value}
            try:
                self.add_evaluated_point(trial.config, value, bool(error))
            except (SpaceError, StudyError) as problem:
                logger.warning("a trial of an earlier run is left out: %s", problem)

    # --- state ---

    def save(self, checkpoint_path: str) -> None:
        """Write all that is known to a JSON file."""
        unused = None if self._suggestions is None else self._suggestions.next_number
        space = self._space
        state = {
            "metric": self._metric,
            "mode": self._mode,
            "constraints": {name: list(b) for name, b in self._constraints.items()},
            "seed": self._seed,
            "method": method_to_json(self._method, self._options),
            "points": [describe(point) for point in self._points],
            "evaluated": [describe([dict(p), v, e]) for p, v, e in self._evaluated],
            "space": None if space is None else space.description,
            "book": None if space is None else self._trials.to_json(space.space, unused),
        }
        write_state(Path(checkpoint_path), state)

    def restore(self, checkpoint_path: str) -> None:
        """Go on from a file that `save` wrote; nothing in it is executed.

        Objects that JSON cannot hold come from the space of this searcher, if it has one.
        """
        state = read_state(Path(checkpoint_path))
        try:
            self._take_state(state)
        except RayboError:
            raise
        except MALFORMED as error:
            raise StudyError(
                f"{checkpoint_path} is not a state that RayBOSearch wrote: {error!r}"
            ) from error

    def __getstate__(self) -> dict[str, Any]:
        # Tune pickles searchers; the process that computes suggestions stays behind.
        return {**self.__dict__, "_suggestions": None}

    # --- inside ---

    def _take_state(self, state: Mapping[str, Any]) -> None:
        check_objective(state["metric"], state["mode"])
        constraints = checked_constraints(state.get("constraints", {}))
        method, options = restored_method(state["method"], self._method, self._options)
        points = [dict(point) for point in restored_points(state["points"])]
        evaluated: list[Evaluated] = [
            (dict(config), value, bool(error))
            for config, value, error in restored_points(state["evaluated"])
        ]
        space, trials = self._space, self._trials
        if state["space"] is not None:
            space = space or saved_search_space(state["space"])
            if state["space"] != space.description:
                logger.warning("the state was saved with another space; what fits it is kept")
            trials = Trials.from_json(state["book"], space.space)
        self._metric, self._mode, self._seed = state["metric"], state["mode"], int(state["seed"])
        self._constraints = constraints
        self._method, self._options, self._points = method, options, points
        self._evaluated, self._space, self._trials = evaluated, space, trials
        self._suggestions = None

    @property
    def _objective(self) -> Objective:
        return objective_of(self._metric, self._mode, self._constraints)

    def _ready_space(self) -> SearchSpace:
        if self._space is None:
            raise RuntimeError(UNDEFINED_SEARCH_SPACE.format(cls="RayBOSearch", space="space"))
        if not self._mode:
            names = {"metric": self._metric, "mode": self._mode}
            raise RuntimeError(
                UNDEFINED_METRIC_MODE.format(cls="RayBOSearch", **names)
                + " Tune passes those of its config on only together with a param_space."
            )
        if self._space.lost:
            raise StudyError(
                f"{self._space.lost[0]!r}: its values are objects, which the saved state does not "
                "hold; give the param_space again: Tuner.restore(..., param_space=...)"
            )
        return self._space

    def _set_space(self, space: SearchSpace) -> None:
        if getattr(self._method, "space", space.space) != space.space:
            raise MethodError(
                "a method object belongs to a space of raybo: pass that as space=, or give the "
                "method by its name"
            )
        for point in self._points:
            # Read only to find errors before anything runs; a space of raybo completes nothing.
            space.read(point, np.random.default_rng(0))
        self._space = space
        known, self._evaluated = self._evaluated, []
        for config, value, error in known:
            self.add_evaluated_point(config, value, error)

    def _take_rewards(self, rewards: list[float | Mapping[str, Any]]) -> None:
        if len(rewards) != len(self._points):
            raise StudyError(
                f"{len(rewards)} evaluated_rewards for {len(self._points)} points_to_evaluate; "
                "give one for each"
            )
        self._evaluated = [(p, v, False) for p, v in zip(self._points, rewards, strict=True)]
        self._points = []

    def _started(self) -> Suggestions:
        if self._suggestions is None:
            space = self._ready_space()
            search = Search(
                space.space,
                self._method,
                self._objective,
                self._seed,
                self._options,
                space.snapped if space.rounds else None,
            )
            self._suggestions = Suggestions(BackgroundProposer(search, self._trials), self._trials)
        return self._suggestions

    def _next_point(self, space: SearchSpace, trial_id: str) -> dict[str, Any]:
        number = self._trials.take_number()
        inner, shown = space.read(self._points[0], np.random.default_rng([self._seed, number]))
        del self._points[0]
        self._add(Trial(number, inner), trial_id)
        return dict(shown)

    def _add(self, trial: Trial, trial_id: str | None = None) -> None:
        self._trials.add(trial, trial_id)
        self._changed(trial.number)

    def _knows(self, trial_id: str, result: Mapping[str, Any] | None) -> bool:
        """Whether a trial is known, if need be from now on, by the config in its result."""
        if trial_id not in self._trials.numbers and self._space is not None and result:
            try:
                inner, _ = self._space.read(config_of(result), strict=False)
            except SpaceError as problem:
                logger.info("trial %s is not known, nor is its config: %s", trial_id, problem)
            else:
                self._changed(self._trials.adopt(trial_id, inner).number)
        return trial_id in self._trials.numbers

    def _changed(self, number: int) -> None:
        if self._suggestions is not None:
            self._suggestions.changed(number)
