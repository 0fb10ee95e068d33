from __future__ import annotations

import ast
import html
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raybo.errors import StudyError
from raybo.result import Result
from raybo.space.box import Box
from raybo.space.parameters import Float
from raybo.space.space import Space
from raybo.study.optimizer import Optimizer
from raybo.study.trial import State, Trial
from raybo.views import plots
from raybo.views.html import render, write_report
from raybo.views.summary import Sheet

Make = Callable[..., Result]
PLOTS = [
    plots.plot_directions,
    plots.plot_history,
    plots.plot_parallel,
    plots.plot_slices,
    plots.plot_timeline,
    plots.plot_tree,
]
MODELLED = [plots.plot_contour, plots.plot_importances]
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium to look with on the path")


@pytest.mark.parametrize("plot", PLOTS, ids=lambda p: p.__name__)
@pytest.mark.parametrize("n", [1, 10, 1000])
def test_every_figure_draws_any_number_of_trials(
    plot: Callable, n: int, make_result: Make
) -> None:
    json.loads(plot(Sheet(make_result(n))).to_json())


@pytest.mark.parametrize("plot", MODELLED, ids=lambda p: p.__name__)
def test_a_figure_of_the_model_says_when_there_is_none(plot: Callable, make_result: Make) -> None:
    json.loads(plot(Sheet(make_result(30))).to_json())
    with pytest.raises(StudyError, match="trials with a value"):
        plot(Sheet(make_result(3)))


def traces(figure: Any) -> dict[str, Any]:
    return {trace.name: trace for trace in figure.data}


def test_a_plane_is_drawn_in_cells_where_categories_have_no_order(make_result: Make) -> None:
    assert traces(plots.plot_contour(Sheet(make_result(40))))["model"].type == "heatmap"
    optimizer = Optimizer(Space({"a": Float(0, 1), "b": Float(0, 1)}), "random", seed=0)
    for _ in range(12):
        trial = optimizer.ask()
        optimizer.tell(trial, trial.config["a"] + trial.config["b"] ** 2)
    numbers = replace(make_result(1), space=optimizer.space, trials=optimizer.trials)
    assert traces(plots.plot_contour(Sheet(numbers)))["model"].type == "contour"


@pytest.mark.parametrize("mode", ["min", "max"])
def test_history_shows_every_trial_the_failures_and_the_best(mode: str, make_result: Make) -> None:
    result = make_result(60, mode)
    drawn = traces(plots.plot_history(Sheet(result)))
    done = [t.number for t in result.trials if t.value is not None]
    assert list(drawn["value"].x) == done
    assert list(drawn["failed"].x) == [5, 22, 39, 56]
    assert (drawn["best"].x[0], drawn["best"].y[0]) == (
        result.best_trial.number,
        result.best_value,
    )


def test_history_follows_the_best_so_far_and_shows_the_regret(make_result: Make) -> None:
    result = make_result(40)
    figure = plots.plot_history(Sheet(result), optimum=-1.0)
    values = [t.value for t in result.trials if t.value is not None]
    best = [trace for trace in figure.data if trace.name == "best so far"]
    np.testing.assert_array_equal(best[0].y, np.minimum.accumulate(values))
    np.testing.assert_array_equal(best[1].y, best[0].y + 1.0)
    buttons = {b.label: b.args[0]["visible"] for b in figure.layout.updatemenus[0].buttons}
    shown = {name: [t.name for t, v in zip(figure.data, seen, strict=True) if v]
             for name, seen in buttons.items()}  # fmt: skip
    assert "known optimum" in shown["all"]
    assert "known optimum" not in shown["regret"]
    assert all("failed" in names for names in shown.values())


def test_a_few_bad_values_do_not_press_the_others_on_the_axis(make_result: Make) -> None:
    result = make_result(50)
    trials = [replace(t, value=-t.value) if t.value else t for t in result.trials]
    trials[3] = replace(trials[3], value=1e6)
    figure = plots.plot_history(Sheet(replace(result, trials=trials)))
    assert figure.layout.yaxis.range[1] < 100
    assert list(traces(figure)["beyond the scale"].x) == [3]


