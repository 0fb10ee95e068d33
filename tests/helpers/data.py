"""Builders of `Data`, for tests that call a method's `propose` directly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from raybo.methods.base import Data
from raybo.methods.rembo.embedding import Embedding
from raybo.space.any_space import AnySpace


def data_of(
    space: AnySpace,
    n: int,
    loss: np.ndarray | Callable[[np.ndarray], float],
    *,
    pending: int = 0,
    X: np.ndarray | None = None,
    memos: Sequence[Mapping[str, Any]] | None = None,
    number: int | None = None,
    seed: int = 0,
) -> Data:
    """Return data with `n` finished and `pending` running trials, all drawn from the space.

    Parameters
    ----------
    space
        A space whose rows are too long to keep gives rows with no columns.
    loss
        Losses (n,), or a function of one row of the unit cube.
    X
        Rows (n + pending, d) to use in place of drawn ones.
    memos
        Memos of the finished trials, then of the running ones; by default all are empty.
    number
        Number of the trial to propose; by default the next one.
    seed
        Seed of the drawn rows and of the study.
    """
    total = n + pending
    if X is None:
        X = np.empty((total, 0))
        if space.dense:
            X = space.sample(total, np.random.default_rng(seed))
    memos = tuple(memos or ({},) * total)
    return Data(
        number=total if number is None else number,
        seed=seed,
        X=X[:n],
        loss=np.array([loss(x) for x in X[:n]]) if callable(loss) else np.asarray(loss),
        memos=memos[:n],
        pending=X[n:],
        pending_memos=memos[n:],
    )


def data_in(embedding: Embedding, n: int, pending: int = 0) -> Data:
    """Return data of a lane of `rembo`, whose losses are a function of z."""
    rng = np.random.default_rng(0)
    Z = embedding.from_cube(rng.random((n + pending, embedding.d)))
    X = embedding.images(Z) if embedding.space.dense else None
    memos = [{"z": z.tolist()} for z in Z]
    return data_of(embedding.space, n, np.sin(Z[:n].sum(1)), pending=pending, X=X, memos=memos)
