"""Floor 6: differences, sums and products of neighbours along a line, and unwrapping.

One idea: neighbours are two slices of one array, shifted against each other; a signal
without the jumps of its period is the sum of steps, each reduced to half a period::

    diff(x), gradient(x), trapezoid(y, x), interp(t, x, y), convolve(x, kernel)
    unwrap(angles), unwrap(degrees, period=360)
"""

import math
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from verax.backend.eager.composites import remembered
from verax.ir.avals import finfo
from verax.ir.dtypes import float32, is_bool, is_complex, is_integer
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    canonical_axes,
    canonical_axis,
    inexact_arrays,
    operand_aval,
    promote,
)
from verax.numpy.elementwise.arithmetic import (
    abs,
    add,
    multiply,
    negative,
    subtract,
    true_divide,
)
from verax.numpy.elementwise.comparison import (
    equal,
    greater,
    less,
    logical_and,
    logical_or,
    not_equal,
)
from verax.numpy.elementwise.division import floor_divide, remainder
from verax.numpy.linalg.products import Precision
from verax.numpy.reducing.reductions import sum
from verax.numpy.reducing.running import cumsum
from verax.numpy.searching.sorting import argsort, searchsorted
from verax.numpy.searching.where_nonzero import where
from verax.numpy.shaping.joining import concatenate
from verax.numpy.shaping.reversals import flip
from verax.numpy.shaping.shapes import broadcast_to, moveaxis, ravel, reshape
from verax.ops.contraction.dot import dot_general
from verax.ops.conv.functions import conv_general_dilated
from verax.ops.elementwise.arith import conj
from verax.ops.structure.create import broadcasted_iota
from verax.ops.structure.slicing import slice_in_dim
from verax.rules.values.array import Array
from verax.rules.values.sizes import ShapeError


def neighbours(x: Array, axis: int) -> tuple[Array, Array]:
    """All elements but the first, and all but the last."""
    n = x.shape[axis]
    return slice_in_dim(x, 1, n, axis=axis), slice_in_dim(x, 0, n - 1, axis=axis)


# ---------------------------------------------------------------------- differences


