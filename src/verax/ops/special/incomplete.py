"""Floor 2: the regularised incomplete beta function.

A continued fraction, of the function or of that of the other side, whichever converges
fast::

    betainc(a, b, x)     # the integral of t^(a-1) (1-t)^(b-1) to x, over B(a, b)

Sources: NIST Digital Library of Mathematical Functions, section 8.17; the fraction by
Lentz's method, as in W. H. Press et al., Numerical Recipes, section 6.4.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np

from verax.ir.dtypes import bfloat16, float16, float32, float64
from verax.ir.jaxpr import NO_PARAMS
from verax.ops.base import in_wide, wide
from verax.ops.elementwise.arith import (
    add,
    div,
    max as maximum,
    min as minimum,
    mul,
    neg,
    sub,
)
from verax.ops.elementwise.bits import bitwise_and, bitwise_or
from verax.ops.elementwise.compare import eq, ge, gt, le, lt, ne
from verax.ops.elementwise.exp_log import exp, log, log1p
from verax.ops.elementwise.select import select
from verax.ops.special.bessel import LARGE, MARGIN, in_float32, large, loop, not_zero
from verax.ops.special.erf_gamma import FAR, digamma, lgamma, stirling_rest, underived
from verax.ops.structure.create import full_like
from verax.rules.families.elementwise import elementwise
from verax.rules.programs.derived import lowered
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.kernels import Kernel
from verax.rules.rows.row import Domain, NDArray, Rows
from verax.rules.values.array import Array
from verax.rules.values.constants import FLOAT
from verax.rules.values.operands import alike

IN_PIECES: Final = Kernel.in_pieces(float16, bfloat16, float32, float64)
LOG_SQRT_2_PI: Final = 0.5 * math.log(2 * math.pi)


def beta_start(a: Array, b: Array, x: Array) -> tuple[Array, ...]:
    """Number, operands; c, d and the value; whether to go on."""
    one = full_like(a, 1)
    d = div(one, not_zero(sub(one, div(mul(add(a, b), x), add(a, 1.0)))))
    return full_like(a, 0), a, b, x, one, d, d, eq(a, a)


def beta_step(
    n: Array, a: Array, b: Array, x: Array, c: Array, d: Array, h: Array, going: Array
) -> tuple[Array, ...]:
    """Two more levels of the fraction of the incomplete beta function."""
    n = add(n, 1.0)
    two = add(n, n)
    here = add(a, two)
    even = div(mul(mul(n, sub(b, n)), x), mul(sub(here, 1.0), here))
    odd = neg(div(mul(mul(add(a, n), add(add(a, b), n)), x), mul(here, add(here, 1.0))))
    c, d, ratio = beta_level(even, c, d)
    h = select(going, mul(h, ratio), h)
    c, d, ratio = beta_level(odd, c, d)
    h = select(going, mul(h, ratio), h)
    more = large(sub(ratio, 1.0), ratio, MARGIN)
    return n, a, b, x, c, d, h, bitwise_and(going, more)


def beta_level(top: Array, c: Array, d: Array) -> tuple[Array, Array, Array]:
    """The next c and d of Lentz's method, and the factor of the fraction."""
    d = div(1.0, not_zero(add(mul(top, d), 1.0)))
    c = not_zero(add(div(top, c), 1.0))
    return c, d, mul(d, c)


def beta_inside(a: Array, b: Array, x: Array) -> Array:
    inf = float(np.inf)
    positive = bitwise_and(gt(a, 0.0), gt(b, 0.0))
    finite = bitwise_and(lt(a, inf), lt(b, inf))
    within = bitwise_and(gt(x, 0.0), lt(x, 1.0))
    return bitwise_and(bitwise_and(positive, finite), within)


def turned(a: Array, b: Array, x: Array) -> Array:
    """Flags of arguments for which the other side, I(b, a, 1 - x), converges faster."""
    return gt(x, div(add(a, 1.0), add(add(a, b), 2.0)))


