"""Floor 2: the regularised incomplete beta function.

A continued fraction, of the function or of that of the other side, whichever converges
fast::

    betainc(a, b, x)     # the integral of t^(a-1) (1-t)^(b-1) to x, over B(a, b)

Sources: NIST Digital Library of Mathematical Functions, section 8.17; the fraction by
Lentz's method, as in W. H. Press et al., Numerical Recipes, section 6.4.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from verax.ir.jaxpr import NO_PARAMS
from verax.ops.base.xla_semantics import in_wide
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
from verax.ops.special.erf_gamma import lgamma, underived
from verax.ops.special.log_gamma import FAR, stirling_rest
from verax.ops.special.series import MARGIN, in_float32, large, loop, not_zero
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
    """Where the function of the other side, I(b, a, 1 - x), converges faster."""
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
    found = select(far, select(both, two, one), plain)
    # B is infinite at 0 and 0 at infinity.
    inf = full_like(a, np.inf)
    return select(bitwise_and(gt(few, 0.0), eq(many, inf)), neg(inf), found)


def finish_beta(
    first: Array, second: Array, place: Array, h: Array, a: Array, b: Array, x: Array
) -> tuple[Array]:
    exponent = add(mul(first, log(place)), mul(second, log1p(neg(place))))
    size = exp(sub(exponent, log_beta(first, second)))
    # Where the size is nothing, the fraction may have lost itself among huge numbers.
    value = select(eq(size, 0.0), size, div(mul(size, h), first))
    found = select(turned(a, b, x), sub(1.0, value), value)
    found = select(eq(x, 0.0), full_like(found, 0), found)
    found = select(eq(x, 1.0), full_like(found, 1), found)
    inf, nan = float(np.inf), full_like(found, np.nan)
    to_zero = bitwise_or(eq(b, 0.0), eq(a, inf))
    to_one = bitwise_or(eq(a, 0.0), eq(b, inf))
    interior = bitwise_and(gt(x, 0.0), lt(x, 1.0))
    found = select(bitwise_and(to_zero, interior), full_like(found, 0), found)
    found = select(bitwise_and(to_one, interior), full_like(found, 1), found)
    positive = bitwise_and(le(0.0, a), le(0.0, b))
    usable = bitwise_and(bitwise_and(positive, within(x)), ne(to_zero, to_one))
    usable = bitwise_or(usable, beta_ends(a, b, x))
    return (select(usable, found, nan),)


def beta_ends(a: Array, b: Array, x: Array) -> Array:
    """Where both parameters are positive numbers, and x is in its interval."""
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
    value = special.betainc(*full).astype(np.result_type(a, b, x))
    found: NDArray = np.where(positive, value, np.nan)
    # The limits in one parameter; where both are at an end there is none.
    zero, one = (b == 0) | (a == np.inf), (a == 0) | (b == np.inf)
    allowed = (a >= 0) & (b >= 0) & (x >= 0) & (x <= 1) & (zero != one)
    step = np.where(x == 0, 0.0, np.where(x == 1, 1.0, one))
    return np.where(allowed, step, found)


def beta_density(a: Array, b: Array, x: Array, y: Array, t: Array) -> Array:
    exponent = add(mul(sub(a, 1.0), log(x)), mul(sub(b, 1.0), log1p(neg(x))))
    return mul(t, exp(sub(exponent, log_beta(a, b))))


regularized_incomplete_beta_p = elementwise(
    "regularized_incomplete_beta",
    in_wide(reference_beta),
    operands=3,
    jvp=(underived("betainc", "a"), underived("betainc", "b"), beta_density),
    lower=in_float32(lower_beta),
    accepts=FLOAT,
    domains=(
        Domain(0.3, 8, special=(1.0, 2.0), smooth=False),
        Domain(0.3, 8, special=(1.0, 2.0), smooth=False),
        Domain(0.02, 0.98, special=(0.0, 1.0, 0.5)),
    ),
)


def betainc(a: object, b: object, x: object) -> Array:
    """The integral of t^(a-1) (1-t)^(b-1) from 0 to x, over B(a, b).

    NaN unless a > 0, b > 0 and 0 <= x <= 1. There is a derivative in x only.
    """
    return regularized_incomplete_beta_p.call(NO_PARAMS, *alike(a, b, x))


regularized_incomplete_beta = betainc
ROWS: Rows = (regularized_incomplete_beta_p,)
