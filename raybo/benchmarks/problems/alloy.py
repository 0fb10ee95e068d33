"""Composition and heat treatment of an aluminium alloy, by its equilibrium phases (EGP, 4.3).

The paper optimises AA-2050 with 9 elements and 4 operating parameters, by a utility of phase
fractions at several temperatures, computed with ThermoCalc; utility and ranges are not printed.
Here pycalphad computes the equilibria from the COST 507 database, which has AA-2050's own lithium
and no scandium. Eight solutes and the temperatures of four steps are free; aluminium is the rest.

The utility is high when the homogenised and the solution-treated alloy is one solid solution
without liquid; when the aged alloy has the strengthening phases T1 (Al2CuLi) and theta',
dispersoids of Zr and Mn, and little of the coarse phases; and when over-ageing changes little.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from raybo.benchmarks.problems.base import Problem
from raybo.benchmarks.problems.datasets import DatasetError
from raybo.space.parameters import Float
from raybo.space.space import Space

SOLUTES = {  # per cent by weight: lowest, highest, AA-2050's
    "CU": (2.0, 5.0, 3.6),
    "LI": (0.5, 2.5, 1.0),
    "MG": (0.0, 1.5, 0.4),
    "ZN": (0.0, 1.0, 0.1),
    "MN": (0.0, 1.0, 0.35),
    "ZR": (0.0, 0.3, 0.1),
    "TI": (0.0, 0.2, 0.03),
    "CR": (0.0, 0.3, 0.03),
}
STEPS = {  # kelvin: lowest, highest, usual
    "homogenise": (740.0, 830.0, 790.0),
    "solution": (740.0, 810.0, 775.0),
    "age": (400.0, 480.0, 428.0),
    "over_age": (480.0, 560.0, 500.0),
}
PHASES = (  # those that occur in the ranges; all 106 candidates take ten times as long
    "FCC_A1", "LIQUID", "ALCULI_T1", "ALCULI_T2", "ALCULI_TB", "ALCULI_R", "ALCU_THETA", "SPHASE",
    "TAU", "AL3ZR", "AL3M_D022", "AL6MN", "AL12MN", "AL4MN", "AL11MN4", "AL13CR2", "AL11CR2",
    "ALLI", "ALLIMG_TAU", "MGZN2", "LAVES_C14", "LAVES_C15", "ALCUZN_T", "ALMG_BETA", "ALMGMN_T",
    "VPHASE", "PHI", "AL12MG17",
)  # fmt: skip
STRENGTH = {"ALCULI_T1": 20.0, "ALCU_THETA": 8.0, "AL3ZR": 20.0, "AL12MN": 4.0, "AL6MN": 4.0}
COARSE = ("ALCULI_T2", "ALCULI_TB", "ALCULI_R", "TAU", "SPHASE", "ALLI", "AL13CR2", "AL3M_D022")
_PRESSURE = 101325.0

Fractions = dict[str, float]  # moles of atoms in a phase, of one


@lru_cache(maxsize=1)
def _workspace() -> tuple[Any, Any]:
    """Return pycalphad's variables, and a workspace whose conditions each equilibrium sets."""
    try:
        pycalphad = importlib.import_module("pycalphad")
    except ImportError:
        raise DatasetError("problem 'alloy' needs pycalphad; pip install pycalphad") from None
    file = Path(str(pycalphad.__file__)).parent / "tests" / "databases" / "COST507.tdb"
    if not file.exists():
        raise DatasetError(f"{file} is not in this pycalphad; pip install pycalphad==0.11.2")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # definitions in the file that no phase uses
        database = pycalphad.Database(str(file))
        names = ["AL", *SOLUTES, "VA"]
        return pycalphad.variables, pycalphad.Workspace(database, names, list(PHASES), {})


def phases(weight: Mapping[str, float], kelvin: float) -> Fractions:
    """Return the phases in equilibrium of solutes (per cent by weight) at a temperature."""
    v, workspace = _workspace()
    least = {name: max(weight[name], 1e-3) for name in SOLUTES}  # the solver needs some of each
    least["AL"] = 100.0 - sum(least.values())
    moles = {name: w / workspace.database.refstates[name]["mass"] for name, w in least.items()}
    total = sum(moles.values())
    shares = {v.X(name): moles[name] / total for name in SOLUTES}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        workspace.conditions = {v.T: kelvin, v.P: _PRESSURE, v.N: 1.0, **shares}
        found = workspace.eq
    names = found.Phase.squeeze().tolist()
    fractions: Fractions = {}
    for name, amount in zip(names, found.NP.squeeze().tolist(), strict=True):
        if name and amount == amount:
            fractions[name] = fractions.get(name, 0.0) + float(amount)
    return fractions


def utility(config: Mapping[str, Any]) -> float:
    """Return the utility that the module's docstring describes; larger is better."""
    hot = [phases(config, config[step]) for step in ("homogenise", "solution")]
    aged, over = (phases(config, config[step]) for step in ("age", "over_age"))
    single = sum(found.get("FCC_A1", 0.0) - 10.0 * found.get("LIQUID", 0.0) for found in hot) / 2
    kept = sum(min(aged.get(name, 0.0), over.get(name, 0.0)) for name in STRENGTH)
    return single + _strength(aged) + 5.0 * kept - 1.0


def _strength(found: Fractions) -> float:
    good = sum(weight * found.get(name, 0.0) for name, weight in STRENGTH.items())
    return good - 10.0 * sum(found.get(name, 0.0) for name in COARSE)


def alloy_space() -> Space:
    """Return the space: solutes by symbol, in per cent by weight, and temperatures by step."""
    bounds = {**SOLUTES, **STEPS}
    return Space({name: Float(low, high) for name, (low, high, _) in bounds.items()})


AA2050 = {name: usual for name, (_, _, usual) in {**SOLUTES, **STEPS}.items()}


@dataclass(frozen=True)
class Alloy:
    """Utility of an alloy, a function of its composition and temperatures."""

    def __call__(self, config: Mapping[str, Any]) -> float:
        """Return the utility of a config of `alloy_space`."""
        return utility(config)


def alloy() -> Problem:
    """Return the problem in 12 dimensions."""
    return Problem(
        "alloy",
        alloy_space,
        Alloy(),
        mode="max",
        evaluations=100,
        description="AA-2050: utility of 8 solutes and 4 temperatures, by equilibria",
        cost="1 to 3 s",
    )
