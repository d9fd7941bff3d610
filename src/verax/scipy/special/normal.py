"""Floor 6: the normal distribution function, its relatives, and error functions.

One idea: a tail is computed as a tail, never as one minus the rest::

    ndtri(1e-30)                   # -11.46...

The inverse is the rational approximation of Cephes' ndtri (S. Moshier, "Methods and
Programs for Mathematical Functions", 1989), whose tail is in powers of 1/√(-2 log p).
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np

from verax import lax, numpy as vnp
from verax.api.custom.jvp import custom_jvp
from verax.ir.dtypes import float64, is_complex
from verax.numpy import where
from verax.numpy.arguments.arguments import ArrayLike
from verax.ops.elementwise.arith import (
    add,
    div,
    integer_pow,
    min as smaller,
    mul,
    neg,
    sub,
)
from verax.ops.elementwise.compare import eq, gt, le, lt
from verax.ops.elementwise.exp_log import exp, log, log1p, sqrt, square
from verax.ops.elementwise.select import select
from verax.ops.special.erf_gamma import erfc
from verax.ops.structure.create import full_like
from verax.rules.values.array import Array
from verax.scipy.special.arguments import in_wide, inexact, polynomial, strong
from verax.scipy.tables import row

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


def ndtr(x: ArrayLike) -> Array:
    """The distribution function of the normal distribution, erfc(-x/√2) / 2.

    Args:
        x: an array, a scalar or a list of real numbers; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers. The dtype is not weak.

    Raises:
        TypeError: `x` is complex.

    >>> from verax.scipy import special
    >>> special.ndtr(0.0)
    Array(0.5, dtype=float32)
    >>> special.ndtr(-10.0).item()
    7.6198...e-24
    """
    z = strong("ndtr", x)
    return mul(erfc(mul(z, -math.sqrt(0.5))), 0.5)


def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """log(ndtr(x)), accurate in both tails; below by an asymptotic series.

    Args:
        x: an array, a scalar or a list of real numbers; integers become floats.
        series_order: the number of terms, 0 to 30, of that series, which serves below
            -10 in float32 and -20 in float64; by default 3.

    Returns:
        The shape and dtype of `x`; floats for integers. The dtype is not weak.

    Raises:
        TypeError: `x` is complex.
        ValueError: `series_order` is not between 0 and 30.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> float(vnp.log(special.ndtr(-100.0))), float(special.log_ndtr(-100.0))
    (-inf, -5005.5...)
    """
    if not 0 <= series_order <= 30:
        raise ValueError(
            f"log_ndtr: series_order must be between 0 and 30, not {series_order}"
        )
    z = strong("log_ndtr", x)
    return in_wide("log_ndtr", lambda z: log_normal(z, series_order), z)


@partial(custom_jvp, nondiff_argnums=(1,))
def log_normal(z: Array, order: int) -> Array:
    """`log_ndtr` of float32 or float64: above 0 the log of 1 less the other tail.

    Far below 0 it is that of φ(z)/-z (1 - 1/z² + 3/z⁴ - ...).
    """
    low, tail, series = regions(z, order)
    whole = log(select(low, neg(z), tail))
    near_one = log1p(select(low, series, neg(tail)))
    head = sub(mul(square(z), -0.5), LOG_SQRT_2_PI)
    below = select(low, add(sub(head, whole), near_one), whole)
    return select(gt(z, 0.0), near_one, below)


@log_normal.defjvp
def log_normal_tangent(
    order: int, primals: Sequence[Array], tangents: Sequence[Array]
) -> tuple[Array, Array]:
    """The density by the distribution function, -z by the series far below 0."""
    (z,) = primals
    low, tail, series = regions(z, order)
    density = mul(exp(mul(square(select(low, 0.0, z)), -0.5)), 1 / SQRT_2_PI)
    below = select(gt(z, 0.0), sub(1.0, tail), tail)
    slope = div(select(low, neg(z), density), select(low, add(series, 1.0), below))
    return log_normal(z, order), mul(tangents[0], slope)


def regions(z: Array, order: int) -> tuple[Array, Array, Array]:
    """Where z is far below 0, the smaller tail elsewhere, and the series there."""
    lower = -20.0 if z.dtype == float64 else -10.0
    low = le(z, lower)
    tail = ndtr(select(low, 0.0, select(gt(z, 0.0), neg(z), z)))
    return low, tail, asymptotic(select(low, z, lower), order)


def asymptotic(x: Array, order: int) -> Array:
    """-1/x² + 3/x⁴ - ..., so many terms.

    From the last term to the first, since the factors alone overflow in float32.
    """
    if order == 0:
        return full_like(x, 0.0)
    step = integer_pow(x, -2)
    series = mul(step, 1.0 - 2 * order)
    for n in range(order - 1, 0, -1):
        series = mul(mul(step, 1.0 - 2 * n), add(series, 1.0))
    return series


def ndtri(p: ArrayLike) -> Array:
    """The x below which a normal variable lies with probability p; `ndtr` inverted.

    Infinite at 0 and 1, NaN outside [0, 1].

    Args:
        p: an array or scalar of probabilities; integers become floats.

    Returns:
        The shape and dtype of `p`; floats for integers. The dtype is not weak.

    Raises:
        TypeError: `p` is complex.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.ndtri(0.5)
    Array(0., dtype=float32)
    >>> special.ndtri(vnp.array([0.0, 0.975, 1.5])).round(2)
    Array([-inf, 1.96,  nan], dtype=float32)
    """
    return in_wide("ndtri", normal_quantile, strong("ndtri", p))


def erfcinv(y: ArrayLike) -> Array:
    """The number whose `erfc` is y, accurate for y near 0.

    Args:
        y: an array or scalar of numbers in [0, 2]; integers become floats.

    Returns:
        The shape and dtype of `y`; floats for integers. Infinite at 0 and 2, NaN
        outside.

    Raises:
        TypeError: `y` is complex.

    >>> from verax.scipy import special
    >>> special.erfcinv(1.0)
    Array(0., dtype=float32, weak_type=True)
    >>> special.erfcinv(1e-30).round(3).item(), special.erfcinv(0.0).item()
    (8.149..., inf)
    """
    return in_wide("erfcinv", lambda y: inverse_of_erfc(y), y)


def inverse_of_erfc(y: Array) -> Array:
    return sub(0.0, mul(normal_quantile(mul(y, 0.5)), math.sqrt(0.5)))


@custom_jvp
def normal_quantile(p: Array) -> Array:
    """`ndtri` of float32 or float64."""
    below = smaller(p, sub(1.0, p))  # negative outside, where the logarithm is NaN
    tail = le(below, TAIL)
    offset = sub(p, 0.5)
    y = sqrt(mul(log(select(tail, below, TAIL)), -2.0))
    z = div(1.0, y)
    squared = square(offset)
    # The three rational functions share a division.
    near, far, middle = terms(z, NEAR), terms(z, FAR), terms(squared, MIDDLE)
    above, under = [
        select(tail, select(lt(y, 8.0), a, b), c)
        for a, b, c in zip(near, far, middle, strict=True)
    ]
    quotient = div(above, under)
    edge = sub(y, mul(z, add(quotient, log(y))))
    edge = select(eq(below, 0.0), math.inf, edge)
    edge = select(lt(offset, 0.0), neg(edge), edge)
    centre = mul(add(offset, mul(mul(offset, squared), quotient)), SQRT_2_PI)
    return select(tail, edge, centre)


def terms(x: Array, parts: tuple[tuple[float, ...], ...]) -> tuple[Array, Array]:
    """The two polynomials of a rational function of x."""
    return polynomial(x, parts[0]), polynomial(x, parts[1])


@normal_quantile.defjvp
def quantile_tangent(
    primals: Sequence[Array], tangents: Sequence[Array]
) -> tuple[Array, Array]:
    """The slope of the inverse is one over the density."""
    x = normal_quantile(*primals)
    return x, mul(tangents[0], mul(exp(mul(square(x), 0.5)), SQRT_2_PI))


# -----------------------------------------------------------------------------
# Faddeeva's function and what follows from it: erfcx, Dawson, Fresnel.
#
# W(z) = exp(-z²) erfc(-iz) is an integral over a Gaussian, for which the
# trapezoidal rule is exact to the last digits once the pole's residue is added; a dozen
# points serve the whole quadrant::
#
#     w(z) ≈ 2ihz/π Σ exp(-t²) / (z² - t²) + residue
#
# M. Al Azah, S. Chandler-Wilde, "Computation of the complex error function using
# modified trapezoidal rules", 2021; for real arguments G. Rybicki, "Dawson's integral
# and the sampling theorem", 1989.


POINTS: Final = 11
H: Final = math.sqrt(math.pi / (POINTS + 1))
MIDPOINTS: Final = (np.arange(POINTS + 1) + 0.5) * H
NODES: Final = np.arange(1, POINTS + 1) * H
# From here on w and Dawson's integral have all digits of float64 by their series.
ERF_FAR: Final = 7.0
TERMS: Final = 18
# The distance of the points, and how many, for Dawson's integral.
STEP: Final = 0.2
ODD: Final = np.arange(1, 70, 2)
SQRT_PI: Final = math.sqrt(math.pi)


def wofz(z: ArrayLike) -> Array:
    """Faddeeva's function exp(-z²) erfc(-iz); DLMF 7.2.3.

    Args:
        z: an array or scalar, real or complex; integers become floats.

    Returns:
        The shape of `z`, complex: complex64, or complex128 for numbers of 64 bits.

    Its imaginary part at real numbers is Dawson's integral times 2/√π:

    >>> from verax.scipy import special
    >>> complex(special.wofz(0.0))
    (1+0j)
    >>> special.wofz(1.0).round(3)
    Array(0.368+0.607j, dtype=complex64)
    """
    (x,) = inexact("wofz", z)
    out: Array = faddeeva(x if is_complex(x.dtype) else x + 0j)
    return out


@custom_jvp
def faddeeva(z: Array) -> Array:
    """w(z), in the upper half plane by `quadrant`, below from its reflection."""
    low = z.imag < 0
    upper = where(low, -z, z)
    left = upper.real < 0
    turned = where(left, -vnp.conj(upper), upper)
    value = quadrant(turned)
    value = where(left, vnp.conj(value), value)
    return where(low, twice_gauss(where(low, z, 0.0)) - value, value)


def twice_gauss(z: Array) -> Array:
    """2 exp(-z²) below the real axis; a part that overflows leaves the other alone."""
    x, y = z.real, z.imag
    half = vnp.exp((y - x) * (y + x) * 0.5)
    angle = where(half == 0, 0.0, where(x == 0, x, -2 * x * y))
    # Real on the imaginary axis, also where it is infinite.
    flat = angle == 0
    slanted = 2 * vnp.sin(angle) * where(flat, 1.0, half) * where(flat, 1.0, half)
    return lax.complex(2 * vnp.cos(angle) * half * half, where(flat, angle, slanted))


def quadrant(z: Array) -> Array:
    """w(z) for z in the closed first quadrant."""
    x, y = z.real, z.imag
    far = abs(z) > 1e8
    safe = where(far | (z == 0), 1.0 + 1.0j, z).astype(z.dtype)
    x, y = safe.real, safe.imag
    fraction = x / H - vnp.floor(x / H)
    between = (y < x) & (fraction >= 0.25) & (fraction <= 0.75)
    plain = y >= vnp.maximum(x, math.pi / H)
    squared = safe * safe
    factor = 2j * H / math.pi * safe
    midpoints = factor * rule(squared, MIDPOINTS, ~between)
    nodes = factor * rule(squared, NODES, between) + 1j * H / math.pi / safe
    # exp(-z²) / (1 ± exp(-2πiz/h)), with the larger exponential taken out.
    turn = vnp.exp(2j * math.pi / H * where(plain, 1.0, safe))
    residue = 2 * vnp.exp(-where(plain, 0.0, squared)) * turn
    middle = midpoints + where(plain, 0.0, residue / (turn + 1))
    ends = nodes + residue / where(between, turn - 1, 1.0)
    array = where(between, ends, middle)
    limit = 1j / (SQRT_PI * where(z == 0, 1.0, z))
    return where(z == 0, 1.0, where(far, limit, array)).astype(z.dtype)


def rule(squared: Array, points: np.ndarray, used: Array) -> Array:
    """Σ exp(-t²) / (z² - t²) where it is used, and elsewhere no division by zero."""
    total: Array | float = 0.0
    for t in points.tolist():
        gap = squared - t * t
        total = math.exp(-t * t) / where(used, gap, 1.0) + total
    assert isinstance(total, Array)
    return total


@faddeeva.defjvp
def faddeeva_tangent(
    primals: Sequence[Array], tangents: Sequence[Array]
) -> tuple[Array, Array]:
    """w' = -2zw + 2i/√π, and far out the derivative of the series."""
    (z,) = primals
    w = faddeeva(z)
    low = z.imag < 0
    far = abs(z) > ERF_FAR
    upper = where(far, where(low, -z, z), 10.0)
    series = slope_far_out(upper)
    gauss = vnp.exp(-where(low & far, z * z, 0.0))
    outside = where(low, -4 * z * gauss + series, series)
    inside = -2 * where(far, 0.0, z) * where(far, 0.0, w) + 2j / SQRT_PI
    return w, tangents[0] * where(far, outside, inside).astype(z.dtype)


