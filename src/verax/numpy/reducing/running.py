"""Floor 6: where the extremes are, and running sums and products.

One idea: along no axis means along the flat array::

    argmax(x), argmin(x, axis=1), cumsum(x, axis=0)
"""

from collections.abc import Callable

from verax.backend.eager.composites import remembered
from verax.ir.dtypes import (
    DTypeLike,
    bool_,
    is_complex,
)
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
from verax.numpy.creation.filling import filled
from verax.numpy.reducing.reductions import widened
from verax.ops.elementwise.bits import bitwise_or
from verax.ops.elementwise.compare import eq, ne
from verax.ops.elementwise.convert import convert
from verax.ops.reductions import cumulative, reduce
from verax.ops.reductions.reduce import (
    reduce_max,
    reduce_min,
)
from verax.ops.structure.joining import concatenate
from verax.ops.structure.shape import reshape
from verax.rules.rows.row import is_split
from verax.rules.values.array import Array
from verax.rules.values.conversions import ShardingTypeError
from verax.rules.values.state import STATE


def flat_or_along(name: str, x: Array, axis: int | None) -> tuple[Array, int]:
    """The array and its axis; without an axis, the flat array.

    Raises:
        ShardingTypeError: explicit axes split an array that is to be flat.
    """
    if axis is None:
        if x.ndim > 1 and is_split([x.aval]):
            raise ShardingTypeError(
                f"{name}: The input should be fully replicated where no axis is given, "
                f"but got {x.aval}; reshard it (verax.sharding.reshard), or name an "
                "axis that is not split"
            )
        return reshape(x, (x.size,)), 0
    return x, canonical_axis(name, axis, x.ndim)


def place_of(
    name: str,
    search: Callable[..., Array],
    a: ArrayLike,
    axis: int | None,
    out: object,
    keepdims: object,
) -> Array:
    """Computes `argmax` and `argmin`, also of what is not NaN.

    Raises:
        ValueError: the dimension is empty or does not exist.
    """
    no_out(name, out)
    given = as_array(name, a)
    x, along = flat_or_along(name, given, axis)
    if not x.shape[along]:
        raise ValueError(
            f"{name}: attempt to get {search.__name__} of an empty sequence: "
            f"{given.aval} has no elements along axis={axis}"
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
    """The places where complex numbers are extreme along `axis`, or NaN."""
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

    Args:
        a: an array or scalar; complex numbers are ordered by their real and then their
            imaginary parts.
        axis: the dimension to work along; None for the flat array.
        out: only None, since arrays are immutable.
        keepdims: whether reduced dimensions stay, with size 1; without an axis, that is
            all of them.

    Returns:
        The indices along `axis`, or in the flat array, in the default integer.

    Raises:
        ValueError: there are no elements, or there is no such axis.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1, 5], [5, 2]])
    >>> int(vnp.argmax(x)), vnp.argmax(x, axis=0).tolist()
    (1, [1, 0])
    >>> int(vnp.argmax(vnp.array([1.0, vnp.nan, 3.0])))
    1
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

    Args:
        a: an array or scalar; complex numbers are ordered by their real and then their
            imaginary parts.
        axis: the dimension to work along; None for the flat array.
        out: only None, since arrays are immutable.
        keepdims: whether reduced dimensions stay, with size 1; without an axis, that is
            all of them.

    Returns:
        The indices along `axis`, or in the flat array, in the default integer.

    Raises:
        ValueError: there are no elements, or there is no such axis.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[4, 1], [1, 2]])
    >>> int(vnp.argmin(x)), vnp.argmin(x, axis=1, keepdims=True).tolist()
    (1, [[1], [0]])
    """
    return place_of("argmin", reduce.argmin, a, axis, out, keepdims)


def running(
    name: str,
    scan: Callable[..., Array],
    a: ArrayLike,
    axis: int | None,
    dtype: DTypeLike | None,
    out: object,
) -> Array:
    """Computes the cumulative functions; booleans count as integers.

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
    """The sums of the elements up to each one along `axis`, or of the flat array.

    Small integers keep their dtype, unlike in NumPy, and may overflow; `cumulative_sum`
    widens them.

    Args:
        a: an array or scalar; a scalar is a vector of one element.
        axis: the dimension to work along; None for the flat array.
        dtype: the dtype of the result; by default that of `a`, and the default integer
            for booleans. With bool the result says whether an element up to there is
            true.
        out: only None, since arrays are immutable.

    Returns:
        The running sums, of the shape of `a`, or a vector if there is no axis.

    Raises:
        ValueError: there is no such axis.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1, 2], [3, 4]])
    >>> vnp.cumsum(x).tolist(), vnp.cumsum(x, axis=0).tolist()
    ([1, 3, 6, 10], [[1, 2], [4, 6]])
    >>> vnp.cumsum(vnp.array([100, 100], dtype=vnp.int8))
    Array([100, -56], dtype=int8)
    """
    return running("cumsum", cumulative.cumsum, a, axis, dtype, out)


