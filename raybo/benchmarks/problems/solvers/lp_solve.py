"""Configuring lp_solve: 40 switches and 7 choices, for the smallest optimality gap (REMBO, 4.3).

The paper gives the solver five seconds; here it gets a number of simplex iterations, so that a
value does not depend on the machine. `Corridor.utility_of` checks its solutions: one
setting in ten returns wrong ones. The paper does not print its 47 parameters. These are the modes
of presolving, pivoting and branching in lp_lib.h, its two default ones against degeneracy, and
where the objective is kept; the two random modes, seeded from the clock, are left out.
"""

from __future__ import annotations

import ctypes.util
import json
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from raybo.benchmarks.problems.base import Problem
from raybo.benchmarks.problems.datasets import DatasetError, Package, cached, fetch
from raybo.benchmarks.problems.solvers import lp_solve_child
from raybo.benchmarks.problems.solvers.corridor import Corridor, draw_corridor, lp_text
from raybo.space.parameters import Categorical
from raybo.space.space import Space

# Switches by the setter of lp_solve's library they go to: name and bit.
SWITCHES: dict[str, dict[str, int]] = {
    "presolve": {
        "rows": 1,
        "cols": 2,
        "lindep": 4,
        "sos": 32,
        "reducemip": 64,
        "knapsack": 128,
        "elimeq2": 256,
        "impliedfree": 512,
        "reducegcd": 1024,
        "probefix": 2048,
        "probereduce": 4096,
        "rowdominate": 8192,
        "coldominate": 16384,
        "mergerows": 32768,
        "impliedslk": 65536,
        "colfixdual": 131072,
        "bounds": 262144,
        "duals": 524288,
    },
    "pivoting": {
        "primalfallback": 4,
        "multiple": 8,
        "adaptive": 32,
        "loopleft": 1024,
        "loopalternate": 2048,
        "harristwopass": 4096,
        "truenormquad": 16384,
    },
    "bb_rule": {
        "weightreverse": 8,
        "branchreverse": 16,
        "greedy": 32,
        "pseudocost": 64,
        "depthfirst": 128,
        "gub": 512,
        "dynamic": 1024,
        "restart": 2048,
        "breadthfirst": 4096,
        "autoorder": 8192,
        "rcostfixing": 16384,
        "stronginit": 32768,
    },
    "anti_degen": {"fixedvars": 1, "stalling": 4},
    "obj_in_basis": {"on": 1},
}
CHOICES: dict[str, dict[str, int]] = {
    "pivoting": {"firstindex": 0, "dantzig": 1, "devex": 2, "steepestedge": 3},
    "bb_rule": {
        "first": 0,
        "gap": 1,
        "range": 2,
        "fraction": 3,
        "pseudocost": 4,
        "pseudononint": 5,
        "pseudoratio": 6,
    },
    "simplextype": {"primal-primal": 5, "dual-primal": 6, "primal-dual": 9, "dual-dual": 10},
    "scaling": {  # with 64 (to -1 .. 1) and 128 (integer columns too), the default's
        "none": 0,
        "extreme": 193,
        "range": 194,
        "mean": 195,
        "geometric": 196,
        "curtisreid": 199,
        "logmean": 211,
    },
    "basiscrash": {"none": 0, "mostfeasible": 2, "leastdegenerate": 3},
    "bb_floorfirst": {"floor": 0, "ceiling": 1, "automatic": 2},
    "improve": {
        "none": 0,
        "solution": 1,
        "dualfeas": 2,
        "thetagap": 4,
        "dualfeas-thetagap": 6,
        "bbsimplex": 8,
        "all-but-solution": 14,
    },
}
_LOOPS = -1  # of presolving: no limit
_LIMIT = 120.0  # seconds until a run is ended: ten times what the slowest setting took
_TRIPLE = sysconfig.get_config_var("MULTIARCH") or ""
PACKAGES = tuple(  # Debian's, in the order to load them
    Package("debian", package, "", {path: ""})  # checksums change with each build of Debian
    for package, path in (
        ("libsuitesparseconfig5", f"usr/lib/{_TRIPLE}/libsuitesparseconfig.so.5"),
        ("libcolamd2", f"usr/lib/{_TRIPLE}/libcolamd.so.2"),
        ("lp-solve", "usr/lib/lp_solve/liblpsolve55.so"),
    )
)