def slope_far_out(z: Array) -> Array:
    """-i/(√π z²) Σ (2k+1)!!/(2z²)^k in the upper half plane."""
    half = 0.5 / (z * z)
    term, total = vnp.ones_like(z), vnp.ones_like(z)
    for k in range(1, TERMS):
        term = term * (2 * k + 1) * half
        total = total + term
    return -2j / SQRT_PI * half * total


def erfcx(x: ArrayLike) -> Array:
    """exp(x²) erfc(x), real or complex, without overflow for large x.

    Args:
        x: an array or scalar, real or complex; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers.

    >>> from verax.scipy import special
    >>> special.erfcx(0.0)
    Array(1., dtype=float32, weak_type=True)
    >>> special.erfc(100.0).item(), special.erfcx(100.0).round(6).item()
    (0.0, 0.005642...)
    """
    (z,) = inexact("erfcx", x)
    if is_complex(z.dtype):
        out: Array = faddeeva(1j * z)
        return out
    return in_wide("erfcx", lambda x: scaled_complement(x), z)


@custom_jvp
def scaled_complement(x: Array) -> Array:
    """`erfcx` of real numbers: w on the imaginary axis."""
    size = abs(x)
    array = on_axis(vnp.minimum(size, 1e8))
    tail = 1 / (SQRT_PI * where(size > 1e8, size, 1.0))
    array = where(size > 1e8, tail, array)
    return where(x < 0, 2 * vnp.exp(where(x < 0, x * x, 0.0)) - array, array)


