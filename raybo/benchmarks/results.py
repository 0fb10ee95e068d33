"""Results files: one JSON line for each finished run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.tables.base import Cell

_TUNER = "rival"  # the tuner's field in a results file
_DEPLOYED = "deployed"  # left out of the lines of problems without noise


class Deployed(NamedTuple):
    """What the configs that a tuner may deploy are worth on a noisy problem, without the noise.

    Attributes
    ----------
    evaluations : int
        Number of evaluations after which they were taken.
    luckiest : float
        Value of the config of the best noisy value.
    recommended : float
        Value of the config that the tuner recommends.
    """

    evaluations: int
    luckiest: float
    recommended: float


@dataclass(frozen=True)
class Finished:
    """A finished run, a line of a results file.

    Attributes
    ----------
    cell : Cell
        What was run.
    mode : str
        "min" or "max".
    optimum : float, optional
        Best possible value of the problem; None when it is not known.
    values : list of float
        Value of the objective at each evaluation.
    seconds : list of float
        Processor time that the tuner spent on each ask and tell together, empty where it was not
        measured; elapsed time in runs that are older than the suites.
    version : str
        Package and version of the tuner.
    finished : str
        Date and time in UTC.
    deployed : list of Deployed
        For a noisy problem, what deploying would give, without the noise; else empty.
    """

    cell: Cell
    mode: str
    optimum: float | None
    values: list[float]
    seconds: list[float]
    version: str = ""
    finished: str = ""
    deployed: list[Deployed] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the fields of a line, those of the cell first."""
        fields = asdict(self)
        cell = fields.pop("cell")
        if not self.deployed:
            del fields[_DEPLOYED]
        return {(_TUNER if name == "tuner" else name): x for name, x in {**cell, **fields}.items()}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Finished:
        """Return the run of a line's fields; KeyError or TypeError when one is missing."""
        rest = dict(fields)
        rest["tuner"] = rest.pop(_TUNER)
        cell = Cell(**{name: rest.pop(name) for name in Cell.__dataclass_fields__})
        rest[_DEPLOYED] = [Deployed(*entry) for entry in rest.get(_DEPLOYED, [])]
        return cls(cell, **rest)


def rounded(value: float, digits: int = 8) -> float:
    """Return the value with as many significant digits as results files keep."""
    return float(f"{value:.{digits}g}")


def read_finished(path: Path) -> list[Finished]:
    """Return the runs of a results file; an unfinished last line is left out.

    Raises
    ------
    BenchmarkError
        When any other line is damaged.
    """
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")
    runs = []
    for number, line in enumerate(lines[:-1], start=1):
        try:
            runs.append(Finished.from_json(json.loads(line)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BenchmarkError(
                f"{path}:{number}: not a benchmark record ({error}); remove the line or the file"
            ) from None
    return runs


def append_finished(path: Path, run: Finished) -> None:
    """Add one line to a results file; an unfinished last line is cut off first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        complete = file.read().rfind(b"\n") + 1
        if complete < size:
            file.truncate(complete)
        file.write(json.dumps(run.to_json()).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
