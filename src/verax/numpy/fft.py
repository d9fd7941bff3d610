"""Floor 6: `verax.numpy.fft`: Fourier transforms with NumPy's names and arguments.

Cut or fill with zeros to the lengths asked for, move the axes to the end, transform up
to three at once, and scale as `norm` says::

    rfft(x), irfft(y, n=5), fftn(a, axes=(0, 1), norm="ortho")
"""

import operator
from collections.abc import Sequence, Sized
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
from verax.numpy.shaping.reversals import roll
from verax.numpy.shaping.shapes import moveaxis
from verax.ops.elementwise.arith import div, mul
from verax.ops.elementwise.convert import convert
from verax.ops.fft import fft as transformed, half
from verax.ops.structure.create import full, full_like
from verax.ops.structure.joining import concatenate, rev
from verax.ops.structure.slicing import pad, slice_in_dim
from verax.rules.values.array import Array
from verax.rules.values.conversions import shown

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
            f"verax.numpy.fft.{name} does not support multiple axes. Please use "
            f"verax.numpy.fft.{name}n. Got axis = {axis}."
        )
    return (axis,)


def one(n: int | None) -> tuple[int] | None:
    return None if n is None else (operator.index(n),)


@remembered
def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None) -> Array:
    """The Fourier transform of `a` along `axis`.

    Element k is the sum over j of `x[j] exp(-2 pi i j k / n)`.

    Args:
        a: an array, real or complex; float16 and bfloat16 are computed in float32.
        n: the length to which the axis is cut, or filled with zeros at the end; by
            default its size.
        axis: the dimension to work along, the last one by default.
        norm: where the scale stands: "backward" (or None, the default) for none here
            and `1 / n` in the inverse, "ortho" for `1 / sqrt(n)` in both, "forward" for
            `1 / n` here.

    Returns:
        A complex array of length `n` along `axis`: complex128 if `a` is in double
        precision, otherwise complex64.

    Raises:
        ValueError: there is no such norm or axis, or `n` is less than 1.

    >>> import verax.numpy as vnp
    >>> vnp.fft.fft(vnp.array([1.0, 0.0]))
    Array([1.+0.j, 1.+0.j], dtype=complex64)
    >>> vnp.fft.fft(vnp.arange(4))
    Array([ 6.+0.j, -2.+2.j, -2.+0.j, -2.-2.j], dtype=complex64)
    """
    return transform("fft", "FFT", a, one(n), along("fft", axis), norm)


@remembered
def ifft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None
) -> Array:
    """The inverse of `fft`.

    Args:
        a: an array, real or complex, the spectrum in the order of `fft`.
        n: the length to which the axis is cut, or filled with zeros at the end; by
            default its size.
        axis: the dimension to work along, the last one by default.
        norm: where the scale stands: "backward" (or None, the default) for `1 / n`
            here, "ortho" for `1 / sqrt(n)` here and in the other direction, "forward"
            for none here.

    Returns:
        A complex array of length `n` along `axis`, complex64 or complex128.

    Raises:
        ValueError: there is no such norm or axis, or `n` is less than 1.

    >>> import verax.numpy as vnp
    >>> vnp.fft.ifft(vnp.fft.fft(vnp.array([1.0, 2.0, 4.0, 8.0])))
    Array([1.+0.j, 2.+0.j, 4.+0.j, 8.+0.j], dtype=complex64)
    """
    return transform("ifft", "IFFT", a, one(n), along("ifft", axis), norm)


@remembered
def rfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None
) -> Array:
    """The first n // 2 + 1 elements of the transform of real `a`.

    The others are their conjugates: X[n - k] = conj X[k].

    Args:
        a: an array of real numbers.
        n: the length to which the axis is cut, or filled with zeros at the end; by
            default its size.
        axis: the dimension to work along, the last one by default.
        norm: where the scale stands: "backward" (or None, the default) for none here
            and `1 / n` in the inverse, "ortho" for `1 / sqrt(n)` in both, "forward" for
            `1 / n` here.

    Returns:
        A complex array, complex64 or complex128, of length n // 2 + 1 along `axis`.

    Raises:
        ValueError: `a` is complex, or there is no such norm or axis, or `n` is less
            than 1.

    >>> import verax.numpy as vnp
    >>> vnp.fft.rfft(vnp.array([1.0, 0.0, -1.0, 0.0]))
    Array([0.+0.j, 2.+0.j, 0.+0.j], dtype=complex64)
    """
    return transform("rfft", "RFFT", a, one(n), along("rfft", axis), norm)


