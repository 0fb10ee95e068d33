"""Formulae of binary and categorical variables that papers on combinatorial tuning compare on.

ackley-53      50 binary and 3 real variables (Wan et al. 2021)
labs-50        binary sequence with low autocorrelations (Packebusch & Mertens 2016)
contamination  when to inspect food, 25 binary variables (Baptista & Poloczek 2018)
pest-control   pesticides at 25 stages, 5 choices each (Oh, Tomczak, Gavves & Welling 2019)
maxsat-60      weights of 300 clauses over 60 binary variables

Variables have no order: each is a Categorical, named x0, x1, ... Random numbers of the simulations
are drawn with seed 0 for all configs, so that values repeat. Bounce's code draws contamination
with seed 42: its best value is 21.44, here it is 21.32. `maxsat-60` is the random instance of the
package bocode, not frb10-6-4 of the MaxSAT Evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybo.arrays import Array
from raybo.benchmarks.problems.base import Problem
from raybo.space.parameters import Categorical, Float
from raybo.space.space import Space

STAGES, RUNS = 25, 100  # of the simulations of contamination and of pest control
THRESHOLD = 0.1  # share of the food, of the plants
VARIABLES, CLAUSES, LITERALS = 60, 300, 3  # of maxsat-60
# Pest control, by pesticide: price, most discount, b of the Beta(1, b) of its effect, and how much
# b grows when it is used (COMBO's code).
_PRICE = (0.0, 1.0, 0.8, 0.7, 0.5)
_DISCOUNT = (0.0, 0.2, 0.3, 0.3, 0.0)
_RESISTANCE = (0.0, 2 / 7, 3 / 7, 3 / 7, 5 / 7)
_GROWTH = (0.0, 1 / 7, 2.5 / 7, 2 / 7, 0.5 / 7)
# The least energy of 50 signs that is known, 153; found again by tabu search.
BEST_LABS = "00000001100000111100110010001010101110010100101101"
# Proved best by branch and bound, and by SCIP.
BEST_CONTAMINATION = "1010110110110110110110110"
BEST_MAXSAT = "100001100110000000000000010001100101000110000011101001111000"
# Where two runs of simulated annealing, 9,000 evaluations each, end.
BEST_PEST_CONTROL = "4444444444444444444444440"


def _space(choices: int, n: int, reals: int = 0) -> Space:
    values = Categorical(tuple(range(choices)))
    return Space(
        {
            **{f"x{i}": values for i in range(n)},
            **{f"x{n + i}": Float(-1.0, 1.0) for i in range(reals)},
        }
    )


def _vector(config: Mapping[str, Any]) -> Array:
    return np.array([config[f"x{i}"] for i in range(len(config))], dtype=np.float64)


def _config(digits: str) -> dict[str, int]:
    return {f"x{i}": int(digit) for i, digit in enumerate(digits)}


def ackley(config: Mapping[str, Any]) -> float:
    """Return Ackley's function; minimum 0 where all variables are 0.

    Notes
    -----
    20 + e - 20 exp(-0.2 sqrt(mean x^2)) - exp(mean cos(2 pi x)).
    """
    x = _vector(config)
    far = 20.0 - 20.0 * math.exp(-0.2 * math.sqrt(np.mean(x**2)))
    return far + math.e - math.exp(np.mean(np.cos(2 * math.pi * x)))


def merit_factor(config: Mapping[str, Any]) -> float:
    """Return n^2 / (2 E) of n signs, E the sum of their squared autocorrelations."""
    signs = 2.0 * _vector(config) - 1.0
    n = len(signs)
    correlations = np.correlate(signs, signs, "full")[n:]
    return n * n / (2.0 * float(correlations @ correlations))


@lru_cache(maxsize=1)
def _food() -> tuple[Array, Array, Array]:
    """First contamination (runs,), its growth and the effect of inspections (stages, runs)."""
    first = np.random.RandomState(0).beta(1.0, 30.0, RUNS)  # COMBO's order
    growth = np.random.RandomState(0).beta(1.0, 17 / 3, (STAGES, RUNS))
    effect = np.random.RandomState(0).beta(1.0, 3 / 7, (STAGES, RUNS))
    return first, growth, effect


def contamination(config: Mapping[str, Any]) -> float:
    """Return the cost of inspections, and of contamination above 0.1 in more than 5% of runs.

    Notes
    -----
    sum_i (1.01 x_i - (share of runs with Z_i < 0.1) + 0.95), where Z_i = a_i (1 - x_i)
    (1 - Z_{i-1}) + (1 - b_i x_i) Z_{i-1}, Z_0 ~ Beta(1, 30), a_i ~ Beta(1, 17/3) and b_i ~
    Beta(1, 3/7): cost 1 and penalty 0.01 for an inspection, as in COMBO.
    """
    Z, growth, effect = _food()
    total = 0.0
    for x, a, b in zip(_vector(config), growth, effect, strict=True):
        Z = a * (1.0 - x) * (1.0 - Z) + (1.0 - b * x) * Z
        total += 1.01 * x - np.mean(Z < THRESHOLD) + 0.95
    return float(total)


def pest_control(config: Mapping[str, Any]) -> float:
    """Return the price of the pesticides, and the stages at which pests exceed 0.1.

    Notes
    -----
    A pesticide that is used on k of the 25 stages is cheaper by k/25 of its most discount, and
    loses effect with every use. 0 is no pesticide: pests then spread.
    """
    chosen = [config[f"x{i}"] for i in range(STAGES)]
    rng = np.random.RandomState(0)  # the numbers of bocode
    pests, resistance = rng.beta(1.0, 30.0, RUNS), list(_RESISTANCE)
    total = 0.0
    for choice in chosen:
        total += _PRICE[choice] * (1.0 - _DISCOUNT[choice] * chosen.count(choice) / STAGES)
        total += float(np.mean(pests > THRESHOLD))
        spread = rng.beta(1.0, 17 / 3, RUNS)
        if choice:
            pests = (1.0 - rng.beta(1.0, resistance[choice], RUNS)) * pests
            resistance[choice] += _GROWTH[choice] / STAGES
        else:
            pests = spread * (1.0 - pests) + pests
    return total


@lru_cache(maxsize=1)
def _clauses() -> tuple[NDArray[np.int64], Array, Array]:
    """Variables and wanted values (clauses, 3) and weights (clauses,) of bocode's instance."""
    rng = np.random.RandomState(0)  # the numbers of bocode
    variables, wanted, weights = [], [], []
    for _ in range(CLAUSES):
        variables.append(rng.choice(VARIABLES, LITERALS, replace=False))
        wanted.append(rng.randint(0, 2, LITERALS))
        weights.append(rng.randint(1, 100))
    return np.array(variables), np.array(wanted, np.float64), np.array(weights, np.float64)


