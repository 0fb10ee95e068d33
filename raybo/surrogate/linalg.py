"""Cholesky factors: with jitter where needed, and extended by rows."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

import numpy as np
import scipy
from threadpoolctl import ThreadpoolController

from raybo.arrays import Array
from raybo.errors import SurrogateError
from raybo.lazy import Tensor, torch

Values = TypeVar("Values", Tensor, Array)

# Relative to the mean of the diagonal; steps of ten find the least that works to a factor of ten.
JITTERS = (1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4)


def cholesky(K: Tensor) -> Tensor:
    """Lower Cholesky factors of K (..., n, n), with the least jitter that gives all of them."""
    chol: Tensor
    chol, info = torch.linalg.cholesky_ex(K)
    if _is_factor(chol, info):
        return chol
    eye = torch.eye(K.shape[-1], dtype=K.dtype, device=K.device)
    scale = K.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None]
    for jitter in JITTERS:
        chol, info = torch.linalg.cholesky_ex(K + jitter * scale * eye)
        if _is_factor(chol, info):
            return chol
    raise SurrogateError(
        f"{K.shape[-1]} rows: no Cholesky factor at jitter {JITTERS[-1]}; raise the noise floor"
    )


def _is_factor(chol: Tensor, info: Tensor) -> bool:
    return not bool(info.any()) and bool(torch.isfinite(chol).all())


def inverse_and_log_det(K: Values) -> tuple[Values, Values | float]:
    """Inverse of a covariance (n, n), array or tensor, and the logarithm of its determinant."""
    if not isinstance(K, np.ndarray):
        chol = cholesky(K)
        return torch.cholesky_inverse(chol), 2.0 * chol.diagonal().log().sum()
    factor, failed = scipy.linalg.lapack.dpotrf(K, lower=1)
    if failed:
        factor = np.asfortranarray(cholesky(torch.from_numpy(K)).numpy())
    # Zero above the diagonal, as the factor is.
    lower = scipy.linalg.lapack.dpotri(factor, lower=1)[0]
    return lower + np.tril(lower, -1).T, 2.0 * float(np.log(factor.diagonal()).sum())


def extend_cholesky(chol: Tensor, cross: Tensor, corner: Tensor) -> Tensor:
    """Factor of [[K, cross], [cross', corner]] from that of K, in O(n^2) for each new row."""
    below = torch.linalg.solve_triangular(chol, cross, upper=False)
    last = cholesky(corner - below.mT @ below)
    n, p = cross.shape[-2:]
    full = chol.new_zeros(*chol.shape[:-2], n + p, n + p).mT  # in LAPACK's order of memory
    full[..., :n, :n], full[..., n:, :n], full[..., n:, n:] = chol, below.mT, last
    return full


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch, numpy and scipy on one thread, as small solves want, and restore them after."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with _thread_pools().limit(limits=1):
            yield
    finally:
        torch.set_num_threads(before)


@cache
def _thread_pools() -> ThreadpoolController:
    """Find the libraries that have threads: it takes 20 ms, setting them 0.1 ms."""
    importlib.import_module("scipy.linalg")  # whose own is found only if it is loaded
    return ThreadpoolController()


def with_slope(x: Tensor, value: Tensor, slope: Tensor) -> Tensor:
    """`value`, as a function of x with the derivative `slope`.

    A derivative known in closed form, without the overhead of an autograd function: that one
    costs more per call than the small tensors of a proposal do.
    """
    return value + slope * (x - x.detach()) if torch.is_grad_enabled() else value
