"""Floor 2: hyperbolic functions and their inverses, by one exponential or logarithm.

The logarithm of 1 + x is accurate where x is small::

    asinh x = log(1 + x + x² / (1 + √(x² + 1)))
"""

from typing import Final

import numpy as np

from verax.ir.dtypes import float32, float64
from verax.ops.elementwise.arith import (
    abs as magnitude,
    add,
    div,
    min as smaller,
    mul,
    sub,
)
from verax.ops.elementwise.compare import gt, lt
from verax.ops.elementwise.exp_log import exp, log1p, sqrt
from verax.ops.elementwise.kernels.logarithms import LN2
from verax.ops.elementwise.kernels.parts import PerDtype, odd, with_sign_of
from verax.ops.elementwise.select import select
from verax.rules.values.array import Array

# (sinh √z - √z) / z^3/2
SINH: Final = (
    0.16666666666666669,
    0.008333333333333148,
    0.0001984126984143185,
    2.7557319157078425e-06,
    2.5052123135694987e-08,
    1.6057259847944788e-10,
    7.75874642299772e-13,
)
FAR: Final = 1e17
"""From here on a number and 1 more are the same."""
LAST: Final[PerDtype[float]] = {float32: 87.0, float64: 700.0}
"""Exponents below have finite exponentials."""


def sinh(x: Array) -> Array:
    """x and a polynomial up to 1, then (e - 1 / e) / 2 with e = exp(x).

    At the ends it is exp(x/2)² / 2.
    """
    size = magnitude(x)
    far = gt(size, LAST[x.dtype])
    e = exp(select(far, mul(size, 0.5), size))
    large = select(far, mul(mul(e, 0.5), e), mul(sub(e, div(1.0, e)), 0.5))
    inner = smaller(size, 1.0)
    small = add(inner, odd(inner, SINH))
    return with_sign_of(select(lt(size, 1.0), small, large), x)


def cosh(x: Array) -> Array:
    """(e + 1 / e) / 2 with e = exp(x), and exp(x/2)² / 2 at the ends."""
    size = magnitude(x)
    far = gt(size, LAST[x.dtype])
    e = exp(select(far, mul(size, 0.5), size))
    near = mul(add(e, div(1.0, e)), 0.5)
    return select(far, mul(mul(e, 0.5), e), near)


def atanh(x: Array) -> Array:
    """log((1 + x) / (1 - x)) / 2."""
    size = magnitude(x)
    y = mul(log1p(div(mul(size, 2.0), sub(1.0, size))), 0.5)
    return with_sign_of(y, x)


def asinh(x: Array) -> Array:
    """log(x + √(x² + 1)); twice a large x is all of that."""
    size = magnitude(x)
    far = gt(size, FAR)
    near = select(far, 0.0, size)
    square = mul(near, near)
    more = div(square, add(sqrt(add(square, 1.0)), 1.0))
    y = log1p(select(far, size, add(near, more)))
    return with_sign_of(select(far, add(y, LN2), y), x)


def acosh(x: Array) -> Array:
    """log(x + √(x² - 1)); twice a large x is all of that."""
    far = gt(x, FAR)
    t = sub(select(far, 1.0, x), 1.0)
    more = add(t, sqrt(add(mul(t, 2.0), mul(t, t))))
    y = log1p(select(far, x, more))
    y = select(far, add(y, LN2), y)
    return select(lt(x, 1.0), np.nan, y)
