"""Floor 6: exponential, sine and cosine integrals, hypergeometric functions.

One idea: a power series near 0 and a continued fraction beyond it, each with as many
terms as float64 needs, and derivatives in closed form::

    expn(n, x)                     # E_n' = -E_(n-1)

The formulas are those of the NIST Digital Library of Mathematical Functions, chapters 6
and 8, and of D. Zagier, "The dilogarithm function", 2007.
"""

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from verax import lax, numpy as vnp
from verax.api.custom.jvp import custom_jvp
from verax.numpy import where
from verax.numpy.arguments.arguments import ArrayLike
from verax.ops.special.erf_gamma import digamma, lgamma
from verax.rules.values.array import Array
from verax.scipy.special.arguments import in_wide, strong
from verax.scipy.special.gamma_family import gammasgn

GAMMA: Final = float(np.euler_gamma)
# Up to here `expi` and `sici` are their series.
LARGE: Final = 40.0
FOUR: Final = 4.0
# B_k / (k + 1)!, for the dilogarithm of 1 - exp(-u).
BERNOULLI: Final = (
    1.0, -1 / 4, 1 / 36, 0.0, -1 / 3600, 0.0, 1 / 211680, 0.0, -1 / 10886400, 0.0,
    1 / 526901760, 0.0, -4.064761645144226e-11, 0.0, 8.921691020456452e-13, 0.0,
    -1.9939295860721076e-14, 0.0, 4.518980029619918e-16,
)  # fmt: skip


def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """E_n(x), the integral of exp(-xt) / t^n from 1 to infinity; DLMF 8.19.

    NaN for negative x or n. The derivative is that in x.

    Args:
        n: the order, an array or scalar of numbers, which are rounded down.
        x: an array or scalar of real numbers that broadcasts with `n`; integers become
            floats.

    Returns:
        The shape to which the arguments broadcast, in the float dtype to which they
        promote.

    Raises:
        TypeError: an argument is complex.
        ValueError: the shapes do not broadcast together.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.expn(2, vnp.array([0.0, 1.0, -1.0])).round(4)
    Array([1.    , 0.1485,    nan], dtype=float32)
    """
    return in_wide("expn", lambda n, x: exponential_integral(vnp.floor(n), x), n, x)


def exp1(x: ArrayLike) -> Array:
    """E_1(x), the integral of exp(-t) / t from x to infinity; NaN for negative x.

    Args:
        x: an array or scalar of real numbers; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers. Infinite at 0.

    Raises:
        TypeError: `x` is complex.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.exp1(vnp.array([0.0, 1.0, -1.0])).round(4)
    Array([   inf, 0.2194,    nan], dtype=float32)
    """
    return in_wide("exp1", lambda x: exponential_integral(vnp.ones_like(x), x), x)


@custom_jvp
def exponential_integral(n: Array, x: Array) -> Array:
    """`expn` of whole n."""
    n, x = vnp.broadcast_arrays(n, x)
    small = x <= 1
    zeroth = n == 0
    near, whole = where(small & (x > 0), x, 1.0), where(zeroth, 1.0, n)
    away = where(small | vnp.isinf(x), 1.0, x)
    array = where(small, power_series(whole, near), fraction(whole, away))
    safe = where(x == 0, 1.0, x)
    array = where(zeroth, vnp.exp(-x) / safe, array)
    single = where(n > 1, 1 / where(n > 1, n - 1, 1.0), np.inf)
    array = where(x == 0, single, where(vnp.isposinf(x), 0.0, array))
    return where((x < 0) | (n < 0) | vnp.isnan(x), np.nan, array)


def power_series(n: Array, x: Array) -> Array:
    """DLMF 8.19.8, for 0 < x <= 1."""
    head = where((n % 2) == 1, 1.0, -1.0) * vnp.exp((n - 1) * vnp.log(x) - lgamma(n))
    total = head * (digamma(n) - vnp.log(x))
    term = vnp.ones_like(x)
    for k in range(21):
        if k:
            term = term * -x / k
        gap = 1 - n + k
        total = total - where(gap == 0, 0.0, term / where(gap == 0, 1.0, gap))
    return total


def fraction(n: Array, x: Array) -> Array:
    """DLMF 8.19.17 from the bottom up, for x >= 1."""

    def further(below: Array, k: Array) -> tuple[Array, None]:
        return x + n + 2 * k - (k + 1) * (n + k) / below, None

    steps = vnp.arange(110, -1, -1, dtype=x.dtype)
    below: Array = lax.scan(further, x + n + 222.0, steps)[0]
    return vnp.exp(-x) / below