def beta_operands(a: Array, b: Array, x: Array) -> tuple[Array, Array, Array]:
    """The operands of the fraction, harmless ones at the ends."""
    here, other = beta_inside(a, b, x), turned(a, b, x)
    one = full_like(a, 1)
    first, second = select(here, a, one), select(here, b, one)
    place = select(here, x, full_like(x, 0.25))
    back = bitwise_and(here, other)
    return (
        select(back, second, first),
        select(back, first, second),
        select(back, sub(1.0, place), place),
    )


def log_beta(a: Array, b: Array) -> Array:
    """log |B(a, b)|; where a parameter is large, what would cancel is left out.

    That is the difference of two of Stirling's series, DLMF 5.11.1.
    """
    few, many = minimum(a, b), maximum(a, b)
    far = bitwise_and(gt(few, 0.0), ge(many, FAR))
    some = select(far, few, full_like(a, 1))
    most = select(far, many, full_like(b, FAR))
    both = bitwise_and(far, ge(some, FAR))
    plain = sub(add(lgamma(a), lgamma(b)), lgamma(add(a, b)))
    total = add(some, most)
    rest = sub(stirling_rest(most), stirling_rest(total))
    rate = div(some, most)
    # One parameter is large ...
    turn = mul(sub(most, 0.5), neg(log1p(rate)))
    one = add(lgamma(some), add(rest, add(sub(some, mul(some, log(total))), turn)))
    # ... or both are.
    safe = select(both, some, full_like(a, FAR))
    head = add(mul(log(most), -0.5), add(LOG_SQRT_2_PI, add(rest, stirling_rest(safe))))
    share = mul(sub(safe, 0.5), log(div(safe, total)))
    two = add(head, sub(share, mul(most, log1p(rate))))
    array = select(far, select(both, two, one), plain)
    # B is infinite at 0 and 0 at infinity.
    inf = full_like(a, np.inf)
    return select(bitwise_and(gt(few, 0.0), eq(many, inf)), neg(inf), array)


def finish_beta(
    first: Array, second: Array, place: Array, h: Array, a: Array, b: Array, x: Array
) -> tuple[Array]:
    exponent = add(mul(first, log(place)), mul(second, log1p(neg(place))))
    size = exp(sub(exponent, log_beta(first, second)))
    # Where the size is nothing, the fraction may have lost itself among huge numbers.
    value = select(eq(size, 0.0), size, div(mul(size, h), first))
    array = select(turned(a, b, x), sub(1.0, value), value)
    array = select(eq(x, 0.0), full_like(array, 0), array)
    array = select(eq(x, 1.0), full_like(array, 1), array)
    inf, nan = float(np.inf), full_like(array, np.nan)
    to_zero = bitwise_or(eq(b, 0.0), eq(a, inf))
    to_one = bitwise_or(eq(a, 0.0), eq(b, inf))
    interior = bitwise_and(gt(x, 0.0), lt(x, 1.0))
    array = select(bitwise_and(to_zero, interior), full_like(array, 0), array)
    array = select(bitwise_and(to_one, interior), full_like(array, 1), array)
    positive = bitwise_and(le(0.0, a), le(0.0, b))
    usable = bitwise_and(bitwise_and(positive, within(x)), ne(to_zero, to_one))
    usable = bitwise_or(usable, beta_ends(a, b, x))
    return (select(usable, array, nan),)


def beta_ends(a: Array, b: Array, x: Array) -> Array:
    """Flags of positive parameters with x in its interval."""
    inf = float(np.inf)
    finite = bitwise_and(lt(a, inf), lt(b, inf))
    positive = bitwise_and(gt(a, 0.0), gt(b, 0.0))
    return bitwise_and(bitwise_and(positive, finite), within(x))


def within(x: Array) -> Array:
    return bitwise_and(le(0.0, x), le(x, 1.0))


