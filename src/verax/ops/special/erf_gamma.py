"""Floor 2: special functions: the error function, gamma and its relatives.

One idea: SciPy is the reference, CHLO expands the compiled form, and each derivative is
in closed form through the next function::

    lgamma_p: y = log |Γ(x)|,  dy = t digamma(x)

The formulas are those of the NIST Digital Library of Mathematical Functions, chapters
5 (gamma), 7 (error functions) and 25 (zeta).
"""

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from verax.ir.avals import ShapedArray, finfo
from verax.ir.dtypes import SMALL_FLOATS, float32, float64
from verax.ir.jaxpr import NO_PARAMS, NoParams
from verax.ops import base
from verax.ops.base import Accuracy, in_wide, rounded
from verax.ops.elementwise.arith import abs as magnitude, add, div, mul, neg, sub
from verax.ops.elementwise.bits import bitwise_and
from verax.ops.elementwise.compare import eq, ge, gt, lt, ne
from verax.ops.elementwise.exp_log import exp, log, log1p, square
from verax.ops.elementwise.rounding import round as nearest
from verax.ops.elementwise.select import clamp, select
from verax.ops.elementwise.trig import sin
from verax.ops.special import kernels
from verax.ops.special.bessel import in_float32
from verax.ops.special.zeta import zeta_slope
from verax.ops.structure.create import full_like
from verax.rules.families.elementwise import chlo, composed, elementwise
from verax.rules.programs.derived import lowered
from verax.rules.rows.eager_costs import large
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.kernels import Kernel
from verax.rules.rows.row import Domain, Rows, Traits, Work
from verax.rules.values.array import Array
from verax.rules.values.constants import FLOAT
from verax.rules.values.lazy import LazyModule
from verax.rules.values.operands import alike

# -----------------------------------------------------------------------------
# The logarithm of the gamma function, as a program of simpler operations.
#
# A Taylor series around 2, where the function has a zero that must stay one;
# other numbers come there by Γ(x + 1) = x Γ(x), and far ones have Stirling's series::
#
#     log_gamma(x)          # what `lgamma` lowers to
#
# The formulas are those of the NIST Digital Library of Mathematical Functions, 5.5.1,
# 5.5.3, 5.7.3 and 5.11.1.


FAR: Final = 8.0
"""From here on Stirling's series has all digits of double precision."""
SLOPE_AT_TWO: Final = 0.42278433509846713939
"""1 less Euler's constant, the slope at 2."""
# (-1)^k (ζ(k) - 1) / k for k = 2, 3, ...
TAYLOR: Final = (
    0.322467033424113218, -0.0673523010531980951, 0.0205808084277845479,
    -0.00738555102867398527, 0.00289051033074152329, -0.00119275391170326098,
    0.000509669524743042422, -0.00022315475845357938, 0.0000994575127818085337,
    -0.0000449262367381331417, 0.0000205072127756706916, -9.4394882752683959e-6,
    4.3748667899074878e-6, -2.03921575380136624e-6, 9.55141213040741983e-7,
    -4.49246919876456604e-7, 2.12071848055546659e-7, -1.00432248239680996e-7,
    4.76981016936398057e-8, -2.27110946089431649e-8, 1.08386592148969541e-8,
    -5.18347504197004666e-9, 2.48367454380247832e-9, -1.19214014058609121e-9,
    5.73136724167886201e-10, -2.75952288512423315e-10, 1.33047643742444895e-10,
)  # fmt: skip
# B_2k / (2k (2k - 1)) for k = 1, 2, ...
STIRLING: Final = (
    1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156,
    -3617 / 122400, 43867 / 244188,
)  # fmt: skip


def horner(x: Array, coefficients: tuple[float, ...]) -> Array:
    """The polynomial with these coefficients, the constant one first."""
    total = full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = add(mul(total, x), c)
    return total


def needed(x: Array, terms: tuple[float, ...], single: int) -> tuple[float, ...]:
    """The terms of a series that a dtype can see."""
    return terms if finfo(x.dtype).bits > 32 else terms[:single]


def stirling_rest(x: Array) -> Array:
    """log Γ(x) - (x - 1/2) log x + x - log √(2π) for x of 8 or more."""
    inverse = div(1.0, x)
    return mul(horner(mul(inverse, inverse), needed(x, STIRLING, 4)), inverse)


