"""Floor 6: the one Fourier transform that all functions of `verax.numpy.fft` call.

One idea: cut or fill with zeros to the lengths asked for, move the axes to the end,
transform up to three at once, and scale as `norm` says::

    transform("fftn", "FFT", a, s, axes, norm)
"""

import operator
from collections.abc import Sequence
from math import prod, sqrt

import numpy as np

from verax.ir.dtypes import complex_dtype, is_complex, real_dtype
from verax.numpy.arguments.arguments import (
    ArrayLike,
    canonical_axis,
    inexact_array,
    with_weak_type,
)
from verax.numpy.elementwise.float_parts import conjugate
from verax.numpy.shaping.reversals import roll
from verax.numpy.shaping.shapes import moveaxis
from verax.ops.elementwise.arith import mul
from verax.ops.elementwise.convert import convert
from verax.ops.fft import fft as transformed, half
from verax.ops.structure.create import full, full_like
from verax.ops.structure.joining import concatenate, rev
from verax.ops.structure.slicing import pad, slice_in_dim
from verax.rules.values.array import Array

type Norm = str | None
AT_ONCE = 3
"""Over so many dimensions one operation runs."""
SEVERAL, LARGE, ONE_LINE = 4, 1 << 12, 1 << 18
"""Lines and elements, or elements of one line, from which half a spectrum is faster."""


def transform(
    name: str,
    kind: str,
    a: ArrayLike,
    s: Sequence[int] | None,
    axes: Sequence[int] | None,
    norm: Norm,
) -> Array:
    """The transform `kind` of `a`, with lengths `s` over `axes`.

    Raises:
        ValueError: a real signal is required and `a` is complex, or lengths and axes do
            not fit, or there is no such norm.
    """
    x = with_weak_type(inexact_array(name, a), False)
    if kind == "RFFT" and is_complex(x.dtype):
        raise ValueError(f"{name} takes real signals, not {x.dtype}; use fft")
    if x.dtype.itemsize < 4:
        x = convert(x, np.dtype(np.float32))
    places = chosen_axes(name, x, s, axes)
    lengths = chosen_lengths(name, kind, x, s, places)
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(
            f"{name}: norm must be 'backward', 'ortho' or 'forward', not {norm!r}"
        )
    if not places:
        return x if kind in ("RFFT", "IRFFT") else convert(x, complex_dtype(x.dtype))
    if 0 in lengths:
        sizes = dict(
            zip(places, half(lengths) if kind == "RFFT" else lengths, strict=True)
        )
        shape = [sizes.get(i, size) for i, size in enumerate(x.shape)]
        dtype = complex_dtype(x.dtype)
        return full(shape, 0, real_dtype(dtype) if kind == "IRFFT" else dtype)
    x = moveaxis(x, places, tuple(range(x.ndim - len(places), x.ndim)))
    x = fitted(x, input_lengths(kind, lengths))
    array = mul_by_scale(in_steps(kind, x, lengths), kind, lengths, norm)
    return moveaxis(array, tuple(range(x.ndim - len(places), x.ndim)), places)


def chosen_axes(
    name: str, x: Array, s: Sequence[int] | None, axes: Sequence[int] | None
) -> tuple[int, ...]:
    if axes is None:
        count = x.ndim if s is None else len(s)
        if count > x.ndim:
            raise ValueError(
                f"{name}: s={tuple(s or ())} has more lengths than {x.aval} has "
                "dimensions"
            )
        return tuple(range(x.ndim - count, x.ndim))
    places = tuple([canonical_axis(name, axis, x.ndim) for axis in axes])
    if len(set(places)) != len(places):
        raise ValueError(
            f"verax.numpy.fft.{name} does not support repeated axes. Got axes {axes}."
        )
    if s is not None and len(s) != len(places):
        raise ValueError(
            f"{name}: s={tuple(s)} and axes={tuple(axes)} differ in length"
        )
    return places


