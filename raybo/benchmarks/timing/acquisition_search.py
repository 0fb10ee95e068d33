"""Elastic search of an acquisition against multi-start search in the same time.

    raybo bench acquisition-search                          # EI, d = 20 and 50, 20 seeds
    raybo bench acquisition-search --acquisition log_ei

For each seed a Gaussian process is given 3 d random points of a function, once with the EGP
paper's length-scale, 0.1, and once with a fitted one. Each elastic search of its acquisition is
compared with multi-start from the same kind of starts, repeated until it has used as much CPU
time: first both from random points only, as in the paper; then both as raybo uses them, from the
best of many points spread over the cube and around the best so far.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from raybo.acquisition.maximizers.base import Acquisition, Maximizer, Region, values
from raybo.acquisition.maximizers.elastic import Elastic, largest_multiple
from raybo.acquisition.maximizers.lbfgsb import Lbfgsb
from raybo.benchmarks.problems.registry import get_problem
from raybo.benchmarks.terminal import single_thread, wide_console
from raybo.methods.base import FULL, Data
from raybo.methods.bo.default import ACQUISITIONS
from raybo.methods.egp.default import Egp
from raybo.methods.egp.published import PublishedEgp
from raybo.methods.search import acquisition_family, acquisition_of, search_region
from raybo.space.any_space import AnySpace
from raybo.study.objective import Objective
from raybo.surrogate.gp import GP
from raybo.surrogate.linalg import one_thread

PROBLEMS = ("gaussian-20", "rosenbrock-20", "gaussian-50", "rosenbrock-50")
MODELS = {"l = 0.1": "paper", "l fitted": "default"}  # by the preset of egp
STARTS = ("random", "screened")
POINTS_PER_DIM = 3
N_STARTS = FULL.n_starts
TIE = 1e-6  # relative: values this near are the same peak


@dataclass(frozen=True)
class Outcome:
    """Acquisition found by the elastic search and by multi-start, and the time of the former."""

    elastic: float
    multistart: float
    seconds: float


def random_data(problem: str, seed: int) -> tuple[AnySpace, Data]:
    """Return the space of a problem, and random points of it with their losses."""
    chosen = get_problem(problem)
    space, loss = chosen.space, Objective(chosen.mode).loss
    n = POINTS_PER_DIM * space.dim
    X = space.sample(n, np.random.default_rng([seed, n]))
    losses = np.array([loss(chosen.objective(space.decode(x))) for x in X])
    none = np.empty((0, space.dim))
    return space, Data(n, seed, X, losses, ({},) * n, none, ())


def compare(problem: str, preset: str, acquisition: str, starts: str, seed: int) -> Outcome:
    """Run one elastic search, and multi-start for as long."""
    space, data = random_data(problem, seed)
    method = PublishedEgp(space) if preset == "paper" else Egp(space)
    gp, _ = method.model(data)
    rng = np.random.default_rng([seed, 1])
    f = acquisition_of(gp, acquisition, gp.fitted().min(), len(data.loss))

    def region() -> Region:
        whole = search_region(space, data, rng)
        return (
            whole if starts == "screened" else replace(whole, starts=space.sample(N_STARTS, rng))
        )

    elastic, seconds = _search(_elastic(gp, acquisition, starts), f, region, rng, 0.0)
    multistart, _ = _search(Lbfgsb(N_STARTS), f, region, rng, seconds)
    return Outcome(elastic, multistart, seconds)


def _elastic(gp: GP, acquisition: str, starts: str) -> Elastic:
    def of(wide: GP) -> Acquisition:
        return acquisition_of(wide, acquisition, wide.fitted().min(), len(wide.X))

    family = acquisition_family(gp, of)
    search = Elastic(family, largest_multiple(gp), N_STARTS)
    return search if starts == "screened" else replace(search, n_screened=0)


def _search(
    maximize: Maximizer,
    f: Acquisition,
    region: Callable[[], Region],
    rng: np.random.Generator,
    seconds: float,
) -> tuple[float, float]:
    """Search until `seconds` are used, at least once; return the best value and the time."""
    begin, best = time.process_time(), -np.inf
    while True:
        x = maximize(f, region(), rng)
        best = max(best, float(values(f, x[None])[0]))
        spent = time.process_time() - begin
        if spent >= seconds:
            return best, spent


def count_wins(outcomes: Sequence[Outcome]) -> tuple[int, int]:
    """Return the number of wins of the elastic search, and of ties."""
    gains = np.array([o.elastic - o.multistart for o in outcomes])
    tied = np.abs(gains) <= TIE * np.array([abs(o.elastic) for o in outcomes])
    return int(np.sum((gains > 0) & ~tied)), int(np.sum(tied))


def print_comparison(
    problems: Sequence[str], acquisition: str, seeds: int, console: Console
) -> None:
    """Run all comparisons and print their table, a section per problem."""
    table = Table(title=f"{acquisition}: elastic against multi-start in the same time")
    for name in ("problem", "model", "starts"):
        table.add_column(name)
    for name in ("elastic wins", "ties", "elastic", "multi-start", "seconds"):
        table.add_column(name, justify="right")
    for problem in problems:
        for model, preset in MODELS.items():
            for starts in STARTS:
                with one_thread():
                    runs = [compare(problem, preset, acquisition, starts, s) for s in range(seeds)]
                wins, ties = count_wins(runs)
                medians = np.median([(r.elastic, r.multistart, r.seconds) for r in runs], axis=0)
                texts = (f"{medians[0]:.4g}", f"{medians[1]:.4g}", f"{medians[2]:.3f}")
                last = (model, starts) == (list(MODELS)[-1], STARTS[-1])
                row = (problem, model, starts, f"{wins} of {seeds}", str(ties), *texts)
                table.add_row(*row, end_section=last)
    console.print(table)


@click.command()
@click.option("--acquisition", type=click.Choice(ACQUISITIONS), default="ei")
@click.option("--seeds", type=click.IntRange(1), default=20)
@click.option("--problems", default=",".join(PROBLEMS), help="comma-separated")
def command(acquisition: str, seeds: int, problems: str) -> None:
    """Compare acquisition searches at equal time."""
    single_thread()
    print_comparison(problems.split(","), acquisition, seeds, wide_console())