def on_axis(y: Array) -> Array:
    """w(iy) for y >= 0, which is real."""
    total: Array | float = 0.0
    for t in MIDPOINTS.tolist():
        total = math.exp(-t * t) / (y * y + t * t) + total
    plain = y >= math.pi / H
    near = where(plain, 0.0, y)
    residue = 2 * vnp.exp(near * near) / (1 + vnp.exp(2 * math.pi / H * near))
    return 2 * H / math.pi * y * total + where(plain, 0.0, residue)


@scaled_complement.defjvp
def scaled_complement_tangent(
    primals: Sequence[Array], tangents: Sequence[Array]
) -> tuple[Array, Array]:
    """2x erfcx - 2/√π, and far out the derivative of the series."""
    (x,) = primals
    value = scaled_complement(x)
    far = x > ERF_FAR
    half = -0.5 / vnp.square(where(far, x, ERF_FAR))
    term, total = vnp.ones_like(x), vnp.ones_like(x)
    for k in range(1, TERMS):
        term = term * (2 * k + 1) * half
        total = total + term
    inside = 2 * where(far, 0.0, x) * where(far, 0.0, value) - 2 / SQRT_PI
    return value, tangents[0] * where(far, 2 / SQRT_PI * half * total, inside)


def dawsn(x: ArrayLike) -> Array:
    """Dawson's integral exp(-x²) ∫ exp(t²) dt from 0 to x; DLMF 7.2.5.

    Args:
        x: an array or scalar of real numbers; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers.

    Raises:
        TypeError: `x` is complex.

    It is odd, and about 1/(2x) far out:

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.dawsn(vnp.array([-1.0, 0.0, 1.0, 500.0])).round(4)
    Array([-0.5381,  0.    ,  0.5381,  0.001 ], dtype=float32)
    """
    return in_wide("dawsn", dawson, x)


