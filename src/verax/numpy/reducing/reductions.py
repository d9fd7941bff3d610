"""Floor 6: sums, products, extremes, means and the like over dimensions.

One idea: every reduction says in which dtype it computes and with what it replaces the
elements that `where` leaves out; the rest is one row::

    sum(x, axis=0), max(x, keepdims=True), mean(x, where=x > 0)
"""

import numpy as np

from verax.backend.eager.composites import remembered
from verax.ir.avals import Shape
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    bool_,
    default_dtype,
    float32,
    is_float,
    is_integer,
    is_unsigned,
    numpy_dtype,
)
from verax.ir.memos import memoised
from verax.numpy.arguments.arguments import (
    ArrayLike,
    Axis,
    NamedAxis,
    as_array,
    broadcast_shapes_of,
    chosen_dtype,
    constant_of,
    keep_dims,
    named_apart,
    no_out,
    reduction_axes,
    stretched,
    with_weak_type,
)
from verax.numpy.arguments.elementwise_call import truth
from verax.numpy.elementwise.arithmetic import (
    add,
    maximum,
    minimum,
    multiply,
    subtract,
)
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.ops.reductions.reduce import (
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_or_p,
    reduce_prod_p,
    reduce_sum_p,
)
from verax.rules.families.reducer import ReduceParams, highest, lowest
from verax.rules.rows.row import Row
from verax.rules.values.array import Array
from verax.rules.values.memo import pure
from verax.rules.values.state import STATE

type Where = ArrayLike | None


reduce_params = memoised(ReduceParams)


def fold(
    row: Row[ReduceParams], x: Array, axes: Shape, keepdims: bool = False
) -> Array:
    """`row` over `axes` of `x`, which come back as 1 if `keepdims`."""
    out = row.call(reduce_params(axes), x) if axes else x
    return keep_dims(out, x.shape, axes) if keepdims and axes else out


def across(
    name: str, row: Row[ReduceParams], x: Array, names: tuple[str, ...]
) -> Array:
    """What `row` makes of `x` over the elements of named axes, place by place.

    Raises:
        NameError: there is no such axis in scope.
        NotImplementedError: it is neither a sum nor an extreme.
    """
    if not names:
        return x
    from verax.lax.parallel import pmax, pmin, psum

    if row is reduce_sum_p:
        return psum(x, names)
    if row is reduce_max_p or row is reduce_min_p:
        return (pmax if row is reduce_max_p else pmin)(x, names)
    raise NotImplementedError(
        f"Named reductions not implemented for jnp.{name}(): of axes named {names}, "
        "sums, means, variances and extremes are there"
    )


def count_across(names: tuple[str, ...]) -> int:
    """The number of elements along named axes."""
    if not names:
        return 1
    from verax.lax.parallel import psum

    return psum(1, names)


def masked(name: str, x: Array, where: Where, identity: object) -> Array:
    """`x` with `identity` where the mask `where` is false.

    Raises:
        TypeError: the mask is not boolean.
    """
    if where is None:
        return x
    mask = as_mask(name, where, x.shape)
    return select(mask, x, constant_of(identity, x.dtype))


def boolean_mask(name: str, where: ArrayLike) -> Array:
    """A mask in its own shape.

    Raises:
        ValueError: it is not boolean.
    """
    mask = as_array(name, where)
    if mask.dtype != bool_:
        raise ValueError(
            f"jnp.{name}: where must be None or a boolean array, not {mask.aval}"
        )
    return mask


def as_mask(name: str, where: ArrayLike, shape: Shape) -> Array:
    """A boolean mask, broadcast to `shape`."""
    mask = boolean_mask(name, where)
    joined = broadcast_shapes_of(name, (mask.shape, shape))
    if joined != shape:
        raise ValueError(f"{name}: where={mask.aval} does not broadcast to {shape}")
    return stretched(mask, shape) if mask.shape else mask


@pure(1 << 8)
def sum_types(
    own: DType, dtype: DType | None, promote_integers: bool, x64: bool
) -> tuple[DType, DType]:
    """The dtype of a sum, and the one in which it is computed.

    Small integers are summed in the default integer, small floats in float32; of
    booleans a sum says whether one is true, and a product whether all are.
    """
    if dtype is not None:
        result = dtype
    elif promote_integers:
        result = widened(own, x64)
    else:
        result = default_dtype("integer", x64) if own == bool_ else own
    small = is_float(result) and numpy_dtype(result).itemsize < 4
    return result, float32 if small else result


