"""What the additive methods share: groups of columns, how they are learnt and searched."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from raybo.arrays import Array
from raybo.errors import MethodError
from raybo.methods.base import Data
from raybo.methods.model import theta_from_json, theta_to_json
from raybo.methods.options import check_choice
from raybo.methods.ridge.model import Ridge
from raybo.methods.rpp.projection import blend
from raybo.space.any_space import AnySpace
from raybo.surrogate.gp import GP, MEAN, NOISE
from raybo.surrogate.kernels.additive import Additive, Groups
from raybo.surrogate.kernels.base import Theta, starting_theta
from raybo.surrogate.map import NOISE_HYPER, negative_log_likelihood

DECOMPOSITIONS = ("learnt", "random")
N_INIT = 10  # section 5
N_CYC = 25  # section 5
LARGEST_GROUP = 10  # the best of the paper's 5, 10 and 25

Group = tuple[int, ...]
KernelOf = Callable[[Groups], Additive]


@dataclass(frozen=True)
class Learnt:
    """Structure and hyperparameters learnt from the first n told rows."""

    n: int
    groups: Groups
    theta: Theta
    W: Array | None = None  # (D, D), for projected models
    alpha: float = 1.0  # of eq. 7
    ridge: Ridge | None = None  # of which all are proposed, where there is one

    @classmethod
    def last(cls, data: Data) -> Learnt | None:
        """What was learnt last, from the memos; None at first."""
        memos = (m for m in (*data.memos, *data.pending_memos) if "groups" in m)
        memo = max(memos, key=lambda m: m["fitted"], default=None)
        if memo is None:
            return None
        W = np.array(memo["W"]) if "W" in memo else None
        groups = tuple(map(tuple, memo["groups"]))
        theta = theta_from_json(memo["theta"])
        ridge = memo.get("ridge")
        if ridge is not None:
            ridge = Ridge(np.array(ridge["W"]), theta_from_json(ridge["theta"]))
        return cls(memo["fitted"], groups, theta, W, memo.get("alpha", 1.0), ridge)

    def to_memo(self) -> dict[str, Any]:
        """JSON of it, for the memo of the trial that learnt it."""
        memo: dict[str, Any] = {
            "fitted": self.n,
            "groups": [list(g) for g in self.groups],
            "theta": theta_to_json(self.theta),
        }
        if self.W is not None:
            memo |= {"W": self.W.tolist(), "alpha": self.alpha}
        if self.ridge is not None:
            theta = theta_to_json(self.ridge.theta)
            memo |= {"ridge": {"W": self.ridge.W.tolist(), "theta": theta}}
        return memo

    @property
    def projection(self) -> Array:
        """Restricted projection (D, D) of eq. 7."""
        dim = sum(map(len, self.groups))
        return np.eye(dim) if self.W is None else blend(self.W, self.alpha)

    def is_due(self, n: int, paper: bool) -> bool:
        """Whether to learn again from n rows: every N_CYC rows, sooner while there are few."""
        return n - self.n >= (N_CYC if paper else max(1, min(N_CYC, self.n // 4)))


def check_groups(space: AnySpace, size: Any, groups: Any, decomposition: Any) -> None:
    """Refuse options that make no partition of the columns into groups."""
    check_choice("decomposition", decomposition, (None, *DECOMPOSITIONS))
    whole = isinstance(size, int) and not isinstance(size, bool)
    if size is not None and not (whole and 1 <= size <= space.dim):
        raise MethodError(
            f"group_size must be an integer from 1 to {space.dim}, the number of columns, "
            f"got {size!r}"
        )
    if groups is not None:
        if size is not None or decomposition is not None:
            raise MethodError("groups are given: leave out group_size and decomposition")
        given_groups(space, groups)


def given_groups(space: AnySpace, groups: Any) -> Groups:
    """Groups of columns given by number or by name; a column in none of them is one of its own."""
    numbers: dict[Any, int] = {c.name: c.index for c in space.columns}
    numbers |= {i: i for i in range(space.dim)}
    found: list[tuple[int, ...]] = []
    for group in groups if isinstance(groups, list | tuple) else [None]:
        if not isinstance(group, list | tuple) or not group:
            raise MethodError(f"groups must be a list of lists of columns, got {groups!r}")
        unknown = [c for c in group if c not in numbers]
        if unknown:
            raise MethodError(
                f"groups: {unknown[0]!r} is neither a column's name nor a number below {space.dim}"
            )
        found.append(tuple(numbers[c] for c in group))
    used = [c for group in found for c in group]
    twice = next((c for c in used if used.count(c) > 1), None)
    if twice is not None:
        raise MethodError(
            f"groups: column {space.columns[twice].name!r} is there twice; groups are disjoint"
        )
    return (*found, *((c,) for c in range(space.dim) if c not in used))


def default_size(dim: int) -> int:
    """Columns of a group unless given: at least two groups, none above LARGEST_GROUP."""
    return min(LARGEST_GROUP, math.ceil(dim / 2))


def partition(dim: int, size: int, rng: np.random.Generator) -> Groups:
    """Random groups of `size` columns; the last has what is left."""
    order = rng.permutation(dim).tolist()
    return tuple(tuple(order[i : i + size]) for i in range(0, dim, size))


def best_rows(data: Data) -> Array:
    """The three best rows told."""
    return data.X[np.argsort(data.loss, kind="stable")[:3]]


def first_theta(kernel: Additive) -> dict[str, Tensor]:
    """Hyperparameters to start from, the noise included."""
    return {**starting_theta(kernel), NOISE: torch.tensor(NOISE_HYPER.start, dtype=torch.float64)}


def centred(gp: GP) -> GP:
    """The process with the constant mean of highest likelihood for its own rows.

    Losses are standardised anew with every datum, so a mean fitted 25 data ago is off.
    """
    ones = torch.cholesky_solve(torch.ones_like(gp.y)[:, None], gp.chol)[:, 0]
    mean = (ones @ gp.y) / ones.sum()
    alpha = gp.alpha + (gp.theta[MEAN] - mean) * ones
    return replace(gp, theta={**gp.theta, MEAN: mean}, alpha=alpha)


def best_groups(
    candidates: Sequence[Groups], kernel: KernelOf, X: Tensor, y: Tensor, theta: Theta
) -> Groups:
    """The candidate of highest marginal likelihood (Algorithm 1, step 1)."""
    noise = theta[NOISE] * torch.eye(len(X), dtype=X.dtype)
    scores = [negative_log_likelihood(kernel(g)(X, X, theta) + noise, y) for g in candidates]
    return candidates[int(np.argmin(scores))]


def swap_columns(
    groups: Groups,
    kernel: KernelOf,
    X: Tensor,
    y: Tensor,
    theta: Theta,
    rng: np.random.Generator,
) -> Groups:
    """Groups of higher marginal likelihood, two columns of two groups exchanged at a time.

    As many exchanges are tried as there are columns. Each changes two terms of the covariance.
    """
    if len(groups) < 2:
        return groups
    K = kernel(groups)(X, X, theta) + theta[NOISE] * torch.eye(len(X), dtype=X.dtype)
    best = negative_log_likelihood(K, y)
    for _ in range(X.shape[1]):
        a, b = rng.choice(len(groups), 2, replace=False).tolist()
        old = groups[a], groups[b]
        new = _exchange(*old, rng)
        changed = K - kernel(old)(X, X, theta) + kernel(new)(X, X, theta)
        score = negative_log_likelihood(changed, y)
        if score < best:
            K, best = changed, score
            pair = dict(zip((a, b), new, strict=True))
            groups = tuple(pair.get(g, group) for g, group in enumerate(groups))
    return groups


def _exchange(a: Group, b: Group, rng: np.random.Generator) -> tuple[Group, Group]:
    i, j = int(rng.integers(len(a))), int(rng.integers(len(b)))
    return (*a[:i], b[j], *a[i + 1 :]), (*b[:j], a[i], *b[j + 1 :])
