"""Floor 2: Cholesky factors and triangular systems.

One idea: a factor is differentiated by solving with itself: for A = L Lᴴ,
dL = L Φ(L⁻¹ dA L⁻ᴴ), where Φ takes the lower triangle and half of the diagonal::

    l = cholesky(a)
    x = triangular_solve(l, b, left_side=True, lower=True)

Source: I. Murray, Differentiation of the Cholesky decomposition, arXiv:1602.07527.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
from attrs import evolve, frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import is_complex, is_inexact, real_dtype
from verax.ir.jaxpr import NO_PARAMS, NoParams, Params
from verax.ops.contraction.dot import batch_matmul
from verax.ops.contraction.precision import Precision
from verax.ops.elementwise.arith import add, conj, div, mul, neg, real, sub
from verax.ops.elementwise.compare import eq, ge, gt, le, lt
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.ops.indexing.gather import diagonal_of
from verax.ops.structure.create import broadcasted_iota, full_like
from verax.ops.structure.shape import broadcast_in_dim, move_axis, reshape, transpose
from verax.ops.structure.slicing import slice_in_dim
from verax.rules.families.lapack import (
    LETTERS,
    SOLVING,
    batch_stack,
    cubic,
    host_routine,
    info_type,
    letter,
    matrix_row,
    nan_like,
    or_nan,
    routine,
    solver,
    square,
)
from verax.rules.families.linear import Pushed, one_pushed
from verax.rules.rows.emitter import Emitter, Operand, compared, flag
from verax.rules.rows.row import (
    Avals,
    Axis,
    Domain,
    Engine,
    Known,
    Linear,
    NDArray,
    Row,
    Rows,
    Sample,
    Tangent,
    Traits,
    Work,
    Zero,
)
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.memo import pure

# -----------------------------------------------------------------------------
# A few words of matrix algebra, for the rules of decompositions.
#
# Rules read as in the books, on the last two dimensions, whatever stands in
# front of them::
#
#     matmul(adjoint(q), a)        # Qᴴ A
#     below(x), above(x)           # strict triangles


def as_operand(x: object) -> Array:
    """An array, or what can be one, as an array."""
    return x if isinstance(x, Array) else convert(x, aval_of(x).dtype)


def matmul(x: Array, y: Array) -> Array:
    """The products of two stacks of matrices, in all their digits.

    Derivatives of factorisations lose more than products do, so what is configured for
    products has no say.
    """
    return batch_matmul(x, y, Precision.HIGHEST)


def transposed(x: Array) -> Array:
    """Each matrix with rows and columns exchanged."""
    order = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
    return transpose(x, order)


def conjugate(x: Array) -> Array:
    """The complex conjugate; real arrays as they are."""
    return conj(x) if is_complex(x.dtype) else x


def adjoint(x: Array) -> Array:
    """Each matrix transposed and conjugated."""
    return conjugate(transposed(x))


def real_part(x: Array) -> Array:
    """The real part; real arrays as they are."""
    return real(x) if is_complex(x.dtype) else x


def like(x: Array, y: Array) -> Array:
    """`x` in the dtype of `y`."""
    return convert(x, y.dtype)


def rows_and_columns(x: Array) -> tuple[Array, Array]:
    """Index arrays of the shape of one matrix."""
    shape = x.shape[-2:]
    return broadcasted_iota(np.int32, shape, 0), broadcasted_iota(np.int32, shape, 1)


def masked(x: Array, mask: Array) -> Array:
    """Each matrix where `mask` holds, zero elsewhere."""
    where = broadcast_in_dim(mask, x.shape, (x.ndim - 2, x.ndim - 1))
    return select(where, x, zeros_like(x))


def zeros_like(x: Array) -> Array:
    """Zeros of the type of `x`."""
    return full_like(x, 0)


def below(x: Array) -> Array:
    """The part under the diagonal."""
    i, j = rows_and_columns(x)
    return masked(x, gt(i, j))


def lower_part(x: Array) -> Array:
    """The diagonal and what is under it."""
    i, j = rows_and_columns(x)
    return masked(x, ge(i, j))


def above(x: Array) -> Array:
    """The part over the diagonal."""
    i, j = rows_and_columns(x)
    return masked(x, lt(i, j))


def upper_part(x: Array) -> Array:
    """The diagonal and what is over it."""
    i, j = rows_and_columns(x)
    return masked(x, le(i, j))


def on_diagonal(x: Array) -> Array:
    """The diagonal, as a matrix."""
    i, j = rows_and_columns(x)
    return masked(x, eq(i, j))


def diagonal(x: Array) -> Array:
    """The diagonals of square matrices, as vectors."""
    return diagonal_of(x, x.ndim - 2, x.ndim - 1)


def from_lower(x: Array) -> Array:
    """The Hermitian matrix of a lower triangle; the diagonal's imaginary part is 0."""
    strict = below(x)
    centre = like(real_part(on_diagonal(x)), x)
    return add(add(strict, adjoint(strict)), centre)


