"""Floor 6: the gamma function and its relatives, from factorials to incomplete ones.

One idea: each is a row of the table or a few equations on rows, in logarithms wherever
values soon leave the range of floats::

    gammaln(x), betaln(a, b), gammainc(a, x), comb(5, 2), poch(0.5, 3)

The formulas are those of the NIST Digital Library of Mathematical Functions.
"""

import math
import operator
from fractions import Fraction
from typing import Final

import numpy as np

from verax import numpy as vnp
from verax.backend.eager.composites import remembered
from verax.ir.dtypes import is_complex, is_integer
from verax.lax import stop_gradient
from verax.numpy import where
from verax.numpy.arguments.arguments import (
    ArrayLike,
    constant_of,
)
from verax.ops.elementwise.arith import add, div, mul, sub
from verax.ops.elementwise.bits import bitwise_and, bitwise_or
from verax.ops.elementwise.compare import eq, lt, ne
from verax.ops.elementwise.exp_log import exp
from verax.ops.elementwise.remainder import rem
from verax.ops.elementwise.rounding import floor
from verax.ops.elementwise.select import select
from verax.ops.reductions.reduce import reduce_sum
from verax.ops.special import erf_gamma, incomplete
from verax.ops.special.erf_gamma import lgamma
from verax.ops.structure.create import iota
from verax.ops.structure.shape import broadcast_in_dim
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.sizes import as_integers
from verax.scipy.special import plane
from verax.scipy.special.arguments import in_wide, inexact, reals, row


def gammaln(x: ArrayLike) -> Array:
    """log |Γ(x)|.

    Args:
        x: an array or scalar of real numbers; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers. Infinite at 0 and negative
        integers.

    Raises:
        TypeError: `x` is complex.

    Γ(101) overflows in float32, its logarithm does not:

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.gamma(101.0).item(), special.gammaln(101.0).round(2).item()
    (inf, 363.73...)
    """
    return row("gammaln", lgamma, x)


def digamma(x: ArrayLike) -> Array:
    """The derivative of log Γ(x); DLMF 5.2.2.

    Args:
        x: an array or scalar of real numbers; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers. -inf at 0, NaN at negative
        integers.

    Raises:
        TypeError: `x` is complex.

    At 1 it is minus Euler's constant:

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.digamma(vnp.array([1.0, 2.0, -1.0])).round(4)
    Array([-0.5772,  0.4228,     nan], dtype=float32)
    """
    return row("digamma", erf_gamma.digamma, x)


