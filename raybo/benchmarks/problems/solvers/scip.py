"""Configuring SCIP: 116 parameters, for the smallest gap within a CPU time.

REMBO's section 4.3, with a solver of today instead of lp_solve: how often each primal
heuristic, separator and propagator is called, how many rounds each presolver gets, which rule
picks the next node and which the variable to branch on. SCIP's own values are good and most others
are not: its gap is 0.067, and that of 20 random configs 0.27 in the median, 0.009 at best.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from raybo.benchmarks.problems.base import Problem
from raybo.benchmarks.problems.datasets import DatasetError
from raybo.benchmarks.problems.solvers.corridor import draw_corridor, program
from raybo.space.parameters import Categorical
from raybo.space.space import Space

# Kinds of parameters, and the values each is given: -1 is never (rounds: no limit), 0 only at the
# root (rounds: none), n at every nth level.
KINDS: dict[str, tuple[int, ...]] = {
    r"heuristics/\w+/freq": (-1, 0, 1, 10),
    r"separating/\w+/freq": (-1, 0, 1, 10),
    r"propagating/\w+/freq": (-1, 0, 1, 10),
    r"presolving/\w+/maxrounds": (0, 1, -1),
}
RULES = {"branching": "priority", "nodeselection": "stdpriority"}  # the highest one is used
_HIGHEST = 536870911


def _scip() -> Any:
    try:
        return importlib.import_module("pyscipopt")
    except ImportError:
        raise DatasetError("problem 'scip' needs SCIP; pip install pyscipopt") from None


@lru_cache(maxsize=1)
def defaults() -> dict[str, Any]:
    """Return SCIP's parameters and their default values."""
    found: dict[str, Any] = _scip().Model().getParams()
    return found


def rules(kind: str) -> list[str]:
    """Return the names of the branching rules or node selectors."""
    pattern = re.compile(rf"{kind}/(\w+)/{RULES[kind]}")
    return sorted(match[1] for name in defaults() if (match := pattern.fullmatch(name)))


def scip_space() -> Space:
    """Return the parameters of `KINDS` that this SCIP has, and a choice for each of `RULES`."""
    found = {
        name: Categorical(list(values))
        for kind, values in KINDS.items()
        for name in sorted(defaults())
        if re.fullmatch(kind, name)
    }
    return Space({**found, **{kind: Categorical(rules(kind)) for kind in RULES}})


@dataclass(frozen=True)
class Scip:
    """Optimality gap of the best corridor that SCIP finds in `seconds` of CPU time."""

    side: int = 10
    seed: int = 1
    seconds: float = 2.0

    def __call__(self, config: Mapping[str, Any]) -> float:
        """Return the value at a config, which may leave parameters out; 1 is no solution."""
        instance = draw_corridor(self.side, self.seed)
        p = program(instance)
        model = _scip().Model()
        model.hideOutput()
        variables = [
            model.addVar(vtype="I" if i < p.whole else "C", lb=low, ub=high, obj=gain)
            for i, (low, high, gain) in enumerate(zip(p.low, p.high, p.gain, strict=True))
        ]
        model.setMaximize()
        terms: list[list[Any]] = [[] for _ in p.below]
        for row, column, value in zip(p.matrix.row, p.matrix.col, p.matrix.data, strict=True):
            terms[row].append(float(value) * variables[column])
        for row_terms, below, above in zip(terms, p.below, p.above, strict=True):
            total = _scip().quicksum(row_terms)
            model.addCons(total == above if below == above else total <= above)
        model.setParams({"timing/clocktype": 1, "limits/time": self.seconds})  # 1: CPU time
        for name, value in config.items():
            if name in RULES:
                model.setParam(f"{name}/{value}/{RULES[name]}", _HIGHEST)
            else:
                model.setParam(name, value)
        model.optimize()
        found = [
            [v for v in range(p.whole) if model.getSolVal(solution, variables[v]) > 0.5]
            for solution in model.getSols()
        ]
        return instance.gap(found)


def scip() -> Problem:
    """Return the problem on a 10 x 10 grid."""
    return Problem(
        "scip",
        scip_space,
        Scip(),
        evaluations=200,
        description="116 parameters of SCIP: gap on a 10 x 10 wildlife corridor after 2 s",
        cost="2 s of CPU time, which makes it noisy",
    )