@remembered
def diff(
    a: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Array:
    """The differences of neighbours along `axis`, taken `n` times.

    Integers without sign wrap around below 0; of booleans, it says whether they differ.

    Args:
        a: an array with at least one dimension.
        n: how often differences are taken; 1 by default, and 0 gives `a` back.
        axis: the dimension to work along, the last one by default.
        prepend, append: what stands before and after `a` along `axis`: an array of the
            other sizes of `a`, or a scalar for one place in each line; None for
            nothing.

    Returns:
        An array in the dtype of `a` (with ends, in the common one), shorter by `n`
        along `axis`, down to size 0.

    Raises:
        ValueError: `a` has no dimensions, or `n` is negative.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([1, 4, 9, 16])
    >>> vnp.diff(x).tolist(), vnp.diff(x, n=2).tolist(), vnp.diff(x, prepend=0).tolist()
    ([3, 5, 7], [2, 2], [1, 3, 5, 7])
    >>> vnp.diff(vnp.array([5, 3], dtype="uint8"))
    Array([254], dtype=uint8)
    """
    x = as_array("diff", a)
    if n < 0:
        raise ValueError(f"diff: the order n must not be negative, but is {n}")
    if n == 0:
        return x
    if not x.ndim:
        raise ValueError("diff takes an array with at least one dimension")
    place = canonical_axis("diff", axis, x.ndim)
    parts = [x]
    if prepend is not None:
        parts = [edge_part(prepend, x, place), *parts]
    if append is not None:
        parts = [*parts, edge_part(append, x, place)]
    if len(parts) > 1:
        x = concatenate(parts, place)
    for _ in range(n):
        if not x.shape[place]:
            return x
        later, earlier = neighbours(x, place)
        x = not_equal(later, earlier) if is_bool(x.dtype) else later - earlier
    return x


def edge_part(value: ArrayLike, x: Array, axis: int) -> Array:
    """The padding before or after `x`; a scalar fills one place of each line."""
    part = as_array("diff", value)
    if part.ndim:
        return part
    return broadcast_to(part, [1 if i == axis else n for i, n in enumerate(x.shape)])


@remembered
def ediff1d(
    ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
) -> Array:
    """The differences of neighbours in the flat array, with the given ends added.

    Args:
        ary: an array or scalar.
        to_end, to_begin: arrays or scalars, flattened and converted to the dtype of
            `ary`, that stand after and before the differences; None for nothing.

    Returns:
        A vector in the dtype of `ary`.

    >>> import verax.numpy as vnp
    >>> vnp.ediff1d(vnp.array([[1, 4], [9, 16]]), to_begin=0)
    Array([0, 3, 5, 7], dtype=int32)
    """
    x = ravel(ary)
    out = diff(x)
    parts = [out]
    if to_begin is not None:
        parts = [ravel(to_begin).astype(x.dtype), *parts]
    if to_end is not None:
        parts = [*parts, ravel(to_end).astype(x.dtype)]
    return out if len(parts) == 1 else concatenate(parts)


@overload
def gradient(
    f: ArrayLike,
    dx: ArrayLike = ...,
    /,
    *,
    axis: Sequence[int] | None = None,
    edge_order: int | None = None,
) -> Array | list[Array]: ...
@overload
def gradient(
    f: ArrayLike, *varargs: ArrayLike, axis: int, edge_order: int | None = None
) -> Array: ...
@overload
def gradient(
    f: ArrayLike,
    dx: ArrayLike,
    dy: ArrayLike,
    /,
    *varargs: ArrayLike,
    axis: Sequence[int] | None = None,
    edge_order: int | None = None,
) -> list[Array]: ...
@overload
def gradient(
    f: ArrayLike,
    *varargs: ArrayLike,
    axis: int | Sequence[int] | None = None,
    edge_order: int | None = None,
) -> Array | list[Array]: ...
@remembered
def gradient(
    f: ArrayLike,
    *varargs: ArrayLike,
    axis: int | Sequence[int] | None = None,
    edge_order: int | None = None,
) -> Array | list[Array]:
    """Central differences, one-sided at the edges, along each dimension or `axis`.

    Args:
        f: an array, with at least one element more than `edge_order` along each axis.
        *varargs: the distances: one scalar for all dimensions, or for each of them a
            scalar or a vector of the coordinates; 1 if there are none.
        axis: the dimension or dimensions to work along; None for all of them.
        edge_order: 1 (or None, the default) for edges with the slope of the line
            through two elements, 2 for that of the parabola through three.

    Returns:
        An array of floats or complex numbers of the shape of `f`, or a list of them if
        there is not just one dimension to work along.

    Raises:
        ValueError: there are too few elements, or there is no such edge order or axis,
            or coordinates do not fit.
        TypeError: the number of distances is neither 1 nor that of dimensions.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([1.0, 4.0, 9.0, 16.0])
    >>> vnp.gradient(x).tolist(), vnp.gradient(x, edge_order=2).tolist()
    ([3.0, 4.0, 6.0, 7.0], [2.0, 4.0, 6.0, 8.0])
    >>> vnp.gradient(x, vnp.array([0, 1, 2, 4]))
    Array([3. , 4. , 4.5, 3.5], dtype=float32)
    """
    if edge_order not in (None, 1, 2):
        raise ValueError(f"gradient: edge_order must be 1 or 2, not {edge_order}")
    (x,) = inexact_arrays("gradient", f)
    axes = (
        tuple(range(x.ndim))
        if axis is None
        else canonical_axes("gradient", axis, x.ndim)
    )
    steps = list(varargs) or [1.0]
    if len(steps) == 1 and operand_aval("gradient", 1, steps[0]).ndim == 0:
        steps = steps * len(axes)
    if len(steps) != len(axes):
        raise TypeError(
            f"gradient: got {len(steps)} distances for {len(axes)} dimensions; pass "
            "one, or one for each"
        )
    order = edge_order or 1
    out = [
        slope(x, place, step, order) for place, step in zip(axes, steps, strict=True)
    ]
    return out[0] if len(out) == 1 else out


def slope(x: Array, axis: int, step: ArrayLike, order: int) -> Array:
    """The gradient along one dimension."""
    n = x.shape[axis]
    if n < order + 1:
        raise ValueError(
            f"gradient needs at least {order + 1} elements along axis {axis}, but the "
            f"shape is {x.shape}"
        )
    later, earlier = neighbours(x, axis)
    spacing = as_array("gradient", step)
    if spacing.ndim:
        return uneven_slope(x, axis, spacing, later - earlier, order)
    secants = true_divide(later - earlier, spacing)
    first, last = edges(secants, axis, order, None)
    ahead = slice_in_dim(x, 2, n, axis=axis)
    behind = slice_in_dim(x, 0, n - 2, axis=axis)
    return concatenate((first, (ahead - behind) / (spacing * 2), last), axis)


def uneven_slope(
    x: Array, axis: int, places: Array, change: Array, order: int
) -> Array:
    """The gradient at given coordinates: secants, weighted by the other's length."""
    n = x.shape[axis]
    if places.shape != (n,):
        raise ValueError(
            f"gradient: coordinates must have shape ({n},), not {places.shape}"
        )
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    lengths = reshape(diff(places), shape)
    secants = true_divide(change, lengths)
    after, before = neighbours(secants, axis)
    right, left = neighbours(lengths, axis)
    inner = (before * right + after * left) / (left + right)
    first, last = edges(secants, axis, order, lengths)
    return concatenate((first, inner, last), axis)


def edges(
    secants: Array, axis: int, order: int, lengths: Array | None
) -> tuple[Array, Array]:
    """The slopes at both ends; without `lengths` the steps are equal."""

    def part(x: Array, place: int) -> Array:
        place %= x.shape[axis]
        return slice_in_dim(x, place, place + 1, axis=axis)

    def bent(place: int, inward: int) -> Array:
        end, other = part(secants, place), part(secants, inward)
        if lengths is None:
            return end + (end - other) * 0.5
        own = part(lengths, place)
        return end + (end - other) * own / (own + part(lengths, inward))

    if order == 1:
        return part(secants, 0), part(secants, -1)
    return bent(0, 1), bent(-1, -2)


@remembered
def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """The integral along `axis` by the trapezoidal rule.

    Args:
        y: an array of values with at least one dimension.
        x: the coordinates: a vector for all lines, or an array that broadcasts with
            `y`; None if they lie `dx` apart. Where they decrease, the integral is
            negative.
        dx: the distance of coordinates, a scalar, or an array that broadcasts with the
            pairs of neighbours; 1 by default, and without effect beside `x`.
        axis: the dimension to work along, the last one by default.

    Returns:
        An array of floats or complex numbers without that dimension.

    Raises:
        ValueError: the axis does not exist, or shapes do not broadcast.

    >>> import verax.numpy as vnp
    >>> y = vnp.array([1, 2, 3])
    >>> vnp.trapezoid(y), vnp.trapezoid(y, vnp.array([0, 1, 4]))
    (Array(4., dtype=float32), Array(9., dtype=float32))
    """
    if x is None:
        (values,) = inexact_arrays("trapezoid", y)
        values, steps = inexact_arrays("trapezoid", values, dx)
    else:
        values, places = inexact_arrays("trapezoid", y, x)
        steps = places if places.ndim == 1 else moveaxis(places, axis, -1)
        steps, values, axis = diff(steps), moveaxis(values, axis, -1), -1
    place = canonical_axis("trapezoid", axis, values.ndim)
    if not values.shape[place]:
        return sum(values, axis=place)
    if not steps.ndim and values.shape[place] > 1:
        return multiply(steps, without_half_of_ends(values, place))
    later, earlier = neighbours(values, place)
    missing = max(values.ndim - steps.ndim, 0) if steps.ndim else 0
    steps = reshape(steps, (*(1,) * missing, *steps.shape))
    return multiply(sum(multiply(steps, later + earlier), axis=place), 0.5)


def without_half_of_ends(x: Array, axis: int) -> Array:
    """The sum along an axis, in which the first and the last count by half.

    It is a product with weights, which reads each element once.
    """
    places = broadcasted_iota(np.int32, (x.shape[axis],), 0)
    at_end = logical_or(equal(places, 0), equal(places, x.shape[axis] - 1))
    weights = where(at_end, 0.5, 1.0).astype(x.dtype)
    dims = (((axis,), (0,)), ((), ()))
    wide = x.dtype if finfo(x.dtype).bits >= 32 else float32
    return dot_general(x, weights, dims, "highest", wide).astype(x.dtype)


# -------------------------------------------------------------------- interpolation


@remembered
def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: object = None,
    right: object = None,
    period: ArrayLike | None = None,
) -> Array:
    """Linear interpolation at `x` between the points (`xp`, `fp`).

    Args:
        x: an array or scalar, the places.
        xp: a vector, the places of the points, increasing unless there is a period.
        fp: a vector of the same size, their values, real or complex.
        left, right: scalars, the values before the first point and after the last one;
            None for the first and last of `fp`, "extrapolate" to continue the outermost
            lines.
        period: a scalar, modulo which `x` and `xp` are taken; then the points may stand
            in any order, and `left` and `right` are without effect. None for no period.

    Returns:
        An array of floats or complex numbers of the shape of `x`.

    Raises:
        ValueError: `xp` and `fp` are not nonempty vectors of the same size, `x` or `xp`
            is complex, `period` is no scalar, or `left` or `right` is another string.

    >>> import verax.numpy as vnp
    >>> xp, fp = vnp.array([1, 2]), vnp.array([10, 20])
    >>> vnp.interp(vnp.array([0, 1.5, 9]), xp, fp)
    Array([10., 15., 20.], dtype=float32)
    >>> vnp.interp(vnp.array([0, 1.5, 9]), xp, fp, left=-1, right="extrapolate")
    Array([-1., 15., 90.], dtype=float32)
    """
    places, knots = inexact_arrays("interp", x, xp)
    (values,) = inexact_arrays("interp", fp)
    if is_complex(knots.dtype):
        raise ShapeError("interp: complex x values are not supported, as in NumPy")
    if knots.ndim != 1 or knots.shape != values.shape or not knots.size:
        raise ValueError(
            "xp and fp must be one-dimensional arrays of equal size, which interp "
            f"takes, not {knots.shape} and {values.shape}"
        )
    check_sides(left, right)
    if period is not None:
        places, knots, values = periodic(places, knots, values, period)
    above = searchsorted(knots, places, side="right").clip(
        1, max(knots.shape[0] - 1, 1)
    )
    if knots.shape[0] == 1:
        out = broadcast_to(values[0], places.shape)
    else:
        out = between(places, knots, values, above)
    if left == "extrapolate" and right == "extrapolate":
        return out
    return beyond(out, places, knots, values, left, right, period is not None)


