"""Floor 6: what is solved with matrices: systems, inverses, determinants, powers.

One idea: one decomposition each: LU factors for square systems and determinants,
singular values for what is not square or not regular::

    solve(a, b), inv(a), det(a), lstsq(a, b)
"""

import operator
from collections.abc import Sequence
from functools import partial
from math import prod

from verax.api.custom.jvp import custom_jvp
from verax.backend.eager.composites import in_numpy, remembered
from verax.ir.avals import finfo
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    broadcast_shapes_of,
    default_integer,
    stretched,
)
from verax.numpy.linalg.decompositions import as_matrices, check_square, svd, values_of
from verax.numpy.linalg.host_solving import (
    inv_at_once,
    solve_at_once,
)
from verax.numpy.linalg.products import matmul
from verax.numpy.matrices import eye
from verax.numpy.reducing.reductions import sum as total
from verax.numpy.shaping.shapes import (
    broadcast_to,
    expand_dims,
    moveaxis,
    reshape,
    squeeze,
)
from verax.ops.elementwise.arith import add, div, mul, neg, sub
from verax.ops.elementwise.compare import gt, ne
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.ops.linalg import lu, triangular
from verax.ops.linalg.triangular import (
    adjoint,
    along_columns,
    conjugate,
    like,
    real_part,
    symmetrized,
    times_columns,
)
from verax.ops.reductions.reduce import reduce_max, reduce_sum
from verax.ops.structure.create import full_like
from verax.rules.values.array import Array
from verax.rules.values.sizes import ShapeError


def as_system(name: str, a: Array, b: Array) -> tuple[Array, Array, bool]:
    """Matrices and right-hand sides in stacks of one shape; whether `b` was a vector.

    Raises:
        ValueError: the matrices are not square, or `b` has other sizes.
    """
    size = check_square(name, a)
    vector = b.ndim == 1
    side = expand_dims(b, -1) if vector else b
    if side.ndim < 2 or side.shape[-2] != size:
        raise ValueError(
            f"{name} takes right-hand sides with {size} rows for {a.aval}, not {b.aval}"
        )
    stack = broadcast_shapes_of(name, [a.shape[:-2], side.shape[:-2]])
    rows = [stretched(x, (*stack, *x.shape[-2:])) for x in (a, side)]
    return rows[0], rows[1], vector


@in_numpy(solve_at_once)
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """The X with A X = B, for A (..., n, n) and B (..., n, k), or one vector (n,).

    Singular matrices give values that are not finite, where NumPy raises an error.

    Args:
        a: matrices of shape (..., n, n).
        b: right-hand sides of shape (..., n, k), whose leading dimensions broadcast
            with those of `a`; or one vector for all matrices.

    Returns:
        an array of shape (..., n, k), or (..., n) for a vector, in the common dtype of
        both, integers as floats.

    Raises:
        ValueError: the shapes do not fit.

    >>> import verax.numpy as vnp
    >>> vnp.linalg.solve(vnp.array([[2.0, 0.0], [0.0, 4.0]]), vnp.array([2.0, 2.0]))
    Array([1. , 0.5], dtype=float32)
    """
    x, y, vector = as_system("solve", *as_matrices("solve", a, b))
    out = lu.solve(x, y)
    return squeeze(out, -1) if vector else out


@in_numpy(inv_at_once)
def inv(a: ArrayLike) -> Array:
    """The inverses of square matrices; infinite or NaN where there are none.

    `solve` is faster and more precise than a product with an inverse.

    Args:
        a: matrices of shape (..., n, n).

    Returns:
        an array in the shape of `a`, in its dtype, integers as floats.

    Raises:
        ValueError: the matrices are not square.

    >>> import verax.numpy as vnp
    >>> vnp.linalg.inv(vnp.array([[2, 1], [0, 4]]))
    Array([[ 0.5  , -0.125],
           [ 0.   ,  0.25 ]], dtype=float32)
    >>> bool(vnp.isfinite(vnp.linalg.inv(vnp.array([[1, 2], [2, 4]]))).any())
    False
    """
    (x,) = as_matrices("inv", a)
    check_square("inv", x)
    out: Array = inverse(x)
    return out


@custom_jvp
def inverse(x: Array) -> Array:
    """`inv` of matrices, by LU factors."""
    x = convert(x, x.dtype)  # not weak
    return lu.solve(x, broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape))