def lower_beta(e: Emitter, xs: Sequence[Operand]) -> Sequence[Operand]:
    given = lowered(e, xs, beta_operands)
    state = loop(e, beta_start, beta_step, given)
    return lowered(e, (*given, state[6], *xs), finish_beta)


def reference_beta(a: NDArray, b: NDArray, x: NDArray) -> NDArray:
    positive = (a > 0) & (b > 0) & np.isfinite(a) & np.isfinite(b)
    # SciPy's own single precision keeps five digits.
    full = [np.asarray(v, np.float64) for v in (a, b, x)]
    from scipy import special

    value = special.betainc(*full).astype(np.result_type(a, b, x))
    out: NDArray = np.where(positive, value, np.nan)
    # The limits in one parameter; where both are at an end there is none.
    zero, one = (b == 0) | (a == np.inf), (a == 0) | (b == np.inf)
    allowed = (a >= 0) & (b >= 0) & (x >= 0) & (x <= 1) & (zero != one)
    step = np.where(x == 0, 0.0, np.where(x == 1, 1.0, one))
    return np.where(allowed, step, out)


def beta_density(a: Array, b: Array, x: Array, y: Array, t: Array) -> Array:
    exponent = add(mul(sub(a, 1.0), log(x)), mul(sub(b, 1.0), log1p(neg(x))))
    return mul(t, exp(sub(exponent, log_beta(a, b))))


regularized_incomplete_beta_p = elementwise(
    "regularized_incomplete_beta",
    in_wide(reference_beta),
    operands=3,
    jvp=(underived("betainc", "a"), underived("betainc", "b"), beta_density),
    lower=in_float32(lower_beta),
    kernel=IN_PIECES,
    accepts=FLOAT,
    domains=(
        Domain(0.3, 8, special=(1.0, 2.0), smooth=False),
        Domain(0.3, 8, special=(1.0, 2.0), smooth=False),
        Domain(0.02, 0.98, special=(0.0, 1.0, 0.5)),
    ),
)


def betainc(a: object, b: object, x: object) -> Array:
    """The integral of t^(a-1) (1-t)^(b-1) from 0 to x, over B(a, b).

    NaN where a or b is negative, or x outside [0, 1]; where a or b is 0 or infinite,
    the limit if there is one. There is a derivative in x only. Source: DLMF, section
    8.17.

    Args:
        a, b, x: floats of the same dtype: arrays of the same shape, where a size of 1
            goes with any other, or scalars. A Python scalar takes the dtype of the
            first array.

    Returns:
        An array of the operands' dtype, in the shape to which their sizes of 1 grow.

    Raises:
        TypeError: dtypes differ or are not of real floats, or the shapes do not fit.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.betainc(2.0, 3.0, vnp.array([-0.1, 0.0, 0.5, 1.0]))
    Array([   nan, 0.    , 0.6875, 1.    ], dtype=float32)
    """
    return regularized_incomplete_beta_p.call(NO_PARAMS, *alike(a, b, x))


regularized_incomplete_beta = betainc


# -----------------------------------------------------------------------------
# Incomplete gamma functions, and their derivatives by the parameter.
#
# Each is a series or a continued fraction, whichever converges fast; the loop
# carries the derivative by the parameter along with the value, as dual numbers do::
#
#     igamma(a, x)         # the integral of t^(a-1) exp(-t) from 0 to x, over Γ(a)
#
# The formulas are those of the NIST Digital Library of Mathematical Functions, sections
# 8.7 and 8.9; the fraction by Lentz's method, as in W. H. Press et al., Numerical
# Recipes, section 6.2.


PARAMETER = Domain(0.3, 8, special=(1.0, 2.0))
FIXED = Domain(0.3, 8, special=(1.0, 2.0), smooth=False)
ARGUMENT = Domain(0.2, 8, special=(1.0, 2.0))


