"""What a task is: problems, rivals, budgets, and the numbers a paper printed for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from raybo.benchmarks.problems.base import BenchmarkError


@dataclass(frozen=True)
class Cell:
    """One run: a rival on a problem with a seed."""

    problem: str
    rival: str
    seed: int
    evaluations: int
    centre: bool = False  # whether the first evaluation is the centre of the space

    @property
    def key(self) -> tuple[str, str, int, int, bool]:
        """What a results file knows the run by."""
        return self.problem, self.rival, self.seed, self.evaluations, self.centre


@dataclass(frozen=True)
class Block:
    """Some problems, each given to some rivals for a number of evaluations."""

    problems: tuple[str, ...]
    rivals: tuple[str, ...]
    evaluations: int


@dataclass(frozen=True)
class Published:
    """A number printed in a paper.

    Attributes
    ----------
    rival : str
        Spec of ours that it is to be compared with, or the paper's name of a rival we do not run.
    evaluations : int
        After how many evaluations.
    value, spread : float
        Mean and, where it is given, standard deviation or error; of the regret or of the best
        value, as the task's `quantity` says.
    """

    problem: str
    rival: str
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
        Rival that the others are tested against.
    cost : str
        What the whole of it takes.
    timing : bool
        Whether the time per ask at 50, 200 and 500 points is measured first.
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
    timing: bool = False

    @property
    def problems(self) -> list[str]:
        """Names of the problems, in order."""
        return _unique(problem for block in self.blocks for problem in block.problems)

    @property
    def rivals(self) -> list[str]:
        """Specs of the rivals, in order."""
        return _unique(rival for block in self.blocks for rival in block.rivals)

    def cells(
        self,
        rivals: Iterable[str] | None = None,
        seeds: int | None = None,
        evaluations: int | None = None,
        problems: Iterable[str] | None = None,
    ) -> Iterator[Cell]:
        """Runs of the task, all problems of one seed before the next seed.

        Parameters
        ----------
        rivals
            Specs to run on every problem instead of the task's own.
        seeds, evaluations
            Numbers to use instead of the task's own.
        problems
            Those of the task's problems to run; all unless given.

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
        for seed in range(self.seeds if seeds is None else seeds):
            seen = set()
            for block in self.blocks:
                for problem in filter(chosen.__contains__, block.problems):
                    for rival in block.rivals if rivals is None else rivals:
                        length = evaluations or block.evaluations
                        cell = Cell(problem, rival, seed, length, self.centre)
                        if cell.key not in seen:
                            seen.add(cell.key)
                            yield cell


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
