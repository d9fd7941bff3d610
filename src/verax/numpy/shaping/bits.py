"""Floor 6: the bits of an array read as another dtype, and bits to bytes and back.

One idea: a wider or narrower dtype changes the last dimension, which is split off or
merged before and after one bitcast; a byte is a sum of eight bits times powers of two::

    view(x, "int32"), view(x, "uint8"), packbits(mask), unpackbits(bytes, count=n)
"""

import numpy as np

from verax.backend.eager.composites import remembered
from verax.ir.avals import bit_width
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    bool_,
    is_bool,
    is_complex,
    is_extended,
    is_integer,
    real_dtype,
    uint8,
)
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    canonical_axis,
    chosen_dtype,
    constant_of,
)
from verax.numpy.elementwise.comparison import bitwise_and, not_equal, right_shift
from verax.numpy.shaping.joining import stack
from verax.numpy.shaping.shapes import expand_dims, ravel, reshape
from verax.ops.elementwise.arith import complex as complex_of, imag, mul, real
from verax.ops.elementwise.convert import bitcast_convert_type, convert
from verax.ops.reductions.reduce import reduce_sum
from verax.ops.structure.joining import rev
from verax.ops.structure.shape import broadcast_in_dim
from verax.ops.structure.slicing import pad, slice_in_dim
from verax.rules.values.array import Array