def series_start(a: Array, x: Array) -> tuple[Array, ...]:
    """Number, a, x; term and sum; their derivatives by a; whether to go on."""
    one, zero = full_like(a, 1), full_like(a, 0)
    return zero, a, x, one, one, zero, zero, eq(a, a)


def series_step(
    n: Array, a: Array, x: Array, term: Array, total: Array, dt: Array, ds: Array,
    going: Array,
) -> tuple[Array, ...]:  # fmt: skip
    """One more term of the sum of x^n / ((a + 1) ... (a + n))."""
    n = add(n, 1.0)
    r = add(a, n)
    more = div(mul(term, x), r)
    dt = div(sub(mul(dt, x), more), r)
    total, ds = add(total, more), add(ds, dt)
    small = bitwise_or(large(more, total), large(dt, ds))
    return n, a, x, more, total, dt, ds, small


def fraction_start(a: Array, x: Array) -> tuple[Array, ...]:
    """Number, a, b; c, d and the value; their derivatives by a; whether to go on."""
    one, zero = full_like(a, 1), full_like(a, 0)
    b = sub(add(x, 1.0), a)
    d = div(one, b)
    # The derivative of b by a is -1.
    dd = mul(d, d)
    return zero, a, b, full_like(a, LARGE), d, d, zero, dd, dd, eq(a, a)


def fraction_step(
    n: Array, a: Array, b: Array, c: Array, d: Array, h: Array, dc: Array, dd: Array,
    dh: Array, going: Array,
) -> tuple[Array, ...]:  # fmt: skip
    """One more level of the fraction, by Lentz's method."""
    n, b = add(n, 1.0), add(b, 2.0)
    top = mul(n, sub(a, n))
    down = not_zero(add(mul(top, d), b))
    ddown = sub(add(mul(n, d), mul(top, dd)), 1.0)
    up = not_zero(add(b, div(top, c)))
    dup = sub(sub(div(n, c), div(mul(top, dc), mul(c, c))), 1.0)
    d = div(1.0, down)
    dd = neg(mul(ddown, mul(d, d)))
    ratio = mul(d, up)
    dratio = add(mul(dd, up), mul(d, dup))
    # What has converged stays: further factors near one would only add rounding errors.
    dh = select(going, add(mul(dh, ratio), mul(h, dratio)), dh)
    h = select(going, mul(h, ratio), h)
    more = bitwise_or(
        large(sub(ratio, 1.0), ratio, MARGIN), large(mul(h, dratio), dh, MARGIN)
    )
    return n, a, b, up, d, h, dup, dd, dh, bitwise_and(going, more)


# The same without derivatives, for the values alone.


def sum_start(a: Array, x: Array) -> tuple[Array, ...]:
    """Number, a, x; term and sum; whether to go on."""
    zero, a, x, term, total, *_, going = series_start(a, x)
    return zero, a, x, term, total, going


def sum_step(
    n: Array, a: Array, x: Array, term: Array, total: Array, going: Array
) -> tuple[Array, ...]:
    """One more term of the sum."""
    n = add(n, 1.0)
    more = div(mul(term, x), add(a, n))
    total = add(total, more)
    return n, a, x, more, total, large(more, total)


def levels_start(a: Array, x: Array) -> tuple[Array, ...]:
    """Number, a, b; c, d and the value; whether to go on."""
    zero, a, b, c, d, h, *_, going = fraction_start(a, x)
    return zero, a, b, c, d, h, going


def levels_step(
    n: Array, a: Array, b: Array, c: Array, d: Array, h: Array, going: Array
) -> tuple[Array, ...]:
    """One more level of the fraction."""
    n, b = add(n, 1.0), add(b, 2.0)
    top = mul(n, sub(a, n))
    d = div(1.0, not_zero(add(mul(top, d), b)))
    c = not_zero(add(b, div(top, c)))
    ratio = mul(d, c)
    h = select(going, mul(h, ratio), h)
    more = large(sub(ratio, 1.0), ratio, MARGIN)
    return n, a, b, c, d, h, bitwise_and(going, more)


