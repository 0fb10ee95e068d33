"""REMBO: Bayesian optimisation in random linear embeddings.

Wang, Zoghi, Matheson, Hutter, de Freitas (2013), "Bayesian optimization in a billion dimensions
via random embeddings", Algorithms 2 and 3.

Paper         Code                Meaning
A             Embedding           (D, d) matrix of independent N(0, 1) entries
Y             Embedding.bound     the box [-sqrt(d), sqrt(d)]^d; section 3
y             z                   a point of Y
p_X(A y)      Embedding.images    its image, projected to [-1, 1]^D
s(A y)        Embedding.images    the same, scaled and rounded to the values of discrete columns
k             lanes               interleaved runs, each with its own A and model; section 3.1
k_l^d         "low"               squared exponential kernel on y; definition 4
k_l^D         "high"              squared exponential kernel on p_X(A y); section 3.2
k_lambda^D    "categorical"       kernel on the Hamming distance h of s(A y); section 3.2
l             State.ell           length-scale
L, U          LOWEST, State.U     bounds of the length-scale
C             State.C             consecutive proposals that exploited
t_sigma       EXPLOITING          posterior standard deviation below which a proposal exploits

What the paper leaves open, and what is done:

- The first length-scale is 0.1, the noise 1e-10, and EI is maximised as log EI: the settings of
  the authors' code. The numbers of evaluations of DIRECT and CMA-ES are ours.
- Values are not standardised: section 2 has a process of mean 0 and variance 1 on f itself, and
  t_sigma is in its units. With standardised values the search explores too much for the gaps that
  the paper prints (Branin in 25 dimensions, one embedding that holds the optimum, 125 evaluations:
  gap 5e-2 instead of 1e-5).
- As printed, exp(-lambda/2 h^2) is not positive semidefinite: with two binary columns and small
  lambda the eigenvalue 1 - 2 exp(-lambda/2) + exp(-2 lambda) is negative. The kernel here is
  exp(-lambda/2 h), a squared exponential kernel of indicator vectors, with lambda = 1 / l^2.
- "mixed", for spaces with both kinds of columns, is the product of "high" and "categorical", each
  on its own columns, at the same l.
- "high" in a box of more than 100 dimensions looks at a sample of the coordinates, with distances
  scaled to all of them.
- Each run begins with two points of a Sobol sequence in Y. Pending points count as told their
  posterior mean. In a finite space, points whose image was evaluated before are not proposed.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace

import numpy as np
import scipy

from raybo.acquisition.closed_form import ClosedForm
from raybo.acquisition.maximizers.base import values
from raybo.acquisition.maximizers.cma import CmaEs
from raybo.acquisition.maximizers.direct import Direct
from raybo.arrays import Array
from raybo.lazy import Tensor, torch
from raybo.methods.base import Data, Proposal, lane_of
from raybo.methods.options import check_choice, check_count, require_unconditional
from raybo.methods.rembo.embedding import Embedding, require_embeddable
from raybo.methods.rembo.features import Features, images, indicators, require_few_values
from raybo.methods.search import Barred, barred_images
from raybo.space.any_space import AnySpace
from raybo.surrogate.gp import GP, NOISE, add_noise
from raybo.surrogate.kernels.stationary import SE
from raybo.surrogate.linalg import one_thread
from raybo.surrogate.map import NOISE_HYPER, likelihood, starting_theta

KERNELS = ("low", "high", "categorical", "mixed")  # section 3.2
DIMENSIONS, RUNS = 4, 4  # d and k unless given: k from section 4.2, d from Table 1
LOWEST, HIGHEST = 0.01, 50.0  # the initial [L, U] (section 3.4)
EXPLOITING = 0.002  # t_sigma (section 3.4)
PATIENCE = 5  # Algorithm 3, line 10
REFIT_EVERY = 20  # Algorithm 3, line 10
SHRINK = 0.9  # Algorithm 3, line 12
FIRST_LENGTHSCALE = 0.1  # the authors' code
NO_NOISE = replace(NOISE_HYPER, start=1e-10)  # a Cholesky factor needs some
DESIGN = 2  # points before the first model: one value has no scale
LARGEST_LOSS = 1e6  # losses are clipped here: squares of larger ones exceed the rest by rounding
FIT_EVALUATIONS = 40  # of DIRECT: two digits of log l
EVALUATIONS = 100  # of DIRECT and of CMA-ES, times 1 + d: more find better maxima of EI
STARTS = 16  # over Y, and as many near the best point, that the two begin with


@dataclass(frozen=True)
class PublishedRembo:
    """REMBO with k interleaved runs, DIRECT and CMA-ES, and the length-scale of Algorithm 3."""

    space: AnySpace
    d: int | None = None  # dimensions of an embedding
    k: int | None = None  # interleaved runs
    kernel: str | None = None  # one of KERNELS
    n_init: int | None = None  # points of the initial design of each run

    def __post_init__(self) -> None:
        check_choice("kernel", self.kernel, (None, *KERNELS))
        for name in ("d", "k", "n_init"):
            check_count(name, getattr(self, name))
        require_unconditional("rembo", self.space)
        require_embeddable(self.d, self.space)
        if self.kernel == "categorical":
            require_few_values(self.space)

    @property
    def lanes(self) -> int:
        """Number of interleaved runs."""
        return self.k or RUNS

    @property
    def dim(self) -> int:
        """Dimensions of an embedding."""
        return self.d or min(DIMENSIONS, self.space.dim)

    def propose(self, data: Data, rng: np.random.Generator) -> Proposal:
        """Maximum of the acquisition over Y, in the run of the trial's lane."""
        lane = lane_of(data.number, self.lanes)
        bound = math.sqrt(self.dim)  # section 3, Y
        embedding = Embedding.of_lane(self.space, self.dim, bound, data.seed, lane)  # Alg. 2, 1-2
        own = embedding.data(data)
        if own.needs_design(self.n_init or DESIGN):
            return embedding.proposal(embedding.design(data.number // self.lanes), {})
        with one_thread():
            features = features_of(self._kernel(embedding), embedding)
            X, y = _look(features, own.X), np.clip(own.loss, -LARGEST_LOSS, LARGEST_LOSS)
            state = update(last_state(own), X, y)  # Alg. 2, 6; Alg. 3, 10-16
            pending = torch.as_tensor(_look(features, own.pending))
            gp = process(X, y, state.ell).condition_on_mean(pending)
            log_ei = ClosedForm(gp, "log_ei", float(y.min()))  # section 2, u(x | D_t)

            def u(Z: Tensor) -> Tensor:
                return torch.from_numpy(log_ei.with_gradient(features(Z).numpy())[0])

            success = embedding.success(own)
            gain = Barred(success.weigh(u), barred_images(embedding, data, own))
            region = embedding.region(own, STARTS, rng, n_best=1)
            budget = EVALUATIONS * (1 + self.dim)
            found = np.stack([m(budget)(gain, region, rng) for m in (Direct, CmaEs)])
            z = found[np.argmax(values(gain, found))]  # section 4.1; Alg. 2, 4; Alg. 3, 3
            at_z = gp.posterior(features(torch.as_tensor(z[None])))
        exploits = float(at_z.variance.sqrt()) < EXPLOITING  # Alg. 3, 4
        state = replace(state, C=state.C + 1 if exploits else 0, step=own.n_rows)  # Alg. 3, 5-8
        return embedding.proposal(z, {"algorithm3": asdict(state)} | success.memo)

    def _kernel(self, embedding: Embedding) -> str:
        return self.kernel or ("mixed" if embedding.unordered else "low")


def features_of(name: str, embedding: Embedding) -> Features:
    """Features between which Euclidean distances are those of the kernel called `name`."""
    if name == "low":
        return lambda Z: Z  # definition 4
    everything = range(len(embedding.columns))
    if name == "high":
        share = len(everything) / embedding.space.dim
        high = images(embedding, everything)
        return lambda Z: high(Z) / math.sqrt(share)
    if name == "categorical":
        return indicators(embedding, everything)
    unordered = embedding.unordered
    ordered = [i for i in everything if i not in unordered]
    parts = [images(embedding, ordered)] if ordered else []
    parts += [indicators(embedding, unordered)] if unordered else []
    return lambda Z: torch.cat([part(Z) for part in parts], 1)


def process(X: Array, y: Array, ell: float) -> GP:
    """The process of mean 0 and variance 1 on features X, given the values y (section 2)."""
    kernel = SE(X.shape[1], ard=False, lengthscale=ell)
    theta = starting_theta(kernel, NO_NOISE)
    return GP.of(kernel, theta, torch.as_tensor(X), torch.as_tensor(y), mean=0.0)


@dataclass(frozen=True)
class State:
    """What Algorithm 3 carries from one proposal to the next."""

    ell: float = FIRST_LENGTHSCALE
    U: float = HIGHEST
    C: int = 0  # Alg. 3, 1
    fitted: int = 0  # number of told points at the last fit
    step: int = -1  # number of points asked when it was noted


def last_state(data: Data) -> State:
    """The state noted last; the initial one when there is none."""
    noted = [m["algorithm3"] for m in data.all_memos if "algorithm3" in m]
    return State(**max(noted, key=lambda item: int(item["step"]))) if noted else State()


def update(state: State, X: Array, y: Array) -> State:
    """The state with the length-scale fitted again, when it is time to."""
    shrink = state.C >= PATIENCE
    if not shrink and len(y) - state.fitted < REFIT_EVERY:  # Alg. 3, 10
        return state
    U, C = state.U, state.C
    if shrink:  # Alg. 3, 11
        U, C = max(SHRINK * state.ell, LOWEST), 0  # Alg. 3, 12-13
    ell = fit_lengthscale(X, y, U) if U > LOWEST else LOWEST  # Alg. 3, 15
    return replace(state, ell=ell, U=U, C=C, fitted=len(y))


def fit_lengthscale(X: Array, y: Array, U: float) -> float:
    """Length-scale in [L, U] of highest marginal likelihood, by DIRECT on its logarithm."""
    found = scipy.optimize.direct(
        lambda log: negative_log_likelihood(X, y, math.exp(log[0])),
        [(math.log(LOWEST), math.log(U))],
        maxfun=FIT_EVALUATIONS,
    )
    return float(math.exp(found.x[0]))


def negative_log_likelihood(X: Array, y: Array, ell: float) -> float:
    """-log p(f | x, l), the negative log marginal likelihood of the process (Alg. 3, 15)."""
    kernel, rows = SE(X.shape[1], ard=False, lengthscale=ell), torch.as_tensor(X)
    theta = starting_theta(kernel, NO_NOISE)
    K = add_noise(kernel(rows, rows, theta), theta[NOISE])
    return float(likelihood(K, torch.as_tensor(y), mean=0.0)[0])


def _look(features: Features, Z: Array) -> Array:
    return features(torch.as_tensor(Z)).numpy()
