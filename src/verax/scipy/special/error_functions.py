"""Floor 6: Faddeeva's function and what follows from it: erfcx, Dawson, Fresnel.

One idea: w(z) = exp(-z²) erfc(-iz) is an integral over a Gaussian, for which the
trapezoidal rule is exact to the last digits once the pole's residue is added; a dozen
points serve the whole quadrant::

    w(z) ≈ 2ihz/π Σ exp(-t²) / (z² - t²) + residue

M. Al Azah, S. Chandler-Wilde, "Computation of the complex error function using modified
trapezoidal rules", 2021; for real arguments G. Rybicki, "Dawson's integral and the
sampling theorem", 1989.
"""

import math
from typing import Any, Final

import numpy as np

from verax import numpy as vnp
from verax.api.custom.jvp import custom_jvp
from verax.ir.dtypes import is_complex
from verax.numpy import where
from verax.numpy.arguments.arguments import ArrayLike
from verax.rules.values.array import Array
from verax.scipy.special.arguments import in_wide, inexact
from verax.scipy.tables import row

POINTS: Final = 11
H: Final = math.sqrt(math.pi / (POINTS + 1))
MIDPOINTS: Final = (np.arange(POINTS + 1) + 0.5) * H
NODES: Final = np.arange(1, POINTS + 1) * H
# From here on w and Dawson's integral have all digits of float64 by their series.
FAR: Final = 7.0
TERMS: Final = 18
# The distance of the points, and how many, for Dawson's integral.
STEP: Final = 0.2
ODD: Final = np.arange(1, 70, 2)
SQRT_PI: Final = math.sqrt(math.pi)


def wofz(z: ArrayLike) -> Array:
    """Faddeeva's function exp(-z²) erfc(-iz), complex.

    >>> complex(wofz(0.0))
    (1+0j)
    """
    (x,) = inexact("wofz", z)
    found: Array = faddeeva(x if is_complex(x.dtype) else x + 0j)
    return found


@custom_jvp
def faddeeva(z: Array) -> Array:
    """w(z), in the upper half plane by `quadrant`, below from its reflection."""
    low = z.imag < 0
    upper = where(low, -z, z)
    left = upper.real < 0
    turned = where(left, -vnp.conj(upper), upper)
    value = quadrant(turned)
    value = where(left, vnp.conj(value), value)
    gauss = vnp.exp(-(where(low, z * z, 0.0)))
    return where(low, 2 * gauss - value, value)


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
    found = where(between, ends, middle)
    limit = 1j / (SQRT_PI * where(z == 0, 1.0, z))
    return where(z == 0, 1.0, where(far, limit, found)).astype(z.dtype)


def rule(squared: Array, points: np.ndarray, used: Array) -> Array:
    """Σ exp(-t²) / (z² - t²) where it is used, and elsewhere no division by zero."""
    total: Array | float = 0.0
    for t in points.tolist():
        gap = squared - t * t
        total = math.exp(-t * t) / where(used, gap, 1.0) + total
    assert isinstance(total, Array)
    return total


@faddeeva.defjvp
def faddeeva_tangent(primals: Any, tangents: Any) -> tuple[Array, Array]:
    """w' = -2zw + 2i/√π, and far out the derivative of the series."""
    (z,) = primals
    w = faddeeva(z)
    low = z.imag < 0
    far = abs(z) > FAR
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

    >>> erfcx(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    (z,) = inexact("erfcx", x)
    if is_complex(z.dtype):
        found: Array = faddeeva(1j * z)
        return found
    return in_wide("erfcx", lambda x: scaled_complement(x), z)


@custom_jvp
def scaled_complement(x: Array) -> Array:
    """`erfcx` of real numbers: w on the imaginary axis."""
    size = abs(x)
    found = on_axis(vnp.minimum(size, 1e8))
    tail = 1 / (SQRT_PI * where(size > 1e8, size, 1.0))
    found = where(size > 1e8, tail, found)
    return where(x < 0, 2 * vnp.exp(where(x < 0, x * x, 0.0)) - found, found)


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
def scaled_complement_tangent(primals: Any, tangents: Any) -> tuple[Array, Array]:
    """2x erfcx - 2/√π, and far out the derivative of the series."""
    (x,) = primals
    value = scaled_complement(x)
    far = x > FAR
    half = -0.5 / vnp.square(where(far, x, FAR))
    term, total = vnp.ones_like(x), vnp.ones_like(x)
    for k in range(1, TERMS):
        term = term * (2 * k + 1) * half
        total = total + term
    inside = 2 * where(far, 0.0, x) * where(far, 0.0, value) - 2 / SQRT_PI
    return value, tangents[0] * where(far, 2 / SQRT_PI * half * total, inside)


def dawsn(x: ArrayLike) -> Array:
    """Dawson's integral exp(-x²) ∫ exp(t²) dt from 0 to x.

    >>> round(float(dawsn(1.0)), 4)
    0.5381
    """
    return in_wide("dawsn", dawson, x)


def dawson(x: Array) -> Array:
    size = abs(x)
    far = size > FAR
    near = where(far, 0.0, size)[..., None]
    n = row(ODD * 1.0, near)
    bells = vnp.exp(-vnp.square(near - n * STEP)) * -vnp.expm1(-4 * STEP * n * near)
    middle = (bells / n).sum(-1) / SQRT_PI
    half = 0.5 / vnp.square(where(far, size, FAR))
    total = vnp.ones_like(size)
    for k in range(TERMS, 0, -1):
        total = 1 + (2 * k - 1) * half * total
    outside = 0.5 / where(far, size, 1.0) * total
    # The sign as a factor has a slope of its own at 0: none, so the sum is selected.
    found = where(far, outside, middle)
    return where(x < 0, -found, where(x == 0, x, found))


def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """The integrals of sin(πt²/2) and of cos(πt²/2) from 0 to x.

    >>> s, c = fresnel(0.0)
    >>> float(s), float(c)
    (0.0, 0.0)
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
def fresnel_tangents(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    angle = 0.5 * math.pi * vnp.mod(x * x, 4.0)
    return fresnel_integrals(x), (t * vnp.sin(angle), t * vnp.cos(angle))