@remembered
def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """The n-th derivative of `digamma` at x; DLMF 5.15.

    Args:
        n: an array or scalar of integers; NaN where they are negative.
        x: an array or scalar of real numbers that broadcasts with `n`; integers become
            floats.

    Returns:
        The shape to which `n` and `x` broadcast, in the dtype of `x`; floats for
        integers.

    Raises:
        TypeError: `x` is complex.
        ValueError: n is not an integer.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.polygamma(vnp.array([0, 1, 2]), vnp.ones(3)).round(4)
    Array([-0.5772,  1.6449, -2.4041], dtype=float32)
    """
    kind = aval_of(n).dtype
    if not is_integer(kind):
        raise ValueError(f"polygamma: n must be an integer, not one of {kind}")
    return row("polygamma", erf_gamma.polygamma, n, x)


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Hurwitz's zeta function, the sum of (k + q)^-x for k = 0, 1, ...; DLMF 25.11.

    With q = 1 it is Riemann's, though unlike SciPy's not continued below 1.

    Args:
        x: an array or scalar of real numbers; integers become floats.
        q: an array or scalar that broadcasts with `x`; None for 1.

    Returns:
        The shape to which the arguments broadcast, in the float dtype to which they
        promote. Infinite at x = 1, NaN below; infinite where q is 0 or a negative
        integer.

    Raises:
        TypeError: an argument is complex.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.zeta(vnp.array([2.0, 1.0, 0.5])).round(4)
    Array([1.6449,    inf,    nan], dtype=float32)
    >>> special.zeta(2.0, 2.0).round(4).item()  # without the first term, 1
    0.6449...
    """
    return row("zeta", erf_gamma.zeta, x, 1.0 if q is None else q)


def gammasgn(x: ArrayLike) -> Array:
    """The sign of Γ(x), NaN at its poles below 0.

    Args:
        x: an array or scalar of real numbers; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers. At 0 that of the zero.

    Raises:
        TypeError: `x` is complex.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.gammasgn(vnp.array([-1.5, -1.0, -0.5, -0.0, 0.0, 1.0]))
    Array([ 1., nan, -1., -1.,  1.,  1.], dtype=float32)
    """
    (z,) = reals("gammasgn", x)
    below, whole = lt(z, 0.0), floor(z)
    pole = bitwise_or(bitwise_and(below, eq(z, whole)), ne(z, z))
    odd = bitwise_and(below, ne(rem(whole, 2.0), 0.0))
    minus_zero = bitwise_and(eq(z, 0.0), lt(div(1.0, z), 0.0))
    minus = bitwise_or(odd, minus_zero)
    one = constant_of(1, z.dtype)
    return select(pole, math.nan, select(minus, -one, one))


def gamma(x: ArrayLike) -> Array:
    """Γ(x), which is (x - 1)! for positive integers; DLMF 5.2.1.

    Args:
        x: an array or scalar, real or complex; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers. Infinite at 0, NaN at negative
        integers; float32 overflows beyond 35. Complex numbers are NaN at both.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.gamma(vnp.array([-0.5, 0.0, -1.0, 5.0])).round(4)
    Array([-3.5449,     inf,     nan, 24.    ], dtype=float32)
    """
    (z,) = inexact("gamma", x)
    if is_complex(z.dtype):
        return plane.gamma(z)
    return mul(gammasgn(z), exp(lgamma(z)))


def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """n! = Γ(n + 1) as a float, so only nearly an integer; 0 for negative n.

    Args:
        n: an array or scalar of real numbers, which need not be integers.
        exact: only False.

    Returns:
        The shape and dtype of `n`; floats for integers. float32 overflows beyond 34.

    Raises:
        NotImplementedError: `exact` is requested; arrays cannot hold such integers.
        TypeError: `n` is complex.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.factorial(vnp.array([-1, 0, 5, 35])).round()
    Array([  0.,   1., 120.,  inf], dtype=float32)
    """
    if exact:
        raise NotImplementedError(
            "factorial: exact=True is not available, since it needs integers of any "
            "size"
        )
    (z,) = reals("factorial", n)
    return select(lt(z, 0.0), 0.0, exp(lgamma(add(z, 1.0))))


@remembered
def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """log |B(a, b)| = log |Γ(a) Γ(b) / Γ(a + b)|; DLMF 5.12.

    Args:
        a, b: arrays or scalars of real numbers that broadcast together; integers become
            floats.

    Returns:
        The shape to which the arguments broadcast, in the float dtype to which they
        promote.

    Raises:
        TypeError: an argument is complex.
        ValueError: the shapes do not broadcast together.

    >>> from verax.scipy import special
    >>> special.beta(1000.0, 1000.0).item()
    0.0
    >>> special.betaln(1000.0, 1000.0).round().item()
    -1388.0
    """
    return in_wide("betaln", incomplete.log_beta, a, b)


@remembered
def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """B(a, b) = Γ(a) Γ(b) / Γ(a + b); DLMF 5.12.

    Args:
        a, b: arrays or scalars of real numbers that broadcast together; integers become
            floats.

    Returns:
        The shape to which the arguments broadcast, in the float dtype to which they
        promote.

    Raises:
        TypeError: an argument is complex.
        ValueError: the shapes do not broadcast together.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.beta(vnp.array([2.0, -0.5, 0.0]), 2.0).round(4)
    Array([ 0.1667, -4.    ,     inf], dtype=float32)
    """
    return in_wide("beta", whole_beta, a, b)


def whole_beta(a: Array, b: Array) -> Array:
    below = gammasgn(add(a, b))
    # Where only the gamma function below is infinite, the quotient is 0.
    sign = mul(mul(gammasgn(a), gammasgn(b)), select(ne(below, below), 1.0, below))
    return mul(sign, exp(incomplete.log_beta(a, b)))


@remembered
def multigammaln(a: ArrayLike, d: int) -> Array:
    """The logarithm of the gamma function of dimension d; DLMF 35.3.

    Args:
        a: an array or scalar of numbers above (d - 1) / 2; integers become floats.
        d: the dimension, known while tracing and not negative.

    Returns:
        The shape and dtype of `a`; floats for integers. The dtype is not weak.

    Raises:
        TypeError: `d` is not an integer known while tracing, or `a` is complex.
        ValueError: `d` is negative.

    With d = 1 it is `gammaln`:

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> a = vnp.array([3.0, 4.0])
    >>> (special.multigammaln(a, 1) - special.gammaln(a)).tolist()
    [0.0, 0.0]
    >>> special.multigammaln(a, 2).round(4)
    Array([1.5502, 3.5651], dtype=float32)
    """
    (count,) = as_integers("multigammaln", "d", (d,))
    if count < 0:
        raise ValueError(f"multigammaln: d must not be negative, but is {count}")
    (x,) = reals("multigammaln", a)
    shape = (*x.shape, count)
    halves = div(iota(x.dtype, count), 2.0)
    spread = broadcast_in_dim(x, shape, tuple(range(x.ndim)))
    shifted = sub(spread, broadcast_in_dim(halves, shape, (x.ndim,)))
    constant = 0.25 * count * (count - 1) * math.log(math.pi)
    return add(reduce_sum(lgamma(shifted), (x.ndim,)), constant)


def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """The lower incomplete gamma function over Γ(a): from 0 at x = 0 to 1; DLMF 8.2.4.

    Args:
        a: an array or scalar of real numbers, not negative; integers become floats.
        x: the end of the integral, not negative; it broadcasts with `a`.

    Returns:
        The shape to which the arguments broadcast, in the float dtype to which they
        promote. NaN where an argument is negative.

    Raises:
        TypeError: an argument is complex.
        ValueError: the shapes do not broadcast together.

    With a = 1 it is 1 - exp(-x):

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.gammainc(1.0, vnp.array([0.0, 1.0, vnp.inf, -1.0])).round(4)
    Array([0.    , 0.6321, 1.    ,    nan], dtype=float32)
    """
    return row("gammainc", incomplete.igamma, a, x)


def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """1 - gammainc(a, x), accurate where it is small.

    Args:
        a: an array or scalar of real numbers, not negative; integers become floats.
        x: the beginning of the integral, not negative; it broadcasts with `a`.

    Returns:
        The shape to which the arguments broadcast, in the float dtype to which they
        promote. NaN where an argument is negative.

    Raises:
        TypeError: an argument is complex.
        ValueError: the shapes do not broadcast together.

    >>> from verax.scipy import special
    >>> 1 - special.gammainc(1.0, 50.0).item(), special.gammaincc(1.0, 50.0).item()
    (0.0, 1.9287...e-22)
    """
    return row("gammaincc", incomplete.igammac, a, x)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The incomplete beta function over B(a, b): from 0 at x = 0 to 1 at x = 1.

    DLMF 8.17.

    Args:
        a, b: arrays or scalars of real numbers, not negative, that broadcast together;
            integers become floats.
        x: the end of the integral, in [0, 1]; it broadcasts with them.

    Returns:
        The shape to which the arguments broadcast, in the float dtype to which they
        promote. NaN outside these domains.

    Raises:
        TypeError: an argument is complex.
        ValueError: the shapes do not broadcast together.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.betainc(2.0, 2.0, vnp.array([0.0, 0.5, 1.0, 2.0]))
    Array([0. , 0.5, 1. , nan], dtype=float32)
    """
    return row("betainc", incomplete.betainc, a, b, x)


