"""Floor 6: the polar decomposition of a matrix by iteration.

Halley's iteration brings all singular values to 1 and keeps the singular vectors. Its
weights follow a lower bound of the singular values, so that six steps are enough for
every matrix whose condition is finite (Nakatsukasa, Bai and Gygi, "Optimizing Halley's
iteration for computing the matrix polar decomposition", 2010)::

    u, h, steps, converged = qdwh(x)    # x = u h
"""

from typing import Any, NamedTuple

from verax import numpy as vnp
from verax.lax.branching import cond
from verax.lax.looping import while_loop
from verax.numpy.arguments.arguments import ArrayLike
from verax.ops.linalg.algebra import adjoint
from verax.ops.linalg.qr import qr
from verax.ops.linalg.triangular import cholesky, triangular_solve
from verax.rules.values.array import Array
from verax.rules.values.sizes import ShapeError

STEPS = 10
"""The most steps, unless somebody says otherwise: rounding may cost some."""
STEEP = 100.0
"""Up to this weight a step by Cholesky factors loses no digits, and is cheaper."""

CLOSE = 10
"""How many times the precision the bound may be from 1 at the end."""


class Weights(NamedTuple):
    """The weights of a step, and the bound of the singular values after it."""

    a: Array
    b: Array
    c: Array
    bound: Array


def weights(bound: Array) -> Weights:
    """The best weights where the singular values are between `bound` and 1."""
    square = bound * bound
    root = vnp.sqrt(1 + vnp.cbrt(4 * (1 - square) / (square * square)))
    rest = 8 - 4 * (root * root - 1) + 8 * (2 - square) / (square * root)
    a = root + vnp.sqrt(rest) / 2
    b = (a - 1) ** 2 / 4
    c = a + b - 1
    after = bound * (a + b * square) / (1 + c * square)
    return Weights(a, b, c, vnp.minimum(after, 1))


def step_by_qr(u: Array, w: Weights) -> Array:
    """A step that is stable for any weights."""
    rows, size = u.shape
    root = vnp.sqrt(w.c)
    both = vnp.concatenate([root.astype(u.dtype) * u, vnp.eye(size, dtype=u.dtype)])
    q, _ = qr(both, full_matrices=False)
    factor = ((w.a - w.b / w.c) / root).astype(u.dtype)
    return (w.b / w.c).astype(u.dtype) * u + factor * (q[:rows] @ adjoint(q[rows:]))


def step_by_cholesky(u: Array, w: Weights) -> Array:
    """A step for small weights."""
    eye = vnp.eye(u.shape[1], dtype=u.dtype)
    factor = cholesky(eye + w.c.astype(u.dtype) * (adjoint(u) @ u))
    half = triangular_solve(factor, adjoint(u), left_side=True, lower=True)
    whole = triangular_solve(
        factor, half, left_side=True, lower=True, transpose_a=True, conjugate_a=True
    )
    ratio = w.b / w.c
    return ratio.astype(u.dtype) * u + (w.a - ratio).astype(u.dtype) * adjoint(whole)


def lower_bound(x: Array, eps: float) -> Array:
    """A lower bound of the singular values, which are 1 at most."""
    _, r = qr(x, full_matrices=False)
    eye = vnp.eye(x.shape[1], dtype=x.dtype)
    inverse = triangular_solve(r, eye, left_side=True, lower=False)
    found = 0.9 / vnp.linalg.norm(inverse)
    return vnp.where(vnp.isfinite(found), vnp.clip(found, eps, 1), eps)


def qdwh(
    x: ArrayLike,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Array, Array, Array, Array]:
    """The polar decomposition x = u h of a matrix of full rank, by iteration.

    Args:
        x: an array of shape (m, n), m >= n.
        is_hermitian: changes nothing.
        max_iterations: the most steps, by default 10.
        eps: the iteration ends when a step changes u by less than the part
            (4 eps)^(1/3) of it, by default the precision of the dtype.
        dynamic_shape: the shape of the matrix in the upper left corner of `x` that is
            decomposed; outside of it, u and h are zeros.

    Returns:
        u of shape (m, n) with orthonormal columns, the Hermitian positive semidefinite
        h of shape (n, n), the number of steps, and whether they were enough.

    Raises:
        ValueError: x is not a matrix, or has more columns than rows.

    >>> import numpy as np
    >>> u, h, _, converged = qdwh(np.float32([[0, -2], [2, 0]]))
    >>> (u @ h).round(3).tolist(), bool(converged)
    ([[0.0, -2.0], [2.0, 0.0]], True)
    """
    mat = vnp.asarray(x)
    if mat.ndim != 2 or mat.shape[0] < mat.shape[1]:
        raise ShapeError(
            "The input matrix of shape M x N must have M >= N: qdwh takes one matrix, "
            f"not an array of shape {mat.shape}"
        )
    if not vnp.issubdtype(mat.dtype, vnp.inexact):
        mat = mat.astype(vnp.result_type(mat, 1.0))
    if dynamic_shape is not None:
        rows, columns = (vnp.arange(n) for n in mat.shape)
        inside = (rows < dynamic_shape[0])[:, None] & (columns < dynamic_shape[1])
        mat = vnp.where(inside, mat, 0)
    if not mat.size:
        size = mat.shape[1]
        done = vnp.zeros((size, size), mat.dtype), vnp.int32(0), vnp.bool_(True)
        return (mat, *done)
    epsilon = float(vnp.finfo(mat.dtype).eps) if eps is None else eps
    most = STEPS if max_iterations is None else max_iterations
    u, steps, converged = iterated(mat, epsilon, most)
    # One step of Newton's iteration, which loses no digits near the end.
    u = 1.5 * u - 0.5 * (u @ (adjoint(u) @ u))
    h = adjoint(u) @ mat
    return u, (h + adjoint(h)) / 2, steps, converged


def iterated(mat: Array, eps: float, most: int) -> tuple[Array, Array, Array]:
    """The unitary factor, the number of steps, and whether they were enough."""
    size = vnp.sqrt(vnp.linalg.norm(mat, 1) * vnp.linalg.norm(mat, vnp.inf))
    start = mat / vnp.where(size == 0, 1, size).astype(mat.dtype)
    norm = vnp.linalg.norm
    tolerance = (4 * eps) ** (1 / 3)

    def step(state: Any) -> Any:
        u, bound, count, _ = state
        w = weights(bound)
        new = cond(w.c > STEEP, step_by_qr, step_by_cholesky, u, w)
        still = norm(new - u) <= tolerance * norm(new)
        return new, w.bound, count + 1, still & (1 - w.bound <= CLOSE * eps)

    begin = (start, lower_bound(start, eps), vnp.int32(0), vnp.bool_(False))
    u, _, steps, converged = while_loop(
        lambda state: (state[2] < most) & ~state[3], step, begin
    )
    return u, steps, converged