@remembered
def cumprod(
    a: ArrayLike,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """The products of the elements up to each one along `axis`, or of the flat array.

    Small integers keep their dtype, unlike in NumPy, and may overflow;
    `cumulative_prod` widens them.

    Args:
        a: an array or scalar; a scalar is a vector of one element.
        axis: the dimension to work along; None for the flat array.
        dtype: the dtype of the result; by default that of `a`, and the default integer
            for booleans. With bool the result says whether all elements up to there are
            true.
        out: only None, since arrays are immutable.

    Returns:
        The running products, of the shape of `a`, or a vector if there is no axis.

    Raises:
        ValueError: there is no such axis.

    >>> import verax.numpy as vnp
    >>> vnp.cumprod(vnp.array([[1, 2], [3, 4]]), axis=1).tolist()
    [[1, 2], [3, 12]]
    """
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

    Args:
        x: an array of one or more dimensions.
        axis: the dimension to work along; it may be left out if there is only one.
        dtype: the dtype of the result; by default that of `x`, but at least the default
            integer for booleans and integers.
        include_initial: whether 0 comes first, so that there is one element more.

    Returns:
        The running sums, of the shape of `x`, with one more along `axis` if
        `include_initial`.

    Raises:
        ValueError: `x` has no dimension, or several and `axis` is not given, or there
            is no such axis.

    >>> import verax.numpy as vnp
    >>> vnp.cumulative_sum(vnp.array([100, 100], dtype=vnp.int8), include_initial=True)
    Array([  0, 100, 200], dtype=int32)
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

    Args:
        x: an array of one or more dimensions.
        axis: the dimension to work along; it may be left out if there is only one.
        dtype: the dtype of the result; by default that of `x`, but at least the default
            integer for booleans and integers.
        include_initial: whether 1 comes first, so that there is one element more.

    Returns:
        The running products, of the shape of `x`, with one more along `axis` if
        `include_initial`.

    Raises:
        ValueError: `x` has no dimension, or several and `axis` is not given, or there
            is no such axis.

    >>> import verax.numpy as vnp
    >>> vnp.cumulative_prod(vnp.array([2, 3, 4]), include_initial=True).tolist()
    [1, 2, 6, 24]
    """
    return standard("cumulative_prod", cumprod, x, axis, dtype, 1, include_initial)


def standard(
    name: str,
    scan: Callable[..., Array],
    x: ArrayLike,
    axis: int | None,
    dtype: object,
    start: int,
    lead: bool,
) -> Array:
    given = as_array(name, x)
    if not given.ndim:
        raise ValueError(
            f"The input must be non-scalar to take its {name}: it is {given.aval}"
        )
    if axis is None and given.ndim > 1:
        raise ValueError(
            f"{name}: The input array has rank {given.ndim}, however axis is not "
            "given: pass the dimension to run along"
        )
    along = canonical_axis(name, 0 if axis is None else axis, given.ndim)
    chosen = widened(given.dtype, STATE.enable_x64) if dtype is None else dtype
    out: Array = scan(given, along, chosen)
    if not lead:
        return out
    sizes = [1 if i == along else size for i, size in enumerate(out.shape)]
    return concatenate([filled(tuple(sizes), start, out.dtype), out], along)
