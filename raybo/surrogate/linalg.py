"""Cholesky factors: with jitter where needed, and extended by rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch
from threadpoolctl import ThreadpoolController
from torch import Tensor

from raybo.errors import SurrogateError

JITTERS = (0.0, 1e-10, 1e-8, 1e-6, 1e-5, 1e-4)  # relative to the mean of the diagonal


def cholesky(K: Tensor) -> Tensor:
    """Lower Cholesky factor of K, with the least jitter on the diagonal that gives one."""
    scale = K.diagonal().mean()
    eye = None
    for jitter in JITTERS:
        if jitter and eye is None:
            eye = torch.eye(len(K), dtype=K.dtype, device=K.device)
        chol: Tensor
        chol, info = torch.linalg.cholesky_ex(K if eye is None else K + jitter * scale * eye)
        if int(info) == 0 and bool(torch.isfinite(chol).all()):
            return chol
    raise SurrogateError(
        f"{len(K)} rows: no Cholesky factor at jitter {JITTERS[-1]}; raise the noise floor"
    )


def extend_cholesky(chol: Tensor, cross: Tensor, corner: Tensor) -> Tensor:
    """Factor of [[K, cross], [cross', corner]] from that of K, in O(n^2) for each new row."""
    below = torch.linalg.solve_triangular(chol, cross, upper=False)
    last = cholesky(corner - below.T @ below)
    n, p = cross.shape
    full = chol.new_zeros(n + p, n + p)
    full[:n, :n], full[n:, :n], full[n:, n:] = chol, below.T, last
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
    return ThreadpoolController()  # finding the libraries takes 20 ms, setting them 0.1 ms


def with_slope(x: Tensor, value: Tensor, slope: Tensor) -> Tensor:
    """`value`, as a function of x with the derivative `slope`.

    A derivative known in closed form, without the overhead of an autograd function: that one
    costs more per call than the small tensors of a proposal do.
    """
    return value + slope * (x - x.detach()) if torch.is_grad_enabled() else value
