"""Floor 6: window functions of a known size.

One idea: a window depends on nothing but its size, so it is a constant, computed in
double precision; except that of Kaiser, which can be differentiated by its shape::

    spectrum = fft.rfft(x * hanning(x.size))
"""

from collections.abc import Callable

import numpy as np

from verax.ir.dtypes import numpy_dtype
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    default_float,
    inexact_array,
)
from verax.numpy.elementwise.arithmetic import multiply, true_divide
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
    """The triangle of `M` points that is 0 at both ends and 1 in the middle."""
    return window("bartlett", np.bartlett, M)


def blackman(M: int) -> Array:
    """The window 0.42 - 0.5 cos(2 pi n / (M-1)) + 0.08 cos(4 pi n / (M-1))."""
    return window("blackman", np.blackman, M)


def hamming(M: int) -> Array:
    """The window 0.54 - 0.46 cos(2 pi n / (M-1))."""
    return window("hamming", np.hamming, M)


def hanning(M: int) -> Array:
    """The window 0.5 - 0.5 cos(2 pi n / (M-1))."""
    return window("hanning", np.hanning, M)


def kaiser(M: int, beta: ArrayLike) -> Array:
    """The window I0(beta sqrt(1 - (2n / (M-1) - 1)²)) / I0(beta); see `i0`.

    Raises:
        ValueError: `beta` is not a scalar.
    """
    value = inexact_array("kaiser", beta)
    if value.ndim:
        raise ValueError(f"kaiser: beta must be a scalar, not {value.aval}")
    line = window("kaiser", np.ones, M)
    if line.size < 2:
        return line
    places = np.linspace(-1, 1, line.size)
    arc = np.sqrt(1 - places**2).astype(numpy_dtype(value.dtype))
    return true_divide(i0(multiply(value, arc)), i0(value))
