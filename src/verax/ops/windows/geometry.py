"""Floor 2: windows that move over an array, in convolutions and in reductions.

A size is dilated, then padded, then covered by a dilated window in strides; these
functions count, and the adjoints of both count in the same way::

    strided(padded(dilated(5, 2), (1, 1)), dilated(3, 1), 2)    # 5
"""

from collections.abc import Iterable, Sequence

import numpy as np
from attrs import frozen

from verax.ir.avals import Shape, ShapedArray, larger_size
from verax.ir.jaxpr import Params
from verax.ops.structure.slicing import inserted
from verax.rules.rows.emitter import i64s, ints
from verax.rules.rows.row import (
    NDArray,
)
from verax.rules.values.conversions import shown
from verax.rules.values.sizes import ShapeError, as_integers

type Pads = tuple[tuple[int, int], ...]
type Geometry = tuple[Shape, Shape, Shape, Pads, Shape, Shape]
"""Sizes, windows, strides, padding, dilation of sizes, dilation of windows."""


def dilated(size: int, dilation: int) -> int:
    """A size with `dilation - 1` holes between elements.

    >>> dilated(3, 2)
    5
    """
    return larger_size(1 + dilation * (size - 1), 0)


def padded(size: int, pad: tuple[int, int]) -> int:
    """A size with padding at both ends, which may be negative."""
    return larger_size(0, size + sum(pad))


