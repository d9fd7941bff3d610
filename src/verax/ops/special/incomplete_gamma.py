"""Floor 2: incomplete gamma functions, and their derivatives by the parameter.

One idea: each is a series or a continued fraction, whichever converges fast; the loop
carries the derivative by the parameter along with the value, as dual numbers do::

    igamma(a, x)         # the integral of t^(a-1) exp(-t) from 0 to x, over Γ(a)

The formulas are those of the NIST Digital Library of Mathematical Functions, sections
8.7 and 8.9; the fraction by Lentz's method, as in W. H. Press et al., Numerical
Recipes, section 6.2.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from verax.ir.dtypes import float32
from verax.ir.jaxpr import NO_PARAMS
from verax.ops.base.xla_semantics import in_wide, wide
from verax.ops.elementwise.arith import add, div, mul, neg, sub
from verax.ops.elementwise.bits import bitwise_and, bitwise_or
from verax.ops.elementwise.compare import eq, gt, lt, ne
from verax.ops.elementwise.exp_log import exp, log, log1p
from verax.ops.elementwise.select import select
from verax.ops.special.erf_gamma import digamma, lgamma, underived
from verax.ops.special.series import (
    LARGE,
    MARGIN,
    in_float32,
    large,
    loop,
    not_zero,
)
from verax.ops.structure.create import full_like
from verax.rules.families.elementwise import elementwise
from verax.rules.programs.while_lowering import lowered
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.row import Domain, NDArray, Rows
from verax.rules.values.array import Array
from verax.rules.values.kinds import FLOAT
from verax.rules.values.lazy import LazyModule
from verax.rules.values.operands import alike

special = LazyModule("scipy.special")


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


def by_series(a: Array, x: Array) -> Array:
    """Where the series is used: elsewhere the fraction converges faster."""
    return bitwise_or(lt(x, 1.0), lt(x, a))


def inside(a: Array, x: Array) -> Array:
    """Where neither is at an end of its domain."""
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


def lower_gamma(
    finish: Callable[..., Array], e: Emitter, xs: Sequence[Operand]
) -> Sequence[Operand]:
    """Both loops, on the elements that are theirs, and what is made of them."""
    a, x = xs
    left = lowered(e, (a, x), for_series)
    right = lowered(e, (a, x), for_fraction)
    series = loop(e, series_start, series_step, left)
    fraction = loop(e, fraction_start, fraction_step, right)
    state = (*left, series[4], series[6], *right, fraction[5], fraction[8], a, x)
    return lowered(e, state, lambda *vs: (finish(*vs),))


def series_value(a: Array, x: Array, total: Array) -> Array:
    return mul(total, leading(a, x))


def fraction_value(a: Array, x: Array, h: Array) -> Array:
    return mul(h, mul(a, leading(a, x)))


def finish_igamma(
    a1: Array, x1: Array, s: Array, ds: Array, a2: Array, x2: Array, h: Array,
    dh: Array, a: Array, x: Array,
) -> Array:  # fmt: skip
    below = series_value(a1, x1, s)
    above = sub(1.0, fraction_value(a2, x2, h))
    found = select(by_series(a, x), below, above)
    return at_ends(a, x, found, 0.0, 1.0)


def finish_igammac(
    a1: Array, x1: Array, s: Array, ds: Array, a2: Array, x2: Array, h: Array,
    dh: Array, a: Array, x: Array,
) -> Array:  # fmt: skip
    below = sub(1.0, series_value(a1, x1, s))
    above = fraction_value(a2, x2, h)
    found = select(by_series(a, x), below, above)
    return at_ends(a, x, found, 1.0, 0.0)


def at_ends(
    a: Array, x: Array, found: Array, at_zero: float, at_infinity: float
) -> Array:
    """The value with its limits, NaN outside of the domain."""
    inf, nan = float(np.inf), full_like(found, np.nan)
    found = select(eq(a, inf), full_like(found, at_zero), found)
    found = select(eq(x, inf), full_like(found, at_infinity), found)
    found = select(eq(a, 0.0), full_like(found, at_infinity), found)
    found = select(eq(x, 0.0), full_like(found, at_zero), found)
    both = bitwise_and(eq(a, inf), eq(x, inf))
    both = bitwise_or(both, bitwise_and(eq(a, 0.0), eq(x, 0.0)))
    outside = bitwise_or(bitwise_or(lt(a, 0.0), lt(x, 0.0)), both)
    unknown = bitwise_or(ne(a, a), ne(x, x))
    return select(bitwise_or(outside, unknown), nan, found)


def quantile_slope(
    a1: Array, x1: Array, s: Array, ds: Array, a2: Array, x2: Array, h: Array,
    dh: Array, a: Array, x: Array,
) -> Array:  # fmt: skip
    """Minus the derivative of P(a, x) by a over that by x."""
    moved = add(mul(s, sub(log(x1), digamma(add(a1, 1.0)))), ds)
    below = neg(mul(div(x1, a1), moved))
    above = mul(x2, add(mul(h, sub(log(x2), digamma(a2))), dh))
    found = select(by_series(a, x), below, above)
    found = select(eq(x, 0.0), full_like(found, 0), found)
    nan = full_like(found, np.nan)
    return select(bitwise_or(inside(a, x), eq_zero_inside(a, x)), found, nan)


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
    found: NDArray = np.where(bad, np.nan, special.gammainc(a, x))
    return found


def reference_igammac(a: NDArray, x: NDArray) -> NDArray:
    bad = (a < 0) | (x < 0) | ((a == 0) & (x == 0))
    found: NDArray = np.where(bad, np.nan, special.gammaincc(a, x))
    return found


def quantile_slope_of_one(a: float, x: float) -> float:
    """Minus the derivative of P by a over that by x: a sum, or far out an integral."""
    if x == 0 and 0 < a < np.inf:
        return 0.0
    if not (0 < a < np.inf and 0 < x < np.inf):
        return float(np.nan)
    if x > a + 2 * np.sqrt(a) + 2:
        return slope_by_integral(a, x)
    n = np.arange(int(min(12 * np.sqrt(x) + 100, 1e6)))
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
    return float(np.sum(w * rest * (np.log(x + s) - special.digamma(a))) / rate)


def reference_quantile_slope(a: NDArray, x: NDArray) -> NDArray:
    dtype = np.result_type(wide(a), wide(x))
    found = np.vectorize(quantile_slope_of_one, otypes=[np.float64])(
        a.astype(np.float64), x.astype(np.float64)
    )
    return np.asarray(found, dtype)


def reference_slope(a: NDArray, x: NDArray) -> NDArray:
    dtype = np.result_type(wide(a), wide(x))
    a, x = a.astype(np.float64), x.astype(np.float64)
    weight = np.exp(special.xlogy(a - 1, x) - x - special.gammaln(a))
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
    accepts=FLOAT,
    domains=(FIXED, ARGUMENT),
)
random_gamma_grad_p = elementwise(
    "random_gamma_grad",
    reference_quantile_slope,
    operands=2,
    jvp=[underived("random_gamma_grad", name) for name in "ax"],
    lower=in_float32(partial(lower_gamma, quantile_slope)),
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
    lower=in_float32(partial(lower_gamma, finish_igamma)),
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
    lower=in_float32(partial(lower_gamma, finish_igammac)),
    accepts=FLOAT,
    domains=(PARAMETER, ARGUMENT),
)


def igamma(a: object, x: object) -> Array:
    """P(a, x), the integral of t^(a-1) exp(-t) from 0 to x, over Γ(a).

    NaN unless a > 0 and x >= 0.
    """
    return igamma_p.call(NO_PARAMS, *alike(a, x))


def igammac(a: object, x: object) -> Array:
    """Q(a, x) = 1 - P(a, x), accurate where it is small."""
    return igammac_p.call(NO_PARAMS, *alike(a, x))


def igamma_grad_a(a: object, x: object) -> Array:
    """The derivative of `igamma` in a."""
    return igamma_grad_a_p.call(NO_PARAMS, *alike(a, x))


def random_gamma_grad(a: object, x: object) -> Array:
    """The derivative in a of a sample x of the gamma distribution with parameter a."""
    return random_gamma_grad_p.call(NO_PARAMS, *alike(a, x))


ROWS: Rows = (
    igamma_p,
    igammac_p,
    igamma_grad_a_p,
    random_gamma_grad_p,
)
