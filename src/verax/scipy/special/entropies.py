"""Floor 6: terms of entropies, and the powers of Box and Cox.

One idea: each is written in a form whose value and gradient stay accurate towards the
ends of its domain, where a logarithm meets a factor of zero::

    xlogy(0.0, 0.0), entr(p), rel_entr(p, q), boxcox(x, 0.0)
"""

import math
from collections.abc import Sequence
from typing import Final

from verax.api.custom.jvp import custom_jvp
from verax.backend.eager.composites import remembered
from verax.ir.avals import finfo
from verax.ir.dtypes import is_complex
from verax.numpy.arguments.arguments import (
    ArrayLike,
    constant_of,
)
from verax.ops.elementwise.arith import (
    abs as magnitude,
    add,
    div,
    max as larger,
    min as smaller,
    mul,
    neg,
    sub,
)
from verax.ops.elementwise.bits import bitwise_and, bitwise_or
from verax.ops.elementwise.compare import eq, ge, gt, lt, ne
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import expm1, log, log1p
from verax.ops.elementwise.select import select
from verax.ops.special import erf_gamma
from verax.rules.values.array import Array
from verax.scipy.special import plane
from verax.scipy.special.arguments import in_wide, inexact, polynomial, reals, row

# Terms of a series in r² for |r| up to 1/3.
DIVERGENCE_TERMS: Final = 16


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
    return select(lt(p, 0.0), -math.inf, neg(xlogx(p)))


@custom_jvp
def xlogx(p: Array) -> Array:
    """p log p, with the derivative log p + 1."""
    return erf_gamma.xlogy(p, p)


@xlogx.defjvp
def xlogx_tangent(
    primals: Sequence[Array], tangents: Sequence[Array]
) -> tuple[Array, Array]:
    """log p + 1 times the change."""
    (p,), (t,) = primals, tangents
    return xlogx(p), mul(add(log(p), 1.0), t)


@custom_jvp
def log_ratio(p: Array, q: Array) -> Array:
    """log(p / q) of positive numbers: log(1 + (p - q) / q) if p is the larger."""
    low, high = smaller(p, q), larger(p, q)
    exponent = int(finfo(p.dtype).maxexp) // 2
    # Where the quotient may overflow, it is one of scaled numbers.
    far = gt(high, mul(low, 4.0 ** (exponent - 1)))
    low = select(far, mul(low, 2.0**exponent), low)
    high = select(far, mul(high, 2.0**-exponent), high)
    shift = constant_of(2 * exponent * math.log(2), p.dtype)
    size = add(log1p(div(sub(high, low), low)), select(far, shift, 0.0))
    return select(lt(p, q), neg(size), size)


@log_ratio.defjvp
def log_ratio_tangent(
    primals: Sequence[Array], tangents: Sequence[Array]
) -> tuple[Array, Array]:
    """The relative changes of both, of which one is less the other."""
    parts = [div(t, x) for t, x in zip(tangents, primals, strict=True)]
    return log_ratio(*primals), sub(*parts)


def positive_pair(p: Array, q: Array) -> tuple[Array, Array, Array]:
    """Whether both are positive, and the numbers, 1 where they are not."""
    inside = bitwise_and(gt(p, 0.0), gt(q, 0.0))
    return inside, select(inside, p, 1.0), select(inside, q, 1.0)


def relative(p: Array, q: Array) -> Array:
    """p log(p / q), 0 where p is 0, and inf where p or q is negative."""
    inside, safe_p, safe_q = positive_pair(p, q)
    return at_ends(p, q, inside, mul(safe_p, log_ratio(safe_p, safe_q)), 0.0)


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
    return in_wide("kl_div", lambda p, q: divergence(p, q), p, q)


@custom_jvp
def divergence(p: Array, q: Array) -> Array:
    """For near numbers p (t - log(1 + t)) with t = (q - p) / p, by its series."""
    inside, safe_p, safe_q = positive_pair(p, q)
    gap = sub(safe_q, safe_p)
    near = bitwise_and(lt(magnitude(gap), mul(safe_p, 0.5)), lt(safe_p, math.inf))
    t = div(select(near, gap, 0.0), select(near, safe_p, 1.0))
    # log(1 + t) = 2 artanh(r), of which 2r is t less t r.
    r = div(t, add(t, 2.0))
    square = mul(r, r)
    terms = [2.0 / k for k in range(2 * DIVERGENCE_TERMS + 1, 1, -2)]
    close = mul(safe_p, mul(r, sub(t, mul(square, polynomial(square, terms)))))
    away = add(mul(safe_p, log_ratio(safe_p, safe_q)), gap)
    # Where both are infinite, so is the sum of the first two terms.
    return at_ends(p, q, inside, select(near, close, away), q)


@divergence.defjvp
def divergence_tangent(
    primals: Sequence[Array], tangents: Sequence[Array]
) -> tuple[Array, Array]:
    """log(p / q) dp + (1 - p / q) dq, dq where p is 0, and 0 outside the domain."""
    p, q = primals
    inside, safe_p, safe_q = positive_pair(p, q)
    nothing = bitwise_and(eq(p, 0.0), ge(q, 0.0))
    slope_p = select(inside, log_ratio(safe_p, safe_q), 0.0)
    rest = select(lt(q, math.inf), div(sub(safe_q, safe_p), safe_q), 1.0)
    slope_q = select(inside, rest, convert(nothing, q.dtype))
    tangent = add(mul(tangents[0], slope_p), mul(tangents[1], slope_q))
    return divergence(p, q), tangent


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
