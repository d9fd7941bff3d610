"""Floor 6: special functions that are a row of the table, or a few equations on rows.

One idea: each is written in a form whose value and gradient stay accurate towards the
ends of its domain::

    logit(p)                       # log p - log1p(-p)

The formulas are those of the NIST Digital Library of Mathematical Functions.
"""

import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final

import numpy as np

from verax import numpy as vnp
from verax.backend.eager.composites import remembered
from verax.ir.avals import finfo
from verax.ir.dtypes import float32, float64, is_complex, is_integer
from verax.lax import stop_gradient
from verax.nn import reductions
from verax.numpy import where
from verax.numpy.arguments.arguments import (
    ArrayLike,
    Axis,
    broadcast_together,
    constant_of,
    inexact_arrays,
)
from verax.ops.elementwise import exp_log
from verax.ops.elementwise.arith import abs as magnitude, add, div, mul, neg, sub
from verax.ops.elementwise.bits import bitwise_and, bitwise_or
from verax.ops.elementwise.compare import eq, ge, gt, lt, ne
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import exp, expm1, log, log1p
from verax.ops.elementwise.remainder import rem
from verax.ops.elementwise.rounding import floor
from verax.ops.elementwise.select import select
from verax.ops.reductions.reduce import reduce_sum
from verax.ops.special import bessel, erf_gamma, incomplete
from verax.ops.special.erf_gamma import erfc as complement, lgamma
from verax.ops.structure.create import full_like, iota
from verax.ops.structure.shape import broadcast_in_dim
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.sizes import as_integers
from verax.scipy.special import plane

# -----------------------------------------------------------------------------
# The arguments of special functions: floats of the same dtype and shape.
#
# Small floats are computed in float32, since a series in eight bits says
# nothing, and only the result is rounded::
#
#     x, y = reals("xlogy", x, 2)
#     y = in_wide("ndtri", function, x)


def inexact(name: str, *args: ArrayLike) -> list[Array]:
    """Arguments as floats of the same dtype and shape, scalars included.

    Raises:
        TypeError: one is neither an array nor a scalar.
        ValueError: the shapes do not broadcast together.
    """
    return list(broadcast_together(name, inexact_arrays(name, *args)))


def reals(name: str, *args: ArrayLike) -> list[Array]:
    """`inexact`, for a function of real numbers."""
    arrays = inexact(name, *args)
    if is_complex(arrays[0].dtype):
        raise TypeError(f"{name} takes real numbers, not {arrays[0].dtype}")
    return arrays


def row(name: str, function: Callable[..., Array], *args: ArrayLike) -> Array:
    """A function of the table on arguments of the same dtype."""
    return function(*reals(name, *args))


def in_wide(name: str, function: Callable[..., Array], *args: ArrayLike) -> Array:
    """A function of float32 or float64 on real arguments, rounded to their dtype."""
    arrays = reals(name, *args)
    dtype = arrays[0].dtype
    if dtype in (float32, float64):
        return function(*arrays)
    array = function(*[convert(x, float32, x.aval.weak_type) for x in arrays])
    return convert(array, dtype, array.aval.weak_type)


def polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """The polynomial with these coefficients, that of the highest power first."""
    total = full_like(x, coefficients[0])
    for c in coefficients[1:]:
        total = add(mul(total, x), c)
    return total


# Terms of a series in r² for |r| up to 1/3.
DIVERGENCE_TERMS: Final = 16


def softmax(x: ArrayLike, /, *, axis: Axis = None) -> Array:
    """exp(x) / sum exp(x) over `axis`, by default over everything.

    Args:
        x: an array; integers become floats.
        axis: the dimension or dimensions over which the result sums to 1; None, the
            default, for all of them, unlike `nn.softmax`.

    Returns:
        The shape and dtype of `x`; floats for integers.

    Raises:
        ValueError: there is no such dimension.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> x = vnp.zeros((2, 2))
    >>> special.softmax(x).tolist(), special.softmax(x, axis=1).tolist()
    ([[0.25, 0.25], [0.25, 0.25]], [[0.5, 0.5], [0.5, 0.5]])
    """
    return reductions.softmax(x, axis)


