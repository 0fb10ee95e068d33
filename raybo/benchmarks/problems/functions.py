"""The papers' test functions: pure functions of one point, with known optima.

All are minimised except `gaussian_pdf` and `RppMixture`, which their papers maximise.
`FIXED` and `SCALABLE` list those of a vector, each with its domain and a point of its optimum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from raybo.arrays import Array

LOG_FLOOR = -700.0  # exp underflows below about -745

_A6 = np.array(
    [  # Hartmann6: widths
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ]
)
_P6 = 1e-4 * np.array(
    [  # centres
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
_C6 = np.array([1.0, 1.2, 3.0, 3.2])  # heights


def branin(x: Array) -> float:
    """Return Branin's function on [-5, 10] x [0, 15]; minimum 10 / (8 pi) at 3 points.

    Notes
    -----
    (x2 - 5.1/(4 pi^2) x1^2 + 5/pi x1 - 6)^2 + 10 (1 - 1/(8 pi)) cos(x1) + 10. The minimum is
    that of the whole plane, so a rotation that leaves the domain cannot go below it.
    """
    x1, x2 = float(x[0]), float(x[1])
    square = x2 - 5.1 / (4 * math.pi**2) * x1**2 + 5 / math.pi * x1 - 6
    return square**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x1) + 10


def hartmann6(x: Array) -> float:
    """Return Hartmann's function on [0, 1]^6: -sum_i c_i exp(-sum_j A_ij (x_j - P_ij)^2)."""
    return -float(_C6 @ np.exp(-np.sum(_A6 * (x - _P6) ** 2, axis=1)))


def rosenbrock(x: Array) -> float:
    """Return Rosenbrock's function on [-5, 10]^D (BOCK, eq. 20); minimum 0 at (1, ..., 1)."""
    return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (x[:-1] - 1) ** 2))


def scaled_rosenbrock(x: Array) -> float:
    """Return Rosenbrock times 50000 / ((90^2 + 9^2) (D - 1)), as BOCK's tables print it.

    Notes
    -----
    The factor is not in the paper. It follows from the value at the centre, 8608.36 in every
    dimension, that Table 1 gives for TPE.
    """
    return rosenbrock(x) * 50_000 / ((90**2 + 9**2) * (len(x) - 1))


def levy(x: Array) -> float:
    """Return Levy's function on [-10, 10]^D; minimum 0 at (1, ..., 1).

    Notes
    -----
    The usual form, sin^2(pi w_1) + sum (w_i - 1)^2 (1 + 10 sin^2(pi w_i + 1)) + (w_D - 1)^2
    (1 + sin^2(2 pi w_D)) with w = 1 + (x - 1) / 4. BOCK's eq. 21 misprints it: only the usual
    form has Table 1's 2.35 at the centre in 20 dimensions and 9.62 in 100.
    """
    w = 1 + (x - 1) / 4
    inner = (w[:-1] - 1) ** 2 * (1 + 10 * np.sin(math.pi * w[:-1] + 1) ** 2)
    last = (w[-1] - 1) ** 2 * (1 + math.sin(2 * math.pi * w[-1]) ** 2)
    return float(math.sin(math.pi * w[0]) ** 2 + np.sum(inner) + last)


def repeated_branin(x: Array) -> float:
    """Return the mean of Branin over the floor(D / 2) pairs of coordinates (BOCK, eq. 18)."""
    return float(np.mean([branin(pair) for pair in _blocks(x, 2)]))


def repeated_hartmann6(x: Array) -> float:
    """Return the mean of Hartmann6 over floor(D / 6) blocks, remainder unread (BOCK, eq. 19)."""
    return float(np.mean([hartmann6(block) for block in _blocks(x, 6)]))


def gaussian_pdf(x: Array) -> float:
    """Return a Gaussian density scaled to maximum 1, at the origin (EGP, section 4.1).

    Notes
    -----
    exp(-x' S^-1 x / 2), S block-diagonal of [[1, 0.9], [0.9, 1]], whose inverse is
    [[1, -0.9], [-0.9, 1]] / 0.19. The maximum is the centre of the domain: no search should
    start there.
    """
    a, b = x[0::2], x[1::2]
    return math.exp(-0.5 * float(np.sum(a**2 + b**2 - 1.8 * a * b)) / 0.19)