def test_slices_have_the_scales_of_the_space(make_result: Make) -> None:
    sheet = Sheet(make_result(60))
    drawn = {figure.layout.xaxis.title.text: figure for figure in plots.slices(sheet)}
    assert list(drawn["lr"].layout.xaxis.ticktext) == ["1e-5", "1e-4", "1e-3", "0.01", "0.1", "1"]
    np.testing.assert_allclose(drawn["lr"].layout.xaxis.tickvals, np.linspace(0, 1, 6))
    assert drawn["act"].layout.xaxis.ticktext[0] == "relu"
    assert len(drawn["act"].layout.xaxis.tickvals) == 3
    inside = [t for t in sheet.trials if "svd" in t.config["comp"] and t.value is not None]
    assert len(traces(drawn["comp/svd/rank"])["value"].x) == len(inside)
    assert len(traces(drawn["lr"])["failed"].x) == 4
    line = traces(drawn["lr"])["model"]
    good = np.interp(0.4, line.x, line.y)  # lr = 1e-3
    assert min(line.y[0], line.y[-1]) > good + 1


def test_parallel_coordinates_have_one_place_for_inactive_and_one_for_failed(
    make_result: Make,
) -> None:
    sheet = Sheet(make_result(60))
    axes = {d.label: d for d in plots.plot_parallel(sheet).data[0].dimensions}
    rank = axes["comp/svd/rank"]
    assert rank.ticktext[-1] == "inactive"
    assert len(rank.ticktext) < 10
    outside = sum("svd" not in t.config["comp"] for t in sheet.trials)
    assert np.count_nonzero(np.array(rank["values"]) == rank.tickvals[-1]) == outside
    value = axes["value"]
    assert value.ticktext[-1] == "failed"
    assert np.count_nonzero(np.array(value["values"]) == value.tickvals[-1]) == 4
    assert "1e-5" in axes["lr"].ticktext


def body(text: str) -> str:
    """The report without the scripts that draw it."""
    return text[text.index("<body>") : text.index("</main>")]


def test_a_report_escapes_everything_and_needs_no_network(make_result: Make) -> None:
    text = body(render(make_result(60)))
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text
    assert not re.search(r'(src|href)="https?:', text)
    for heading in ("Best config", "Failures", "Trials", "About this study", "Go on"):
        assert heading in text


def test_a_report_can_be_passed_on(make_result: Make) -> None:
    result = replace(make_result(20), location="/home/someone/secret/runs/study")
    text = body(render(result))
    assert "secret" not in text
    assert "storage=&#39;runs&#39;" in text
    assert "raybo resume" not in text  # the objective cannot be imported
    assert "raybo resume" in body(render(replace(result, objective="train:objective")))


def test_the_config_to_copy_is_the_config(make_result: Make) -> None:
    result = make_result(20)
    texts = re.findall(r"<pre>(.*?)</pre>", body(render(result)), re.DOTALL)
    python, described = (html.unescape(text) for text in texts[:2])
    assert ast.literal_eval(python) == result.best_config
    assert result.space.from_json(json.loads(described)) == result.best_config


def test_a_report_holds_extra_metrics_tracebacks_and_what_the_study_was(make_result: Make) -> None:
    result = make_result(20)
    trials = [replace(t, extra={"accuracy": 0.25}) for t in result.trials]
    about = {"seed": 77, "workers": 3, "created": 0.5, "tracebacks": {5: "line 9, in train"}}
    text = body(render(replace(result, trials=trials, **about)))
    (data,) = re.findall(r'id="trials">(.*?)</script>', text)
    table = json.loads(data)
    assert table["extra"] == ["accuracy"]
    assert len(table["rows"]) == 20
    assert {row[4] for row in table["rows"]} == {0.25}
    assert "line 9, in train" in text
    assert re.search(r"seed</th><td>77<", text)
    assert re.search(r"workers</th><td>3<", text)


def test_a_report_of_a_huge_box_tells_of_its_embeddings(make_result: Make) -> None:
    space = Box(10**9)
    trials = [
        Trial(
            i,
            space.draw(np.random.default_rng(i)),
            float(i),
            State.DONE,
            memo={"clipped": 0.5, "z": np.random.default_rng(i).uniform(-1, 1, 2).tolist()},
        )
        for i in range(24)
    ]
    method = {"name": "rembo", "options": {"k": None, "preset": "paper"}}
    result = replace(make_result(1), space=space, trials=trials, method=method, lanes=4)
    text = body(render(result))
    assert "Embeddings" in text
    planes = plots.plot_embeddings(Sheet(result))
    assert len(planes) == 4
    assert {trace.name for trace in planes[0].data} == {"model", "trial", "best"}
    assert list(planes[1].data[1].x) == [t.memo["z"][0] for t in trials[1::4]]
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
    drawn = plots.plot_directions(Sheet(result)).data[0].z
    if "W" in model:
        np.testing.assert_allclose(drawn, [[1.0, 0.25], [0.0, 1.0]])


