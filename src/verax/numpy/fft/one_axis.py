"""Floor 6: Fourier transforms along one axis, with NumPy's names and arguments.

One idea: each is the transform along one axis, and Hermitian signals are those of
`irfft` and `rfft` with the norm the other way round::

    fft(x), rfft(x), irfft(y, n=5), hfft(x, norm="ortho")
"""

from verax.backend.eager.composites import remembered
from verax.numpy.arguments.arguments import (
    ArrayLike,
)
from verax.numpy.elementwise.float_parts import conjugate
from verax.numpy.fft.transform import Norm, along, one, transform
from verax.rules.values.array import Array

SWAPPED: dict[Norm, str] = {
    None: "forward",
    "backward": "forward",
    "forward": "backward",
}


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
