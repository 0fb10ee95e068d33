"""The live view: what it shows, how often, and that no width or text breaks it."""

from __future__ import annotations

import io
import math
import re
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from raybo.views.live import Frame, LineView, NotebookView, SilentView, TerminalView, make_view
from raybo.views.progress import LaneStatus, Progress

RUNNING = Progress(
    name="tune-1",
    done=30,
    running=8,
    failed=2,
    total=200,
    best_value=0.397887,
    best_number=21,
    best_config_text="lr=0.001, act=relu",
    elapsed=65.0,
    eta=300.0,
    workers=8,
    use=0.97,
    rate=0.5,
    lanes=(LaneStatus(0, 30, 8, 0.397887),),
    mode="min",
    state="running",
)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def plain_console(width: int = 80) -> Console:
    return Console(file=io.StringIO(), force_terminal=False, width=width)


def terminal_console(width: int = 80, height: int = 24) -> Console:
    return Console(
        file=io.StringIO(), force_terminal=True, width=width, height=height, color_system=None
    )


def output(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def picture(progress: Progress, width: int = 80, height: int = 24) -> list[str]:
    console = Console(width=width, height=height, record=True, file=io.StringIO())
    console.print(Frame(progress))
    return console.export_text().splitlines()


def test_trials_that_were_stopped_early_are_counted_and_those_that_can_go_on() -> None:
    early = replace(RUNNING, stopped=9, steps=0.4)
    for progress, words in (
        (early, "9 stopped early, 40% of all steps run"),
        (replace(early, paused=7), "9 stopped early (7 resumable), 40% of all steps run"),
    ):
        LineView(console := plain_console(300)).update(progress)
        assert words in output(console)
        assert words.split(",")[0] in "\n".join(picture(progress, 120))


def test_the_view_suits_the_console() -> None:
    assert isinstance(make_view(True, terminal_console()), TerminalView)
    assert isinstance(make_view(True, plain_console()), LineView)
    assert isinstance(make_view(False, terminal_console()), SilentView)
    dumb = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})
    assert isinstance(make_view(True, dumb), LineView)


def test_forced_colour_does_not_make_a_terminal_of_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert isinstance(make_view(True), LineView)


def test_the_frame_shows_every_figure() -> None:
    text = "\n".join(picture(RUNNING))
    for part in ("tune-1", "minimise", "32/200", "1:05, 5:00 left", "30 done", "8 running"):
        assert part in text
    for part in ("2 failed", "8 workers 97% busy", "30.0/min", "best 0.397887", "trial 21"):
        assert part in text
    assert "lr=0.001, act=relu" in text
    assert "lane" not in text


def test_the_frame_has_a_row_for_each_of_several_lanes() -> None:
    lanes = (LaneStatus(0, 9, 2, 0.5), LaneStatus(1, 8, 1, 0.25), LaneStatus(2, 0, 0, None))
    rows = picture(replace(RUNNING, lanes=lanes))[-4:]
    assert [row.split() for row in rows] == [
        ["lane", "evaluations", "running", "best"],
        ["1", "9", "2", "0.5"],
        ["2", "8", "1", "0.25"],
        ["3", "0", "0", "-"],
    ]


def test_many_lanes_do_not_outgrow_the_terminal() -> None:
    lanes = tuple(LaneStatus(i, i, 1, float(i)) for i in range(100))
    rows = picture(replace(RUNNING, lanes=lanes), height=20)
    assert len(rows) < 20
    assert "88 more" in rows[-1]


@pytest.mark.parametrize("width", [1, 2, 5, 10, 20, 40, 80, 300])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    lanes = tuple(LaneStatus(i, i, 1, i / 3) for i in range(4))
    long = replace(RUNNING, lanes=lanes, best_config_text="x=0.123456, " * 50, name="n" * 120)
    rows = picture(long, width=width)
    assert all(len(row) <= width for row in rows)
    assert len(rows) == 9  # nothing wraps: the display keeps its height


@pytest.mark.parametrize(
    "progress",
    [
        replace(RUNNING, total=None),
        replace(RUNNING, total=None, eta=None),
        replace(RUNNING, total=0, done=0, failed=0, elapsed=0.0, eta=0.0),
        replace(RUNNING, done=500, total=200),
        replace(RUNNING, best_value=None, best_number=None, best_config_text="", eta=None),
        replace(RUNNING, lanes=(), workers=0, use=0.0, rate=0.0, running=0),
        replace(RUNNING, best_value=-1e300, elapsed=10.0**7, rate=math.pi * 1e-6, mode="max"),
        replace(RUNNING, state="draining"),
    ],
)
def test_unusual_progress_is_drawn(progress: Progress) -> None:
    assert picture(progress)
    console = plain_console()
    with LineView(console) as view:
        view.update(progress)
    assert output(console).count("\n") == 1


