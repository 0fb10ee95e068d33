"""RPP-GP-UCB: additive Bayesian optimisation along learnt directions, restricted to near I.

Li, Kandasamy, Poczos, Schneider (2016), "High dimensional Bayesian optimization via restricted
projection pursuit models", Algorithms 2 and 3; Add-GP-UCB, on which it stands, is addgp.py.

Paper          Code                  Meaning
W              W                     (D, D) directions of high marginal likelihood, unit columns
W-hat, alpha   blend, learnt.alpha   (1 - alpha) W + alpha I (eq. 7)
delta          delta                 bound on the outer box: volume ratio <= 1 + delta (eq. 8)
outer(X_W)     outer_box             box around the projected cube, where z is searched
z = W'x        rows @ W              projected rows, of the points truly evaluated

Departures. Alignment: columns of W get the order and signs nearest to I before they are mixed with
it. Pending points; integers are snapped; a point outside the cube is replaced by the nearest
inside, and the model is told of that one. By default
- all of W is learnt at once, under a normal prior around I: without one a (D, D) matrix fits any
  n < D^2 data (on rpp-50, 250 data, the share of variance not explained is 0.29 under a prior
  seven times as wide, 0.06 under this one, 0.11 for the additive model);
- groups and hyperparameters are those of the additive model: fitted together with W they say that
  the model knows what it does not (log-density of test data 0.8 against 1.6);
- every other proposal is the additive model's, since the data do not tell which of the two is
  nearer to the truth: by likelihood W is chosen where the columns are the better directions (mean
  of ten Branins, 200 evaluations: regret 0.25, against 0.10 of the additive model), and by rows
  left out the columns are where W is better (rpp-50, where it predicts better around the best
  point in 9 cases of 9; 300 evaluations, 20 seeds: regret 10.5, of the additive model 12.8);
- alpha is the least that keeps the box;
- where a few directions, as far from I as they may be, foretell the latest rows clearly better
  than the additive model, all is proposed by a model of these (surrogate/ridge.py): Branin rotated
  in 25 dimensions, 300 evaluations, five seeds: regret 1e-5 to 3e-4, additive 0.04 to 0.15. Not
  where delta or the groups are given;
- the box may grow by half per dimension, since the search does not suffer from it: what the
  groups find one by one is where a climb in the cube itself starts, as in addgp.py.
`preset="paper"` learns W group by group by likelihood alone, then groups and hyperparameters on
the projected rows, with delta = 0.1, and searches the outer box by DIRECT. An infinite `delta` is
projection pursuit without restriction, Algorithm 2, whatever the preset: no prior, no mixing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from raybo.acquisition.closed_form import Along
from raybo.acquisition.maximizers.lbfgsb import Lbfgsb
from raybo.arrays import Array
from raybo.errors import MethodError, SpaceError
from raybo.methods.addgp.default import AddGp
from raybo.methods.addgp.groups import N_INIT, Learnt, best_rows, centred, check_groups
from raybo.methods.addgp.search import GroupSearch, exploration, refine
from raybo.methods.base import Data, Proposal
from raybo.methods.model import acquisition_of, search_region, unordered_columns, untried
from raybo.methods.options import PRESETS, check_choice, check_count, require_flat
from raybo.methods.ridge.model import Ridge, fit_ridge
from raybo.methods.rpp.projection import align, blend, least_mixing, outer_box, pursue
from raybo.space.any_space import AnySpace
from raybo.surrogate.gp import GP, NOISE
from raybo.surrogate.kernels.additive import Additive, Groups
from raybo.surrogate.kernels.base import Theta
from raybo.surrogate.linalg import one_thread
from raybo.surrogate.map import negative_log_likelihood
from raybo.surrogate.outcomes import standardize

FEWEST = 2  # rows per dimension from which on a model of few directions is tried
LATEST = 0.1  # share of the rows that it has to foretell
CLEARLY = 2.0  # nats a row, to begin with; up to 1.5 where the function is additive, 3 where not
SPREAD = 1.0  # deviation of the entries of W - I from 0, times sqrt(D)
GROWTH = 1.5  # of each side of the box searched, on average
GRID = 10  # values of alpha tried
PAPER_DELTA = 0.1  # section 5.1


@dataclass(frozen=True)
class Rpp:
    """Additive Gaussian process over groups of learnt directions."""

    space: AnySpace
    preset: str = "default"
    n_init: int | None = None  # points of the initial design
    group_size: int | None = None  # directions of a group
    groups: Any = None  # lists of columns whose directions make a group, instead of learning them
    decomposition: str | None = None  # "learnt", or "random": drawn anew for every proposal
    delta: float | str | None = None  # growth allowed of the volume searched; inf: any projection

    lanes = 1

    def __post_init__(self) -> None:
        check_choice("preset", self.preset, PRESETS)
        check_count("n_init", self.n_init)
        require_flat("rpp", self.space)
        unordered = unordered_columns(self.space)
        if unordered:
            raise SpaceError(
                f"method 'rpp' projects numbers, and {self.space.columns[unordered[0]].name!r} "
                "is categorical; use method 'addgp' or 'bo'"
            )
        check_groups(self.space, self.group_size, self.groups, self.decomposition)
        object.__setattr__(self, "delta", _checked_delta(self.delta))

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Best point of every group of directions, back in the cube (Algorithm 3, step 2)."""
        paper, additive = self.preset == "paper", self._additive
        if data.needs_design(self.n_init or N_INIT):
            return additive.propose(data, rng)
        X, y = torch.as_tensor(data.X), torch.as_tensor(standardize(data.loss))
        with one_thread():
            last = Learnt.last(data)
            keep = last is not None and not last.is_due(len(y), paper)
            learnt = last if last is not None and keep else self.learn(X, y, last, rng)
            if learnt.ridge is not None:
                x = self._along(learnt.ridge, X, y, data, rng)
                return Proposal(x=x, memo={} if keep else learnt.to_memo())
            groups, W = additive.groups_for(learnt, rng), learnt.projection
            if self._restricted and not paper and data.number % 2 == 0:
                W = np.eye(len(W))  # the additive model's turn
            gp = GP.of(additive.kernel(groups), learnt.theta, X @ torch.as_tensor(W), y)
            gp = centred(gp)
            best = gp.fitted().min()
            gp = gp.condition_on_mean(torch.as_tensor(data.pending @ W))
            beta = exploration(groups, len(y), paper)
            search = GroupSearch.in_box(gp, groups, beta, outer_box(W))
            if paper:
                x = self._inside(search.direct(rng), W)
            else:
                z = search.climb(best_rows(data) @ W, rng, data.haste)
                f, projection = acquisition_of(gp, "log_ei", best, len(y)), torch.as_tensor(W)
                x = refine(
                    lambda rows: f(rows @ projection), self._inside(z, W), self.space, data, rng
                )
        return Proposal(x=x, memo={} if keep else learnt.to_memo())

    def _inside(self, z: Array, W: Array) -> Array:
        """The point of the space next to the one that z is the projection of."""
        x = np.asarray(np.linalg.solve(W.T, z), dtype=np.float64)  # Algorithm 3, step 2
        return np.asarray(self.space.snap(x[None])[0])

    def _along(
        self, ridge: Ridge, X: Tensor, y: Tensor, data: Data, rng: np.random.Generator
    ) -> Array:
        """Where the model of few directions expects the greatest improvement."""
        gp = centred(ridge.gp(X, y))
        best = gp.fitted().min()
        gp = gp.condition_on_mean(ridge.project(torch.as_tensor(data.pending)))
        f = Along(acquisition_of(gp, "log_ei", best, len(y)), ridge.W)
        region = search_region(self.space, data, rng, "cpu")
        return Lbfgsb(6 >> data.haste)(untried(f, self.space, data), region, rng)

    def learn(self, X: Tensor, y: Tensor, last: Learnt | None, rng: np.random.Generator) -> Learnt:
        """Groups, hyperparameters, projection and its restriction (Algorithm 3, step 1)."""
        additive, paper = self._additive, self.preset == "paper"
        base = last if last is not None and paper else additive.learn(X, y, last, rng)
        begun = last is not None and last.ridge is not None
        ridge = self._ridge(X, y, additive.kernel(base.groups), base.theta, begun)
        if ridge is not None:
            return replace(base, n=len(y), ridge=ridge)
        W = np.eye(X.shape[1]) if last is None or last.W is None else last.W
        blocks = base.groups if paper else [range(len(W))]
        free = paper or not self._restricted
        spread = None if free else self._spread
        W, theta = pursue(additive.kernel(base.groups), X, y, W, base.theta, blocks, spread=spread)
        W, groups = _aligned(W, base.groups)
        if free:
            base = replace(base, theta={**base.theta, **theta})
        alpha = least_mixing(W, self._log_limit)  # 0 without restriction, Algorithm 2
        if paper and self._restricted:
            alpha = self._likeliest(alpha, additive.kernel(groups), X, y, W, base.theta)
        base = replace(base, groups=groups)
        if paper:
            base = additive.learn(X @ torch.as_tensor(blend(W, alpha)), y, base, rng)
        return replace(base, n=len(y), W=W, alpha=alpha)

    def _ridge(
        self, X: Tensor, y: Tensor, kernel: Additive, theta: Theta, begun: bool
    ) -> Ridge | None:
        """Few directions, if they foretell the latest rows better than the columns do."""
        n, dim = X.shape
        if not self._may_be_ridge or n < FEWEST * dim:
            return None
        told = n - round(LATEST * n)
        ridge = fit_ridge(X[:told], y[:told])
        by_ridge = ridge.gp(X[:told], y[:told]).surprise(ridge.project(X[told:]), y[told:])
        columns = centred(GP.of(kernel, theta, X[:told], y[:told]))
        gain = columns.surprise(X[told:], y[told:]) - by_ridge
        return fit_ridge(X, y) if gain > (0.0 if begun else CLEARLY * (n - told)) else None

    def _likeliest(
        self, least: float, kernel: Additive, X: Tensor, y: Tensor, W: Array, theta: Theta
    ) -> float:
        """Alpha of highest likelihood from `least` to 1; of equals the nearest to I."""
        noise = theta[NOISE] * torch.eye(len(X), dtype=X.dtype)

        def loss(alpha: float) -> float:
            Z = X @ torch.as_tensor(blend(W, alpha))
            return negative_log_likelihood(kernel(Z, Z, theta) + noise, y)

        grid: list[float] = np.linspace(1.0, least, GRID).tolist()
        return min(grid, key=loss)

    @property
    def _additive(self) -> AddGp:
        """The additive method that works on the projected rows."""
        return AddGp(
            self.space, self.preset, self.n_init, self.group_size, self.groups, self.decomposition
        )

    @property
    def _may_be_ridge(self) -> bool:
        """Whether few directions may take the place of a projection near I."""
        given = self.delta is not None or self.groups is not None
        return self.preset != "paper" and not given and self.decomposition != "random"

    @property
    def _spread(self) -> float:
        """Deviation of the entries of W - I under their prior."""
        return SPREAD / math.sqrt(self.space.dim)

    @property
    def _restricted(self) -> bool:
        """Whether projections are held near I."""
        return not math.isinf(self._log_limit)

    @property
    def _log_limit(self) -> float:
        """log(1 + delta)."""
        if self.delta is not None:
            return math.log1p(float(self.delta))
        paper = self.preset == "paper"
        return math.log1p(PAPER_DELTA) if paper else self.space.dim * math.log(GROWTH)


def _aligned(W: Array, groups: Groups) -> tuple[Array, Groups]:
    """W with its columns nearest to those of I, as a memo holds it, and where the groups are."""
    W, order = align(W)
    place = np.argsort(order).tolist()
    return np.round(W, 6), tuple(tuple(place[c] for c in group) for group in groups)


def _checked_delta(delta: Any) -> float | str | None:
    """Delta, an infinite one as text: descriptions of methods are JSON, which has no infinity."""
    number = isinstance(delta, int | float) and not isinstance(delta, bool)
    if delta is None or (number and 0 <= delta < math.inf):
        return delta  # type: ignore[no-any-return]
    if delta in (math.inf, "inf"):
        return "inf"
    raise MethodError(
        f"delta must be a number of at least 0, or inf for any projection, got {delta!r}"
    )