def by_series(a: Array, x: Array) -> Array:
    """Flags of arguments for the series: elsewhere the fraction converges faster."""
    return bitwise_or(lt(x, 1.0), lt(x, a))


def inside(a: Array, x: Array) -> Array:
    """Flags of the operands of which neither is at an end of its domain."""
    inf = float(np.inf)
    positive = bitwise_and(gt(a, 0.0), gt(x, 0.0))
    return bitwise_and(positive, bitwise_and(lt(a, inf), lt(x, inf)))


def for_series(a: Array, x: Array) -> tuple[Array, Array]:
    """The operands where the series is used, harmless ones elsewhere."""
    here = bitwise_and(inside(a, x), by_series(a, x))
    return select(here, a, full_like(a, 1)), select(here, x, full_like(x, 0.5))


def for_fraction(a: Array, x: Array) -> tuple[Array, Array]:
    """The operands where the fraction is used, harmless ones elsewhere."""
    here = bitwise_and(inside(a, x), bitwise_not_series(a, x))
    return select(here, a, full_like(a, 1)), select(here, x, full_like(x, 2))


def bitwise_not_series(a: Array, x: Array) -> Array:
    return eq(by_series(a, x), False)


def density(a: Array, x: Array) -> Array:
    """x^(a-1) exp(-x) / Γ(a), the derivative of `igamma` by x."""
    return exp(sub(sub(mul(sub(a, 1.0), log(x)), x), lgamma(a)))


def leading(a: Array, x: Array) -> Array:
    """x^a exp(-x) / Γ(a + 1)."""
    plain = sub(sub(mul(a, log(x)), x), lgamma(add(a, 1.0)))
    if x.dtype != float32:
        return exp(plain)
    # Terms that cancel are kept small, as the digits of float32 are few: Stirling's
    # series, and the distance of x from a.
    big = gt(a, 6.0)
    safe = select(big, a, full_like(a, 6))
    part = div(sub(x, safe), safe)
    rest = div(sub(1 / 12, div(1 / 360, mul(safe, safe))), safe)
    size = add(mul(log(mul(safe, 2 * np.pi)), 0.5), rest)
    # Far below a the distance has lost the digits of x.
    below = lt(part, -0.5)
    logarithm = select(below, log(div(x, safe)), log1p(select(below, 0.0, part)))
    around = sub(mul(safe, sub(logarithm, part)), size)
    return exp(select(big, around, plain))


type Sums = tuple[
    Callable[..., Sequence[Array]], Callable[..., Sequence[Array]], tuple[int, ...]
]
"""The start and the step of a loop, and which parts of its last state are results."""


def lower_sums(
    series: Sums,
    fraction: Sums,
    finish: Callable[..., Array],
    e: Emitter,
    xs: Sequence[Operand],
) -> Sequence[Operand]:
    """Both loops, on the elements that are theirs, and what is made of them."""
    state: list[Operand] = []
    for inputs, (start, step, results) in (
        (for_series, series),
        (for_fraction, fraction),
    ):
        given = lowered(e, xs, inputs)
        last = loop(e, start, step, given)
        state += [*given, *[last[i] for i in results]]
    return lowered(e, [*state, *xs], lambda *vs: (finish(*vs),))


lower_gamma = partial(
    lower_sums,
    (series_start, series_step, (4, 6)),
    (fraction_start, fraction_step, (5, 8)),
)
lower_value = partial(
    lower_sums, (sum_start, sum_step, (4,)), (levels_start, levels_step, (5,))
)
"""The same for what needs no derivatives."""


def series_value(a: Array, x: Array, total: Array) -> Array:
    return mul(total, leading(a, x))


def fraction_value(a: Array, x: Array, h: Array) -> Array:
    return mul(h, mul(a, leading(a, x)))