def strided(size: int, window: int, stride: int) -> int:
    """At how many places a window stands when it moves in strides."""
    return larger_size((size - window) // stride + 1, 0)


def window_counts(geometry: Geometry) -> Shape:
    """The number of windows, per dimension."""
    return tuple(
        strided(padded(dilated(n, base), pad), dilated(k, spread), stride)
        for n, k, stride, pad, base, spread in zip(*geometry, strict=True)
    )


def adjoint_padding(geometry: Geometry) -> Pads:
    """The padding of cotangents, dilated by the strides, that the windows go back over.

    Undoing needs each window reversed, moving in steps of the dilation of sizes.
    """
    pads = []
    for places, (n, k, stride, pad, base, spread) in zip(
        window_counts(geometry), zip(*geometry, strict=True), strict=True
    ):
        before = dilated(k, spread) - 1 - pad[0]
        whole = dilated(n, base) + dilated(k, spread) - 1
        pads.append((before, whole - dilated(places, stride) - before))
    return tuple(pads)


def as_pads(
    name: str, padding: object, sizes: Shape, windows: Shape, strides: Shape
) -> Pads:
    """Padding as pairs: "SAME" gives ceil(size / stride) places, "VALID" pads nothing.

    "SAME" puts an odd element at the end, "SAME_LOWER" at the start. `windows` are
    dilated already.

    Raises:
        ValueError: it is no such string, or the number of pairs is wrong.
        TypeError: it holds something else than pairs of integers.
    """
    if isinstance(padding, str):
        return named_pads(name, padding, sizes, windows, strides)
    if not isinstance(padding, Sequence) or not all(
        [isinstance(pair, Iterable) for pair in padding]
    ):
        raise ShapeError(
            f"{name}: the padding argument should be a string or a sequence of (low, "
            f"high) pairs, got {shown(padding)}"
        )
    pairs = [as_integers(name, "padding", pair) for pair in padding]
    if len(pairs) != len(sizes) or any(len(pair) != 2 for pair in pairs):
        raise ShapeError(
            f"{name}: padding must have a pair (low, high) for each of the "
            f"{len(sizes)} dimensions, not {padding}"
        )
    return tuple((low, high) for low, high in pairs)


def named_pads(
    name: str, padding: str, sizes: Shape, windows: Shape, strides: Shape
) -> Pads:
    """`as_pads` of a string."""
    kind = padding.upper()
    if kind == "VALID":
        return ((0, 0),) * len(sizes)
    if kind not in ("SAME", "SAME_LOWER"):
        raise ValueError(
            f"{name}: padding must be 'SAME', 'SAME_LOWER', 'VALID' or pairs (low, "
            f"high), not {shown(padding)}"
        )
    pads = []
    for size, window, stride in zip(sizes, windows, strides, strict=True):
        last = (-(-size // stride) - 1) * stride
        extra = larger_size(0, last + window - size)
        small, large = extra // 2, extra - extra // 2
        pads.append((small, large) if kind == "SAME" else (large, small))
    return tuple(pads)


def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: object,
) -> list[tuple[int, int]]:
    """Padding by name, or as pairs, as a pair (low, high) for each dimension.

    Args:
        in_shape: the shape of the array over which windows go.
        window_shape: the shape of the window, with its dilation.
        window_strides: the step of the window in each dimension.
        padding: "VALID" for none; "SAME" for ceil(size / stride) places, with an odd
            element at the end, or "SAME_LOWER" with it at the start; or the pairs
            themselves.

    Returns:
        A list of pairs of integers.

    Raises:
        ValueError: the lengths differ, or there is no such padding.

    >>> padtype_to_pads((5,), (3,), (2,), "SAME")
    [(1, 1)]
    >>> padtype_to_pads((5,), (4,), (1,), "SAME_LOWER")
    [(2, 1)]
    """
    shapes = [
        as_integers("padtype_to_pads", argument, values)
        for argument, values in (
            ("in_shape", in_shape),
            ("window_shape", window_shape),
            ("window_strides", window_strides),
        )
    ]
    if len({len(shape) for shape in shapes}) != 1:
        raise ValueError(f"padtype_to_pads: {shapes} must have the same length")
    sizes, windows, strides = shapes
    return list(as_pads("padtype_to_pads", padding, sizes, windows, strides))


def window_places(geometry: Geometry) -> tuple[list[NDArray], NDArray]:
    """The element that each element of each window is, dimension by dimension.

    Gives an array (places, window) of indices in bounds for each dimension, and which
    elements are none of the array's but holes or padding, as (place, window, ...).
    """
    counts = window_counts(geometry)
    places, masks = [], []
    for i, (size, window, stride, pad, base, spread) in enumerate(
        zip(*geometry, strict=True)
    ):
        at = np.arange(counts[i])[:, None] * stride - pad[0]
        at = at + np.arange(window)[None, :] * spread
        held = (at >= 0) & (at < dilated(size, base)) & (at % base == 0)
        places.append(np.where(held, at // base, 0))
        masks.append(held)
    mask: NDArray = np.array(True)
    for held in masks:
        mask = mask[..., None, None] & held
    return places, mask


def windows_of(x: NDArray, geometry: Geometry, fill: object) -> NDArray:
    """All windows over the last dimensions of `x`: (..., *places, *windows).

    Holes and padding are `fill`.
    """
    places, held = window_places(geometry)
    count = len(places)
    lead = x.shape[: x.ndim - count]
    if x.size:
        for i, at in enumerate(places):
            x = np.take(x, at, len(lead) + 2 * i)
        x = np.where(held, x, np.asarray(fill, x.dtype))
    else:
        x = np.full((*lead, *held.shape), fill, x.dtype)
    pairs = range(len(lead), len(lead) + 2 * count, 2)
    return x.transpose((*range(len(lead)), *pairs, *(i + 1 for i in pairs)))


def pads_text(padding: Pads) -> str:
    """Padding as a dense attribute."""
    rows = ", ".join(ints(pair) for pair in padding)
    values = f"[{rows}]" if padding else ""
    return f"dense<{values}> : tensor<{len(padding)}x2xi64>"


@frozen(eq=False, repr=False)
class WindowParams(Params):
    """Sizes, steps, padding and dilations of the windows, for every dimension."""

    window_dimensions: Shape
    window_strides: Shape
    padding: Pads
    base_dilation: Shape
    window_dilation: Shape

    def geometry(self, shape: Shape) -> Geometry:
        """The windows on an array of that shape."""
        return (
            shape,
            self.window_dimensions,
            self.window_strides,
            self.padding,
            self.base_dilation,
            self.window_dilation,
        )

    def batched(self, axis: int) -> tuple[Shape, Shape, Pads, Shape, Shape]:
        """The same with windows of one element in a new dimension."""
        return (
            inserted(self.window_dimensions, axis, 1),
            inserted(self.window_strides, axis, 1),
            inserted(self.padding, axis, (0, 0)),
            inserted(self.base_dilation, axis, 1),
            inserted(self.window_dilation, axis, 1),
        )

    def attributes(self) -> dict[str, str]:
        """The attributes of `stablehlo.reduce_window`."""
        return {
            "window_dimensions": i64s(self.window_dimensions),
            "window_strides": i64s(self.window_strides),
            "base_dilations": i64s(self.base_dilation),
            "window_dilations": i64s(self.window_dilation),
            "padding": pads_text(self.padding),
        }


def check_windows(name: str, p: WindowParams, x: ShapedArray) -> Shape:
    """The shape of the result; raise unless the params fit the array."""
    for argument in (
        "window_dimensions",
        "window_strides",
        "base_dilation",
        "window_dilation",
    ):
        values = getattr(p, argument)
        if len(values) != x.ndim or any(value < 1 for value in values):
            raise ValueError(
                f"{name}: {argument} must have every element be positive, one for "
                f"each dimension of {x}, not {values}"
            )
    if len(p.padding) != x.ndim:
        raise ValueError(
            f"{name}: padding must have a pair for each dimension of {x}, not "
            f"{p.padding}"
        )
    return window_counts(p.geometry(x.shape))
