"""Groups of columns: those given, random ones, and how they are learnt."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raybo.errors import MethodError
from raybo.lazy import Tensor
from raybo.methods.base import Data, Memo
from raybo.methods.model import theta_from_json, theta_to_json
from raybo.methods.options import check_choice
from raybo.space.any_space import AnySpace
from raybo.surrogate.gp import NOISE, add_noise
from raybo.surrogate.kernels.additive import Additive, Groups
from raybo.surrogate.kernels.base import Theta
from raybo.surrogate.map import NOISE_HYPER, negative_log_likelihood

DECOMPOSITIONS = ("learnt", "random")
LARGEST_GROUP = 10  # the best of 5, 10 and 25 in Li et al. (2016), Tables 1 and 2

Group = tuple[int, ...]
KernelOf = Callable[[Groups], Additive]


def check_groups(space: AnySpace, size: Any, groups: Any, decomposition: Any) -> None:
    """Refuse options that make no partition of the columns into groups."""
    check_choice("decomposition", decomposition, (None, *DECOMPOSITIONS))
    is_count = isinstance(size, int) and not isinstance(size, bool)
    if size is not None and not (is_count and 1 <= size <= space.dim):
        raise MethodError(
            f"group_size must be an integer from 1 to {space.dim}, the number of columns, "
            f"got {size!r}"
        )
    if groups is not None:
        if size is not None or decomposition is not None:
            raise MethodError("groups are given: leave out group_size and decomposition")
        given_groups(space, groups)


def given_groups(space: AnySpace, groups: Any) -> Groups:
    """Groups of columns given by number or name; each column in none of them is one more group."""
    numbers: dict[Any, int] = {c.name: c.index for c in space.columns}
    numbers |= {i: i for i in range(space.dim)}
    found: list[Group] = []
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


def first_groups(
    space: AnySpace, groups: Any, size: int | None, rng: np.random.Generator
) -> Groups:
    """The groups given, or random ones of `size` columns.

    Unless given, the size is the largest that makes two groups, up to LARGEST_GROUP.
    """
    if groups is not None:
        return given_groups(space, groups)
    return partition(space.dim, size or min(LARGEST_GROUP, math.ceil(space.dim / 2)), rng)


def partition(dim: int, size: int, rng: np.random.Generator) -> Groups:
    """Random groups of `size` columns; the last has what is left."""
    order = rng.permutation(dim).tolist()
    return tuple(tuple(order[i : i + size]) for i in range(0, dim, size))


@dataclass(frozen=True)
class Learnt:
    """Groups and hyperparameters learnt from the first `fitted` rows."""

    fitted: int
    groups: Groups
    theta: Theta

    @classmethod
    def last(cls, data: Data) -> Learnt | None:
        """What was learnt last, from the memos; None at first."""
        memo = data.last_fit("groups", "theta")
        return None if memo is None else cls.from_memo(memo)

    @classmethod
    def from_memo(cls, memo: Memo) -> Learnt:
        """What `to_memo` wrote."""
        groups = tuple(tuple(map(int, group)) for group in memo["groups"])
        names = [h.name for h in (*Additive(groups).hypers, NOISE_HYPER)]
        theta = theta_from_json({name: memo["theta"][name] for name in names})
        return cls(memo["fitted"], groups, theta)

    def to_memo(self) -> dict[str, Any]:
        """JSON of it, for the memo of the trial that learnt it."""
        groups = [list(group) for group in self.groups]
        return {"fitted": self.fitted, "groups": groups, "theta": theta_to_json(self.theta)}


def likeliest_groups(
    candidates: Sequence[Groups], kernel: KernelOf, X: Tensor, y: Tensor, theta: Theta
) -> Groups:
    """The candidate of highest marginal likelihood."""
    scores = [
        negative_log_likelihood(add_noise(kernel(groups)(X, X, theta), theta[NOISE]), y)
        for groups in candidates
    ]
    return candidates[int(np.argmin(scores))]


def exchange_columns(
    groups: Groups,
    kernel: KernelOf,
    X: Tensor,
    y: Tensor,
    theta: Theta,
    rng: np.random.Generator,
) -> Groups:
    """Groups of higher marginal likelihood, reached by exchanging columns of two groups.

    As many exchanges are tried as there are columns, so that each is moved about twice; a change
    of two terms of the covariance costs less than a covariance.
    """
    if len(groups) < 2:
        return groups
    K = add_noise(kernel(groups)(X, X, theta), theta[NOISE])
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