def check_sides(left: object, right: object) -> None:
    """Raise ValueError for a word that names no way to go on beyond the points."""
    for name, side in (("left", left), ("right", right)):
        if isinstance(side, str) and side != "extrapolate":
            raise ValueError(
                f"interp: the only valid string value of `{name}` is 'extrapolate', "
                f"but got: {side!r}"
            )


def max(a: int, b: int) -> int:
    """The greater of two sizes."""
    return a if a > b else b


def between(places: Array, knots: Array, values: Array, above: Array) -> Array:
    """The lines between neighbouring points; at a jump, the value after it."""
    low, high = knots[above - 1], knots[above]
    start, end = values[above - 1], values[above]
    width = high - low
    flat = equal(width, 0)
    part = (places - low) / where(flat, 1, width)
    out: Array = where(flat, end, start + part * (end - start))
    return out


def beyond(
    array: Array,
    places: Array,
    knots: Array,
    values: Array,
    left: Any,
    right: Any,
    endless: bool,
) -> Array:
    """The values outside of the points."""
    if endless:
        return array
    if left != "extrapolate":
        before = values[0] if left is None else left
        array = where(less(places, knots[0]), before, array)
    if right != "extrapolate":
        after = values[-1] if right is None else right
        array = where(greater(places, knots[-1]), after, array)
    return array