@inverse.defjvp
def inverse_tangent(
    primals: Sequence[Array], tangents: Sequence[Array]
) -> tuple[Array, Array]:
    """-A⁻¹ dA A⁻¹: products cost less than solving with the factors again."""
    x = inverse(*primals)
    return x, neg(triangular.matmul(triangular.matmul(x, tangents[0]), x))


@remembered
def pinv(
    a: ArrayLike,
    rtol: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rcond: ArrayLike | None = None,
) -> Array:
    """The pseudo-inverses, without singular values below `rtol` times the largest.

    Args:
        a: matrices of shape (..., m, n).
        rtol: a scalar, or an array of shape (...); 10 max(m, n) eps by default.
        hermitian: whether `a` is taken to be Hermitian, which costs less.
        rcond: the older name of `rtol`.

    Returns:
        an array of shape (..., n, m) in the dtype of `a`, integers as floats.

    Raises:
        ValueError: both are given, or there are fewer than two dimensions.

    >>> import verax.numpy as vnp
    >>> a = vnp.array([[2.0, 0.0], [0.0, 1e-3], [0.0, 0.0]])
    >>> vnp.linalg.pinv(a, rtol=1e-2).round(3)
    Array([[0.5, 0. , 0. ],
           [0. , 0. , 0. ]], dtype=float32)
    """
    if rtol is not None and rcond is not None:
        raise ValueError("pinv: only one of rtol and rcond may be specified.")
    (x,) = as_matrices("pinv", a)
    bound = rcond if rtol is None else rtol
    if bound is None:
        bound = 10.0 * max(x.shape[-2:]) * float(finfo(x.dtype).eps)
    out: Array = pseudo_inverse(x, bound, hermitian)
    return out


@partial(custom_jvp, nondiff_argnums=(2,))
def pseudo_inverse(x: Array, bound: ArrayLike, hermitian: bool) -> Array:
    """The pseudo-inverses, by singular values above `bound` times the largest."""
    u, s, vh = svd(x, full_matrices=False, hermitian=hermitian)
    kept = gt(s, stretched(cutoff(s, bound), s.shape))
    inverse = reciprocals(s, kept)
    return matmul(times_columns(adjoint(vh), inverse), adjoint(u))


@pseudo_inverse.defjvp
def pinv_tangent(
    hermitian: bool, primals: Sequence[Array], tangents: Sequence[Array]
) -> tuple[Array, Array]:
    """With P = A⁺: -P dA P + P Pᴴ dAᴴ (1 - A P) + (1 - P A) dAᴴ Pᴴ P.

    That is (4.12) of Golub and Pereyra (1973), "The differentiation of pseudo-inverses
    and nonlinear least squares problems whose variables separate", for matrices whose
    rank does not change. It has no difference of singular values, which may be equal.
    """
    (x, bound), (t, _) = primals, tangents
    if hermitian:
        t = symmetrized(t)
    p = pseudo_inverse(x, bound, hermitian)
    left = through_smaller(p, adjoint(p), adjoint(t))
    right = through_smaller(adjoint(t), adjoint(p), p)
    out = sub(left, through_smaller(left, x, p))
    out = add(out, sub(right, through_smaller(p, x, right)))
    return p, sub(out, through_smaller(p, t, p))


def through_smaller(a: Array, b: Array, c: Array) -> Array:
    """a b c, where a and c have the shape of bᵀ, by the smaller of the squares."""
    if a.shape[-2] <= a.shape[-1]:
        return matmul(matmul(a, b), c)
    return matmul(a, matmul(b, c))


def reciprocals(s: Array, kept: Array) -> Array:
    """1 / s where values are kept, else 0."""
    return select(kept, div(1.0, select(kept, s, full_like(s, 1))), full_like(s, 0))


def cutoff(s: Array, rtol: ArrayLike) -> Array:
    """`rtol` times the largest singular values, with a dimension of size 1."""
    largest = reduce_max(s, (s.ndim - 1,)) if s.shape[-1] else total(s, -1)
    bound = as_array("rtol", rtol)
    return expand_dims(mul(largest, stretched(like(bound, s), largest.shape)), -1)