def view(a: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """The bits of `a` as elements of `dtype`; the last dimension grows or shrinks.

    Unlike in NumPy, it does not share memory with `a`. A boolean counts as a byte.

    Args:
        a: an array or scalar of numbers or booleans. If the dtypes have different
            sizes, it has at least one dimension, whose bits make whole elements.
        dtype: the dtype of the result; by default that of `a`.

    Returns:
        An array of that dtype, of the shape of `a` except for its last dimension.

    Raises:
        ValueError: the last dimension does not make whole elements.
        TypeError: one of the two dtypes is that of keys.

    >>> import verax.numpy as vnp
    >>> vnp.view(vnp.array([1.0, -2.0]), "int32")
    Array([ 1065353216, -1073741824], dtype=int32)
    >>> vnp.view(vnp.array([1 + 2j]), "float32")
    Array([1., 2.], dtype=float32)
    """
    x, expected = as_array("view", a), chosen_dtype("view", dtype)
    if expected is None or expected == x.dtype:
        return x
    if is_extended(expected) or is_extended(x.dtype):
        raise TypeError(f"view: {x.dtype.name} cannot be viewed as {expected.name}")
    check_sizes(x, expected)
    if is_bool(x.dtype):
        x = convert(x, uint8)
    elif is_complex(x.dtype):
        x = reshape(stack((real(x), imag(x)), -1), (*x.shape[:-1], -1)) if x.ndim else x
    if is_complex(expected):
        parts = resized(x, real_dtype(expected))
        pairs = reshape(parts, (*parts.shape[:-1], -1, 2))
        return complex_of(pairs[..., 0], pairs[..., 1])
    if expected == bool_:
        return not_equal(resized(x, uint8), 0)
    return resized(x, expected)


@remembered
def byteswap(a: ArrayLike) -> Array:
    """The bytes of each element in the opposite order; of the parts if complex.

    Args:
        a: an array or scalar; booleans and elements of one byte stay as they are.

    Returns:
        An array of the shape and dtype of `a`.

    >>> import verax.numpy as vnp
    >>> vnp.byteswap(vnp.array([1, 256], dtype="int16"))
    Array([256,   1], dtype=int16)
    """
    x = as_array("byteswap", a)
    if is_complex(x.dtype):
        return complex_of(byteswap(real(x)), byteswap(imag(x)))
    if bit_width(x.dtype) <= 8 or is_extended(x.dtype):
        return x
    octets = bitcast_convert_type(x, uint8)
    return bitcast_convert_type(rev(octets, (x.ndim,)), x.dtype)


def check_sizes(x: Array, expected: DType) -> None:
    """Raise ValueError unless the bits of the last dimension make whole elements."""
    own, new = stored_bits(x.dtype), stored_bits(expected)
    if own == new and is_complex(x.dtype) == is_complex(expected):
        return
    if not x.ndim:
        raise ValueError(
            f"view: a scalar of {own} bits cannot be viewed as {expected}, which has "
            f"{new}"
        )
    if x.shape[-1] * own % new:
        raise ValueError(
            f"view: the last dimension of {x.aval} has {x.shape[-1] * own} bits, "
            f"which is not a multiple of the {new} of {expected}"
        )


def stored_bits(dtype: DType) -> int:
    """The bits of an element: a boolean has the 8 of a byte."""
    whole = is_bool(dtype) or is_complex(dtype)
    return 8 * dtype.itemsize if whole else bit_width(dtype)


def resized(x: Array, expected: DType) -> Array:
    """A bitcast of real numbers, the last dimension split or merged."""
    own, new = stored_bits(x.dtype), stored_bits(expected)
    if x.dtype == expected:
        return x
    if own == new:
        return bitcast_convert_type(x, expected)
    if own > new:
        array = bitcast_convert_type(x, expected)
        return reshape(array, (*x.shape[:-1], x.shape[-1] * own // new))
    factor = new // own
    grouped = reshape(x, (*x.shape[:-1], x.shape[-1] // factor, factor))
    return bitcast_convert_type(grouped, expected)


def bit_shifts(name: str, bitorder: str) -> np.ndarray:
    """By how much each bit of a byte is shifted.

    Raises:
        ValueError: the order is neither "big" nor "little".
    """
    if bitorder not in ("big", "little"):
        raise ValueError(
            f"{name}: bitorder must be 'big' or 'little', not {bitorder!r}"
        )
    line = np.arange(8, dtype=np.uint8)
    return line[::-1].copy() if bitorder == "big" else line


def lined_up(name: str, x: Array, axis: int | None) -> tuple[Array, int]:
    """The array and the dimension to work along; the row of all elements for None."""
    if axis is None or not x.ndim:
        return ravel(x), 0
    return x, canonical_axis(name, axis, x.ndim)


def padded_to(x: Array, size: int, axis: int) -> Array:
    """`x` cut off or continued by zeros to `size` along a dimension."""
    own = x.shape[axis]
    if size <= own:
        return x if size == own else slice_in_dim(x, 0, size, axis=axis)
    edges = [(0, size - own if i == axis else 0, 0) for i in range(x.ndim)]
    return pad(x, constant_of(0, x.dtype), edges)


@remembered
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """The bytes whose bits are the elements of `a` that are not 0, along `axis`.

    The last byte is filled up with zeros.

    Args:
        a: an array of integers or booleans.
        axis: the dimension to work along; None for all elements in one row.
        bitorder: "big" by default, where the first of eight elements is the highest
            bit, or "little", where it is the lowest.

    Returns:
        A uint8 array with an eighth of the size along `axis`, rounded up; a vector if
        there is no axis.

    Raises:
        TypeError: `a` holds neither integers nor booleans.
        ValueError: there is no such order or axis.

    >>> import verax.numpy as vnp
    >>> mask = vnp.array([True, False, False, False, False, False, False, True, True])
    >>> vnp.packbits(mask).tolist(), vnp.packbits(mask, bitorder="little").tolist()
    ([129, 128], [129, 1])
    """
    shifts = bit_shifts("packbits", bitorder)
    given = as_array("packbits", a)
    if not (is_bool(given.dtype) or is_integer(given.dtype)):
        raise TypeError(f"packbits takes integers and booleans, not {given.aval}")
    x, place = lined_up("packbits", given, axis)
    bits = convert(x if is_bool(x.dtype) else not_equal(x, 0), uint8)
    count = -(-x.shape[place] // 8)
    bits = padded_to(bits, count * 8, place)
    before, after = x.shape[:place], x.shape[place + 1 :]
    bits = reshape(bits, (*before, count, 8, *after))
    powers = broadcast_in_dim(np.uint8(1) << shifts, bits.shape, (place + 1,))
    return reduce_sum(mul(bits, powers), (place + 1,))


@remembered
def unpackbits(
    a: ArrayLike,
    axis: int | None = None,
    count: int | None = None,
    bitorder: str = "big",
) -> Array:
    """The bits of the bytes of `a`, along `axis`.

    Args:
        a: an array or scalar of dtype uint8.
        axis: the dimension to work along; None for all elements in one row.
        count: how many bits the result has along `axis`, with zeros at the end if that
            is more than there are; a negative count says how many are left off at the
            end. None for all of them.
        bitorder: "big" by default, where the highest bit of a byte comes first, or
            "little", where the lowest does.

    Returns:
        A uint8 array of 0 and 1, eight times as long along `axis` unless `count` is
        given; a vector if there is no axis.

    Raises:
        TypeError: `a` does not hold uint8.
        ValueError: there is no such order or axis.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([5], dtype="uint8")
    >>> vnp.unpackbits(x)
    Array([0, 0, 0, 0, 0, 1, 0, 1], dtype=uint8)
    >>> vnp.unpackbits(x, count=4, bitorder="little")
    Array([1, 0, 1, 0], dtype=uint8)
    """
    shifts = bit_shifts("unpackbits", bitorder)
    given = as_array("unpackbits", a)
    if given.dtype != uint8:
        raise TypeError(f"unpackbits takes bytes (uint8), not {given.aval}")
    x, place = lined_up("unpackbits", given, axis)
    wide = expand_dims(x, place + 1)
    line = reshape(
        as_array("unpackbits", shifts),
        [8 if i == place + 1 else 1 for i in range(wide.ndim)],
    )
    bits = bitwise_and(right_shift(wide, line), np.uint8(1))
    total = x.shape[place] * 8
    bits = reshape(bits, (*x.shape[:place], total, *x.shape[place + 1 :]))
    if count is None:
        return bits
    return padded_to(bits, count if count >= 0 else max(total + count, 0), place)
