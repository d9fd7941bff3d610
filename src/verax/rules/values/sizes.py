"""Floor 1: shapes, dimensions and axes as callers give them, made plain.

One idea: what Python can use as an index is an integer here, and what cannot be one is
an error that names the function and the argument::

    as_sizes("reshape", "new_sizes", [np.int64(2), 3])     # (2, 3)
    as_axis("squeeze", -1, rank=3)                         # 2
"""

import operator
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, Final, SupportsIndex, TypeGuard, cast

from verax.ir.avals import Shape, SymbolicSize, larger_size, smaller_size
from verax.ir.dtypes import DType, numpy_dtype
from verax.ir.meshes import says_nothing
from verax.rules.values.conversions import Convertible, described, integer_of, shown


class ShapeError(TypeError, ValueError):
    """Shapes, or types, that do not go together, or a size that there is not.

    JAX raises one of the bases or the other, one function this and another that.
    """

    __module__ = "verax.errors"


class AxisError(ShapeError, IndexError):
    """A dimension that an array does not have, or that is named twice.

    JAX raises `ValueError`, `TypeError` or `IndexError`, one function this and another
    that; NumPy's class for it is a `ValueError` and an `IndexError`.
    """

    __module__ = "verax.errors"


class InconclusiveDimensionOperation(Exception):
    """A question about symbolic dimensions that has no one answer for all sizes."""

    __module__ = "verax.errors"


def is_index(x: object) -> TypeGuard[SupportsIndex]:
    """Whether `x` stands for one integer; an array of several does not.

    >>> import numpy as np
    >>> is_index(np.int8(3)), is_index(np.array([3]))
    (True, False)
    """
    return hasattr(x, "__index__") and not getattr(x, "shape", ())


def one_or_more(x: Any) -> Shape:
    """The integers of one or of a sequence.

    >>> one_or_more(2), one_or_more([0, 1])
    ((2,), (0, 1))
    """
    return (as_size(x),) if is_index(x) else tuple(map(as_size, x))


def as_size(x: Any) -> int:
    """An integer as an int; a symbolic dimension as it is.

    Raises:
        TypeError: `x` is not an integer.

    >>> import numpy as np
    >>> as_size(np.int8(3))
    3
    """
    return cast(int, x) if isinstance(x, SymbolicSize) else operator.index(x)


def size_as(n: int, dtype: DType) -> object:
    """A size, which may be symbolic, as a scalar of a dtype.

    >>> from verax.ir.dtypes import int32
    >>> size_as(2, int32)
    np.int32(2)
    """
    if isinstance(n, SymbolicSize):
        return n.in_dtype(dtype)
    return numpy_dtype(dtype).type(n)


def surely_less(x: int, y: int) -> bool:
    """Whether `x < y`, for all values of the variables if the sizes are symbolic.

    >>> surely_less(2, 3)
    True
    """
    if isinstance(x, SymbolicSize) or isinstance(y, SymbolicSize):
        try:
            return bool(x < y)
        except InconclusiveDimensionOperation:
            return False
    return x < y


def slice_places(part: slice, size: int) -> tuple[int, int, int]:
    """`part.indices(size)`, for sizes that may be symbolic.

    >>> slice_places(slice(-3, None), 10)
    (7, 10, 1)
    """
    if type(size) is int:
        try:
            return part.indices(size)
        except InconclusiveDimensionOperation:
            pass  # a bound is symbolic
    step = 1 if part.step is None else part.step
    low, high = (0, size) if step > 0 else (-1, size - 1)

    def clamped(bound: int) -> int:
        if bound >= 0:
            return smaller_size(bound, high)
        return larger_size(bound + size, low)

    first, last = (low, high) if step > 0 else (high, low)
    start = first if part.start is None else clamped(part.start)
    return start, last if part.stop is None else clamped(part.stop), step


