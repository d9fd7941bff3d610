"""Floor 6: special functions of complex numbers.

One idea: what a function is in one half of the plane follows from the other, by
reflection, so that a series is needed where it is accurate alone::

    gamma(z)                       # pi / (sin(pi z) gamma(1 - z)) left of 1/2
"""

import math
from collections.abc import Callable
from typing import Final

from verax.ops.elementwise.arith import (
    add,
    complex as complex_of,
    conj,
    div,
    imag,
    mul,
    real,
    sub,
)
from verax.ops.elementwise.bits import bitwise_and, bitwise_not, bitwise_or
from verax.ops.elementwise.compare import eq, ge, lt, ne
from verax.ops.elementwise.exp_log import exp, expm1, log, log1p
from verax.ops.elementwise.rounding import floor
from verax.ops.elementwise.select import select
from verax.ops.structure.create import full_like
from verax.rules.values.array import Array

SHIFT: Final = 7.0
LANCZOS: Final = (
    0.99999999999980993,
    676.5203681218851,
    -1259.1392167224028,
    771.32342877765313,
    -176.61502916214059,
    12.507343278686905,
    -0.13857109526572012,
    9.9843695780195716e-6,
    1.5056327351493116e-7,
)
"""Godfrey's coefficients of Lanczos's series for the shift 7."""


def gamma(z: Array) -> Array:
    """Γ(z), by Lanczos's series and the reflection DLMF 5.5.3; NaN at the poles.

    The lower half of the plane follows from the upper one: Γ(z*) = Γ(z)*.
    """
    lower = lt(imag(z), 0.0)
    upper = select(lower, conj(z), z)
    left = lt(real(z), 0.5)
    whole = bitwise_and(eq(imag(z), 0.0), eq(real(z), floor(real(z))))
    pole = bitwise_and(whole, left)
    # Left of 1/2, 1 - z is in the lower half of the plane; the series does not mind.
    direct = log_series(select(left, sub(1.0, upper), upper))
    idle = bitwise_or(pole, bitwise_not(left))
    sine = log_sine(select(idle, full_like(z, 0.25), upper))
    mirrored = sub(sub(math.log(math.pi), sine), direct)
    value = exp(select(left, mirrored, direct))
    value = select(lower, conj(value), value)
    return select(pole, full_like(value, complex(math.nan, math.nan)), value)


def log_series(z: Array) -> Array:
    """A logarithm of Γ(z), right of 1/2."""
    terms = full_like(z, LANCZOS[0])
    for k, coefficient in enumerate(LANCZOS[1:]):
        terms = add(terms, div(full_like(z, coefficient), add(z, float(k))))
    t = add(z, SHIFT - 0.5)
    power = sub(mul(sub(z, 0.5), log(t)), t)
    return add(add(power, log(terms)), 0.5 * math.log(2 * math.pi))


def log_sine(z: Array) -> Array:
    """A logarithm of sin(pi z) in the upper half of the plane, where it may be large.

    sin(pi z) = i/2 exp(-i pi w) (1 - exp(2 i pi w)), up to the sign that the whole part
    of z, which w lacks, gives it.
    """
    whole = floor(add(real(z), 0.5))
    odd = ge(sub(whole, mul(2.0, floor(mul(whole, 0.5)))), 1.0)
    w = sub(z, complex_of(whole, full_like(whole, 0.0)))
    turned = mul(w, full_like(w, 1j * math.pi))
    size = log(mul(expm1(mul(turned, 2.0)), full_like(w, -0.5j)))
    sign = select(odd, full_like(w, 1j * math.pi), full_like(w, 0.0))
    return add(sub(size, turned), sign)


def times_log(
    function: Callable[[Array], Array], x: Array, y: Array, at: float
) -> Array:
    """x function(y), 0 where x is 0 and the function is infinite: at `at`, far away."""
    far = bitwise_and(ne(sub(y, y), 0.0), eq(y, y))
    infinite = bitwise_or(eq(y, at), far)
    dead = bitwise_and(eq(x, 0.0), infinite)
    return mul(x, function(select(dead, full_like(y, 1.0), y)))


def xlogy(x: Array, y: Array) -> Array:
    """x log y, 0 where x is 0 and y is not NaN."""
    return times_log(log, x, y, 0.0)


def xlog1py(x: Array, y: Array) -> Array:
    """x log(1 + y), 0 where x is 0 and y is not NaN."""
    return times_log(log1p, x, y, -1.0)
