"""Floor 6: window functions of a known size.

One idea: a window depends on nothing but its size, so it is a constant, computed in
double precision; except that of Kaiser, which can be differentiated by its shape::

    spectrum = fft.rfft(x * hanning(x.size))
"""

from collections.abc import Callable

import numpy as np

from verax.ir.dtypes import (
    numpy_dtype,
)
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    default_float,
    inexact_array,
    promote,
)
from verax.numpy.elementwise.arithmetic import (
    multiply,
    true_divide,
)
from verax.numpy.elementwise.transcendental import i0
from verax.rules.values.array import Array
from verax.rules.values.sizes import ShapeError


def window(name: str, function: Callable[[int], np.ndarray], size: int) -> Array:
    """The window of `size` points as an array of the default float.

    Raises:
        ValueError: the size is negative.
    """
    count = int(size)
    if count < 0:
        raise ShapeError(f"{name}: the size must not be negative, but is {count}")
    dtype = default_float()
    return as_array(name, function(count).astype(dtype))


def bartlett(M: int) -> Array:
    """The triangle of `M` points that is 0 at both ends and 1 in the middle.

    For even `M`, no point lies in the middle.

    Args:
        M: the number of points, known while tracing.

    Returns:
        A vector of `M` elements of the default float; of the single element 1 for one
        point.

    Raises:
        ValueError: `M` is negative.

    >>> import verax.numpy as vnp
    >>> vnp.bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return window("bartlett", np.bartlett, M)


def blackman(M: int) -> Array:
    """The window `0.42 - 0.5 cos(2 pi n / (M-1)) + 0.08 cos(4 pi n / (M-1))`.

    Args:
        M: the number of points n from 0 on, known while tracing.

    Returns:
        A vector of `M` elements of the default float; of the single element 1 for one
        point.

    Raises:
        ValueError: `M` is negative.

    >>> import verax.numpy as vnp
    >>> abs(vnp.blackman(5).round(3))
    Array([0.  , 0.34, 1.  , 0.34, 0.  ], dtype=float32)
    """
    return window("blackman", np.blackman, M)


def hamming(M: int) -> Array:
    """The window `0.54 - 0.46 cos(2 pi n / (M-1))`.

    Args:
        M: the number of points n from 0 on, known while tracing.

    Returns:
        A vector of `M` elements of the default float; of the single element 1 for one
        point.

    Raises:
        ValueError: `M` is negative.

    >>> import verax.numpy as vnp
    >>> vnp.hamming(5)
    Array([0.08, 0.54, 1.  , 0.54, 0.08], dtype=float32)
    """
    return window("hamming", np.hamming, M)


def hanning(M: int) -> Array:
    """The window `0.5 - 0.5 cos(2 pi n / (M-1))`.

    Args:
        M: the number of points n from 0 on, known while tracing.

    Returns:
        A vector of `M` elements of the default float; of the single element 1 for one
        point.

    Raises:
        ValueError: `M` is negative.

    >>> import verax.numpy as vnp
    >>> vnp.hanning(5), vnp.hanning(1)
    (Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32), Array([1.], dtype=float32))
    """
    return window("hanning", np.hanning, M)


def kaiser(M: int, beta: ArrayLike) -> Array:
    """The window `I0(beta sqrt(1 - (2n / (M-1) - 1)²)) / I0(beta)`; see `i0`.

    Args:
        M: the number of points n from 0 on, known while tracing.
        beta: a scalar, which may be traced and differentiated by: 0 for a rectangle,
            and the larger, the narrower the window.

    Returns:
        A vector of `M` elements of the default float, whatever the dtype of `beta`.

    Raises:
        ValueError: `beta` is not a scalar, or `M` is negative.

    >>> import verax.numpy as vnp
    >>> vnp.kaiser(5, 0.0)
    Array([1., 1., 1., 1., 1.], dtype=float32)
    >>> vnp.kaiser(5, 3.0).round(3)
    Array([0.205, 0.727, 1.   , 0.727, 0.205], dtype=float32)
    """
    value = inexact_array("kaiser", beta)
    if value.ndim:
        raise ValueError(f"kaiser: beta must be a scalar, not {value.aval}")
    line = window("kaiser", np.ones, M)
    if line.size < 2:
        return line
    places = np.linspace(-1, 1, line.size)
    arc = np.sqrt(1 - places**2).astype(numpy_dtype(line.dtype))
    value, arc = promote("kaiser", value, arc)
    return true_divide(i0(multiply(value, arc)), i0(value))
