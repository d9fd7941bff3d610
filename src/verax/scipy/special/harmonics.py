"""Floor 6: Bessel functions, spherical harmonics and Owen's function.

One idea: functions of whole orders follow from their neighbours by recurrences of three
terms, run in the direction in which errors shrink::

    bessel_jn(x, v=3)                       # orders 0 to 3, from above
    sph_harm_y(n, m, theta, phi, n_max=4)   # degrees from m to n, from below
"""

import math
import operator
from typing import Final

import numpy as np

from verax import lax, numpy as vnp
from verax.ir.dtypes import DType, float32, float64
from verax.numpy import where
from verax.numpy.arguments.arguments import ArrayLike, as_array
from verax.ops.control.any_lane import any_lane
from verax.ops.special.erf_gamma import erfc
from verax.rules.values.array import Array
from verax.scipy.special.arguments import in_wide, polynomial, reals
from verax.scipy.tables import row

# Gauss's nodes and weights on [0, 1], enough for exp(-h²x²/2) up to h of 40.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(80)
NODES, WEIGHTS = 0.5 * (NODES + 1), 0.5 * WEIGHTS
HUGE: Final = 1e10
# By precision: above which argument so many terms of Hankel's expansions shrink to a
# rounding error, and how many cube roots of it further up Miller's algorithm begins.
HANKEL: Final[dict[DType, tuple[int, int, float]]] = {
    float32: (10, 12, 7.5),
    float64: (25, 24, 15.0),
}
STEPS: Final = 2
"""Of a recurrence that are made in one loop over the elements."""


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """The Bessel functions J_0 to J_v of real arguments; NaN at infinities.

    Miller's algorithm, which runs down from a high order, up to |z| = max(v, 25), in
    single precision max(v, 10), and beyond it the recurrence that runs up from the
    asymptotic J_0 and J_1.

    Args:
        z: an array.
        v: the last order.
        n_iter: the least order at which Miller's algorithm begins.

    Returns:
        An array of shape (v + 1, *z.shape).

    Raises:
        TypeError: `v` or `n_iter` are not integers known while tracing.
        ValueError: `v` is negative.

    >>> bessel_jn(np.float32(0.0), v=1).tolist()
    [1.0, 0.0]
    """
    last, start = operator.index(v), operator.index(n_iter)
    if last < 0:
        raise ValueError(f"bessel_jn: the order must not be negative, but is {last}")
    return in_wide("bessel_jn", lambda z: of_orders(z, last, start), z)


def of_orders(z: Array, last: int, start: int) -> Array:
    """J_0 to J_last, each recurrence where its errors shrink."""
    least, _, roots = HANKEL[z.dtype]
    border = max(last, least)
    # The first order is so far above |z| that the error there has vanished.
    top = max(start, border + math.ceil(roots * border ** (1 / 3)))
    far = abs(z) > border
    near = miller(where(far, 1.0, z), last, top)

    def beyond() -> Array:
        away = upward(where(far, z, border + 1.0), last)
        return where(vnp.isinf(z)[None], np.nan, where(far[None], away, near))

    return lax.cond(any_lane(vnp.any(far)), beyond, lambda: near)


def upward(z: Array, last: int) -> Array:
    """J_(k+1) = 2k/z J_k - J_(k-1), from Hankel's expansions for large |z|."""
    size = abs(z)
    turn = vnp.cos(size), vnp.sin(size)
    first, second = (hankel(order, size, *turn) for order in (0, 1))
    odd = where(z < 0, -1.0, 1.0)

    def higher(
        carry: tuple[Array, Array], k: Array
    ) -> tuple[tuple[Array, Array], Array]:
        below, here = carry
        return (here, 2 * k / z * here - below), below

    orders = vnp.arange(1, last + 2, dtype=z.dtype)
    out: Array = lax.scan(higher, (first, odd * second), orders)[1]
    return out