def lp_solve_space() -> Space:
    """Return the space: 40 switches, then 7 choices, named by setter and option."""
    switches = {
        f"{setter}.{name}": Categorical([False, True])
        for setter, bits in SWITCHES.items()
        for name in bits
    }
    return Space({**switches, **{name: Categorical(list(of)) for name, of in CHOICES.items()}})


def settings(config: Mapping[str, Any]) -> dict[str, list[int]]:
    """Return the setters of lp_solve's library, with their arguments."""
    values = {name: of[config[name]] for name, of in CHOICES.items()}
    for setter, bits in SWITCHES.items():
        on = sum(bit for name, bit in bits.items() if config[f"{setter}.{name}"])
        values[setter] = values.get(setter, 0) + on
    return {
        ("set_" + name): [value, _LOOPS] if name == "presolve" else [value]
        for name, value in values.items()
    }


@lru_cache(maxsize=1)
def libraries() -> tuple[str, ...]:
    """Return the paths of the libraries to load, lp_solve last; fetched if not installed."""
    own = Path("/usr/lib/lp_solve/liblpsolve55.so")  # where Debian installs it
    if own.exists() and ctypes.util.find_library("colamd"):
        return (str(own),)
    found = ctypes.util.find_library("lpsolve55")
    if found is not None:
        return (found,)
    try:
        return tuple(str(path) for package in PACKAGES for path in fetch(package).values())
    except DatasetError as error:
        raise DatasetError(
            f"problem 'lp-solve' needs lp_solve 5.5; apt-get install lp-solve ({error})"
        ) from None


@dataclass(frozen=True)
class LpSolve:
    """Optimality gap of the best corridor that lp_solve finds within its budget.

    Attributes
    ----------
    side, seed : int
        Of the instance.
    iterations : int
        Simplex iterations, or nodes where these are more.
    """

    side: int = 8
    seed: int = 3
    iterations: int = 1000

    def __call__(self, config: Mapping[str, Any]) -> float:
        """Return the value at a config: 0 is the optimum, 1 is no solution."""
        instance = draw_corridor(self.side, self.seed)
        return instance.gap(self.run(config, instance)["solutions"])

    def run(self, config: Mapping[str, Any], instance: Corridor) -> dict[str, Any]:
        """Return the answer of the solver (lp_solve_child.py); no solutions where it crashes."""
        model = cached(f"corridor-{self.side}-{self.seed}.lp", partial(_write, instance))
        job = {
            "libraries": libraries(),
            "model": str(model),
            "settings": settings(config),
            "iterations": self.iterations,
            "columns": instance.side**2,
        }
        command = [sys.executable, "-S", "-E", str(lp_solve_child.__file__), json.dumps(job)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_LIMIT, check=True)
        except subprocess.CalledProcessError as error:
            if error.returncode > 0:  # ours, not a crash of the library
                raise DatasetError(f"lp_solve: {error.stderr.decode()[-500:]}") from None
            return {"status": error.returncode, "iterations": 0, "solutions": []}
        except subprocess.TimeoutExpired:
            return {"status": None, "iterations": 0, "solutions": []}
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer


def _write(instance: Corridor, path: Path) -> None:
    path.write_text(lp_text(instance), encoding="utf-8")


def lp_solve() -> Problem:
    """Return the problem on a grid of 8 x 8 cells.

    It is the one of seven instances whose gaps differ most: on the others a random config in forty
    is optimal, or half of all gaps are equal.
    """
    return _problem("lp-solve", LpSolve(), "0.4 s")


def lp_solve_large() -> Problem:
    """Return the problem on a grid of 10 x 10 cells."""
    return _problem("lp-solve-large", LpSolve(10, 1, 2000), "2 s")


def _problem(name: str, objective: LpSolve, cost: str) -> Problem:
    grid = f"{objective.side} x {objective.side}"
    return Problem(
        name,
        lp_solve_space,
        objective,
        optimum=0.0,
        evaluations=200,
        description=f"47 parameters of lp_solve: optimality gap on a {grid} wildlife corridor",
        cost=cost,
    )
