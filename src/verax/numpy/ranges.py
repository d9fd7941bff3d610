"""Floor 6: evenly spaced numbers.

One idea: count with `iota`, scale and shift; how many there are is worked out in
Python, so that shapes never depend on values that are traced::

    arange(5)                      # [0 1 2 3 4]
    linspace(0, 1, 5)              # [0. 0.25 0.5 0.75 1.]
"""

import math
from typing import Any

import numpy as np

from verax.backend.placed import fresh
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import (
    DTypeLike,
    bool_,
    canonical,
    default_dtype,
    inexact_dtype,
    is_integer,
)
from verax.numpy.arguments import (
    ArrayLike,
    as_type,
    avals_of,
    broadcast_shapes_of,
    canonical_axis,
    chosen_dtype,
    common_type,
    constant_of,
    stretched,
)
from verax.numpy.arithmetic import power
from verax.numpy.creation import Placement, placed
from verax.numpy.filling import filled
from verax.numpy.transcendental import log10
from verax.ops.arith import add, div, mul, sign, sub
from verax.ops.choose import select
from verax.ops.compare import eq
from verax.ops.convert import convert
from verax.ops.create import iota
from verax.ops.joining import concatenate
from verax.ops.rounding import floor
from verax.ops.shape import broadcast_in_dim, move_axis, reshape
from verax.rules.array import Array
from verax.rules.axes import unsharded
from verax.rules.builder import Tracer
from verax.rules.state import STATE


def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: object = None,
) -> Array:
    """The numbers start, start + step, ... up to but without `stop`.

    With one argument it is `stop`, and `start` is 0.

    Raises:
        TypeError: an argument is traced, since the shape depends on it.
        ValueError: `step` is 0.

    >>> import verax.numpy as jnp
    >>> jnp.arange(1, 7, 2).tolist()
    [1, 3, 5]
    """
    if out_sharding is not None:
        unsharded("arange", out_sharding)
    if type(start) is int and stop is None and step is None and dtype is None:
        # What loops ask for; the dtype is that of Python's integers.
        size = max(0, start)
        if size < MANY and STATE.interpreter.immediate:
            dtype = default_dtype("integer", STATE.enable_x64)
            values = np.arange(size, dtype=dtype)
            return placed("arange", fresh(values, ShapedArray((size,), dtype)), device)
        return placed("arange", ramp(0, 1, size, int), device)
    given = [x for x in (start, stop, step) if x is not None]
    avals = avals_of("arange", given)
    found = chosen_dtype("arange", dtype) or common_type(avals)[0]
    first = known("arange", "start", 0 if stop is None else start)
    last = known("arange", "stop", start if stop is None else stop)
    stride = known("arange", "step", 1 if step is None else step)
    if stride == 0:
        raise ValueError("arange: step is 0")
    size = max(0, math.ceil((last - first) / stride))
    if found == bool_:
        return placed("arange", convert(ramp(first, stride, size, INTS), bool_), device)
    return placed("arange", ramp(first, stride, size, found), device)


INTS = np.dtype(np.int32)
# Numbers that 32 bits do not count.
MANY = 1 << 31


def ramp(first: Any, stride: Any, size: int, dtype: Any) -> Array:
    """first + stride i for i from 0 to size - 1."""
    counted = iota(dtype, size)
    if stride != 1:
        counted = mul(counted, constant_of(stride, dtype))
    return add(counted, constant_of(first, dtype)) if first != 0 else counted


def known(name: str, argument: str, x: Any) -> Any:
    """A Python scalar from an argument on which a shape depends.

    Raises:
        TypeError: it is traced, or has dimensions.
    """
    if isinstance(x, Tracer):
        x.concrete(f"{name}: the shape of the result, which depends on {argument},")
    value = np.asarray(x)
    if value.ndim:
        raise TypeError(
            f"{name}: {argument} is a scalar, not an array of {value.shape}"
        )
    return value.item()


