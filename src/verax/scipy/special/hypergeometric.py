"""Floor 6: hypergeometric functions of real arguments.

One idea: a sum of a fixed number of terms, each from the one before, brought to an
argument where that number is enough; what is a scan has derivatives in everything::

    hyp1f1(a, b, x), hyp2f1(a, b, c, x)

The formulas are those of the NIST Digital Library of Mathematical Functions, chapters
13 and 15. Parameters of up to about 30 in size are meant; large ones of different signs
cancel, and digits are lost.
"""

from typing import Any, Final

import numpy as np

from verax import lax, numpy as vnp
from verax.numpy import where
from verax.numpy.arguments.arguments import ArrayLike
from verax.ops.special.erf_gamma import lgamma
from verax.rules.values.array import Array
from verax.scipy.special.arguments import in_wide
from verax.scipy.special.functions import gammasgn

# Terms of the series for |x| up to LARGE, and of the asymptotic one beyond.
TERMS: Final = 260
LARGE: Final = 60.0
FAR_TERMS: Final = 40
# Terms that reach float64 up to this argument of the series of hyp2f1.
GAUSS_TERMS: Final = 420
NEAR_ONE: Final = 0.9
# How far a parameter is moved where two solutions become one, by bytes of a float.
APART: Final = {4: 2e-2, 8: 1e-3}


def summed(ratio: Any, like: Array, count: int) -> Array:
    """1 + r(0) + r(0) r(1) + ..., up to `count` terms."""

    def further(carry: Any, k: Array) -> tuple[Any, None]:
        term, total = carry
        term = term * ratio(k)
        return (term, total + term), None

    start = (vnp.ones_like(like), vnp.ones_like(like))
    (_, total), _ = lax.scan(further, start, vnp.arange(count, dtype=like.dtype))
    found: Array = total
    return found


def is_pole(x: Array) -> Array:
    """Whether Γ is infinite."""
    found: Array = (x <= 0) & (x == vnp.floor(x))
    return found


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
    found = sign * vnp.exp(size)
    return found if gone is None else where(gone, 0.0, found)


def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Kummer's function, the sum of (a)_k / (b)_k x^k / k!.

    >>> round(float(hyp1f1(1.0, 2.0, 1.0)), 4)
    1.7183
    """
    return in_wide("hyp1f1", kummer, a, b, x)


def kummer(a: Array, b: Array, x: Array) -> Array:
    a, b, x = vnp.broadcast_arrays(a, b, x)
    # exp(x) times the same of b - a and -x has terms of one sign, where a does not end.
    turned = (x < 0) & ~is_pole(a)
    p, z = where(turned, b - a, a), where(turned, -x, x)
    far = (abs(z) > LARGE) & ~is_pole(p)
    near = where(far, 0.0, z)
    bottom = where(is_pole(b), 1.0, b)
    series = summed(lambda k: (p + k) / (bottom + k) * near / (k + 1), near, TERMS)
    away = where(far, z, LARGE)
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
    found = vnp.exp(exponent) * where(far, size * tail, series)
    found = where(is_pole(b), np.inf, found)
    found = where((a == b) & ~is_pole(b), vnp.exp(x), found)
    return where((a == 0) | (x == 0), 1.0, found)


def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Gauss's function for x <= 1, the sum of (a)_k (b)_k / (c)_k x^k / k!.

    NaN beyond 1, unless the sum ends. Above 0.9, where c - a - b is nearly an
    integer, it is interpolated from neighbours, and about 4 digits are lost.

    >>> round(float(hyp2f1(1.0, 1.0, 2.0, 0.5)), 4)
    1.3863
    """
    return in_wide("hyp2f1", gauss, a, b, c, x)


def gauss(a: Array, b: Array, c: Array, x: Array) -> Array:
    a, b, c, x = vnp.broadcast_arrays(a, b, c, x)
    ends = is_pole(a) | is_pole(b)
    bottom = where(is_pole(c), 1.0, c)
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
    found = where(close, near_one(first, q, bottom, where(close, z, 0.95)), series)
    found = where((z == 1) & ~stops, at_one(first, q, bottom), found)
    found = where((x > 1) & ~stops, np.nan, factor * found)
    found = where(is_pole(c) & ~ends, np.inf, found)
    return where((x == 0) | (a == 0) | (b == 0), 1.0, found)


def gauss_series(a: Array, b: Array, c: Array, x: Array) -> Array:
    def ratio(k: Array) -> Array:
        found: Array = (a + k) * (b + k) / ((c + k) * (k + 1)) * x
        return found

    return summed(ratio, x, GAUSS_TERMS)


def at_one(a: Array, b: Array, c: Array) -> Array:
    """Γ(c) Γ(c - a - b) / (Γ(c - a) Γ(c - b)), DLMF 15.4.20."""
    rest = c - a - b
    converges = rest > 0
    found = gammas([c, where(converges, rest, 1.0)], [c - a, c - b])
    return where(converges, found, np.inf)


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