def hankel(order: int, z: Array, cosine: Array, sine: Array) -> Array:
    """√(2/πz) (P cos χ - Q sin χ), χ = z - (2 order + 1) π/4; DLMF 10.17.3."""
    terms = [1.0]
    for k in range(1, HANKEL[z.dtype][1]):
        sign = -1 if k % 2 == 0 else 1
        terms.append(terms[-1] * sign * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    inverse = 1 / z
    squared = inverse * inverse
    even = polynomial(squared, terms[::2][::-1])
    odd = inverse * polynomial(squared, terms[1::2][::-1])
    # cos χ and sin χ by the addition theorem: subtracting π/4 from z costs digits.
    turned = (
        (cosine + sine, sine - cosine) if not order else (sine - cosine, -cosine - sine)
    )
    return (even * turned[0] - odd * turned[1]) / vnp.sqrt(math.pi * z)


def miller(z: Array, last: int, top: int) -> Array:
    """J_(k-1) = 2k/z J_k - J_(k+1), until J_0 + 2 J_2 + 2 J_4 + ... is 1."""
    # There the first term of each series has all digits, and 2k / z would overflow.
    little = abs(z) < math.sqrt(float(vnp.finfo(z.dtype).eps))
    twice = 2 / where(little, 1.0, z)
    small = math.sqrt(float(vnp.finfo(z.dtype).tiny))

    def lower(
        carry: tuple[Array, Array, Array], k: Array
    ) -> tuple[tuple[Array, Array, Array], Array]:
        here, above, total = carry
        below = k * twice * here - above
        # What grows too large is made small again, with all that depends on it.
        shrink = where(abs(below) > HUGE, 1 / HUGE, 1.0)
        below, here, total = below * shrink, here * shrink, total * shrink
        even = (k % 2) == 1
        total = total + where(even, where(k == 1, below, 2 * below), 0.0)
        return (below, here, total), vnp.stack([below, shrink])

    state = (vnp.full_like(z, small), vnp.zeros_like(z), vnp.zeros_like(z))
    orders = vnp.arange(top, 0, -1, dtype=z.dtype)
    above = top - last - 1
    state = lax.scan(
        lambda state, k: (lower(state, k)[0], None), state, orders[:above], unroll=STEPS
    )[0]
    (_, _, total), rows = lax.scan(lower, state, orders[above:])
    values, shrinks = rows[::-1, 0], rows[::-1, 1]
    # Each order was shrunk by all that came after it.
    after = vnp.concatenate([vnp.ones_like(shrinks[:1]), shrinks[:-1]])
    out: Array = values * vnp.cumprod(after, axis=0) / where(little, 1.0, total)[None]
    firsts = [vnp.ones_like(z)]
    for k in range(1, last + 1):
        firsts.append(firsts[-1] * (z / (2.0 * k)))
    series = vnp.stack(firsts)
    return where(little[None], series, out)


def sph_harm_y(
    n: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    phi: ArrayLike,
    diff_n: int | None = None,
    n_max: int | None = None,
) -> Array:
    """The spherical harmonic of degree n and order m; DLMF 14.30.

    Its sign is that of Condon and Shortley.

    Args:
        n: degrees, an array or scalar of integers of 0 or more.
        m: orders, integers; the harmonic is 0 where |m| is more than n.
        theta: polar angles, from 0 to π.
        phi: azimuthal angles.
        diff_n: only None; derivatives are those of `verax.grad`.
        n_max: the largest degree, which must be known while tracing, and as which
            greater degrees count; by default that of `n`, if its values are known.

    Returns:
        The shape to which the four arrays broadcast, complex: complex64, or complex128
        for angles of 64 bits.

    Raises:
        TypeError: an angle is complex.
        ValueError: `diff_n` is given.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> round(float(special.sph_harm_y(0, 0, 0.5, 0.5).real), 4)
    0.2821
    >>> special.sph_harm_y(1, vnp.array([-1, 1, 2]), vnp.pi / 2, 0.0).real.round(4)
    Array([ 0.3455, -0.3455,  0.    ], dtype=float32)
    """
    if diff_n is not None:
        raise ValueError("sph_harm_y: diff_n is not available; use verax.grad")
    top = operator.index(int(np.max(np.asarray(n)))) if n_max is None else int(n_max)
    angles = reals("sph_harm_y", theta, phi)
    orders = [as_array("sph_harm_y", x, i) for i, x in enumerate((n, m))]
    shape = vnp.broadcast_shapes(*[x.shape for x in (*orders, *angles)])
    dtype = angles[0].dtype
    degree, order, polar, azimuth = (
        vnp.broadcast_to(x.astype(dtype), shape) for x in (*orders, *angles)
    )
    size = abs(order)
    legendre = associated(vnp.minimum(degree, top), size, polar, top)
    sign = where((order < 0) & (size % 2 == 1), -1.0, 1.0)
    length, angle = sign * legendre, order * azimuth
    return lax.complex(length * vnp.cos(angle), length * vnp.sin(angle))


def associated(n: Array, m: Array, theta: Array, top: int) -> Array:
    """Legendre's functions with the norms of harmonics, for m >= 0.

    The first has degree m; each degree follows from the two below it.
    """
    # Beyond 0 to π the functions are those of cos θ, as in SciPy.
    x, sine = vnp.cos(theta), abs(vnp.sin(theta))

    def diagonal(value: Array, k: Array) -> tuple[Array, None]:
        return where(
            k <= m, -value * sine * vnp.sqrt((2 * k + 1) / (2 * k)), value
        ), None

    degrees = vnp.arange(1, max(top, 0) + 1, dtype=x.dtype)
    first = vnp.full_like(x, math.sqrt(0.25 / math.pi))
    first = lax.scan(diagonal, first, degrees)[0]

    def upward(
        carry: tuple[Array, Array], k: Array
    ) -> tuple[tuple[Array, Array], None]:
        value, below = carry
        active = (k > m) & (k <= n)
        gap = where(k > m, k * k - m * m, 1.0)
        a = vnp.sqrt((4 * k * k - 1) / gap)
        behind = where(k > m + 1, (k - 1) ** 2 - m * m, 0.0)
        under = where(k > m + 1, behind / (4 * (k - 1) ** 2 - 1), 1.0)
        b = where(k > m + 1, vnp.sqrt(under), 0.0)
        following = a * (x * value - b * below)
        return (where(active, following, value), where(active, value, below)), None

    (value, _), _ = lax.scan(upward, (first, vnp.zeros_like(x)), degrees)
    return where(m > n, 0.0, value)


def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Owen's T: the integral of exp(-h²(1 + x²)/2) / (1 + x²) from 0 to a, over 2π.

    Owen, "Tables for computing bivariate normal probabilities", 1956.

    Args:
        h, a: arrays or scalars of real numbers that broadcast together; integers become
            floats.

    Returns:
        The shape to which the arguments broadcast, in the float dtype to which they
        promote.

    Raises:
        TypeError: an argument is complex.
        ValueError: the shapes do not broadcast together.

    T(0, a) is arctan(a) / 2π:

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.owens_t(0.0, vnp.array([-1.0, 1.0, vnp.inf])).round(4)
    Array([-0.125,  0.125,  0.25 ], dtype=float32)
    """
    return in_wide("owens_t", owen, h, a)


def owen(h: Array, a: Array) -> Array:
    """By Gauss's rule for |a| <= 1, and from its relation to 1/a beyond."""
    h, a = vnp.broadcast_arrays(h, a)
    height, width = abs(h), abs(a)
    wide = width > 1
    inverse = 1 / where(wide, width, 1.0)
    scaled = where(wide, height * where(vnp.isinf(width), 1.0, width), height)
    scaled = where(wide & vnp.isinf(width), where(height == 0, 0.0, np.inf), scaled)
    near = quadrature(scaled, where(wide, inverse, width))
    root = math.sqrt(0.5)
    q, r = 0.5 * erfc(height * root), 0.5 * erfc(where(wide, scaled, 0.0) * root)
    array = where(wide, 0.5 * (q + r) - q * r - near, near)
    array = where(vnp.isnan(h) | vnp.isnan(a), np.nan, array)
    return where(a < 0, -array, array)


def quadrature(h: Array, a: Array) -> Array:
    """The integral for 0 <= a <= 1, as a sum over nodes."""
    far = h > 40
    height = where(far, 40.0, h)[..., None]
    x = a[..., None] * row(NODES, a[..., None])
    terms = vnp.exp(-0.5 * height * height * (1 + x * x)) / (1 + x * x)
    array = a * (terms * row(WEIGHTS, terms)).sum(-1) / (2 * math.pi)
    return where(far, 0.0, array)