def widened(dtype: DType, x64: bool) -> DType:
    """Booleans and integers in at least the default width."""
    if dtype == bool_:
        return default_dtype("integer", x64)
    if not is_integer(dtype):
        return dtype
    default = default_dtype("unsigned" if is_unsigned(dtype) else "integer", x64)
    return default if numpy_dtype(dtype).itemsize < default.itemsize else dtype


def initial_value(name: str, initial: ArrayLike) -> Array:
    """The value with which a reduction starts.

    Raises:
        ValueError: it has dimensions.
    """
    out = as_array(name, initial)
    if out.ndim:
        raise ValueError(
            f"{name}: initial value must be a scalar. Got array of shape {out.shape}"
        )
    return out


def numbers_of(name: str, a: ArrayLike) -> Array:
    """The operand of a reduction.

    Raises:
        TypeError: it holds keys.
    """
    x = as_array(name, a)
    if isinstance(x.aval.dtype, np.dtype):
        return x
    raise TypeError(f"{name} takes numbers, not {x.aval}; see verax.random.key_data")


def accumulate(
    name: str,
    row: Row[ReduceParams],
    identity: int,
    a: ArrayLike,
    axis: NamedAxis,
    dtype: DTypeLike | None,
    out: object,
    keepdims: bool,
    initial: ArrayLike | None,
    where: Where,
    promote_integers: bool = True,
) -> Array:
    """Computes `sum` and `prod`, also of what is not NaN."""
    if out is not None:
        no_out(name, out)
    x = numbers_of(name, a)
    aval, asked = x.aval, chosen_dtype(name, dtype)
    result, working = sum_types(aval.dtype, asked, promote_integers, STATE.enable_x64)
    axis, names = named_apart(axis)
    axes = reduction_axes(name, axis, len(aval.shape))
    if aval.dtype is not working or aval.weak_type:
        x = convert(x, working)
    if working == bool_:
        row = reduce_and_p if identity else reduce_or_p
    array = fold(row, masked(name, x, where, identity), axes, keepdims)
    array = across(name, row, array, names)
    if initial is not None:
        start = convert(initial_value(name, initial), working)
        array = multiply(array, start) if identity else add(array, start)
    return convert(array, result)


@remembered
def sum(
    a: ArrayLike,
    axis: NamedAxis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: Where = None,
    promote_integers: bool = True,
) -> Array:
    """The sum over `axis`, or over all dimensions; integers in at least 32 bits.

    Args:
        a: an array or scalar; booleans count as 0 and 1.
        axis: the dimension or dimensions to reduce; None for all of them. Names stand
            for axes of an enclosing `vmap` or `shard_map`.
        dtype: the dtype of the result; by default that of `a`, but at least the default
            integer, signed or unsigned, for small integers. Float16 and bfloat16 are
            summed in float32. With bool the result says whether an element is true.
        out: only None, since arrays are immutable.
        keepdims: whether reduced dimensions stay, with size 1.
        initial: a scalar to begin with; None for 0.
        where: a mask that broadcasts with the array; elements where it is false are
            left out.
        promote_integers: whether small integers are summed in the default integer; if
            false they keep their dtype and may overflow.

    Returns:
        The sums, of the shape of `a` without the dimensions in `axis`; 0, or `initial`,
        where there are no elements.

    Raises:
        NameError: there is no axis of that name in scope.
        ValueError: an axis does not exist or is named twice, `initial` has dimensions,
            or `where` is not boolean.

    >>> import verax.numpy as jnp
    >>> jnp.sum(jnp.array([[1, 2], [3, 4]]), axis=0).tolist()
    [4, 6]
    >>> jnp.sum(jnp.array([100, 100], dtype=jnp.int8))
    Array(200, dtype=int32)
    """
    return accumulate(
        "sum",
        reduce_sum_p,
        0,
        a,
        axis,
        dtype,
        out,
        keepdims,
        initial,
        where,
        promote_integers,
    )