@exponential_integral.defjvp
def exponential_integral_tangent(
    primals: Sequence[Array], tangents: Sequence[Array]
) -> tuple[Array, Array]:
    """E_n' = -E_(n-1), and E_0' = -(x + 1) exp(-x) / x²."""
    n, x = vnp.broadcast_arrays(*primals)
    lower = exponential_integral(vnp.maximum(n - 1, 0.0), x)
    zeroth = vnp.exp(-x) * (x + 1) / (x * x)
    slope = where(n == 0, zeroth, lower)
    return exponential_integral(*primals), -slope * tangents[1]


def expi(x: ArrayLike) -> Array:
    """Ei(x), the principal value of the integral of exp(t) / t from -infinity to x.

    Args:
        x: an array or scalar of real numbers; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers. -inf at 0.

    Raises:
        TypeError: `x` is complex.

    For negative numbers it is -E_1(-x):

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.expi(vnp.array([-1.0, 0.0, 1.0])).round(4)
    Array([-0.2194,    -inf,  1.8951], dtype=float32)
    """
    return in_wide("expi", lambda x: principal_value(x), x)


@custom_jvp
def principal_value(x: Array) -> Array:
    size = abs(x)
    infinite, large = vnp.isinf(x), size > LARGE
    near = where(large | (x <= 0), 1.0, x)
    away = where(large & ~infinite, size, LARGE)
    # All terms have one sign, so that none is lost.
    ratio, total = vnp.ones_like(x), vnp.ones_like(x)
    for k in range(1, 41):
        ratio = ratio * where(k < away, k / away, 0.0)
        total = total + ratio
    positive = where(large, vnp.exp(away) / away * total, ascending(near))
    positive = where(infinite, np.inf, positive)
    negative = -exponential_integral(vnp.ones_like(x), where(x < 0, -x, 1.0))
    array = where(x < 0, negative, positive)
    return where(x == 0, -np.inf, where(vnp.isnan(x), np.nan, array))


type Pair = tuple[Array, Array]


def ascending(x: Array) -> Array:
    """γ + log x + Σ x^k / (k k!)."""

    def further(carry: Pair, k: Array) -> tuple[Pair, None]:
        term, total = carry
        term = term * x / k
        return (term, total + term / k), None

    start = (vnp.ones_like(x), vnp.zeros_like(x))
    (_, total), _ = lax.scan(further, start, vnp.arange(1, 130, dtype=x.dtype))
    out: Array = GAMMA + vnp.log(x) + total
    return out


@principal_value.defjvp
def principal_value_tangent(
    primals: Sequence[Array], tangents: Sequence[Array]
) -> tuple[Array, Array]:
    (x,), (t,) = primals, tangents
    return principal_value(x), t * vnp.exp(x) / x


def sici(x: ArrayLike) -> tuple[Array, Array]:
    """Si(x) and Ci(x): the integrals of sin(t)/t from 0, and of cos(t)/t from infinity.

    Ci of a negative x is that of |x|, the real part of the function, as in SciPy.

    Args:
        x: an array or scalar of real numbers; integers become floats.

    Returns:
        A pair of arrays, Si first, each of the shape and dtype of `x`; floats for
        integers. Ci is -inf at 0.

    Raises:
        TypeError: `x` is complex.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> s, c = special.sici(vnp.array([-1.0, 0.0, 1.0, vnp.inf]))
    >>> s.round(4), c.round(4)
    (Array([-0.9461,  0.    ,  0.9461,  1.5708], dtype=float32),
     Array([0.3374,   -inf, 0.3374, 0.    ], dtype=float32))
    """
    return in_wide("sici", sine_integral, x), in_wide("sici", cosine_integral, x)


@custom_jvp
def sine_integral(x: Array) -> Array:
    return sine_and_cosine(x)[0]


@custom_jvp
def cosine_integral(x: Array) -> Array:
    return sine_and_cosine(x)[1]


def sine_and_cosine(x: Array) -> tuple[Array, Array]:
    """Both, since they share their series; what is not needed is not computed."""
    size = abs(x)
    small, infinite = size <= FOUR, vnp.isinf(x)
    near = where(small & (size > 0), size, 1.0)
    s, c = sums(near)
    away = where(small | infinite, FOUR, size)
    rest = turned_fraction(away)
    far_s = where(infinite, 0.5 * math.pi, 0.5 * math.pi + rest.imag)
    far_c = where(infinite, 0.0, -rest.real)
    sine = where(size == 0, 0.0, where(small, s, far_s))
    cosine = where(size == 0, -np.inf, where(small, c, far_c))
    unknown = vnp.isnan(x)
    return (
        where(unknown, np.nan, where(x < 0, -sine, sine)),
        where(unknown | (x == -np.inf), np.nan, cosine),
    )