def finish_igamma(
    a1: Array, x1: Array, s: Array, a2: Array, x2: Array, h: Array, a: Array, x: Array
) -> Array:
    below = series_value(a1, x1, s)
    above = sub(1.0, fraction_value(a2, x2, h))
    array = select(by_series(a, x), below, above)
    return at_ends(a, x, array, 0.0, 1.0)


def finish_igammac(
    a1: Array, x1: Array, s: Array, a2: Array, x2: Array, h: Array, a: Array, x: Array
) -> Array:
    below = sub(1.0, series_value(a1, x1, s))
    above = fraction_value(a2, x2, h)
    array = select(by_series(a, x), below, above)
    return at_ends(a, x, array, 1.0, 0.0)


def at_ends(
    a: Array, x: Array, array: Array, at_zero: float, at_infinity: float
) -> Array:
    """The value with its limits, NaN outside of the domain."""
    inf, nan = float(np.inf), full_like(array, np.nan)
    array = select(eq(a, inf), full_like(array, at_zero), array)
    array = select(eq(x, inf), full_like(array, at_infinity), array)
    array = select(eq(a, 0.0), full_like(array, at_infinity), array)
    array = select(eq(x, 0.0), full_like(array, at_zero), array)
    both = bitwise_and(eq(a, inf), eq(x, inf))
    both = bitwise_or(both, bitwise_and(eq(a, 0.0), eq(x, 0.0)))
    outside = bitwise_or(bitwise_or(lt(a, 0.0), lt(x, 0.0)), both)
    unknown = bitwise_or(ne(a, a), ne(x, x))
    return select(bitwise_or(outside, unknown), nan, array)


def quantile_slope(
    a1: Array, x1: Array, s: Array, ds: Array, a2: Array, x2: Array, h: Array,
    dh: Array, a: Array, x: Array,
) -> Array:  # fmt: skip
    """Minus the derivative of P(a, x) by a over that by x."""
    moved = add(mul(s, sub(log(x1), digamma(add(a1, 1.0)))), ds)
    below = neg(mul(div(x1, a1), moved))
    above = mul(x2, add(mul(h, sub(log(x2), digamma(a2))), dh))
    array = select(by_series(a, x), below, above)
    array = select(eq(x, 0.0), full_like(array, 0), array)
    nan = full_like(array, np.nan)
    return select(bitwise_or(inside(a, x), eq_zero_inside(a, x)), array, nan)


def eq_zero_inside(a: Array, x: Array) -> Array:
    usable = bitwise_and(gt(a, 0.0), lt(a, float(np.inf)))
    return bitwise_and(usable, eq(x, 0.0))


def parameter_slope(*state: Array) -> Array:
    """The derivative of P(a, x) by a."""
    a, x = state[-2:]
    slope = neg(mul(quantile_slope(*state), density(a, x)))
    zero = full_like(slope, 0)
    inf = float(np.inf)
    usable = bitwise_and(gt(a, 0.0), lt(a, inf))
    end = bitwise_or(eq(x, 0.0), eq(x, inf))
    return select(bitwise_and(usable, end), zero, slope)


def reference_igamma(a: NDArray, x: NDArray) -> NDArray:
    bad = (a < 0) | (x < 0) | ((a == 0) & (x == 0))
    from scipy.special import gammainc

    out: NDArray = np.where(bad, np.nan, gammainc(a, x))
    return out


def reference_igammac(a: NDArray, x: NDArray) -> NDArray:
    bad = (a < 0) | (x < 0) | ((a == 0) & (x == 0))
    from scipy.special import gammaincc

    out: NDArray = np.where(bad, np.nan, gammaincc(a, x))
    return out