def periodic(
    places: Array, knots: Array, values: Array, period: ArrayLike
) -> tuple[Array, Array, Array]:
    """Places and points within one period, the points sorted and continued by one."""
    span = abs(as_array("interp", period))
    if span.ndim:
        raise ValueError(f"interp: period must be a scalar; got the shape {span.shape}")
    places, knots = remainder(places, span), remainder(knots, span)
    order = argsort(knots)
    knots, values = knots[order], values[order]
    knots = concatenate((knots[-1:] - span, knots, knots[:1] + span))
    return places, knots, concatenate((values[-1:], values, values[:1]))


# ---------------------------------------------------------------------- convolution


@remembered
def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: Precision = None,
    preferred_element_type: object = None,
) -> Array:
    """The sums of products of two vectors, one of them reversed and shifted.

    Integers are read as floats, as in JAX, unless a dtype is preferred.

    Args:
        a, v: nonempty vectors, of sizes n and m.
        mode: "full" by default, for all n + m - 1 shifts at which the vectors overlap;
            "same" for max(n, m) of them in the middle; "valid" for those at which the
            shorter vector lies inside the longer one.
        precision: how exact products are on accelerators: a `lax.Precision` or its
            name; None for the default.
        preferred_element_type: the dtype in which products are summed and returned;
            None for that of the operands.

    Returns:
        A vector of floats or complex numbers, in the common dtype unless another one is
        preferred.

    Raises:
        ValueError: an operand is empty or not a vector, or the mode does not exist.
        TypeError: the preferred dtype is narrower than that of the operands, or of
            another kind; integers can be summed in floats.

    >>> import verax.numpy as vnp
    >>> x, kernel = vnp.array([1, 2, 3]), vnp.array([1, 1])
    >>> vnp.convolve(x, kernel)
    Array([1., 3., 5., 3.], dtype=float32)
    >>> [vnp.convolve(x, kernel, mode).tolist() for mode in ("same", "valid")]
    [[1.0, 3.0, 5.0], [3.0, 5.0]]
    """
    return shifted_products("convolve", a, v, mode, precision, preferred_element_type)