@remembered
def matrix_rank(
    M: ArrayLike,
    rtol: ArrayLike | None = None,
    *,
    hermitian: bool = False,
    tol: ArrayLike | None = None,
) -> Array:
    """The number of singular values that are above `tol`, or `rtol` times the largest.

    Args:
        M: matrices of shape (..., m, n); a vector or scalar has rank 1, or 0 if it is
            zero.
        rtol: a scalar, or an array of shape (...); max(m, n) eps by default.
        hermitian: whether `M` is taken to be Hermitian, which costs less.
        tol: an absolute bound instead: a scalar, or an array of shape (...).

    Returns:
        an array of integers of shape (...).

    Raises:
        ValueError: both are given.

    >>> import verax.numpy as vnp
    >>> a = vnp.array([[1.0, 0.0], [0.0, 1e-3]])
    >>> vnp.linalg.matrix_rank(a), vnp.linalg.matrix_rank(a, rtol=1e-2)
    (Array(2, dtype=int32), Array(1, dtype=int32))
    """
    if rtol is not None and tol is not None:
        raise ValueError("matrix_rank: only one of tol or rtol may be specified.")
    x = as_array("matrix_rank", M)
    if x.ndim < 2:
        (x,) = as_matrices("matrix_rank", reshape(x, (1, -1)))
        return convert(reduce_max(ne(x, 0.0), (0, 1)), default_integer())
    (x,) = as_matrices("matrix_rank", x)
    s = svd(x, compute_uv=False, hermitian=hermitian) if hermitian else values_of(x)
    if tol is not None:
        bound = expand_dims(
            broadcast_to(like(as_array("tol", tol), s), s.shape[:-1]), -1
        )
    else:
        default = max(x.shape[-2:]) * float(finfo(x.dtype).eps)
        bound = cutoff(s, default if rtol is None else rtol)
    above = gt(s, stretched(bound, s.shape))
    return reduce_sum(convert(above, default_integer()), (s.ndim - 1,))


@remembered
def matrix_power(a: ArrayLike, n: int) -> Array:
    """Square matrices to an integer power, by repeated squaring.

    Args:
        a: matrices of shape (..., n, n).
        n: the power, an integer known while tracing; negative for powers of the
            inverse.

    Returns:
        an array in the shape and dtype of `a`; integers as floats if `n` is negative.

    Raises:
        TypeError: `n` is not an integer known while tracing.
        ValueError: the matrices are not square.

    >>> import verax.numpy as vnp
    >>> vnp.linalg.matrix_power(vnp.array([[1, 1], [1, 0]]), 10)
    Array([[89, 55],
           [55, 34]], dtype=int32)
    >>> vnp.linalg.matrix_power(vnp.array([[2, 0], [0, 4]]), -2)
    Array([[0.25  , 0.    ],
           [0.    , 0.0625]], dtype=float32)
    """
    x = as_array("matrix_power", a)
    power = operator.index(n)
    if x.ndim < 2:
        raise ShapeError(f"matrix_power takes square matrices, not {x.aval}")
    size = check_square("matrix_power", x)
    if power == 0:
        return broadcast_to(eye(size, dtype=x.dtype), x.shape)
    base = inv(x) if power < 0 else x
    out: Array | None = None
    left = abs(power)
    while left:
        if left & 1:
            out = base if out is None else matmul(out, base)
        left >>= 1
        base = matmul(base, base) if left else base
    assert out is not None
    return out


