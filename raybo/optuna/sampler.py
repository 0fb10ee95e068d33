"""RayBOSampler: any method of raybo as the sampler of an Optuna study.

A proposal is a function of the seed, the trial's number and the trials in the storage, so that
any number of processes may work on one study. What a process proposes is noted with the trial: the
others see the point before it is evaluated, and find again what the method noted.
"""

from __future__ import annotations

import json
import logging
import math
import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from raybo.errors import SpaceError, SpaceExhausted, StudyError
from raybo.methods.registry import build_method, check_method
from raybo.optuna.tree import Tree, shared_distributions
from raybo.space.design import centre
from raybo.study.objective import Objective
from raybo.study.study import Study as Search
from raybo.study.trial import State, Trial

logger = logging.getLogger(__name__)

NOTE = "raybo:"  # a system attribute of a trial, in parts: what was proposed, and the memo
LONGEST_NOTE = 2045  # characters that Optuna's RDBStorage holds in one attribute
CONSTRAINTS = "constraints"  # Optuna's system attribute


class RayBOSampler(BaseSampler):  # type: ignore[misc]  # Optuna's types are not read
    """Sampler for `optuna.create_study(sampler=...)`.

    Parameters
    ----------
    method, method_options
        Name of a method, and its options.
    seed
        The same seed and the same trials give the same proposals; None takes a random one.
    independent_sampler
        Samples what the method cannot: parameters of the first trial, of ranges that change from
        trial to trial, and those whose presence no categorical parameter decides. By default the
        middle of each range in the first trial, and a `TPESampler`.
    constraints_func
        Takes a finished trial and returns numbers that are at most 0 where it is allowed. Those
        of `trial.set_constraint` count as well.

    Notes
    -----
    A pruned trial counts as what its intermediate values promise. A failed one teaches where
    trials fail, not that its value is bad. Running trials, also those of other processes, are
    pending points. Of several objectives each trial minimises another random weighting, as in
    ParEGO.
    """

    def __init__(
        self,
        method: str = "auto",
        *,
        seed: int | None = None,
        method_options: Mapping[str, Any] | None = None,
        independent_sampler: BaseSampler | None = None,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
    ) -> None:
        check_method(method)
        self._method = method
        self._options = dict(method_options or {})
        self._seed = int(np.random.SeedSequence().generate_state(1)[0] if seed is None else seed)
        self._centred = independent_sampler is None  # the first trial
        self._independent = independent_sampler or TPESampler(seed=seed)
        self._constraints_func = constraints_func
        self._said: set[str] = set()  # parameters of which it was said that they are independent
        self._search: _Search | None = None
        self._lock = threading.Lock()  # for n_jobs > 1

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_search": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def reseed_rng(self) -> None:
        """Give the independent sampler another seed; proposals differ by their trial's number."""
        self._independent.reseed_rng()

    def infer_relative_search_space(
        self,
        study: Study,
        trial: FrozenTrial,  # noqa: ARG002  (Optuna's signature)
    ) -> dict[str, BaseDistribution]:
        """Return the parameters that the method proposes."""
        done = _complete(study.get_trials(deepcopy=False))
        distributions = shared_distributions([t.distributions for t in done])
        tree = Tree.of(distributions, [t.params for t in done])
        return {name: distributions[name] for name in tree.names}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the proposal of the method."""
        if not search_space:
            return {}
        trials = study.get_trials(deepcopy=False)
        with self._lock:
            search = self._followed(study, search_space, trials)
            others = [t for t in trials if t.number != trial.number]
            proposed, memo = search.propose(trial.number, others)
        note = json.dumps({"params": proposed, "memo": memo, "space": search.space_key})
        for i in range(0, len(note), LONGEST_NOTE):
            part = f"{NOTE}{i // LONGEST_NOTE}"
            study._storage.set_trial_system_attr(trial._trial_id, part, note[i : i + LONGEST_NOTE])
        return _external(proposed, search_space)

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Return a value of one parameter: in the first trial the middle of its range."""
        if self._centred and trial.number == 0:
            return _middle(param_name, param_distribution)
        if param_name not in self._said and any(
            param_name in t.params for t in _complete(study.get_trials(deepcopy=False))
        ):
            self._said.add(param_name)
            logger.warning(
                "%r is sampled independently, by %s: its range changes between trials, or no "
                "categorical parameter decides which trials have it",
                param_name,
                self._independent,
            )
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def _followed(
        self,
        study: Study,
        search_space: Mapping[str, BaseDistribution],
        trials: Sequence[FrozenTrial],
    ) -> _Search:
        """The last search, or a new one where the study, its space or its objective is another."""
        tree = Tree.of(search_space, [t.params for t in _complete(trials)])
        objective = _objective(study, trials)
        search = self._search
        if search is None or not search.serves(study.study_name, tree, objective, trials):
            method = build_method(self._method, tree.space, self._options)
            made = Search(tree.space, method, objective, self._seed)
            search = self._search = _Search(study.study_name, tree, made)
        return search

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Prepare the independent sampler."""
        self._independent.before_trial(study, trial)

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Note the constraints of a trial that has ended."""
        if self._constraints_func is not None and state in (
            TrialState.COMPLETE,
            TrialState.PRUNED,
        ):
            found = [float(value) for value in self._constraints_func(trial)]
            if any(map(math.isnan, found)):
                raise StudyError(
                    f"constraints_func returned {found} for trial {trial.number}; a NaN says "
                    "nothing, return a number above 0 where the trial is not allowed"
                )
            study._storage.set_trial_system_attr(trial._trial_id, CONSTRAINTS, found)
        self._independent.after_trial(study, trial, state, values)


