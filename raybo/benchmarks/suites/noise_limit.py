"""`raybo bench noise-limit`: what the noise of the tables of trained networks leaves to a tuner.

The best known value of such a table is the luckiest of thousands of means over a few training
seeds. How much of the regret that tuners have there could be avoided? An oracle is told what the
configs next to each config are worth, without noise, which no tuner knows. All of its evaluations
go to finding the best among the configs with the best neighbours: with one draw of each, or with
more draws of the promising ones (top-two Thompson sampling, Russo 2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import click
import numpy as np
from rich.table import Table

from raybo.arrays import Array
from raybo.benchmarks.problems.recorded.grids import GRIDS, means, values
from raybo.benchmarks.suites.registry import BUDGET
from raybo.benchmarks.terminal import wide_console
from raybo.methods.model import unordered_columns
from raybo.study.objective import Objective

NEAR_BEST = 500  # configs with the best neighbours, from which the oracle knows the deviations
ARMS = (100, 50, 25, 12)  # configs that are drawn at all, the rest of the draws are repeats


@click.command()
@click.option("--repeats", type=click.IntRange(1), default=200, show_default=True)
def command(repeats: int) -> None:
    """Print the mean normalised regret of the oracle on each table."""
    shown = Table(title=f"an oracle that knows every config's neighbours, {BUDGET} evaluations")
    shown.add_column("table")
    shown.add_column("best neighbours", justify="right")
    for n in ARMS:
        shown.add_column(f"{n} configs", justify="right")
    rows = []
    for name in GRIDS:
        table = Oracle.of(name)
        nearest = float(np.median(table.regret[:20]))
        rows.append([nearest, *(table.mean_regret(n, repeats) for n in ARMS)])
        shown.add_row(name, *(f"{x:.3f}" for x in rows[-1]))
    shown.add_section()
    shown.add_row("mean", *(f"{x:.3f}" for x in np.mean(rows, axis=0)))
    console = wide_console()
    console.print(shown)
    console.print(
        "best neighbours: median regret of the 20 configs with the best neighbours; other "
        "columns: regret of the config that is deployed when so many configs are drawn at all"
    )


@dataclass(frozen=True)
class Oracle:
    """The configs of a table with the best neighbours, best first, in normalised regret.

    Attributes
    ----------
    expected, regret : array (n,)
        Mean of the neighbours of each config, and its own mean over all seeds.
    draws : array (n, seeds)
        Each training; NaN where there are fewer.
    """

    expected: Array
    regret: Array
    draws: Array

    @classmethod
    def of(cls, name: str) -> Oracle:
        """Return the oracle of a table."""
        family = GRIDS[name][0]
        sign = Objective(family.mode).loss(1.0)
        loss, draws = sign * means(name), sign * values(name)
        best, median = loss.min(), np.median(loss)
        regret, draws = ((part - best) / (median - best) for part in (loss, draws))
        expected = neighbours(regret, unordered_columns(family.space())).ravel()
        rows = np.argsort(expected)[:NEAR_BEST]
        flat = draws.reshape(regret.size, -1)
        return cls(expected[rows], regret.ravel()[rows], flat[rows])

    def mean_regret(self, n: int, repeats: int) -> float:
        """Return the mean regret of what is deployed when n configs are drawn at all."""
        found = [self.deployed(n, np.random.default_rng([n, i])) for i in range(repeats)]
        return float(np.mean(self.regret[found]))

    def deployed(self, n: int, rng: np.random.Generator) -> int:
        """Return the config that is expected to be best after all draws."""
        own = np.var(self.regret - self.expected)
        noise = np.nanmean(np.nanvar(self.draws, axis=1, ddof=1))
        seeds = np.count_nonzero(~np.isnan(self.draws[:n]), axis=1)
        count, total = np.zeros(n), np.zeros(n)

        def posterior() -> tuple[Array, Array]:
            variance = 1.0 / (1.0 / own + count / noise)
            return variance * (self.expected[:n] / own + total / noise), variance

        def promising() -> int:
            mean, variance = posterior()
            return int(np.argmin(mean + np.sqrt(variance) * rng.standard_normal(n)))

        for draw in range(BUDGET):
            i = draw if draw < n else promising()
            if draw >= n and rng.random() < 0.5:
                others = (promising() for _ in range(n))
                i = next((other for other in others if other != i), i)
            count[i] += 1
            total[i] += self.draws[i, rng.integers(seeds[i])]
        return int(np.argmin(posterior()[0]))


def neighbours(table: Array, unordered: Sequence[int]) -> Array:
    """Return the mean of the configs that differ in one parameter, for each config.

    The next value up or down counts, and of the `unordered` parameters every other value.
    """
    total, count = np.zeros_like(table), np.zeros_like(table)
    for axis, size in enumerate(table.shape):
        if axis in unordered:
            total += table.sum(axis=axis, keepdims=True) - table
            count += size - 1
            continue
        low = tuple(slice(0, size - 1) if a == axis else slice(None) for a in range(table.ndim))
        high = tuple(slice(1, size) if a == axis else slice(None) for a in range(table.ndim))
        for here, there in ((low, high), (high, low)):
            total[here] += table[there]
            count[here] += 1
    return total / count