def quantile_slope_of_one(a: float, x: float) -> float:
    """Minus the derivative of P by a over that by x: a sum, or far out an integral."""
    if x == 0 and 0 < a < np.inf:
        return 0.0
    if not (0 < a < np.inf and 0 < x < np.inf):
        return float(np.nan)
    if x > a + 2 * np.sqrt(a) + 2:
        return slope_by_integral(a, x)
    n = np.arange(int(min(12 * np.sqrt(x) + 100, 1e6)))
    from scipy import special

    later = special.gammaln(a + n + 1) - special.gammaln(a)
    terms = np.exp((n + 1) * np.log(x) - later)
    return float(np.sum(terms * (special.digamma(a + n + 1) - np.log(x))))


def slope_by_integral(a: float, x: float) -> float:
    """The integral of (t / x)^(a-1) exp(x - t) (log t - digamma(a)) from x on.

    Without the exponential of -(1 - (a - 1) / x) (t - x), as which it falls at first,
    it is so smooth that Gauss and Laguerre's rule is exact.
    """
    s, w = np.polynomial.laguerre.laggauss(64)
    rate = 1 - (a - 1) / x
    s = s / rate
    rest = np.exp((a - 1) * (np.log1p(s / x) - s / x))
    from scipy import special

    return float(np.sum(w * rest * (np.log(x + s) - special.digamma(a))) / rate)


def reference_quantile_slope(a: NDArray, x: NDArray) -> NDArray:
    dtype = np.result_type(wide(a), wide(x))
    out = np.vectorize(quantile_slope_of_one, otypes=[np.float64])(
        a.astype(np.float64), x.astype(np.float64)
    )
    return np.asarray(out, dtype)


def reference_slope(a: NDArray, x: NDArray) -> NDArray:
    dtype = np.result_type(wide(a), wide(x))
    a, x = a.astype(np.float64), x.astype(np.float64)
    from scipy.special import gammaln, xlogy

    weight = np.exp(xlogy(a - 1, x) - x - gammaln(a))
    slope = -reference_quantile_slope(a, x) * weight
    end = (a > 0) & np.isfinite(a) & ((x == 0) | (x == np.inf))
    return np.asarray(np.where(end, 0.0, slope), dtype)


def slope_by_argument(a: Array, x: Array, y: Array, t: Array) -> Array:
    """The derivative by a of the density, times the tangent of x."""
    return mul(t, mul(density(a, x), sub(log(x), digamma(a))))


igamma_grad_a_p = elementwise(
    "igamma_grad_a",
    reference_slope,
    operands=2,
    jvp=(underived("igamma_grad_a", "a"), slope_by_argument),
    lower=in_float32(partial(lower_gamma, parameter_slope)),
    kernel=IN_PIECES,
    accepts=FLOAT,
    domains=(FIXED, ARGUMENT),
)
random_gamma_grad_p = elementwise(
    "random_gamma_grad",
    reference_quantile_slope,
    operands=2,
    jvp=[underived("random_gamma_grad", name) for name in "ax"],
    lower=in_float32(partial(lower_gamma, quantile_slope)),
    kernel=IN_PIECES,
    accepts=FLOAT,
    domains=(FIXED, FIXED),
)
igamma_p = elementwise(
    "igamma",
    in_wide(reference_igamma),
    operands=2,
    jvp=(
        lambda a, x, y, t: mul(t, igamma_grad_a(a, x)),
        lambda a, x, y, t: mul(t, density(a, x)),
    ),
    lower=in_float32(partial(lower_value, finish_igamma)),
    kernel=IN_PIECES,
    accepts=FLOAT,
    domains=(PARAMETER, ARGUMENT),
)
igammac_p = elementwise(
    "igammac",
    in_wide(reference_igammac),
    operands=2,
    jvp=(
        lambda a, x, y, t: neg(mul(t, igamma_grad_a(a, x))),
        lambda a, x, y, t: neg(mul(t, density(a, x))),
    ),
    lower=in_float32(partial(lower_value, finish_igammac)),
    kernel=IN_PIECES,
    accepts=FLOAT,
    domains=(PARAMETER, ARGUMENT),
)


