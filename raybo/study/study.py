"""Study: proposes trials and records their values."""

from __future__ import annotations

import json
import logging
import numbers
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import numpy as np

from raybo.arrays import Array
from raybo.errors import ObjectiveError, SpaceExhausted, StudyError, SurrogateError
from raybo.methods.base import FULL, Data, Effort, Method, Proposal, ask_method, lane_of
from raybo.space.any_space import AnySpace
from raybo.space.design import design_size
from raybo.study.curves import Course, course_of, expected_losses
from raybo.study.objective import Objective, finite_number
from raybo.study.restarts import RESTART, has_ended
from raybo.study.scalarisation import draw_weights, scalarised
from raybo.study.steps import Steps, checked_step
from raybo.study.trial import SAYS_NOTHING, SAYS_SOMETHING, State, Trial, TrialRecord, best_of

logger = logging.getLogger(__name__)

_FRESH_DRAWS = 200  # random points tried for a duplicate before a finite space is enumerated
_MANY_TRIALS = 500  # with fewer no fit takes long
_SLOW_SECONDS = 5.0  # for a proposal, after which a user is told why nothing happens
# Trials proposed from one search, at most: the first of them waits for the others, and with 1,000
# pending points the model takes as long as they do.
MOST_AT_ONCE = 64
_LISTED = 100_000  # points of it, at most: where few are allowed, the next may be far away


def checked_seed(seed: Any, recorded: int | None = None) -> int:
    """Return the seed as an int; None is that of a study on record, or any if it is new."""
    if seed is None:
        return secrets.randbelow(2**31) if recorded is None else recorded
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral) or seed < 0:
        raise StudyError(
            f"seed must be a whole number of 0 or more, or None for any, got {seed!r}"
        )
    return int(seed)


class Generators(Sequence[np.random.Generator]):
    """The random numbers of trials, each made on first use: a method may need those of a few."""

    def __init__(self, seed: int, numbers: Sequence[int]) -> None:
        self._seed = seed
        self._numbers = numbers
        self._made: dict[int, np.random.Generator] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        number = self._numbers[index]
        if number not in self._made:
            self._made[number] = np.random.default_rng([self._seed, number])
        return self._made[number]