def from_triangle(x: Array, lower: bool) -> Array:
    """The Hermitian matrix of one triangle of `x`."""
    return from_lower(x if lower else adjoint(x))


def times_columns(x: Array, scale: Array) -> Array:
    """x diag(scale)."""
    return mul(x, along_rows(like(scale, x), x))


def times_rows(scale: Array, x: Array) -> Array:
    """diag(scale) x."""
    return mul(along_columns(like(scale, x), x), x)


def along_rows(v: Array, x: Array) -> Array:
    """Matrices of the shape of `x`, each row of which is the vector."""
    return broadcast_in_dim(v, x.shape, (*range(x.ndim - 2), x.ndim - 1))


def along_columns(v: Array, x: Array) -> Array:
    """Matrices of the shape of `x`, each column of which is the vector."""
    return broadcast_in_dim(v, x.shape, tuple(range(x.ndim - 1)))


def eye_like(x: Array) -> Array:
    """The identity in the shape and dtype of `x`, ones on the diagonal."""
    i, j = rows_and_columns(x)
    where = broadcast_in_dim(eq(i, j), x.shape, (x.ndim - 2, x.ndim - 1))
    return select(where, full_like(x, 1), zeros_like(x))


def columns(x: Array, start: int, stop: int) -> Array:
    """Some columns of each matrix."""
    return slice_in_dim(x, start, stop, axis=x.ndim - 1)


def rows(x: Array, start: int, stop: int) -> Array:
    """Some rows of each matrix."""
    return slice_in_dim(x, start, stop, axis=x.ndim - 2)


def real_type(aval: ShapedArray) -> ShapedArray:
    """The type with the dtype of real"""
    return aval.with_dtype(real_dtype(aval.dtype))


# -----------------------------------------------------------------------------
# Cholesky factors and triangular systems.


@pure()
def solving(dtype: np.dtype[np.generic]) -> Callable[..., Any]:
    """BLAS's solution of triangular equations for a dtype."""
    out: Callable[..., object]
    from scipy.linalg.blas import get_blas_funcs

    (out,) = get_blas_funcs(("trsm",), dtype=dtype)
    return out


def evaluate_cholesky(p: NoParams, x: NDArray) -> Sequence[NDArray]:
    if not x.size:
        return (x,)
    factor, info = host_routine("potrf", x.dtype)(x, lower=1, clean=1)
    return (np.tril(nan_like(factor)) if info else factor,)


def jvp_cholesky(p: NoParams, a: Array, t: Array) -> Pushed:
    factor = cholesky_p.call(p, a)
    return (factor,), (factor_tangent(factor, from_lower(t)),)


def factor_tangent(factor: Array, t: Array) -> Array:
    """L Φ(L⁻¹ dA L⁻ᴴ)."""
    right = triangular_solve(factor, t, lower=True, transpose_a=True, conjugate_a=True)
    inner = triangular_solve(factor, right, left_side=True, lower=True)
    i, j = rows_and_columns(inner)
    half = mul(masked(inner, eq(i, j)), 0.5)
    return matmul(factor, add(below(inner), half))


