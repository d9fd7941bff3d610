"""Floor 6: relatives of the gamma function: binomials, Pochhammer's symbol, Bernoulli.

comb(5, 2), poch(0.5, 3), loggamma(1 + 2j), bernoulli(8)
"""

import math
import operator
from fractions import Fraction
from typing import Final

import numpy as np

from verax import numpy as vnp
from verax.ir.dtypes import is_complex
from verax.lax import stop_gradient
from verax.numpy import where
from verax.numpy.arguments.arguments import ArrayLike
from verax.ops.special.erf_gamma import lgamma
from verax.rules.values.array import Array
from verax.scipy.special.functions import gammasgn, in_wide, inexact

# B_2k / (2k (2k - 1)), for Stirling's series.
STIRLING: Final = (
    1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156,
    -3617 / 122400, 43867 / 244188,
)  # fmt: skip
# So far the argument is moved before that series is good enough.
SHIFT: Final = 10


def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """How many ways there are to take k of N things, as a float.

    With `repetition` a thing may be taken again. 0 if there are none.

    >>> round(float(comb(5, 2)), 3), round(float(comb(5, 2, repetition=True)), 3)
    (10.0, 15.0)
    """
    return in_wide("comb", repeated if repetition else combinations, N, k)


def repeated(n: Array, taken: Array) -> Array:
    """Ways to take so many of n things, each of them again and again."""
    found = combinations(n + taken - 1, taken)
    return where((taken == 0) & (n >= 0), 1.0, found)


def combinations(n: Array, taken: Array) -> Array:
    """Ways to take so many of n things."""
    possible = (taken <= n) & (n >= 0) & (taken >= 0)
    n, taken = where(possible, n, 0.0), where(possible, taken, 0.0)
    logarithm = lgamma(n + 1) - lgamma(taken + 1) - lgamma(n - taken + 1)
    found = vnp.exp(logarithm)
    # Integers in give integers out.
    whole = (n == vnp.floor(n)) & (taken == vnp.floor(taken)) & (found < 1e5)
    exact = found + stop_gradient(vnp.round(found) - found)
    return where(possible, where(whole, exact, found), 0.0)


def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Pochhammer's symbol Γ(z + m) / Γ(z).

    >>> round(float(poch(2.0, 3.0)), 3)
    24.0
    """
    return in_wide("poch", pochhammer, z, m)


def pochhammer(x: Array, steps: Array) -> Array:
    """`poch` of float32 or float64."""
    top = x + steps
    # From one pole to another the symbol is finite: both are turned around 1/2.
    poles = (x <= 0) & (x == vnp.floor(x)) & (top <= 0) & (top == vnp.floor(top))
    a, b = where(poles, 1 - top, x), where(poles, 1 - x, top)
    signs = gammasgn(a) * gammasgn(b)
    sign = where(poles, where(steps % 2 == 0, 1.0, -1.0), signs)
    infinite = (top <= 0) & (top == vnp.floor(top)) & ~poles
    found = where(infinite, np.inf, sign * vnp.exp(lgamma(b) - lgamma(a)))
    gone = (x <= 0) & (x == vnp.floor(x)) & ~poles
    return where(steps == 0, 1.0, where(gone, 0.0, found))


def bernoulli(n: int) -> Array:
    """Bernoulli's numbers B_0 to B_n, with B_1 = -1/2.

    Raises:
        TypeError: n is not an integer known while tracing.
        ValueError: n is negative.

    >>> bernoulli(4)[3:].round(4).tolist()
    [0.0, -0.033...]
    """
    last = operator.index(n)
    if last < 0:
        raise ValueError(f"bernoulli: n must not be negative, but is {last}")
    numbers = [Fraction(1)]
    for m in range(1, last + 1):
        some = sum(math.comb(m + 1, k) * b for k, b in enumerate(numbers) if b)
        numbers.append(
            -Fraction(some) / (m + 1) if m == 1 or m % 2 == 0 else Fraction(0)
        )
    return vnp.array(np.array([rounded(b) for b in numbers]), dtype=float)


def rounded(x: Fraction) -> float:
    """A fraction as a float, infinite beyond the largest."""
    try:
        return float(x)
    except OverflowError:
        return math.copysign(math.inf, x)


def loggamma(x: ArrayLike) -> Array:
    """The principal branch of log Γ, real or complex.

    NaN for negative real numbers: there it is complex.

    >>> loggamma(1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    (z,) = inexact("loggamma", x)
    if not is_complex(z.dtype):
        return where(z >= 0, lgamma(where(z >= 0, z, 1.0)), np.nan)
    left = z.real < 0.5
    below = z.imag < 0
    upper = where(below, vnp.conj(z), z)
    reflected = where(left, upper, 1j).astype(z.dtype)
    # log sin πz on the branch that is smooth in the upper half plane.
    sine = -1j * math.pi * (reflected - 0.5) + vnp.log1p(
        -vnp.exp(2j * math.pi * reflected)
    )
    right = stirling(where(left, 1 - upper, upper))
    found = where(left, math.log(2 * math.pi) - sine - right, right)
    found = where(below, vnp.conj(found), found).astype(z.dtype)
    pole = (z.imag == 0) & (z.real <= 0) & (z.real == vnp.floor(z.real))
    return where(pole, np.nan, found)


def stirling(z: Array) -> Array:
    """log Γ(z) for Re z >= 1/2: far to the right, less the logarithms on the way."""
    far = z + SHIFT
    total = (far - 0.5) * vnp.log(far) - far + 0.5 * math.log(2 * math.pi)
    inverse = 1 / far
    power = inverse
    for c in STIRLING:
        total = total + c * power
        power = power * inverse * inverse
    for k in range(SHIFT):
        total = total - vnp.log(z + k)
    return total