def log_gamma(x: Array) -> tuple[Array]:
    """log |Γ(x)|, infinite at poles and at both ends."""
    negative = lt(x, 0.0)
    size = magnitude(x)
    whole = nearest(x)
    array = of_positive(size)
    # Γ(x) Γ(-x) = -π / (x sin πx); the sine of a small angle is exact.
    sine = magnitude(sin(mul(sub(x, whole), math.pi)))
    inside = bitwise_and(negative, ne(x, whole))
    turned = log(div(math.pi, select(inside, mul(size, sine), full_like(x, 1))))
    below = select(inside, sub(turned, array), full_like(x, np.inf))
    array = select(negative, below, array)
    return (select(eq(size, full_like(x, np.inf)), size, array),)


def of_positive(x: Array) -> Array:
    """log Γ(x) for x of 0 or more."""
    far, one = ge(x, FAR), full_like(x, 1)
    near = select(far, full_like(x, 2), x)
    # To 1.5 <= y <= 2.5, with log Γ(x) = log Γ(y) + log(factor) where x was larger
    # and - log(factor) where it was smaller.
    up = lt(near, 1.5)
    small = lt(near, 0.5)
    z = select(small, near, sub(near, select(up, one, full_like(x, 2))))
    factor = select(small, mul(near, add(near, 1.0)), select(up, near, one))
    steps = full_like(x, 0)
    for k in range(1, 7):
        beyond = gt(near, k + 1.5)
        factor = select(beyond, mul(factor, sub(near, float(k))), factor)
        steps = select(beyond, full_like(x, k), steps)
    z = sub(z, steps)
    logarithm = log(select(far, x, factor))
    taylor = mul(z, add(mul(z, horner(z, needed(z, TAYLOR, 12))), SLOPE_AT_TWO))
    middle = add(taylor, select(up, neg(logarithm), logarithm))
    away = select(far, x, full_like(x, FAR))
    main = add(mul(away, sub(logarithm, 1.0)), mul(logarithm, -0.5))
    stirling = add(main, add(stirling_rest(away), 0.5 * math.log(2 * math.pi)))
    return select(far, stirling, middle)


# -----------------------------------------------------------------------------
# Special functions: the error function, gamma and its relatives.


special = LazyModule("scipy.special")

SLOPE = float(2 / np.sqrt(np.pi))
GAMMA = Domain(0.05, 30, special=(1.0, 2.0, np.inf))
# XLA sums the series of zeta at infinity to NaN, SciPy to 0.
FINITE_GAMMA = Domain(0.05, 30, special=(1.0, 2.0))


class NoDerivative(ValueError):
    """A derivative was requested that is not implemented."""

    __module__ = "verax.errors"


def underived(name: str, operand: str) -> Callable[..., Array]:
    """A derivative that is not implemented; raises."""

    def derivative(*args: object) -> Array:
        raise NoDerivative(
            f"the derivative of {name} with respect to {operand} is not available; "
            f"stop it with verax.lax.stop_gradient({operand})"
        )

    return derivative


def bell(x: Array) -> Array:
    """exp(-x²), cut off where it is zero, so that its slope is zero at infinity."""
    return exp(neg(square(clamp(-30.0, x, 30.0))))


