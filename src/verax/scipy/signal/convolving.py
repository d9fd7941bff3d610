"""Floor 6: convolutions and correlations of arrays of any dimensions.

One idea: there is one full convolution, direct or by Fourier transforms; the modes are
parts of it, and a correlation is a convolution with the conjugate turned around::

    convolve(x, kernel, mode="same"), fftconvolve(x, kernel, axes=-1)
"""

import math
from collections.abc import Sequence

import numpy as np

from verax import lax, numpy as vnp
from verax.ir.dtypes import is_complex
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    canonical_axes,
    canonical_axis,
    inexact_array,
    inexact_arrays,
)
from verax.rules.values.array import Array
from verax.rules.values.sizes import kept
from verax.scipy.tables import row

MODES = ("full", "same", "valid")


def arguments(
    name: str, in1: ArrayLike, in2: ArrayLike, mode: str
) -> tuple[Array, Array]:
    """Two arrays of the same inexact dtype and number of dimensions.

    Raises:
        ValueError: there is no such mode, they differ in dimensions, or one is empty.
    """
    if mode not in MODES:
        raise ValueError(f"{name}: mode must be one of {MODES}, not {mode!r}")
    x, y = inexact_arrays(name, in1, in2)
    if x.ndim != y.ndim or not x.ndim:
        raise ValueError(
            f"{name} takes arrays with the same number of dimensions, not {x.aval} "
            f"and {y.aval}"
        )
    if not x.size or not y.size:
        raise ValueError(f"{name} takes nonempty arrays, not {x.aval} and {y.aval}")
    return x, y


