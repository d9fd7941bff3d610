"""Floor 6: determinants, from LU factors that their derivatives use again.

One idea: d det A is det A tr(A⁻¹ dA), another solve with the same factors::

    det(a), slogdet(a)

Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from verax.api.custom.jvp import custom_jvp
from verax.backend.eager.composites import in_numpy
from verax.ir.dtypes import is_complex
from verax.numpy.arguments.arguments import ArrayLike, with_weak_type
from verax.numpy.linalg.decompositions import as_matrices, check_square
from verax.numpy.linalg.host_solving import det_at_once, slogdet_at_once
from verax.numpy.matrices import eye
from verax.numpy.shaping.shapes import broadcast_to
from verax.ops.elementwise.arith import (
    abs as magnitude,
    add,
    complex as joined,
    imag,
    mul,
    neg,
    real,
    sign,
    sub,
)
from verax.ops.elementwise.bits import bitwise_and, bitwise_not, bitwise_or
from verax.ops.elementwise.compare import eq, ne
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import log
from verax.ops.elementwise.select import select, stop_gradient
from verax.ops.linalg import lu
from verax.ops.linalg.qr import geqrf, qr
from verax.ops.linalg.triangular import (
    diagonal,
    like,
    transposed,
    triangular_solve,
)
from verax.ops.reductions.cumulative import cumsum
from verax.ops.reductions.reduce import reduce_max, reduce_prod, reduce_sum
from verax.ops.structure.create import broadcasted_iota, full_like
from verax.ops.structure.shape import broadcast_in_dim
from verax.rules.values.array import Array


class SlogdetResult(NamedTuple):
    """The sign (or phase) of a determinant, and the logarithm of its size."""

    sign: Array
    logabsdet: Array


def odd_exchanges(pivots: Array) -> Array:
    """Whether an odd number of rows was exchanged."""
    places = broadcasted_iota(np.int32, pivots.shape, pivots.ndim - 1)
    moved = convert(ne(pivots, places), np.dtype(np.int32))
    count = reduce_sum(moved, (pivots.ndim - 1,))
    return eq(bitwise_and(count, 1), 1)


@in_numpy(det_at_once)
def det(a: ArrayLike) -> Array:
    """The determinants of square matrices.

    They are products of the pivots of an LU decomposition, or sums of products for
    matrices with 2 or 3 rows. Products may overflow or vanish, where `slogdet` does
    not.

    Args:
        a: matrices of shape (..., n, n).

    Returns:
        an array of shape (...) in the dtype of `a`, integers as floats.

    Raises:
        ValueError: the matrices are not square.

    >>> import verax.numpy as vnp
    >>> vnp.linalg.det(vnp.array([[[1, 2], [3, 4]], [[0, 1], [1, 0]]]))
    Array([-2., -1.], dtype=float32)
    """
    (x,) = as_matrices("det", a)
    check_square("det", x)
    if x.shape[-1] in (2, 3):
        return expanded_det(x)
    out: Array = factored_det(with_weak_type(x, False))
    return out


def expanded_det(x: Array) -> Array:
    """The determinant as a sum of products, whose derivative exists everywhere."""
    if x.shape[-1] == 2:
        return sub(mul(x[..., 0, 0], x[..., 1, 1]), mul(x[..., 0, 1], x[..., 1, 0]))
    parts = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        minor = sub(mul(x[..., 1, j], x[..., 2, k]), mul(x[..., 1, k], x[..., 2, j]))
        parts.append(mul(x[..., 0, i], minor))
    return add(add(parts[0], parts[1]), parts[2])


@in_numpy(slogdet_at_once)
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """The sign and log |det| of matrices; 0 and -inf where they are singular.

    Args:
        a: matrices of shape (..., n, n).
        method: the decomposition: "lu", which None means too, or "qr" for real
            matrices.

    Returns:
        a tuple with the names `sign` and `logabsdet`, both of shape (...): the sign,
        for complex matrices a number of size 1, in the dtype of `a`, integers as
        floats; and the logarithm, which is real.

    Raises:
        ValueError: the matrices are not square, or there is no such method for them.

    >>> import verax.numpy as vnp
    >>> a = -1e-5 * vnp.eye(21)
    >>> sign, size = vnp.linalg.slogdet(a)
    >>> sign, size.round(1), bool(vnp.linalg.det(a) == 0)
    (Array(-1., dtype=float32), Array(-241.8, dtype=float32), True)
    """
    (x,) = as_matrices("slogdet", a)
    check_square("slogdet", x)
    if method not in (None, "lu", "qr") or (method == "qr" and is_complex(x.dtype)):
        raise ValueError(
            'slogdet has the methods "lu" and, for real matrices, "qr", not '
            f"{method!r} for {x.aval}"
        )
    last = (x.ndim - 2,)
    if method == "qr":
        pivot = diagonal(qr(x)[1])
        # The determinant of a reflection is -1; its scale is 0 where there is none.
        mirrors = select(eq(geqrf(stop_gradient(x))[1], 0.0), 1.0, -1.0)
        signs = mul(sign(pivot), like(mirrors, pivot))
        turned = reduce_prod(signs, last)
    else:
        return SlogdetResult(*factored_slogdet(with_weak_type(x, False)))
    return SlogdetResult(turned, reduce_sum(log(magnitude(pivot)), last))


def signed(x: Array, pivots: Array) -> Array:
    """x, with another sign where an odd number of rows was exchanged."""
    return select(odd_exchanges(pivots), neg(x), x)


@custom_jvp
def factored_det(x: Array) -> Array:
    """The products of the pivots."""
    packed, pivots, _ = lu.lu(x)
    return signed(reduce_prod(diagonal(packed), (x.ndim - 2,)), pivots)


@factored_det.defjvp
def det_tangent(
    primals: Sequence[Array], tangents: Sequence[Array]
) -> tuple[Array, Array]:
    """det A tr(A⁻¹ dA), which is finite for every matrix.

    With A = P L U, d = det A, Y = L⁻¹ P⁻¹ dA and p the product of the pivots but the
    last, the last row of d U⁻¹ Y is p times that of Y, and the others follow from it.
    A pivot before that may be 0 as well, as the column below it is: then 1 stands for
    it in the system and in p and d, and what would have been multiplied by it is 0.
    """
    ((x,), (t,)) = primals, tangents
    packed, pivots, order = lu.lu(x)
    row, dims = x.ndim - 2, tuple(range(x.ndim - 2))
    pivot = diagonal(packed)
    last = eq(broadcasted_iota(np.int32, pivot.shape, row), x.shape[-1] - 1)
    zero = bitwise_and(eq(pivot, 0.0), bitwise_not(last))
    own = select(bitwise_or(zero, last), full_like(pivot, 1), pivot)
    others = signed(reduce_prod(own, (row,)), pivots)
    whole = mul(others, reduce_sum(select(last, pivot, 0.0), (row,)))
    reached = cumsum(convert(zero, np.dtype(np.int32)), row)
    before = sub(reached, convert(zero, np.dtype(np.int32)))
    every = broadcast_in_dim(reduce_max(reached, (row,)), reached.shape, dims)
    y = triangular_solve(
        packed, lu.permuted_rows(t, order), left_side=True, lower=True,
        unit_diagonal=True,
    )  # fmt: skip
    scale = select(
        last,
        broadcast_in_dim(others, pivot.shape, dims),
        select(eq(reached, every), broadcast_in_dim(whole, pivot.shape, dims), 0.0),
    )
    solved = triangular_solve(
        passing(packed, own, reached, before),
        mul(y, broadcast_in_dim(scale, t.shape, (*dims, row))),
        left_side=True,
    )
    det = signed(reduce_prod(pivot, (row,)), pivots)
    return det, reduce_sum(select(eq(before, 0), diagonal(solved), 0.0), (row,))


def passing(packed: Array, own: Array, reached: Array, before: Array) -> Array:
    """Upper triangles with a diagonal of their own, 0 where a pivot between is.

    So many pivots are 0 that come `before` a place, and up to it (`reached`).
    """
    row, shape = packed.ndim - 2, packed.shape
    dims = tuple(range(row))
    none_between = eq(
        broadcast_in_dim(before, shape, (*dims, row + 1)),
        broadcast_in_dim(reached, shape, (*dims, row)),
    )
    rows, columns = (broadcasted_iota(np.int32, shape, row + i) for i in (0, 1))
    diagonals = broadcast_in_dim(own, shape, (*dims, row))
    return select(eq(rows, columns), diagonals, select(none_between, packed, 0.0))


@custom_jvp
def factored_slogdet(x: Array) -> tuple[Array, Array]:
    """The sign of the product of the pivots, and the sum of their logarithms."""
    packed, pivots, _ = lu.lu(x)
    pivot, last = diagonal(packed), (x.ndim - 2,)
    signs = signed(reduce_prod(sign(pivot), last), pivots)
    return signs, reduce_sum(log(magnitude(pivot)), last)


@factored_slogdet.defjvp
def slogdet_tangent(
    primals: Sequence[Array], tangents: Sequence[Array]
) -> tuple[object, object]:
    """The parts of tr(A⁻¹ dA): the sign turns with the imaginary one."""
    ((x,), (t,)) = primals, tangents
    packed, pivots, order = lu.lu(x)
    pivot, last = diagonal(packed), (x.ndim - 2,)
    signs = signed(reduce_prod(sign(pivot), last), pivots)
    outs = signs, reduce_sum(log(magnitude(pivot)), last)
    unit = broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape)
    inverse = lu.lu_solve(packed, order, unit)
    trace = reduce_sum(mul(transposed(inverse), t), (*last, x.ndim - 1))
    if not is_complex(x.dtype):
        return outs, (full_like(signs, 0), trace)
    turn = imag(trace)
    return outs, (mul(signs, joined(full_like(turn, 0), turn)), real(trace))