@remembered
def irfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None
) -> Array:
    """The inverse of `rfft`, a real signal.

    Args:
        a: an array, real or complex, the first half of a spectrum of m elements along
            `axis`.
        n: the length of the signal, by default the even one, 2 (m - 1). For a signal of
            odd length it has to be given.
        axis: the dimension to work along, the last one by default.
        norm: where the scale stands: "backward" (or None, the default) for `1 / n`
            here, "ortho" for `1 / sqrt(n)` here and in the other direction, "forward"
            for none here.

    Returns:
        An array of real numbers, float32 or float64, of length `n` along `axis`.

    Raises:
        ValueError: there is no such norm or axis, or `n` is less than 1.

    >>> import verax.numpy as vnp
    >>> half = vnp.fft.rfft(vnp.array([1.0, 2.0, 3.0]))
    >>> vnp.fft.irfft(half, n=3), vnp.fft.irfft(half)
    (Array([1., 2., 3.], dtype=float32), Array([2.25, 3.75], dtype=float32))
    """
    return transform("irfft", "IRFFT", a, one(n), along("irfft", axis), norm)


@remembered
def hfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None
) -> Array:
    """The real transform of a signal with Hermitian symmetry, given by one half.

    The whole signal would have x[n - j] = conj x[j].

    Args:
        a: an array, real or complex, the first half of a signal, of m elements along
            `axis`.
        n: the length of the whole signal and of the result, by default 2 (m - 1).
        axis: the dimension to work along, the last one by default.
        norm: where the scale stands: "backward" (or None, the default) for none here
            and `1 / n` in the inverse, "ortho" for `1 / sqrt(n)` in both, "forward" for
            `1 / n` here.

    Returns:
        An array of real numbers, float32 or float64, of length `n` along `axis`.

    Raises:
        ValueError: there is no such norm or axis, or `n` is less than 1.

    >>> import verax.numpy as vnp
    >>> vnp.fft.hfft(vnp.array([1, 2j, 1]))
    Array([ 2.,  4.,  2., -4.], dtype=float32)
    >>> vnp.fft.fft(vnp.array([1, 2j, 1, -2j])).real
    Array([ 2.,  4.,  2., -4.], dtype=float32)
    """
    swapped = SWAPPED.get(norm, norm)
    line = along("hfft", axis)
    return transform("hfft", "IRFFT", conjugate(a), one(n), line, swapped)


@remembered
def ihfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None
) -> Array:
    """The inverse of `hfft`: the first half of a signal with Hermitian symmetry.

    Args:
        a: an array of real numbers, the spectrum.
        n: the length to which the axis is cut, or filled with zeros at the end; by
            default its size.
        axis: the dimension to work along, the last one by default.
        norm: where the scale stands: "backward" (or None, the default) for `1 / n`
            here, "ortho" for `1 / sqrt(n)` here and in the other direction, "forward"
            for none here.

    Returns:
        A complex array, complex64 or complex128, of length n // 2 + 1 along `axis`.

    Raises:
        ValueError: `a` is complex, or there is no such norm or axis, or `n` is less
            than 1.

    >>> import verax.numpy as vnp
    >>> vnp.fft.hfft(vnp.fft.ihfft(vnp.array([2.0, 4.0, 2.0, -4.0])))
    Array([ 2.,  4.,  2., -4.], dtype=float32)
    """
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
    """The Fourier transform over several axes, by default all.

    Args:
        a: an array, real or complex.
        s: the lengths to which the axes are cut, or filled with zeros at the end; by
            default those of `a`.
        axes: the dimensions to transform; by default all of them, or as many last ones
            as `s` has lengths.
        norm: where the scale stands: "backward" (or None, the default) for none here
            and `1 / N` in the inverse, "ortho" for `1 / sqrt(N)` in both, "forward" for
            `1 / N` here; N is the product of the lengths.

    Returns:
        A complex array of the lengths `s` along `axes`: complex128 if `a` is in double
        precision, otherwise complex64.

    Raises:
        ValueError: there is no such norm or axis, or lengths and axes do not fit.

    >>> import verax.numpy as vnp
    >>> x = vnp.ones((2, 2))
    >>> vnp.fft.fftn(x).real.tolist(), vnp.fft.fftn(x, axes=(0,)).real.tolist()
    ([[4.0, 0.0], [0.0, 0.0]], [[2.0, 2.0], [0.0, 0.0]])
    """
    return transform("fftn", "FFT", a, s, axes, norm)


