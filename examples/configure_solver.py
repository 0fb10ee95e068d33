"""Configure a solver: 47 discrete parameters of lp_solve, by four interleaved searches of REMBO.

Few of the 47 matter. REMBO searches random 5-dimensional subspaces, each with a proposer actor of
its own, and compares settings by how many of their values differ (kernel "categorical"). What is
minimised is the optimality gap that the solver reaches within 1000 simplex iterations on a
wildlife-corridor problem. On Debian and Ubuntu lp_solve is fetched on first use; elsewhere install
it (see the error message).
"""

import argparse

import raybo
from raybo.benchmarks.problems.solvers.lp_solve import LpSolve, libraries, lp_solve_space

DEFAULT = {  # lp_solve's own settings, to begin with; all other switches are off
    "pivoting.adaptive": True,
    "pivoting": "devex",
    "bb_rule": "first",
    "simplextype": "dual-primal",
    "scaling": "geometric",
    "basiscrash": "none",
    "bb_floorfirst": "ceiling",
    "improve": "dualfeas-thetagap",
    "obj_in_basis.on": True,
}


def gap(config):
    """Optimality gap: 0 is the optimum, 1 no solution at all."""
    return LpSolve(side=8, seed=3, iterations=1000)(config)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=120)
    trials = parser.parse_args().trials
    libraries()  # fetched once, before the workers need it
    space = lp_solve_space()
    start = {column.name: DEFAULT.get(column.name, False) for column in space.columns}
    print(f"gap with lp_solve's own settings: {gap(start):.4f}")
    result = raybo.optimize(
        gap,
        space,
        method="rembo",
        method_options={"d": 5, "k": 4, "kernel": "categorical"},
        max_trials=trials,
        evaluated=[(start, gap(start))],
        seed=0,
    )
    print(result)
    changed = {k: v for k, v in result.best_config.items() if v != start[k]}
    print(f"settings changed: {changed}")
    result.report("configure_solver.html")
    print("report: configure_solver.html")
