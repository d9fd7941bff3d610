"""Floor 6: `verax.scipy.fft`: discrete cosine transforms.

One idea: each of the four types is the real part of a Fourier transform of twice the
length, between two twists::

    dct(x), idct(x), dctn(x, axes=(0, 1), norm="ortho")

J. Makhoul, "A fast cosine transform in one and two dimensions", 1980.
"""

import operator
from collections.abc import Sequence
from typing import Final

import numpy as np

from verax import lax, numpy as vnp
from verax.ir.dtypes import is_complex
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    canonical_axes,
    canonical_axis,
    inexact_array,
)
from verax.rules.values.array import Array
from verax.scipy.tables import row, to_complex

__all__ = ["dct", "dctn", "idct", "idctn"]

INVERSE: Final = {1: 1, 2: 3, 3: 2, 4: 4}


def dct(
    x: ArrayLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
) -> Array:
    """The discrete cosine transform of type 1, 2, 3 or 4 along an axis.

    Args:
        x: an array, real or complex; integers are taken as floats.
        type: 1, 2, 3 or 4; 2 by default.
        n: the length to which the axis is cut or filled with zeros; None for its own.
        axis: the dimension to work along; by default the last.
        norm: None or "backward" for the sums alone, "ortho" for an orthogonal
            transform, "forward" for the sums over twice the length.

    Returns:
        An array of the shape of `x`, but of length `n` along `axis`, and of its dtype.

    Raises:
        ValueError: there is no such type, norm or axis, or the axis is too short.

    >>> dct(vnp.array([1.0, 1.0])).round(3).tolist()
    [4.0, 0.0]
    """
    array = inexact_array("dct", x)
    check_kind("dct", type, norm)
    place = canonical_axis("dct", axis, array.ndim)
    moved = vnp.moveaxis(fitted("dct", array, n, place), place, -1)
    if moved.shape[-1] < (2 if type == 1 else 1):
        raise ValueError(
            f"dct of type {type} needs a longer axis than that of {array.aval}"
        )
    return vnp.moveaxis(along_last(moved, type, norm), -1, place)


def idct(
    x: ArrayLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
) -> Array:
    """The inverse of `dct` with the same arguments.

    Args:
        x: an array, real or complex; integers are taken as floats.
        type: the type of the transform that is turned back: 1, 2, 3 or 4; 2 by default.
        n: the length to which the axis is cut or filled with zeros; None for its own.
        axis: the dimension to work along; by default the last.
        norm: that of the transform which is turned back: None or "backward", "ortho" or
            "forward".

    Returns:
        An array of the shape of `x`, but of length `n` along `axis`, and of its dtype.

    Raises:
        ValueError: there is no such type, norm or axis, or the axis is too short.

    >>> idct(dct(vnp.array([1.0, 2.0, 5.0]))).round(3).tolist()
    [1.0, 2.0, 5.0]
    """
    check_kind("idct", type, norm)
    return dct(x, INVERSE[type], n, axis, inverse_norm(norm))


def dctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """`dct` along several axes, by default all, or as many last ones as `s` is long.

    Along none, `x` stays as it is, integers too.

    Args:
        x: an array, real or complex; integers are taken as floats.
        type: 1, 2, 3 or 4; 2 by default.
        s: the lengths to which the axes are cut or filled with zeros; None for their
            own.
        axes: the dimensions to work along, or one; None for as many last ones as `s` is
            long, or for all.
        norm: None or "backward", "ortho" or "forward", as in `dct`.

    Returns:
        An array of the shape of `x`, but of lengths `s` along `axes`, and of its dtype.

    Raises:
        ValueError: there is no such type, norm or axis, or `s` has another length.

    >>> dctn(vnp.ones((2, 2))).round(3).tolist()
    [[16.0, 0.0], [0.0, 0.0]]
    """
    array = as_array("dctn", x)
    check_kind("dctn", type, norm)
    for axis, size in along_axes("dctn", array.ndim, s, axes):
        array = dct(array, type, size, axis, norm)
    return array


def idctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The inverse of `dctn` with the same arguments.

    Along no axes, `x` stays as it is, integers too.

    Args:
        x: an array, real or complex; integers are taken as floats.
        type: the type of the transform that is turned back: 1, 2, 3 or 4; 2 by default.
        s: the lengths to which the axes are cut or filled with zeros; None for their
            own.
        axes: the dimensions to work along, or one; None for as many last ones as `s` is
            long, or for all.
        norm: that of the transform which is turned back: None or "backward", "ortho" or
            "forward".

    Returns:
        An array of the shape of `x`, but of lengths `s` along `axes`, and of its dtype.

    Raises:
        ValueError: there is no such type, norm or axis, or `s` has another length.

    >>> idctn(dctn(vnp.eye(2))).round(3).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    check_kind("idctn", type, norm)
    return dctn(x, INVERSE[type], s, axes, inverse_norm(norm))


def inverse_norm(norm: str | None) -> str:
    """The norm with which the inverse type inverts."""
    return {None: "forward", "backward": "forward", "forward": "backward"}.get(
        norm, "ortho"
    )


def check_kind(name: str, type: int, norm: str | None) -> None:
    """Raise ValueError unless there are such a type and norm."""
    if type not in INVERSE:
        raise ValueError(f"{name}: type must be 1, 2, 3 or 4, not {type!r}")
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(
            f"{name}: norm must be None, 'backward', 'ortho' or 'forward', not {norm!r}"
        )


def along_axes(
    name: str, rank: int, s: Sequence[int] | None, axes: int | Sequence[int] | None
) -> list[tuple[int, int | None]]:
    """Axes with their lengths.

    Raises:
        ValueError: there are more or fewer lengths than axes.
    """
    if s is not None and len(s) > rank:
        raise ValueError(
            f"{name}: s must have at most x.ndim ({rank}) elements, got {len(s)}"
        )
    if axes is None:
        axes = range(rank) if s is None else range(rank - len(s), rank)
    places = canonical_axes(name, axes, rank)
    if s is not None and len(s) != len(places):
        raise ValueError(
            f"{name}: s must have one length for each axis, not {s} for axes {places}"
        )
    return list(zip(places, [None] * len(places) if s is None else s, strict=True))


def fitted(name: str, x: Array, n: int | None, axis: int) -> Array:
    """An axis cut or filled with zeros to length n.

    Raises:
        ValueError: n is not positive.
    """
    if n is None or n == x.shape[axis]:
        return x
    size = operator.index(n)
    if size < 1:
        raise ValueError(f"{name}: n must be positive, not {n}")
    before = [slice(None)] * axis
    cut = x[(*before, slice(size))]
    more = size - cut.shape[axis]
    widths = [(0, more if i == axis else 0) for i in range(x.ndim)]
    return vnp.pad(cut, widths) if more else cut


def along_last(x: Array, type: int, norm: str | None) -> Array:
    """The transform along the last axis."""
    if is_complex(x.dtype):
        real, imag = (along_last(part, type, norm) for part in (x.real, x.imag))
        return lax.complex(real, imag)
    n = x.shape[-1]
    whole = 2 * (n - 1) if type == 1 else 2 * n
    before, after = np.ones(n), np.ones(n)
    if norm == "ortho":
        ends = {1: (0, -1), 2: (0,), 3: (0,), 4: ()}[type]
        for end in ends:
            before[end] = 1.0 if type == 2 else np.sqrt(2)
            after[end] = 1.0 if type == 3 else np.sqrt(0.5)
        after = after / np.sqrt(whole)
    elif norm == "forward":
        after = after / whole
    return sums(x * row(before, x), type, after)


def sums(x: Array, type: int, scale: np.ndarray) -> Array:
    """Sums of x[m] cos(...), twice where both sides of the symmetry count, scaled."""
    n = x.shape[-1]
    if type == 1:
        even = vnp.concatenate([x, x[..., -2:0:-1]], axis=-1)
        return vnp.fft.rfft(even).real * row(scale, x)
    m = np.arange(n)
    half_step = np.exp(-0.5j * np.pi * m / n)
    into = {2: np.ones(n), 3: half_step, 4: half_step}[type]
    out = {2: half_step, 3: np.ones(n), 4: np.exp(-0.25j * np.pi * (2 * m + 1) / n)}[
        type
    ]
    if type == 3:
        into = np.where(m == 0, 0.5, into)
    complex_x = to_complex(x)
    turned = vnp.fft.fft(complex_x * row(into, complex_x), n=2 * n)[..., :n]
    return (turned * row(2 * scale * out, turned)).real.astype(x.dtype)
