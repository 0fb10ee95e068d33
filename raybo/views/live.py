"""Show a running study: live on a terminal, in plain lines elsewhere, or not at all.

A view shows the `Progress` that it is given, and needs neither Ray nor the study. It writes to
stderr, so that the output of a script can be piped.
"""

from __future__ import annotations

import html
import importlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol, Self

from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from raybo.views.progress import LaneStatus, Progress
from raybo.views.text import duration, number, printable, rate, stopped_text

_LINE_EVERY = (5.0, 60.0)  # seconds between plain lines: at the start, and in a long run
_NEW_BEST_EVERY = 1.0  # seconds
_FRAMES_PER_SECOND = 4  # smooth enough for a clock in seconds; more only flickers over ssh
_INSTANT_SECONDS = 0.05  # of shorter trials, starting them takes most of the time
_BAR_WIDTH = (6, 40)  # columns
_ENDED = ("finished", "interrupted", "failed")  # states in which nothing is left
_FRAME_LINES = 8  # lines of a frame that are not rows of the table


class View(Protocol):
    """Shows the progress of a study."""

    def __enter__(self) -> Self:
        """Start showing."""

    def __exit__(self, *error: object) -> None:
        """Show the last progress and stop."""

    def phase(self, text: str) -> None:
        """Show what is being done before there is any progress."""

    def update(self, progress: Progress) -> None:
        """Show `progress` from now on."""

    def message(self, text: str) -> None:
        """Print a line that stays, such as how to resume."""