def part(
    name: str, mode: str, a: Sequence[int], b: Sequence[int]
) -> list[tuple[int, int]]:
    """The place of a mode's result in the full one: start and size by dimension.

    Raises:
        ValueError: "valid", and neither is as large as the other everywhere.
    """
    pairs = list(zip(a, b, strict=True))
    if mode == "full":
        return [(0, m + n - 1) for m, n in pairs]
    if mode == "same":
        return [((n - 1) // 2, m) for m, n in pairs]
    if not (all(m >= n for m, n in pairs) or all(m <= n for m, n in pairs)):
        raise ValueError(
            f"{name}: with mode='valid' one array must be at least as large as the "
            f"other in every dimension, unlike {tuple(a)} and {tuple(b)}"
        )
    return [(min(m, n) - 1, max(m, n) - min(m, n) + 1) for m, n in pairs]


def taken(x: Array, window: Sequence[tuple[int, int]]) -> Array:
    return x[tuple(slice(start, start + size) for start, size in window)]


def direct(name: str, x: Array, y: Array, mode: str, precision: object) -> Array:
    """A convolution by sums of products; the smaller array is the kernel."""
    window = part(name, mode, x.shape, y.shape)
    if y.size > x.size:
        x, y = y, x
    # Only what is requested is computed, except beyond the larger array's ends.
    kept = [
        (max(n - 1 - start, 0), max(start + size - m, 0))
        for (start, size), m, n in zip(window, x.shape, y.shape, strict=True)
    ]
    array = lax.conv_general_dilated(
        x[None, None],
        vnp.flip(y)[None, None],
        (1,) * x.ndim,
        kept,
        precision=precision,
    )[0, 0]
    inside = [
        (start - (n - 1 - low), size)
        for (start, size), n, (low, _) in zip(window, y.shape, kept, strict=True)
    ]
    return taken(array, inside)


def convolve(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: object = None,
) -> Array:
    """The convolution of two arrays of n dimensions.

    Args:
        in1: an array; integers are taken as floats.
        in2: an array with the same number of dimensions.
        mode: "full", "same" for the middle of the size of `in1`, or "valid" for what
            does not depend on zeros outside.
        method: "direct" or "auto" for sums of products, "fft" for Fourier transforms.
        precision: that of products, see `verax.lax.Precision`.

    Returns:
        An array of the promoted dtype, with m + n - 1 elements in each dimension for
        "full", m for "same", and max(m, n) - min(m, n) + 1 for "valid".

    Raises:
        ValueError: there is no such mode or method, or the shapes do not fit.

    >>> convolve(vnp.array([1, 2, 3]), vnp.array([0, 1, 0.5]), "same").tolist()
    [1.0, 2.5, 4.0]
    """
    if method == "fft":
        return fftconvolve(in1, in2, mode)
    if method not in ("auto", "direct"):
        raise ValueError(
            f"convolve: method must be 'auto', 'direct' or 'fft', not {method!r}"
        )
    x, y = arguments("convolve", in1, in2, mode)
    return direct("convolve", x, y, mode, precision)


def correlate(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: object = None,
) -> Array:
    """The correlation: `convolve` with the conjugate of `in2`, reversed.

    Args:
        in1: an array; integers are taken as floats.
        in2: an array with the same number of dimensions.
        mode: "full", "same" or "valid", as in `convolve`.
        method: "direct" or "auto" for sums of products, "fft" for Fourier transforms.
        precision: that of products, see `verax.lax.Precision`.

    Returns:
        An array of the promoted dtype and of the shape that `convolve` gives.

    Raises:
        ValueError: there is no such mode or method, or the shapes do not fit.

    >>> correlate(vnp.array([1.0, 2.0]), vnp.array([0.0, 1.0])).tolist()
    [1.0, 2.0, 0.0]
    """
    other = vnp.flip(vnp.conj(as_array("correlate", in2, 1)))
    return convolve(in1, other, mode, method, precision)


def planes(
    name: str,
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str,
    boundary: str,
    fillvalue: float,
) -> tuple[Array, Array]:
    """Two matrices, with zeros around them.

    Raises:
        ValueError: they are not matrices, or another boundary is requested.
    """
    if boundary != "fill" or fillvalue != 0:
        raise ValueError(
            f"{name} takes only boundary='fill' and fillvalue=0; for others, pad the "
            "array with verax.numpy.pad and use mode='valid'"
        )
    x, y = arguments(name, in1, in2, mode)
    if x.ndim != 2:
        raise ValueError(f"{name} takes matrices, not {x.aval} and {y.aval}")
    return x, y


def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: object = None,
) -> Array:
    """`convolve` of two matrices.

    Args:
        in1: a matrix; integers are taken as floats.
        in2: a matrix.
        mode: "full", "same" or "valid", as in `convolve`.
        boundary: only "fill": beyond the edges there are zeros.
        fillvalue: only 0. For other edges, pad `in1` and use mode "valid".
        precision: that of products, see `verax.lax.Precision`.

    Returns:
        A matrix of the promoted dtype and of the shape that `convolve` gives.

    Raises:
        ValueError: they are not matrices, there is no such mode, or another boundary
            than zeros is requested.

    >>> convolve2d(vnp.ones((2, 2)), vnp.ones((1, 2))).tolist()
    [[1.0, 2.0, 1.0], [1.0, 2.0, 1.0]]
    """
    x, y = planes("convolve2d", in1, in2, mode, boundary, fillvalue)
    return direct("convolve2d", x, y, mode, precision)


def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: object = None,
) -> Array:
    """`correlate` of two matrices; in mode same the middle is rounded up, as in SciPy.

    Args:
        in1: a matrix; integers are taken as floats.
        in2: a matrix.
        mode: "full", "same" or "valid", as in `convolve`.
        boundary: only "fill": beyond the edges there are zeros.
        fillvalue: only 0. For other edges, pad `in1` and use mode "valid".
        precision: that of products, see `verax.lax.Precision`.

    Returns:
        A matrix of the promoted dtype and of the shape that `convolve` gives.

    Raises:
        ValueError: they are not matrices, there is no such mode, or another boundary
            than zeros is requested.

    >>> correlate2d(vnp.eye(2), vnp.eye(2), "valid").tolist()
    [[2.0]]
    """
    x, y = planes("correlate2d", in1, in2, mode, boundary, fillvalue)
    out = vnp.flip(direct("correlate2d", vnp.flip(x), vnp.conj(y), mode, precision))
    # SciPy exchanges the arrays without the conjugate, and JAX does as SciPy.
    return vnp.conj(out) if mode == "valid" and y.size > x.size else out