@dataclass(frozen=True)
class RppMixture:
    """Projected-additive log-mixtures on [0, 1]^D (RPP, section 5.1); maximised.

    Notes
    -----
    f(x) = sum over two groups of log(0.1 N(z; v1) + 0.1 N(z; v2) + 0.8 N(z; v3)), variance
    0.01 d'^0.1, d' = D / 2, z = A'x, A = I + S, S uniform in (-1/4, 1/4) for D = 50 and in
    (-1/8, 1/8) for D = 100 (both misprinted in the paper), the logarithm floored at -700.
    The paper does not give the v's. Here they are the images v_k = A' x_k of three points drawn
    from [0.1, 0.9]^D, so every mode, and x_3 above all, lies inside the cube.
    """

    dim: int
    seed: int = 0

    def __call__(self, x: Array) -> float:
        """Return the value at a point, shape (D,)."""
        A, centres = _rpp_draw(self.dim, self.seed)
        distances = np.sum(
            (A.T @ (x - centres).T).T.reshape(3, 2, -1) ** 2, axis=2
        )  # (mode, group)
        logs = self._peak - distances / (2 * self._variance)
        top = np.max(logs, axis=0)
        weights = np.array([0.1, 0.1, 0.8])
        return float(np.sum(np.maximum(top + np.log(weights @ np.exp(logs - top)), LOG_FLOOR)))

    @property
    def _variance(self) -> float:
        return 0.01 * float((self.dim // 2) ** 0.1)

    @property
    def _peak(self) -> float:
        """Return the log density of N(0; 0, variance I) in d' dimensions."""
        return -self.dim / 4 * math.log(2 * math.pi * self._variance)

    @property
    def optimizer(self) -> Array:
        """Return the point of the maximum, the mode of weight 0.8 in both groups."""
        _, centres = _rpp_draw(self.dim, self.seed)
        return np.array(centres[2])


@lru_cache(maxsize=8)
def _rpp_draw(dim: int, seed: int) -> tuple[Array, Array]:
    """Return A (D, D) and the three points x_k (3, D)."""
    rng = np.random.default_rng([dim, seed])
    spread = 1 / 4 if dim <= 50 else 1 / 8
    A = np.eye(dim) + rng.uniform(-spread, spread, (dim, dim))
    return A, rng.uniform(0.1, 0.9, (3, dim))


def _blocks(x: Array, size: int) -> Array:
    return x[: len(x) // size * size].reshape(-1, size)


@dataclass(frozen=True)
class Function:
    """A function of a vector, with its domain and its optimum.

    Attributes
    ----------
    call : callable
        (D,) -> float.
    low, high : tuple of float
        Domain of each coordinate.
    optimizer : tuple of float
        A point of the optimum.
    mode : str
        "min" or "max".
    """

    call: Callable[[Array], float]
    low: tuple[float, ...]
    high: tuple[float, ...]
    optimizer: tuple[float, ...]
    mode: str = "min"

    @property
    def dim(self) -> int:
        """Return the number of coordinates."""
        return len(self.low)

    @property
    def optimum(self) -> float:
        """Return the best value."""
        return self.call(np.array(self.optimizer))


def _cube(
    call: Callable[[Array], float], low: float, high: float, best: float, dim: int
) -> Function:
    return Function(call, (low,) * dim, (high,) * dim, (best,) * dim)


def _branin_blocks(call: Callable[[Array], float], dim: int) -> Function:
    best = (math.pi, 2.275) * (dim // 2) + (0.0,) * (dim % 2)
    return Function(call, ((-5.0, 0.0) * dim)[:dim], ((10.0, 15.0) * dim)[:dim], best)


_HARTMANN6_BEST = (0.20168951, 0.15001069, 0.47687398, 0.27533243, 0.31165162, 0.65730053)


def _hartmann6_blocks(call: Callable[[Array], float], dim: int) -> Function:
    best = _HARTMANN6_BEST * (dim // 6) + (0.5,) * (dim % 6)
    return Function(call, (0.0,) * dim, (1.0,) * dim, best)


def _gaussian(dim: int) -> Function:
    half = 1.0 if dim <= 20 else 0.5  # EGP: [-1, 1]^20 and [-0.5, 0.5]^50
    return Function(gaussian_pdf, (-half,) * dim, (half,) * dim, (0.0,) * dim, mode="max")


def _rpp(dim: int) -> Function:
    call = RppMixture(dim)
    return Function(call, (0.0,) * dim, (1.0,) * dim, tuple(call.optimizer.tolist()), mode="max")


FIXED: dict[str, Function] = {  # functions of a fixed number of coordinates
    "branin": _branin_blocks(branin, 2),
    "hartmann6": _hartmann6_blocks(hartmann6, 6),
}
SCALABLE: dict[str, Callable[[int], Function]] = {  # by the number of coordinates
    "repeated-branin": partial(_branin_blocks, repeated_branin),
    "repeated-hartmann6": partial(_hartmann6_blocks, repeated_hartmann6),
    "levy": partial(_cube, levy, -10.0, 10.0, 1.0),
    "rosenbrock": partial(_cube, rosenbrock, -5.0, 10.0, 1.0),
    "scaled-rosenbrock": partial(_cube, scaled_rosenbrock, -5.0, 10.0, 1.0),
    "gaussian": _gaussian,
    "rpp": _rpp,
}
FEWEST = {"repeated-hartmann6": 6, "levy": 1}  # coordinates; 2 for the others
EVEN = ("gaussian", "rpp")  # functions of an even number of coordinates only