@remembered
def prod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: Where = None,
    promote_integers: bool = True,
) -> Array:
    """The product over `axis`, or over all dimensions; integers in at least 32 bits.

    Args:
        a: an array or scalar; booleans count as 0 and 1.
        axis: the dimension or dimensions to reduce; None for all of them.
        dtype: the dtype of the result; by default that of `a`, but at least the default
            integer, signed or unsigned, for small integers. Float16 and bfloat16 are
            multiplied in float32. With bool the result says whether all are true.
        out: only None, since arrays are immutable.
        keepdims: whether reduced dimensions stay, with size 1.
        initial: a scalar to begin with; None for 1.
        where: a mask that broadcasts with the array; elements where it is false are
            left out.
        promote_integers: whether small integers are multiplied in the default integer;
            if false they keep their dtype and may overflow.

    Returns:
        The products, of the shape of `a` without the dimensions in `axis`; 1, or
        `initial`, where there are no elements.

    Raises:
        ValueError: an axis does not exist or is named twice, `initial` has dimensions,
            or `where` is not boolean.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1, 2], [0, 4]])
    >>> vnp.prod(x, axis=1)
    Array([2, 0], dtype=int32)
    >>> vnp.prod(x, where=x != 0)
    Array(8, dtype=int32)
    """
    return accumulate(
        "prod",
        reduce_prod_p,
        1,
        a,
        axis,
        dtype,
        out,
        keepdims,
        initial,
        where,
        promote_integers,
    )


def extreme(
    name: str,
    row: Row[ReduceParams],
    a: ArrayLike,
    axis: NamedAxis,
    out: object,
    keepdims: bool,
    initial: ArrayLike | None,
    where: Where,
) -> Array:
    """Computes `max` and `min`, also of what is not NaN.

    Raises:
        ValueError: nothing is reduced and no `initial` says what that gives.
    """
    if out is not None:
        no_out(name, out)
    x = numbers_of(name, a)
    axis, names = named_apart(axis)
    axes = reduction_axes(name, axis, x.ndim)
    if initial is None and where is not None:
        raise ValueError(
            f"{name}: where needs initial, the result where no element is selected"
        )
    if initial is None and 0 in [x.shape[i] for i in axes]:
        raise ValueError(
            f"{name}: {x.aval} has no elements along {axes}; pass initial, the result "
            "for no elements"
        )
    upward = row is reduce_max_p
    end = lowest(x.dtype) if upward else highest(x.dtype)
    result = fold(row, masked(name, convert(x, x.dtype), where, end), axes, keepdims)
    result = across(name, row, result, names)
    if initial is None:
        return result
    start = convert(initial_value(name, initial), x.dtype)
    return maximum(result, start) if upward else minimum(result, start)


@remembered
def max(
    a: ArrayLike,
    axis: NamedAxis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: Where = None,
) -> Array:
    """The largest element over `axis`, NaN if there is one.

    Args:
        a: an array or scalar; complex numbers are ordered by their real and then their
            imaginary parts.
        axis: the dimension or dimensions to reduce; None for all of them. Names stand
            for axes of an enclosing `vmap` or `shard_map`.
        out: only None, since arrays are immutable.
        keepdims: whether reduced dimensions stay, with size 1.
        initial: a scalar to begin with, converted to the dtype of `a`: the result is
            not less. Required with `where` and where there are no elements.
        where: a mask that broadcasts with the array; elements where it is false are
            left out.

    Returns:
        The largest elements, in the dtype of `a` and of its shape without the
        dimensions in `axis`.

    Raises:
        NameError: there is no axis of that name in scope.
        ValueError: there are no elements and no `initial`, `where` is given without
            `initial`, an axis does not exist, or `initial` has dimensions.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1, 5, 2], [7, 0, 3]])
    >>> vnp.max(x, axis=1, keepdims=True).tolist()
    [[5], [7]]
    >>> vnp.max(x, axis=0, where=x < 5, initial=-1).tolist()
    [1, 0, 3]
    """
    return extreme("max", reduce_max_p, a, axis, out, keepdims, initial, where)


@remembered
def min(
    a: ArrayLike,
    axis: NamedAxis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: Where = None,
) -> Array:
    """The smallest element over `axis`, NaN if there is one.

    Args:
        a: an array or scalar; complex numbers are ordered by their real and then their
            imaginary parts.
        axis: the dimension or dimensions to reduce; None for all of them. Names stand
            for axes of an enclosing `vmap` or `shard_map`.
        out: only None, since arrays are immutable.
        keepdims: whether reduced dimensions stay, with size 1.
        initial: a scalar to begin with, converted to the dtype of `a`: the result is
            not greater. Required with `where` and where there are no elements.
        where: a mask that broadcasts with the array; elements where it is false are
            left out.

    Returns:
        The smallest elements, in the dtype of `a` and of its shape without the
        dimensions in `axis`.

    Raises:
        NameError: there is no axis of that name in scope.
        ValueError: there are no elements and no `initial`, `where` is given without
            `initial`, an axis does not exist, or `initial` has dimensions.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1.0, 5.0], [vnp.nan, -2.0]])
    >>> vnp.min(x, axis=0)
    Array([nan, -2.], dtype=float32)
    >>> vnp.min(x, where=x > 0, initial=9.0)
    Array(1., dtype=float32)
    """
    return extreme("min", reduce_min_p, a, axis, out, keepdims, initial, where)