def sums(x: Array) -> tuple[Array, Array]:
    """Both series, DLMF 6.6.5 and 6.6.6."""
    square = -x * x
    odd, even = vnp.ones_like(x), vnp.ones_like(x)
    s, c = vnp.ones_like(x), vnp.zeros_like(x)
    for k in range(1, 16):
        odd = odd * square / ((2 * k) * (2 * k + 1))
        even = even * square / ((2 * k) * (2 * k - 1))
        s, c = s + odd / (2 * k + 1), c + even / (2 * k)
    return x * s, GAMMA + vnp.log(x) + c


def turned_fraction(x: Array) -> Array:
    """E_1(ix) for x >= 4, by DLMF 6.9.1 from the bottom up."""
    z = lax.complex(vnp.zeros_like(x), x)

    def further(below: Array, k: Array) -> tuple[Array, None]:
        return z + (2 * k + 1) - (k + 1) * (k + 1) / below, None

    steps = vnp.arange(90, -1, -1, dtype=z.dtype)
    below: Array = lax.scan(further, z + 183.0, steps)[0]
    turn: Array = vnp.exp(-z)
    return turn / below


@sine_integral.defjvp
def sine_tangent(
    primals: Sequence[Array], tangents: Sequence[Array]
) -> tuple[Array, Array]:
    (x,), (t,) = primals, tangents
    return sine_integral(x), t * vnp.sinc(x / math.pi)


@cosine_integral.defjvp
def cosine_tangent(
    primals: Sequence[Array], tangents: Sequence[Array]
) -> tuple[Array, Array]:
    (x,), (t,) = primals, tangents
    return cosine_integral(x), t * vnp.cos(x) / x


def spence(x: ArrayLike) -> Array:
    """The dilogarithm of 1 - x: the integral of log(t) / (1 - t) from 1 to x.

    NaN for negative x.

    Args:
        x: an array, a scalar or a list of real numbers; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers. The dtype is not weak.

    Raises:
        TypeError: `x` is complex.

    At 0 it is π²/6:

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.spence(vnp.array([0.0, 2.0, -1.0])).round(4)
    Array([ 1.6449, -0.8225,     nan], dtype=float32)
    """
    return in_wide("spence", lambda x: dilogarithm(x), strong("spence", x))


@custom_jvp
def dilogarithm(x: Array) -> Array:
    """By x near 1, from 1 - x for small x and from 1/x for large."""
    large = x > 2
    size = where(large, x, 1.0)
    y = where(large, 1 / size, x)
    small = y < 0.5
    near = where(small, 1 - y, y)
    u = -vnp.log(where(near > 0, near, 1.0))
    total: Array | float = 0.0
    for c in reversed(BERNOULLI):
        total = total * u + c
    value = total * u
    safe = where(small & (y > 0), y, 0.5)
    reflected = math.pi**2 / 6 - vnp.log(safe) * vnp.log1p(-safe) - value
    array = where(y == 0, math.pi**2 / 6, where(small, reflected, value))
    log = vnp.log(size)
    array = where(large, -0.5 * log * log - array, array)
    return where((x < 0) | vnp.isnan(x), np.nan, array)


@dilogarithm.defjvp
def dilogarithm_tangent(
    primals: Sequence[Array], tangents: Sequence[Array]
) -> tuple[Array, Array]:
    """log(x) / (1 - x), -1 at 1."""
    (x,), (t,) = primals, tangents
    one = x == 1
    slope = -vnp.log(x) / where(one, 1.0, x - 1)
    return dilogarithm(x), t * where(one, -1.0, slope)


# -----------------------------------------------------------------------------
# Hypergeometric functions of real arguments.
#
# A sum of a fixed number of terms, each from the one before, brought to an
# argument where that number is enough; what is a scan has derivatives in everything::
#
#     hyp1f1(a, b, x), hyp2f1(a, b, c, x)
#
# The formulas are those of the NIST Digital Library of Mathematical Functions, chapters
# 13 and 15. Parameters of up to about 30 in size are meant; large ones of different
# signs cancel, and digits are lost.


# Terms of the series for |x| up to LARGE_SERIES, and of the asymptotic one beyond.
TERMS: Final = 260
LARGE_SERIES: Final = 60.0
FAR_TERMS: Final = 40
# Terms that reach float64 up to this argument of the series of hyp2f1.
GAUSS_TERMS: Final = 420
NEAR_ONE: Final = 0.9
# How far a parameter is moved where two solutions become one, by bytes of a float.
APART: Final = {4: 2e-2, 8: 1e-3}


