"""Floor 2: running sums, products, extremes and log-sum-exps.

One idea: what is linear has its transpose; the derivatives of the others are linear
recurrences, which have theirs::

    cumsum(x, axis=0)        adjoint: cumsum(ct, axis=0, reverse=True)
    y = cumprod(x)           dy[i] = x[i] dy[i-1] + y[i-1] dx[i]
"""

from collections.abc import Callable

import numpy as np

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import bool_, is_complex, real_dtype
from verax.ops.elementwise.arith import div, mul, sub
from verax.ops.elementwise.compare import eq
from verax.ops.elementwise.exp_log import exp
from verax.ops.elementwise.select import select
from verax.ops.reductions.recurrence import linear_recurrence, neighbours
from verax.ops.structure.create import ones, zeros
from verax.ops.structure.joining import rev
from verax.rules.families.cumulative import ScanParams, running
from verax.rules.families.linear import Pushed, jvp_of_linear, one_linear, one_pushed
from verax.rules.families.reducer import (
    EXTREMES,
    accumulated,
    highest,
    larger_or_smaller,
    lowest,
    named,
)
from verax.rules.rows.emitter import Emitter, Operand, compared
from verax.rules.rows.row import JvpRule, NDArray, Row, Rows
from verax.rules.values.array import Array
from verax.rules.values.constants import ANY_FLOAT, NUMBER, aval_of
from verax.rules.values.sizes import as_axis


def jvp_by_scan(
    row_of: Callable[[], Row[ScanParams]],
    tangent: Callable[[Array, Array, Array, int], Array],
) -> JvpRule[ScanParams]:
    """The jvp column from `tangent(x, y, t, axis)`, for scans from the start."""

    def jvp(p: ScanParams, x: Array, t: Array) -> Pushed:
        y = row_of().call(p, x)
        if not p.reverse:
            return (y,), (tangent(x, y, t, p.axis),)
        a, b, c = (rev(v, (p.axis,)) for v in (x, y, t))
        return (y,), (rev(tangent(a, b, c, p.axis), (p.axis,)),)

    return one_pushed(jvp)


def product_tangent(x: Array, y: Array, t: Array, axis: int) -> Array:
    """The product rule, which is right at zeros: dy_i = x_i dy_(i-1) + y_(i-1) t_i."""
    before = neighbours(y, axis, ones)
    return linear_recurrence(x, mul(before, t), axis)


def extreme_tangent(x: Array, y: Array, t: Array, axis: int) -> Array:
    """The mean of the tangents over the places so far where the extreme is."""
    none, one = zeros(t.aval), ones(t.aval)
    kept = select(eq(y, neighbours(y, axis, zeros)), one, none)
    here = eq(x, y)
    total = linear_recurrence(kept, select(here, t, none), axis)
    return div(total, linear_recurrence(kept, select(here, one, none), axis))


def log_sum_exp_tangent(x: Array, y: Array, t: Array, axis: int) -> Array:
    """dy_i = dy_(i-1) exp(y_(i-1) - y_i) + t_i exp(x_i - y_i)."""
    decay = weight(neighbours(y, axis, zeros), y)
    return linear_recurrence(decay, mul(t, weight(x, y)), axis)


def weight(x: Array, y: Array) -> Array:
    """exp(x - y), and 1 where both are the same infinity."""
    return exp(select(eq(x, y), zeros(x.aval), sub(x, y)))


def log_add_exp(e: Emitter, x: Operand, y: Operand) -> Operand:
    """log(exp x + exp y) without overflow."""
    if is_complex(x.aval.dtype):
        return complex_log_add_exp(e, x, y)

    def op(name: str, *operands: Operand, out: ShapedArray = x.aval) -> Operand:
        return e.op(f"stablehlo.{name}", operands, (out,))[0]

    apart = op("subtract", x, y)
    same = compared(e, apart, "NE", apart)
    more = op("log_plus_one", op("exponential", op("negate", op("abs", apart))))
    return op("select", same, op("add", x, y), op("add", op("maximum", x, y), more))


