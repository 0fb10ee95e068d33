"""Driver: follows a study from the user's process until it ends."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, Self

import ray
from ray import exceptions

from raybo.errors import RayboError, StudyError, StudyFailed
from raybo.runtime.actor import CoordinatorActor
from raybo.runtime.coordinator import Command, News
from raybo.runtime.deaths import MAX_DEATHS, Deaths
from raybo.runtime.evaluations.evaluate import load_remotely
from raybo.runtime.proposals.kept import Borrowed, kept
from raybo.runtime.session import Payload, Session
from raybo.runtime.timeouts import (
    ALIVE_SECONDS,
    ANSWER_SECONDS,
    GONE_SECONDS,
    POLL_SECONDS,
    RETRY_SECONDS,
    SILENCE_SECONDS,
)
from raybo.space.any_space import AnySpace
from raybo.study.journal.storage import slug
from raybo.study.trial import Trial, TrialRecord, decode
from raybo.views.live import View

logger = logging.getLogger(__name__)

NAMESPACE = "raybo"

Callback = Callable[[Trial], Any] | Any


def actor_name(session: Session) -> str:
    """Return the name of the coordinator of a study: one per storage and name."""
    return f"{slug(session.name)}@{slug(session.storage)}"


def start_coordinator(session: Session) -> Any:
    """Start the coordinator on the node of this process, once nobody else runs the study.

    Raises
    ------
    StudyError
        When another driver runs it.
    """
    node = ray.get_runtime_context().get_node_id()
    affinity = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)
    actor: Any = CoordinatorActor
    actor = actor.options(
        name=actor_name(session), namespace=NAMESPACE, scheduling_strategy=affinity
    )
    deadline = time.monotonic() + GONE_SECONDS
    while True:
        _wait_for_older(session, deadline)
        try:
            return actor.remote({**session.holder, "since": time.time()})
        except ValueError:  # another driver was faster, or the name is not free yet
            if time.monotonic() > deadline:
                raise
            time.sleep(RETRY_SECONDS)


def load_workers(work: Any, session: Session) -> None:
    """Have workers load the objective while the coordinator starts.

    All but one: Ray has a process per core ready, of which the coordinator takes one, and another
    to be started would slow it down. Coroutines run in evaluators, which the coordinator starts.
    """
    resources = session.settings.resources
    if not session.processes and not callable(resources):
        loader = load_remotely.options(**{**resources, "max_retries": 0})
        for _ in range(max(1, session.settings.workers - 1)):
            loader.remote([work])


def _wait_for_older(session: Session, deadline: float) -> None:
    """Return when no coordinator of this study exists; raise when one has a live driver."""
    while True:
        try:
            actor: Any = ray.get_actor(actor_name(session), namespace=NAMESPACE)
            holder: dict[str, Any] = ray.get(actor.holder.remote(), timeout=ALIVE_SECONDS)
        except ValueError:
            return
        except exceptions.RayError:
            holder = {"seconds_since_poll": ALIVE_SECONDS}  # ending, or starting
        if holder["seconds_since_poll"] < ALIVE_SECONDS or time.monotonic() > deadline:
            since = time.strftime("%H:%M:%S", time.localtime(holder.get("since", 0.0)))
            raise StudyError(
                f"study {session.name!r} is being run by pid {holder.get('driver', 'unknown')} on "
                f"{holder.get('host', 'an unknown host')} since {since}; wait until it ends, use "
                f"another name, or follow it with `raybo status {session.name}`"
            )
        time.sleep(RETRY_SECONDS)


class Driver:
    """Hands news from the coordinator to the view and the callbacks, and Ctrl-C to it.

    Parameters
    ----------
    session
        The session to run.
    n_before
        Trials that finished in earlier sessions, for which no callback is called.
    n_proposers
        How many kept proposers to lend to the coordinator.
    """

    def __init__(
        self,
        session: Session,
        space: AnySpace,
        view: View,
        callbacks: Iterable[Callable[[Trial], Any]],
        n_before: int,
        n_proposers: int,
    ) -> None:
        self._session = session
        self._space = space
        self._view = view
        self._callbacks = list(callbacks)
        self._n_before = n_before
        self._n_proposers = n_proposers
        self._borrowed: list[Borrowed] = []
        self._n_trials = 0  # received so far
        self._resume_line = f"resume with: {session.resume_hint}"
        self._command = Command.RUN
        self._began = time.monotonic()
        self._deaths = Deaths()  # of the coordinator
        self._orphaned = False  # whether Ray has died under the coordinator
        self._actor = start_coordinator(session)

    def follow(self, payload: Payload) -> None:
        """Hand the coordinator what it needs, and return when the study has ended.

        Raises
        ------
        RayboError
            The error that ended it.
        KeyboardInterrupt
            After a second Ctrl-C, which also ends what called this: a loop over studies, say.
        """
        load_workers(payload.work, self._session)
        self._lend(payload)
        with _Interrupts() as interrupts:
            stop = None
            while stop is None:
                self._forward_interrupts(interrupts.presses)
                news = self._poll(payload)
                self._take(news)
                stop = news.stop
        if stop.error is not None:
            raise stop.error(stop.text)
        if self._command is Command.STOP:
            raise KeyboardInterrupt

    def close(self) -> None:
        """End the coordinator."""
        ray.kill(self._actor)
        kept.give_back(self._borrowed)

    def _lend(self, payload: Payload) -> None:
        """Hand proposers to the coordinator, which load what models need while it starts."""
        self._borrowed = kept.take(self._n_proposers)
        for proposer in self._borrowed:
            proposer.actor.load.remote(payload.search)
        self._actor.lend.remote([proposer.actor for proposer in self._borrowed])

    def _poll(self, payload: Payload) -> News:
        deadline = time.monotonic() + SILENCE_SECONDS
        while True:
            try:
                elapsed = time.monotonic() - self._began
                ref = self._actor.poll.remote(
                    self._n_trials, POLL_SECONDS, self._command, payload, elapsed
                )
                news: News = ray.get(ref, timeout=ANSWER_SECONDS)
            except (exceptions.GetTimeoutError, exceptions.ActorUnavailableError):
                time.sleep(RETRY_SECONDS)
                if time.monotonic() > deadline:
                    raise StudyFailed(
                        f"the coordinator has not answered for {SILENCE_SECONDS:g} s; "
                        f"{self._resume_line}"
                    ) from None
            except exceptions.RayTaskError as error:
                if isinstance(error.cause, RayboError):
                    raise error.cause from None
                raise StudyFailed(f"the coordinator failed: {error}") from None
            except exceptions.RayError as error:
                self._start_again(payload, error)
            else:
                return news

    def _start_again(self, payload: Payload, error: Exception) -> None:
        """Replace a coordinator that died; the new one replays the journal and goes on."""
        if not self._deaths.add():
            raise StudyFailed(
                f"the coordinator died {MAX_DEATHS} times without a result in between, the last "
                f"time with {type(error).__name__}: {error}; {self._resume_line}"
            ) from None
        logger.warning("the coordinator died (%s): starting it again", type(error).__name__)
        self._orphaned = False
        ray.kill(self._actor)  # one that the memory monitor killed keeps its name until then
        for proposer in self._borrowed:  # it may still compute for the one that died
            ray.kill(proposer.actor)
        self._actor = start_coordinator(self._session)
        self._lend(payload)

    def _take(self, news: News) -> None:
        if news.orphaned and not self._orphaned:
            self._orphaned = True
            logger.warning(
                "Ray has died on the node of the coordinator; if that is this machine, Ray will "
                "end this process, too: %s",
                self._resume_line,
            )
        if news.trials:
            self._deaths.reset()
        for record in news.trials:
            self._n_trials += 1
            if self._n_trials > self._n_before and record.attempts:
                self._call_back(record)
        for record in news.paused:
            self._call_back(record)
        self._view.update(news.progress)

    def _call_back(self, record: TrialRecord) -> None:
        trial = decode(record, self._space)
        for function in list(self._callbacks):
            try:
                function(trial)
            except StopIteration as stop:
                if self._command is Command.RUN:
                    self._command = Command.END
                    self._view.message(f"ended by a callback at trial {trial.number}: {stop}")
            except Exception:
                logger.exception("callback %r raised at trial %d and is switched off",
                                 function, trial.number)  # fmt: skip
                self._view.message(f"callback {function!r} raised and is switched off")
                self._callbacks.remove(function)

    def _forward_interrupts(self, presses: int) -> None:
        """Change the command after a Ctrl-C, which the next poll brings to the coordinator."""
        command = (self._command, Command.DRAIN, Command.STOP)[min(presses, 2)]
        if command is not self._command:
            self._command = command
            what = "waiting for the running trials; press again to stop now"
            what = "stopping now" if command is Command.STOP else what
            self._view.message(f"interrupted: {what}")
            self._view.message(self._resume_line)


class _Interrupts:
    """Counts Ctrl-C and SIGTERM while it is entered, if this is the main thread.

    A third one is for Python. Batch systems send SIGTERM before they kill.
    """

    def __init__(self) -> None:
        self.presses = 0
        self._old: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._old[number] = signal.signal(number, self._press)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)

    def _press(self, number: int, frame: FrameType | None) -> None:
        self.presses += 1
        if self.presses > 2 and callable(self._old[number]):
            self._old[number](number, frame)


def checked_callbacks(callbacks: Any) -> list[Callable[[Trial], Any]]:
    """Return the callbacks as functions of a trial."""
    if not isinstance(callbacks, Iterable):
        raise StudyError(
            f"callbacks must be a list of functions of a trial, got {callbacks!r}; write "
            "callbacks=[...]"
        )
    return [_as_function(callback) for callback in callbacks]


def _as_function(callback: Callback) -> Callable[[Trial], Any]:
    method = getattr(callback, "on_trial", callback)
    if not callable(method):
        raise StudyError(
            f"a callback is a function of a trial, or an object with on_trial(trial), "
            f"got {callback!r}"
        )
    return method
