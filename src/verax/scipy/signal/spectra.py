"""Floor 6: spectra of signals, from Fourier transforms of overlapping segments.

One idea: the segments are one gather; power spectra are averages over them, and the
short-time transform is what is averaged::

    f, power = welch(x, fs=100.0)
    f, t, z = stft(x, nperseg=128)

P. Welch, "The use of fast Fourier transform for the estimation of power spectra", 1967.
"""

import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen

from verax import lax, numpy as vnp
from verax.ir.dtypes import is_complex
from verax.ir.records import ReprMixin
from verax.numpy import where
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    canonical_axis,
    inexact_array,
    inexact_arrays,
)
from verax.rules.values.array import Array
from verax.scipy.signal.convolving import detrend as without_trend
from verax.scipy.tables import constant, row, to_complex

type Trend = str | bool | Callable[[Array], Array]
BOUNDARIES = {
    "even": "reflect",
    "odd": "reflect",
    "constant": "edge",
    "zeros": "constant",
}


@frozen(repr=False)
class Segments(ReprMixin):
    """The cut of a signal: a window, and how far segments overlap."""

    window: np.ndarray
    overlap: int
    nfft: int

    @property
    def size(self) -> int:
        """The length of a segment."""
        return int(self.window.size)

    @property
    def step(self) -> int:
        """From one segment to the next."""
        return self.size - self.overlap

    def cut(self, x: Array) -> Array:
        """The segments of the last axis, as a further axis before it."""
        starts = np.arange(0, x.shape[-1] - self.size + 1, self.step)
        return x[..., starts[:, None] + np.arange(self.size)[None, :]]


def window_of(
    name: str, window: object, nperseg: int | None, length: int
) -> np.ndarray:
    """A window by name or as given, in double precision.

    Raises:
        TypeError: it is a tracer: its values are needed while tracing.
        ValueError: it is not a vector, or has another length than `nperseg`.
    """
    if isinstance(window, str | tuple):
        size = 256 if nperseg is None else operator.index(nperseg)
        if size < 1:
            raise ValueError(f"{name}: nperseg must be positive, not {nperseg}")
        if size > length:
            if nperseg is not None:
                warnings.warn(
                    f"{name}: nperseg = {size} is longer than the signal; using its "
                    f"length, {length}",
                    stacklevel=4,
                )
            size = length
        from scipy.signal import get_window

        out: np.ndarray = get_window(window, size)
        return out
    given = np.asarray(window)
    if given.ndim != 1 or nperseg not in (None, given.size) or given.size > length:
        raise ValueError(
            f"{name}: the window must be a vector of length nperseg, and no longer "
            f"than the signal, not of shape {given.shape} for nperseg={nperseg} and a "
            f"signal of length {length}"
        )
    return given


def segments_of(
    name: str,
    window: object,
    nperseg: int | None,
    noverlap: int | None,
    nfft: int | None,
    length: int,
) -> Segments:
    """The cut of a signal of a length.

    Raises:
        ValueError: the numbers do not fit together.
    """
    values = window_of(name, window, nperseg, length)
    size = values.size
    overlap = size // 2 if noverlap is None else operator.index(noverlap)
    points = size if nfft is None else operator.index(nfft)
    if not 0 <= overlap < size or points < size:
        raise ValueError(
            f"{name}: noverlap must be less than nperseg = {size}, and nfft no less, "
            f"not {overlap} and {points}"
        )
    return Segments(values, overlap, points)


def detrended(x: Array, trend: Trend) -> Array:
    """Segments without their trend."""
    if isinstance(trend, str):
        return without_trend(x, type=trend)
    if callable(trend):
        return trend(x)
    if trend:
        raise ValueError(
            "detrend must be the type of a trend, a function or False, not True"
        )
    return x


def scale_of(name: str, scaling: str, fs: ArrayLike, window: np.ndarray) -> Any:
    """The factor of the power.

    Raises:
        ValueError: there is no such scaling.
    """
    if scaling == "density":
        return 1 / (as_array(name, fs) * float((abs(window) ** 2).sum()))
    if scaling == "spectrum":
        return float(1 / abs(window.sum()) ** 2)
    raise ValueError(
        f"{name}: scaling must be 'density' or 'spectrum', not {scaling!r}"
    )


