"""A run of lp_solve in a separate process: the library may crash, hang or print.

    python lp_solve_child.py '{"libraries": [...], "model": "file.lp", "settings": {...}, ...}'

prints one line of JSON. It imports nothing but the standard library, to start in milliseconds.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from typing import Any

_BETTER = 16 | 256 | 512  # messages: a feasible, an equal, a better solution
_ABORT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_NEWS = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)


def solve(job: dict[str, Any]) -> dict[str, Any]:
    """Return the solutions that lp_solve finds within its budget.

    Parameters
    ----------
    job
        `libraries`: paths to load, lp_solve last; `model`: a file in lp format; `settings`: name
        of a setter to its arguments; `iterations`: the budget; `columns`: how many to return of
        each solution.

    Returns
    -------
    dict
        `status`, lp_solve's own; `iterations`; `solutions`, each the numbers of those columns
        that are 1.
    """
    for path in job["libraries"]:
        lib = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    lib.read_LP.restype = ctypes.c_void_p
    lib.get_total_iter.restype = lib.get_total_nodes.restype = ctypes.c_longlong
    lib.get_var_primalresult.restype = ctypes.c_double
    lp = ctypes.c_void_p(lib.read_LP(job["model"].encode(), 1, b""))
    if not lp:
        raise ValueError(f"lp_solve cannot read {job['model']}")
    n_rows = lib.get_Norig_rows(lp)
    for name, arguments in job["settings"].items():
        getattr(lib, name)(lp, *arguments)
    solutions: list[list[int]] = []

    def keep() -> None:
        found = [
            column
            for column in range(job["columns"])
            if lib.get_var_primalresult(lp, n_rows + 1 + column) > 0.5
        ]
        if found not in solutions:
            solutions.append(found)

    def enough(_lp: int, _handle: int) -> int:
        spent = max(lib.get_total_iter(lp), lib.get_total_nodes(lp))
        return int(spent > job["iterations"])

    def news(_lp: int, _handle: int, _message: int) -> None:
        keep()

    callbacks = (_ABORT(enough), _NEWS(news))  # kept alive as long as they may be called
    lib.put_abortfunc(lp, callbacks[0], None)
    lib.put_msgfunc(lp, callbacks[1], None, _BETTER)
    status = lib.solve(lp)
    if status in (0, 1):  # optimal, suboptimal
        keep()
    return {"status": status, "iterations": lib.get_total_iter(lp), "solutions": solutions}


if __name__ == "__main__":
    answer = sys.stdout.fileno()
    out = os.dup(answer)
    os.dup2(os.open(os.devnull, os.O_WRONLY), answer)  # drop what the library prints
    os.write(out, json.dumps(solve(json.loads(sys.argv[1]))).encode())
