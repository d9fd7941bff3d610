"""Floor 2: sine, cosine and tangent, from an angle between -π/4 and π/4.

x is r + k π/2, and polynomials of r give what k chooses among::

    quarters(x)       # r in double precision, and k as an integer

In single precision 1 / 2π in pieces, each of which makes an exact product with x, gives
r for all x (M. Payne and R. Hanek, "Radian Reduction for Trigonometric Functions",
SIGNUM 18, 1983); in double precision π/2 in pieces does up to `MODERATE` (W. Cody and
W. Waite, "Software Manual for the Elementary Functions", 1980).
"""

from typing import Final

from verax.ir.dtypes import float32, float64
from verax.ops.elementwise.arith import abs as magnitude, add, div, mul, sub
from verax.ops.elementwise.bits import bitwise_not
from verax.ops.elementwise.compare import gt, lt
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.kernels.parts import (
    Coefficients,
    PerDtype,
    has_bit,
    horner,
    integer_of,
    nearest,
    negative_where,
    odd,
)
from verax.ops.elementwise.select import select
from verax.rules.values.array import Array

# 1 / 2π in pieces of 30 bits, and the rest.
TURNS: Final = (
    0.15915494319051504,
    -9.861970550091581e-11,
    -8.151878527836852e-20,
    5.666494517031503e-29,
    -4.6390169669477666e-38,
    -1.7578597149294784e-47,
)
# π/2 in pieces of 33 bits, and the rest.
QUARTER: Final = (
    1.5707963267341256,
    6.077100506303966e-11,
    2.0222662487111665e-21,
    8.4784276603689e-32,
)
QUARTER_TURN: Final = 1.5707963267948966
MODERATE: Final = 2.0**20
"""Angles for which k times a piece of π/2 is exact."""
TINY: Final[PerDtype[float]] = {float32: 1e-4, float64: 1e-9}
"""The sine and the tangent of smaller angles are these angles."""
# (sin √z - √z) / z^3/2
SINE: Final[PerDtype[Coefficients]] = {
    float32: (-0.16666654568347586, 0.00833215800364298, -0.0001951489510178719),
    float64: (
        -0.1666666666666663,
        0.008333333333322064,
        -0.0001984126982954245,
        2.7557313603807603e-06,
        -2.5050744831800544e-08,
        1.5896050877721753e-10,
    ),
}
# (cos √z - 1 + z/2) / z²
COSINE: Final[PerDtype[Coefficients]] = {
    float32: (0.04166664560824055, -0.001388731249735898, 2.4432715913725704e-05),
    float64: (
        0.041666666666666595,
        -0.001388888888887297,
        2.4801587288794363e-05,
        -2.755731416194161e-07,
        2.087569838795814e-09,
        -1.135840505747303e-11,
    ),
}
# (tan √z - √z) / z^3/2
TANGENT: Final[PerDtype[Coefficients]] = {
    float32: (
        0.3333334992442605,
        0.13332657281089064,
        0.05406062565416603,
        0.021278411999199016,
        0.010845883314556251,
        7.642174866509512e-05,
        0.004382910382685287,
    ),
    float64: (
        0.3333333333333277,
        0.13333333333415848,
        0.05396825392608751,
        0.021869489622858326,
        0.00886321896938483,
        0.0035922908366246543,
        0.0014547472766899773,
        0.0005951098111409334,
        0.00022224660471478107,
        0.00013680064140083735,
        -2.6774959899390983e-05,
        8.981063057086172e-05,
        -4.5070517500978424e-05,
        2.0910037165182598e-05,
    ),
}


def quarters(x: Array) -> tuple[Array, Array, Array | None]:
    """r, k and what r has been rounded by, if it was: x = r + k π/2 modulo 2π."""
    if x.dtype == float32:
        return (*of_all(convert(x, float64)), None)
    return of_moderate(x)


def of_all(x: Array) -> tuple[Array, Array]:
    """r and k for floats in single precision, held in double."""
    first, *others, last = [mul(x, piece) for piece in TURNS]
    turns = sub(first, nearest(first))
    # From the largest on: where they cancel each other, these sums are exact.
    for part in others:
        turns = add(turns, sub(part, nearest(part)))
    four = mul(add(turns, last), 4.0)
    k = nearest(four)
    r = mul(sub(four, k), QUARTER_TURN)
    return r, integer_of(convert(k, float32))


def of_moderate(x: Array) -> tuple[Array, Array, Array]:
    """r, k and the rest of r for floats in double precision up to `MODERATE`."""
    k = nearest(mul(x, 1 / QUARTER_TURN))
    first, second, *others = [mul(k, piece) for piece in QUARTER]
    near = sub(x, first)  # exactly
    r = sub(near, second)
    rest = sub(sub(near, r), second)
    for part in others:
        rest = sub(rest, part)
    rounded = add(r, rest)
    return rounded, integer_of(k), add(sub(r, rounded), rest)


def is_moderate(x: Array) -> Array:
    """Whether `of_moderate` holds, or gives NaN as it should."""
    return bitwise_not(gt(magnitude(x), MODERATE))


def sine_or_cosine(r: Array, turned: Array) -> Array:
    """The sine of r + k π/2, with the quarters k."""
    square = mul(r, r)
    sine = add(r, odd(r, SINE[r.dtype]))
    bend = sub(mul(square, horner(square, COSINE[r.dtype])), 0.5)
    cosine = add(mul(square, bend), 1.0)
    return negative_where(select(has_bit(turned, 1), cosine, sine), turned, 1)


def sin(x: Array) -> Array:
    """The sine; in double precision of moderate angles."""
    r, k, _ = quarters(x)
    return unless_tiny(x, sine_or_cosine(convert(r, x.dtype), k))


def cos(x: Array) -> Array:
    """The cosine, that is the sine a quarter further."""
    r, k, _ = quarters(x)
    return sine_or_cosine(convert(r, x.dtype), add(k, 1))


def tan(x: Array) -> Array:
    """The tangent, which is -1 / tan r in every other quarter."""
    wide, k, rest = quarters(x)
    r = convert(wide, x.dtype)
    more = odd(r, TANGENT[x.dtype])
    if rest is not None:
        more = add(more, add(rest, mul(rest, mul(r, r))))
    tangent = add(wide, convert(more, wide.dtype))
    swapped = has_bit(k, 1)
    turned = div(select(swapped, -1.0, tangent), select(swapped, tangent, 1.0))
    if rest is not None:
        lost = add(sub(wide, tangent), more)
        turned = add(turned, select(swapped, mul(mul(turned, turned), lost), 0.0))
    return unless_tiny(x, convert(turned, x.dtype))


def unless_tiny(x: Array, y: Array) -> Array:
    """y = f(x) of a function that is x near zero; -0.0 keeps its sign."""
    return select(lt(magnitude(x), TINY[x.dtype]), x, y)