def slice_count(start: int, stop: int, step: int) -> int:
    """The length of `range(start, stop, step)`, for sizes that may be symbolic.

    >>> slice_count(1, 6, 2)
    3
    """
    if type(start) is type(stop) is type(step) is int:
        return len(range(start, stop, step))
    span, stride = (stop - start, step) if step > 0 else (start - stop, -step)
    return larger_size((span + stride - 1) // stride, 0)


ARE_SHAPES: Final = ("shape", "new_sizes")
SHAPES: Final = ". Shapes must be 1D sequences of concrete values of integer type"


def as_integers(function: str, argument: str, values: object) -> Shape:
    """A tuple of ints from any sequence of integers.

    Raises:
        TypeError: `values` is not a sequence, or holds something else.

    >>> as_integers("rev", "dimensions", [0, True])
    (0, 1)
    """
    if type(values) is tuple:
        for value in values:
            if type(value) is not int:
                break
        else:
            return values
    if not isinstance(values, Iterable) or isinstance(values, str | bytes):
        raise TypeError(
            f"{function}: {argument} must be a sequence of integers, not "
            f"{shown(values)}{SHAPES if argument in ARE_SHAPES else ''}"
        )
    out = []
    for value in values:
        if isinstance(value, Convertible):
            shapes = SHAPES.removeprefix(". ") if argument in ARE_SHAPES else ""
            what = f"{function}: {argument}"
            out.append(integer_of(value, f"{shapes}; {what}" if shapes else what))
            continue
        try:
            out.append(as_size(value))
        except TypeError:
            raise TypeError(
                f"{function}: {argument} must contain integers known while tracing; "
                f"{described(value)} cannot be interpreted as an integer"
                f"{SHAPES if argument in ARE_SHAPES else ''}"
            ) from None
    return tuple(out)


def named_size(value: object, what: str) -> int:
    """`as_size`, whose error about a tracer says `what` asks for its value.

    >>> named_size(3, "a size")
    3
    """
    if isinstance(value, Convertible):
        return integer_of(value, what)
    return as_size(value)


def as_sizes(function: str, argument: str, values: object) -> Shape:
    """A shape from any sequence of integers that are not negative, or from one.

    Raises:
        TypeError: `values` holds something that is not an integer.
        ValueError: a size is negative.

    >>> as_sizes("full", "shape", 3)
    (3,)
    """
    if type(values) is not tuple and is_index(values):
        values = (values,)
    sizes = as_integers(function, argument, values)
    if sizes and any([size < 0 for size in sizes]):
        raise ShapeError(
            f"{function}: {argument} must not contain a negative size: {sizes}"
        )
    return sizes


def as_axis(function: str, axis: object, rank: int) -> int:
    """A dimension of `rank` dimensions, counted from the end where it is negative.

    Raises:
        ValueError: there is no such dimension.

    >>> as_axis("squeeze", -1, 3)
    2
    """
    index = axis
    if type(index) is not int:
        (index,) = as_integers(function, "a dimension", (axis,))
    if not -rank <= index < rank:
        raise AxisError(
            f"{function}: axis {index} is out of bounds for array of dimension {rank}"
        )
    return index + rank if index < 0 else index


def as_axes(function: str, axes: object, rank: int, what: str = "'axis'") -> Shape:
    """Distinct dimensions, in the order given, negative ones from the end.

    The argument is called `what`.

    Raises:
        ValueError: a dimension does not exist, or is named twice.
    """
    given = as_integers(function, "dimensions", axes)
    out = tuple([as_axis(function, i, rank) for i in given])
    if len(set(out)) != len(out):
        raise AxisError(
            f"{function}: repeated axis: dimensions are not unique, duplicate value in "
            f"{what}: {out}"
        )
    return out


# -----------------------------------------------------------------------------
# What goes, what stays and what moves when an operation has axes.
#
# Reductions, scans and sorts name dimensions of one element; these functions
# say where they are in the result, and in a stack of elements::
#
#     without((2, 3, 4), (1,))    # (2, 4)
#     beside((0, 1), 1)           # (0, 2)


def without(shape: Shape, axes: Sequence[int]) -> Shape:
    """The dimensions of `shape` that `axes` leaves.

    >>> without((2, 3, 4), (1,))
    (2, 4)
    """
    return tuple(size for i, size in enumerate(shape) if i not in axes)


def kept(rank: int, axes: Sequence[int]) -> Shape:
    """The places of the dimensions that `axes` leaves.

    >>> kept(3, (1,))
    (0, 2)
    """
    return tuple(i for i in range(rank) if i not in axes)


def beside(axes: Sequence[int], batch_axis: int) -> Shape:
    """`axes` of one element, in an array with a batch dimension at `batch_axis`.

    >>> beside((0, 1), 1)
    (0, 2)
    """
    return tuple(axis + (axis >= batch_axis) for axis in axes)


def unsharded(name: str, out_sharding: object) -> None:
    """Raise if a sharding of the result is requested that says something."""
    if not says_nothing(out_sharding):
        raise ValueError(
            f"{name} does not take out_sharding; use "
            "verax.lax.with_sharding_constraint on its result"
        )


# -----------------------------------------------------------------------------
# Shapes for the calls that tests draw.
#
# Sizes are seldom equal, for else a wrong dimension is not seen, and seldom
# zero, for of nothing little is seen; but either comes up::
#
#     draw_shape(Random(0), 1, 3)     # (2, 4)


SIZES = (1, 2, 3, 4)


def draw_size(random: Random, likely: Sequence[int] = SIZES) -> int:
    """One of the sizes, or now and then zero; zero, if there is none."""
    return 0 if not likely or random.random() < 0.04 else random.choice(likely)


def draw_sizes(random: Random, count: int, likely: Sequence[int] = SIZES) -> list[int]:
    """So many sizes, mostly different ones."""
    if count > len(likely) or random.random() < 0.25:
        return [draw_size(random, likely) for _ in range(count)]
    sizes = random.sample(likely, count)
    if sizes and random.random() < 0.06:
        sizes[random.randrange(count)] = 0
    return sizes


def draw_shape(
    random: Random, least: int, most: int, likely: Sequence[int] = SIZES
) -> Shape:
    """Between `least` and `most` dimensions."""
    return tuple(draw_sizes(random, random.randint(least, most), likely))