class Study:
    """Trials of one search, and the method that proposes the next.

    Any number of trials may be pending, and they are told in any order. A proposal depends only
    on the seed, the number of the trial and the trials so far: a study rebuilt from its trials
    proposes the same points.

    `snap` moves a proposed config to the one that is evaluated, where the space cannot do so: the
    grid of a rounded normal distribution, which is continuous for raybo. `steps` says what trials
    report on their way, and which of them are stopped.
    """

    def __init__(
        self,
        space: AnySpace,
        method: Method,
        objective: Objective | None = None,
        seed: int = 0,
        snap: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
        steps: Steps | None = None,
    ) -> None:
        self.space = space
        self.method = method
        self.objective = objective or Objective()
        self.seed = seed
        self._snap = snap
        self.steps = steps or Steps()
        self.trials: dict[int, Trial] = {}  # by number, in the order of their numbers
        self._rows = np.empty((0, space.dim if space.dense else 0))  # of the trials, as they came
        self._places: dict[int, int] = {}  # of their rows, by number; numbers may lie far apart
        self._seen: set[bytes] = set()
        self._cache: dict[str, Any] = {}

    def ask(self, number: int | None = None, effort: Effort = FULL) -> Trial:
        """Propose a trial; `number` is the next free one unless it is given.

        With less than full effort a method takes less care and less time.
        """
        number = self.next_number if number is None else number
        return self._ask([number], self._search(number, effort))[0]

    def ask_many(self, numbers: Sequence[int], effort: Effort = FULL) -> Iterator[list[Trial]]:
        """Propose these trials of one lane, some at a time, with no result between them.

        With full effort they are those of `ask`, one by one. With less they share what they can.
        """
        weighs = self.objective.others  # several metrics, for each trial anew
        if effort == FULL or weighs or not self._reads_data:
            yield from ([self.ask(number, effort)] for number in numbers)
            return
        data, left = self._search(numbers[0], effort), list(numbers)
        while left:
            trials = self._ask(left[:MOST_AT_ONCE], data)
            del left[: len(trials)]
            yield trials
            if left:
                data = data.after(left[0], self._stack(trials), [t.memo for t in trials])

    def _ask(self, numbers: Sequence[int], data: Data) -> list[Trial]:
        """Propose the first of these trials, at least one: as many as the method makes."""
        for number in numbers:
            if number in self.trials:
                raise StudyError(f"trial {number} was asked before; a trial is asked once")
        self._check_exhausted()
        rngs = Generators(self.seed, numbers)
        try:
            with self._said_if_slow(numbers[0]):
                proposals = ask_method(self.method, data, rngs)
        except SurrogateError as error:
            text = "trial %d is a random point, since the model failed: %s"
            logger.warning(text, numbers[0], error)
            proposals = [Proposal(config=self.space.draw(rngs[0]))]
        noted = {RESTART: data.first} if data.first else {}
        return [
            self._add(number, proposal, rng, noted)
            for number, proposal, rng in zip(numbers, proposals, rngs, strict=False)
        ]

    def _add(
        self, number: int, proposal: Proposal, rng: np.random.Generator, noted: dict[str, Any]
    ) -> Trial:
        """Add the trial of a proposal, or of another point near it if it cannot be evaluated."""
        config = self.space.decode(proposal.x) if proposal.config is None else proposal.config
        memo = {**proposal.memo, **noted}
        moved = self._allowed(config)
        if self._key(moved) in self._seen:
            moved = self._fresh_config(rng)
        if moved is not config:
            config, memo["replaced"] = moved, True  # the memo describes another point
        if self._snap is not None:
            config = self._snap(config)
        return self.add(Trial(number, config, memo=memo))

    def add(self, trial: Trial) -> Trial:
        """Add a trial that was not asked here: a point of the user, or one of a journal."""
        if trial.number in self.trials:
            raise StudyError(f"trial {trial.number} is in the study already")
        if self.space.dense:
            self._set_row(trial.number, self.space.encode(trial.config))
        late = bool(self.trials) and trial.number < next(reversed(self.trials))
        self.trials[trial.number] = trial
        if late:
            self.trials = dict(sorted(self.trials.items()))
        if self._is_tried(trial):
            self._seen.add(self._key_of(trial))
        return trial

    def settle(self, found: Trial | TrialRecord) -> Trial:
        """Record the outcome of a trial as it is found elsewhere: in a journal, or run again."""
        trial = self.trials[found.number]
        trial.state, trial.value, trial.extra = found.state, found.value, found.extra
        trial.reason, trial.cause, trial.curve = found.reason, found.cause, found.curve
        change = self._seen.add if self._is_tried(trial) else self._seen.discard
        change(self._key_of(trial))
        return trial

    def tell(self, number: int, value: Any, extra: Mapping[str, Any] | None = None) -> Trial:
        """Record the value of a pending trial; a NaN or an infinity makes it a failure.

        `extra` holds the other outcomes, at least those that the objective's constraints bound.
        """
        trial = self._pending_trial(number)
        extra = self._checked_extra(number, extra)
        entries = [extra[name] for name in self.objective.entries]
        try:
            found = finite_number(value, "the value is")
            self.objective.excess(extra)
            self.objective.losses(found, extra)
        except ObjectiveError as error:
            if not any(_is_not_finite(given) for given in (value, *entries)):
                raise StudyError(
                    f"trial {number}: {error}; tell a number, or use fail(number, reason)"
                ) from None
            return self.fail(number, str(error), "result")
        return self.settle(replace(trial, state=State.DONE, value=found, extra=extra))

    def report(
        self, number: int, step: Any, value: Any, extra: Mapping[str, Any] | None = None
    ) -> bool:
        """Record a value of a pending trial on its way; return whether the trial goes on.

        The last of `max_steps` values is the value of the trial; of values over instances it is
        their mean. A NaN or an infinity makes it a
        failure.
        """
        trial = self._pending_trial(number)
        step = checked_step(step, max(trial.curve, default=0))
        try:
            found = finite_number(value, f"the value at step {step} is")
        except ObjectiveError as error:
            if not _is_not_finite(value):
                raise StudyError(f"trial {number}: {error}, report a number") from None
            self.fail(number, str(error), "result")
            return False
        last = (max(trial.curve), trial.curve[max(trial.curve)]) if trial.curve else None
        trial.curve[step] = self.steps.so_far(step, found, last)
        trial.extra = dict(extra or {})
        if self.steps.complete(step):
            self.tell(number, trial.curve[step], extra)
            return False
        if self.steps.goes_on(number, step, self._courses(self.trials.values())):
            return True
        self.settle(replace(trial, state=State.STOPPED))
        return False

    def _checked_extra(self, number: int, extra: Any) -> dict[str, Any]:
        """The other outcomes of a trial as a dict that holds all that the objective needs."""
        if extra is not None and not isinstance(extra, Mapping):
            raise StudyError(f"trial {number}: extra is {extra!r}, not a dict of outcomes")
        missing = [name for name in self.objective.entries if name not in (extra or {})]
        if missing:
            raise StudyError(
                f"trial {number}: {missing[0]!r} is bounded, or a metric, and was not told; tell "
                f"it as extra={{{missing[0]!r}: ...}}, or use fail(number, reason)"
            )
        return dict(extra or {})

    def fail(self, number: int, reason: str, cause: str = "exception") -> Trial:
        """Record that a pending trial has no value, and why.

        A cause of SAYS_NOTHING leaves the models alone, and the point may be proposed again.
        """
        trial = self._pending_trial(number)
        causes = (*SAYS_SOMETHING, *SAYS_NOTHING)
        if cause not in causes:
            raise StudyError(f"cause must be one of {', '.join(causes)}, got {cause!r}")
        return self.settle(
            replace(trial, state=State.FAILED, reason=str(reason), cause=str(cause))
        )

    def drop(self, number: int) -> None:
        """Forget a pending trial that will never be evaluated; its number is free again."""
        trial = self._pending_trial(number)
        del self.trials[number]
        self._seen.discard(self._key_of(trial))

    def predict(self, configs: Iterable[Mapping[str, Any]]) -> tuple[Array, Array]:
        """Return mean and deviation of the values that the method's model expects at `configs`."""
        from raybo.methods.predict import predicted_losses  # noqa: PLC0415  (it imports torch)

        rows = np.array([self.space.encode(config) for config in configs])
        mean, deviation = predicted_losses(self.method, self.data(self.next_number), rows)
        return np.array([self.objective.loss(float(m)) for m in mean]), deviation

    @property
    def next_number(self) -> int:
        """Number of the next trial."""
        return next(reversed(self.trials)) + 1 if self.trials else 0

    @property
    def best(self) -> Trial | None:
        """Trial with the best value; None while there is none."""
        return best_of(self.trials.values(), self.objective)

    @contextmanager
    def _said_if_slow(self, number: int) -> Iterator[None]:
        """Say what takes so long, while it does."""
        if len(self.trials) < _MANY_TRIALS or not self._reads_data:
            yield
            return
        text = "trial %d: still fitting a model of %d trials; the next fit comes with a tenth more"
        timer = threading.Timer(_SLOW_SECONDS, logger.warning, (text, number, len(self.trials)))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    @property
    def _reads_data(self) -> bool:
        return getattr(self.method, "reads_data", True)

    @staticmethod
    def _is_tried(trial: Trial) -> bool:
        """Whether its point is not to be proposed again."""
        return trial.state is State.PENDING or trial.counts

    def _pending_trial(self, number: int) -> Trial:
        trial = self.trials.get(number)
        if trial is None:
            raise StudyError(
                f"trial {number!r} does not exist; this study has {len(self.trials)} trials"
            )
        if trial.state is not State.PENDING:
            how = f"value {trial.value}"
            if trial.state is State.FAILED:
                how = f"failed: {trial.reason}"
            elif trial.state is State.STOPPED:
                how = f"stopped early at step {max(trial.curve)}: report() returned False"
            raise StudyError(f"trial {number} was already told ({how}); a trial is told once")
        return trial

    def _search(self, number: int, effort: Effort) -> Data:
        """What the present search knows: where the last one has ended, nothing."""
        if not self._restarts:
            return self.data(number, effort)
        lanes = self.method.lanes
        begun = {t.memo[RESTART] for t in self.trials.values() if RESTART in t.memo}
        own = (first for first in begun if lane_of(first, lanes) == lane_of(number, lanes))
        data = self.data(number, effort, max(own, default=0))
        ended = has_ended(data, design_size(self.space.dim))
        return self.data(number, effort, number) if ended else data

    @property
    def _restarts(self) -> bool:
        """Whether one search follows another; they need one thing to minimise, and room."""
        endless = self.space.cardinality is None and not self.objective.others
        return endless and getattr(self.method, "restarts", False)

    def data(self, number: int, effort: Effort = FULL, first: int = 0) -> Data:
        """Return all that is known when trial `number` is proposed, from trial `first` on."""
        lanes = self.method.lanes
        own = lane_of(number, lanes)
        trials = self.trials.values() if self._reads_data else ()
        lane = [t for t in trials if lanes == 1 or lane_of(t.number, lanes) == own]
        earlier = [t for t in lane if t.number < first and self._is_tried(t)] if first else []
        lane = [t for t in lane if t.number >= first] if first else lane
        done = State.DONE  # looked up once: there may be very many trials
        others = [t for t in lane if t.state is not done]
        told = [t for t in lane if t.state is done or self.is_told(t)]
        failed = [t for t in others if t.state is State.FAILED and t.counts]
        pending = [t for t in others if t.state is State.PENDING]
        loss, spread = self._losses(told, number)
        data = Data(
            number=number,
            seed=self.seed,
            X=self._stack(told),
            loss=loss,
            memos=tuple(t.memo for t in told),
            pending=self._stack(pending),
            pending_memos=tuple(t.memo for t in pending),
            effort=effort,
            failed=self._stack(failed),
            excess=self._excess(told),
            failed_memos=tuple(t.memo for t in failed),
            spread=spread,
            n_running=sum(self.is_told(t) for t in pending),
            first=first,
            earlier=self._stack(earlier),
            cache=self._cache,
        )
        return data.without_fits() if self.objective.others else data

    def _excess(self, told: list[Trial]) -> Array:
        if not self.objective.constraints:
            return np.empty((len(told), 0))
        return np.array([self.objective.excess(t.extra) for t in told])

    def is_told(self, trial: Trial) -> bool:
        """Whether something is known of its value: all of it, or the beginning of its curve."""
        if trial.state is State.DONE:
            return True
        unfinished = trial.state in (State.STOPPED, State.PENDING)
        known = self.objective.constraints.keys() <= trial.extra.keys()
        return unfinished and bool(trial.curve) and known and not self.objective.others

    def _losses(self, told: list[Trial], number: int) -> tuple[Array, Array]:
        """What trial `number` is to minimise, of each trial told (n,), and the deviations.

        There are deviations where some trials have not finished, and none elsewhere.
        """
        goal = self.objective
        if goal.others:
            losses = np.array([goal.losses(t.value or 0.0, t.extra) for t in told])
            every = losses.reshape(len(told), 1 + len(goal.others))
            return scalarised(every, draw_weights(every.shape[1], self.seed, number)), np.empty(0)
        finals = [goal.loss(t.value) for t in told if t.value is not None]
        if len(finals) == len(told):
            return np.array(finals, dtype=np.float64), np.empty(0)
        return expected_losses(list(self._courses(told).values()))

    def _courses(self, trials: Iterable[Trial]) -> dict[int, Course]:
        """How each trial went so far, by number; failed ones are left out."""
        return {
            t.number: course_of(t, self._row(t.number), self.objective)
            for t in trials
            if t.state is not State.FAILED
        }

    def _set_row(self, number: int, row: Array) -> None:
        place = self._places.setdefault(number, len(self._places))
        if place == len(self._rows):  # as many again, so that rows are seldom copied
            self._rows = np.concatenate([self._rows, np.empty((max(1, place), len(row)))])
        self._rows[place] = row

    def _row(self, number: int) -> Array:
        return self._rows[self._places[number]] if self.space.dense else np.empty(0)

    def _stack(self, trials: list[Trial]) -> Array:
        if not self.space.dense:
            return np.empty((len(trials), 0))
        return np.asarray(self._rows[[self._places[trial.number] for trial in trials]])

    def _key_of(self, trial: Trial) -> bytes:
        """Return the key of a trial of the study, whose row is known."""
        return self._row(trial.number).tobytes() if self.space.dense else self._key(trial.config)

    def _key(self, config: Mapping[str, Any]) -> bytes:
        if self.space.dense:
            return self.space.encode(config).tobytes()
        return json.dumps(self.space.to_json(config)).encode()

    def _check_exhausted(self) -> None:
        size = self.space.cardinality
        if size is not None and len(self._seen) >= size:
            raise SpaceExhausted(
                f"all {size} points of the space have been tried; widen the space or stop here"
            )

    def _allowed(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """The config, or one near it if it is not allowed: not all methods ask the space."""
        if self.space.allows(config):
            return config
        return self.space.decode(self.space.nearest(self.space.encode(config)))

    def _fresh_config(self, rng: np.random.Generator) -> Mapping[str, Any]:
        """A config that was not tried before."""
        draws: Iterator[Mapping[str, Any]] = (self.space.draw(rng) for _ in range(_FRESH_DRAWS))
        listed = islice(self.space.points(), _LISTED) if self.space.cardinality else iter(())
        for config in chain(draws, listed):
            if self._key(config) not in self._seen:
                return config
        raise SpaceExhausted(
            f"all points found have been tried, among them {_FRESH_DRAWS} drawn just now; widen "
            "the space or stop here"
        )


def _is_not_finite(given: Any) -> bool:
    """Whether it is a NaN or an infinity: an outcome of a trial, not a slip of the caller."""
    return isinstance(given, float | np.floating) and not np.isfinite(given)
