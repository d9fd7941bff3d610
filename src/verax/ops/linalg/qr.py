"""Floor 2: QR decompositions, by Householder reflections.

One idea: A R⁻¹ has orthonormal columns, so with dX = dA R⁻¹ the tangent of Q is
Q Ω + (1 - Q Qᴴ) dX, where Ω is antihermitian and Qᴴ dX - Ω upper triangular with a
real diagonal::

    q, r = qr(a, full_matrices=False)

Source: S. Walter and L. Lehmann, Algorithmic differentiation of linear algebra
functions with application in optimum experimental design, arXiv:1001.1654.
"""

from collections.abc import Sequence
from typing import Literal, overload

import numpy as np
from attrs import frozen

from verax.ir.avals import ShapedArray, smaller_size
from verax.ir.dtypes import int32, is_complex
from verax.ir.jaxpr import NO_PARAMS, NoParams, Params
from verax.ops.elementwise.arith import add, sub
from verax.ops.indexing.gather import take_along
from verax.ops.linalg.triangular import (
    adjoint,
    as_operand,
    below,
    columns,
    like,
    matmul,
    on_diagonal,
    real_part,
    triangle_of,
    triangular_solve,
)
from verax.ops.structure.shape import broadcast_in_dim
from verax.rules.families.lapack import (
    SOLVING,
    by_dtype,
    cubic,
    host_routine,
    hybrid,
    matrix_row,
    routine,
    solver,
)
from verax.rules.families.linear import Pushed, one_pushed
from verax.rules.rows.emitter import Emitter, Operand, i64s
from verax.rules.rows.row import NDArray, Row, Rows, Traits, Zero
from verax.rules.values.array import Array
from verax.rules.values.sizes import surely_less


