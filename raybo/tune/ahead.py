"""Ahead: when suggestions are begun, and which results they know.

A suggestion is begun when Tune first asks for it, and knows all results told by then. While it is
computed, Tune goes on; it keeps one trial waiting beside those that run, or asks again shortly.
The first one waits for the process that computes it. Started beside the actors of the first trials
it would slow them down, and with short trials Tune does not get over that: an actor whose trial
has ended takes the place of one that is still starting, again and again, and fewer run for good.
Where the first suggestions are known without the method, nobody waits: the process is started once
as many trials have ended as are live, and very short trials fill the space meanwhile.

With short trials that would leave workers idle. So where they take under 10 s on average (by the
`time_total_s` of their results) and two or more are live, the next suggestion is begun as soon as
one is handed out, in haste if need be. By the time Tune asks for it, it may lack results: if more
than half as many as trials are live, it is begun again. If it is not ready Tune waits as long as a
trial takes: of several actors without a next trial Tune keeps one.

All of this depends on Tune's calls and their results alone, not on the time that computing takes.
"""

from __future__ import annotations

from dataclasses import dataclass

from raybo.runtime.proposals.pacing import least_haste
from raybo.study.trial import Trial, encode
from raybo.tune.suggester import Answer, Search
from raybo.tune.trials import Book
from raybo.tune.worker import Worker

WAIT = 0.05  # seconds that Tune's loop may wait for a suggestion while long trials are live
START = 3.0  # seconds that the process takes to start
MOST_FILLING = 20  # trials that fill the space meanwhile
SHORT = 10.0  # seconds; when trials take longer, waiting for a suggestion costs a percent or so


@dataclass
class Order:
    """The suggestion in the making."""

    number: int
    told: int  # results known to it
    asked: bool  # whether Tune has asked for it: from then on it is not begun again


class Ahead:
    """The next suggestion, given the trials in a book."""

    def __init__(self, search: Search, book: Book) -> None:
        space = search.space
        self._space = space
        self._book = book
        self._order: Order | None = None
        # Without a reference to self: the process ends when the searcher does, not at the next
        # collection of cycles.
        self._worker = Worker(
            search, lambda: [encode(trial, space).to_json() for trial in book.trials.values()]
        )

    @property
    def open_number(self) -> int | None:
        """Number of the suggestion in the making."""
        return None if self._order is None else self._order.number

    def changed(self, trial: Trial | int) -> None:
        """Note a trial that is new or has changed, or the number of one that was forgotten."""
        if isinstance(trial, int):
            self._worker.changed({"number": trial})
        else:
            self._worker.changed(encode(trial, self._space).to_json())
        if self._book.told >= max(2, len(self._book.live)):
            self._worker.start()

    def ask(self) -> tuple[int, Answer] | None:
        """Number and answer of the next suggestion; None: not ready, and trials are live."""
        order = self._ordered()
        wait = max(WAIT, self._short_seconds or 0.0)
        answer = self._worker.poll(wait if self._book.live else None)
        if answer is None:
            return None
        self._order = None
        return order.number, answer

    def prepare(self) -> None:
        """Begin the suggestion after the one just handed out, if trials are short."""
        if self._short_seconds is not None and len(self._book.live) > 1:
            self._begin(Order(self._book.take_number(), self._book.told, asked=False))

    @property
    def _short_seconds(self) -> float | None:
        """What trials take; None where that is long, or not known."""
        seconds = self._book.seconds
        return seconds if seconds is not None and seconds < SHORT else None

    def _ordered(self) -> Order:
        order = self._order
        if order is None:
            return self._begin(Order(self._book.take_number(), self._book.told, asked=True))
        missing = self._book.told - order.told
        if not order.asked and missing > (len(self._book.live) + 1) // 2:
            return self._begin(Order(order.number, self._book.told, asked=True))
        order.asked = True
        return order

    def _begin(self, order: Order) -> Order:
        seconds = self._book.seconds
        rate = 0.0 if seconds is None else len(self._book.live) / max(seconds, 1e-3)
        free = min(MOST_FILLING, START * rate)
        if self._worker.knows_first and (self._book.values < 2 or order.number < free):
            self._worker.fill(order.number)
        else:
            self._worker.begin(order.number, least_haste(rate))
        self._order = order
        return order
