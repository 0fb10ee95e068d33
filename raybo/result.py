"""Result: what came out of a study, and how to read one from its journal, without Ray."""

from __future__ import annotations

import html
import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from raybo.errors import StudyError
from raybo.space.any_space import AnySpace
from raybo.space.definition import space_from_definition
from raybo.study.journal.record import Record
from raybo.study.journal.storage import list_slugs, open_store
from raybo.study.objective import Objective
from raybo.study.optimizer import trial_from_json
from raybo.study.trial import State, Trial

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 10  # best trials in a notebook


@dataclass(frozen=True)
class Result:
    """A study at its end, or at the moment it was read."""

    name: str
    location: str  # folder or URI of the study
    mode: str
    metric: str | None
    method: Mapping[str, Any]  # name and options
    space: AnySpace
    trials: list[Trial] = field(repr=False)  # by number; those never finished are pending
    elapsed: float  # seconds, all sessions together
    stop_reason: str
    use: float | None  # busy share of the workers in the last session

    @property
    def best_trial(self) -> Trial | None:
        """Trial with the best value; None when no trial has one."""
        objective = Objective(self.mode)
        done = [trial for trial in self.trials if trial.value is not None]
        return min(done, key=lambda trial: objective.loss(trial.value or 0.0), default=None)

    @property
    def best_value(self) -> float | None:
        """Best value, the user's own; None when there is none."""
        return self.best_trial.value if self.best_trial else None

    @property
    def best_config(self) -> dict[str, Any] | None:
        """Config with the best value; None when there is none."""
        return dict(self.best_trial.config) if self.best_trial else None

    def to_dataframe(self) -> pd.DataFrame:
        """One row per trial: its fields, then each parameter by its path ("compress/svd/rank").

        A choice has the name of its branch; inactive parameters are missing. A path that is also
        the name of a field is prefixed with "config/"; extra entries with "extra/".
        """
        pandas = importlib.import_module("pandas")
        return pandas.DataFrame([_row(trial, self.space) for trial in self.trials])  # type: ignore[no-any-return]

    def plot_history(self, optimum: float | None = None) -> Any:
        """Figure (plotly) of the values and the best so far; of the regret, given the optimum."""
        return _plots().plot_history(self, optimum)

    def plot_importances(self) -> Any:
        """Figure of how much each parameter matters."""
        return _plots().plot_importances(self)

    def plot_slices(self) -> Any:
        """Figure of the values against each of the parameters that matter most."""
        return _plots().plot_slices(self)

    def plot_parallel(self) -> Any:
        """Figure of the trials in parallel coordinates."""
        return _plots().plot_parallel(self)

    def plot_timeline(self) -> Any:
        """Figure of what each worker did when."""
        return _plots().plot_timeline(self)

    def plot_tree(self) -> Any:
        """Figure of the evaluations per branch of a conditional space."""
        return _plots().plot_tree(self)

    def plot_directions(self) -> Any:
        """Figure of the directions that `rpp` learnt."""
        return _plots().plot_directions(self)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write an HTML report."""
        importlib.import_module("raybo.report.html").write_report(self, path)

    def __repr__(self) -> str:
        counts = {s: sum(t.state is s for t in self.trials) for s in State}
        many = ", ".join(f"{n} {state.value}" for state, n in counts.items() if n)
        best = self.best_trial
        lines = [f"Result of study {self.name!r}: {many or 'no trials'} ({self.stop_reason})"]
        if best is not None:
            lines.append(f"  best value {best.value:.6g} ({self.mode}) at trial {best.number}")
            lines.append(f"  {_short(dict(best.config), 200)}")
        lines.append(f"  kept in {self.location}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        def cells(tag: str, values: list[Any]) -> str:
            return "".join(f"<{tag}>{html.escape(str(value))}</{tag}>" for value in values)

        objective = Objective(self.mode)
        done = [trial for trial in self.trials if trial.value is not None]
        done.sort(key=lambda trial: objective.loss(trial.value or 0.0))
        rows = [[t.number, f"{t.value:.6g}", _short(dict(t.config), 120)] for t in done[:_SHOWN]]
        body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
        head = cells("th", ["trial", self.metric or "value", "config"])
        title = html.escape(repr(self).splitlines()[0])
        return f"<p>{title}</p><table><tr>{head}</tr>{body}</table>"


@dataclass(frozen=True)
class StudySummary:
    """One line of a list of studies."""

    name: str
    method: str
    done: int
    failed: int
    pending: int
    best_value: float | None
    mode: str
    state: str  # "running", "stopped" (killed or interrupted), or how it ended
    created: float
    error: str | None = None  # why the journal cannot be read


def load_result(
    name: str, storage: str | os.PathLike[str] = "runs", space: AnySpace | None = None
) -> Result:
    """Result of a study, read from its journal; works while the study runs, and needs no Ray.

    `space` is needed only where JSON cannot hold it: categorical values that are objects.
    """
    store = open_store(storage, name)
    record = load_record(name, storage)
    space = space or space_from_definition(record.header["space"])
    return result_of(record, space, store.location)


def load_record(name: str, storage: str | os.PathLike[str] = "runs") -> Record:
    """Record of a study: its header, settings and trials as they stand in the journal."""
    record = Record.from_contents(open_store(storage, name).read())
    if not record.header:
        known = ", ".join(list_slugs(storage)[:20])
        raise StudyError(
            f"there is no study {name!r} in {str(storage)!r}; "
            + (f"it has {known}" if known else "it has no studies at all")
        )
    return record


def result_of(record: Record, space: AnySpace, location: str) -> Result:
    """Result of a record."""
    header, stopped = record.header, record.stopped or {}
    return Result(
        name=header["name"],
        location=location,
        mode=header["mode"],
        metric=header["metric"],
        method=header["method"],
        space=space,
        trials=[trial_from_json(vars(trial), space) for trial in record.trials],
        elapsed=record.seconds,
        stop_reason=stopped.get("reason", "not ended"),
        use=stopped.get("use"),
    )


def list_studies(storage: str | os.PathLike[str] = "runs") -> list[StudySummary]:
    """Summaries of all studies in `storage`, oldest first; a damaged one says so."""
    return sorted((_summary(s, storage) for s in list_slugs(storage)), key=lambda s: s.created)


def _summary(name: str, storage: str | os.PathLike[str]) -> StudySummary:
    store = open_store(storage, name)
    try:
        record = Record.from_contents(store.read())
    except RuntimeError as error:  # JournalError: one damaged journal must not hide the others
        return StudySummary(name, "", 0, 0, 0, None, "min", "damaged", 0.0, str(error))
    header = record.header
    trials, objective = record.trials, Objective(header.get("mode", "min"))
    values = [trial.value for trial in trials if trial.value is not None]
    ended = (record.stopped or {}).get("outcome", "stopped")
    return StudySummary(
        name=header.get("name", name),
        method=header.get("method", {}).get("name", ""),
        done=sum(trial.state is State.DONE for trial in trials),
        failed=sum(trial.state is State.FAILED for trial in trials),
        pending=sum(trial.state is State.PENDING for trial in trials),
        best_value=min(values, key=objective.loss, default=None),
        mode=objective.mode,
        state="running" if store.holder() else ended,
        created=header.get("created", 0.0),
    )


def _row(trial: Trial, space: AnySpace) -> dict[str, Any]:
    row: dict[str, Any] = {k: v for k, v in vars(trial).items() if k not in ("config", "memo")}
    extra = row.pop("extra")
    row["state"] = trial.state.value
    row["seconds"] = None
    if trial.started is not None and trial.finished is not None:
        row["seconds"] = trial.finished - trial.started
    fields = set(row)
    for path, value in flat_config(trial.config, space).items():
        row[f"config/{path}" if path in fields else path] = value
    return {**row, **{f"extra/{key}": value for key, value in extra.items()}}


def flat_config(config: Mapping[str, Any], space: AnySpace) -> dict[str, Any]:
    """Active parameters of a config by their paths; a choice has the name of its branch."""
    choices = {c.name for c in space.columns if c.kind == "choice"} if space.dense else set()
    flat: dict[str, Any] = {}

    def walk(part: Mapping[str, Any], path: str) -> None:
        for key, value in part.items():
            here = f"{path}{key}"
            if here in choices and isinstance(value, Mapping):
                flat[here] = next(iter(value))
            if isinstance(value, Mapping):
                walk(value, f"{here}/")
            else:
                flat[here] = value

    walk(config, "")
    return flat


def _plots() -> Any:
    """The module that draws, which stands above this one: imported by name, on use."""
    return importlib.import_module("raybo.report.plots")


def _short(value: Any, length: int) -> str:
    text = repr(value)
    return text if len(text) <= length else text[: length - 3] + "..."