def satisfied(config: Mapping[str, Any]) -> float:
    """Return the weight of the clauses with at least one variable of the wanted value."""
    variables, wanted, weights = _clauses()
    met: Array = (_vector(config)[variables] == wanted).any(axis=1)
    return float(weights @ met)


def _problem(
    name: str,
    space: partial[Space],
    objective: Callable[[Mapping[str, Any]], float],
    optimum: float,
    mode: str,
    about: str,
) -> Problem:
    return Problem(
        name,
        space,
        objective,
        optimum=optimum,
        mode=mode,
        evaluations=200,
        description=about,
        cost="milliseconds",
    )


def ackley_53() -> Problem:
    """Return Ackley's function of 50 binary variables and of 3 in [-1, 1]."""
    about = "Ackley's function of 50 binary and 3 real variables"
    return _problem("ackley-53", partial(_space, 2, 50, 3), ackley, 0.0, "min", about)


def labs_50() -> Problem:
    """Return the merit factor of 50 signs."""
    best = merit_factor(_config(BEST_LABS))
    about = "merit factor of 50 signs: how low their autocorrelations are"
    return _problem("labs-50", partial(_space, 2, 50), merit_factor, best, "max", about)


def contamination_25() -> Problem:
    """Return the control of contamination."""
    best = contamination(_config(BEST_CONTAMINATION))
    about = "at which of 25 stages to inspect food: cost of inspections and of contamination"
    space = partial(_space, 2, STAGES)
    return _problem("contamination", space, contamination, best, "min", about)


def pest_control_25() -> Problem:
    """Return the control of pests; its optimum is the best that is known."""
    best = pest_control(_config(BEST_PEST_CONTROL))
    about = "one of 4 pesticides or none at 25 stages: price, and stages with many pests"
    space = partial(_space, 5, STAGES)
    return _problem("pest-control", space, pest_control, best, "min", about)


def maxsat_60() -> Problem:
    """Return the weighted satisfiability problem."""
    best = satisfied(_config(BEST_MAXSAT))
    about = "weight of the satisfied ones of 300 random clauses over 60 binary variables"
    return _problem("maxsat-60", partial(_space, 2, VARIABLES), satisfied, best, "max", about)
