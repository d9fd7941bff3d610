"""Floor 6: joining, splitting and repeating, with the strict operands of verax.lax.

Each is one or two equations of the basic operations::

    stack((x, y)), split(x, (2, 3)), tile(x, (1, 4)), broadcast_like(x, y)
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from verax.api.tracing.structs import struct_aval
from verax.ir.avals import Shape
from verax.ir.dtypes import DType, DTypeLike, int32
from verax.ops.elementwise.arith import add, mul
from verax.ops.elementwise.convert import convert
from verax.ops.indexing.gather import gather
from verax.ops.indexing.geometry import GatherDimensionNumbers, GatherScatterMode
from verax.ops.structure.create import full_like
from verax.ops.structure.joining import concatenate
from verax.ops.structure.reshard import retyped
from verax.ops.structure.shape import (
    broadcast_in_dim,
    broadcast_to_rank,
    expand_dims,
    reshape,
)
from verax.ops.structure.slicing import index_in_dim, slice_in_dim
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.sizes import as_axis, as_sizes
from verax.rules.values.state import asked_dtype


def broadcast_shapes(*shapes: Sequence[int]) -> Shape:
    """The shape to which all of them broadcast, by NumPy's rules.

    Raises:
        ValueError: there is none.

    >>> broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    found = [tuple(shape) for shape in shapes]
    try:
        return tuple(np.broadcast_shapes(*found))
    except ValueError as error:
        if "mismatch" not in str(error):
            raise
        raise ValueError(
            f"Incompatible shapes for broadcasting: {', '.join(map(str, found))}; "
            "sizes that meet must be equal or 1"
        ) from None


def dtype(x: object) -> DType:
    """The dtype of an operand, or the one that a scalar type stands for.

    >>> print(dtype(1.0))
    float32
    """
    if isinstance(x, type | np.dtype | str):
        named: DTypeLike = x
        return asked_dtype(named)
    return aval_of(x).dtype


def broadcast_like(arr: object, like_arr: object) -> Array:
    """`arr` in the shape of `like_arr`, to whose last dimensions its own correspond.

    What has a shape and a dtype, such as a `ShapeDtypeStruct`, will do as `like_arr`.
    Explicit mesh axes that split it split the result, unless they split `arr`.

    Raises:
        ValueError: it does not broadcast to that shape.
    """
    own, like = aval_of(arr).shape, struct_aval(like_arr)
    first = len(like.shape) - len(own)
    found = broadcast_in_dim(arr, like.shape, tuple(range(first, len(like.shape))))
    if like.explicit is None or found.aval.explicit is not None:
        return found
    return retyped(found, like.explicit)


def stack(operands: Sequence[Any], axis: int = 0) -> Array:
    """Arrays of the same shape side by side, along a new dimension.

    Raises:
        ValueError: there are none, or shapes differ.
    """
    shapes = [aval_of(x).shape for x in operands]
    if not shapes or any(shape != shapes[0] for shape in shapes):
        raise ValueError(
            f"stack takes arrays of the same shape, not of shapes {shapes}"
        )
    place = as_axis("stack", axis, len(shapes[0]) + 1)
    return concatenate([expand_dims(x, (place,)) for x in operands], place)


def unstack(x: object, axis: int = 0) -> tuple[Array, ...]:
    """The parts of an array along a dimension, without it.

    Raises:
        ValueError: there is no such dimension.
    """
    shape = aval_of(x).shape
    place = as_axis("unstack", axis, len(shape))
    return tuple(
        [index_in_dim(x, i, place, keepdims=False) for i in range(shape[place])]
    )


def split(operand: object, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """The parts of the given sizes along a dimension.

    Raises:
        ValueError: the sizes do not add up to that of the dimension.
    """
    shape = aval_of(operand).shape
    place = as_axis("split", axis, len(shape))
    parts = as_sizes("split", "sizes", sizes)
    if sum(parts) != shape[place]:
        raise ValueError(
            f"split: the sizes {parts} add up to {sum(parts)}, but dimension {place} "
            f"has size {shape[place]}"
        )
    found, start = [], 0
    for size in parts:
        found.append(slice_in_dim(operand, start, start + size, axis=place))
        start += size
    return found


def tile(operand: object, reps: Sequence[int]) -> Array:
    """The array repeated as a whole, `reps` times along each dimension.

    Raises:
        ValueError: there is not one number per dimension.
    """
    shape = aval_of(operand).shape
    times = as_sizes("tile", "reps", reps)
    if len(times) != len(shape):
        raise ValueError(
            f"tile: got {len(times)} repetitions for {len(shape)} dimensions"
        )
    grown = [n for pair in zip(times, shape, strict=True) for n in pair]
    wide = broadcast_in_dim(operand, grown, tuple(range(1, 2 * len(shape), 2)))
    return reshape(wide, [n * m for n, m in zip(times, shape, strict=True)])


def index_take(src: object, idxs: Sequence[Any], axes: Sequence[int]) -> Array:
    """The slices of `src` at each of the indices, which are one vector per axis.

    They lie along a new first dimension; indices wrap around.

    Raises:
        ValueError: there is not one vector per axis, all of the same size.
    """
    shape = aval_of(src).shape
    places = [as_axis("index_take", axis, len(shape)) for axis in axes]
    sizes = {aval_of(x).shape for x in idxs}
    if len(idxs) != len(places) or len(sizes) != 1:
        raise ValueError(
            "index_take takes one vector of indices, all of the same size, for each "
            f"of the axes {axes}"
        )
    columns = [
        expand_dims(wrapped(convert(x, int32), shape[place]), (1,))
        for x, place in zip(idxs, places, strict=True)
    ]
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(range(1, len(shape) - len(places) + 1)),
        collapsed_slice_dims=tuple(sorted(places)),
        start_index_map=tuple(places),
    )
    window = [1 if i in places else n for i, n in enumerate(shape)]
    index = concatenate(columns, 1)
    mode = GatherScatterMode.PROMISE_IN_BOUNDS
    return gather(src, index, numbers, window, mode=mode)


def wrapped(places: Array, size: int) -> Array:
    """Indices modulo a size, none of them negative."""
    found: Array = places % size
    return found


def polynomial(x: object, coeffs: Sequence[Any], *, unroll: int | None = None) -> Any:
    """The polynomial with these coefficients, the constant first, by Horner's rule.

    It is unrolled whatever `unroll` says.

    >>> from verax import lax
    >>> float(lax.polynomial(3.0, [1.0, 5.0, 2.0]))
    34.0
    """
    if not coeffs:
        return full_like(x, 0)
    rank = max(len(aval_of(part).shape) for part in (x, *coeffs))
    place, *line = [leveled(part, rank) for part in (x, *coeffs)]
    *lower, highest = line
    if not lower:
        shape = broadcast_shapes(aval_of(x).shape, aval_of(highest).shape)
        return add(mul(place, 0), highest) if shape else highest
    return functools.reduce(
        lambda found, part: add(mul(found, place), part), lower[::-1], highest
    )


def leveled(x: object, rank: int) -> Any:
    """An operand with as many dimensions as the others; scalars stay."""
    own = len(aval_of(x).shape)
    return x if own in (0, rank) else broadcast_to_rank(x, rank)