def geqrf_results(p: NoParams, xs: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    (a,) = xs
    return a, a.with_shape((smaller_size(*a.shape),))


def evaluate_geqrf(p: NoParams, a: NDArray) -> Sequence[NDArray]:
    if not a.size:
        return a, np.zeros((0,), a.dtype)
    packed, taus, _, _ = host_routine("geqrf", a.dtype)(a)
    return packed, taus


def reflectors(
    e: Emitter, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> tuple[Operand, ...]:
    """The factors of a matrix, packed, and their scales."""
    if e.platform == "cpu":
        return routine(e, "?geqrf", xs, outs, {0: 0})
    return solver(e, "geqrf", xs, outs)


def product_of_reflectors(
    e: Emitter, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> tuple[Operand, ...]:
    """The orthogonal matrix that packed factors and their scales stand for."""
    if e.platform == "cpu":
        name = by_dtype(outs[0].dtype, "?orgqr", "?ungqr")
        return routine(e, name, xs, outs, {0: 0})
    return solver(e, "orgqr", xs, outs)


geqrf_p: Row[NoParams] = matrix_row(
    "geqrf",
    NoParams,
    results=geqrf_results,
    evaluate=evaluate_geqrf,
    lower_on=dict.fromkeys(SOLVING, lambda e, p, xs, outs: reflectors(e, xs, outs)),
    multiple_results=True,
    traits=Traits(flops=cubic(4 / 3)),
)


def householder_results(
    p: NoParams, xs: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    a, taus = xs
    if a.shape[0] < a.shape[1] or taus.shape[0] > a.shape[1]:
        raise ValueError(
            "householder_product takes matrices with at least as many rows as columns, "
            f"and at most one factor for each column, not {a} and {taus}"
        )
    return (a,)


def evaluate_householder(p: NoParams, a: NDArray, taus: NDArray) -> Sequence[NDArray]:
    if not a.size or not taus.size:
        return (np.eye(*a.shape, dtype=a.dtype),)
    product = host_routine(by_dtype(a.dtype, "orgqr", "ungqr"), a.dtype)
    return (product(a, taus)[0],)


householder_product_p: Row[NoParams] = matrix_row(
    "householder_product",
    NoParams,
    results=householder_results,
    evaluate=evaluate_householder,
    ranks=(2, 1),
    lower_on=dict.fromkeys(
        SOLVING, lambda e, p, xs, outs: product_of_reflectors(e, xs, outs)
    ),
)


@frozen(eq=False, repr=False)
class QrParams(Params):
    """Whether columns are exchanged, and whether Q is square."""

    pivoting: bool
    full_matrices: bool


def qr_results(p: QrParams, xs: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    (a,) = xs
    m, n = a.shape
    k = m if p.full_matrices else smaller_size(m, n)
    order = (ShapedArray((n,), int32),) if p.pivoting else ()
    return a.with_shape((m, k)), a.with_shape((k, n)), *order


def evaluate_qr(p: QrParams, a: NDArray) -> Sequence[NDArray]:
    m, n = a.shape
    k = m if p.full_matrices else min(m, n)
    if not a.size:
        order = (np.arange(n),) if p.pivoting else ()
        return np.eye(m, k, dtype=a.dtype), np.zeros((k, n), a.dtype), *order
    places: tuple[NDArray, ...] = ()
    if p.pivoting:
        packed, result, taus, _, _ = host_routine("geqp3", a.dtype)(a)
        places = (result - 1,)
    else:
        packed, taus = evaluate_geqrf(NO_PARAMS, a)
    wide = np.zeros((m, k), a.dtype)
    wide[:, : min(n, k)] = packed[:, : min(n, k)]
    (q,) = evaluate_householder(NO_PARAMS, wide, taus)
    return q, np.triu(packed[:k]), *places


def lower_qr(
    e: Emitter, p: QrParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    (a,), stack = xs, xs[0].aval.shape[:-2]
    m, n = a.aval.shape[-2:]
    q = outs[0]
    k = q.shape[-1]
    taus = a.aval.with_shape((*stack, smaller_size(m, n)))
    places: tuple[Operand, ...] = ()
    if p.pivoting:
        packed, places, factors = factor_with_pivots(e, a, outs[2], taus)
    else:
        packed, factors = reflectors(e, xs, (a.aval, taus))
    narrow = surely_less(k, n + 1)
    wide = cut(e, packed, (m, k)) if narrow else padded(e, packed, k)
    (full,) = product_of_reflectors(e, (wide, factors), (q,))
    return full, triangle_of(e, cut(e, packed, (k, n)), "LE"), *places


def factor_with_pivots(
    e: Emitter, a: Operand, order: ShapedArray, taus: ShapedArray
) -> tuple[Operand, tuple[Operand, ...], Operand]:
    """Packed factors, where each column came from (from 0), and scales."""
    free = e.broadcast(e.constant(0, order.with_shape(())), order.shape, ())
    xs, outs, aliases = (a, free), (a.aval, order, taus), {0: 0, 1: 1}
    if e.platform == "cpu":
        packed, out, factors = routine(e, "?geqp3", xs, outs, aliases)
    else:
        packed, out, factors = hybrid(e, "geqp3", xs, outs, aliases)
    one = e.constant(1, order)
    return packed, e.op("stablehlo.subtract", (out, one), (order,)), factors


def cut(e: Emitter, x: Operand, core: tuple[int, int]) -> Operand:
    """The top left corner of each matrix."""
    stack = x.aval.shape[:-2]
    shape = (*stack, *core)
    if shape == x.aval.shape:
        return x
    return e.op(
        "stablehlo.slice",
        (x,),
        (x.aval.with_shape(shape),),
        (),
        start_indices=i64s((0,) * len(shape)),
        limit_indices=i64s(shape),
        strides=i64s((1,) * len(shape)),
    )[0]


def padded(e: Emitter, x: Operand, count: int) -> Operand:
    """Each matrix with columns of zeros up to `count`."""
    shape = (*x.aval.shape[:-1], count)
    edges = (*(0,) * (len(shape) - 1), count - x.aval.shape[-1])
    zero = e.constant(0, x.aval.with_shape(()))
    return e.op(
        "stablehlo.pad",
        (x, zero),
        (x.aval.with_shape(shape),),
        (),
        edge_padding_low=i64s((0,) * len(shape)),
        edge_padding_high=i64s(edges),
        interior_padding=i64s((0,) * len(shape)),
    )[0]


def jvp_qr(p: QrParams, a: Array, t: Array) -> Pushed:
    outs = qr_p.bind(p, a)
    none = [Zero(x.aval.tangent()) for x in outs]
    if p.full_matrices and t.shape[-2] > t.shape[-1]:
        raise ValueError(
            "qr with full_matrices=True has no derivative for matrices with more rows "
            "than columns, since part of Q is arbitrary; use full_matrices=False"
        )
    if p.pivoting:
        t = permuted_columns(t, outs[2])
    dq, dr = qr_tangents(outs[0], outs[1], t)
    return outs, (dq, dr, *none[2:])


def qr_tangents(q: Array, r: Array, t: Array) -> tuple[Array, Array]:
    """The tangents of Q, from the first columns, and of R = Qᴴ A."""
    k = q.shape[-1]
    dx = triangular_solve(columns(r, 0, k), columns(t, 0, k))
    projected = matmul(adjoint(q), dx)
    strict = below(projected)
    turn = sub(strict, adjoint(strict))
    if is_complex(t.dtype):
        middle = on_diagonal(projected)
        turn = add(turn, sub(middle, like(real_part(middle), middle)))
    rest = sub(projected, turn)
    dq = sub(dx, matmul(q, rest))
    if r.shape[-1] == k:
        return dq, matmul(rest, r)
    return dq, sub(matmul(adjoint(q), t), matmul(turn, r))


def permuted_columns(x: Array, order: Array) -> Array:
    """The columns of each matrix in the given order."""
    places = broadcast_in_dim(order, x.shape, (*range(x.ndim - 2), x.ndim - 1))
    return take_along(x, places, x.ndim - 1)


qr_p: Row[QrParams] = matrix_row(
    "qr",
    QrParams,
    results=qr_results,
    evaluate=evaluate_qr,
    jvp=one_pushed(jvp_qr),
    lower_on=dict.fromkeys(SOLVING, lower_qr),
    multiple_results=True,
)


def geqrf(a: object) -> tuple[Array, Array]:
    """Householder reflections, packed below R, and their scales.

    This is LAPACK's form of the QR factorisation: Q is the product of I - τᵢ vᵢ vᵢᴴ,
    which `householder_product` makes.

    Args:
        a: matrices of shape (..., m, n), of floats or complex numbers.

    Returns:
        R in and above the diagonal, and below it the vᵢ without their first element 1,
        of the shape of `a`; and the scales τ, of shape (..., min(m, n)).

    Raises:
        TypeError: LAPACK does not have the dtype.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> packed, taus = lax.linalg.geqrf(vnp.array([[3.0], [4.0]]))
    >>> packed.round(3), taus.round(3)
    (Array([[-5. ],
           [ 0.5]], dtype=float32), Array([1.6], dtype=float32))
    """
    packed, taus = geqrf_p.bind(NO_PARAMS, as_operand(a))
    return packed, taus


def householder_product(a: object, taus: object) -> Array:
    """The product of the reflections that `a` (..., m, n) packs, with scales `taus`.

    Args:
        a: matrices of shape (..., m, n) with m at least n, as `geqrf` gives them; what
            is in and above the diagonal is not read.
        taus: the scales, of shape (..., k) with k at most n and the dtype of `a`.

    Returns:
        The first n columns of the product, of the shape and dtype of `a`.

    Raises:
        TypeError: LAPACK does not have the dtype.
        ValueError: there are more columns than rows, or more scales than columns.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> packed, taus = lax.linalg.geqrf(vnp.array([[3.0], [4.0]]))
    >>> lax.linalg.householder_product(packed, taus).round(3)
    Array([[-0.6],
           [-0.8]], dtype=float32)
    """
    return householder_product_p.call(NO_PARAMS, as_operand(a), as_operand(taus))


@overload
def qr(
    x: object,
    *,
    pivoting: Literal[False] = False,
    full_matrices: bool = True,
    use_magma: bool | None = None,
) -> tuple[Array, Array]: ...
@overload
def qr(
    x: object,
    *,
    pivoting: Literal[True],
    full_matrices: bool = True,
    use_magma: bool | None = None,
) -> tuple[Array, Array, Array]: ...
@overload
def qr(
    x: object,
    *,
    pivoting: bool = False,
    full_matrices: bool = True,
    use_magma: bool | None = None,
) -> tuple[Array, Array] | tuple[Array, Array, Array]: ...
def qr(
    x: object,
    *,
    pivoting: bool = False,
    full_matrices: bool = True,
    use_magma: bool | None = None,
) -> tuple[Array, ...]:
    """Q with orthonormal columns and upper triangular R with Q R = A.

    Signs are those of LAPACK: the diagonal of R need not be positive.

    Args:
        x: matrices of shape (..., m, n), of floats or complex numbers.
        pivoting: whether to exchange columns, so that the most independent come first.
        full_matrices: whether Q is square, with k = m; if not, k = min(m, n).
        use_magma: only None or False, since MAGMA is for GPUs.

    Returns:
        Q (..., m, k) and R (..., k, n); with `pivoting` also the order of the columns,
        int32 (..., n), with `q @ r == x[..., order]`.

    Raises:
        TypeError: LAPACK does not have the dtype.
        ValueError: an argument is for GPUs only.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.array([[0.0, 3.0], [0.0, 4.0]])
    >>> q, r, order = lax.linalg.qr(x, pivoting=True)
    >>> order
    Array([1, 0], dtype=int32)
    >>> (q @ r).round(3)
    Array([[3., 0.],
           [4., 0.]], dtype=float32)
    """
    if use_magma:
        raise ValueError("qr: use_magma=True is for GPUs; leave it out")
    return qr_p.bind(QrParams(pivoting, full_matrices), as_operand(x))


ROWS: Rows = (geqrf_p, householder_product_p, qr_p)
