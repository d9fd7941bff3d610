"""Floor 6: the frequencies of a spectrum, and shifts that put zero in its middle.

One idea: frequencies stand in the order of the transforms, which begins with zero::

    fftfreq(8, d=0.1), rfftfreq(8), fftshift(x)
"""

import operator
from collections.abc import Sequence

import numpy as np

from verax.backend.eager.composites import remembered
from verax.ir.dtypes import DTypeLike
from verax.numpy.arguments.arguments import (
    ArrayLike,
    Axis,
    as_array,
    reduction_axes,
)
from verax.numpy.creation.creation import Placement, asarray, made
from verax.numpy.shaping.reversals import roll
from verax.ops.elementwise.arith import div
from verax.ops.structure.create import full_like
from verax.rules.values.array import Array


def counted(name: str, n: int) -> int:
    """The length of the signals whose frequencies are asked for."""
    if isinstance(n, Sequence) or np.ndim(n):
        raise ValueError(
            f"The n argument of verax.numpy.fft.{name} only takes an int. Got n = {n}."
        )
    return operator.index(n)


def distance(name: str, d: ArrayLike) -> ArrayLike:
    """The distance between samples."""
    if isinstance(d, list | tuple) or np.ndim(d):
        raise ValueError(
            f"The d argument of verax.numpy.fft.{name} only takes a single value. "
            f"Got d = {d}."
        )
    return d


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
    space = distance("fftfreq", d)
    return made("fftfreq", frequencies(numbers, count, space, dtype), device)


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
    space = distance("rfftfreq", d)
    return made("rfftfreq", frequencies(numbers, count, space, dtype), device)


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
