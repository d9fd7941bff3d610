"""Floor 6: error functions and modified Bessel functions that are rows of the table.

One idea: a row holds the series and its derivative; what is here takes arrays of any
shapes, and multiplies by what the row leaves out::

    erf(x), erfinv(y), i0(x), i0e(x)
"""

from verax.backend.eager.composites import remembered
from verax.numpy.arguments.arguments import (
    ArrayLike,
)
from verax.ops.elementwise.arith import abs as magnitude, mul
from verax.ops.elementwise.exp_log import exp
from verax.ops.special import bessel, erf_gamma
from verax.ops.special.erf_gamma import erfc as complement
from verax.rules.values.array import Array
from verax.scipy.special.arguments import in_wide, row


def erf(x: ArrayLike) -> Array:
    """2/√π times the integral of exp(-t²) from 0 to x; DLMF 7.2.1.

    Args:
        x: an array or scalar of real numbers; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers.

    Raises:
        TypeError: `x` is complex.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.erf(vnp.array([-10.0, 0.0, 1.0])).round(4)
    Array([-1.    ,  0.    ,  0.8427], dtype=float32)
    """
    return row("erf", erf_gamma.erf, x)


def erfc(x: ArrayLike) -> Array:
    """1 - erf(x), accurate for large x.

    Args:
        x: an array or scalar of real numbers; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers.

    Raises:
        TypeError: `x` is complex.

    >>> from verax.scipy import special
    >>> 1 - special.erf(5.0).item(), special.erfc(5.0).item()
    (0.0, 1.537...e-12)
    """
    return row("erfc", complement, x)


def erfinv(x: ArrayLike) -> Array:
    """The number whose error function is x.

    Args:
        x: an array or scalar of numbers in [-1, 1]; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers. Infinite at -1 and 1, NaN
        outside.

    Raises:
        TypeError: `x` is complex.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.erfinv(vnp.array([-1.0, 0.0, 2.0]))
    Array([-inf,   0.,  nan], dtype=float32)
    """
    return row("erfinv", erf_gamma.erf_inv, x)


def i0e(x: ArrayLike) -> Array:
    """exp(-|x|) times the modified Bessel function of order 0.

    Args:
        x: an array or scalar of real numbers; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers.

    Raises:
        TypeError: `x` is complex.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.i0e(vnp.array([1.0, 1000.0])).round(4)
    Array([0.4658, 0.0126], dtype=float32)
    """
    return row("i0e", bessel.bessel_i0e, x)


def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of order 0; DLMF 10.25.

    Args:
        x: an array or scalar of real numbers; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers. float32 overflows beyond about
        91, `i0e` does not.

    Raises:
        TypeError: `x` is complex.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.i0(vnp.array([0.0, 1.0, -1.0, 100.0])).round(4)
    Array([1.    , 1.2661, 1.2661,    inf], dtype=float32)
    """
    return in_wide("i0", lambda z: scaled_up(z, bessel.bessel_i0e(z)), x)


def scaled_up(z: Array, array: Array) -> Array:
    """A function times exp |z|, in two steps so that only the result overflows."""
    half = exp(mul(magnitude(z), 0.5))
    return mul(mul(array, half), half)


@remembered
def i1e(x: ArrayLike) -> Array:
    """exp(-|x|) times the modified Bessel function of order 1.

    Args:
        x: an array or scalar of real numbers; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers.

    Raises:
        TypeError: `x` is complex.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.i1e(vnp.array([1.0, 1000.0])).round(4)
    Array([0.2079, 0.0126], dtype=float32)
    """
    return row("i1e", bessel.bessel_i1e, x)


@remembered
def i1(x: ArrayLike) -> Array:
    """The modified Bessel function of order 1; DLMF 10.25.

    Args:
        x: an array or scalar of real numbers; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers. float32 overflows beyond about
        91, `i1e` does not.

    Raises:
        TypeError: `x` is complex.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.i1(vnp.array([0.0, 1.0, -1.0, 100.0])).round(4)
    Array([ 0.    ,  0.5652, -0.5652,     inf], dtype=float32)
    """
    return in_wide("i1", lambda z: scaled_up(z, bessel.bessel_i1e(z)), x)
