"""Floor 2: the logarithm of the gamma function, as a program of simpler operations.

One idea: a Taylor series around 2, where the function has a zero that must stay one;
other numbers come there by Γ(x + 1) = x Γ(x), and far ones have Stirling's series::

    log_gamma(x)          # what `lgamma` lowers to

The formulas are those of the NIST Digital Library of Mathematical Functions, 5.5.1,
5.5.3, 5.7.3 and 5.11.1.
"""

import math
from typing import Final

import numpy as np

from verax.ir.limits import finfo
from verax.ops.elementwise.arith import abs as magnitude, add, div, mul, neg, sub
from verax.ops.elementwise.bits import bitwise_and
from verax.ops.elementwise.compare import eq, ge, gt, lt, ne
from verax.ops.elementwise.exp_log import log
from verax.ops.elementwise.rounding import round as nearest
from verax.ops.elementwise.select import select
from verax.ops.elementwise.trig import sin
from verax.ops.structure.create import full_like
from verax.rules.values.array import Array

FAR: Final = 8.0
"""From here on Stirling's series has all digits of double precision."""
SLOPE: Final = 0.42278433509846713939
"""1 less Euler's constant, the slope at 2."""
# (-1)^k (ζ(k) - 1) / k for k = 2, 3, ...
TAYLOR: Final = (
    0.322467033424113218, -0.0673523010531980951, 0.0205808084277845479,
    -0.00738555102867398527, 0.00289051033074152329, -0.00119275391170326098,
    0.000509669524743042422, -0.00022315475845357938, 0.0000994575127818085337,
    -0.0000449262367381331417, 0.0000205072127756706916, -9.4394882752683959e-6,
    4.3748667899074878e-6, -2.03921575380136624e-6, 9.55141213040741983e-7,
    -4.49246919876456604e-7, 2.12071848055546659e-7, -1.00432248239680996e-7,
    4.76981016936398057e-8, -2.27110946089431649e-8, 1.08386592148969541e-8,
    -5.18347504197004666e-9, 2.48367454380247832e-9, -1.19214014058609121e-9,
    5.73136724167886201e-10, -2.75952288512423315e-10, 1.33047643742444895e-10,
)  # fmt: skip
# B_2k / (2k (2k - 1)) for k = 1, 2, ...
STIRLING: Final = (
    1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156,
    -3617 / 122400, 43867 / 244188,
)  # fmt: skip


def horner(x: Array, coefficients: tuple[float, ...]) -> Array:
    """The polynomial with these coefficients, the constant one first."""
    total = full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = add(mul(total, x), c)
    return total


def needed(x: Array, terms: tuple[float, ...], single: int) -> tuple[float, ...]:
    """The terms of a series that a dtype can see."""
    return terms if finfo(x.dtype).bits > 32 else terms[:single]


def stirling_rest(x: Array) -> Array:
    """log Γ(x) - (x - 1/2) log x + x - log √(2π) for x of 8 or more."""
    inverse = div(1.0, x)
    return mul(horner(mul(inverse, inverse), needed(x, STIRLING, 4)), inverse)


def log_gamma(x: Array) -> tuple[Array]:
    """log |Γ(x)|, infinite at poles and at both ends."""
    negative = lt(x, 0.0)
    size = magnitude(x)
    whole = nearest(x)
    found = of_positive(size)
    # Γ(x) Γ(-x) = -π / (x sin πx); the sine of a small angle is exact.
    sine = magnitude(sin(mul(sub(x, whole), math.pi)))
    inside = bitwise_and(negative, ne(x, whole))
    turned = log(div(math.pi, select(inside, mul(size, sine), full_like(x, 1))))
    below = select(inside, sub(turned, found), full_like(x, np.inf))
    found = select(negative, below, found)
    return (select(eq(size, full_like(x, np.inf)), size, found),)


def of_positive(x: Array) -> Array:
    """log Γ(x) for x of 0 or more."""
    far, one = ge(x, FAR), full_like(x, 1)
    near = select(far, full_like(x, 2), x)
    # To 1.5 <= y <= 2.5, with log Γ(x) = log Γ(y) + log(factor) where x was larger
    # and - log(factor) where it was smaller.
    up = lt(near, 1.5)
    small = lt(near, 0.5)
    z = select(small, near, sub(near, select(up, one, full_like(x, 2))))
    factor = select(small, mul(near, add(near, 1.0)), select(up, near, one))
    steps = full_like(x, 0)
    for k in range(1, 7):
        beyond = gt(near, k + 1.5)
        factor = select(beyond, mul(factor, sub(near, float(k))), factor)
        steps = select(beyond, full_like(x, k), steps)
    z = sub(z, steps)
    logarithm = log(select(far, x, factor))
    taylor = mul(z, add(mul(z, horner(z, needed(z, TAYLOR, 12))), SLOPE))
    middle = add(taylor, select(up, neg(logarithm), logarithm))
    away = select(far, x, full_like(x, FAR))
    main = add(mul(away, sub(logarithm, 1.0)), mul(logarithm, -0.5))
    stirling = add(main, add(stirling_rest(away), 0.5 * math.log(2 * math.pi)))
    return select(far, stirling, middle)