@remembered
def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: Precision = None,
    preferred_element_type: object = None,
) -> Array:
    """The sums of products of a vector and a shifted one, which is conjugated.

    Integers are read as floats, as in JAX, unless a dtype is preferred.

    Args:
        a: a nonempty vector.
        v: a nonempty vector, which is shifted and conjugated.
        mode: "valid" by default, for the shifts at which the shorter vector lies inside
            the longer one; "full" for all at which they overlap; "same" for as many in
            the middle as the longer vector has elements.
        precision: how exact products are on accelerators: a `lax.Precision` or its
            name; None for the default.
        preferred_element_type: the dtype in which products are summed and returned;
            None for that of the operands.

    Returns:
        A vector of floats or complex numbers, in the common dtype unless another one is
        preferred.

    Raises:
        ValueError: an operand is empty or not a vector, or the mode does not exist.
        TypeError: the preferred dtype is narrower than that of the operands, or of
            another kind; integers can be summed in floats.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([1, 2, 3])
    >>> vnp.correlate(x, vnp.array([0, 1]), "full")
    Array([1., 2., 3., 0.], dtype=float32)
    >>> vnp.correlate(vnp.array([1, 1j]), vnp.array([1, 1j]))
    Array([2.+0.j], dtype=complex64)
    """
    kernel = as_array("correlate", v, 1)
    if is_complex(kernel.dtype):
        kernel = conj(kernel)
    reversed_kernel = flip(kernel)
    return shifted_products(
        "correlate", a, reversed_kernel, mode, precision, preferred_element_type
    )