def extended(name: str, x: Array, boundary: str | None, n: int) -> Array:
    """A signal continued by n values at both ends of the last axis.

    Raises:
        ValueError: there is no such boundary, or the signal is too short.
    """
    if boundary is None or not n:
        return x
    if boundary not in BOUNDARIES:
        raise ValueError(
            f"{name}: boundary must be None or one of {tuple(BOUNDARIES)}, not "
            f"{boundary!r}"
        )
    if n >= x.shape[-1] and boundary in ("even", "odd"):
        raise ValueError(f"{name}: {x.aval} is too short to reflect {n} values")
    widths = [(0, 0)] * (x.ndim - 1) + [(n, n)]
    out = vnp.pad(x, widths, BOUNDARIES[boundary])
    if boundary != "odd":
        return out
    ends = vnp.pad(x, widths, "edge")
    inside = np.arange(out.shape[-1])
    outside = (inside < n) | (inside >= n + x.shape[-1])
    return where(outside, 2 * ends - out, out)


def filled(x: Array, more: int) -> Array:
    """The last axis, longer by zeros."""
    return vnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, more)]) if more else x


def is_onesided(name: str, asked: bool, *signals: Array) -> bool:
    """Whether half of a spectrum is all of it; complex signals have both halves."""
    if asked and any(is_complex(x.dtype) for x in signals):
        warnings.warn(
            f"{name}: the spectrum of a complex signal is two-sided; "
            "return_onesided=True is ignored",
            stacklevel=3,
        )
        return False
    return asked


def frequencies(nfft: int, fs: ArrayLike, onesided: bool, like: Array) -> Array:
    """The frequencies of a transform."""
    unit = (np.fft.rfftfreq if onesided else np.fft.fftfreq)(nfft)
    return constant(unit, like.real) * fs


def transformed(x: Array, how: Segments, trend: Trend, onesided: bool) -> Array:
    """Fourier transforms of the windowed segments: (..., segments, frequencies)."""
    pieces = detrended(how.cut(x), trend)
    pieces = pieces * row(how.window, pieces)
    transform = vnp.fft.rfft if onesided else vnp.fft.fft
    return transform(pieces, n=how.nfft)