def igamma(a: object, x: object) -> Array:
    """P(a, x), the integral of t^(a-1) exp(-t) from 0 to x, over Γ(a).

    NaN where a or x is negative, or both are 0; for a = 0 and x > 0 it is 1, the limit.
    Source: DLMF, section 8.2.

    Args:
        a, x: floats of the same dtype: arrays of the same shape, where a size of 1 goes
            with any other, or scalars. A Python scalar takes the dtype of the first
            array.

    Returns:
        An array of the operands' dtype, in the shape to which their sizes of 1 grow.

    Raises:
        TypeError: dtypes differ or are not of real floats, or the shapes do not fit.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.array([-1.0, 0.0, 1.0, vnp.inf])
    >>> lax.igamma(1.0, x).round(4)  # 1 - exp(-x)
    Array([   nan, 0.    , 0.6321, 1.    ], dtype=float32)
    """
    return igamma_p.call(NO_PARAMS, *alike(a, x))


def igammac(a: object, x: object) -> Array:
    """Q(a, x) = 1 - P(a, x), accurate where it is small; see `igamma`.

    Args:
        a, x: floats of the same dtype: arrays of the same shape, where a size of 1 goes
            with any other, or scalars. A Python scalar takes the dtype of the first
            array.

    Returns:
        An array of the operands' dtype, in the shape to which their sizes of 1 grow.

    Raises:
        TypeError: dtypes differ or are not of real floats, or the shapes do not fit.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.array([0.0, 1.0, 20.0])
    >>> lax.igammac(1.0, x).round(4)  # exp(-x)
    Array([1.    , 0.3679, 0.    ], dtype=float32)
    >>> (lax.igammac(1.0, x) > 0).tolist(), (1 - lax.igamma(1.0, x) > 0).tolist()
    ([True, True, True], [True, True, False])
    """
    return igammac_p.call(NO_PARAMS, *alike(a, x))


def igamma_grad_a(a: object, x: object) -> Array:
    """The derivative of `igamma` in a.

    NaN unless a is positive and finite and x is at least 0. It has a derivative in x
    only.

    Args:
        a, x: floats of the same dtype: arrays of the same shape, where a size of 1 goes
            with any other, or scalars. A Python scalar takes the dtype of the first
            array.

    Returns:
        An array of the operands' dtype, in the shape to which their sizes of 1 grow.

    Raises:
        TypeError: dtypes differ or are not of real floats, or the shapes do not fit.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.igamma_grad_a(2.0, vnp.array([-1.0, 0.0, 1.0])).round(4)
    Array([    nan,  0.    , -0.2762], dtype=float32)
    """
    return igamma_grad_a_p.call(NO_PARAMS, *alike(a, x))


def random_gamma_grad(a: object, x: object) -> Array:
    """The derivative in a of a sample x of the gamma distribution with parameter a.

    With P of `igamma` it is -(∂P/∂a) / (∂P/∂x): the sample is a quantile, and the level
    stays (M. Figurnov, S. Mohamed, A. Mnih, "Implicit Reparameterization Gradients",
    2018). NaN unless a is positive and finite and x is at least 0 and finite. It has no
    derivative.

    Args:
        a, x: floats of the same dtype: arrays of the same shape, where a size of 1 goes
            with any other, or scalars. A Python scalar takes the dtype of the first
            array.

    Returns:
        An array of the operands' dtype, in the shape to which their sizes of 1 grow.

    Raises:
        TypeError: dtypes differ or are not of real floats, or the shapes do not fit.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> a, x = 2.0, vnp.array([0.0, 1.0, 3.0])
    >>> lax.random_gamma_grad(a, x).round(4)
    Array([0.    , 0.7508, 1.3218], dtype=float32)
    """
    return random_gamma_grad_p.call(NO_PARAMS, *alike(a, x))


ROWS: Rows = (
    regularized_incomplete_beta_p,
    igamma_p,
    igammac_p,
    igamma_grad_a_p,
    random_gamma_grad_p,
)
