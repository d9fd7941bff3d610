"""Floor 6: what methods of ufuncs do where the library has no function of its own.

One idea: any function of two elements goes over rows, one after another, by a scan::

    folded_rows(function, rows[0], rows[1:], None)      # function.reduce
    accumulated_rows(function, rows)                    # function.accumulate

A result has the dtype of the rows, as in NumPy, whatever the function returns.
"""

from collections.abc import Callable

import numpy as np

from verax.api.inspect.make_jaxpr import eval_shape
from verax.ir.dtypes import DType
from verax.lax.looping import fori_loop
from verax.lax.scanning import scan
from verax.numpy.arguments.arguments import ArrayLike, as_array, stretched
from verax.numpy.indexing.take import take
from verax.numpy.searching.where_nonzero import where
from verax.numpy.shaping.joining import concatenate
from verax.numpy.shaping.shapes import expand_dims, ravel, reshape
from verax.ops.elementwise.convert import convert
from verax.ops.structure.create import full
from verax.rules.values.array import Array

type Function = Callable[..., Array]


def dtype_of_two(function: Function, dtype: DType) -> DType:
    """The dtype of the function of two elements of a dtype."""
    one = full((), 1, dtype)
    out: DType = eval_shape(function, one, one).dtype
    return out


def folded_rows(
    function: Function, start: Array, rows: Array, flags: Array | None
) -> Array:
    """`start` combined with one row after another, with those elements flagged."""

    def step(carry: Array, row: tuple[Array, Array | None]) -> tuple[Array, None]:
        value, flag = row
        after = convert(function(carry, value), carry.dtype)
        if flag is None:
            return after, None
        return where(flag, after, carry), None

    result: Array = scan(step, start, (rows, flags))[0]
    return result


def accumulated_rows(function: Function, rows: Array) -> Array:
    """Each row combined with all before it; there is a first one."""

    def step(carry: Array, row: Array) -> tuple[Array, Array]:
        after = convert(function(carry, row), carry.dtype)
        return after, after

    _, rest = scan(step, rows[0], rows[1:])
    return concatenate([rows[:1], rest])


def updated_one_by_one(
    function: Function, x: Array, indices: object, b: ArrayLike | None
) -> Array:
    """`x`, with the function of its elements at `indices`, and of `b`, there."""
    whole = np.arange(x.size, dtype=np.int32).reshape(x.shape)
    places = as_array("at", whole)[indices]
    values = () if b is None else (stretched(as_array("at", b), places.shape),)

    def step(flat: Array, one: tuple[Array, ...]) -> tuple[Array, None]:
        place, *own = one
        value = convert(function(flat[place], *own), flat.dtype)
        return flat.at[place].set(value), None

    lines = tuple(ravel(part) for part in (places, *values))
    return reshape(scan(step, ravel(x), lines)[0], x.shape)


def folded_slices(function: Function, rows: Array, first: Array) -> Array:
    """The rows from each index up to the next one, combined; see `reduceat`."""
    ends = concatenate([first[1:], full((1,), rows.shape[0], first.dtype)])
    shape = (-1, *(1,) * (rows.ndim - 1))

    def step(i: Array, total: Array) -> Array:
        inside = reshape((i > first) & (i < ends), shape)
        after = convert(function(total, expand_dims(rows[i], 0)), rows.dtype)
        return where(inside, after, total)

    result: Array = fori_loop(0, rows.shape[0], step, take(rows, first, 0))
    return result
