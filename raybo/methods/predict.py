"""What a method expects at given points, and which config is best by that."""

from __future__ import annotations

import numpy as np

from raybo.arrays import Array
from raybo.errors import MethodError
from raybo.methods.auto.default import Auto
from raybo.methods.base import Data, Method
from raybo.methods.model import Modelled, in_losses
from raybo.surrogate.gp import GP
from raybo.surrogate.linalg import one_thread


def predicted_losses(method: Method, data: Data, rows: Array) -> tuple[Array, Array]:
    """Return mean and deviation (m,) of the losses at rows (m, d) of the unit cube.

    Notes
    -----
    Several models are a mixture, weighed by their shares.

    Raises
    ------
    MethodError
        When the method has no such model, or fewer than two losses are known.
    """
    if not has_model(method):
        raise MethodError(
            f"{type(method).__name__} has no model to predict from; use auto, bo, egp, addgp, "
            "addtree, bock, local or ridge"
        )
    if data.n_told < 2:
        raise MethodError(f"a model needs two values, and {data.n_told} have been told")
    mean, square = np.zeros(len(rows)), np.zeros(len(rows))
    with one_thread():
        for share, gp in _beliefs(method, data):
            centre, deviation = in_losses(gp, data.loss, rows)
            mean += share * centre
            square += share * (centre**2 + deviation**2)
    return mean, np.sqrt(np.maximum(square - mean**2, 0.0))


def recommended_row(method: Method, data: Data) -> int:
    """Return the number of the told row, within all bounds, of the least loss that is expected.

    It is the row of the least loss where the method has no model, or no row is within its bounds.
    A row whose trial has not finished is not recommended.
    """
    loss = data.loss
    if has_model(method) and data.n_told >= 2:
        loss, _ = predicted_losses(method, data, data.X)
    return int(np.lexsort((loss, ~data.feasible, ~data.finished))[0])


def has_model(method: Method) -> bool:
    """Whether the method can say what it expects."""
    return isinstance(method, Modelled) or (isinstance(method, Auto) and method.only is None)


def _beliefs(method: Method, data: Data) -> list[tuple[float, GP]]:
    """Models of the told rows, each with its share."""
    if isinstance(method, Modelled):
        return [(1.0, method.model(data)[0])]
    return method.beliefs(data) if isinstance(method, Auto) else []