def dawson(x: Array) -> Array:
    size = abs(x)
    far = size > ERF_FAR
    near = where(far, 0.0, size)[..., None]
    n = row(ODD * 1.0, near)
    bells = vnp.exp(-vnp.square(near - n * STEP)) * -vnp.expm1(-4 * STEP * n * near)
    middle = (bells / n).sum(-1) / SQRT_PI
    half = 0.5 / vnp.square(where(far, size, ERF_FAR))
    total = vnp.ones_like(size)
    for k in range(TERMS, 0, -1):
        total = 1 + (2 * k - 1) * half * total
    outside = 0.5 / where(far, size, 1.0) * total
    # The sign as a factor has a slope of its own at 0: none, so the sum is selected.
    array = where(far, outside, middle)
    return where(x < 0, -array, where(x == 0, x, array))


def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """The integrals of sin(πt²/2) and of cos(πt²/2) from 0 to x; DLMF 7.2(iii).

    Args:
        x: an array or scalar of real numbers; integers become floats.

    Returns:
        A pair of arrays, the integral of the sine first, each of the shape and dtype of
        `x`; floats for integers.

    Raises:
        TypeError: `x` is complex.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> s, c = special.fresnel(vnp.array([0.0, 1.0, vnp.inf]))
    >>> s.round(4), c.round(4)
    (Array([0.    , 0.4383, 0.5   ], dtype=float32),
     Array([0.    , 0.7799, 0.5   ], dtype=float32))
    """
    both = in_wide("fresnel", lambda x: vnp.stack(fresnel_integrals(x)), x)
    return both[0], both[1]