amax = max
amin = min


@remembered
def ptp(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False
) -> Array:
    """The largest minus the smallest element over `axis`.

    Integers keep their dtype, in which the difference may overflow.

    Args:
        a: an array or scalar.
        axis: the dimension or dimensions to reduce; None for all of them.
        out: only None, since arrays are immutable.
        keepdims: whether reduced dimensions stay, with size 1.

    Returns:
        The differences, in the dtype of `a` and of its shape without the dimensions in
        `axis`; NaN if there is a NaN.

    Raises:
        ValueError: there are no elements, or an axis does not exist.

    >>> import verax.numpy as vnp
    >>> vnp.ptp(vnp.array([[1, 5], [2, 9]]), axis=1)
    Array([4, 7], dtype=int32)
    """
    no_out("ptp", out)
    x = as_array("ptp", a)
    return subtract(max(x, axis, keepdims=keepdims), min(x, axis, keepdims=keepdims))


def join_truth(
    name: str,
    row: Row[ReduceParams],
    identity: bool,
    a: ArrayLike,
    axis: NamedAxis,
    out: object,
    keepdims: bool,
    where: Where,
) -> Array:
    """Computes `all` and `any`."""
    if out is not None:
        no_out(name, out)
    x = numbers_of(name, a)
    axis, names = named_apart(axis)
    axes = reduction_axes(name, axis, len(x.aval.shape))
    x = with_weak_type(truth(name, x), False)
    if where is not None:
        x = masked(name, x, where, identity)
    return across(name, row, fold(row, x, axes, keepdims), names)


@remembered
def all(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Where = None,
) -> Array:
    """Whether all elements over `axis` are true, that is, not zero.

    NaN is not zero, so it is true.

    Args:
        a: an array or scalar.
        axis: the dimension or dimensions to reduce; None for all of them.
        out: only None, since arrays are immutable.
        keepdims: whether reduced dimensions stay, with size 1.
        where: a mask that broadcasts with the array; elements where it is false are
            left out.

    Returns:
        Booleans, of the shape of `a` without the dimensions in `axis`; true where there
        are no elements.

    Raises:
        ValueError: an axis does not exist or is named twice, or `where` is not boolean.

    >>> import verax.numpy as vnp
    >>> vnp.all(vnp.array([[0, 1], [2, 3]]), axis=1).tolist()
    [False, True]
    >>> vnp.all(vnp.array([]))
    Array(True, dtype=bool)
    """
    return join_truth("all", reduce_and_p, True, a, axis, out, keepdims, where)


@remembered
def any(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Where = None,
) -> Array:
    """Whether some element over `axis` is true, that is, not zero.

    NaN is not zero, so it is true.

    Args:
        a: an array or scalar.
        axis: the dimension or dimensions to reduce; None for all of them.
        out: only None, since arrays are immutable.
        keepdims: whether reduced dimensions stay, with size 1.
        where: a mask that broadcasts with the array; elements where it is false are
            left out.

    Returns:
        Booleans, of the shape of `a` without the dimensions in `axis`; false where
        there are no elements.

    Raises:
        ValueError: an axis does not exist or is named twice, or `where` is not boolean.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[0, 0], [0, 3]])
    >>> vnp.any(x, axis=1).tolist()
    [False, True]
    >>> bool(vnp.any(x, where=x < 3))
    False
    """
    return join_truth("any", reduce_or_p, False, a, axis, out, keepdims, where)


@remembered
def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """The number of elements over `axis` that are not zero.

    Args:
        a: an array or scalar; NaN is not zero, and -0.0 is.
        axis: the dimension or dimensions to reduce; None for all of them.
        keepdims: whether reduced dimensions stay, with size 1.

    Returns:
        The numbers in the default integer, of the shape of `a` without the dimensions
        in `axis`.

    Raises:
        ValueError: an axis does not exist or is named twice.

    >>> import verax.numpy as vnp
    >>> vnp.count_nonzero(vnp.array([[0.0, -0.0, vnp.nan], [1.0, 2.0, 0.0]]), axis=1)
    Array([1, 2], dtype=int32)
    """
    return sum(
        truth("count_nonzero", as_array("count_nonzero", a)), axis, keepdims=keepdims
    )