# B_2k / (2k (2k - 1)), for Stirling's series.
STIRLING: Final = (
    1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156,
    -3617 / 122400, 43867 / 244188,
)  # fmt: skip
# So far the argument is moved before that series is good enough.
SHIFT: Final = 10


def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """The number of ways to take k of N things, as a float; 0 if there are none.

    Args:
        N: the number of things, an array or scalar of real numbers; integers become
            floats.
        k: how many are taken; it broadcasts with `N`.
        repetition: whether a thing may be taken again.

    Returns:
        The shape to which the arguments broadcast, in the float dtype to which they
        promote. Integers give integers up to 100000; beyond, digits of the last places
        are lost.

    Raises:
        TypeError: an argument is complex.
        ValueError: the shapes do not broadcast together.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.comb(5, vnp.array([0, 2, 6]))
    Array([ 1., 10.,  0.], dtype=float32)
    >>> round(float(special.comb(5, 2, repetition=True)), 3)
    15.0
    """
    return in_wide("comb", repeated if repetition else combinations, N, k)


def repeated(n: Array, taken: Array) -> Array:
    """Ways to take so many of n things, each of them again and again."""
    array = combinations(n + taken - 1, taken)
    return where((taken == 0) & (n >= 0), 1.0, array)


def combinations(n: Array, taken: Array) -> Array:
    """Ways to take so many of n things."""
    possible = (taken <= n) & (n >= 0) & (taken >= 0)
    n, taken = where(possible, n, 0.0), where(possible, taken, 0.0)
    logarithm = lgamma(n + 1) - lgamma(taken + 1) - lgamma(n - taken + 1)
    array = vnp.exp(logarithm)
    # Integers in give integers out.
    whole = (n == vnp.floor(n)) & (taken == vnp.floor(taken)) & (array < 1e5)
    exact = array + stop_gradient(vnp.round(array) - array)
    return where(possible, where(whole, exact, array), 0.0)