def lower_cholesky(
    e: Emitter, p: NoParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    types = outs[0], info_type(outs[0].shape[:-2])
    if e.platform == "cpu":
        factor, info = routine(e, "?potrf", xs, types, {0: 0}, uplo=letter("L"))
    else:
        factor, info = solver(e, "potrf", xs, types, lower="true")
    (checked,) = or_nan(e, info, (factor,))
    return (triangle_of(e, checked, "GE"),)


def triangle_of(e: Emitter, x: Operand, way: str) -> Operand:
    """`x` where row and column numbers compare so, zero elsewhere.

    LAPACK leaves in the other triangle what was there.
    """
    shape, rank = x.aval.shape, x.aval.ndim
    numbers = ShapedArray(shape, np.dtype(np.int32))
    rows, columns = [
        e.op("stablehlo.iota", (), (numbers,), (), iota_dimension=f"{d} : i64")[0]
        for d in (rank - 2, rank - 1)
    ]
    mask = compared(e, rows, way, columns)
    return e.op("stablehlo.select", (mask, x, e.constant(0, x.aval)), (x.aval,))[0]


cholesky_p: Row[NoParams] = matrix_row(
    "cholesky",
    NoParams,
    results=lambda p, xs: (xs[0].with_shape((square("cholesky", xs[0]),) * 2),),
    evaluate=evaluate_cholesky,
    jvp=one_pushed(jvp_cholesky),
    lower_on=dict.fromkeys(SOLVING, lower_cholesky),
    traits=Traits(flops=cubic(1 / 3)),
)


@frozen(eq=False, repr=False)
class TriangularParams(Params):
    """On which side the matrix stands, which triangle is read, and how it is turned."""

    left_side: bool
    lower: bool
    transpose_a: bool
    conjugate_a: bool
    unit_diagonal: bool


def triangular_results(
    p: TriangularParams, xs: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    a, b = xs
    size = square("triangular_solve", a)
    if b.shape[0 if p.left_side else 1] != size:
        raise ValueError(
            f"triangular_solve with left_side={p.left_side} takes right-hand sides "
            f"with as many {'rows' if p.left_side else 'columns'} as the matrix, "
            f"{size}, not {b}"
        )
    return (b,)


def evaluate_triangular(
    p: TriangularParams, a: NDArray, b: NDArray
) -> Sequence[NDArray]:
    if not b.size:
        return (b,)
    if p.conjugate_a and not p.transpose_a:
        a = np.conj(a)
    trsm = solving(np.result_type(a, b))
    turned = 0 if not p.transpose_a else 2 if p.conjugate_a else 1
    x = trsm(
        1, a, b, side=not p.left_side, lower=p.lower, trans_a=turned,
        diag=p.unit_diagonal,
    )  # fmt: skip
    return (x,)


def turned_matrix(p: TriangularParams, a: Array) -> Array:
    """op(A): what the equations are solved with."""
    if p.conjugate_a:
        a = conjugate(a)
    return transposed(a) if p.transpose_a else a


def jvp_triangular(
    engine: Engine,
    p: TriangularParams,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """One more solve: op(A) dX = dB - op(dA) X."""
    a, _ = primals
    da, db = tangents
    x = triangular_solve_p.call(p, *primals)
    side: Tangent = db
    if not isinstance(da, Zero):
        strict, full = (below, lower_part) if p.lower else (above, upper_part)
        moved = turned_matrix(p, (strict if p.unit_diagonal else full)(da))
        change = matmul(moved, x) if p.left_side else matmul(x, moved)
        side = neg(change) if isinstance(db, Zero) else sub(db, change)
    if isinstance(side, Zero):
        return (x,), (Zero(x.aval.tangent()),)
    return (x,), (triangular_solve_p.call(p, a, side),)


def transpose_triangular(
    engine: Engine,
    p: TriangularParams,
    cts: Sequence[Tangent],
    args: Sequence[Known],
) -> Sequence[Tangent | None]:
    (ct,), (a, _) = cts, args
    assert isinstance(ct, Array)  # the only result
    if isinstance(a, Linear):
        # Of two unknowns, one without influence: a single row with unit diagonal.
        return Zero(a.aval), ct
    back = evolve(p, transpose_a=not p.transpose_a)
    return None, triangular_solve_p.call(back, a, ct)


def batch_triangular(
    engine: Engine,
    p: TriangularParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """Right-hand sides for one matrix stand beside each other."""
    (a, b), (_, b_axis) = args, axes
    if a.ndim > 2:
        return batch_stack(engine, triangular_solve_p, p, size, args, axes)
    assert b_axis is not None
    place = 2 if p.left_side else 0
    b = move_axis(b, b_axis, place)
    shape = b.shape
    flat = (shape[0], shape[1] * size) if p.left_side else (size * shape[1], shape[2])
    x = triangular_solve_p.call(p, a, reshape(b, flat))
    return (reshape(x, shape),), (place,)


def conjugated(e: Emitter, p: TriangularParams, a: Operand) -> Operand:
    """The matrix; its conjugate if that is meant without its transpose."""
    if p.conjugate_a and not p.transpose_a and is_complex(a.aval.dtype):
        (a,) = e.op("chlo.conj", (a,), (a.aval,))
    return a


def lower_triangular_by_xla(
    e: Emitter, p: TriangularParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    a, b = xs
    a = conjugated(e, p, a)
    turned = "NO_TRANSPOSE"
    if p.transpose_a:
        turned = "ADJOINT" if p.conjugate_a else "TRANSPOSE"
    return e.op(
        "stablehlo.triangular_solve",
        (a, b),
        outs,
        left_side=flag(p.left_side),
        lower=flag(p.lower),
        unit_diagonal=flag(p.unit_diagonal),
        transpose_a=f"#stablehlo<transpose {turned}>",
    )


def lower_triangular(
    e: Emitter, p: TriangularParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    a, b = xs
    a = conjugated(e, p, a)
    turned = "N" if not p.transpose_a else "C" if p.conjugate_a else "T"
    return routine(
        e,
        "?trsm",
        (a, b),
        outs,
        {1: 0},
        side=letter("L" if p.left_side else "R"),
        uplo=letter("L" if p.lower else "U"),
        trans_x=letter(turned),
        diag=letter("U" if p.unit_diagonal else "N"),
    )


def draw_triangular(random: Random) -> Sample[TriangularParams]:
    """Triangles of numbers between 1 and 2, with which solving is safe."""
    flags = [random.random() < 0.5 for _ in range(5)]
    p = TriangularParams(*flags)
    stack = random.choice(((), (), (2,), (0,)))
    size, count = random.choice((1, 2, 3, 0)), random.choice((1, 2, 0))
    dtype = random.choice(tuple(LETTERS)[::2])
    b = (size, count) if p.left_side else (count, size)
    avals = (
        ShapedArray((*stack, size, size), dtype),
        ShapedArray((*stack, *b), dtype),
    )
    return Sample(p, avals, (Domain(1, 2), Domain(-4, 4)))


def substitution_flops(p: object, ins: Avals, outs: Avals) -> float:
    """A multiplication and a sum for each element of the triangle and each column."""
    return ins[0].shape[-1] * ins[1].size


triangular_solve_p: Row[TriangularParams] = evolve(
    matrix_row(
        "triangular_solve",
        TriangularParams,
        results=triangular_results,
        evaluate=evaluate_triangular,
        ranks=(2, 2),
        jvp=jvp_triangular,
        transpose=transpose_triangular,
        batch=batch_triangular,
        lower=lower_triangular_by_xla,
        lower_on={"cpu": lower_triangular},
        traits=Traits(Work.BLOCK, substitution_flops),
    ),
    draw=draw_triangular,
)


def symmetrized(x: Array) -> Array:
    """(A + Aᴴ) / 2; what is not square or no float is left for the row to refuse."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2] or not is_inexact(x.dtype):
        return x
    return div(add(x, adjoint(x)), 2.0)


def cholesky(x: object, *, symmetrize_input: bool = True) -> Array:
    """The lower triangular L with L Lᴴ = A, for positive definite matrices.

    NaN where A is not positive definite.

    Args:
        x: Hermitian matrices of shape (..., n, n), of floats or complex numbers.
        symmetrize_input: whether A is (x + xᴴ) / 2, which makes derivatives symmetric;
            if not, only the lower triangle of `x` is read.

    Returns:
        L, of the shape and dtype of `x`, with zeros above the diagonal.

    Raises:
        TypeError: LAPACK does not have the dtype.
        ValueError: the matrices are not square.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.linalg.cholesky(vnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    >>> lax.linalg.cholesky(vnp.array([[1.0, 2.0], [2.0, 1.0]]))  # indefinite
    Array([[nan,  0.],
           [nan, nan]], dtype=float32)
    """
    a = as_operand(x)
    return cholesky_p.call(NO_PARAMS, symmetrized(a) if symmetrize_input else a)


def triangular_solve(
    a: object,
    b: object,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """The X with op(A) X = B (`left_side`) or X op(A) = B, for triangular A.

    Args:
        a: matrices of shape (..., n, n), of which one triangle is read.
        b: right sides (..., n, k) with `left_side`, else (..., k, n); or vectors
            (..., n). Of the dtype of `a`.
        left_side: whether A stands to the left of X.
        lower: whether A is the lower triangle of `a`, not the upper one.
        transpose_a: whether op transposes A.
        conjugate_a: whether op conjugates A; together with `transpose_a` that is Aᴴ.
        unit_diagonal: whether the diagonal is taken to be 1, and not read.

    Returns:
        X, of the shape and dtype of `b`; inf or NaN where a diagonal element is 0.

    Raises:
        TypeError: the dtypes differ, or LAPACK does not have them.
        ValueError: the shapes do not fit.

    The element 9 is in the other triangle, so it does not matter:

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> a, b = vnp.array([[2.0, 9.0], [1.0, 4.0]]), vnp.array([2.0, 9.0])
    >>> lax.linalg.triangular_solve(a, b, left_side=True, lower=True)
    Array([1., 2.], dtype=float32)
    """
    matrix, side = as_operand(a), as_operand(b)
    conjugated = conjugate_a and is_complex(matrix.dtype)
    p = TriangularParams(left_side, lower, transpose_a, conjugated, unit_diagonal)
    if side.ndim != matrix.ndim - 1:
        return triangular_solve_p.call(p, matrix, side)
    shape = (*side.shape, 1) if left_side else (*side.shape[:-1], 1, side.shape[-1])
    x = triangular_solve_p.call(p, matrix, reshape(side, shape))
    return reshape(x, side.shape)


ROWS: Rows = (cholesky_p, triangular_solve_p)