def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Placement = None,
) -> Array | tuple[Array, Array]:
    """`num` numbers from `start` to `stop`, along a new dimension `axis`.

    Returns the step too if `retstep`. Without `endpoint`, `stop` itself is left out.

    Raises:
        ValueError: `num` is negative.
    """
    points = spaced("linspace", start, stop, num, endpoint, dtype, axis)
    line = placed("linspace", points, device)
    if not retstep:
        return line
    x, y = ends("linspace", start, stop)
    parts = num - 1 if endpoint else num
    step = div(sub(y, x), parts) if parts > 0 else filled((), np.nan, line.dtype)
    return line, step


def ends(name: str, start: ArrayLike, stop: ArrayLike) -> list[Any]:
    """Both ends as floats or complex numbers, in one shape."""
    avals = avals_of(name, (start, stop))
    dtype = canonical(inexact_dtype(common_type(avals)[0]), STATE.enable_x64)
    shape = broadcast_shapes_of(name, [aval.shape for aval in avals])
    pair = zip((start, stop), avals, strict=True)
    return [stretched(as_type(x, aval, dtype, False), shape) for x, aval in pair]


def spaced(
    name: str,
    start: ArrayLike,
    stop: ArrayLike,
    num: int,
    endpoint: bool,
    dtype: DTypeLike | None,
    axis: int,
) -> Array:
    """start (1 - t) + stop t for evenly spaced t; the last one is `stop` exactly."""
    num = int(known(name, "num", num))
    if num < 0:
        raise ValueError(f"{name}: num is not negative, but it is {num}")
    found = chosen_dtype(name, dtype)
    x, y = ends(name, start, stop)
    shape, kind = x.shape, x.dtype
    target = kind if found is None else found
    parts = num - 1 if endpoint else num
    if num == 0:
        line = filled((0, *shape), 0, kind)
    elif parts == 0:
        line = broadcast_in_dim(x, (1, *shape), tuple(range(1, len(shape) + 1)))
    else:
        line = between(x, y, parts, endpoint)
    if is_integer(target):
        line = floor(line)
    place = canonical_axis(name, axis, len(shape) + 1)
    return convert(move_axis(line, 0, place) if place else line, target)


def between(x: Any, y: Any, parts: int, endpoint: bool) -> Array:
    """The points that divide the way from x to y into `parts`; x first."""
    shape = (parts, *x.shape)
    kind = np.dtype(x.dtype)
    t = div(iota(kind, parts), constant_of(parts, kind))
    opposite = sub(constant_of(1, kind), t)
    if x.shape:
        t, opposite = (broadcast_in_dim(w, shape, (0,)) for w in (t, opposite))
        inner = tuple(range(1, len(shape)))
        line = add(
            mul(broadcast_in_dim(x, shape, inner), opposite),
            mul(broadcast_in_dim(y, shape, inner), t),
        )
    else:
        line = add(mul(x, opposite), mul(y, t))
    if not endpoint:
        return line
    return concatenate([line, reshape(y, (1, *x.shape))], 0)


def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """`base` to the powers of `linspace`."""
    found = chosen_dtype("logspace", dtype)
    line = power(base, spaced("logspace", start, stop, num, endpoint, None, axis))
    return line if found is None else convert(line, found)


def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """`num` numbers from `start` to `stop` with a constant ratio; signs are equal.

    The ends are exact.
    """
    found = chosen_dtype("geomspace", dtype)
    x, y = ends("geomspace", start, stop)
    factor = sign(x)
    low, high = log10(div(x, factor)), log10(div(y, factor))
    line = logspace(low, high, num, endpoint, axis=0)
    line = mul(line, broadcast_in_dim(factor, line.shape, tuple(range(1, line.ndim))))
    first = eq(iota(INTS, num), 0)
    line = replaced(line, x, first) if num else line
    if endpoint and num > 1:
        line = replaced(line, y, eq(iota(INTS, num), num - 1))
    place = canonical_axis("geomspace", axis, line.ndim)
    line = move_axis(line, 0, place) if place else line
    return line if found is None else convert(line, found)


def replaced(line: Array, value: Any, where: Array) -> Array:
    """`line` with `value` where the mask of its first dimension says so."""
    mask = broadcast_in_dim(where, line.shape, (0,))
    inner = tuple(range(1, line.ndim))
    return select(mask, broadcast_in_dim(value, line.shape, inner), line)
