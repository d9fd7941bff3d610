"""Floor 2: the derivative of Hurwitz's zeta function in its exponent.

The sum's first terms, and Euler and Maclaurin's formula for the others, each
differentiated (DLMF 25.11.5); a is q plus the number of first terms::

    ζ(x, q) = Σ (q + n)^-x + a^(1 - x) / (x - 1) + a^-x / 2 + Σ B_2k / (2k)! …
"""

from typing import Final

import numpy as np

from verax.ops.elementwise.arith import add, div, mul, neg, sub
from verax.ops.elementwise.compare import lt
from verax.ops.elementwise.exp_log import log, pow
from verax.ops.elementwise.select import select
from verax.rules.values.array import Array

FIRST: Final = 10
"""Terms that are summed one by one."""
# B_2k / (2k)!, the Bernoulli numbers by factorials.
BERNOULLI: Final = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160,
    -691 / 1307674368000, 1 / 74724249600, -3617 / 10670622842880000,
)  # fmt: skip


def zeta_slope(x: Array, q: Array) -> Array:
    """The derivative of ζ(x, q) in x, for x from 1 on; NaN below."""
    total = neg(weighted(x, q))
    for n in range(1, FIRST):
        total = sub(total, weighted(x, add(q, float(n))))
    a, over = add(q, float(FIRST)), sub(x, 1.0)
    size, power = log(a), pow(a, neg(x))
    integral = mul(div(mul(a, power), over), add(size, div(1.0, over)))
    total = sub(sub(total, integral), mul(mul(size, power), 0.5))
    # The product of x, x + 1, ... by the power of a, and the sum of their reciprocals.
    term, sums, square = div(mul(x, power), a), div(1.0, x), mul(a, a)
    for k, factor in enumerate(BERNOULLI):
        total = add(total, mul(mul(term, sub(sums, size)), factor))
        pair = add(x, 2.0 * k + 1), add(x, 2.0 * k + 2)
        term = div(mul(mul(term, pair[0]), pair[1]), square)
        sums = add(add(sums, div(1.0, pair[0])), div(1.0, pair[1]))
    return select(lt(x, 1.0), np.nan, total)


def weighted(x: Array, a: Array) -> Array:
    """log(a) a^-x."""
    return mul(log(a), pow(a, neg(x)))
