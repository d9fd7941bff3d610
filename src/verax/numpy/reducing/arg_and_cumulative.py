"""Floor 6: where the extremes are, and running sums and products.

Along no axis means along the flat array::

    argmax(x), argmin(x, axis=1), cumsum(x, axis=0)
"""

from typing import Any

from verax.backend.eager.composites import remembered
from verax.ir.dtypes import DTypeLike, bool_, is_complex
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    canonical_axis,
    chosen_dtype,
    default_integer,
    keep_dims,
    no_out,
    spread,
)
from verax.numpy.creation.creation import filled
from verax.numpy.reducing.reductions import widened
from verax.ops.elementwise.bits import bitwise_or
from verax.ops.elementwise.compare import eq, ne
from verax.ops.elementwise.convert import convert
from verax.ops.reductions import cumulative, reduce
from verax.ops.reductions.reduce import reduce_max, reduce_min
from verax.ops.structure.joining import concatenate
from verax.ops.structure.shape import reshape
from verax.rules.values.array import Array
from verax.rules.values.state import STATE


def flat_or_along(name: str, x: Array, axis: int | None) -> tuple[Array, int]:
    """The array and its axis; without an axis, the flat array."""
    if axis is None:
        return reshape(x, (x.size,)), 0
    return x, canonical_axis(name, axis, x.ndim)


def place_of(
    name: str, search: Any, a: ArrayLike, axis: int | None, out: object, keepdims: Any
) -> Array:
    """What `argmax` and `argmin` share.

    Raises:
        ValueError: the dimension is empty or does not exist.
    """
    no_out(name, out)
    given = as_array(name, a)
    x, along = flat_or_along(name, given, axis)
    if not x.shape[along]:
        raise ValueError(
            f"attempt to get {name} of an empty sequence: {given.aval} has no elements "
            f"along axis={axis}"
        )
    if is_complex(x.dtype):
        x = attained(x, along, upward=search is reduce.argmax)
        search = reduce.argmax
    result: Array = search(x, along, default_integer())
    if not keepdims:
        return result
    gone = range(given.ndim) if axis is None else (along,)
    return keep_dims(result, given.shape, gone)


def attained(x: Array, axis: int, upward: bool) -> Array:
    """Where complex numbers are extreme along `axis`, or NaN."""
    extreme = reduce_max(x, (axis,)) if upward else reduce_min(x, (axis,))
    return bitwise_or(eq(x, spread(extreme, x.shape, (axis,))), ne(x, x))


@remembered
def argmax(
    a: ArrayLike,
    axis: int | None = None,
    out: None = None,
    keepdims: bool | None = None,
) -> Array:
    """The index of the largest element, the first of equals; of the first NaN.

    Raises:
        ValueError: there are no elements.
    """
    return place_of("argmax", reduce.argmax, a, axis, out, keepdims)


@remembered
def argmin(
    a: ArrayLike,
    axis: int | None = None,
    out: None = None,
    keepdims: bool | None = None,
) -> Array:
    """The index of the smallest element, the first of equals; of the first NaN.

    Raises:
        ValueError: there are no elements.
    """
    return place_of("argmin", reduce.argmin, a, axis, out, keepdims)


def running(
    name: str, scan: Any, a: ArrayLike, axis: int | None, dtype: Any, out: object
) -> Array:
    """What the cumulative functions share; booleans count as integers.

    With the dtype bool the result says where it would not be 0, as in NumPy.
    """
    no_out(name, out)
    x, along = flat_or_along(name, as_array(name, a), axis)
    value = chosen_dtype(name, dtype)
    if value == bool_:
        counts = running(name, scan, convert(x, bool_), along, None, None)
        return convert(counts, bool_)
    if value is None:
        default = default_integer()
        value = default if x.dtype == bool_ else x.dtype
    if not x.ndim:
        return reshape(convert(x, value), (1,))
    result: Array = scan(convert(x, value), along)
    return result


@remembered
def cumsum(
    a: ArrayLike,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """The sums of the elements up to each one along `axis`, or of the flat array."""
    return running("cumsum", cumulative.cumsum, a, axis, dtype, out)


@remembered
def cumprod(
    a: ArrayLike,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """The products of the elements up to each one along `axis`."""
    return running("cumprod", cumulative.cumprod, a, axis, dtype, out)


def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """`cumsum` as the array API has it: small integers are summed in at least 32 bits.

    0 comes first if `include_initial`.

    Raises:
        ValueError: `x` has no dimension, or several and `axis` is not given.
    """
    return standard("cumulative_sum", cumsum, x, axis, dtype, 0, include_initial)


def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """`cumprod` as the array API has it: small integers get at least 32 bits.

    1 comes first if `include_initial`.

    Raises:
        ValueError: `x` has no dimension, or several and `axis` is not given.
    """
    return standard("cumulative_prod", cumprod, x, axis, dtype, 1, include_initial)


def standard(
    name: str, scan: Any, x: ArrayLike, axis: Any, dtype: Any, start: int, lead: bool
) -> Array:
    given = as_array(name, x)
    if not given.ndim:
        raise ValueError(
            f"The input must be non-scalar to take its {name}: it is {given.aval}"
        )
    if axis is None and given.ndim > 1:
        raise ValueError(f"{name}: {given.aval} has several dimensions; pass axis")
    along = canonical_axis(name, 0 if axis is None else axis, given.ndim)
    chosen = widened(given.dtype, STATE.enable_x64) if dtype is None else dtype
    out: Array = scan(given, along, chosen)
    if not lead:
        return out
    sizes = [1 if i == along else size for i, size in enumerate(out.shape)]
    return concatenate([filled(tuple(sizes), start, out.dtype), out], along)