def stft(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: object = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Trend = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """The short-time Fourier transform of a signal.

    Args:
        x: the signal, along `axis`.
        fs: samples per unit of time.
        window: a name for `scipy.signal.get_window`, or a vector.
        nperseg: the length of segments.
        noverlap: by how much segments overlap, by default half.
        nfft: the length of transforms; segments are filled with zeros.
        detrend: "constant", "linear", a function of segments, or False.
        return_onesided: leave out negative frequencies of real signals.
        boundary: how the signal goes on by half a segment: "zeros", "even", "odd",
            "constant" or None.
        padded: fill up with zeros to a whole number of segments.
        axis: the dimension of time.

    Returns:
        Frequencies, times of the segments' middles, and transforms, with frequencies
        along `axis` and times last.

    Raises:
        ValueError: lengths do not fit together, or a name is not known.

    >>> f, t, z = stft(vnp.ones(64), nperseg=16)
    >>> f.shape, t.shape, z.shape
    ((9,), (9,), (9, 9))
    """
    array = inexact_array("stft", x)
    place = canonical_axis("stft", axis, array.ndim)
    if not array.size:
        empty = vnp.zeros(array.shape, array.real.dtype)
        return empty, empty, to_complex(empty)
    how = segments_of("stft", window, nperseg, noverlap, nfft, array.shape[place])
    moved = extended("stft", vnp.moveaxis(array, place, -1), boundary, how.size // 2)
    if padded:
        more = -(moved.shape[-1] - how.size) % how.step % how.size
        moved = filled(moved, more)
    onesided = is_onesided("stft", return_onesided, array)
    result = transformed(moved, how, detrend, onesided)
    scale = vnp.sqrt(scale_of("stft", "spectrum", 1.0, how.window))
    result = result * scale.astype(result.dtype)
    first = how.size / 2 if boundary is None else 0.0
    times = np.arange(result.shape[-2]) * how.step + first
    turned = vnp.moveaxis(result, -1, place)
    freqs = frequencies(how.nfft, fs, onesided, array)
    return freqs, constant(times, array.real) / fs, turned


def csd(
    x: ArrayLike,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: object = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Trend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The cross spectral density of two signals; of one with itself if `y` is None.

    Args:
        x, y: signals along `axis`; a shorter one is filled with zeros.
        fs: samples per unit of time.
        window: a name for `scipy.signal.get_window`, or a vector.
        nperseg: the length of segments; None for that of a vector `window`, or for 256,
            or the whole signal if it is shorter.
        noverlap: by how much segments overlap, by default half.
        nfft: the length of transforms, to which segments are filled with zeros; None
            for that of segments.
        detrend: "constant", "linear", a function of segments, or False.
        return_onesided: leave out negative frequencies of real signals.
        scaling: "density" for power per frequency, "spectrum" for power.
        axis: the dimension of time; by default the last.
        average: "mean" or "median" over segments.

    Returns:
        Frequencies, and the density along `axis`.

    Raises:
        ValueError: lengths or shapes do not fit together, or a name is not known.

    >>> f, p = csd(vnp.ones(32), vnp.ones(32), nperseg=8, detrend=False)
    >>> f.shape, p.shape
    ((5,), (5,))
    """
    if average not in ("mean", "median"):
        raise ValueError(f"csd: average must be 'mean' or 'median', not {average!r}")
    first, second = inexact_arrays("csd", x, x if y is None else y)
    if first.ndim != second.ndim:
        raise ValueError(
            f"csd: {first.aval} and {second.aval} must have equally many dimensions"
        )
    place = canonical_axis("csd", axis, first.ndim)
    signals = [vnp.moveaxis(a, place, -1) for a in (first, second)]
    length = max(a.shape[-1] for a in signals)
    if not all(a.size for a in signals):
        empty = vnp.moveaxis(no_spectrum(*signals), -1, place)
        return empty, empty
    signals = [filled(a, length - a.shape[-1]) for a in signals]
    how = segments_of("csd", window, nperseg, noverlap, nfft, length)
    onesided = is_onesided("csd", return_onesided, *signals)
    spectra = [transformed(a, how, detrend, onesided) for a in signals]
    array = vnp.conj(spectra[0]) * spectra[1]
    scale = vnp.asarray(scale_of("csd", scaling, fs, how.window))
    array = array * scale.astype(array.dtype)
    if onesided:
        array = array * row(sides(how.nfft), array)
    density = averaged(array, average)
    turned = vnp.moveaxis(density.real if y is None else density, -1, place)
    return frequencies(how.nfft, fs, onesided, first), turned


def no_spectrum(*signals: Array) -> Array:
    """The result for empty signals."""
    sizes = vnp.broadcast_shapes(*[a.shape[:-1] for a in signals])
    shortest = min(a.shape[-1] for a in signals)
    return vnp.zeros((*sizes, shortest), signals[0].real.dtype)


def sides(nfft: int) -> np.ndarray:
    """The number of sides of a spectrum each frequency of one side stands for."""
    out = np.full(nfft // 2 + 1, 2.0)
    out[0] = 1.0
    if nfft % 2 == 0:
        out[-1] = 1.0
    return out


def averaged(x: Array, average: str) -> Array:
    """The mean or median over segments; the median without its bias.

    The bias is that of the median of exponential variables: 1 - 1/2 + 1/3 - ...
    """
    if average == "mean":
        return x.mean(-2)
    n = x.shape[-2]
    steps = 2 * np.arange(1.0, (n - 1) // 2 + 1)
    bias = float(1 + np.sum(1 / (steps + 1) - 1 / steps))
    if not is_complex(x.dtype):
        return vnp.median(x, axis=-2) / bias
    real, imag = vnp.median(x.real, axis=-2), vnp.median(x.imag, axis=-2)
    return lax.complex(real / bias, imag / bias)


def welch(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: object = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Trend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The power spectral density of a signal: `csd` of it with itself.

    Args:
        x: the signal, along `axis`.
        fs: samples per unit of time.
        window: a name for `scipy.signal.get_window`, or a vector.
        nperseg: the length of segments; None for that of a vector `window`, or for 256,
            or the whole signal if it is shorter.
        noverlap: by how much segments overlap, by default half.
        nfft: the length of transforms, to which segments are filled with zeros; None
            for that of segments.
        detrend: "constant", "linear", a function of segments, or False.
        return_onesided: leave out negative frequencies of real signals.
        scaling: "density" for power per frequency, "spectrum" for power.
        axis: the dimension of time; by default the last.
        average: "mean" or "median" over segments.

    Returns:
        Frequencies, and the real density along `axis`.

    Raises:
        ValueError: lengths do not fit together, or a name is not known.

    >>> f, p = welch(vnp.ones(32), nperseg=8, detrend=False, scaling="spectrum")
    >>> round(float(p[0]), 3)
    1.0
    """
    how = (fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling)
    return csd(x, None, *how, axis, average)


# -----------------------------------------------------------------------------
# A signal from its short-time Fourier transform.
#
# Each segment is transformed back and added at its place; the sum of squared
# windows, added likewise, is divided out::
#
#     t, x = istft(z, nperseg=128)


def istft(
    Zxx: ArrayLike,
    fs: ArrayLike = 1.0,
    window: object = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """The signal whose `stft` is `Zxx`.

    Args:
        Zxx: transforms, with frequencies along `freq_axis` and times along `time_axis`.
        fs, window, nperseg, noverlap, nfft: as they were given to `stft`; `nperseg` is
            by default what the number of frequencies says.
        input_onesided: whether negative frequencies are left out.
        boundary: whether the signal was continued by half a segment at both ends.
        time_axis, freq_axis: two dimensions.

    Returns:
        Times, and the signal along `time_axis` without `freq_axis`.

    Raises:
        ValueError: lengths or axes do not fit together.

    >>> from verax.scipy.signal import stft
    >>> x = vnp.arange(32.0)
    >>> _, back = istft(stft(x, nperseg=8)[2], nperseg=8)
    >>> bool(vnp.allclose(back, x, atol=1e-3))
    True
    """
    z = inexact_array("istft", Zxx)
    times_at = canonical_axis("istft", time_axis, z.ndim)
    frequencies_at = canonical_axis("istft", freq_axis, z.ndim)
    if times_at == frequencies_at:
        raise ValueError("istft: time_axis and freq_axis must differ")
    spectra = vnp.moveaxis(z, (times_at, frequencies_at), (-2, -1))
    size, step, points = lengths(
        spectra.shape[-1], nperseg, noverlap, nfft, input_onesided
    )
    values = window_of("istft", window, size, size)
    back = vnp.fft.irfft if input_onesided else vnp.fft.ifft
    pieces = back(to_complex(spectra), n=points)[..., :size]
    pieces = to_complex(pieces) if np.iscomplexobj(values) else pieces
    like = pieces if np.iscomplexobj(values) else pieces.real
    count = pieces.shape[-2]
    places = np.arange(count)[:, None] * step + np.arange(size)[None, :]
    total = vnp.zeros((*pieces.shape[:-2], (count - 1) * step + size), pieces.dtype)
    scaled = pieces * row(values, like).astype(pieces.dtype) * values.sum().item()
    total = total.at[..., places].add(scaled)
    weights = np.zeros(total.shape[-1], np.result_type(values, np.float64))
    squares = np.tile(values.astype(weights.dtype) ** 2, (count, 1))
    np.add.at(weights, places, squares)
    half = size // 2 if boundary else 0
    inner = slice(half, total.shape[-1] - half)
    weights = np.where(weights > 1e-10, weights, 1.0)[inner]
    x = total[..., inner] / row(weights, like[..., 0]).astype(total.dtype)
    time = vnp.arange(x.shape[-1], dtype=like.real.dtype) / fs
    at = times_at - (frequencies_at < times_at)
    return time, vnp.moveaxis(x, -1, at)


def lengths(
    frequencies: int,
    nperseg: int | None,
    noverlap: int | None,
    nfft: int | None,
    onesided: bool,
) -> tuple[int, int, int]:
    """The length of segments, the step between them, and the length of transforms.

    Raises:
        ValueError: they do not fit together.
    """
    usual = 2 * (frequencies - 1) if onesided else frequencies
    size = usual if nperseg is None else operator.index(nperseg)
    if nfft is None:
        # One frequency more or less is all that tells odd lengths from even ones.
        points = usual + 1 if onesided and size == usual + 1 else usual
    else:
        points = operator.index(nfft)
    overlap = size // 2 if noverlap is None else operator.index(noverlap)
    if size < 1 or points < size or not 0 <= overlap < size:
        raise ValueError(
            "istft: nperseg must be positive, nfft at least nperseg and noverlap less "
            f"than it, not {size}, {points} and {overlap}"
        )
    return size, size - overlap, points