def log_softmax(x: ArrayLike, /, *, axis: Axis = None) -> Array:
    """log(softmax(x)) over `axis`, by default over everything.

    Args:
        x: an array; integers become floats.
        axis: the dimension or dimensions over which `softmax` sums to 1; None, the
            default, for all of them, unlike `nn.log_softmax`.

    Returns:
        The shape and dtype of `x`; floats for integers.

    Raises:
        ValueError: there is no such dimension.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.log_softmax(vnp.array([[0.0, 0.0], [0.0, 1000.0]]))
    Array([[-1000., -1000.],
           [-1000.,     0.]], dtype=float32)
    """
    return reductions.log_softmax(x, axis)


@remembered
def expit(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x)), the inverse of `logit`.

    Args:
        x: an array or scalar, real or complex; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.expit(vnp.array([-1000.0, 0.0, 1000.0]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    return exp_log.logistic(inexact("expit", x)[0])


@remembered
def logit(x: ArrayLike) -> Array:
    """log(x / (1 - x)), the inverse of `expit`.

    Args:
        x: an array or scalar, real or complex; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers. Real numbers give -inf at 0,
        inf at 1, and NaN outside.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.logit(vnp.array([0.0, 0.5, 1.0, 2.0]))
    Array([-inf,   0.,  inf,  nan], dtype=float32)
    """
    (p,) = inexact("logit", x)
    return sub(log(p), log1p(neg(p)))


def erf(x: ArrayLike) -> Array:
    """2/√π times the integral of exp(-t²) from 0 to x; DLMF 7.2.1.

    Args:
        x: an array or scalar of real numbers; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers.

    Raises:
        TypeError: `x` is complex.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.erf(vnp.array([-10.0, 0.0, 1.0])).round(4)
    Array([-1.    ,  0.    ,  0.8427], dtype=float32)
    """
    return row("erf", erf_gamma.erf, x)


def erfc(x: ArrayLike) -> Array:
    """1 - erf(x), accurate for large x.

    Args:
        x: an array or scalar of real numbers; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers.

    Raises:
        TypeError: `x` is complex.

    >>> from verax.scipy import special
    >>> 1 - special.erf(5.0).item(), special.erfc(5.0).item()
    (0.0, 1.537...e-12)
    """
    return row("erfc", complement, x)


def erfinv(x: ArrayLike) -> Array:
    """The number whose error function is x.

    Args:
        x: an array or scalar of numbers in [-1, 1]; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers. Infinite at -1 and 1, NaN
        outside.

    Raises:
        TypeError: `x` is complex.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.erfinv(vnp.array([-1.0, 0.0, 2.0]))
    Array([-inf,   0.,  nan], dtype=float32)
    """
    return row("erfinv", erf_gamma.erf_inv, x)


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


@remembered
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """x log y, 0 where x is 0 and y is not NaN.

    Args:
        x: an array or scalar; integers become floats.
        y: an array or scalar that broadcasts with `x`.

    Returns:
        The shape to which the arguments broadcast, in the float or complex dtype to
        which they promote.

    Raises:
        ValueError: the shapes do not broadcast together.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.xlogy(vnp.array([0.0, 0.0, 1.0]), vnp.array([0.0, vnp.nan, 0.0]))
    Array([  0.,  nan, -inf], dtype=float32)
    """
    arrays = inexact("xlogy", x, y)
    if is_complex(arrays[0].dtype):
        return plane.xlogy(*arrays)
    return row("xlogy", erf_gamma.xlogy, x, y)


@remembered
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """x log(1 + y), 0 where x is 0 and y is not NaN; accurate for small y.

    Args:
        x: an array or scalar; integers become floats.
        y: an array or scalar that broadcasts with `x`.

    Returns:
        The shape to which the arguments broadcast, in the float or complex dtype to
        which they promote.

    Raises:
        ValueError: the shapes do not broadcast together.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.xlog1py(vnp.array([0.0, 2.0]), vnp.array([-1.0, 1e-10]))
    Array([0.e+00, 2.e-10], dtype=float32)
    """
    arrays = inexact("xlog1py", x, y)
    if is_complex(arrays[0].dtype):
        return plane.xlog1py(*arrays)
    return row("xlog1py", erf_gamma.xlog1py, x, y)


@remembered
def entr(x: ArrayLike) -> Array:
    """-x log x, 0 at 0 and -inf below: the term of an entropy.

    Args:
        x: an array or scalar of real numbers; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers.

    Raises:
        TypeError: `x` is complex.

    Four equal probabilities have an entropy of two bits:

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> p = vnp.full(4, 0.25)
    >>> (special.entr(p).sum() / vnp.log(2.0)).round(3)
    Array(2., dtype=float32)
    >>> special.entr(-1.0).item()
    -inf
    """
    (p,) = reals("entr", x)
    return select(lt(p, 0.0), -math.inf, neg(erf_gamma.xlogy(p, p)))


def relative(p: Array, q: Array) -> Array:
    """p log(p / q), 0 where p is 0, and inf where p or q is negative."""
    inside = bitwise_and(gt(p, 0.0), gt(q, 0.0))
    safe_p, safe_q = select(inside, p, 1.0), select(inside, q, 1.0)
    # Near each other their ratio is accurate; far from each other it may overflow.
    near = bitwise_and(lt(safe_p, mul(safe_q, 4.0)), lt(safe_q, mul(safe_p, 4.0)))
    ratio = div(select(near, safe_p, 1.0), select(near, safe_q, 1.0))
    apart = sub(log(safe_p), log(safe_q))
    array = mul(safe_p, select(near, log(ratio), apart))
    return at_ends(p, q, inside, array, 0.0)


def at_ends(
    p: Array, q: Array, inside: Array, array: Array, beside: Array | float
) -> Array:
    """A function of two positive numbers, `beside` where p is 0 and inf beyond."""
    nothing = bitwise_and(eq(p, 0.0), ge(q, 0.0))
    missing = select(
        bitwise_or(ne(p, p), ne(q, q)), math.nan, constant_of(math.inf, p.dtype)
    )
    return select(inside, array, select(nothing, beside, missing))


@remembered
def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """p log(p / q), the relative entropy of one element; inf outside its domain.

    Args:
        p, q: arrays or scalars of real numbers that broadcast together; integers become
            floats.

    Returns:
        The shape to which the arguments broadcast, in the float dtype to which they
        promote. 0 where p is 0 and q is not negative.

    Raises:
        TypeError: an argument is complex.
        ValueError: the shapes do not broadcast together.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> p, q = vnp.array([0.0, 0.5, 0.5, -1.0]), vnp.array([0.0, 0.5, 0.0, 1.0])
    >>> special.rel_entr(p, q)
    Array([ 0.,  0., inf, inf], dtype=float32)
    """
    return in_wide("rel_entr", relative, p, q)


@remembered
def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """p log(p / q) - p + q, the Kullback-Leibler divergence of one element.

    Unlike `rel_entr`, it is never negative.

    Args:
        p, q: arrays or scalars of real numbers that broadcast together; integers become
            floats.

    Returns:
        The shape to which the arguments broadcast, in the float dtype to which they
        promote. q where p is 0 and q is not negative; inf outside the domain.

    Raises:
        TypeError: an argument is complex.
        ValueError: the shapes do not broadcast together.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> p, q = vnp.array([0.0, 1.0, 1.0, -1.0]), vnp.array([3.0, 1.0, 2.0, 1.0])
    >>> special.kl_div(p, q).round(3)
    Array([3.   , 0.   , 0.307,   inf], dtype=float32)
    """
    return in_wide("kl_div", divergence, p, q)


def divergence(p: Array, q: Array) -> Array:
    """For near numbers p (t - log(1 + t)) with t = (q - p) / p, by its series."""
    inside = bitwise_and(gt(p, 0.0), gt(q, 0.0))
    safe_p, safe_q = select(inside, p, 1.0), select(inside, q, 1.0)
    gap = sub(safe_q, safe_p)
    near = bitwise_and(lt(magnitude(gap), mul(safe_p, 0.5)), lt(safe_p, math.inf))
    t = div(select(near, gap, 0.0), select(near, safe_p, 1.0))
    # log(1 + t) = 2 artanh(r), of which 2r is t less t r.
    r = div(t, add(t, 2.0))
    square = mul(r, r)
    terms = [2.0 / k for k in range(2 * DIVERGENCE_TERMS + 1, 1, -2)]
    close = mul(safe_p, mul(r, sub(t, mul(square, polynomial(square, terms)))))
    away = add(relative(safe_p, safe_q), gap)
    # Where both are infinite, so is the sum of the first two terms.
    return at_ends(p, q, inside, select(near, close, away), q)


@remembered
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """(x^lmbda - 1) / lmbda, and log x for lmbda = 0.

    Box and Cox, "An analysis of transformations", 1964.

    Args:
        x: an array or scalar of positive numbers; integers become floats.
        lmbda: the power, an array or scalar that broadcasts with `x`.

    Returns:
        The shape to which the arguments broadcast, in the float dtype to which they
        promote. NaN for negative x; at 0 the limit, -inf or -1 / lmbda.

    Raises:
        TypeError: an argument is complex.
        ValueError: the shapes do not broadcast together.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.boxcox(vnp.array([1.0, 3.0]), vnp.array([[1.0], [2.0]]))
    Array([[0., 2.],
           [0., 4.]], dtype=float32)
    """
    return in_wide("boxcox", lambda x, power: transformed(log(x), power), x, lmbda)


@remembered
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """`boxcox` of 1 + x, accurate for small x.

    Args:
        x: an array or scalar of numbers above -1; integers become floats.
        lmbda: the power, an array or scalar that broadcasts with `x`.

    Returns:
        The shape to which the arguments broadcast, in the float dtype to which they
        promote. NaN for x below -1; at -1 the limit, -inf or -1 / lmbda.

    Raises:
        TypeError: an argument is complex.
        ValueError: the shapes do not broadcast together.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> x = vnp.array([1e-10, 3.0])
    >>> special.boxcox(1 + x, 0.5), special.boxcox1p(x, 0.5)
    (Array([0., 2.], dtype=float32), Array([1.e-10, 2.e+00], dtype=float32))
    """
    return in_wide("boxcox1p", lambda x, power: transformed(log1p(x), power), x, lmbda)


def transformed(logarithm: Array, power: Array) -> Array:
    """(exp(logarithm power) - 1) / power, with its limit at power 0."""
    # Of an infinite logarithm the limit is the logarithm, and no product is needed.
    endless = bitwise_and(eq(power, 0.0), eq(magnitude(logarithm), math.inf))
    finite = select(endless, 0.0, logarithm)
    product = mul(power, finite)
    # A product of so little changes nothing, and may have lost its digits.
    none = lt(magnitude(product), float(finfo(power.dtype).eps) ** 2)
    safe = select(none, constant_of(1, power.dtype), power)
    linear = mul(finite, add(mul(product, 0.5), 1.0))
    array = select(none, linear, div(expm1(mul(safe, finite)), safe))
    return select(endless, logarithm, array)


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


def i0e(x: ArrayLike) -> Array:
    """exp(-|x|) times the modified Bessel function of order 0.

    Args:
        x: an array or scalar of real numbers; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers.

    Raises:
        TypeError: `x` is complex.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.i0e(vnp.array([1.0, 1000.0])).round(4)
    Array([0.4658, 0.0126], dtype=float32)
    """
    return row("i0e", bessel.bessel_i0e, x)


def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of order 0; DLMF 10.25.

    Args:
        x: an array or scalar of real numbers; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers. float32 overflows beyond about
        91, `i0e` does not.

    Raises:
        TypeError: `x` is complex.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.i0(vnp.array([0.0, 1.0, -1.0, 100.0])).round(4)
    Array([1.    , 1.2661, 1.2661,    inf], dtype=float32)
    """
    return in_wide("i0", lambda z: scaled_up(z, bessel.bessel_i0e(z)), x)


def scaled_up(z: Array, array: Array) -> Array:
    """A function times exp |z|, in two steps so that only the result overflows."""
    half = exp(mul(magnitude(z), 0.5))
    return mul(mul(array, half), half)


@remembered
def i1e(x: ArrayLike) -> Array:
    """exp(-|x|) times the modified Bessel function of order 1.

    Args:
        x: an array or scalar of real numbers; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers.

    Raises:
        TypeError: `x` is complex.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.i1e(vnp.array([1.0, 1000.0])).round(4)
    Array([0.2079, 0.0126], dtype=float32)
    """
    return row("i1e", bessel.bessel_i1e, x)


@remembered
def i1(x: ArrayLike) -> Array:
    """The modified Bessel function of order 1; DLMF 10.25.

    Args:
        x: an array or scalar of real numbers; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers. float32 overflows beyond about
        91, `i1e` does not.

    Raises:
        TypeError: `x` is complex.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.i1(vnp.array([0.0, 1.0, -1.0, 100.0])).round(4)
    Array([ 0.    ,  0.5652, -0.5652,     inf], dtype=float32)
    """
    return in_wide("i1", lambda z: scaled_up(z, bessel.bessel_i1e(z)), x)


# -----------------------------------------------------------------------------
# Relatives of the gamma function: binomials, Pochhammer's symbol, Bernoulli.
#
# comb(5, 2), poch(0.5, 3), loggamma(1 + 2j), bernoulli(8)


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