def make_view(
    progress: bool,
    console: Console | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> View:
    """Return the view that suits the console: live on a terminal, plain lines elsewhere.

    Parameters
    ----------
    progress
        False shows messages only.
    console
        Where to show it; stderr by default.
    clock
        Seconds, for the time between two lines.
    """
    if console is None:
        # The environment may force colours; a file is not a terminal for that.
        console = Console(stderr=True, force_terminal=None if sys.stderr.isatty() else False)
    if not progress:
        return SilentView(console)
    if "ipykernel" in sys.modules and console.file is sys.stderr:
        return NotebookView(console, clock)
    if console.is_terminal and not console.is_dumb_terminal:
        return TerminalView(console, clock)
    return LineView(console, clock)


class SilentView:
    """Shows messages only."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def phase(self, text: str) -> None:
        """Show nothing."""

    def update(self, progress: Progress) -> None:
        """Show nothing."""

    def message(self, text: str) -> None:
        """Print one line."""
        _print_line(self._console, text)


class LineView:
    """Prints a plain line from time to time."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._latest: Progress | None = None
        self._shown: Progress | None = None
        self._shown_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._latest is not None and self._latest != self._shown:
            self._show(self._latest)

    def phase(self, text: str) -> None:
        """Show nothing: a log gets no line before there is a study."""

    def update(self, progress: Progress) -> None:
        """Print a line about `progress` if one is due."""
        self._latest = progress
        if self._due(progress):
            self._show(progress)

    def message(self, text: str) -> None:
        """Print one line."""
        _print_line(self._console, text)

    def _due(self, progress: Progress) -> bool:
        if self._shown is None or progress.state != self._shown.state:
            return True
        waited = self._clock() - self._shown_at
        if progress.best_value != self._shown.best_value and waited >= _NEW_BEST_EVERY:
            return True
        shortest, longest = _LINE_EVERY
        return waited >= min(max(shortest, progress.elapsed / 20), longest)

    def _show(self, progress: Progress) -> None:
        self._shown, self._shown_at = progress, self._clock()
        _print_line(self._console, _plain(progress))


class NotebookView(LineView):
    """Updates one output of a notebook's cell; `display` is the module IPython.display."""

    def __init__(
        self,
        console: Console,
        clock: Callable[[], float] = time.monotonic,
        display: Any = None,
    ) -> None:
        super().__init__(console, clock)
        self._display = display or importlib.import_module("IPython.display")
        self._handle: Any = None

    def phase(self, text: str) -> None:
        """Show `text` until there is progress."""
        self._write(f"{text} ...")

    def _due(self, progress: Progress) -> bool:  # noqa: ARG002  (as in LineView)
        return self._clock() - self._shown_at >= 1 / _FRAMES_PER_SECOND

    def _show(self, progress: Progress) -> None:
        self._shown, self._shown_at = progress, self._clock()
        self._write(_plain(progress))

    def _write(self, text: str) -> None:
        page = self._display.HTML(f"<pre>{html.escape(printable(text))}</pre>")
        if self._handle is None:
            self._handle = self._display.display(page, display_id=True)
        else:
            self._handle.update(page)


class TerminalView:
    """Repaints a few lines in place."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._progress: Progress | None = None
        self._phase = "starting"
        self._received = 0.0
        self._stopped = False
        self._wheel = Spinner("dots")
        self._live = Live(
            console=console,
            get_renderable=self._frame,
            refresh_per_second=_FRAMES_PER_SECOND,
            vertical_overflow="crop",
            # What workers print goes above the display, but a piped stdout is left alone.
            redirect_stdout=sys.stdout.isatty(),
            redirect_stderr=True,
        )

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        return self

    def __exit__(self, *error: object) -> None:
        self._stopped = True
        self._live.stop()

    def phase(self, text: str) -> None:
        """Show a spinner and `text` until there is progress."""
        self._phase = text

    def update(self, progress: Progress) -> None:
        """Show `progress` from the next repaint on."""
        self._received = self._clock()
        self._progress = progress

    def message(self, text: str) -> None:
        """Print one line above the display."""
        _print_line(self._console, text)

    def _frame(self) -> RenderableType:
        if self._progress is None:
            return "" if self._stopped else self._spinner()
        # The clock continues between two updates.
        age = 0.0 if self._stopped else self._clock() - self._received
        return Frame(self._progress, age)

    def _spinner(self) -> RenderableType:
        self._wheel.update(text=_line((self._phase, "dim")))
        return self._wheel


class Frame:
    """One picture of a study, as wide as the console allows."""

    def __init__(self, progress: Progress, age: float = 0.0) -> None:
        self._progress = progress
        self._age = age

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        s = self._progress
        state = "" if s.state == "running" else f"  {s.state}"
        yield _line((s.name, "bold"), (f"  {s.mode}imise", "dim"), (state, "yellow"))
        yield self._bar(options.max_width)
        yield _line(
            (f"{s.done} done", "green"),
            (f"  {s.running} running", "cyan"),
            (f"  {s.failed} failed", "red" if s.failed else "dim"),
            *((f"  {text}", "dim") for text in _steps(s)),
            (f"  {_workers(s)}", ""),
            (f"  {rate(s.rate)}" if s.rate else "", "dim"),
        )
        if s.best_value is not None:
            yield _line(
                (f"best {number(s.best_value)}", "bold"),
                (f"  trial {s.best_number}  ", ""),
                (s.best_config_text, "dim"),
            )
        if s.shares:
            parts = ", ".join(f"{name} {share:.0%}" for name, share in s.shares.items())
            yield _line((f"who predicts best proposes most: {parts}", "dim"))
        if len(s.lanes) > 1:
            yield _lane_table(s, max(1, console.height - _FRAME_LINES))

    def _bar(self, width: int) -> RenderableType:
        s = self._progress
        elapsed = s.elapsed + self._age
        eta = None if s.eta is None else max(0.0, s.eta - self._age)
        text = _times(s, elapsed, eta)
        if s.total is not None:
            text = f"{s.ended}/{s.total}  {text}"
        share = _share(s, elapsed, eta)
        narrow, wide = _BAR_WIDTH
        room = width - len(text) - 2
        if room < narrow:
            return _line((text, ""))
        bar = ProgressBar(
            total=1.0, completed=share or 0.0, width=min(room, wide), pulse=share is None
        )
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_row(bar, Text(text, no_wrap=True))
        return grid


def _lane_table(progress: Progress, n_rows: int) -> Table:
    better = min if progress.mode == "min" else max
    best = better((x.best for x in progress.lanes if x.best is not None), default=None)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for header in ("lane", "evaluations", "running", "best"):
        table.add_column(header, justify="right", no_wrap=True)
    for lane in progress.lanes[:n_rows]:
        leads = best is not None and lane.best == best
        table.add_row(*_lane_cells(lane), style="bold" if leads else "")
    if len(progress.lanes) > n_rows:
        table.add_row(f"... {len(progress.lanes) - n_rows} more", style="dim")
    return table


def _lane_cells(lane: LaneStatus) -> tuple[str, str, str, str]:
    best = "-" if lane.best is None else number(lane.best)
    return str(lane.index + 1), str(lane.done), str(lane.running), best


def _plain(s: Progress) -> str:
    parts = [f"{s.ended}/{s.total}" if s.total is not None else f"{s.ended} evaluations"]
    parts += [f"{s.running} running", f"{s.failed} failed", *_steps(s)]
    if s.best_value is not None:
        parts.append(f"best {number(s.best_value)} (trial {s.best_number})")
    parts += [_workers(s), _times(s, s.elapsed, s.eta)]
    if s.state != "running":
        parts.append(s.state)
    return f"[{s.name}] {', '.join(parts)}"


def _steps(s: Progress) -> list[str]:
    """How many trials were stopped early, and what that spared."""
    if s.steps is None:
        return []
    return [stopped_text(s.stopped, s.paused), f"{s.steps:.0%} of all steps run"]


def _workers(s: Progress) -> str:
    """Number of workers and their busy share, left out for trials that take no time."""
    words = f"{s.workers} worker{'' if s.workers == 1 else 's'}"
    instant = s.rate > 0 and s.use * s.workers / s.rate < _INSTANT_SECONDS
    return words if instant or not s.ended else f"{words} {s.use:.0%} busy"


def _share(s: Progress, elapsed: float, eta: float | None) -> float | None:
    """Share of the work that is done; None while unknown."""
    if s.total:
        return min(1.0, s.ended / s.total)
    if eta is not None and elapsed + eta > 0:
        return elapsed / (elapsed + eta)
    return None


def _times(s: Progress, elapsed: float, eta: float | None) -> str:
    left = "" if eta is None or s.state in _ENDED else f", {duration(eta)} left"
    return f"{duration(elapsed)}{left}"


def _line(*parts: tuple[str, str]) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    for part, style in parts:
        text.append(printable(part), style or None)
    return text


def _print_line(console: Console, text: str) -> None:
    for line in text.split("\n"):
        console.print(printable(line), markup=False, highlight=False, soft_wrap=True)