def lower_erfc(
    e: Emitter, p: NoParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """One operation; in float32 for 8-bit floats, which CHLO does not expand."""
    if outs[0].dtype not in SMALL_FLOATS:
        return e.op("chlo.erfc", xs, outs)
    kind = (outs[0].with_dtype(float32),)
    result = e.op("chlo.erfc", e.op("stablehlo.convert", xs, kind), kind)
    return e.op("stablehlo.convert", result, outs)


erf_p = elementwise(
    "erf",
    in_wide(special.erf),
    jvp=lambda x, y, t: mul(t, mul(bell(x), SLOPE)),
    lower=chlo("erf"),
    kernel=Kernel.of(kernels.erf, float64),
    accepts=FLOAT,
    domains=Domain(-5, 5, special=(0.0, np.inf, -np.inf)),
    costly=large,
    traits=Traits(Work.SLOW, keeps_zero=True),
)
erfc_p = elementwise(
    "erfc",
    in_wide(special.erfc),
    jvp=lambda x, y, t: mul(t, mul(bell(x), -SLOPE)),
    lower=lower_erfc,
    accepts=FLOAT,
    domains=Domain(-5, 5, special=(0.0, np.inf, -np.inf)),
    costly=large,
    traits=Traits(keeps_zero=False),
)
erf_inv_p = elementwise(
    "erf_inv",
    in_wide(base.odd(special.erfinv)),
    jvp=lambda x, y, t: mul(t, mul(exp(square(y)), 1 / SLOPE)),
    lower=chlo("erf_inv"),
    kernel=Kernel.of(kernels.erf_inv, float64),
    accepts=FLOAT,
    domains=Domain(-0.95, 0.95, special=(0.0, 1.0, -1.0)),
    costly=large,
    traits=Traits(keeps_zero=True),
)
lgamma_p = elementwise(
    "lgamma",
    in_wide(base.lgamma),
    jvp=lambda x, y, t: mul(t, digamma(x)),
    lower=in_float32(lambda e, xs: lowered(e, xs, log_gamma)),
    kernel=Kernel.of(lambda x: log_gamma(x)[0], float32, float64),
    accepts=FLOAT,
    domains=Domain(0.05, 30, special=(1.0, 2.0, np.inf, -np.inf)),
    costly=large,
    traits=Traits(keeps_zero=False),
)
digamma_p = elementwise(
    "digamma",
    in_wide(base.digamma),
    jvp=lambda x, y, t: mul(t, polygamma(1.0, x)),
    lower=chlo("digamma"),
    kernel=Kernel.of(kernels.digamma, float32, float64),
    accepts=FLOAT,
    domains=GAMMA,
    costly=large,
    traits=Traits(keeps_zero=False),
)
polygamma_p = elementwise(
    "polygamma",
    in_wide(special.polygamma),
    operands=2,
    jvp=(
        underived("polygamma", "m"),
        lambda m, x, y, t: mul(t, polygamma(add(m, 1.0), x)),
    ),
    lower=chlo("polygamma"),
    accepts=FLOAT,
    domains=(Domain(1, 1, special=(0.0, 2.0), smooth=False), FINITE_GAMMA),
    costly=large,
)
zeta_p = elementwise(
    "zeta",
    in_wide(special.zeta),
    operands=2,
    jvp=(
        lambda x, q, y, t: mul(t, zeta_slope(x, q)),
        lambda x, q, y, t: mul(t, mul(neg(x), zeta(add(x, 1.0), q))),
    ),
    lower=chlo("zeta"),
    accepts=FLOAT,
    domains=(Domain(1.1, 10, special=(2.0,), smooth=False), FINITE_GAMMA),
)


def erf(x: object) -> Array:
    """The error function, 2/√π times the integral of exp(-t²) from 0 to x.

    Source: DLMF, section 7.2.

    Args:
        x: a float array or scalar.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` does not hold real floats.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.erf(vnp.array([-vnp.inf, 0.0, 1.0])).round(4)
    Array([-1.    ,  0.    ,  0.8427], dtype=float32)
    """
    return erf_p.call(NO_PARAMS, x)


def erfc(x: object, *, accuracy: Accuracy = None) -> Array:
    """1 - erf(x), accurate for large x.

    Args:
        x: a float array or scalar.
        accuracy: the tolerance asked of the compiler, a `lax.Tolerance` or
            `lax.AccuracyMode`; None for its own. On CPUs and GPUs there is one
            implementation, so it changes nothing.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` does not hold real floats, or `accuracy` is something else.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.float32(4)
    >>> lax.erfc(x) > 1e-8, 1 - lax.erf(x)
    (Array(True, dtype=bool), Array(0., dtype=float32))
    """
    return rounded(erfc_p, x, accuracy)


def erf_inv(x: object) -> Array:
    """The number whose error function is x; NaN outside [-1, 1].

    Args:
        x: a float array or scalar.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` does not hold real floats.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.erf_inv(vnp.array([-1.0, 0.0, 0.5, 2.0])).round(4)
    Array([  -inf, 0.    , 0.4769,    nan], dtype=float32)
    """
    return erf_inv_p.call(NO_PARAMS, x)


def lgamma(x: object) -> Array:
    """log |Γ(x)|; infinite at the poles 0, -1, -2, …

    Args:
        x: a float array or scalar.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` does not hold real floats.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.lgamma(vnp.array([-1.0, 1.0, 5.0])).round(4)
    Array([   inf, 0.    , 3.1781], dtype=float32)
    >>> vnp.exp(lax.lgamma(5.0)).round(4)  # 4 · 3 · 2
    Array(24., dtype=float32, weak_type=True)
    """
    return lgamma_p.call(NO_PARAMS, x)


def digamma(x: object) -> Array:
    """The derivative of log Γ(x); NaN at the poles -1, -2, …

    Source: DLMF, section 5.2.

    Args:
        x: a float array or scalar.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` does not hold real floats.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.digamma(vnp.array([-1.0, 0.0, 1.0, 2.0])).round(4)
    Array([    nan,    -inf, -0.5772,  0.4228], dtype=float32)
    """
    return digamma_p.call(NO_PARAMS, x)


def polygamma(m: object, x: object) -> Array:
    """The m-th derivative of `digamma` at x, for an integer m held as a float.

    NaN where m is not a whole number of 0 or more. There is no derivative in m.
    Source: DLMF, section 5.15.

    Args:
        m: the order, whole numbers in the dtype of `x`, in its shape (where a size of 1
            goes with any other) or a scalar.
        x: a float array or scalar.

    Returns:
        An array of the operands' dtype, in the shape to which their sizes of 1 grow.

    Raises:
        TypeError: dtypes differ or are not of real floats, or the shapes do not fit.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.polygamma(vnp.array([0.0, 1.0, 0.5]), 1.0).round(4)
    Array([-0.5772,  1.6449,     nan], dtype=float32)
    """
    return polygamma_p.call(NO_PARAMS, *alike(m, x))


def zeta(x: object, q: object) -> Array:
    """Hurwitz's zeta function, the sum of (k + q)^-x over k = 0, 1, 2, …

    Infinite at x = 1 and NaN below, where the sum does not converge. With q = 1 it is
    Riemann's. Source: DLMF, section 25.11.

    Args:
        x, q: floats of the same dtype: arrays of the same shape, where a size of 1 goes
            with any other, or scalars. A Python scalar takes the dtype of the first
            array.

    Returns:
        An array of the operands' dtype, in the shape to which their sizes of 1 grow.

    Raises:
        TypeError: dtypes differ or are not of real floats, or the shapes do not fit.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.zeta(vnp.array([2.0, 1.0, 0.5]), 1.0).round(4)
    Array([1.6449,    inf,    nan], dtype=float32)
    >>> lax.zeta(2.0, 1.0) - lax.zeta(2.0, 2.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return zeta_p.call(NO_PARAMS, *alike(x, q))


# -----------------------------------------------------------------------------
# Products x log y, as entropies are made of.
#
# The limit x log y = 0 at x = 0 needs a rule of its own, since neither the
# product of 0 and -inf nor its derivative says so::
#
#     xlogy_p: z = x log y,  dz = dx log y + dy x / y,  where 0 / 0 is 0


def product(x: Array, y: Array, array: Array) -> Array:
    """x times a logarithm of y: 0 where x is 0, unless y is NaN."""
    return select(bitwise_and(eq(x, 0.0), eq(y, y)), 0.0, mul(x, array))


def quotient(x: Array, y: Array) -> Array:
    """x / y, and 0 where both are 0; its derivative at x = 0 is 1 / y elsewhere."""
    return select(bitwise_and(eq(x, 0.0), eq(y, 0.0)), 0.0, div(x, y))


def log_multiple(x: Array, y: Array) -> Array:
    """x log y."""
    return product(x, y, log(y))


def log1p_multiple(x: Array, y: Array) -> Array:
    """x log(1 + y)."""
    return product(x, y, log1p(y))


xlogy_p = elementwise(
    "xlogy",
    in_wide(special.xlogy),
    operands=2,
    jvp=(
        lambda x, y, z, t: mul(t, log(y)),
        lambda x, y, z, t: mul(t, quotient(x, y)),
    ),
    lower=composed(log_multiple),
    kernel=Kernel.of(log_multiple, float32, float64),
    accepts=FLOAT,
    domains=(Domain(0, 5, special=(0.0, 1.0)), Domain(0.1, 5, special=(1.0,))),
    costly=large,
)
xlog1py_p = elementwise(
    "xlog1py",
    in_wide(special.xlog1py),
    operands=2,
    jvp=(
        lambda x, y, z, t: mul(t, log1p(y)),
        lambda x, y, z, t: mul(t, quotient(x, add(y, 1.0))),
    ),
    lower=composed(log1p_multiple),
    kernel=Kernel.of(log1p_multiple, float32, float64),
    accepts=FLOAT,
    domains=(Domain(0, 5, special=(0.0, 1.0)), Domain(-0.8, 5, special=(0.0,))),
    costly=large,
)


def xlogy(x: object, y: object) -> Array:
    """x log y, 0 where x is 0."""
    return xlogy_p.call(NO_PARAMS, *alike(x, y))


def xlog1py(x: object, y: object) -> Array:
    """x log(1 + y), 0 where x is 0."""
    return xlog1py_p.call(NO_PARAMS, *alike(x, y))


ROWS: Rows = (
    erf_p,
    erfc_p,
    erf_inv_p,
    lgamma_p,
    digamma_p,
    polygamma_p,
    zeta_p,
    xlogy_p,
    xlog1py_p,
)
