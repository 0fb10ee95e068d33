"""The study whose processes are killed: `python -m raybo.benchmarks.faults.target FOLDER`."""

from __future__ import annotations

from pathlib import Path

import click

from raybo.benchmarks.faults.audit import STUDY, LogCallback, LoggedObjective, write_result
from raybo.runtime.optimize import optimize
from raybo.space.parameters import Float

_RETRIES = 1000  # no trial fails for being killed


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--trials", default=200)
@click.option("--workers", default=4)
@click.option("--seconds", nargs=2, default=(0.2, 0.6), help="shortest and longest evaluation")
@click.option("--frozen", default=0.0, help="share of the trials that freeze at once")
@click.option("--timeout", type=float, help="seconds that an evaluation may take")
@click.option("--steps", default=0, help="reports of an evaluation that is not stopped early")
@click.option("--resumes", default=False, help="whether evaluations go on from checkpoints")
def command(
    folder: Path,
    trials: int,
    workers: int,
    seconds: tuple[float, float],
    frozen: float,
    timeout: float | None,
    steps: int,
    resumes: bool,
) -> None:
    """Run, or resume, the study in FOLDER."""
    objective = LoggedObjective(str(folder), seconds, frozen, steps)
    result = optimize(
        objective.resumable if resumes else objective,
        {"x": Float(0, 1)},
        method="random",
        max_trials=trials,
        workers=workers,
        resources={"num_cpus": 0.5},
        timeout=timeout,
        retries=_RETRIES,
        storage=folder,
        name=STUDY,
        callbacks=[LogCallback(folder)],
        max_steps=steps or None,
        stop_early=steps > 0,
    )
    write_result(folder, result.trials)


if __name__ == "__main__":
    command()
