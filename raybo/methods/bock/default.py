"""Bock in practice (trial version)."""
from __future__ import annotations
import os, math
from dataclasses import dataclass, replace
from typing import Any
import numpy as np, torch
from torch import Tensor
from raybo.acquisition.functions import log_ei
from raybo.acquisition.maximizers.base import Region
from raybo.acquisition.maximizers.lbfgsb import Lbfgsb
from raybo.acquisition.starts import spread
from raybo.methods.base import Data, Proposal
from raybo.methods.bock.kernel import NOISE_HYPER, Cylindrical
from raybo.methods.bock.slice_sampling import slice_sweep
from raybo.methods.model import fitted_gp, with_pending
from raybo.methods.search import search_region, untried
from raybo.space.any_space import AnySpace
from raybo.space.design import centre
from raybo.surrogate.gp import GP
from raybo.surrogate.linalg import one_thread
from raybo.surrogate.map import NegativeLogPosterior, starting_theta, fit
from raybo.surrogate.outcomes import SHORT_TAIL, WIDE_TAIL, standardize, yeo_johnson
TAIL = {"short": SHORT_TAIL, "wide": WIDE_TAIL}[os.environ.get("TAIL", "wide")]
POWERS = os.environ.get("POWERS", "")
SCHEME = os.environ.get("SCHEME", "due")
N_SAMPLES = 10
CHUNK = 200_000
@dataclass(frozen=True)
class Bock:
    space: AnySpace
    n_init: int | None = None
    degree: int = 3
    warp: bool = True
    boundary: bool = False
    inference: str = "sample"
    lanes = 1
    def propose(self, data, rng):
        if data.needs_design(self.n_init or 2):
            first = centre(self.space)
            asked = np.concatenate([data.X, data.pending])
            return Proposal(x=self.space.sample(1, rng)[0] if (asked == first).all(1).any() else first)
        with one_thread():
            gp, memo = self.model(data, rng)
            gp = with_pending(gp, data)
            f = mean_ei(gp, gp.fitted().min(-1).values)
            region = search_region(self.space, data, rng)
            n = data.effort.n_screened
            inner = 0.5 + (spread(self.space.dim, n, rng) - 0.5) * rng.random((n, 1))
            region = replace(region, starts=np.concatenate([region.starts, self.space.snap(inner)]))
            x = Lbfgsb(data.effort.n_starts, data.effort.max_evaluations)(untried(f, self.space, data), region, rng)
        return Proposal(x=x, memo=memo)
    def model(self, data, rng):
        kernel = Cylindrical(self.space.dim, self.degree, self.warp, fades=True)
        X = torch.as_tensor(data.X)
        last = data.last_fit("samples")
        n = len(data.loss)
        due = last is None or data.is_refit_due(last["fitted"])
        z = standardize(data.loss, TAIL)
        power = 1.0 if last is None else last["power"]
        best_logs = None
        if due and POWERS:
            found = []
            for p in (1.0, 0.5, 0.0, -1.0):
                yy, sl = yeo_johnson(z, p)
                D = NegativeLogPosterior(kernel, X, torch.as_tensor(yy), NOISE_HYPER)
                start = starting_theta(kernel, NOISE_HYPER)
                th = fit(kernel, X, torch.as_tensor(yy), [start], noise=NOISE_HYPER)
                l = D.logs(th)
                found.append((float(D.values(l[None])[0]) - l.sum() - sl.sum(), p, l))
            _, power, best_logs = min(found, key=lambda v: v[0])
        y = torch.as_tensor(yeo_johnson(z, power)[0])
        D = NegativeLogPosterior(kernel, X, y, NOISE_HYPER)
        if self.inference == "map":
            if due and not POWERS:
                start = starting_theta(kernel, NOISE_HYPER)
                starts = [start] if last is None else [D.theta(torch.tensor(last["samples"][0], dtype=torch.float64))]
                best_logs = D.logs(fit(kernel, X, y, starts, noise=NOISE_HYPER))
            samples = np.array(last["samples"]) if best_logs is None else best_logs[None]
            moved = due
        else:
            if last is None:
                if best_logs is None: best_logs = D.logs(starting_theta(kernel, NOISE_HYPER))
                samples = np.repeat(best_logs[None], N_SAMPLES, axis=0)
            else:
                samples = np.array(last["samples"])
            moved = due
            if moved:
                dens = lambda L: L.sum(1) - D.values(L)
                for _ in range(int(os.environ.get("SWEEPS", "1"))):
                    samples = slice_sweep(dens, samples, np.array(D.bounds), rng)
        memo = {"samples": samples.tolist(), "fitted": n, "power": power} if moved else {}
        return GP.of(kernel, D.theta(torch.as_tensor(samples)), X, y), memo

def mean_ei(gp, best):
    s = len(best); size = max(1, CHUNK // (s * len(gp.X)))
    def f(X):
        found = [log_ei(gp.posterior(Z), best[:, None]).logsumexp(0) for Z in torch.split(X, size)]
        return torch.cat(found) - math.log(s)
    return f