def summed(ratio: Callable[[Array], Array], like: Array, count: int) -> Array:
    """1 + r(0) + r(0) r(1) + ..., up to `count` terms."""

    def further(carry: Pair, k: Array) -> tuple[Pair, None]:
        term, total = carry
        term = term * ratio(k)
        return (term, total + term), None

    start = (vnp.ones_like(like), vnp.ones_like(like))
    (_, total), _ = lax.scan(further, start, vnp.arange(count, dtype=like.dtype))
    out: Array = total
    return out


def is_pole(x: Array) -> Array:
    """Whether Γ is infinite."""
    out: Array = (x <= 0) & (x == vnp.floor(x))
    return out


def ends_before(a: Array, c: Array) -> Array:
    """Whether (a)_k is 0 from a place on at which (c)_k, 0 too later, is none yet."""
    return is_pole(a) & (a >= c)


def quotient(above: Array, below: Array) -> Array:
    """above / below, and 0 for a denominator of 0, with which a series ends."""
    return above / where(below == 0, np.inf, below)


def gammas(above: list[Array], below: list[Array]) -> Array:
    """A product of Γ over a product of Γ; 0 where one below is infinite."""
    sign: Array | float = 1.0
    size: Array | float = 0.0
    gone: Array | None = None
    for factor, xs in ((1.0, above), (-1.0, below)):
        for x in xs:
            pole = is_pole(x)
            safe = where(pole, 1.0, x)
            sign, size = gammasgn(safe) * sign, lgamma(safe) * factor + size
            if factor < 0:
                gone = pole if gone is None else gone | pole
    out = sign * vnp.exp(size)
    return out if gone is None else where(gone, 0.0, out)


def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Kummer's function, the sum of (a)_k / (b)_k x^k / k!; DLMF 13.2.2.

    Infinite where b is 0 or a negative integer, unless the sum ends before: for
    negative integers a that are not below b, and 1 for a = 0.

    Args:
        a, b, x: arrays or scalars of real numbers that broadcast together; integers
            become floats. Parameters up to about 30 in size keep their digits.

    Returns:
        The shape to which the arguments broadcast, in the float dtype to which they
        promote.

    Raises:
        TypeError: an argument is complex.
        ValueError: the shapes do not broadcast together.

    With a negative integer a the sum ends, here as 1 - x / 2:

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.hyp1f1(-1.0, 2.0, vnp.array([0.0, 1.0, 2.0]))
    Array([1. , 0.5, 0. ], dtype=float32)
    >>> round(float(special.hyp1f1(1.0, 2.0, 1.0)), 4)
    1.7183
    """
    return in_wide("hyp1f1", kummer, a, b, x)


def kummer(a: Array, b: Array, x: Array) -> Array:
    a, b, x = vnp.broadcast_arrays(a, b, x)
    # exp(x) times the same of b - a and -x has terms of one sign, where a does not end.
    turned = (x < 0) & ~is_pole(a)
    p, z = where(turned, b - a, a), where(turned, -x, x)
    far = (abs(z) > LARGE_SERIES) & ~is_pole(p)
    near = where(far, 0.0, z)
    bottom, ends = where(is_pole(b), 1.0, b), ends_before(a, b)
    under = where(ends, b, bottom)
    series = summed(lambda k: quotient(p + k, under + k) * near / (k + 1), near, TERMS)
    away = where(far, z, LARGE_SERIES)
    tail = summed(
        lambda k: where(
            abs((b - p + k) * (1 - p + k)) < (k + 1) * away,
            (b - p + k) * (1 - p + k) / ((k + 1) * away),
            0.0,
        ),
        away,
        FAR_TERMS,
    )
    # The exponential of the far form and that of the turn meet before they overflow.
    exponent = where(far, where(turned, 0.0, away), where(turned, -z, 0.0))
    size = gammas([bottom], [p]) * where(far, away, 1.0) ** where(far, p - b, 0.0)
    array = vnp.exp(exponent) * where(far, size * tail, series)
    array = where(is_pole(b) & ~ends, np.inf, array)
    array = where((a == b) & ~is_pole(b), vnp.exp(x), array)
    return where((a == 0) | (x == 0), 1.0, array)


def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Gauss's function for x <= 1, the sum of (a)_k (b)_k / (c)_k x^k / k!.

    Infinite beyond 1, as in SciPy, unless the sum ends. Infinite where c is 0 or a
    negative integer, unless the sum ends before: where a or b is one that is not below
    c. Above 0.9, where c - a - b is nearly an integer, it is interpolated from
    neighbours, and about 4 digits are lost. DLMF 15.2.1.

    Args:
        a, b, c, x: arrays or scalars of real numbers that broadcast together; integers
            become floats. Parameters up to about 30 in size keep their digits.

    Returns:
        The shape to which the arguments broadcast, in the float dtype to which they
        promote.

    Raises:
        TypeError: an argument is complex.
        ValueError: the shapes do not broadcast together.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> round(float(special.hyp2f1(1.0, 1.0, 2.0, 0.5)), 4)
    1.3863
    >>> special.hyp2f1(vnp.array([1.0, -1.0]), 1.0, 2.0, 2.0)
    Array([inf,  0.], dtype=float32)
    """
    return in_wide("hyp2f1", gauss, a, b, c, x)


