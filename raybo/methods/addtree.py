"""Add-Tree: Bayesian optimisation of conditional spaces, additive over the vertices of a tree.

Ma & Blaschko (2021), "Additive tree-structured conditional parameter spaces in Bayesian
optimization", Algorithms 1 and 2, sections 4.1 to 4.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from raybo.acquisition.functions import ucb
from raybo.acquisition.maximizers.base import Region, values
from raybo.acquisition.maximizers.lbfgsb import Lbfgsb
from raybo.acquisition.maximizers.parts import Parts, maximize_parts
from raybo.acquisition.starts import around, spread
from raybo.methods.base import Array, Data, Proposal
from raybo.methods.model import acquisition_of, fitted_gp, grid_of, search_region, untried
from raybo.methods.options import PRESETS, check_choice, check_count, require_columns
from raybo.space.any_space import AnySpace
from raybo.space.design import sobol_point
from raybo.space.tree import Vertex, expanded, paths, vertices
from raybo.surrogate.gp import GP
from raybo.surrogate.kernels.tree import tree_kernel
from raybo.surrogate.linalg import one_thread
from raybo.surrogate.vertices import VertexPosteriors, own_columns, vertex_terms

ACQUISITIONS = ("ucb", "ei")
import os
CFG = eval(os.environ.get("ADDTREE", "{}"))

@dataclass(frozen=True)
class AddTree:
    space: AnySpace
    preset: str = "default"
    n_init: int | None = None
    expand: bool | None = None
    acquisition: str | None = None

    lanes = 1

    def __post_init__(self) -> None:
        check_choice("preset", self.preset, PRESETS)
        check_choice("acquisition", self.acquisition, (None, *ACQUISITIONS))
        check_choice("expand", self.expand, (None, False, True))
        check_count("n_init", self.n_init)
        require_columns("addtree", self.space)
        self.tree()

    def tree(self) -> tuple[Vertex, ...]:
        tree = vertices(self.space)
        expand = self.preset == "paper" if self.expand is None else self.expand
        return expanded(tree) if expand else tree

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        paper = self.preset == "paper"
        if data.needs_design(self.n_init or CFG.get("n_init", 6)):
            return Proposal(x=sobol_point(self.space, data.number, data.seed))
        tree = self.tree()
        with one_thread():
            kernel = tree_kernel(self.space, tree, CFG.get("shape", "se"), ard=not paper)
            gp, memo = fitted_gp(kernel, data, "cpu")
            if CFG.get("cap"):
                gp = shorten(gp, len(data.loss))
            best = gp.fitted().min()
            gp = gp.condition_on_mean(torch.as_tensor(data.pending))
            acq = self.acquisition or CFG.get("acq", "ucb")
            sd = exploration(gp, len(data.loss), max(len(v.columns) for v in tree))
            if acq == "ucb":
                row = self.assemble(tree, gp, data, sd**2, rng)
            else:
                starts = [self.assemble(tree, gp, data, b * sd**2, rng) for b in (0.0, 1.0)]
                row = self.joint(tree, gp, data, best, np.array(starts), rng)
        return Proposal(x=row, memo=memo)

    def assemble(self, tree, gp, data, beta, rng) -> Array:
        posteriors = VertexPosteriors.of(gp)
        parts = self.parts(tree, gp, data, rng)
        X, u = maximize_parts(lambda Z: ucb(posteriors(Z), beta), parts)
        return self.row(tree, gp, best_path(tree, u), X)

    def row(self, tree, gp, path, X) -> Array:
        row = np.full(self.space.dim, 0.5)
        for v, (term, _) in enumerate(vertex_terms(gp)):
            if v in path:
                own = list(own_columns(term))
                row[own] = X[v, : len(own)]
                for column, branch, size in term.condition:
                    row[column] = (branch + 0.5) / size
        return self.space.snap(row[None])[0]

    def parts(self, tree, gp, data, rng) -> Parts:
        terms = [t for t, _ in vertex_terms(gp)]
        owns = [own_columns(t) for t in terms]
        width = max(1, max(map(len, owns)))
        V = len(terms)
        k = 64
        starts = np.full((V, k + 32, width), 0.5)
        starts[:, :k] = spread(width, k, rng)
        free = np.zeros((V, width), bool)
        gridded = {}
        snappers = []
        order = np.argsort(data.loss, kind="stable")
        for v, (term, own) in enumerate(zip(terms, owns)):
            if own:
                passing = term.passes(torch.as_tensor(data.X[order])).numpy()
                near = data.X[order][passing][:3][:, list(own)]
                if len(near):
                    starts[v, k:, : len(own)] = around(near, 32, rng)
            for j, c in enumerate(own):
                grid = grid_of(self.space, c)
                if grid is None:
                    free[v, j] = True
                else:
                    gridded.setdefault(j, {})[v] = grid
                if self.space.columns[c].parameter.grid is not None:
                    snappers.append((v, j, self.space.columns[c]))
            starts[v, :, len(own):] = 0.5
        grids = {}
        for j, by in gridded.items():
            g = max(map(len, by.values()))
            grids[j] = np.full((V, g), np.nan)
            for v, grid in by.items():
                grids[j][v, :len(grid)] = grid

        def snap(X):
            X = X.copy()
            for v, j, column in snappers:
                X[v, :, j] = column.snap(X[v, :, j])
            return X

        return Parts(snap(starts), free, grids, snap)

    def joint(self, tree, gp, data, best, tops, rng) -> Array:
        f = untried(acquisition_of(gp, "log_ei", best, len(data.loss)), self.space, data)
        region = search_region(self.space, data, rng, "cpu")
        terms = [t for t, _ in vertex_terms(gp)]
        starts = [tops]
        leaves = list(paths(tree))
        for leaf in leaves:
            rows = region.starts[rng.permutation(len(region.starts))[:64]].copy()
            rows = rng.random(rows.shape)*(rows==0.5)+rows*(rows!=0.5)
            for v in leaf:
                for column, branch, size in terms[v].condition:
                    rows[:, column] = (branch + 0.5) / size
            rows = self.space.snap(rows)
            found = values(f, rows)
            starts.append(rows[np.argsort(-found)[:2]])
        starts.append(region.starts[np.argsort(-values(f, region.starts))[:2]])
        starts = np.concatenate(starts)
        region = Region(region.lower, region.upper, starts, region.grids, region.snap)
        return Lbfgsb(n_starts=len(starts))(f, region, rng)


def best_path(tree: Sequence[Vertex], u: Array) -> set[int]:
    total = np.array(u, dtype=float)
    for vertex in reversed(tree):
        total[vertex.index] += sum(total[list(group)].max() for group in vertex.children)
    path = {0}
    for vertex in tree:
        if vertex.index in path:
            path |= {group[int(np.argmax(total[list(group)]))] for group in vertex.children}
    return path


def shorten(gp, t):
    g = math.sqrt(1+math.log(1+t))
    changes = {k: v.clamp_max(CFG["cap"] / g) for k, v in gp.theta.items() if k.endswith("lengthscale")}
    return gp.with_theta(changes)


def exploration(gp: GP, t: int, d: int) -> float:
    kind = CFG.get("beta", "kandasamy")
    if kind == "kandasamy":
        return math.sqrt(CFG.get("c", 0.2) * d * math.log(2 * t))
    n = len(gp.X)
    noise = float(gp.theta["noise"])
    gain = float(gp.chol.diagonal().log().sum()) - 0.5 * n * math.log(noise)
    b0 = CFG.get("B0", 1.0)
    h = CFG.get("h", 0.0)
    return b0 * (1 + math.log(1 + t))**h + 4 * math.sqrt(noise) * math.sqrt(gain + 1 + math.log(10))