class _Search:
    """The study of raybo that follows a study of Optuna."""

    def __init__(self, name: str, tree: Tree, search: Search) -> None:
        self._name = name
        self._tree = tree
        self._search = search
        definition = json.dumps(search.space.definition())
        self.space_key = zlib.crc32(definition.encode())

    def serves(
        self, name: str, tree: Tree, objective: Objective, trials: Sequence[FrozenTrial]
    ) -> bool:
        """Whether it is of this study, and knows only these trials.

        Under a HyperbandPruner a sampler is shown the trials of one bracket at a time.
        """
        of_this_study = self._name == name and self._search.trials.keys() <= {
            trial.number for trial in trials
        }
        return of_this_study and self._tree == tree and self._search.objective == objective

    def propose(
        self, number: int, others: Sequence[FrozenTrial]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return parameters for trial `number`, and a memo, by all that is known of the others."""
        for trial in others:
            self._update(trial)
        if number in self._search.trials:
            self._search.drop(number)
        try:
            asked = self._search.ask(number)
        except SpaceExhausted:  # in a study of Optuna points may repeat
            rng = np.random.default_rng([self._search.seed, number])
            asked = Trial(number, self._search.space.draw(rng))
        return self._tree.params(asked.config), asked.memo

    def _update(self, trial: FrozenTrial) -> None:
        """Bring one trial up to date; what does not fit the space is left out."""
        known = self._search.trials.get(trial.number)
        if known is not None and known.state is not State.PENDING:
            return
        if known is not None:
            if trial.state is TrialState.RUNNING:
                known.curve = _curve(trial)
                return
            self._search.drop(trial.number)
        try:
            found = self._read(trial)
        except (KeyError, SpaceError):
            return
        self._search.add(found)
        if trial.state.is_finished():
            self._settle(trial)

    def _read(self, trial: FrozenTrial) -> Trial:
        """The trial as a pending one; a running one has what was proposed to it."""
        note = _note(trial)
        proposed = _external(note["params"], self._tree.distributions)
        params = trial.params if trial.state.is_finished() else {**proposed, **trial.params}
        memo = note["memo"] if note["space"] == self.space_key else {}
        if memo and any(params.get(name) != value for name, value in proposed.items()):
            memo = {**memo, "replaced": True}
        return Trial(trial.number, self._tree.config(params), memo=memo, curve=_curve(trial))

    def _settle(self, trial: FrozenTrial) -> None:
        goal, number = self._search.objective, trial.number
        value, extra = _outcome(trial)
        if trial.state is TrialState.FAIL:
            self._search.fail(number, "the trial failed")
        elif trial.state is TrialState.PRUNED and self._search.trials[number].curve:
            stopped = replace(self._search.trials[number], state=State.STOPPED, extra=extra)
            self._search.settle(stopped)
        elif value is None or any(name not in extra for name in goal.entries):
            self._search.fail(number, "the trial has no value, or no constraint", "metric")
        else:
            self._search.tell(number, value, extra)


def _complete(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    return [trial for trial in trials if trial.state is TrialState.COMPLETE]


def _objective(study: Study, trials: Sequence[FrozenTrial]) -> Objective:
    """What the study optimises; its bounds are those that any trial has a value of."""
    modes = ["min" if d is StudyDirection.MINIMIZE else "max" for d in study.directions]
    others = {_objective_name(i): mode for i, mode in enumerate(modes) if i > 0}
    names = dict.fromkeys(name for trial in _complete(trials) for name in _constraints(trial))
    return Objective(modes[0], None, dict.fromkeys(names, (None, 0.0)), others)


def _objective_name(i: int) -> str:
    return f"objective:{i}"


def _outcome(trial: FrozenTrial) -> tuple[float | None, dict[str, float]]:
    """First value of a trial, and its other values and constraints by name."""
    extra = _constraints(trial)
    values = trial.values or [None]
    extra |= {_objective_name(i): value for i, value in enumerate(values) if i > 0}
    return values[0], extra


def _curve(trial: FrozenTrial) -> dict[int, float]:
    """Intermediate values by step, from 1 on; Optuna's steps begin with 0."""
    values = trial.intermediate_values.items()
    return {step + 1: value for step, value in sorted(values) if math.isfinite(value)}


def _constraints(trial: FrozenTrial) -> dict[str, float]:
    """Numbers that are to be at most 0, by name; Optuna 4 has a list of them."""
    attributes = trial.system_attrs
    listed = enumerate(attributes.get(CONSTRAINTS) or ())
    head = f"{CONSTRAINTS}:"
    named = {key: value for key, value in attributes.items() if key.startswith(head)}
    return {f"{head}{i}": value for i, value in listed} | named


def _note(trial: FrozenTrial) -> dict[str, Any]:
    """What was noted when the trial was proposed."""
    parts: list[str] = []
    while (part := trial.system_attrs.get(f"{NOTE}{len(parts)}")) is not None:
        parts.append(part)
    return json.loads("".join(parts)) if parts else {"params": {}, "memo": {}, "space": None}


def _middle(name: str, distribution: BaseDistribution) -> Any:
    """The middle of the range of a parameter, with which raybo's own designs begin."""
    tree = Tree.of({name: distribution}, [])
    params = tree.params(tree.space.decode(centre(tree.space)))
    return _external(params, tree.distributions)[name]


def _external(
    params: Mapping[str, Any], distributions: Mapping[str, BaseDistribution]
) -> dict[str, Any]:
    """Values as the objective gets them, for those in Optuna's internal representation."""
    known = {name: value for name, value in params.items() if name in distributions}
    return {name: distributions[name].to_external_repr(value) for name, value in known.items()}