def test_a_report_without_any_value_says_why(make_result: Make) -> None:
    result = make_result(1)
    failed = [replace(result.trials[0], value=None, state=State.FAILED, reason="no memory")]
    text = body(render(replace(result, trials=failed)))
    assert "no memory" in text
    assert "Best config" not in text


def test_a_result_writes_and_plots_itself(make_result: Make, tmp_path: Path) -> None:
    result = make_result(20)
    result.report(tmp_path / "deep" / "report.html")
    assert (tmp_path / "deep" / "report.html").stat().st_size > 1e6
    for name in ("contour", "history", "importances", "parallel", "slices", "timeline", "tree"):
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


def title_of(page: str) -> Any:
    """What a script has put into the title of a page, in JSON."""
    return json.loads(html.unescape(re.findall(r"<title>(.*?)</title>", page)[0]))


def run_in_page(path: Path, script: str) -> None:
    """Let the page run a script once it is there."""
    text = path.read_text()
    assert text.endswith("</body></html>\n")
    run = f"<script>{{ {script} }}</script></body></html>\n"  # a block: names of its own
    path.write_text(text.replace("</body></html>\n", run))


@browser
@pytest.mark.parametrize("n", [10, 10_000])
def test_a_browser_draws_every_figure(n: int, make_result: Make, tmp_path: Path) -> None:
    drawn = seen_by_browser(write_report(make_result(n), tmp_path / "report.html"), "1200,9000")
    assert drawn.count('class="main-svg"') >= 6
    assert 'class="waiting"' not in drawn
    assert 'data-title="Share' not in drawn  # nothing leaves the file
    for title in ("History", "Which parameters matter", "Parallel coordinates", "Branches"):
        assert title in drawn


# What a person would see as broken: a page wider than the screen, a figure wider than its card,
# a legend under the buttons, a label outside its figure.
LOOK = """
setTimeout(() => {
  const box = (node) => node.getBoundingClientRect();
  const beside = (a, b) => a.right <= b.left || b.right <= a.left;
  const apart = (a, b) => beside(a, b) || a.bottom <= b.top || b.bottom <= a.top;
  const faults = [];
  if (document.documentElement.scrollWidth > innerWidth) faults.push("the page is too wide");
  for (const figure of all(".js-plotly-plot")) {
    const title = figure.closest("section").querySelector("h2").textContent;
    const svg = figure.querySelector(".main-svg"), room = figure.closest(".figure");
    if (room.scrollWidth > room.clientWidth + 1 && title !== "Parallel coordinates")
      faults.push(title + ": wider than its card");
    const legend = figure.querySelector(".legend");
    const menu = figure.querySelector(".updatemenu-container");
    if (legend && menu && !apart(box(legend), box(menu)))
      faults.push(title + ": legend under buttons");
    for (const text of all(".xtick text, .ytick text, .xtitle, .ytitle, .axis-title", figure)) {
      const t = box(text), f = box(svg);
      if (t.left < f.left - 2 || t.right > f.right + 2 || t.bottom > f.bottom + 2)
        faults.push(title + ": " + text.textContent + " is cut off");
    }
  }
  const figures = all(".js-plotly-plot").length;
  parent.postMessage(JSON.stringify({ faults, figures, width: innerWidth }), "*");
}, 3000);
"""


@browser
def test_nothing_is_cut_off_or_hidden_at_any_width(make_result: Make, tmp_path: Path) -> None:
    path = write_report(make_result(60), tmp_path / "report.html")
    run_in_page(path, LOOK)
    page = tmp_path / "page.html"  # frames: a window of Chromium is at least 500 wide
    widths = (1400, 900, 420)
    frame = '<iframe src="report.html" style="width: {}px; height: 12000px; border: 0"></iframe>'
    page.write_text(
        "<script>const seen = []; onmessage = (event) => {"
        "seen.push(JSON.parse(event.data)); document.title = JSON.stringify(seen); }</script>"
        f"<nobr>{''.join(frame.format(width) for width in widths)}</nobr>"
    )
    seen = title_of(seen_by_browser(page, "2800,12100"))
    assert {view["width"] for view in seen} == set(widths)
    assert all(view["figures"] >= 12 for view in seen)
    assert [view["faults"] for view in seen] == [[]] * 3