@custom_jvp
def fresnel_integrals(x: Array) -> tuple[Array, Array]:
    """By series up to 1.5, then by the error function of complex arguments."""
    size = abs(x)
    small = size < 1.5
    near = where(small, size, 0.0)
    angle = 0.5 * math.pi * near * near
    s, c = alternating(angle, 3), alternating(angle, 1)
    # Beyond this what is left is less than half a unit in the last place.
    infinite = size > 1 / float(vnp.finfo(x.dtype).eps)
    away = where(small | infinite, 1.5, size)
    # What is left beyond x turns with x²; its size is Faddeeva's function.
    z = 0.5 * SQRT_PI * (1 + 1j) * away
    turn = 0.5 * math.pi * vnp.mod(away * away, 4.0)
    rest = 0.5 * (1 + 1j) * (1 - vnp.exp(1j * turn) * quadrant(z))
    far_s, far_c = where(infinite, 0.5, rest.imag), where(infinite, 0.5, rest.real)
    sign = where(x < 0, -1.0, 1.0)
    return (
        sign * where(small, near * s, far_s),
        sign * where(small, near * c, far_c),
    )


def alternating(angle: Array, first: int) -> Array:
    """Σ (-1)^k angle^(2k + (first == 3)) / ((4k + first) (2k + (first == 3))!)."""
    odd = int(first == 3)
    square = -angle * angle
    term = angle if odd else 1.0 + 0 * angle
    total = term / first
    for k in range(1, 16):
        term = term * square / ((2 * k + odd) * (2 * k + odd - 1))
        total = total + term / (4 * k + first)
    return total


@fresnel_integrals.defjvp
def fresnel_tangents(primals: Sequence[Array], tangents: Sequence[Array]) -> object:
    (x,), (t,) = primals, tangents
    angle = 0.5 * math.pi * vnp.mod(x * x, 4.0)
    return fresnel_integrals(x), (t * vnp.sin(angle), t * vnp.cos(angle))