def gauss(a: Array, b: Array, c: Array, x: Array) -> Array:
    a, b, c, x = vnp.broadcast_arrays(a, b, c, x)
    ends = is_pole(a) | is_pole(b)
    bottom = where(is_pole(c) & ~ends, 1.0, c)
    # (1 - x)^-a times the same of c - b and x / (x - 1) is in [0, 1).
    turned = (x < 0) & ~ends
    safe = where(turned, x, 0.0)
    z = where(turned, safe / (safe - 1), x)
    # Of the two turns, the one that ends or grows less.
    swap = turned & (is_pole(c - a) | (~is_pole(c - b) & (b < a)))
    first, second = where(swap, b, a), where(swap, a, b)
    factor = where(turned, (1 - safe) ** -first, 1.0)
    q = where(turned, bottom - second, second)
    stops = ends | is_pole(q)
    close = (z > NEAR_ONE) & (z < 1) & ~stops
    inside = where(stops | (z <= NEAR_ONE), z, 0.0)
    series = gauss_series(first, q, bottom, inside)
    array = where(close, near_one(first, q, bottom, where(close, z, 0.95)), series)
    array = where((z == 1) & ~stops, at_one(first, q, bottom), array)
    array = where((x > 1) & ~stops, np.inf, factor * array)
    array = where(is_pole(c) & ~(ends_before(a, c) | ends_before(b, c)), np.inf, array)
    return where((x == 0) | (a == 0) | (b == 0), 1.0, array)


def gauss_series(a: Array, b: Array, c: Array, x: Array) -> Array:
    def ratio(k: Array) -> Array:
        # Behind its end a series has no ratio, in which cotangents would grow.
        ended = (is_pole(a) & (k >= -a)) | (is_pole(b) & (k >= -b))
        return where(ended, 0.0, quotient((a + k) * (b + k), (c + k) * (k + 1)) * x)

    return summed(ratio, x, GAUSS_TERMS)


def at_one(a: Array, b: Array, c: Array) -> Array:
    """Γ(c) Γ(c - a - b) / (Γ(c - a) Γ(c - b)), DLMF 15.4.20."""
    rest = c - a - b
    converges = rest > 0
    array = gammas([c, where(converges, rest, 1.0)], [c - a, c - b])
    return where(converges, array, np.inf)


def near_one(a: Array, b: Array, c: Array, x: Array) -> Array:
    """By series in 1 - x, DLMF 15.8.4, which has no sense for whole c - a - b.

    Around those it is interpolated from four neighbours.
    """
    rest = c - a - b
    whole = vnp.round(rest)
    apart = APART[x.dtype.itemsize]
    close = abs(rest - whole) < apart
    s = where(close, (rest - whole) / apart, 0.0)
    places = ((s * s - 1) * (2 - s) / 12, (s * s - 4) * (s - 1) / 6)
    weights = (*places, (4 - s * s) * (s + 1) / 6, (s * s - 1) * (s + 2) / 12)
    total: Array | float = 0.0
    for node, weight in zip((-2, -1, 1, 2), weights, strict=True):
        step = where(close, whole - rest + node * apart, 0.0)
        value = two_series(a, b, c + step, x)
        total = where(close, weight, 0.25) * value + total
    assert isinstance(total, Array)
    return total


def two_series(a: Array, b: Array, c: Array, x: Array) -> Array:
    rest, away = c - a - b, 1 - x
    first = gauss_series(a, b, 1 - rest, away)
    second = gauss_series(c - a, c - b, 1 + rest, away)
    return (
        gammas([c, rest], [c - a, c - b]) * first
        + gammas([c, -rest], [a, b]) * away**rest * second
    )
