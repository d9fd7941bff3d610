"""Floor 2: the remainder of a division, exactly.

x less a whole multiple of y is a float again; it is computed where the multiple is
small enough that its product with each part of y is exact::

    rem(x, y) = x - y trunc(x / y)
"""

from typing import Final

import numpy as np

from verax.ir.dtypes import float32, float64
from verax.ops.elementwise.arith import abs as magnitude, add, div, mul, sub
from verax.ops.elementwise.bits import bitwise_and
from verax.ops.elementwise.compare import eq, ge, le, lt
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.kernels.parts import (
    PerDtype,
    upper_half,
    with_sign_of,
)
from verax.ops.elementwise.rounding import floor
from verax.ops.elementwise.select import select
from verax.rules.values.array import Array

MULTIPLE: Final[PerDtype[float]] = {float32: 2.0**28, float64: 2.0**25}
"""Multiples below have exact products with y, or with either half of it."""


def is_near(x: Array, y: Array) -> Array:
    """Whether x is a small multiple of y, and no infinity."""
    size = magnitude(x)
    return bitwise_and(le(size, mul(magnitude(y), MULTIPLE[x.dtype])), lt(size, np.inf))


def rem(x: Array, y: Array) -> Array:
    """x less a multiple of y, of smaller magnitude than y, with the sign of x."""
    size, divisor = magnitude(x), magnitude(y)
    if x.dtype == float32:
        wide = positive_rest(convert(size, float64), convert(divisor, float64))
        rest = convert(wide, float32)
    else:
        rest = positive_rest(size, divisor)
    return with_sign_of(select(eq(divisor, np.inf), size, rest), x)


def positive_rest(x: Array, y: Array) -> Array:
    """The remainder of two numbers without a sign, in double precision."""
    multiple = floor(div(x, y))
    high = upper_half(y)
    low = sub(y, high)
    rest = sub(sub(x, mul(multiple, high)), mul(multiple, low))
    rest = select(lt(rest, 0.0), add(rest, y), rest)
    return select(ge(rest, y), sub(rest, y), rest)
