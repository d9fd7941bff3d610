"""Floor 2: arrays out of nothing: constants of a shape, and counting.

A full array is a broadcast scalar, so the only row here is the one that counts along a
dimension::

    iota(np.int32, 3)              # [0 1 2]
    full((2, 2), 1.5)              # broadcast_in_dim of a literal
"""

from collections.abc import Sequence
from random import Random

import numpy as np
from attrs import frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    KeyDType,
    float0,
    is_complex,
    is_extended,
    numpy_dtype,
)
from verax.ir.jaxpr import Params, scalar_literal
from verax.ir.memos import memoised
from verax.ops.elementwise.convert import convert
from verax.ops.structure.shape import broadcast
from verax.rules.rows.emitter import i64
from verax.rules.rows.row import Row, Rows, Sample, Traits, Work, no_flops
from verax.rules.values.array import Array
from verax.rules.values.constants import NUMBER, aval_of, typed_scalar
from verax.rules.values.sizes import as_axis, as_integers, as_sizes
from verax.rules.values.state import asked_dtype


@frozen(eq=False, repr=False)
class IotaParams(Params):
    """The type of the result, and the dimension along which it counts."""

    dtype: DType
    shape: Shape
    dimension: int


iota_params = memoised(IotaParams)


def iota_typing(p: IotaParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    if not NUMBER.holds(p.dtype):
        raise TypeError(f"iota: dtype must be numeric, not {p.dtype}")
    if not 0 <= p.dimension < len(p.shape):
        raise ValueError(f"iota: shape {p.shape} has no dimension {p.dimension}")
    return (ShapedArray(p.shape, p.dtype),)


def evaluate_iota(p: IotaParams) -> np.ndarray:
    """Counted in integers: small floats round once, small integers wrap."""
    size = p.shape[p.dimension]
    counted = np.arange(size).astype(numpy_dtype(p.dtype), copy=False)
    if len(p.shape) == 1:
        return counted
    column = [1] * len(p.shape)
    column[p.dimension] = size
    return np.broadcast_to(counted.reshape(column), p.shape)


def draw_iota(random: Random) -> Sample[IotaParams]:
    shape = tuple(random.choice((0, 1, 2, 5)) for _ in range(random.randint(1, 3)))
    dtype = random.choice(NUMBER.samples())
    return Sample(IotaParams(dtype, shape, random.randrange(len(shape))), ())


iota_p: Row[IotaParams] = Row(
    "iota",
    IotaParams,
    typing=iota_typing,
    evaluate=lambda engine, p, xs: (evaluate_iota(p),),
    lower=lambda e, p, xs, outs: e.op(
        "stablehlo.iota", xs, outs, iota_dimension=i64(p.dimension)
    ),
    draw=draw_iota,
    domains=(),
    traits=Traits(Work.CHEAP, no_flops, makes_nans=False),
)


def iota(dtype: DTypeLike, size: int) -> Array:
    """The numbers 0, 1, ..., `size` - 1.

    Raises:
        TypeError: `dtype` holds no numbers.
    """
    out = asked_dtype(dtype)
    return iota_p.call(iota_params(out, as_sizes("iota", "size", (size,)), 0))


def broadcasted_iota(
    dtype: DTypeLike, shape: int | Sequence[int], dimension: int
) -> Array:
    """An array of `shape` whose elements are their index along `dimension`.

    Raises:
        TypeError: `dtype` holds no numbers.
        ValueError: there is no such dimension.
    """
    sizes = as_sizes("iota", "shape", shape)
    (place,) = as_integers("iota", "dimension", (dimension,))
    out = asked_dtype(dtype)
    return iota_p.call(IotaParams(out, sizes, as_axis("iota", place, len(sizes))))


def filling(fill_value: object, dtype: DType, weak_type: bool) -> object:
    """A scalar operand of the given type from a Python scalar, array or tracer."""
    aval = aval_of(fill_value)
    if aval.dtype == dtype and aval.weak_type == weak_type:
        return fill_value
    if isinstance(dtype, KeyDType) and isinstance(fill_value, int | float):
        # There is no way to a key from a number, but its words can all be one.
        return scalar_literal(dtype.element(int(fill_value)), ShapedArray((), dtype))
    if isinstance(fill_value, Array) or aval.shape or is_extended(dtype):
        return convert(fill_value, dtype, weak_type)
    if is_complex(aval.dtype) and not is_complex(dtype):
        raise TypeError(f"full: the complex value {fill_value!r} does not fit {dtype}")
    if dtype == float0:
        return np.zeros((), float0)
    return typed_scalar(fill_value, ShapedArray((), dtype, weak_type))


def check_scalar(name: str, aval: ShapedArray) -> None:
    """Raise TypeError unless a fill value has no dimensions."""
    if aval.shape:
        raise TypeError(
            f"{name}: the fill value must be a scalar, not {aval}; use "
            f"verax.numpy.{name}, which broadcasts"
        )


def full(
    shape: int | Sequence[int], fill_value: object, dtype: DTypeLike | None = None
) -> Array:
    """An array of `shape` that holds `fill_value` everywhere.

    Without `dtype` it has the dtype of the value, weak if the value is.

    Raises:
        TypeError: the value has dimensions, or does not fit the dtype.
    """
    aval = aval_of(fill_value)
    check_scalar("full", aval)
    value = fill_value
    if dtype is not None:
        value = filling(fill_value, asked_dtype(dtype), False)
    return broadcast(value, as_sizes("full", "shape", shape))


def full_like(
    x: object,
    fill_value: object,
    dtype: DTypeLike | None = None,
    shape: int | Sequence[int] | None = None,
) -> Array:
    """`full` in the shape and dtype of `x`, or of a type, unless they are given.

    Raises:
        TypeError: the value has dimensions, or does not fit the dtype.
    """
    aval = x if isinstance(x, ShapedArray) else aval_of(x)
    sizes = aval.shape if shape is None else as_sizes("full_like", "shape", shape)
    if dtype is not None:
        return full(sizes, fill_value, dtype)
    check_scalar("full_like", aval_of(fill_value))
    return broadcast(filling(fill_value, aval.dtype, aval.weak_type), sizes)


def empty(shape: int | Sequence[int], dtype: DTypeLike) -> Array:
    """An array of `shape` with arbitrary elements; zeros, in fact."""
    return full(shape, 0, dtype)


def zeros(aval: ShapedArray) -> Array:
    """The zeros of a type, weak if it is."""
    return filled(0, aval)


def ones(aval: ShapedArray) -> Array:
    """The ones of a type, weak if it is."""
    return filled(1, aval)


def filled(value: int, aval: ShapedArray) -> Array:
    """An array of a type that holds `value` everywhere."""
    out = broadcast(filling(value, aval.dtype, aval.weak_type), aval.shape)
    if aval.explicit is None:
        return out
    from verax.ops.structure.reshard import retyped

    return retyped(out, aval.explicit)


ROWS: Rows = (iota_p,)
