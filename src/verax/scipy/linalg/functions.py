"""Floor 6: functions of matrices by Schur's triangular form, and Sylvester's equation.

One idea: the triangular problem is solved column by column, or diagonal by diagonal,
by a scan; the derivative of a solution is one more Sylvester equation::

    x = sqrtm(a)                   # x dx + dx x = da
    x = solve_sylvester(a, b, c)   # a dx + dx b = dc - da x - x db, and so on
"""

from collections.abc import Callable, Sequence
from typing import Literal, overload

import numpy as np

from verax import lax, numpy as vnp
from verax.api.autodiff.jvp_vjp import jvp
from verax.api.custom.jvp import custom_jvp
from verax.ir.dtypes import float64, is_complex
from verax.numpy import where
from verax.numpy.arguments.arguments import ArrayLike, as_array
from verax.numpy.linalg.decompositions import as_matrices, check_square
from verax.numpy.linalg.products import matmul
from verax.numpy.matrices import eye
from verax.numpy.shaping.shapes import broadcast_to
from verax.ops.control.any_lane import any_lane
from verax.ops.elementwise.arith import (
    abs as magnitude,
    add,
    div,
    max as larger,
    mul,
    sub,
)
from verax.ops.elementwise.compare import gt, le
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import exp2, log2
from verax.ops.elementwise.rounding import ceil
from verax.ops.elementwise.select import select
from verax.ops.linalg import lu
from verax.ops.linalg.triangular import adjoint, like, triangular_solve
from verax.ops.reductions.reduce import reduce_max, reduce_or, reduce_sum
from verax.ops.structure.create import full_like
from verax.ops.structure.shape import broadcast_in_dim
from verax.rules.values.array import Array
from verax.scipy.linalg.factors import rsf2csf, schur
from verax.scipy.tables import to_complex


def diagonal(x: Array) -> Array:
    return vnp.diagonal(x, axis1=-2, axis2=-1)


def triangular_form(a: Array) -> tuple[Array, Array]:
    """Schur's complex form, T and Z.

    That of real matrices is made from the real form: eigenvalues that are real have no
    imaginary part then, which rounding would put on either side of a branch cut.
    """
    return schur(a, "complex") if is_complex(a.dtype) else rsf2csf(*schur(a))


def upper_solve(a: Array, b: Array) -> Array:
    """The column x with A x = b for upper triangular A."""
    return triangular_solve(a, b[..., None], left_side=True, lower=False)[..., 0]


# --------------------------------------------------------------- Sylvester's equation


def solve_sylvester(
    A: ArrayLike,
    B: ArrayLike,
    C: ArrayLike,
    *,
    method: str = "schur",
    tol: float = 1e-8,
) -> Array:
    """The X with A X + X B = C.

    NaN where an eigenvalue of A and one of -B are nearer than `tol`: there is then no
    one solution.

    Args:
        A: shape (..., m, m).
        B: shape (..., n, n).
        C: shape (..., m, n).
        method: "schur" (R. Bartels, G. Stewart, 1972), or "eigen" by eigenvectors.
        tol: how near eigenvalues may be.

    Returns:
        X of shape (..., m, n), in the common inexact dtype; leading dimensions
        broadcast.

    Raises:
        ValueError: the shapes do not fit, or there is no such method.

    >>> a, c = np.float32([[2.0]]), np.float32([[6.0]])
    >>> solve_sylvester(a, a / 2, c).round(4).tolist()
    [[2.0]]
    """
    a, b, c = as_matrices("solve_sylvester", A, B, C)
    m, n = check_square("solve_sylvester", a), check_square("solve_sylvester", b)
    if c.ndim < 2 or c.shape[-2:] != (m, n):
        raise ValueError(
            f"solve_sylvester takes C of shape (..., {m}, {n}) for {a.aval} and "
            f"{b.aval}, not {c.aval}"
        )
    if method not in ("schur", "eigen"):
        raise ValueError(
            f"solve_sylvester: method must be 'schur' or 'eigen', not {method!r}"
        )
    batch = vnp.broadcast_shapes(a.shape[:-2], b.shape[:-2], c.shape[:-2])
    a, b, c = (vnp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b, c))
    return sylvester(a, b, c, method, float(tol)) if c.size else c