@browser
def test_the_table_of_trials_sorts_and_opens(make_result: Make, tmp_path: Path) -> None:
    result = make_result(60)
    path = write_report(result, tmp_path / "report.html")
    run_in_page(
        path,
        """
        const first = () => document.querySelector(".trials tbody td").textContent;
        const heads = () => all(".trials th button");
        const seen = [first()];
        heads()[0].click(); seen.push(first());
        heads()[0].click(); seen.push(first());
        document.querySelector(".trials tbody tr").click();
        seen.push(JSON.parse(document.querySelector(".opened pre").textContent));
        document.title = JSON.stringify(seen);
        """,
    )
    best, low, high, config = title_of(seen_by_browser(path, "1200,600"))
    assert (best, low, high) == (str(result.best_trial.number), "0", "59")
    assert config == result.trials[59].config


@browser
def test_a_figure_waits_until_it_is_in_view(make_result: Make, tmp_path: Path) -> None:
    path = write_report(make_result(10), tmp_path / "report.html")
    short, tall = (seen_by_browser(path, window) for window in ("1200,600", "1200,2000"))
    drawn, waiting = 'class="js-plotly-plot"', 'class="waiting"'
    assert 0 < short.count(drawn) < tall.count(drawn)
    assert short.count(drawn) + short.count(waiting) == tall.count(drawn) + tall.count(waiting)


@browser
def test_printing_draws_every_figure(make_result: Make, tmp_path: Path) -> None:
    path = write_report(make_result(10), tmp_path / "report.html")
    run_in_page(path, 'dispatchEvent(new Event("beforeprint"))')
    drawn = seen_by_browser(path, "1200,600")
    assert drawn.count('class="js-plotly-plot"') >= 6
    assert 'class="waiting"' not in drawn


def auto_result(mode: str, **options: Any) -> Result:
    """A study of `auto` whose values are a noisy bowl."""
    space = Space({"x": Float(0, 1), "y": Float(0, 1)})
    sign = 1.0 if mode == "min" else -1.0
    opt, rng = Optimizer(space, mode=mode, **options), np.random.default_rng(0)
    for _ in range(25):
        trial = opt.ask()
        bowl = sum((value - 0.4) ** 2 for value in trial.config.values())
        opt.tell(trial, sign * (bowl + 0.1 * rng.standard_normal()))
    state = opt.state()
    return Result(
        *("auto", "runs/auto", mode, None, state["method"], space, opt.trials, 1.0, None, None)
    )


@pytest.mark.parametrize("mode", ["min", "max"])
def test_the_members_of_auto_are_shown_with_what_they_expected(mode: str) -> None:
    sheet = Sheet(auto_result(mode))
    shares = plots.plot_shares(sheet)
    assert [trace.name for trace in shares.data] == ["bo", "local"]
    assert np.sum([trace.y for trace in shares.data], axis=0) == pytest.approx(1.0, abs=0.01)
    assert sheet.members is not None
    expected, came = sheet.members.expected("bo", sheet.outcome.goal)
    assert len(came) == len(sheet.members.trials) > 15
    assert np.median(np.abs(expected - came)) < 0.2
    page = html.unescape(render(sheet.outcome))
    assert "Which method predicts best" in page
    assert "Proposals: bo " in page


def test_an_only_member_is_not_said_to_explain_the_results_best() -> None:
    page = html.unescape(render(auto_result("min", members=("bo",))))
    assert "It is the only member." in page
    assert "explains the results best" not in page


@pytest.mark.parametrize("mode", ["min", "max"])
def test_another_config_than_the_luckiest_is_recommended_with_its_uncertainty(mode: str) -> None:
    result = auto_result(mode)
    found = result.recommended
    assert found is not None
    assert found.trial.number != result.best_trial.number
    assert abs(found.expected) < abs(result.best_value)
    assert result.recommended_config == found.config
    page = html.unescape(render(result))
    assert "Recommended config" in page
    assert f"Trial {found.trial.number}: the model expects" in page


def test_only_auto_has_members(make_result: Make) -> None:
    with pytest.raises(StudyError, match="only `auto` has members"):
        plots.plot_shares(Sheet(make_result(10)))
    assert "Which method predicts best" not in render(make_result(10))
