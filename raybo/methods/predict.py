"""What the model of a method expects at given points, in the units of the losses."""

from __future__ import annotations

import numpy as np
import torch

from raybo.arrays import Array
from raybo.errors import MethodError
from raybo.methods.base import Data, Method
from raybo.methods.bo.default import Bo
from raybo.methods.egp.default import Egp
from raybo.methods.ridge.default import Ridge
from raybo.surrogate.linalg import one_thread


def predicted_losses(method: Method, data: Data, rows: Array) -> tuple[Array, Array]:
    """Return mean and deviation (m,) of the losses at rows (m, d) of the unit cube.

    Notes
    -----
    The model sees standardised losses. They increase with the losses, so the way back is the
    inverse, linear between the losses that are known and beyond them.

    Raises
    ------
    MethodError
        When the method has no such model, or fewer than two losses are known.
    """
    if not isinstance(method, Bo | Egp | Ridge):
        raise MethodError(
            f"{type(method).__name__} has no model to predict from; use bo, egp or ridge"
        )
    if data.n_told < 2:
        raise MethodError(f"a model needs two values, and {data.n_told} have been told")
    with one_thread():
        gp, _ = method.model(data)
        found = gp.posterior(torch.as_tensor(rows, device=gp.X.device))
    y = gp.y.cpu().numpy()
    mean = found.mean.cpu().numpy()
    spread = found.variance.cpu().numpy() ** 0.5
    low, middle, high = (_inverse(y, data.loss, mean + k * spread) for k in (-1, 0, 1))
    return middle, (high - low) / 2


def _inverse(y: Array, loss: Array, at: Array) -> Array:
    """Losses of standardised losses, by the pairs (y, loss) that are known."""
    known, first = np.unique(y, return_index=True)
    values = loss[first]
    if len(known) == 1:
        return np.full(len(at), values[0])
    i = np.clip(np.searchsorted(known, at) - 1, 0, len(known) - 2)
    slope = (values[i + 1] - values[i]) / (known[i + 1] - known[i])
    return np.asarray(values[i] + slope * (at - known[i]))
