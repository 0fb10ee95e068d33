"""Posteriors of the functions of all vertices of an Add-Tree Gaussian process in one batch."""

from __future__ import annotations

from dataclasses import dataclass

from raybo.errors import SurrogateError
from raybo.lazy import Tensor, torch
from raybo.methods.addtree.kernel import TreeKernel, batches, padded
from raybo.surrogate.gp import GP, LEAST_VARIANCE, Posterior


@dataclass(frozen=True)
class _Batch:
    """Vertices that about as many observations pass through, padded to one number of rows."""

    vertices: Tensor  # (b,) their numbers
    X: Tensor  # (b, k, c) own columns of the rows that pass
    alpha: Tensor  # (b, k), 0 in the padding
    inverse: Tensor  # (b, k, k) blocks of (K + noise I)^-1, 0 in the padding
    scale: Tensor  # (b, c)
    weight: Tensor  # (b, c)
    variance: Tensor  # (b,)


@dataclass(frozen=True)
class VertexPosteriors:
    """Posterior of every term of a Gaussian process with a `TreeKernel`; make one with `of`.

    A point of a vertex is given by its own columns, ordered ones first, padded to one width.

    Notes
    -----
    mean_v = k_v(x, X) alpha and variance_v = k_v(x, x) - k_v(x, X) (K + noise I)^-1 k_v(X, x), as
    `GP.posterior(part=v)`. k_v is 0 at the observations that do not pass through v, so only the
    block of the inverse that belongs to those that do is used (section 4.1 of Ma & Blaschko):
    O(n_v^2) for a point instead of O(n^2), and exact, whatever else the observations share.
    """

    kernel: TreeKernel
    prior: Tensor  # (V,) variances
    batches: tuple[_Batch, ...]

    @classmethod
    def of(cls, gp: GP) -> VertexPosteriors:
        """Posteriors of the terms of `gp`."""
        kernel, X = gp.kernel, gp.X
        if not isinstance(kernel, TreeKernel):
            raise SurrogateError(f"posteriors by vertex need a TreeKernel, this is {kernel}")
        scale, weight, variance = kernel.tables(gp.theta)
        inverse = torch.cholesky_inverse(gp.chol)
        order, counts = kernel.passing(X)
        found = []
        for vertices in batches(counts):
            rows, valid = padded(order, counts, vertices)
            mask = valid.to(X.dtype)
            found.append(
                _Batch(
                    torch.tensor(vertices),
                    kernel.own(X, vertices, rows),
                    gp.alpha[rows] * mask,
                    inverse[rows[:, :, None], rows[:, None, :]] * mask[:, :, None] * mask[:, None],
                    scale[vertices],
                    weight[vertices],
                    variance[vertices],
                )
            )
        return cls(kernel, variance, tuple(found))

    def __call__(self, Z: Tensor) -> Posterior:
        """Mean (V, s) and variance (V, s) at s points of each of the V vertices, Z (V, s, c)."""
        mean = Z.new_zeros(Z.shape[:2])
        variance = self.prior[:, None].expand(Z.shape[:2])
        for b in self.batches:
            K = self.kernel.correlations(Z[b.vertices], b.X, b.scale, b.weight)
            K = K * b.variance[:, None, None]
            mean = mean.index_add(0, b.vertices, (K * b.alpha[:, None, :]).sum(2))
            # The derivative of k' A k is 2 A k: autograd needs no second product with the matrix.
            solved = K.detach() @ b.inverse
            gain = ((2.0 * K - K.detach()) * solved).sum(2)
            variance = variance.index_add(0, b.vertices, -gain)
        return Posterior(mean, variance.clamp_min(LEAST_VARIANCE))
