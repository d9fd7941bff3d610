"""Floor 6: the bits of an array read as another dtype.

One idea: a wider or narrower dtype changes the last dimension, which is split off or
merged before and after one bitcast; complex numbers are pairs of floats::

    view(x, "int32"), view(x, "uint8")
"""

from verax.ir.dtypes import (
    DType,
    DTypeLike,
    bool_,
    is_bool,
    is_complex,
    is_extended,
    real_dtype,
    uint8,
)
from verax.numpy.arguments.arguments import ArrayLike, as_array, chosen_dtype
from verax.numpy.elementwise.comparison import not_equal
from verax.numpy.shaping.joining import stack
from verax.numpy.shaping.shapes import reshape
from verax.ops.elementwise.complex import complex as complex_of, imag, real
from verax.ops.elementwise.convert import bitcast_convert_type, convert
from verax.rules.values.array import Array


def view(a: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """The bits of `a` as elements of `dtype`; the last dimension grows or shrinks.

    Raises:
        ValueError: the last dimension does not make whole elements.
    """
    x, wanted = as_array("view", a), chosen_dtype("view", dtype)
    if wanted is None or wanted == x.dtype:
        return x
    if is_extended(wanted) or is_extended(x.dtype):
        raise TypeError(f"view: {x.dtype.name} and {wanted.name} have no common bits")
    check_sizes(x, wanted)
    if is_bool(x.dtype):
        x = convert(x, uint8)
    elif is_complex(x.dtype):
        x = reshape(stack((real(x), imag(x)), -1), (*x.shape[:-1], -1)) if x.ndim else x
    if is_complex(wanted):
        parts = resized(x, real_dtype(wanted))
        pairs = reshape(parts, (*parts.shape[:-1], -1, 2))
        return complex_of(pairs[..., 0], pairs[..., 1])
    if wanted == bool_:
        return not_equal(resized(x, uint8), 0)
    return resized(x, wanted)


def check_sizes(x: Array, wanted: DType) -> None:
    """Raise ValueError unless the bits of the last dimension make whole elements."""
    own, new = x.dtype.itemsize, wanted.itemsize
    if own == new and is_complex(x.dtype) == is_complex(wanted):
        return
    if not x.ndim:
        raise ValueError(
            f"view: an array without dimensions keeps its size of {own} bytes, but "
            f"{wanted} has {new}"
        )
    if x.shape[-1] * own % new:
        raise ValueError(
            f"view: the last dimension of {x.aval} has {x.shape[-1] * own} bytes, "
            f"which is no multiple of the {new} of {wanted}"
        )


def resized(x: Array, wanted: DType) -> Array:
    """A bitcast of real numbers, the last dimension split or merged."""
    own, new = x.dtype.itemsize, wanted.itemsize
    if x.dtype == wanted:
        return x
    if own == new:
        return bitcast_convert_type(x, wanted)
    if own > new:
        found = bitcast_convert_type(x, wanted)
        return reshape(found, (*x.shape[:-1], x.shape[-1] * own // new))
    factor = new // own
    grouped = reshape(x, (*x.shape[:-1], x.shape[-1] // factor, factor))
    return bitcast_convert_type(grouped, wanted)
