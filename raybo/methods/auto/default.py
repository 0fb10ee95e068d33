"""Auto: several methods look at the same results; the one that predicts best proposes most.

Each member is a method with a structural assumption of its own. All of them learn from all
results, also from those of points that another member proposed. The next point is proposed by a
member drawn with a probability that follows how well it predicted the results before they came
(raybo/methods/auto/shares.py).

A box too large to have columns is left to bins.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from raybo.arrays import Array
from raybo.errors import SurrogateError
from raybo.methods.addtree.default import AddTree
from raybo.methods.auto.shares import shares
from raybo.methods.base import NOTED, Data, Memo, Method, Proposal, ask_method
from raybo.methods.bins.default import Bins
from raybo.methods.bo.default import Bo
from raybo.methods.egp.default import Egp
from raybo.methods.linear.default import Linear
from raybo.methods.local.default import Local
from raybo.methods.model import Modelled, in_losses
from raybo.methods.options import check_choice, check_count
from raybo.space.any_space import AnySpace
from raybo.space.design import design_point, design_size
from raybo.surrogate.gp import GP
from raybo.surrogate.linalg import one_thread

logger = logging.getLogger(__name__)

# raybo/methods/auto/assumptions.py says what each of them assumes.
MEMBERS: dict[str, Callable[..., Modelled]] = {
    "bo": Bo,
    "local": Local,
    "linear": Linear,
    "egp": Egp,
    "addtree": AddTree,
}


@dataclass(frozen=True)
class Auto:
    """Several methods, with shares that follow their predictions."""

    space: AnySpace
    n_init: int | None = None  # points of the design; columns + 2, at most 10, unless given
    members: Sequence[str] | None = None  # some of MEMBERS; by the space unless given

    restarts = True

    def __post_init__(self) -> None:
        check_count("n_init", self.n_init)
        for name in self.members or ():
            check_choice("members", name, tuple(MEMBERS))
        _ = self.methods  # a space that a given member does not take is refused here

    @cached_property
    def methods(self) -> dict[str, Modelled]:
        """The members by name; none where the space is left to `only`."""
        names = self.members or (members_of(self.space) if self.space.dense else ())
        return {name: MEMBERS[name](self.space, n_init=1) for name in names}

    @cached_property
    def only(self) -> Method | None:
        """The method that the space is left to, where no member takes it."""
        return None if self.methods else Bins(self.space, n_init=self.n_init)

    @property
    def lanes(self) -> int:
        """One, or as many as the only method has."""
        return 1 if self.only is None else self.only.lanes

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Next point of a member drawn by its share."""
        return self.propose_many(data, [rng])[0]

    def propose_many(self, data: Data, rngs: Sequence[np.random.Generator]) -> list[Proposal]:
        """Next points of a member drawn by its share: those of several cost as many searches."""
        if self.only is not None:
            return ask_method(self.only, data, rngs)
        if data.needs_design(self.n_init or design_size(self.space.dim)):
            return [Proposal(x=design_point(self.space, data.number, data.seed))]
        whole, data = data, data.thinned()
        with one_thread():
            views = self._views(data)
            share = shares(list(views), whole)
            member = str(rngs[0].choice(list(share), p=list(share.values())))
            found = ask_method(self.methods[member], views[member].data, rngs)
            X = np.array([one.x for one in found])
            expected = {name: _expected(view.gp, data, X) for name, view in views.items()}
        learnt = {name: view.memo for name, view in views.items()}
        proposals = []
        for i, one in enumerate(found):
            noted = {**learnt, member: learnt.get(member, {}) | one.memo}
            memo = {
                "member": member,
                "shares": {name: round(part, 3) for name, part in share.items()},
                "expected": {name: pairs[i] for name, pairs in expected.items()},
                NOTED: {name: memo for name, memo in noted.items() if memo},
            }
            proposals.append(Proposal(x=one.x, memo=memo))
            learnt = {}  # noted with the first
        return proposals

    def beliefs(self, data: Data) -> list[tuple[float, GP]]:
        """The models of the members, each with its share."""
        views = self._views(data)
        return [(part, views[name].gp) for name, part in shares(list(views), data).items()]

    def _views(self, data: Data) -> dict[str, View]:
        """What each member sees and believes; one whose model fails is left out this time."""
        views = {}
        for name, method in self.methods.items():
            try:
                views[name] = view_of(name, method, data)
            except SurrogateError as error:
                logger.warning("trial %d is proposed without %s: %s", data.number, name, error)
        if not views:
            raise SurrogateError("no member of auto has a model")
        return views


@dataclass(frozen=True)
class View:
    """What a member sees and believes.

    Attributes
    ----------
    data : Data
        All rows, with what this member noted, and a cache of its own.
    gp : GP
        Its model of the told rows.
    memo : dict
        What it wants to remember of the model.
    """

    data: Data
    gp: GP
    memo: dict[str, Any]


def view_of(name: str, method: Modelled, data: Data) -> View:
    """What the member called `name` sees and believes."""

    def own(memos: tuple[Memo, ...]) -> tuple[Memo, ...]:
        return tuple(memo.get(NOTED, {}).get(name, {}) for memo in memos)

    seen = replace(
        data,
        memos=own(data.memos),
        pending_memos=own(data.pending_memos),
        failed_memos=own(data.failed_memos),
        dropped_memos=own(data.dropped_memos),
        cache=data.cache.setdefault(name, {}),
    )
    gp, memo = method.model(seen)
    # When it proposes, it finds the fit of just now among its notes, and does not repeat it.
    return View(replace(seen, pending_memos=(*seen.pending_memos, memo)), gp, memo)


def _expected(gp: GP, data: Data, X: Array) -> list[list[float]]:
    """Mean and deviation of the result at each row of X, to be held against what comes."""
    means, spreads = in_losses(gp, data.loss, X, noise=True)
    pairs = zip(means, spreads, strict=True)
    return [[float(f"{part:.6g}") for part in pair] for pair in pairs]


def members_of(space: AnySpace) -> tuple[str, ...]:
    """Names of the members for a space with columns."""
    conditional = any(column.kind == "choice" for column in space.columns)
    return ("addtree", "bo") if conditional else ("bo", "local")