def chosen_lengths(
    name: str,
    kind: str,
    x: Array,
    s: Sequence[int] | None,
    places: tuple[int, ...],
) -> tuple[int, ...]:
    """The lengths of the signals: as asked, or those of the operand."""
    own = [x.shape[i] for i in places]
    if kind == "IRFFT" and own:
        own[-1] = max(0, 2 * (own[-1] - 1))
    out = tuple(own if s is None else (operator.index(n) for n in s))
    # Other dimensions than that of the real signals may be empty.
    empty = kind == "RFFT" and out[-1:] == (0,)
    least = 0 if s is None and not empty else 1
    if any(n < least for n in out):
        raise ValueError(
            f"{name} takes lengths of at least {least}, not {out} for {x.aval}"
        )
    return out


def input_lengths(kind: str, lengths: tuple[int, ...]) -> tuple[int, ...]:
    return half(lengths) if kind == "IRFFT" else lengths


def fitted(x: Array, lengths: tuple[int, ...]) -> Array:
    """The last dimensions cut, or filled with zeros, to the lengths."""
    for i, n in enumerate(lengths, x.ndim - len(lengths)):
        if n < x.shape[i]:
            x = slice_in_dim(x, 0, n, axis=i)
    first = x.ndim - len(lengths)
    more = [n - size for n, size in zip(lengths, x.shape[first:], strict=True)]
    if not any(more):
        return x
    return pad(x, 0.0, (*((0, 0, 0),) * first, *((0, n, 0) for n in more)))


def in_steps(kind: str, x: Array, lengths: tuple[int, ...]) -> Array:
    """The transform over the last dimensions, at most three at a time."""
    if kind == "FFT" and not is_complex(x.dtype) and pays_by_half(x, lengths):
        return mirrored(in_steps("RFFT", x, lengths), lengths)
    if len(lengths) <= AT_ONCE:
        return transformed(x, kind, lengths)
    count = len(lengths) - AT_ONCE
    rest = {"RFFT": "FFT", "IRFFT": "IFFT"}.get(kind, kind)
    if kind != "IRFFT":
        x = transformed(x, kind, lengths[count:])
    first, last = x.ndim - len(lengths), tuple(range(x.ndim - count, x.ndim))
    leading = tuple(range(first, first + count))
    moved = moveaxis(x, leading, last)
    x = moveaxis(in_steps(rest, moved, lengths[:count]), last, leading)
    return transformed(x, kind, lengths[count:]) if kind == "IRFFT" else x


def pays_by_half(x: Array, lengths: tuple[int, ...]) -> bool:
    """Whether half a spectrum, and a copy of it, takes less time than the whole.

    Kernels transform several lines at once; a single one is slower by half.
    """
    if x.aval.symbolic:
        return False
    size = prod(x.shape)
    several = size // lengths[-1] >= SEVERAL
    return size >= (LARGE if several else ONE_LINE)


def mirrored(x: Array, lengths: tuple[int, ...]) -> Array:
    """The spectrum X of a real signal from its half: X[-k] = conj X[k]."""
    last, n = x.ndim - 1, lengths[-1]
    rest = slice_in_dim(x, 1, (n + 1) // 2, axis=last)
    dims = tuple(range(x.ndim - len(lengths), x.ndim))
    rest = conjugate(rev(rest, dims))
    others = dims[:-1]
    if others:
        rest = roll(rest, (1,) * len(others), others)
    return concatenate([x, rest], last)


def mul_by_scale(x: Array, kind: str, lengths: tuple[int, ...], norm: Norm) -> Array:
    """The scale of `norm` instead of that of the rows, 1 or 1 / n."""
    size = prod(lengths)
    inverse = kind in ("IFFT", "IRFFT")
    if norm in (None, "backward"):
        return x
    scale = sqrt(size) if norm == "ortho" else float(size)
    return mul(x, full_like(x, scale if inverse else 1 / scale))


def along(name: str, axis: int) -> tuple[int]:
    """The axis of a transform in one dimension.

    Raises:
        ValueError: there are several.
    """
    if isinstance(axis, Sequence):
        raise ValueError(
            f"verax.numpy.fft.{name} does not support multiple axes. Please use "
            f"verax.numpy.fft.{name}n. Got axis = {axis}."
        )
    return (axis,)


def one(n: int | None) -> tuple[int] | None:
    return None if n is None else (operator.index(n),)