def sylvester(a: Array, b: Array, c: Array, method: str, tol: float) -> Array:
    """`solve_sylvester` of stacks of one shape: a linear system, so its derivatives
    are those of `custom_linear_solve`."""

    def solution(a: Array, b: Array, c: Array) -> Array:
        find = by_schur if method == "schur" else by_eigenvectors
        x, sums = find(a, b, c)
        single = (abs(sums) < tol).any((-2, -1), keepdims=True)
        return where(single, np.nan, x if is_complex(c.dtype) else x.real)

    at, bt = vnp.matrix_transpose(a), vnp.matrix_transpose(b)
    out: Array = lax.custom_linear_solve(
        lambda x: a @ x + x @ b,
        c,
        lambda _, right: solution(a, b, right),
        lambda _, right: solution(at, bt, right),
    )
    return out


def by_schur(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """The solution, and all sums of eigenvalues."""
    (r, u), (s, v) = schur(a, "complex"), schur(b, "complex")
    y = triangular_sylvester(r, s, adjoint(u) @ to_complex(c) @ v)
    sums = diagonal(r)[..., :, None] + diagonal(s)[..., None, :]
    return u @ y @ adjoint(v), sums


def by_eigenvectors(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """The solution, and all sums of eigenvalues."""
    (wa, va), (wb, vb) = vnp.linalg.eig(a), vnp.linalg.eig(b)
    sums = wa[..., :, None] + wb[..., None, :]
    y = vnp.linalg.solve(va, c.astype(va.dtype) @ vb) / sums
    return va @ y @ vnp.linalg.inv(vb), sums


def triangular_sylvester(r: Array, s: Array, f: Array) -> Array:
    """The Y with R Y + Y S = F for upper triangular R and S, column by column."""
    unit = vnp.broadcast_to(vnp.eye(r.shape[-1], dtype=r.dtype), r.shape)

    def column(y: Array, j: Array) -> tuple[Array, None]:
        right = take(f, j) - (y @ take(s, j)[..., None])[..., 0]
        shifted = r + take(diagonal(s)[..., None, :], j)[..., None] * unit
        return put(y, j, upper_solve(shifted, right)), None

    y, _ = lax.scan(column, vnp.zeros_like(f), vnp.arange(f.shape[-1]))
    out: Array = y
    return out


def take(x: Array, j: Array) -> Array:
    """Column j of stacks of matrices."""
    return lax.dynamic_index_in_dim(x, j, x.ndim - 1, keepdims=False)


def put(x: Array, j: Array, column: Array) -> Array:
    """Stacks of matrices with another column j, which was zero."""
    here = vnp.arange(x.shape[-1]) == j
    return where(here, column[..., None], x)


# -------------------------------------------------------------------- square roots


def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """The complex X with X X = A and eigenvalues in the right half plane.

    By Schur's form (Å. Björck, S. Hammarling, 1983). Where a singular matrix has no
    square root there is NaN.

    Args:
        A: square matrices of shape (..., n, n).
        blocksize: only 1.

    Returns:
        X of the shape of `A`, complex for real `A` too: complex64 for float32.

    Raises:
        ValueError: the matrices are not square, or `blocksize` is not 1.

    >>> sqrtm(np.float32([[4, 0], [0, 9]])).real.tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    >>> sqrtm(np.float32([[-4]]))
    Array([[0.+2.j]], dtype=complex64)
    """
    if blocksize != 1:
        raise ValueError(
            f"sqrtm does not work in blocks: blocksize must be 1, not {blocksize}"
        )
    (a,) = as_matrices("sqrtm", A)
    check_square("sqrtm", a)
    if not a.size:
        return to_complex(a)
    out: Array = square_root(a)
    return out


@custom_jvp
def square_root(a: Array) -> Array:
    """`sqrtm` of matrices that are not empty."""
    t, z = triangular_form(a)
    return z @ triangular_root(t) @ adjoint(z)


@square_root.defjvp
def square_root_tangent(
    primals: Sequence[Array], tangents: Sequence[Array]
) -> tuple[Array, Array]:
    """X dX + dX X = dA."""
    x = square_root(*primals)
    return x, sylvester(x, x, to_complex(tangents[0]), "schur", 0.0)


def triangular_root(t: Array) -> Array:
    """The square root of an upper triangular matrix, column by column."""
    n = t.shape[-1]
    roots = vnp.sqrt(diagonal(t))
    rows, unit = vnp.arange(n), vnp.eye(n, dtype=t.dtype)

    def column(u: Array, j: Array) -> tuple[Array, None]:
        root = take(roots[..., None, :], j)
        sums = where(rows < j, roots + root, 1.0)
        # A sum that is zero belongs to a pair of zeros: then zero solves, or nothing.
        single = sums == 0
        known = where((rows < j)[:, None], u, 0.0)
        matrix = where(unit == 0, known, where(single, 1.0, sums)[..., None])
        column = upper_solve(matrix, where(rows < j, take(t, j), 0.0))
        column = where(single & (column != 0), np.nan, column)
        return put(u, j, where(rows == j, root, column)), None

    u, _ = lax.scan(column, vnp.zeros_like(t), vnp.arange(n))
    out: Array = u
    return out


# ---------------------------------------------------------------- any other function


@overload
def funm(
    A: ArrayLike, func: Callable[[Array], Array], disp: Literal[True] = True
) -> Array: ...
@overload
def funm(
    A: ArrayLike, func: Callable[[Array], Array], disp: Literal[False]
) -> tuple[Array, Array]: ...
@overload
def funm(
    A: ArrayLike, func: Callable[[Array], Array], disp: bool = True
) -> Array | tuple[Array, Array]: ...
def funm(
    A: ArrayLike, func: Callable[[Array], Array], disp: bool = True
) -> Array | tuple[Array, Array]:
    """A function of a matrix, from its values at the eigenvalues; complex.

    By Schur's form and Parlett's recurrence (G. Golub, C. Van Loan, "Matrix
    Computations", algorithm 9.1.1), which loses digits where eigenvalues are near each
    other.

    Args:
        A: square matrices of shape (..., n, n).
        func: the function of numbers, which is called with a complex array of all
            eigenvalues, of shape (..., n), and returns one of this shape.
        disp: whether the result comes alone; else an estimate of its relative error is
            returned as well. Nothing is printed.

    Returns:
        Of the shape of `A`, complex; without `disp` the pair of this and the estimates,
        real and of shape (...).

    Raises:
        ValueError: the matrices are not square.

    >>> funm(np.float32([[1, 0], [0, 2]]), lambda x: x * x).real.tolist()
    [[1.0, 0.0], [0.0, 4.0]]
    """
    (a,) = as_matrices("funm", A)
    n = check_square("funm", a)
    t, z = triangular_form(a)
    values = as_array("funm", func(diagonal(t))).astype(t.dtype)
    d = diagonal(t)
    gaps = d[..., None, :] - d[..., :, None]
    rows, columns = np.arange(n)[:, None], np.arange(n)[None, :]
    safe = where(gaps == 0, 1.0, gaps)
    start = where(rows == columns, values[..., None], vnp.zeros_like(t))

    def next_diagonal(f: Array, p: Array) -> tuple[Array, None]:
        # With zeros from diagonal p on, T F - F T is the recurrence's sum there.
        return where(columns - rows == p, (t @ f - f @ t) / safe, f), None

    f, _ = lax.scan(next_diagonal, start, vnp.arange(1, max(n, 1)))
    out = z @ f @ adjoint(z)
    return (
        out
        if disp
        else (out, error_of(t, out, where(rows < columns, abs(gaps), np.inf)))
    )


def error_of(t: Array, array: Array, gaps: Array) -> Array:
    """The relative error of Parlett's recurrence."""
    eps = float(vnp.finfo(t.dtype).eps)
    least = gaps.min((-2, -1), initial=np.inf)
    above = abs(vnp.triu(t, 1)).sum(-2).max(-1, initial=0.0)
    error = vnp.clip(eps / where(least == 0, eps, least) * above, eps, 1.0)
    return where(vnp.isfinite(array).all((-2, -1)), error, np.inf)


# -----------------------------------------------------------------------------
# Exponentials of matrices, and their derivatives in a direction.
#
# expm(a), expm_frechet(a, direction)


# The coefficients of Padé's approximation of order 7, and up to which norm it is exact
# to 2^-24; those of order 13, exact to 2^-53 (N. Higham, The scaling and squaring
# method for the matrix exponential revisited, 2005, tables 2.1 and 2.3).
SINGLE = (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0)
SINGLE_RADIUS = 3.925724783138660
DOUBLE = (
    64764752532480000.0,
    32382376266240000.0,
    7771770303897600.0,
    1187353796428800.0,
    129060195264000.0,
    10559470521600.0,
    670442572800.0,
    33522128640.0,
    1323241920.0,
    40840800.0,
    960960.0,
    16380.0,
    182.0,
    1.0,
)
DOUBLE_RADIUS = 5.371920351148152


def expm(
    A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16
) -> Array:
    """The exponentials of square matrices, by Padé's approximation and squaring.

    Source: N. Higham, "The scaling and squaring method for the matrix exponential
    revisited", 2005.

    Args:
        A: square matrices of shape (..., n, n); integers become floats.
        upper_triangular: changes nothing.
        max_squarings: how often a result may be squared; there is NaN where the norm of
            a matrix needs more.

    Returns:
        Of the shape of `A`, in its inexact dtype.

    Raises:
        ValueError: the matrices are not square.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import linalg
    >>> linalg.expm(vnp.array([[0, 1], [0, 0]]))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    >>> linalg.expm(vnp.array([[0.0, -vnp.pi], [vnp.pi, 0.0]])).diagonal().round(3)
    Array([-1., -1.], dtype=float32)
    """
    (a,) = as_matrices("expm", A)
    check_square("expm", a)
    size = a.ndim - 2
    if not a.size:
        return a
    norm = reduce_max(reduce_sum(magnitude(a), (size,)), (size,))
    wide = norm.dtype == float64
    radius = DOUBLE_RADIUS if wide else SINGLE_RADIUS
    # The logarithm of a norm below one is not needed, that of zero does not exist.
    count = ceil(log2(larger(div(norm, radius), full_like(norm, 1))))
    small = div(a, spread(like(exp2(count), a), a))
    array = approximant(small, DOUBLE if wide else SINGLE)

    def squared(x: Array, i: Array) -> Array:
        if count.ndim:
            return select(spread(gt(count, i), x), matmul(x, x), x)
        out: Array = lax.cond(gt(count, i), lambda x: matmul(x, x), lambda x: x, x)
        return out

    def step(x: Array, i: Array) -> tuple[Array, None]:
        # What none of the matrices needs, not even of those under vmap, is left out.
        needed = reduce_or(gt(count, i), tuple(range(count.ndim)))
        return lax.cond(any_lane(needed), squared, lambda x, i: x, x, i), None

    array, _ = lax.scan(step, array, vnp.arange(max_squarings, dtype=count.dtype))
    # No NaN exists unless a result is one: debug_nans looks at every value.
    known = like(convert(le(count, float(max_squarings)), norm.dtype), a)
    return mul(array, spread(div(known, known), a))


def spread(x: Array, a: Array) -> Array:
    """One number for each matrix, at all of its elements."""
    return broadcast_in_dim(x, a.shape, tuple(range(x.ndim)))


def approximant(a: Array, pade: tuple[float, ...]) -> Array:
    """Padé's approximation (V - U)⁻¹ (V + U) of exp(a), of order 7 or 13."""
    unit = broadcast_to(eye(a.shape[-1], dtype=a.dtype), a.shape)
    a2 = matmul(a, a)
    a4 = matmul(a2, a2)
    a6 = matmul(a4, a2)
    powers = (unit, a2, a4, a6)
    # The coefficients are far apart: relative to the first they fit float32.
    c = [value / pade[0] for value in pade]
    odd, even = combined(c[1:9:2], powers), combined(c[0:8:2], powers)
    if len(c) > 8:
        odd = add(matmul(a6, combined(c[9::2], powers[1:])), odd)
        even = add(matmul(a6, combined(c[8::2], powers[1:])), even)
    u = matmul(a, odd)
    return lu.solve(sub(even, u), add(even, u))


def combined(coefficients: list[float], powers: tuple[Array, ...]) -> Array:
    """The sum of powers, each times its coefficient."""
    terms = [mul(p, full_like(p, c)) for c, p in zip(coefficients, powers, strict=True)]
    total = terms[0]
    for term in terms[1:]:
        total = add(total, term)
    return total


@overload
def expm_frechet(
    A: ArrayLike,
    E: ArrayLike,
    *,
    method: str | None = None,
    compute_expm: Literal[True] = True,
) -> tuple[Array, Array]: ...
@overload
def expm_frechet(
    A: ArrayLike,
    E: ArrayLike,
    *,
    method: str | None = None,
    compute_expm: Literal[False],
) -> Array: ...
@overload
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True
) -> Array | tuple[Array, Array]: ...
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True
) -> Array | tuple[Array, Array]:
    """exp(A) and its derivative in the direction E, or the derivative alone.

    There is one method, the derivative of `expm`.

    Args:
        A: square matrices of shape (..., n, n).
        E: the directions, of the shape of `A`.
        method: changes nothing.
        compute_expm: whether exp(A) is returned as well.

    Returns:
        The pair of exp(A) and the derivative, or the derivative, both of the shape of
        `A`.

    Raises:
        ValueError: the matrices are not square, or of different shapes.

    >>> import numpy as np
    >>> zero, unit = np.zeros((2, 2), np.float32), np.eye(2, dtype=np.float32)
    >>> expm_frechet(zero, unit, compute_expm=False).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    a, direction = as_matrices("expm_frechet", A, E)
    check_square("expm_frechet", a)
    if a.shape != direction.shape:
        raise ValueError(
            f"expm_frechet: A and E must have the same shape, not {a.shape} and "
            f"{direction.shape}"
        )
    out, moved = jvp(expm, (a,), (direction,))
    return (out, moved) if compute_expm else moved
