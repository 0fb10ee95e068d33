"""Write the trials of a study for other programs: CSV, Parquet, or a database of Optuna."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raybo.errors import StudyError
from raybo.space.box import Box
from raybo.study.outcome import Outcome
from raybo.views.optuna_mirror import box_cells, text, write_optuna

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = {"csv": ".csv", "parquet": ".parquet", "optuna": ".db"}


_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet may execute begins with these


def write_table(outcome: Outcome, to: str, path: Path, raw: bool = False) -> None:
    """Write the trials of a study to a file.

    Parameters
    ----------
    outcome
        The study; a `Result` is one.
    to
        "csv", "parquet" or "optuna"; the last is an SQLite file for optuna and
        optuna-dashboard, to which studies of other names are added.
    path
        File to write; an existing table is replaced.
    raw
        Whether texts go into a CSV as they are. Otherwise one that a spreadsheet would take for a
        formula gets an apostrophe in front: names and values may come from somebody else.

    Raises
    ------
    StudyError
        When the file cannot be written, or Optuna is not installed.
    """
    if to not in SUFFIXES:
        raise StudyError(f"cannot export to {to!r}; choose one of {', '.join(SUFFIXES)}")
    if to == "optuna":
        return write_optuna(outcome, path)
    frame = table(outcome)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if to == "csv":
            (frame if raw else _without_formulas(frame)).to_csv(path, index=False)
        else:
            frame.to_parquet(path, index=False)
    except OSError as error:
        raise StudyError(f"cannot write {path}: {error.strerror or error}") from error


def frame_of(outcome: Outcome) -> pd.DataFrame:
    """Return a table of the trials: fields, parameters in the order of the space, extras.

    Its columns are those of `outcome.rows()`; times are dates in UTC, none where a damaged journal
    has a time beyond all dates.
    """
    import pandas as pd  # noqa: PLC0415  (slow to import, seldom needed)

    frame = pd.DataFrame(outcome.rows())
    for name in ("started", "finished"):
        if name in frame:
            times = pd.to_datetime(frame[name], unit="s", utc=True, errors="coerce")
            frame[name] = times.dt.round("us")
    columns = outcome.space.columns if outcome.space.dense else ()
    places = {column.name: place for place, column in enumerate(columns, start=1)}

    def place(name: str) -> float:
        if name.startswith("extra/"):
            return math.inf
        is_field = f"config/{name}" in frame  # and a parameter of that name is prefixed
        return 0 if is_field else places.get(name.removeprefix("config/"), 0)

    ordered = sorted(map(str, frame.columns), key=place)
    return frame[ordered]


def table(outcome: Outcome) -> pd.DataFrame:
    """Return a table of plain values, with a column per coordinate of a box.

    A cell that is neither a number nor a text is JSON; so is a vector of over 1000 dimensions,
    written as what its coordinates are computed from.
    """
    import pandas as pd  # noqa: PLC0415  (slow to import, seldom needed)

    frame = frame_of(outcome)
    if isinstance(outcome.space, Box) and "x" in frame:
        boxes = [box_cells(trial, outcome.space) for trial in outcome.trials]
        place = list(frame.columns).index("x")
        parts = [frame.iloc[:, :place], pd.DataFrame(boxes), frame.iloc[:, place + 1 :]]
        frame = pd.concat(parts, axis=1)
    for name in frame.columns:
        values = frame[name].tolist()
        kinds = {type(v) for v in values if v is not None and v == v}
        if not kinds <= {bool, int, float} and kinds not in ({str}, {pd.Timestamp}):
            frame[name] = [None if v is None or v != v else text(v) for v in values]
    return frame


def _without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with an apostrophe before every text that looks like a formula."""

    def quoted(cell: Any) -> Any:
        return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell

    return frame.map(quoted).rename(columns=quoted)
