from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from raybo.report import plots
from raybo.report.html import render, write_report
from raybo.result import Result
from raybo.space.box import Box
from raybo.study.trial import State, Trial

Make = Callable[..., Result]
PLOTS = [
    plots.plot_directions,
    plots.plot_history,
    plots.plot_importances,
    plots.plot_parallel,
    plots.plot_slices,
    plots.plot_timeline,
    plots.plot_tree,
]
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.mark.parametrize("plot", PLOTS, ids=lambda p: p.__name__)
@pytest.mark.parametrize("n", [1, 10, 1000])
def test_every_figure_draws_any_number_of_trials(
    plot: Callable, n: int, make_result: Make
) -> None:
    json.loads(plot(make_result(n)).to_json())


def test_history_shows_every_value_and_the_regret_when_the_optimum_is_known(
    make_result: Make,
) -> None:
    figure = plots.plot_history(make_result(40), optimum=0.0)
    value, best, regret = figure.data
    assert len(value.x) == len(best.x) == len(regret.x) == 37  # three trials failed
    assert min(value.y) == best.y[-1] == regret.y[-1]


def body(text: str) -> str:
    """The report without the scripts that draw it."""
    return text[text.index("<body>") : text.index("</main>")]


def test_a_report_escapes_everything_and_needs_no_network(make_result: Make) -> None:
    text = body(render(make_result(60)))
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text
    assert not re.search(r'(src|href)="https?:', text)
    for heading in ("Best config", "Failures", "Resume", "raybo resume"):
        assert heading in text


def test_a_report_of_a_huge_box_tells_of_its_embeddings(make_result: Make) -> None:
    space = Box(10**9)
    trials = [
        Trial(i, space.draw(np.random.default_rng(i)), float(i), State.DONE, memo={"clipped": 0.5})
        for i in range(8)
    ]
    method = {"name": "rembo", "options": {"k": None, "preset": "paper"}}
    result = replace(make_result(1), space=space, trials=trials, method=method, lanes=4)
    text = body(render(result))
    assert "Embeddings" in text
    assert "Which parameters matter" not in text


@pytest.mark.parametrize(
    ("model", "headings"),
    [
        ({}, {"Groups of parameters"}),
        (
            {"W": [[1.0, 0.5], [0.0, 1.0]], "alpha": 0.5},
            {"Groups of parameters", "Directions that"},
        ),
        ({"ridge": {"W": [[2.0], [-1.0]], "theta": {}}}, {"Directions that"}),
    ],
    ids=["addgp", "rpp", "few directions"],
)
def test_a_report_tells_of_groups_and_directions(
    model: dict[str, object], headings: set[str], make_result: Make
) -> None:
    space = Box(2)
    memo = {"groups": [[0], [1]], **model}
    trials = [Trial(0, space.draw(np.random.default_rng(0)), 1.0, State.DONE, memo=memo)]
    result = replace(make_result(1), space=space, trials=trials)
    text = body(render(result))
    assert {h for h in ("Groups of parameters", "Directions that") if h in text} == headings
    drawn = plots.plot_directions(result).data[0].z
    if "W" in model:
        np.testing.assert_allclose(drawn, [[1.0, 0.25], [0.0, 1.0]])


def test_a_report_without_any_value_says_why(make_result: Make) -> None:
    result = make_result(1)
    failed = [replace(result.trials[0], value=None, state=State.FAILED, reason="no memory")]
    text = body(render(replace(result, trials=failed)))
    assert "no memory" in text
    assert "Best config" not in text


def test_a_result_writes_and_plots_itself(make_result: Make, tmp_path: Path) -> None:
    result = make_result(10)
    result.report(tmp_path / "deep" / "report.html")
    assert (tmp_path / "deep" / "report.html").stat().st_size > 1e6
    for name in ("history", "importances", "parallel", "slices", "timeline", "tree"):
        assert getattr(result, f"plot_{name}")().layout.title.text


def seen_by_browser(path: Path, window: str) -> str:
    """The page as a browser has drawn it."""
    flags = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking"
    done = subprocess.run(
        [
            str(CHROMIUM),
            *flags.split(),
            f"--window-size={window}",
            f"--user-data-dir={path.with_suffix('.profile')}",
            "--virtual-time-budget=20000",
            "--dump-dom",
            path.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.stdout


# A browser is no package of Python's: where there is none, there is nothing to look with.
@pytest.mark.parametrize("n", [10, 1000, 10_000] if CHROMIUM else [])
def test_a_browser_draws_every_figure(n: int, make_result: Make, tmp_path: Path) -> None:
    drawn = seen_by_browser(write_report(make_result(n), tmp_path / "report.html"), "1200,8000")
    assert drawn.count('class="main-svg"') >= 6
    assert 'class="waiting"' not in drawn
    assert 'data-title="Share' not in drawn  # nothing leaves the file
    for title in ("History", "Which parameters matter", "Parallel coordinates", "Branches"):
        assert title in drawn


@pytest.mark.parametrize("n", [10] if CHROMIUM else [])
def test_a_figure_waits_until_it_is_in_view(n: int, make_result: Make, tmp_path: Path) -> None:
    path = write_report(make_result(n), tmp_path / "report.html")
    short, tall = (seen_by_browser(path, window) for window in ("1200,600", "1200,2000"))
    drawn, waiting = 'class="js-plotly-plot"', 'class="waiting"'
    assert 0 < short.count(drawn) < tall.count(drawn)
    assert short.count(drawn) + short.count(waiting) == tall.count(drawn) + tall.count(waiting)


@pytest.mark.parametrize("n", [10] if CHROMIUM else [])
def test_printing_draws_every_figure(n: int, make_result: Make, tmp_path: Path) -> None:
    path = write_report(make_result(n), tmp_path / "report.html")
    prints = '<script>dispatchEvent(new Event("beforeprint"))</script></body>'
    path.write_text(path.read_text().replace("</body></html>", f"{prints}</html>"))
    drawn = seen_by_browser(path, "1200,600")
    assert drawn.count('class="js-plotly-plot"') >= 6
    assert 'class="waiting"' not in drawn