@remembered
def lstsq(
    a: ArrayLike,
    b: ArrayLike,
    rcond: float | None = None,
    *,
    numpy_resid: bool = False,
) -> tuple[Array, Array, Array, Array]:
    """The shortest X with the least |A X - B|; residuals, rank, singular values.

    Args:
        a: a matrix of shape (m, n).
        b: right-hand sides of shape (m,) or (m, k).
        rcond: singular values below `rcond` times the largest count as zero; max(m, n)
            eps by default.
        numpy_resid: whether the residuals are empty where NumPy's are: with no more
            equations than unknowns, or where the rank is not full. This needs the
            values, so it cannot be traced.

    Returns:
        a tuple: X of shape (n,) or (n, k); the sums of squared residuals, of shape (1,)
        or (k,); the rank; and the singular values, of shape (min(m, n),).

    Raises:
        ValueError: the shapes do not fit.

    >>> import verax.numpy as vnp
    >>> a = vnp.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> x, residuals, rank, s = vnp.linalg.lstsq(a, vnp.array([1.0, 0.0, 5.0]))
    >>> x.round(3), residuals.round(3), rank
    (Array([0., 2.], dtype=float32), Array([6.], dtype=float32), Array(2, dtype=int32))
    """
    x, y = as_matrices("lstsq", a, b)
    if x.ndim != 2 or y.ndim not in (1, 2) or x.shape[0] != y.shape[0]:
        raise ValueError(
            f"lstsq takes a matrix (m, n) and right-hand sides (m,) or (m, k), not "
            f"{x.aval} and {y.aval}"
        )
    vector = y.ndim == 1
    side = expand_dims(y, -1) if vector else y
    u, s, vh = svd(x, full_matrices=False)
    default = max(x.shape) * float(finfo(x.dtype).eps)
    above = gt(s, stretched(cutoff(s, default if rcond is None else rcond), s.shape))
    rank = reduce_sum(convert(above, default_integer()), (0,))
    inverse = reciprocals(s, above)
    inner = matmul(adjoint(u), side)
    scaled = mul(inner, along_columns(like(inverse, inner), inner))
    solution = matmul(adjoint(vh), scaled)
    rest = sub(side, matmul(x, solution))
    residuals = total(real_part(mul(rest, conjugate(rest))), 0)
    if numpy_resid and not has_residuals(x, rank):
        residuals = residuals[:0]
    return squeeze(solution, -1) if vector else solution, residuals, rank, s


def has_residuals(x: Array, rank: Array) -> bool:
    """Whether NumPy gives residuals: more equations than unknowns, and full rank."""
    return x.shape[0] > x.shape[1] and int(rank) == x.shape[1]


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of the map from the last to the first `ind` dimensions.

    Args:
        a: an array whose first `ind` dimensions have as many elements as the others.
        ind: the number of dimensions of the map's results, positive.

    Returns:
        an array with the other dimensions of `a` first, then its first `ind` ones; in
        its dtype, integers as floats.

    Raises:
        ValueError: the numbers of elements differ.

    >>> import verax.numpy as vnp
    >>> a = 2 * vnp.eye(4).reshape(4, 2, 2)
    >>> b = vnp.linalg.tensorinv(a, ind=1)
    >>> b.shape, vnp.tensordot(b, vnp.array([2.0, 4.0, 6.0, 8.0]), 1).tolist()
    ((2, 2, 4), [[1.0, 2.0], [3.0, 4.0]])
    """
    x = as_array("tensorinv", a)
    first, rest = x.shape[:ind], x.shape[ind:]
    if ind <= 0 or prod(first) != prod(rest):
        raise ValueError(
            f"tensorinv: with ind={ind} the first and the last dimensions must have "
            f"equal products, unlike those of {x.aval}"
        )
    return reshape(inv(reshape(x, (prod(first), -1))), (*rest, *first))


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """The X with tensordot(A, X, X.ndim) = B; `axes` of A are moved to its end.

    Args:
        a: an array with the dimensions of `b`, then those of X, as many elements in
            these as in those.
        b: an array.
        axes: dimensions of `a` to move to its end first, in this order; None for none.

    Returns:
        an array with the dimensions of `a` beyond those of `b`, in the common dtype of
        both, integers as floats.

    Raises:
        ValueError: the map is not square.

    >>> import verax.numpy as vnp
    >>> a = 2 * vnp.eye(4).reshape(2, 2, 4)
    >>> vnp.linalg.tensorsolve(a, vnp.array([[2.0, 4.0], [6.0, 8.0]]))
    Array([1., 2., 3., 4.], dtype=float32)
    """
    x, y = as_array("tensorsolve", a), as_array("tensorsolve", b, 1)
    if axes is not None:
        x = moveaxis(x, tuple(axes), tuple(range(x.ndim - len(axes), x.ndim)))
    rest = x.shape[y.ndim :]
    if prod(rest) != y.size:
        raise ValueError(
            "tensorsolve: the dimensions of a beyond those of b must have as many "
            f"elements as b, but a is {x.aval} and b is {y.aval}"
        )
    array = solve(reshape(x, (y.size, y.size)), reshape(y, (-1,)))
    return reshape(array, rest)
