"""Floor 2: LU decompositions with exchanged rows, and what is solved with them.

One idea: with L⁻¹ P dA U⁻¹ split into a strictly lower and an upper triangle, the
tangents of the factors are L times the one and the other times U::

    lu, pivots, permutation = lu(a)     # a[permutation] == L U

Source: F. de Hoog, R. Anderssen and M. Lukas, Differentiation of matrix functionals
using triangular factorization, Mathematics of Computation 80 (2011).
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from attrs import frozen

from verax.ir.avals import ShapedArray, smaller_size
from verax.ir.dtypes import int32
from verax.ir.jaxpr import NO_PARAMS, NoParams, Params
from verax.ops.custom.solve import CustomLinearSolveParams, linear_solve_p
from verax.ops.elementwise.arith import add
from verax.ops.elementwise.compare import eq, lt
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select, stop_gradient
from verax.ops.indexing.dynamic_slice import dynamic_slice, dynamic_update_slice
from verax.ops.indexing.gather import take_along, take_rows
from verax.ops.linalg.triangular import (
    as_operand,
    below,
    columns,
    eye_like,
    matmul,
    rows,
    triangular_solve,
    upper_part,
)
from verax.ops.reductions.reduce import reduce_sum
from verax.ops.structure.create import broadcasted_iota
from verax.ops.structure.shape import broadcast_in_dim, reshape
from verax.ops.structure.slicing import pad
from verax.rules.families.lapack import (
    SOLVING,
    cubic,
    host_routine,
    info_type,
    matrix_row,
    or_nan,
    routine,
    solver,
)
from verax.rules.families.linear import Pushed, one_pushed, zero_jvp
from verax.rules.programs.derived import repeat
from verax.rules.rows.builder import program
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.row import NDArray, Row, Rows, Traits, Zero, no_flops
from verax.rules.values.array import Array
from verax.rules.values.sizes import surely_less
from verax.rules.values.state import user_source


@frozen(eq=False, repr=False)
class PermutationParams(Params):
    """The number of rows that are exchanged."""

    permutation_size: int


def permutation_results(
    p: PermutationParams, xs: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    (pivots,) = xs
    if p.permutation_size < pivots.shape[0]:
        raise ValueError(
            f"lu_pivots_to_permutation: {pivots.shape[0]} pivots need at least as "
            f"many rows, but permutation_size is {p.permutation_size}"
        )
    return (pivots.with_shape((p.permutation_size,)),)


def evaluate_permutation(p: PermutationParams, pivots: NDArray) -> Sequence[NDArray]:
    return (order_of(p.permutation_size, pivots),)


def order_of(size: int, pivots: NDArray) -> NDArray:
    """The numbers of `size` rows after these exchanges."""
    order = list(range(size))
    for i, j in enumerate(pivots.tolist()):
        if i != j:
            order[i], order[j] = order[j], order[i]
    return np.array(order, np.int32)


def lower_permutation(
    e: Emitter,
    p: PermutationParams,
    xs: Sequence[Operand],
    outs: Sequence[ShapedArray],
) -> Sequence[Operand]:
    return (permutation(e, xs[0], outs[0]),)


def permutation(e: Emitter, pivots: Operand, out: ShapedArray) -> Operand:
    """The exchanges, one after the other, for all matrices at once."""
    last = out.ndim - 1
    count = pivots.aval.shape[-1]
    (order,) = e.op("stablehlo.iota", (), (out,), (), iota_dimension=f"{last} : i64")
    start = e.constant(0, ShapedArray((), int32))
    step = partial(exchanged, last) if last else swapped
    done = repeat(e, (start, order, pivots), partial(more, count), step)
    return done[1]


def more(count: int, i: Array, order: Array, pivots: Array) -> Array:
    return lt(i, count)


def swapped(i: Array, order: Array, pivots: Array) -> tuple[Array, Array, Array]:
    """One exchange in a single matrix, which touches two places only."""
    place = reshape(dynamic_slice(pivots, (i,), (1,)), ())
    mine = dynamic_slice(order, (i,), (1,))
    order = dynamic_update_slice(order, dynamic_slice(order, (place,), (1,)), (i,))
    return add(i, 1), dynamic_update_slice(order, mine, (place,)), pivots


def exchanged(
    last: int, i: Array, order: Array, pivots: Array
) -> tuple[Array, Array, Array]:
    """An exchange in every matrix: place i with the place that its pivot names."""
    starts = (*(0,) * last, i)
    one = (*order.shape[:-1], 1)
    other = dynamic_slice(pivots, starts, one)
    mine = dynamic_slice(order, starts, one)
    dims = tuple(range(order.ndim))
    places = broadcasted_iota(np.int32, order.shape, last)
    here = eq(places, broadcast_in_dim(other, order.shape, dims))
    kept = reduce_sum(select(here, order, 0), (last,))
    moved = select(here, broadcast_in_dim(mine, order.shape, dims), order)
    theirs = broadcast_in_dim(kept, one, tuple(range(last)))
    return add(i, 1), dynamic_update_slice(moved, theirs, starts), pivots


lu_pivots_to_permutation_p: Row[PermutationParams] = matrix_row(
    "lu_pivots_to_permutation",
    PermutationParams,
    results=permutation_results,
    evaluate=evaluate_permutation,
    ranks=(1,),
    jvp=zero_jvp(lambda: lu_pivots_to_permutation_p),
    lower=lower_permutation,
    integers=True,
    traits=Traits(flops=no_flops),
)


def lu_results(p: NoParams, xs: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    (a,) = xs
    m, n = a.shape
    return a, ShapedArray((smaller_size(m, n),), int32), ShapedArray((m,), int32)


def evaluate_lu(p: NoParams, a: NDArray) -> Sequence[NDArray]:
    if not a.size:
        return a, np.zeros((0,), np.int32), np.arange(a.shape[0], dtype=np.int32)
    packed, pivots, _ = host_routine("getrf", a.dtype)(a)
    return packed, pivots, order_of(a.shape[0], pivots)


def lower_lu(
    e: Emitter, p: NoParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    types = *outs[:2], info_type(outs[0].shape[:-2])
    if e.platform == "cpu":
        packed, from_one, info = routine(e, "?getrf", xs, types, {0: 0})
    else:
        packed, from_one, info = solver(e, "getrf", xs, types)
    (pivots,) = e.op(
        "stablehlo.subtract", (from_one, e.constant(1, outs[1])), (outs[1],)
    )
    # A matrix that is singular has factors too: only a wrong argument is a failure.
    (checked,) = or_nan(e, info, (packed,), "GE")
    return checked, pivots, permutation(e, pivots, outs[2])


def jvp_lu(p: NoParams, a: Array, t: Array) -> Pushed:
    outs = lu_p.bind(p, a)
    none = [Zero(x.aval.tangent()) for x in outs]
    packed, _, order = outs
    return outs, (factors_tangent(packed, permuted_rows(t, order)), *none[1:])


def factors_tangent(packed: Array, t: Array) -> Array:
    """L (L⁻¹ dA U⁻¹)⁻ + (L⁻¹ dA U⁻¹)⁺ U; factors are filled up to square ones."""
    m, n = packed.shape[-2:]
    k = smaller_size(m, n)
    lower = widened(below(columns(packed, 0, k)), 0, m - k)
    upper = widened(upper_part(rows(packed, 0, k)), n - k, 0)
    missing = eye_like(upper)
    # Rows of the identity stand for those that U lacks.
    if not surely_less(n, k + 1):
        missing = widened(rows(missing, k, n), 0, 0, k)
        upper = add(upper, missing)
    lower = add(lower, eye_like(lower))
    inner = triangular_solve(upper, t)
    inner = triangular_solve(
        lower, inner, left_side=True, lower=True, unit_diagonal=True
    )
    return add(matmul(lower, below(inner)), matmul(upper_part(inner), upper))


def widened(x: Array, more_rows: int, more_columns: int, above: int = 0) -> Array:
    """Each matrix with rows (under and over it) and columns of zeros."""
    edges = ((0, 0, 0),) * (x.ndim - 2)
    if not (more_rows or more_columns or above):
        return x
    return pad(x, 0.0, (*edges, (above, more_rows, 0), (0, more_columns, 0)))


def permuted_rows(x: Array, order: Array) -> Array:
    """The rows of each matrix in the given order."""
    if x.ndim == 2 and order.ndim == 1:
        return take_rows(x, order)
    shape = (*x.shape[:-2], order.shape[-1], x.shape[-1])
    places = broadcast_in_dim(order, shape, tuple(range(x.ndim - 1)))
    return take_along(x, places, x.ndim - 2)


lu_p: Row[NoParams] = matrix_row(
    "lu",
    NoParams,
    results=lu_results,
    evaluate=evaluate_lu,
    jvp=one_pushed(jvp_lu),
    lower_on=dict.fromkeys(SOLVING, lower_lu),
    multiple_results=True,
    traits=Traits(flops=cubic(2 / 3)),
)


def lu_pivots_to_permutation(pivots: object, permutation_size: int) -> Array:
    """The permutation that a sequence of exchanges of rows makes.

    Args:
        pivots: int32 of shape (..., k), counted from 0: row i is exchanged with row
            `pivots[i]`, in order.
        permutation_size: the number of rows, at least k.

    Returns:
        The int32 permutations, of shape (..., permutation_size).

    Raises:
        TypeError: the pivots are not int32.
        ValueError: there are more exchanges than rows.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.linalg.lu_pivots_to_permutation(vnp.array([2, 2]), 4)
    Array([2, 0, 1, 3], dtype=int32)
    """
    p = PermutationParams(permutation_size)
    return lu_pivots_to_permutation_p.call(p, as_operand(pivots))


def lu(x: object) -> tuple[Array, Array, Array]:
    """The factors of P A = L U, packed; the exchanges of rows; and P as an order.

    Args:
        x: matrices of shape (..., m, n), of floats or complex numbers.

    Returns:
        L below and U in and above the diagonal of one array of the shape of `x`; L has
        a unit diagonal, which is not stored. Then int32 pivots (..., min(m, n)): row i
        is exchanged with row `pivots[i]`. Then the int32 order (..., m): `x[order]` is
        L U.

    Raises:
        TypeError: LAPACK does not have the dtype.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> packed, pivots, order = lax.linalg.lu(vnp.array([[1.0, 2.0], [2.0, 6.0]]))
    >>> packed
    Array([[ 2. ,  6. ],
           [ 0.5, -1. ]], dtype=float32)
    >>> pivots.tolist(), order.tolist()
    ([1, 1], [1, 0])
    """
    packed, pivots, order = lu_p.bind(NO_PARAMS, as_operand(x))
    return packed, pivots, order


def solve(a: Array, b: Array) -> Array:
    """The X with A X = B, by LU factors, which its derivatives use again."""
    a, b = convert(a, a.dtype), convert(b, b.dtype)  # neither of them weak
    packed, _, order = lu(stop_gradient(a))
    operands = a, packed, order, b
    types, source = [x.aval for x in operands], user_source()
    bodies: tuple[Callable[..., Array], ...] = (
        lambda a, packed, order, x: matmul(a, x),
        lambda a, packed, order, b: lu_solve(packed, order, b),
        lambda a, packed, order, c: lu_solve(packed, order, c, 1),
    )
    matvec, forward, backward = [
        program(types, lambda *xs, body=body: [body(*xs)], "solve", source)
        for body in bodies
    ]
    params = CustomLinearSolveParams(3, matvec, forward, backward, False)
    (x,) = linear_solve_p.bind(params, *operands)
    return x


def lu_solve(packed: Array, order: Array, b: Array, turned: int = 0) -> Array:
    """The X with op(A) X = B, from factors; op transposes (1) and conjugates (2)."""
    if not turned:
        inner = triangular_solve(
            packed, permuted_rows(b, order), left_side=True, lower=True,
            unit_diagonal=True,
        )  # fmt: skip
        return triangular_solve(packed, inner, left_side=True)
    conjugate = turned == 2
    inner = triangular_solve(
        packed, b, left_side=True, transpose_a=True, conjugate_a=conjugate
    )
    outer = triangular_solve(
        packed, inner, left_side=True, lower=True, transpose_a=True,
        conjugate_a=conjugate, unit_diagonal=True,
    )  # fmt: skip
    return permuted_rows(outer, inverse_order(order))


def inverse_order(order: Array) -> Array:
    """The permutation that undoes another."""
    size = order.shape[-1]
    shape = (*order.shape, size)
    dims = tuple(range(order.ndim - 1))
    theirs = broadcast_in_dim(order, shape, (*dims, order.ndim - 1))
    places = broadcasted_iota(np.int32, shape, order.ndim)
    here = eq(theirs, places)
    numbers = broadcasted_iota(np.int32, shape, order.ndim - 1)
    return reduce_sum(select(here, numbers, 0), (order.ndim - 1,))


ROWS: Rows = (lu_pivots_to_permutation_p, lu_p)
