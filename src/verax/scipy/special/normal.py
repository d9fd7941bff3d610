"""Floor 6: the normal distribution function, its logarithm and its inverses.

One idea: a tail is computed as a tail, never as one minus the rest::

    ndtri(1e-30)                   # -11.46...

The inverse is the rational approximation of Cephes' ndtri (S. Moshier, "Methods and
Programs for Mathematical Functions", 1989), whose tail is in powers of 1/√(-2 log p).
"""

import math
from typing import Any, Final

from verax.api.custom.jvp import custom_jvp
from verax.ir.dtypes import float64
from verax.numpy.arguments.arguments import ArrayLike, with_weak_type
from verax.ops.elementwise.arith import (
    add,
    div,
    integer_pow,
    min as smaller,
    mul,
    neg,
    sub,
)
from verax.ops.elementwise.bits import bitwise_or
from verax.ops.elementwise.compare import eq, ge, gt, le, lt, ne
from verax.ops.elementwise.exp_log import exp, log, log1p, sqrt, square
from verax.ops.elementwise.select import select
from verax.ops.special.erf_gamma import erfc
from verax.rules.values.array import Array
from verax.scipy.special.arguments import in_wide, polynomial, reals

LOG_SQRT_2_PI: Final = 0.5 * math.log(2 * math.pi)
SQRT_2_PI: Final = math.sqrt(2 * math.pi)
TAIL: Final = math.exp(-2)

# Numerators and denominators: the middle, then 2 < √(-2 log p) < 8, then beyond.
MIDDLE: Final = (
    (
        -59.9633501014107895267, 98.0010754185999661536, -56.6762857469070293439,
        13.9312609387279679503, -1.23916583867381258016,
    ),
    (
        1.0, 1.95448858338141759834, 4.67627912898881538453, 86.3602421390890590575,
        -225.462687854119370527, 200.260212380060660359, -82.0372256168333339912,
        15.9056225126211695515, -1.18331621121330003142,
    ),
)  # fmt: skip
NEAR: Final = (
    (
        4.05544892305962419923, 31.5251094599893866154, 57.1628192246421288162,
        44.0805073893200834700, 14.6849561928858024014, 2.18663306850790267539,
        -0.140256079171354495875, -0.0350424626827848203418,
        -8.57456785154685413611e-4,
    ),
    (
        1.0, 15.7799883256466749731, 45.3907635128879210584, 41.3172038254672030440,
        15.0425385692907503408, 2.50464946208309415979, -0.142182922854787788574,
        -0.0380806407691578277194, -9.33259480895457427372e-4,
    ),
)  # fmt: skip
FAR: Final = (
    (
        3.23774891776946035970, 6.91522889068984211695, 3.93881025292474443415,
        1.33303460815807542389, 0.201485389549179081538, 0.0123716634817820021358,
        3.01581553508235416007e-4, 2.65806974686737550832e-6,
        6.23974539184983293730e-9,
    ),
    (
        1.0, 6.02427039364742014255, 3.67983563856160859403, 1.37702099489081330271,
        0.216236993594496635890, 0.0134204006088543189037, 3.28014464682127739104e-4,
        2.89247864745380683936e-6, 6.79019408009981274425e-9,
    ),
)  # fmt: skip


def strong(name: str, x: ArrayLike) -> Array:
    """A real argument; that it was a Python number does not make the result weak."""
    (z,) = reals(name, x)
    return with_weak_type(z, False)


def ndtr(x: ArrayLike) -> Array:
    """The distribution function of the normal distribution, erfc(-x/√2) / 2.

    >>> ndtr(0.0)
    Array(0.5, dtype=float32)
    """
    z = strong("ndtr", x)
    return mul(erfc(mul(z, -math.sqrt(0.5))), 0.5)


def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """log(ndtr(x)), accurate in both tails; below by an asymptotic series.

    Raises:
        ValueError: `series_order` is not between 0 and 30.

    >>> float(log_ndtr(-100.0)) < -5000
    True
    """
    if not 0 <= series_order <= 30:
        raise ValueError(
            f"log_ndtr: series_order must be between 0 and 30, not {series_order}"
        )
    z = strong("log_ndtr", x)
    return in_wide("log_ndtr", lambda z: log_normal(z, series_order), z)