def complex_log_add_exp(e: Emitter, x: Operand, y: Operand) -> Operand:
    """The same for complex numbers, scaled by the larger real part."""
    part = x.aval.with_dtype(real_dtype(x.aval.dtype))

    def op(name: str, *operands: Operand, out: ShapedArray = x.aval) -> Operand:
        return e.op(f"stablehlo.{name}", operands, (out,))[0]

    largest = op("maximum", op("real", x, out=part), op("real", y, out=part), out=part)
    finite = op("is_finite", largest, out=x.aval.with_dtype(bool_))
    zero = e.constant(0, part)
    scale = op("complex", op("select", finite, largest, zero, out=part), zero)
    terms = [op("exponential", op("subtract", v, scale)) for v in (x, y)]
    return op("add", op("log", op("add", *terms)), scale)


def evaluate_log_sum_exp(x: NDArray) -> NDArray:
    if not is_complex(x.dtype):
        return accumulated(np.logaddexp, x)
    rows = [x[0].astype(np.complex128)]
    for row in x[1:]:
        rows.append(complex_log_sum(rows[-1], row))
    return np.stack(rows).astype(x.dtype)


def complex_log_sum(x: NDArray, y: NDArray) -> NDArray:
    largest = np.maximum(x.real, y.real)
    scale = np.where(np.isfinite(largest), largest, 0)
    return np.log(np.exp(x - scale) + np.exp(y - scale)) + scale


cumsum_p: Row[ScanParams] = running(
    "cumsum",
    lambda x: accumulated(np.add, x),
    named("add"),
    lambda dtype: 0,
    accepts=NUMBER,
    jvp=jvp_of_linear(lambda: cumsum_p),
    transpose=one_linear(
        lambda p, ct, x: cumsum_p.call(ScanParams(p.axis, not p.reverse), ct)
    ),
)
cumprod_p: Row[ScanParams] = running(
    "cumprod",
    lambda x: accumulated(np.multiply, x),
    named("multiply"),
    lambda dtype: 1,
    accepts=NUMBER,
    jvp=jvp_by_scan(lambda: cumprod_p, product_tangent),
)
cummax_p: Row[ScanParams] = running(
    "cummax",
    lambda x: np.maximum.accumulate(x, 0),
    larger_or_smaller("maximum"),
    lowest,
    accepts=NUMBER,
    jvp=jvp_by_scan(lambda: cummax_p, extreme_tangent),
    domain=EXTREMES,
    exact=True,
)
cummin_p: Row[ScanParams] = running(
    "cummin",
    lambda x: np.minimum.accumulate(x, 0),
    larger_or_smaller("minimum"),
    highest,
    accepts=NUMBER,
    jvp=jvp_by_scan(lambda: cummin_p, extreme_tangent),
    domain=EXTREMES,
    exact=True,
)
cumlogsumexp_p: Row[ScanParams] = running(
    "cumlogsumexp",
    evaluate_log_sum_exp,
    log_add_exp,
    lambda dtype: -np.inf,
    accepts=ANY_FLOAT,
    jvp=jvp_by_scan(lambda: cumlogsumexp_p, log_sum_exp_tangent),
    light=False,
)


def cumulative(
    row: Row[ScanParams], operand: object, axis: int, reverse: bool
) -> Array:
    place = as_axis(row.name, axis, aval_of(operand).ndim)
    return row.call(ScanParams(place, bool(reverse)), operand)


