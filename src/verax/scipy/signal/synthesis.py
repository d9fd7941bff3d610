"""Floor 6: a signal from its short-time Fourier transform.

One idea: each segment is transformed back and added at its place; the sum of squared
windows, added likewise, is divided out::

    t, x = istft(z, nperseg=128)
"""

import operator

import numpy as np

from verax import numpy as vnp
from verax.numpy.arguments.arguments import ArrayLike, canonical_axis, inexact_array
from verax.rules.values.array import Array
from verax.scipy.signal.spectra import window_of
from verax.scipy.tables import row, to_complex


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
    shape = row(values, pieces.real)
    count = pieces.shape[-2]
    places = np.arange(count)[:, None] * step + np.arange(size)[None, :]
    total = vnp.zeros((*pieces.shape[:-2], (count - 1) * step + size), pieces.dtype)
    total = total.at[..., places].add(pieces * shape * float(values.sum()))
    weights = np.bincount(places.ravel(), np.tile(values**2, count))
    half = size // 2 if boundary else 0
    inner = slice(half, total.shape[-1] - half)
    weights = np.where(weights > 1e-10, weights, 1.0)[inner]
    x = total[..., inner] / row(weights, total.real)
    time = vnp.arange(x.shape[-1], dtype=shape.dtype) / fs
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
