"""Floor 6: `verax.numpy.fft`: Fourier transforms with NumPy's names and arguments.

Cut or fill with zeros to the lengths asked for, move the axes to the end, transform up
to three at once, and scale as `norm` says::

    rfft(x), irfft(y, n=5), fftn(a, axes=(0, 1), norm="ortho")
"""

import operator
from collections.abc import Sequence
from math import prod, sqrt

import numpy as np

from verax.backend.eager.composites import remembered
from verax.ir.dtypes import DTypeLike, complex_dtype, is_complex, real_dtype
from verax.numpy.arguments.arguments import (
    ArrayLike,
    Axis,
    as_array,
    canonical_axes,
    inexact_array,
    reduction_axes,
    with_weak_type,
)
from verax.numpy.creation.creation import Placement, asarray, made
from verax.numpy.elementwise.float_parts import conjugate
from verax.numpy.shaping.joining import roll
from verax.numpy.shaping.shapes import moveaxis
from verax.ops.elementwise.arith import div, mul
from verax.ops.elementwise.convert import convert
from verax.ops.fft import fft as transformed, half
from verax.ops.structure.create import full, full_like
from verax.ops.structure.joining import concatenate, rev
from verax.ops.structure.slicing import pad, slice_in_dim
from verax.rules.values.array import Array

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

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
        TypeError: a real signal is required and `a` is complex.
        ValueError: lengths and axes do not fit, or there is no such norm.
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
    places = canonical_axes(name, tuple(axes), x.ndim)
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
            f"{name} runs along one axis, not {axis}; use the n-d transform"
        )
    return (axis,)


def one(n: int | None) -> tuple[int] | None:
    return None if n is None else (operator.index(n),)


@remembered
def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None) -> Array:
    """The Fourier transform of `a` along `axis`, of length `n`.

    >>> import verax.numpy as vnp
    >>> vnp.fft.fft(vnp.array([1.0, 0.0]))
    Array([1.+0.j, 1.+0.j], dtype=complex64)
    """
    return transform("fft", "FFT", a, one(n), along("fft", axis), norm)


@remembered
def ifft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None
) -> Array:
    """The inverse of `fft`."""
    return transform("ifft", "IFFT", a, one(n), along("ifft", axis), norm)


@remembered
def rfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None
) -> Array:
    """The first n // 2 + 1 elements of the transform of real `a`.

    Raises:
        TypeError: `a` is complex.
    """
    return transform("rfft", "RFFT", a, one(n), along("rfft", axis), norm)


@remembered
def irfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None
) -> Array:
    """The inverse of `rfft`, a real signal of length `n`, by default 2 (m - 1)."""
    return transform("irfft", "IRFFT", a, one(n), along("irfft", axis), norm)


@remembered
def hfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None
) -> Array:
    """The real transform of a signal with Hermitian symmetry, given by one half."""
    swapped = SWAPPED.get(norm, norm)
    line = along("hfft", axis)
    return transform("hfft", "IRFFT", conjugate(a), one(n), line, swapped)


@remembered
def ihfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None
) -> Array:
    """The inverse of `hfft`."""
    swapped = SWAPPED.get(norm, norm)
    line = along("ihfft", axis)
    return conjugate(transform("ihfft", "RFFT", a, one(n), line, swapped))


SWAPPED: dict[Norm, str] = {
    None: "forward",
    "backward": "forward",
    "forward": "backward",
}


@remembered
def fftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = None,
) -> Array:
    """The Fourier transform over several axes, by default all."""
    return transform("fftn", "FFT", a, s, axes, norm)


@remembered
def ifftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = None,
) -> Array:
    """The inverse of `fftn`."""
    return transform("ifftn", "IFFT", a, s, axes, norm)


@remembered
def rfftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = None,
) -> Array:
    """`fftn` of real `a`, of which the last axis is given up to half.

    Raises:
        TypeError: `a` is complex.
    """
    return transform("rfftn", "RFFT", a, s, axes, norm)


@remembered
def irfftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = None,
) -> Array:
    """The inverse of `rfftn`."""
    return transform("irfftn", "IRFFT", a, s, axes, norm)


@remembered
def fft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: Norm = None,
) -> Array:
    """`fftn` over two axes."""
    return transform("fft2", "FFT", a, s, two("fft2", axes), norm)


@remembered
def ifft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: Norm = None,
) -> Array:
    """`ifftn` over two axes."""
    return transform("ifft2", "IFFT", a, s, two("ifft2", axes), norm)


@remembered
def rfft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: Norm = None,
) -> Array:
    """`rfftn` over two axes."""
    return transform("rfft2", "RFFT", a, s, two("rfft2", axes), norm)


@remembered
def irfft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: Norm = None,
) -> Array:
    """`irfftn` over two axes."""
    return transform("irfft2", "IRFFT", a, s, two("irfft2", axes), norm)


def two(name: str, axes: Sequence[int]) -> Sequence[int]:
    if len(axes) != 2:
        raise ValueError(f"{name} runs over two axes, not {len(axes)}: {tuple(axes)}")
    return axes


def counted(name: str, n: int) -> int:
    """The length of the signals whose frequencies are asked for."""
    if isinstance(n, Sequence) or np.ndim(n):
        raise ValueError(f"{name}: n must be an integer, not {n}")
    return operator.index(n)


def fftfreq(
    n: int,
    d: ArrayLike = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: Placement = None,
) -> Array:
    """The frequencies of the elements of `fft`, for samples a distance `d` apart.

    With `device`, they are put there.
    """
    count = counted("fftfreq", n)
    numbers = (np.arange(count) + count // 2) % max(count, 1) - count // 2
    return made("fftfreq", frequencies(numbers, count, d, dtype), device)


def rfftfreq(
    n: int,
    d: ArrayLike = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: Placement = None,
) -> Array:
    """The frequencies of the elements of `rfft`, for samples a distance `d` apart.

    With `device`, they are put there.
    """
    count = counted("rfftfreq", n)
    numbers = np.arange(count // 2 + 1)
    return made("rfftfreq", frequencies(numbers, count, d, dtype), device)


def frequencies(
    numbers: np.ndarray, n: int, d: ArrayLike, dtype: DTypeLike | None
) -> Array:
    """Integers divided by the time that `n` samples take."""
    if n < 1:
        raise ValueError(f"the number of samples n must be at least 1, not {n}")
    array = asarray(numbers / n, dtype=float if dtype is None else dtype)
    return div(array, full_like(array, d))


@remembered
def fftshift(x: ArrayLike, axes: Axis = None) -> Array:
    """The elements rolled so that frequency zero is in the middle."""
    return rolled("fftshift", x, axes, 1)


@remembered
def ifftshift(x: ArrayLike, axes: Axis = None) -> Array:
    """The inverse of `fftshift`."""
    return rolled("ifftshift", x, axes, -1)


def rolled(name: str, x: ArrayLike, axes: Axis, sign: int) -> Array:
    a = as_array(name, x)
    places = reduction_axes(name, axes, a.ndim)
    shifts = tuple([sign * (a.shape[i] // 2) for i in places])
    return roll(a, shifts, places)
