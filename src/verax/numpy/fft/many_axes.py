"""Floor 6: Fourier transforms over several axes, with NumPy's names and arguments.

One idea: a transform over two axes is that over several, whose default is two::

    fftn(a, axes=(0, 1), norm="ortho"), rfft2(a), irfftn(y, s=(4, 5))
"""

from collections.abc import Sequence, Sized

from verax.backend.eager.composites import remembered
from verax.numpy.arguments.arguments import (
    ArrayLike,
)
from verax.numpy.fft.transform import Norm, transform
from verax.rules.values.array import Array
from verax.rules.values.conversions import shown


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
            f"verax.numpy.fft.{name} only supports 2 axes. Got axes = {axes}."
        )
    return axes