def fftconvolve(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    axes: int | Sequence[int] | None = None,
) -> Array:
    """`convolve` by Fourier transforms, along some axes only if `axes` are given.

    Args:
        in1: an array; integers are taken as floats.
        in2: an array with the same number of dimensions.
        mode: "full", "same" or "valid", as in `convolve`.
        axes: the dimensions to work along, or one; the others broadcast. None for all.

    Returns:
        An array of the promoted dtype, whose sizes along `axes` are those that
        `convolve` gives.

    Raises:
        ValueError: there is no such mode or axis, or the shapes do not fit.

    >>> fftconvolve(vnp.array([1.0, 2.0]), vnp.array([1.0, 1.0])).round(3).tolist()
    [1.0, 3.0, 2.0]
    """
    name = "fftconvolve"
    x, y = arguments(name, in1, in2, mode)
    along = range(x.ndim) if axes is None else canonical_axes(name, axes, x.ndim)
    places = tuple(sorted(along))
    others = kept(x.ndim, places)
    if any(
        x.shape[i] != y.shape[i] and 1 not in (x.shape[i], y.shape[i]) for i in others
    ):
        raise ValueError(
            f"fftconvolve: {x.aval} and {y.aval} differ along axes other than {places}"
        )
    sizes = [(x.shape[i], y.shape[i]) for i in places]
    window = part(name, mode, *zip(*sizes, strict=True)) if sizes else []
    lengths = [m + n - 1 for m, n in sizes]
    fast = [fast_length(n) for n in lengths]
    whole = is_complex(x.dtype)
    forward = vnp.fft.fftn if whole else vnp.fft.rfftn
    back = vnp.fft.ifftn if whole else vnp.fft.irfftn
    if not places:
        return x * y
    spectra = [forward(a, fast, axes=places) for a in (x, y)]
    array = back(spectra[0] * spectra[1], fast, axes=places)
    cut = [slice(None)] * x.ndim
    for i, (start, size) in zip(places, window, strict=True):
        cut[i] = slice(start, start + size)
    return array[tuple(cut)].astype(x.dtype)


def fast_length(n: int) -> int:
    """The next length that is a power of two times 1, 3, 5 or 9."""
    return min(f << max(0, math.ceil(math.log2(n / f))) for f in (1, 3, 5, 9))


# -----------------------------------------------------------------------------
# Signals without their mean or their straight lines.
#
# Detrend(x), detrend(x, type="constant"), detrend(x, bp=[100, 200])


def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: int | Sequence[int] | np.ndarray = 0,
    overwrite_data: None = None,
) -> Array:
    """A signal less its mean, or less the straight lines nearest to its pieces.

    Args:
        data: an array; integers are taken as floats.
        axis: the dimension to work along; by default the last.
        type: "linear" or "constant".
        bp: where new lines begin, for "linear": integers along `axis`.
        overwrite_data: only None, since arrays are immutable.

    Returns:
        An array of the shape of `data` and of its dtype.

    Raises:
        ValueError: there is no such type or axis, a break lies outside, or
            `overwrite_data` is given.

    >>> bool(vnp.allclose(detrend(vnp.array([1.0, 2.0, 3.0])), 0.0, atol=1e-6))
    True
    """
    if overwrite_data is not None:
        raise ValueError("detrend: arrays are immutable; leave overwrite_data out")
    if type not in ("linear", "constant"):
        raise ValueError(f"detrend: type must be 'linear' or 'constant', not {type!r}")
    x = inexact_array("detrend", data)
    place = canonical_axis("detrend", axis, x.ndim)
    if type == "constant":
        return x - x.mean(place, keepdims=True)
    n = x.shape[place]
    breaks = np.unique([0, *np.ravel(bp).tolist(), n])
    if breaks[0] < 0 or breaks[-1] > n:
        raise ValueError(
            f"detrend: break points must lie between 0 and {n}, unlike {bp}"
        )
    moved = vnp.moveaxis(x, place, -1)
    pieces = [
        without_line(moved[..., start:end])
        for start, end in zip(breaks[:-1].tolist(), breaks[1:].tolist(), strict=True)
    ]
    return vnp.moveaxis(vnp.concatenate(pieces, axis=-1), -1, place) if pieces else x


def without_line(x: Array) -> Array:
    """Less the line of least squares along the last axis."""
    n = x.shape[-1]
    time = np.arange(n) - (n - 1) / 2
    length = float((time * time).sum()) or 1.0  # of one point there is no slope
    unit = row(time / np.sqrt(length), x.real)
    level = x - x.mean(-1, keepdims=True)
    return level - (level * unit).sum(-1, keepdims=True) * unit
