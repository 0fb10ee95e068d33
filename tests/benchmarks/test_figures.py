from __future__ import annotations

import numpy as np

from raybo.benchmarks.figures import draw_figure, write_figure
from tests.helpers.benchmarks import run_of


def test_the_figure_has_one_panel_per_problem(tmp_path):
    good = [run_of("valley", "good", i, [5, 3, 4, 2 + i / 10], optimum=1.0) for i in range(6)]
    bad = [run_of("valley", "bad", i, [5, 4, 4.5, 3 + i], optimum=1.0) for i in range(6)]
    other = [run_of("hill", "bad", seed, [2, 1], optimum=None) for seed in range(2)]
    figure = draw_figure([*good, *bad, *other], "title")
    assert [a.text for a in figure.layout.annotations] == ["valley", "hill"]
    assert len(figure.data) == 6  # a band and a line for each tuner of each panel
    assert figure.layout.yaxis.type == "log"
    assert figure.layout.yaxis2.type == "linear"
    line = next(trace for trace in figure.data if trace.name == "good")
    np.testing.assert_allclose(line.y, [4, 2, 2, 1.25])
    write_figure(good, tmp_path / "curves.html")
    assert "plotly" in (tmp_path / "curves.html").read_text(encoding="utf-8").lower()
