"""Floor 6: the index vectors of gathers and scatters, from the arrays of an index.

One idea: arrays with values are made canonical by NumPy while tracing, and only traced
ones cost equations::

    gather_indices([rows, columns], (4, 5))     # i32[4,5,2]
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from verax.backend.arrays.concrete import ConcreteArray
from verax.ir.avals import Shape
from verax.ir.dtypes import (
    DType,
    int32,
    int64,
    is_unsigned,
    numpy_dtype,
    uint32,
    uint64,
)
from verax.ops.elementwise.arith import add
from verax.ops.elementwise.compare import lt
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.ops.structure.joining import concatenate
from verax.ops.structure.shape import broadcast_in_dim
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.state import STATE

WIDE = frozenset({int32, int64, uint32, uint64})

type Indices = Any


def wrapped(array: Array | np.ndarray, size: int, wrap: bool) -> Indices:
    """An index in at least 32 bits, negative ones counted from the end."""
    dtype = aval_of(array).dtype
    values = known(array)
    if values is not None:
        wide = dtype if dtype in WIDE else int32
        if dtype not in WIDE:  # which may not hold the size
            values = values.astype(np.int32)
        if wrap and values.dtype.kind != "u" and values.size and values.min() < 0:
            values = np.where(values < 0, values + size, values)
        return np.asarray(values, numpy_dtype(wide))
    assert isinstance(array, Array)
    if dtype not in WIDE:
        array = convert(array, int32)
    if not wrap or is_unsigned(dtype):
        return array
    return select(lt(array, 0), add(array, size), array)


def known(array: Array | np.ndarray) -> np.ndarray | None:
    """The values of an index, if they are in NumPy already.

    An index that is committed to a device takes the result there: it stays an array.
    """
    values: object = array
    if isinstance(array, ConcreteArray):
        values = array.host if array.kind is array.aval else None
    if not isinstance(values, np.ndarray):
        return None
    return values if values.dtype.kind in "iu" else values.astype(np.int32)


def common(picks: Sequence[Indices]) -> DType:
    """The dtype in which index vectors hold all of `picks`."""
    dtypes: set[DType] = {pick.dtype for pick in picks}
    if len(dtypes) == 1:
        return dtypes.pop()
    wide = STATE.enable_x64 and bool(dtypes & {int64, uint64, uint32})
    return int64 if wide else int32


def typed(pick: Indices, dtype: DType) -> Indices:
    if isinstance(pick, Array):
        return convert(pick, dtype)
    return np.asarray(pick, numpy_dtype(dtype))


def index_column(pick: Indices, shape: Shape, start: int, rank: int) -> Indices:
    """A column of index vectors of `shape`: `pick` along `rank` dimensions from start.

    `pick` may lack leading ones of them.
    """
    end = start + rank
    dims = tuple(range(end - pick.ndim, end))
    if isinstance(pick, Array):
        return broadcast_in_dim(pick, (*shape, 1), dims)
    sizes = [1] * (len(shape) + 1)
    for place, size in zip(dims, pick.shape, strict=True):
        sizes[place] = size
    return np.broadcast_to(pick.reshape(sizes), (*shape, 1))


def joined(columns: Sequence[Indices]) -> Indices:
    """Columns side by side, by NumPy if all have values."""
    if len(columns) == 1:
        return columns[0]
    if not any(isinstance(column, Array) for column in columns):
        return np.concatenate(columns, axis=-1)
    return concatenate(columns, columns[0].ndim - 1)


def gather_indices(picks: Sequence[Indices], batch: Shape) -> Indices:
    """The index vectors of a gather: elements of the arrays side by side."""
    dtype = common(picks)
    return joined(
        [index_column(typed(pick, dtype), batch, 0, len(batch)) for pick in picks]
    )