@remembered
def ifftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = None,
) -> Array:
    """The inverse of `fftn`.

    Args:
        a: an array, real or complex, the spectrum in the order of `fftn`.
        s: the lengths to which the axes are cut, or filled with zeros at the end; by
            default those of `a`.
        axes: the dimensions to transform; by default all of them, or as many last ones
            as `s` has lengths.
        norm: where the scale stands: "backward" (or None, the default) for `1 / N`
            here, "ortho" for `1 / sqrt(N)` here and in the other direction, "forward"
            for none here; N is the product of the lengths.

    Returns:
        A complex array of the lengths `s` along `axes`, complex64 or complex128.

    Raises:
        ValueError: there is no such norm or axis, or lengths and axes do not fit.

    >>> import verax.numpy as vnp
    >>> vnp.fft.ifftn(vnp.fft.fftn(vnp.array([[1.0, 2.0], [3.0, 4.0]]))).real
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    return transform("ifftn", "IFFT", a, s, axes, norm)


@remembered
def rfftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = None,
) -> Array:
    """`fftn` of real `a`, of which the last axis is given up to half.

    Args:
        a: an array of real numbers.
        s: the lengths to which the axes are cut, or filled with zeros at the end; by
            default those of `a`.
        axes: the dimensions to transform; by default all of them, or as many last ones
            as `s` has lengths; the last one named is halved.
        norm: where the scale stands: "backward" (or None, the default) for none here
            and `1 / N` in the inverse, "ortho" for `1 / sqrt(N)` in both, "forward" for
            `1 / N` here; N is the product of the lengths.

    Returns:
        A complex array, complex64 or complex128, of the lengths `s` along `axes`, but
        s[-1] // 2 + 1 along the last of them.

    Raises:
        ValueError: `a` is complex, or there is no such norm or axis, or lengths and
            axes do not fit.

    >>> import verax.numpy as vnp
    >>> x = vnp.ones((2, 4))
    >>> vnp.fft.rfftn(x).shape, vnp.fft.rfftn(x, axes=(1, 0)).shape
    ((2, 3), (2, 4))
    """
    return transform("rfftn", "RFFT", a, s, axes, norm)


@remembered
def irfftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = None,
) -> Array:
    """The inverse of `rfftn`, a real signal.

    Args:
        a: an array, real or complex, a spectrum given up to half along the last of
            `axes`.
        s: the lengths of the signal; by default those of `a`, except for the last axis,
            of size m, where it is the even one, 2 (m - 1).
        axes: the dimensions to transform; by default all of them, or as many last ones
            as `s` has lengths; the last one named is the one given up to half.
        norm: where the scale stands: "backward" (or None, the default) for `1 / N`
            here, "ortho" for `1 / sqrt(N)` here and in the other direction, "forward"
            for none here; N is the product of the lengths.

    Returns:
        An array of real numbers, float32 or float64, of the lengths `s` along `axes`.

    Raises:
        ValueError: there is no such norm or axis, or lengths and axes do not fit.

    >>> import verax.numpy as vnp
    >>> half = vnp.fft.rfftn(vnp.ones((2, 3)))
    >>> vnp.fft.irfftn(half, s=(2, 3)).tolist(), vnp.fft.irfftn(half).shape
    ([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]], (2, 2))
    """
    return transform("irfftn", "IRFFT", a, s, axes, norm)


@remembered
def fft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: Norm = None,
) -> Array:
    """`fftn` over two axes.

    Args:
        a: an array, real or complex.
        s: the lengths to which the axes are cut, or filled with zeros at the end; by
            default those of `a`.
        axes: the two dimensions to transform, by default the last two.
        norm: where the scale stands: "backward" (or None, the default) for none here
            and `1 / N` in the inverse, "ortho" for `1 / sqrt(N)` in both, "forward" for
            `1 / N` here; N is the product of the lengths.

    Returns:
        A complex array of the lengths `s` along `axes`, complex64 or complex128.

    Raises:
        ValueError: there is no such norm or axis, or lengths and axes do not fit.

    >>> import verax.numpy as vnp
    >>> vnp.fft.fft2(vnp.eye(2))
    Array([[2.+0.j, 0.+0.j],
           [0.+0.j, 2.+0.j]], dtype=complex64)
    """
    return transform("fft2", "FFT", a, s, two("fft2", axes), norm)


@remembered
def ifft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: Norm = None,
) -> Array:
    """`ifftn` over two axes.

    Args:
        a: an array, real or complex, the spectrum in the order of `fft2`.
        s: the lengths to which the axes are cut, or filled with zeros at the end; by
            default those of `a`.
        axes: the two dimensions to transform, by default the last two.
        norm: where the scale stands: "backward" (or None, the default) for `1 / N`
            here, "ortho" for `1 / sqrt(N)` here and in the other direction, "forward"
            for none here; N is the product of the lengths.

    Returns:
        A complex array of the lengths `s` along `axes`, complex64 or complex128.

    Raises:
        ValueError: there is no such norm or axis, or lengths and axes do not fit.

    >>> import verax.numpy as vnp
    >>> vnp.fft.ifft2(vnp.ones((2, 2)))
    Array([[1.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return transform("ifft2", "IFFT", a, s, two("ifft2", axes), norm)


@remembered
def rfft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: Norm = None,
) -> Array:
    """`rfftn` over two axes.

    Args:
        a: an array of real numbers.
        s: the lengths to which the axes are cut, or filled with zeros at the end; by
            default those of `a`.
        axes: the two dimensions to transform, by default the last two, of which the
            second is halved.
        norm: where the scale stands: "backward" (or None, the default) for none here
            and `1 / N` in the inverse, "ortho" for `1 / sqrt(N)` in both, "forward" for
            `1 / N` here; N is the product of the lengths.

    Returns:
        A complex array, complex64 or complex128, of the lengths `s` along `axes`, but
        s[-1] // 2 + 1 along the last of them.

    Raises:
        ValueError: `a` is complex, or there is no such norm or axis, or lengths and
            axes do not fit.

    >>> import verax.numpy as vnp
    >>> vnp.fft.rfft2(vnp.array([[1.0, 2.0, 3.0, 4.0]]))
    Array([[10.+0.j, -2.+2.j, -2.+0.j]], dtype=complex64)
    """
    return transform("rfft2", "RFFT", a, s, two("rfft2", axes), norm)


@remembered
def irfft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: Norm = None,
) -> Array:
    """`irfftn` over two axes.

    Args:
        a: an array, real or complex, a spectrum given up to half along the last of
            `axes`.
        s: the lengths of the signal; by default those of `a`, except for the last axis,
            of size m, where it is the even one, 2 (m - 1).
        axes: the two dimensions to transform, by default the last two.
        norm: where the scale stands: "backward" (or None, the default) for `1 / N`
            here, "ortho" for `1 / sqrt(N)` here and in the other direction, "forward"
            for none here; N is the product of the lengths.

    Returns:
        An array of real numbers, float32 or float64, of the lengths `s` along `axes`.

    Raises:
        ValueError: there is no such norm or axis, or lengths and axes do not fit.

    >>> import verax.numpy as vnp
    >>> half = vnp.fft.rfft2(vnp.array([[1.0, 2.0, 3.0, 4.0]]))
    >>> vnp.fft.irfft2(half)
    Array([[1., 2., 3., 4.]], dtype=float32)
    """
    return transform("irfft2", "IRFFT", a, s, two("irfft2", axes), norm)


def two(name: str, axes: Sequence[int]) -> Sequence[int]:
    """The axes of a transform over two.

    Raises:
        TypeError: they are no sequence.
        ValueError: there are more or fewer.
    """
    if not isinstance(axes, Sized):
        raise TypeError(f"{name} runs over a pair of axes, not {shown(axes)}")
    if len(axes) != 2:
        raise ValueError(
            f"verax.numpy.fft.{name} only supports 2 axes. Got axes = {list(axes)}."
        )
    return axes


def counted(name: str, n: int) -> int:
    """The length of the signals whose frequencies are asked for."""
    if isinstance(n, Sequence) or np.ndim(n):
        raise ValueError(
            f"The n argument of verax.numpy.fft.{name} only takes an int. Got n = {n}."
        )
    return operator.index(n)


def fftfreq(
    n: int,
    d: ArrayLike = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: Placement = None,
) -> Array:
    """The frequencies of the elements of `fft`, for samples a distance `d` apart.

    Args:
        n: the number of samples, an integer of at least 1.
        d: a scalar, the distance between samples; 1 by default, for frequencies per
            sample.
        dtype: the dtype of the result; by default the default float.
        device: a device or sharding to put the result on; None for the default one.

    Returns:
        A vector of `n` elements, first those from 0 up, then the negative ones.

    Raises:
        ValueError: `n` is not an integer of at least 1.

    >>> import verax.numpy as vnp
    >>> vnp.fft.fftfreq(4)
    Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    >>> vnp.fft.fftfreq(5, d=0.1)
    Array([ 0.,  2.,  4., -4., -2.], dtype=float32)
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

    Args:
        n: the number of samples, an integer of at least 1.
        d: a scalar, the distance between samples; 1 by default, for frequencies per
            sample.
        dtype: the dtype of the result; by default the default float.
        device: a device or sharding to put the result on; None for the default one.

    Returns:
        A vector of n // 2 + 1 elements, from 0 up to at most one half in units of 1 /
        d.

    Raises:
        ValueError: `n` is not an integer of at least 1.

    >>> import verax.numpy as vnp
    >>> vnp.fft.rfftfreq(4), vnp.fft.rfftfreq(5)
    (Array([0.  , 0.25, 0.5 ], dtype=float32), Array([0. , 0.2, 0.4], dtype=float32))
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
    """The elements rolled so that frequency zero is in the middle.

    Args:
        x: an array, a spectrum or the frequencies of `fftfreq`.
        axes: the dimension or dimensions to roll; None for all of them.

    Returns:
        An array of the shape and dtype of `x`, rolled up by half of each size, rounded
        down.

    Raises:
        ValueError: a dimension does not exist or stands twice.

    >>> import verax.numpy as vnp
    >>> vnp.fft.fftshift(vnp.array([0, 1, 2, -2, -1]))
    Array([-2, -1,  0,  1,  2], dtype=int32)
    """
    return rolled("fftshift", x, axes, 1)


@remembered
def ifftshift(x: ArrayLike, axes: Axis = None) -> Array:
    """The inverse of `fftshift`, also for odd sizes.

    Args:
        x: an array, in the order of `fftshift`.
        axes: the dimension or dimensions to roll; None for all of them.

    Returns:
        An array of the shape and dtype of `x`, rolled down by half of each size,
        rounded down.

    Raises:
        ValueError: a dimension does not exist or stands twice.

    >>> import verax.numpy as vnp
    >>> vnp.fft.ifftshift(vnp.array([-2, -1, 0, 1, 2]))
    Array([ 0,  1,  2, -2, -1], dtype=int32)
    """
    return rolled("ifftshift", x, axes, -1)


def rolled(name: str, x: ArrayLike, axes: Axis, sign: int) -> Array:
    a = as_array(name, x)
    places = reduction_axes(name, axes, a.ndim)
    shifts = tuple([sign * (a.shape[i] // 2) for i in places])
    return roll(a, shifts, places)