def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Pochhammer's symbol Γ(z + m) / Γ(z); DLMF 5.2.5.

    Args:
        z: an array or scalar of real numbers; integers become floats.
        m: the number of steps, which need not be an integer; it broadcasts with `z`.

    Returns:
        The shape to which the arguments broadcast, in the float dtype to which they
        promote.

    Raises:
        TypeError: an argument is complex.
        ValueError: the shapes do not broadcast together.

    2 · 3 · 4, (-3) · (-2), and a product with a factor of 0:

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.poch(vnp.array([2.0, -3.0, -3.0]), vnp.array([3.0, 2.0, 4.0])).round(3)
    Array([24.,  6.,  0.], dtype=float32)
    """
    return in_wide("poch", pochhammer, z, m)


def pochhammer(x: Array, steps: Array) -> Array:
    """`poch` of float32 or float64."""
    top = x + steps
    # From one pole to another the symbol is finite: both are turned around 1/2.
    poles = (x <= 0) & (x == vnp.floor(x)) & (top <= 0) & (top == vnp.floor(top))
    a, b = where(poles, 1 - top, x), where(poles, 1 - x, top)
    signs = gammasgn(a) * gammasgn(b)
    sign = where(poles, where(steps % 2 == 0, 1.0, -1.0), signs)
    infinite = (top <= 0) & (top == vnp.floor(top)) & ~poles
    array = where(infinite, np.inf, sign * vnp.exp(lgamma(b) - lgamma(a)))
    gone = (x <= 0) & (x == vnp.floor(x)) & ~poles
    return where(steps == 0, 1.0, where(gone, 0.0, array))


def bernoulli(n: int) -> Array:
    """Bernoulli's numbers B_0 to B_n, with B_1 = -1/2; DLMF 24.2.

    Args:
        n: the last index, known while tracing.

    Returns:
        An array of shape (n + 1,) of the default float dtype, with infinities where it
        overflows.

    Raises:
        TypeError: n is not an integer known while tracing.
        ValueError: n is negative.

    >>> from verax.scipy import special
    >>> special.bernoulli(4).round(4)
    Array([ 1.    , -0.5   ,  0.1667,  0.    , -0.0333], dtype=float32)
    """
    last = operator.index(n)
    if last < 0:
        raise ValueError(f"bernoulli: n must not be negative, but is {last}")
    numbers = [Fraction(1)]
    for m in range(1, last + 1):
        some = sum(math.comb(m + 1, k) * b for k, b in enumerate(numbers) if b)
        numbers.append(
            -Fraction(some) / (m + 1) if m == 1 or m % 2 == 0 else Fraction(0)
        )
    return vnp.array(np.array([rounded(b) for b in numbers]), dtype=float)


def rounded(x: Fraction) -> float:
    """A fraction as a float, infinite beyond the largest."""
    try:
        return float(x)
    except OverflowError:
        return math.copysign(math.inf, x)


def loggamma(x: ArrayLike) -> Array:
    """The principal branch of log Γ, real or complex.

    NaN for negative real numbers: there it is complex.

    Args:
        x: an array or scalar, real or complex; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers. inf at 0 if it is real; NaN at
        the poles of complex arguments.

    >>> from verax.scipy import special
    >>> special.loggamma(-1.5).item()
    nan
    >>> special.loggamma(-1.5 + 0j).round(3)
    Array(0.86-6.283j, dtype=complex64)
    """
    (z,) = inexact("loggamma", x)
    if not is_complex(z.dtype):
        return where(z >= 0, lgamma(where(z >= 0, z, 1.0)), np.nan)
    left = z.real < 0.5
    below = z.imag < 0
    upper = where(below, vnp.conj(z), z)
    reflected = where(left, upper, 1j).astype(z.dtype)
    # log sin πz on the branch that is smooth in the upper half plane.
    sine = -1j * math.pi * (reflected - 0.5) + vnp.log1p(
        -vnp.exp(2j * math.pi * reflected)
    )
    right = stirling(where(left, 1 - upper, upper))
    array = where(left, math.log(2 * math.pi) - sine - right, right)
    array = where(below, vnp.conj(array), array).astype(z.dtype)
    pole = (z.imag == 0) & (z.real <= 0) & (z.real == vnp.floor(z.real))
    return where(pole, np.nan, array)


def stirling(z: Array) -> Array:
    """log Γ(z) for Re z >= 1/2: far to the right, less the logarithms on the way."""
    far = z + SHIFT
    total = (far - 0.5) * vnp.log(far) - far + 0.5 * math.log(2 * math.pi)
    inverse = 1 / far
    power = inverse
    for c in STIRLING:
        total = total + c * power
        power = power * inverse * inverse
    for k in range(SHIFT):
        total = total - vnp.log(z + k)
    return total
