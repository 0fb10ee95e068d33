"""Driver: follows a study from the user's process, until it ends."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterable
from types import FrameType, TracebackType
from typing import Any, Self

import ray
from ray import exceptions

from raybo import errors
from raybo.errors import RayboError, StudyError, StudyFailed
from raybo.report.live import View
from raybo.runtime.session import Plan
from raybo.study.journal.storage import slug
from raybo.study.trial import Trial, TrialRecord

logger = logging.getLogger(__name__)

NAMESPACE = "raybo"

_POLL_SECONDS = 0.5  # a waiting poll returns; Ctrl-C is seen between two
_ANSWER_SECONDS = 30.0  # for an answer: a coordinator may be starting
_RETRY_SECONDS = 0.2
_SILENCE_SECONDS = 600.0  # without any answer: the study is given up
_GONE_SECONDS = 40.0  # for the coordinator of a driver that was killed to end
_LIVE_SECONDS = 5.0  # a driver that polled since then is alive
_MAX_DEATHS = 10  # of a coordinator without any news between them

Callback = Callable[[Trial], Any] | Any


def actor_name(plan: Plan) -> str:
    """Name of the coordinator of a study: one per storage and name."""
    return f"{slug(plan.name)}@{slug(plan.storage)}"


def start_actor(actor: Any, plan: Plan, node: str) -> Any:
    """Start the coordinator on this node, once nobody else runs the study.

    Raises
    ------
    StudyError
        When another driver runs it.
    """
    affinity = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)
    options = {"name": actor_name(plan), "namespace": NAMESPACE, "scheduling_strategy": affinity}
    deadline = time.monotonic() + _GONE_SECONDS
    while True:
        _wait_for_older(plan, deadline)
        try:
            return actor.options(**options).remote({**plan.who, "since": time.time()})
        except ValueError:  # another driver was faster, or the name is not free yet
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def _wait_for_older(plan: Plan, deadline: float) -> None:
    """Return when no coordinator of this study exists; raise when one is at work."""
    while True:
        try:
            actor: Any = ray.get_actor(actor_name(plan), namespace=NAMESPACE)
            who: dict[str, Any] = ray.get(actor.who.remote(), timeout=5.0)
        except ValueError:
            return
        except exceptions.RayError:
            who = {"silent": _LIVE_SECONDS}  # ending, or starting
        if who["silent"] < _LIVE_SECONDS or time.monotonic() > deadline:
            since = time.strftime("%H:%M:%S", time.localtime(who.get("since", 0.0)))
            raise StudyError(
                f"study {plan.name!r} is being run by pid {who.get('driver', 'unknown')} on "
                f"{who.get('host', 'an unknown host')} since {since}; wait until it ends, use "
                f"another name, or follow it with `raybo status {plan.name}`"
            )
        time.sleep(0.2)


class Driver:
    """Hands news from the coordinator to the view and the callbacks, and Ctrl-C back to it."""

    def __init__(
        self,
        start: Callable[[], Any],
        parcel: list[Any],
        decode: Callable[[TrialRecord], Trial],
        view: View,
        callbacks: Iterable[Callback],
        seen: int,
        resume_line: str,
    ) -> None:
        self.trials: list[Trial] = []  # as they finished
        self.answer: dict[str, Any] = {}  # the last one
        self._start = start
        self._deaths = 0  # of the coordinator, since the last news
        self._parcel = parcel
        self._decode = decode
        self._view = view
        self._callbacks = [_as_function(callback) for callback in callbacks]
        self._seen = seen  # trials that had finished before, in earlier sessions
        self._resume_line = resume_line
        self._obeyed = 0
        self._actor = start()

    def follow(self) -> None:
        """Return when the study has ended.

        Raises
        ------
        RayboError
            The error that ended it.
        """
        with _Interrupts() as interrupts:
            while self.answer.get("state") not in ("finished", "failed"):
                self._obey(interrupts.presses)
                self._take(self._poll())
        if self.answer["error"]:
            kind, message = self.answer["error"]
            raise _error_class(kind)(message)

    def close(self) -> None:
        """End the coordinator."""
        ray.kill(self._actor)

    def _poll(self) -> dict[str, Any]:
        deadline = time.monotonic() + _SILENCE_SECONDS
        while True:
            try:
                ref = self._actor.poll.remote(len(self.trials), _POLL_SECONDS, self._parcel)
                answer: dict[str, Any] = ray.get(ref, timeout=_ANSWER_SECONDS)
            except (exceptions.GetTimeoutError, exceptions.ActorUnavailableError):
                time.sleep(_RETRY_SECONDS)
                if time.monotonic() > deadline:
                    raise StudyFailed(
                        f"the coordinator has not answered for {_SILENCE_SECONDS:g} s; "
                        f"{self._resume_line}"
                    ) from None
            except exceptions.RayTaskError as error:
                raise StudyFailed(f"the coordinator failed: {error}") from None
            except exceptions.RayError as error:
                self._start_again(error)
            else:
                return answer

    def _start_again(self, error: Exception) -> None:
        """Replace a coordinator that died; the new one replays the journal and goes on."""
        self._deaths += 1
        if self._deaths > _MAX_DEATHS:
            raise StudyFailed(
                f"the coordinator died {_MAX_DEATHS} times without a result in between, the last "
                f"time with {type(error).__name__}: {error}; {self._resume_line}"
            ) from None
        logger.warning("the coordinator died (%s): starting it again", type(error).__name__)
        ray.kill(self._actor)  # one that the memory monitor killed keeps its name until told so
        self._actor = self._start()

    def _take(self, answer: dict[str, Any]) -> None:
        self.answer = answer
        self._deaths = 0 if answer["items"] else self._deaths
        for item in answer["items"]:
            trial = self._decode(item)
            self.trials.append(trial)
            if len(self.trials) > self._seen and trial.attempts:
                self._call_back(trial)
        if answer["snapshot"] is not None:
            self._view.update(answer["snapshot"])

    def _call_back(self, trial: Trial) -> None:
        for function in list(self._callbacks):
            try:
                function(trial)
            except Exception:
                logger.exception("callback %r raised at trial %d and is switched off",
                                 function, trial.number)  # fmt: skip
                self._view.message(f"callback {function!r} raised and is switched off")
                self._callbacks.remove(function)

    def _obey(self, presses: int) -> None:
        """Pass a Ctrl-C on: the first drains, the second stops."""
        if presses > self._obeyed:
            self._obeyed = presses
            word, what = ("drain", "waiting for the running trials; press again to stop now")
            if presses > 1:
                word, what = ("stop", "stopping now")
            self._actor.command.remote(word)
            self._view.message(f"interrupted: {what}")
            self._view.message(self._resume_line)


class _Interrupts:
    """Counts Ctrl-C while it is entered, if this is the main thread; a third one is for Python."""

    def __init__(self) -> None:
        self.presses = 0
        self._old: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._old = signal.signal(signal.SIGINT, self._press)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._old is not None:
            signal.signal(signal.SIGINT, self._old)

    def _press(self, number: int, frame: FrameType | None) -> None:
        self.presses += 1
        if self.presses > 2 and callable(self._old):
            self._old(number, frame)


def _as_function(callback: Callback) -> Callable[[Trial], Any]:
    method = getattr(callback, "on_trial", callback)
    if not callable(method):
        raise StudyError(
            f"a callback is a function of a trial, or an object with on_trial(trial), "
            f"got {callback!r}"
        )
    return method


def _error_class(name: str) -> type[RayboError]:
    found = getattr(errors, name, StudyFailed)
    return found if isinstance(found, type) and issubclass(found, RayboError) else StudyFailed
