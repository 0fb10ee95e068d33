"""What one proposal costs, against BoTorch and Optuna in the same run, and what it is worth.

    python -m raybo.benchmarks.timing.proposal             # both parts
    python -m raybo.benchmarks.timing.proposal --times-only --quick

First the mean time of 20 consecutive asks and tells in 20 dimensions, given 50, 200 and 500
evaluated points, one thread each, in one process; by the clock, and in CPU time, which says the
same where nothing else runs and holds on a busy machine too. Then the task "proposal": the best
value after 100 evaluations of five functions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from raybo.benchmarks.problems.base import get_problem
from raybo.benchmarks.run import main, single_thread, wide_console
from raybo.benchmarks.tables.registry import get_task
from raybo.benchmarks.tuners.base import PEERS, build_rival, check_rival, parse_spec, split_specs

PROBLEM = "repeated-hartmann6-20"
SIZES = (50, 200, 500)
ASKS = 20
QUICK_ASKS = 4  # of the peers, with --quick


class Seconds(NamedTuple):
    """Time of one ask and tell."""

    wall: float
    cpu: float  # of this process, all its threads


def _now() -> Seconds:
    return Seconds(time.perf_counter(), time.process_time())


def time_ask(
    spec: str, n: int, asks: int = ASKS, problem: str = PROBLEM, seed: int = 0
) -> Seconds:
    """Mean time of consecutive asks and tells, given n random points of the problem.

    The points are the same for every rival; telling them is not timed, refits are.
    """
    chosen = get_problem(problem)
    space = chosen.space
    rng = np.random.default_rng([seed, n])
    rival = build_rival(spec, space, seed, evaluations=n + asks)
    for row in space.sample(n, rng):
        told = space.decode(row)
        rival.tell(told, chosen.objective(told))
    start = _now()
    for _ in range(asks):
        config = rival.ask()
        rival.tell(config, chosen.objective(config))  # the objective takes microseconds
    end = _now()
    return Seconds((end.wall - start.wall) / asks, (end.cpu - start.cpu) / asks)


def time_asks(
    rivals: Sequence[str],
    *,
    quick: bool = False,
    console: Console | None = None,
    sizes: Sequence[int] = SIZES,
    clock: Callable[[str, int, int], Seconds] = time_ask,
) -> dict[tuple[str, int], Seconds]:
    """Mean time per ask by rival and number of points, printed with the ratios to the first.

    Parameters
    ----------
    rivals
        Specs; the first is what the others are compared with.
    quick
        Ask the peers only a few times.
    console
        Where to print.
    sizes
        Numbers of evaluated points.
    clock
        Measures one rival: (spec, n, asks) -> Seconds.
    """
    console = console or wide_console()
    for spec in rivals:
        check_rival(spec)
        clock(spec, 12, 2)  # imports and first-use costs; 12 exceed every initial design here
    times = {}
    for n in sizes:
        for spec in rivals:
            peer = parse_spec(spec)[0] in PEERS
            seconds = clock(spec, n, QUICK_ASKS if quick and peer else ASKS)
            times[spec, n] = seconds
            ratio = seconds.wall / times[rivals[0], n].wall
            console.print(f"n={n}: {spec} {1000 * seconds.wall:.1f} ms per ask ({ratio:.1f}x)")
    console.print(_table(times, rivals, sizes))
    return times


def _table(
    times: dict[tuple[str, int], Seconds], rivals: Sequence[str], sizes: Sequence[int]
) -> Table:
    table = Table(title="time per ask in 20 dimensions, one thread, refits included")
    table.add_column("points", justify="right")
    for spec in rivals:
        table.add_column(f"{spec}, ms", justify="right")
    for spec in rivals[1:]:
        table.add_column(f"{spec} / {rivals[0]} (CPU)", justify="right")
    for n in sizes:
        own = times[rivals[0], n]
        cells = [f"{1000 * times[spec, n].wall:.1f}" for spec in rivals]
        ratios = [
            f"{times[spec, n].wall / own.wall:.1f} ({times[spec, n].cpu / own.cpu:.1f})"
            for spec in rivals[1:]
        ]
        table.add_row(str(n), *cells, *ratios)
    return table


@click.command()
@click.option("--times-only", is_flag=True, help="leave out the best values")
@click.option("--quick", is_flag=True, help="time fewer asks of the peers")
@click.option("--methods", help="comma-separated rivals; the first is compared with the others")
@click.option("--seeds", type=click.IntRange(1), help="runs per rival and problem")
@click.option("--results", type=click.Path(path_type=Path), help="JSON lines; continued if there")
@click.option("--figure", type=click.Path(path_type=Path), help="HTML file with the curves")
@click.option("--local/--ray", default=True, help="in this process (default), or on Ray")
def command(times_only: bool, methods: str | None, quick: bool, **options: Any) -> None:
    """Compare the time per ask, and the best values, with BoTorch and Optuna."""
    single_thread()
    if times_only:
        task = get_task("proposal")
        time_asks(split_specs(methods) if methods else task.rivals, quick=quick)
    else:
        main("proposal", methods, quick=quick, **options)


if __name__ == "__main__":
    command()
