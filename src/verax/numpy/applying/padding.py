"""Floor 6: arrays made larger at their edges.

One idea: padding with the array's own elements is a list of places, which falls into
runs of neighbours; each run is a slice, perhaps reversed, and all are joined::

    pad(x, 1), pad(x, ((2, 0), (0, 2)), mode="reflect"), pad(x, 3, mode="wrap")
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from verax.ir.avals import SymbolicSize, larger_size, smaller_size
from verax.ir.dtypes import int32, is_integer, numpy_dtype
from verax.numpy.applying.vectorize_apply import apply_along_axis
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    canonical_axis,
    is_single,
)
from verax.numpy.elementwise.division import remainder
from verax.numpy.elementwise.rounding import round
from verax.numpy.ranges import linspace
from verax.numpy.reducing.quantiles import median
from verax.numpy.reducing.reductions import max, min
from verax.numpy.reducing.statistics import mean
from verax.numpy.shaping.joining import concatenate
from verax.numpy.shaping.shapes import broadcast_to, moveaxis, squeeze
from verax.ops.elementwise.arith import max as larger, min as lesser, sub
from verax.ops.elementwise.convert import convert
from verax.ops.structure import slicing
from verax.ops.structure.create import iota
from verax.ops.structure.joining import rev
from verax.ops.structure.slicing import slice_in_dim
from verax.rules.values.array import Array
from verax.rules.values.conversions import (
    AbstractValueError,
    ConcretizationTypeError,
    shown,
)
from verax.rules.values.sizes import as_size, surely_less

type Pairs = tuple[tuple[Any, Any], ...]

STATISTICS: Final[Mapping[str, Callable[..., Array]]] = MappingProxyType(
    {"maximum": max, "minimum": min, "mean": mean, "median": median}
)
OPTIONS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "constant": ("constant_values",),
        "empty": (),
        "edge": (),
        "wrap": (),
        "linear_ramp": ("end_values",),
        "maximum": ("stat_length",),
        "minimum": ("stat_length",),
        "mean": ("stat_length",),
        "median": ("stat_length",),
        "reflect": ("reflect_type",),
        "symmetric": ("reflect_type",),
    }
)
MOST_RUNS = 8


def pad(
    array: ArrayLike,
    pad_width: object,
    mode: str | Callable[..., object] = "constant",
    **kwargs: object,
) -> Array:
    """`array` with `pad_width` more elements before and after each dimension.

    The widths must be known while tracing, since the shape of the result depends on
    them.

    Args:
        array: an array or scalar; it may have no elements in a padded dimension only if
            `mode` is "constant" or "empty".
        pad_width: how many elements to add: a number for every side, a pair (before,
            after) for every dimension, a pair per dimension, or a dict of numbers or
            pairs by dimension, in which missing dimensions are not padded.
        mode: what the new elements are. "constant" (the default): `constant_values`;
            "edge": the element at the edge; "wrap": those from the other end; "reflect"
            and "symmetric": the mirror image without and with the edge; "linear_ramp":
            from the edge evenly to `end_values`; "maximum", "minimum", "mean" and
            "median": of the elements at the edge, rounded for integers; "empty": zeros.
            Or a function f(line, widths, axis, options), with the pair of widths and a
            dict of options, that returns each line, padded with zeros, anew.
        **kwargs: the options of the mode, and for functions any: `constant_values` and
            `end_values`, 0 by default, and `stat_length`, how many elements count, by
            default all, are one value, a pair or a pair per dimension; `reflect_type`
            of "reflect" and "symmetric" is "even", the default, or "odd", which
            subtracts the mirror image from twice the edge.

    Returns:
        An array of the dtype of `array`, into which values are converted; each size
        grows by its two widths.

    Raises:
        ValueError: an option does not exist or does not fit, a width is negative, or a
            dimension has no elements to pad with.
        TypeError: a width is not an integer.
        NotImplementedError: there is no such mode.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([1, 2, 3])
    >>> vnp.pad(x, (2, 1), constant_values=9)
    Array([9, 9, 1, 2, 3, 9], dtype=int32)
    >>> vnp.pad(x, 2, mode="reflect").tolist(), vnp.pad(x, 2, mode="symmetric").tolist()
    ([3, 2, 1, 2, 3, 2, 1], [2, 1, 1, 2, 3, 3, 2])
    >>> vnp.pad(vnp.ones((2, 2), int), {1: (0, 1)})
    Array([[1, 1, 0],
           [1, 1, 0]], dtype=int32)
    """
    x = as_array("pad", array)
    widths = pad_widths(pad_width, x.ndim)
    if callable(mode):
        return pad_by_function(x, widths, mode, kwargs)
    check_options(mode, kwargs)
    if mode in ("constant", "empty"):
        values = kwargs.get("constant_values", 0)
        return pad_constant(x, widths, values)
    if mode == "linear_ramp":
        ends = pairs("end_values", kwargs.get("end_values", 0), x.ndim)
        return each_axis(x, widths, lambda y, i: ramped(y, i, widths[i], ends[i]))
    if mode in STATISTICS:
        lengths = pairs("stat_length", kwargs.get("stat_length"), x.ndim)
        return each_axis(
            x, widths, lambda y, i: summarized(y, i, widths[i], mode, lengths[i])
        )
    if kwargs.get("reflect_type", "even") == "odd":
        offset = int(mode == "reflect")
        return each_axis(x, widths, lambda y, i: mirrored(y, i, widths[i], offset))
    return each_axis(x, widths, lambda y, i: repeated(y, i, widths[i], mode))


def check_options(mode: str, options: Mapping[str, object]) -> None:
    """Raise ValueError unless there is such a mode, and it takes the options."""
    if mode not in OPTIONS:
        raise NotImplementedError(
            f"Unimplemented padding mode '{mode}' for np.pad. Use one of "
            f"{', '.join(OPTIONS)}"
        )
    for name in options:
        if name not in OPTIONS[mode]:
            raise ValueError(
                f"pad: unsupported keyword arguments for mode {mode!r}: {name}"
            )
    kind = options.get("reflect_type", "even")
    if kind not in ("even", "odd"):
        raise ValueError(
            f"pad: reflect_type must be 'even' or 'odd', not {shown(kind)}"
        )


def pad_widths(pad_width: object, rank: int) -> tuple[tuple[int, int], ...]:
    """The numbers of elements before and after each dimension.

    Raises:
        TypeError: one is not an integer.
        ValueError: one is negative, or there is no pair for each dimension.
    """
    if isinstance(pad_width, Mapping):
        result = [(0, 0)] * rank
        for axis, width in pad_width.items():
            result[canonical_axis("pad", axis, rank)] = pairs("pad_width", width, 1)[0]
        pad_width = result
    try:
        given = pairs("pad_width", pad_width, rank)
        widths = tuple([(as_size(low), as_size(high)) for low, high in given])
    except AbstractValueError as error:
        raise ConcretizationTypeError(
            "pad: pad_width must be known while tracing, since the shape of the result "
            f"depends on it, not {shown(pad_width)}"
        ) from error
    except TypeError as error:
        raise TypeError(
            f"pad: pad_width must hold integers, not {shown(pad_width)}"
        ) from error
    if any(low < 0 or high < 0 for low, high in widths):
        raise ValueError(f"pad: pad_width must not be negative, but is {pad_width}")
    return widths


def pairs(name: str, value: Any, rank: int) -> Pairs:
    """A pair per dimension, from one value, one pair or all of them.

    Raises:
        ValueError: there is another number of values.
    """
    if value is None or is_single(value):
        return ((value, value),) * rank
    items = list(value)
    if is_single(items[0]):
        items = [items[0], items[-1]] if len(items) in (1, 2) else []
        return ((items[0], items[1]),) * rank if items else wrong(name, value, rank)
    rows = [(row[0], row[-1]) for row in items if len(row) in (1, 2)]
    if len(rows) == len(items) and len(rows) in (1, rank):
        return tuple(rows * rank if len(rows) == 1 else rows)
    return wrong(name, value, rank)


def wrong(name: str, value: object, rank: int) -> Pairs:
    raise ValueError(
        f"pad: {name} must be one value, a pair, or one pair for each of the {rank} "
        f"dimensions, not {shown(value)}"
    )


def each_axis(x: Array, widths: Pairs, along: Callable[[Array, int], Array]) -> Array:
    """`x` padded one dimension after the other."""
    for i, (low, high) in enumerate(widths):
        if not low and not high:
            continue
        if not x.shape[i]:
            raise ValueError(
                f"pad: dimension {i} of shape {x.shape} has no elements to pad with; "
                "use mode='constant'"
            )
        x = along(x, i)
    return x


def pad_constant(x: Array, widths: Pairs, values: object) -> Array:
    """One pad if all values are one, else one per edge."""
    if is_single(values):
        config = [(low, high, 0) for low, high in widths]
        return slicing.pad(x, pad_value(values, x), config)
    for i, (low, high) in enumerate(pairs("constant_values", values, x.ndim)):
        for side, value in enumerate((low, high)):
            config = [(0, 0, 0)] * x.ndim
            width = widths[i][side]
            config[i] = (0, width, 0) if side else (width, 0, 0)
            x = slicing.pad(x, pad_value(value, x), config)
    return x


def pad_value(value: object, x: Array) -> object:
    """A padding value in the dtype of `x`: a constant if it is a Python scalar."""
    if isinstance(value, Array):
        return convert(value, x.dtype, x.weak_type)
    return np.asarray(value).astype(numpy_dtype(x.dtype))


def repeated(x: Array, axis: int, width: tuple[int, int], mode: str) -> Array:
    """Padding with elements of `x` itself, by their places."""
    if any([isinstance(n, SymbolicSize) for n in (x.shape[axis], *width)]):
        places = places_in(mode, x.shape[axis], *width)
        return x[(*(slice(None),) * axis, places)]
    places = np.pad(np.arange(x.shape[axis]), width, mode=mode)  # type: ignore[call-overload]  # checked
    low, own, high = np.split(places, [width[0], places.size - width[1]])
    # `x` as it is between what is before and after it.
    parts = [low, own, high] if mode == "edge" else [*runs(low), own, *runs(high)]
    if len(parts) > MOST_RUNS:
        return x[(*(slice(None),) * axis, places.astype(np.int32))]
    return concatenate([run_of(x, axis, part) for part in parts if part.size], axis)


def places_in(mode: str, n: int, low: int, high: int) -> Array:
    """The places of `n` elements, padded; for sizes of which some are symbolic."""
    own = sub(iota(int32, low + n + high), low)
    if mode == "edge":
        return lesser(larger(own, 0), n - 1)
    if mode == "wrap":
        return remainder(own, n)
    # The mirror images repeat after twice the size, less the edges if these are not.
    once = int(mode == "reflect")
    period = larger_size(2 * (n - once), 1)
    array = remainder(own, period)
    return lesser(array, sub(2 * n - 1 - once, array))


def runs(places: np.ndarray) -> list[np.ndarray]:
    """A list of places cut into runs in which each step is 1, or each is -1."""
    out = []
    start = 0
    while start < places.size:
        stop = start + 1
        if stop < places.size and abs(places[stop] - places[start]) == 1:
            step = places[stop] - places[start]
            while stop < places.size and places[stop] - places[stop - 1] == step:
                stop += 1
        out.append(places[start:stop])
        start = stop
    return out


def run_of(x: Array, axis: int, places: np.ndarray) -> Array:
    """The elements of a run: a slice, a reversed one, or one element repeated."""
    low, high = int(places.min()), int(places.max())
    part = slice_in_dim(x, low, high + 1, axis=axis)
    if low == high and places.size > 1:
        shape = list(part.shape)
        shape[axis] = places.size
        return broadcast_to(part, shape)
    return rev(part, (axis,)) if places[0] > places[-1] else part


def mirrored(x: Array, axis: int, width: tuple[int, int], offset: int) -> Array:
    """Odd reflection: twice the edge minus the mirror image, as often as it takes."""
    n = x.shape[axis]
    for before, missing in ((True, width[0]), (False, width[1])):
        while missing > 0:
            count = missing if n <= offset else smaller_size(missing, n - offset)
            missing -= count
            size = x.shape[axis]
            edge = slice_in_dim(
                x, 0 if before else size - 1, 1 if before else size, axis=axis
            )
            if n <= offset:
                shape = [count if i == axis else s for i, s in enumerate(x.shape)]
                piece = broadcast_to(edge, shape)
            else:
                low = offset if before else size - offset - count
                image = rev(slice_in_dim(x, low, low + count, axis=axis), (axis,))
                piece = 2 * edge - image
            x = concatenate((piece, x) if before else (x, piece), axis)
    return x


def ramped(
    x: Array, axis: int, width: tuple[int, int], ends: tuple[ArrayLike, ArrayLike]
) -> Array:
    """Values that run evenly from the edges to the end values."""
    n = x.shape[axis]
    parts = [x]
    for before, count, end in zip((True, False), width, ends, strict=True):
        if not count:
            continue
        place = 0 if before else n - 1
        edge = squeeze(slice_in_dim(x, place, place + 1, axis=axis), axis)
        values = linspace(end, edge, count, endpoint=False, dtype=x.dtype)
        ramp = moveaxis(values, 0, axis)
        parts = [ramp, *parts] if before else [*parts, rev(ramp, (axis,))]
    return concatenate(parts, axis)


def summarized(
    x: Array,
    axis: int,
    width: tuple[int, int],
    mode: str,
    lengths: tuple[object, object],
) -> Array:
    """A statistic of the elements at each edge, repeated."""
    n = x.shape[axis]
    parts = [x]
    for before, count, length in zip((True, False), width, lengths, strict=True):
        if not count:
            continue
        size = n if length is None else smaller_size(as_size(length), n)
        if surely_less(size, 1):
            raise ValueError(f"pad: stat_length must be at least 1, not {length}")
        start = 0 if before else n - size
        edge = slice_in_dim(x, start, start + size, axis=axis)
        value = STATISTICS[mode](edge, axis=axis, keepdims=True)
        if is_integer(x.dtype):
            value = round(value)
        value = convert(value, x.dtype, x.weak_type)
        shape = [count if i == axis else s for i, s in enumerate(x.shape)]
        piece = broadcast_to(value, shape)
        parts = [piece, *parts] if before else [*parts, piece]
    return concatenate(parts, axis)


def pad_by_function(
    x: Array,
    widths: Pairs,
    function: Callable[..., object],
    options: Mapping[str, object],
) -> Array:
    """Padding by a function of each padded line, its widths, its axis and options."""
    x = pad_constant(x, widths, 0)
    for i, width in enumerate(widths):
        x = apply_along_axis(function, i, x, width, i, dict(options))
    return x
