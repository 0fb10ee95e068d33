"""Result: an Outcome that shows itself."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from raybo.space.any_space import AnySpace
from raybo.study.outcome import Outcome

if TYPE_CHECKING:
    import pandas as pd

    from raybo.study.recommend import Recommendation


@dataclass(frozen=True, repr=False)
class Result(Outcome):
    """A study at its end, or at the moment it was read, with figures and tables."""

    def to_dataframe(self) -> pd.DataFrame:
        """Return one row per trial: its fields, then each parameter by its path.

        A choice has the name of its branch; inactive parameters are missing. A path such as
        "compress/svd/rank" that is also the name of a field is prefixed with "config/"; entries
        of `extra` are prefixed with "extra/". Times are dates in UTC.
        """
        from raybo.views.export import frame_of

        return frame_of(self)

    @cached_property
    def recommended(self) -> Recommendation | None:
        """The config that the model expects to be best, with what it expects; None without one.

        Where values are noisy, the best value of all trials is a lucky one.
        """
        from raybo.study.recommend import recommendation_of

        return recommendation_of(self)

    @property
    def recommended_config(self) -> dict[str, Any] | None:
        """Config that the model expects to be best; None when there is none."""
        return None if self.recommended is None else self.recommended.config

    def best_json(self) -> str | None:
        """Return the best config as JSON text; None when there is none.

        `space.from_json(json.loads(text))` gives it back, also a vector of 10^9 coordinates.
        """
        from raybo.views import text

        return None if self.best_trial is None else text.json_text(self, self.best_trial)

    def importances(self) -> dict[str, float]:
        """Return the share of each parameter in the variation of the values, the largest first.

        A Gaussian process is fitted to the trials that have a value, whatever the method was. A
        share is the part of the variance of its mean over the space that is due to the parameter
        alone (first-order Sobol index). Shares sum to at most 1; the rest is due to several
        parameters together. A parameter of a branch counts by what it does to the whole space.

        Raises
        ------
        StudyError
            When the study cannot tell: too few values, all values equal, or a box of too many
            coordinates.
        """
        from raybo.views import summary

        return summary.importances(self)

    def plot_history(self, optimum: float | None = None) -> Any:
        """Return a plotly figure of the values and the best so far; with `optimum`, the regret.

        Buttons switch to a log scale.
        """
        from raybo.views import plots
        from raybo.views.summary import Sheet

        return plots.plot_history(Sheet(self), optimum)

    def plot_importances(self) -> Any:
        """Return a figure of how much each parameter matters."""
        from raybo.views import plots
        from raybo.views.summary import Sheet

        return plots.plot_importances(Sheet(self))

    def plot_contour(self) -> Any:
        """Return a figure of the model's mean over the two parameters that matter most."""
        from raybo.views import plots
        from raybo.views.summary import Sheet

        return plots.plot_contour(Sheet(self))

    def plot_slices(self) -> Any:
        """Return a figure of the values against each of the parameters that matter most."""
        from raybo.views import plots
        from raybo.views.summary import Sheet

        return plots.plot_slices(Sheet(self))

    def plot_parallel(self) -> Any:
        """Return a figure of the trials in parallel coordinates."""
        from raybo.views import plots
        from raybo.views.summary import Sheet

        return plots.plot_parallel(Sheet(self))

    def plot_timeline(self) -> Any:
        """Return a figure of the trial that each worker ran at each moment."""
        from raybo.views import plots
        from raybo.views.summary import Sheet

        return plots.plot_timeline(Sheet(self))

    def plot_tree(self) -> Any:
        """Return a figure of the values of each branch of a conditional space."""
        from raybo.views import plots
        from raybo.views.summary import Sheet

        return plots.plot_tree(Sheet(self))

    def plot_directions(self) -> Any:
        """Return a figure of the directions that `rpp` or `ridge` learnt."""
        from raybo.views import plots
        from raybo.views.summary import Sheet

        return plots.plot_directions(Sheet(self))

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write an HTML report."""
        from raybo.views import html

        html.write_report(self, path)

    def __repr__(self) -> str:
        from raybo.views import text

        return text.outcome_text(self)

    def _repr_html_(self) -> str:
        from raybo.views import text

        return text.outcome_html(self)


def load_result(
    name: str, storage: str | os.PathLike[str] = "runs", space: AnySpace | None = None
) -> Result:
    """Read a study from its journal; it may be running, and Ray is not needed.

    `space` is needed only where JSON cannot hold it: categorical values that are objects.
    """
    return Result.load(name, storage, space)


load = load_result  # the public name: raybo.load