def log_normal(z: Array, order: int) -> Array:
    """`log_ndtr` of float32 or float64: above 0 the log of 1 less the other tail."""
    lower = -20.0 if z.dtype == float64 else -10.0
    high, low = gt(z, 0.0), le(z, lower)
    middle = log(ndtr(select(bitwise_or(high, low), 0.0, z)))
    tail = log_tail(select(low, z, lower), order)
    above = log1p(neg(ndtr(neg(select(high, z, 0.0)))))
    return select(high, above, select(low, tail, middle))


def log_tail(x: Array, order: int) -> Array:
    """log(ndtr(x)) for x far below 0: log of φ(x)/-x (1 - 1/x² + 3/x⁴ - ...)."""
    head = sub(sub(mul(square(x), -0.5), log(neg(x))), LOG_SQRT_2_PI)
    series: Array | float = 0.0
    coefficient = 1.0
    for n in range(1, order + 1):
        coefficient *= -(2 * n - 1)
        series = add(mul(integer_pow(x, -2 * n), coefficient), series)
    return head if order == 0 else add(head, log1p(series))


def ndtri(p: ArrayLike) -> Array:
    """The inverse of `ndtr`: the x below which a normal variable lies with probability
    p.

    Infinite at 0 and 1, NaN outside [0, 1].

    >>> ndtri(0.5)
    Array(0., dtype=float32)
    """
    return in_wide("ndtri", normal_quantile, strong("ndtri", p))


def erfcinv(y: ArrayLike) -> Array:
    """The number whose `erfc` is y, accurate for y near 0; y is in [0, 2].

    >>> erfcinv(1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return in_wide("erfcinv", lambda y: inverse_of_erfc(y), y)


def inverse_of_erfc(y: Array) -> Array:
    return sub(0.0, mul(normal_quantile(mul(y, 0.5)), math.sqrt(0.5)))


@custom_jvp
def normal_quantile(p: Array) -> Array:
    """`ndtri` of float32 or float64."""
    inside = bitwise_or(le(p, 0.0), ge(p, 1.0))
    safe = select(inside, 0.5, p)
    below = smaller(safe, sub(1.0, safe))
    tail = le(below, TAIL)
    offset = sub(safe, 0.5)
    squared = square(select(tail, 0.0, offset))
    middle = mul(
        add(offset, mul(mul(offset, squared), ratio(squared, MIDDLE))), SQRT_2_PI
    )
    edge = lower_quantile(select(tail, below, TAIL))
    edge = select(lt(offset, 0.0), edge, neg(edge))
    found = select(tail, edge, middle)
    found = select(eq(p, 0.0), -math.inf, select(eq(p, 1.0), math.inf, found))
    outside = bitwise_or(bitwise_or(lt(p, 0.0), gt(p, 1.0)), ne(p, p))
    return select(outside, math.nan, found)


def lower_quantile(p: Array) -> Array:
    """The quantile for 0 < p <= exp(-2)."""
    y = sqrt(mul(log(p), -2.0))
    near = lt(y, 8.0)
    z = div(1.0, y)
    correction = mul(z, select(near, ratio(z, NEAR), ratio(select(near, 0.1, z), FAR)))
    return sub(add(correction, div(log(y), y)), y)


def ratio(x: Array, terms: tuple[tuple[float, ...], tuple[float, ...]]) -> Array:
    """A rational function of x."""
    return div(polynomial(x, terms[0]), polynomial(x, terms[1]))


@normal_quantile.defjvp
def quantile_tangent(primals: Any, tangents: Any) -> tuple[Array, Array]:
    """The slope of the inverse is one over the density."""
    x = normal_quantile(*primals)
    return x, mul(tangents[0], mul(exp(mul(square(x), 0.5)), SQRT_2_PI))