def cumsum(operand: object, axis: int = 0, reverse: bool = False) -> Array:
    """The sums of the elements up to each along `axis`; from its end if `reverse`.

    The dtype stays, so small integers may overflow.

    Args:
        operand: an array of numbers.
        axis: the dimension to work along; 0 by default.
        reverse: whether to begin at the end of the axis.

    Returns:
        An array of the shape and dtype of `operand`.

    Raises:
        ValueError: there is no such axis.
        TypeError: `operand` is boolean.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.array([[1, 2, 3], [4, 5, 6]])
    >>> lax.cumsum(x, axis=1)
    Array([[ 1,  3,  6],
           [ 4,  9, 15]], dtype=int32)
    >>> lax.cumsum(x, axis=1, reverse=True)
    Array([[ 6,  5,  3],
           [15, 11,  6]], dtype=int32)
    """
    return cumulative(cumsum_p, operand, axis, reverse)


def cumprod(operand: object, axis: int = 0, reverse: bool = False) -> Array:
    """The products of the elements up to each along `axis`; from its end if `reverse`.

    Args:
        operand: an array of numbers.
        axis: the dimension to work along; 0 by default.
        reverse: whether to begin at the end of the axis.

    Returns:
        An array of the shape and dtype of `operand`.

    Raises:
        ValueError: there is no such axis.
        TypeError: `operand` is boolean.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.array([1, 2, 0, 3, 4])
    >>> lax.cumprod(x), lax.cumprod(x, reverse=True)
    (Array([1, 2, 0, 0, 0], dtype=int32), Array([ 0,  0,  0, 12,  4], dtype=int32))
    """
    return cumulative(cumprod_p, operand, axis, reverse)


def cummax(operand: object, axis: int = 0, reverse: bool = False) -> Array:
    """The largest element so far along `axis`, from its end if `reverse`.

    From a NaN on, all are NaN. Where several are largest, each has an equal share in
    the derivative.

    Args:
        operand: an array of numbers; complex ones are ordered by real, then by
            imaginary part.
        axis: the dimension to work along; 0 by default.
        reverse: whether to begin at the end of the axis.

    Returns:
        An array of the shape and dtype of `operand`.

    Raises:
        ValueError: there is no such axis.
        TypeError: `operand` is boolean.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.array([1.0, 3.0, 2.0, vnp.nan, 9.0])
    >>> lax.cummax(x)
    Array([ 1.,  3.,  3., nan, nan], dtype=float32)
    >>> lax.cummax(x[:3], reverse=True)
    Array([3., 3., 2.], dtype=float32)
    """
    return cumulative(cummax_p, operand, axis, reverse)


def cummin(operand: object, axis: int = 0, reverse: bool = False) -> Array:
    """The smallest element so far along `axis`; see `cummax`.

    Args:
        operand: an array of numbers; complex ones are ordered by real, then by
            imaginary part.
        axis: the dimension to work along; 0 by default.
        reverse: whether to begin at the end of the axis.

    Returns:
        An array of the shape and dtype of `operand`.

    Raises:
        ValueError: there is no such axis.
        TypeError: `operand` is boolean.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.cummin(vnp.array([[3, 1, 2], [0, 5, -1]]))
    Array([[ 3,  1,  2],
           [ 0,  1, -1]], dtype=int32)
    """
    return cumulative(cummin_p, operand, axis, reverse)


def cumlogsumexp(operand: object, axis: int = 0, reverse: bool = False) -> Array:
    """log(sum(exp(x))) of the elements up to each along `axis`, without overflow.

    Args:
        operand: an array of floats or complex numbers.
        axis: the dimension to work along; 0 by default.
        reverse: whether to begin at the end of the axis.

    Returns:
        An array of the shape and dtype of `operand`.

    Raises:
        ValueError: there is no such axis.
        TypeError: `operand` is neither floating nor complex.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.array([-vnp.inf, 1000.0, 1000.0])  # exp(1000) would be inf
    >>> lax.cumlogsumexp(x).round(2)
    Array([   -inf, 1000.  , 1000.69], dtype=float32)
    """
    return cumulative(cumlogsumexp_p, operand, axis, reverse)


ROWS: Rows = (
    cumsum_p,
    cumprod_p,
    cummax_p,
    cummin_p,
    cumlogsumexp_p,
)