def in_one_dtype(name: str, *args: ArrayLike) -> list[Array]:
    """The arguments as arrays of their common dtype, which may be one of integers."""
    return [as_array(name, x) for x in promote(name, *args)]


def shifted_products(
    name: str,
    a: ArrayLike,
    v: ArrayLike,
    mode: str,
    precision: Precision,
    preferred: Any,
) -> Array:
    """A convolution: windows of the longer vector against the shorter one, reversed."""
    x, y = inexact_arrays(name, a, v) if preferred is None else in_one_dtype(name, a, v)
    if x.ndim != 1 or y.ndim != 1 or not x.size or not y.size:
        raise ValueError(f"{name} takes nonempty vectors, not {x.aval} and {y.aval}")
    swapped = x.size < y.size
    if swapped:
        x, y = y, x
    n, m = x.size, y.size
    edges = {"full": (m - 1, m - 1), "same": (m // 2, m - 1 - m // 2), "valid": (0, 0)}
    if mode not in edges:
        raise ValueError(
            f"{name}: mode must be 'full', 'same' or 'valid', not {mode!r}"
        )
    # In the mode "same", NumPy centres an even correlation by its first operand.
    low, high = edges[mode][::-1] if swapped and name == "correlate" else edges[mode]
    array = conv_general_dilated(
        x.reshape((1, 1, n)),
        flip(y).reshape((1, 1, m)),
        (1,),
        [(low, high)],
        precision=precision,
        preferred_element_type=preferred,
    )
    return array.reshape(array.size)


@remembered
def unwrap(
    p: ArrayLike,
    discont: ArrayLike | None = None,
    axis: int = -1,
    period: ArrayLike = 2 * math.pi,
) -> Array:
    """`p` with multiples of `period` added, so that no step is over half of one.

    Args:
        p: an array of real numbers with at least one dimension.
        discont: a scalar; smaller steps stay as they are, if it is more than half a
            period. None, the default, for half a period.
        axis: the dimension to work along, the last one by default.
        period: a scalar, 2 pi by default.

    Returns:
        An array of the shape of `p`, in the common dtype with `period`: integers stay
        integers if that is one.

    Raises:
        ValueError: `p` is complex or has no dimensions.

    >>> import verax.numpy as vnp
    >>> vnp.unwrap(vnp.array([0, 120, 240, 0, 120]), period=360)
    Array([  0, 120, 240, 360, 480], dtype=int32)
    >>> vnp.unwrap(vnp.array([0.0, 200.0, 10.0]), period=360).tolist()
    [0.0, -160.0, 10.0]
    """
    given, span = promote("unwrap", p, period)
    x = as_array("unwrap", given)
    if is_complex(x.dtype):
        raise ValueError(f"unwrap takes real numbers, not {x.aval}")
    if not x.ndim:
        raise ValueError("unwrap takes an array with at least one dimension")
    place = canonical_axis("unwrap", axis, x.ndim)
    if not x.shape[place]:
        return x
    steps = diff(x, axis=place)
    fixed = correction(steps, span, discont, is_integer(x.dtype))
    first = slice_in_dim(x, 0, 1, axis=place)
    rest = slice_in_dim(x, 1, x.shape[place], axis=place)
    return concatenate((first, add(rest, cumsum(fixed, place, x.dtype))), place)


def correction(
    steps: Array, period: ArrayLike, discont: ArrayLike | None, whole: bool
) -> Array:
    """The correction that brings each step to between minus and plus half a period."""
    half = floor_divide(period, 2) if whole else true_divide(period, 2)
    reduced = subtract(remainder(add(steps, half), period), half)
    # Half a period down is as much as half a period up; the sign of the step decides.
    edge = logical_and(equal(reduced, negative(half)), greater(steps, 0))
    if whole:
        edge = logical_and(edge, equal(remainder(period, 2), 0))
    reduced = where(edge, half, reduced)
    small = less(abs(steps), half if discont is None else discont)
    out: Array = where(small, 0, subtract(reduced, steps))
    return out