def test_lines_have_no_control_characters() -> None:
    console = plain_console(width=20)
    with LineView(console) as view:
        view.update(replace(RUNNING, name="a\x1b[31m[bold]b\rc"))
        view.message("resume with: raybo resume [tune-1]\n  or not")
    lines = output(console).split("\n")
    assert lines[0].startswith("[a [31m[bold]b c] 32/200, 8 running, 2 failed, best 0.397887")
    assert lines[1:] == ["resume with: raybo resume [tune-1]", "  or not", ""]
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", output(console))


def test_lines_come_every_few_seconds() -> None:
    clock, console = Clock(), plain_console()
    with LineView(console, clock) as view:
        for done in range(100):
            view.update(replace(RUNNING, done=done))
            clock.now += 0.125
    shown = [int(n) for n in re.findall(r"\] (\d+)/200", output(console))]
    assert shown == [2, 42, 82, 101]  # the first, every 5 s, and the last


def test_lines_get_rarer_in_a_long_run() -> None:
    clock, console = Clock(), plain_console()
    view = LineView(console, clock)
    for second in range(0, 3600, 5):
        view.update(replace(RUNNING, elapsed=3600.0 + second))
        clock.now += 5
    assert output(console).count("\n") == 60


def test_a_new_best_shows_at_once_but_not_twice_a_second() -> None:
    clock, console = Clock(), plain_console()
    view = LineView(console, clock)
    for i in range(40):
        view.update(replace(RUNNING, best_value=1.0 / (i + 1)))
        clock.now += 0.1
    assert output(console).count("\n") == 4


def test_a_change_of_state_shows_at_once() -> None:
    console = plain_console()
    view = LineView(console, Clock())
    view.update(RUNNING)
    view.update(replace(RUNNING, state="draining"))
    assert output(console).splitlines()[-1].endswith("draining")


def test_the_terminal_view_repaints_and_leaves_the_last_picture() -> None:
    clock, console = Clock(), terminal_console()
    with TerminalView(console, clock) as view:
        view.update(RUNNING)
        view.message("resume with: raybo resume tune-1")
        clock.now += 60
        view.update(replace(RUNNING, done=198, state="finished", eta=0.0))
    text = output(console)
    assert "starting" in text
    assert "resume with: raybo resume tune-1" in text
    last = text[text.rindex("tune-1") :]
    assert "finished" in last
    assert "200/200" in last
    assert last.endswith("\n\x1b[?25h")  # the cursor is back, on a line of its own


def test_the_clock_goes_on_between_two_updates() -> None:
    console = terminal_console()
    console.print(Frame(RUNNING, age=10.0))
    assert "1:15, 4:50 left" in output(console)


def test_the_terminal_view_ends_cleanly_on_an_error() -> None:
    console = terminal_console()
    with pytest.raises(KeyboardInterrupt), TerminalView(console):
        raise KeyboardInterrupt
    assert output(console).endswith("\x1b[?25h")


def test_the_silent_view_shows_messages_only() -> None:
    console = plain_console()
    with make_view(False, console) as view:
        view.update(RUNNING)
        view.message("resume with: raybo resume tune-1")
    assert output(console) == "resume with: raybo resume tune-1\n"


def test_a_notebook_has_one_output_that_is_updated() -> None:
    shown: list[str] = []

    class Display:  # as IPython.display
        HTML = str

        def display(self, page: str, display_id: bool) -> Display:
            assert not shown
            assert display_id
            self.update(page)
            return self

        def update(self, page: str) -> None:
            shown.append(page)

    clock = Clock()
    with NotebookView(Console(file=io.StringIO()), lambda: clock.now, Display()) as view:
        view.phase("starting <Ray>")
        for i in range(10):
            clock.now += 0.1
            view.update(replace(RUNNING, done=i))
    assert shown[0] == "<pre>starting &lt;Ray&gt; ...</pre>"
    assert len(shown) == 5  # four a second at most, and the last
    assert "11/200" in shown[-1]


def test_one_worker_is_singular_and_instant_trials_have_no_busy_share() -> None:
    def line(**changes: object) -> str:
        console = Console(file=io.StringIO(), width=200)
        with LineView(console) as view:
            view.update(replace(RUNNING, **changes))  # type: ignore[arg-type]
        return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]

    assert "1 worker 97% busy" in line(workers=1)
    assert "8 workers 97% busy" in line()
    assert "8 workers, " in line(use=0.01, rate=60.0)


def test_the_shares_of_the_members_of_auto_are_shown() -> None:
    lines = picture(replace(RUNNING, shares={"bo": 0.7, "egp": 0.3}))
    assert "who predicts best proposes most: bo 70%, egp 30%" in "\n".join(lines)
    assert "proposes most" not in "\n".join(picture(RUNNING))
