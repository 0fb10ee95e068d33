"""Tasks: problems, tuners, budgets, and the numbers that a paper prints for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from raybo.benchmarks.problems.base import BenchmarkError

STOPS = (20, 50, 100)  # evaluations after which a suite is scored


@dataclass(frozen=True)
class Cell:
    """One run: a tuner on a problem with a seed."""

    problem: str
    tuner: str
    seed: int
    evaluations: int
    centre: bool = False  # whether the first evaluation is the centre of the space


@dataclass(frozen=True)
class Block:
    """Problems, each given to the same tuners for the same number of evaluations."""

    problems: tuple[str, ...]
    tuners: tuple[str, ...]
    evaluations: int


@dataclass(frozen=True)
class Published:
    """A number printed in a paper.

    Attributes
    ----------
    tuner : str
        Spec of the tuner to compare it with, or the paper's name of one that we do not run.
    evaluations : int
        Number of evaluations after which it was taken.
    value, spread : float
        Mean and, where it is given, standard deviation or error; of the regret or of the best
        value, as the task's `quantity` says.
    """

    problem: str
    tuner: str
    evaluations: int
    value: float
    spread: float | None = None


@dataclass(frozen=True)
class Task:
    """One table or figure.

    Attributes
    ----------
    source : str
        Where the numbers come from.
    blocks : tuple of Block
        What is run.
    seeds : int
        Runs per cell; the paper's number of runs.
    centre : bool
        Whether every run starts at the centre of the space.
    quantity : str
        "regret" or "value": what the table shows.
    reference : str
        Tuner that the others are tested against.
    cost : str
        What all of it takes.
    """

    name: str
    source: str
    blocks: tuple[Block, ...]
    seeds: int
    reference: str
    cost: str
    quantity: str = "value"
    centre: bool = False
    published: tuple[Published, ...] = ()

    @property
    def problems(self) -> list[str]:
        """Return the names of the problems, in order."""
        return _unique(problem for block in self.blocks for problem in block.problems)

    @property
    def tuners(self) -> list[str]:
        """Return the specs of the tuners, in order."""
        return _unique(tuner for block in self.blocks for tuner in block.tuners)

    def cells(
        self,
        tuners: Iterable[str] | None = None,
        seeds: int | None = None,
        evaluations: int | None = None,
        problems: Iterable[str] | None = None,
        first_seed: int = 0,
    ) -> Iterator[Cell]:
        """Yield the runs of the task, all problems of one seed before the next seed.

        Parameters
        ----------
        tuners
            Specs to run on every problem instead of the task's own.
        seeds, evaluations
            Numbers to use instead of the task's own.
        problems
            Those of the task's problems to run; all unless given.
        first_seed
            Seeds are first_seed, first_seed + 1, ...

        Raises
        ------
        BenchmarkError
            When the task has no such problem.
        """
        chosen = set(self.problems if problems is None else problems)
        if unknown := chosen - set(self.problems):
            raise BenchmarkError(
                f"{self.name} has no problem {min(unknown)!r}; it has {', '.join(self.problems)}"
            )
        for seed in range(first_seed, first_seed + (self.seeds if seeds is None else seeds)):
            seen = set()
            for block in self.blocks:
                for problem in filter(chosen.__contains__, block.problems):
                    for tuner in block.tuners if tuners is None else tuners:
                        length = evaluations or block.evaluations
                        cell = Cell(problem, tuner, seed, length, self.centre)
                        if cell not in seen:
                            seen.add(cell)
                            yield cell


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
