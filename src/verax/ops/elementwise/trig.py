"""Floor 2: trigonometric and hyperbolic functions.

A row per function, in closed form::

    sin_p: y = sin x,  dy = t cos x
"""

import math
from collections.abc import Callable

import numpy as np

from verax.ir.avals import finfo
from verax.ir.dtypes import DType, float32, float64, is_complex
from verax.ir.jaxpr import NO_PARAMS
from verax.ops import base
from verax.ops.base import Accuracy, rounded
from verax.ops.elementwise.arith import (
    abs as magnitude,
    add,
    complex as make_complex,
    div,
    imag,
    mul,
    neg,
    real,
    sub,
)
from verax.ops.elementwise.compare import eq
from verax.ops.elementwise.exp_log import one_minus_square, rsqrt, square
from verax.ops.elementwise.kernels import angles, arcs, hyperbolic
from verax.ops.elementwise.select import clamp, select
from verax.rules.families.elementwise import amended, chlo, elementwise, stablehlo
from verax.rules.rows.eager_costs import large
from verax.rules.rows.kernels import Kernel, Maths
from verax.rules.rows.row import Domain, Rows, Traits, Work
from verax.rules.values.array import Array
from verax.rules.values.operands import alike

UNIT = Domain(-0.99, 0.99, special=(0.0, -1.0, 1.0))
MODERATE = Domain(-10, 10, special=(0.0,))


def of_angle(function: Callable[[Array], Array]) -> Kernel:
    """The kernel of a function of an angle, in double precision of a moderate one."""
    both: dict[DType, Maths] = {float32: function, float64: function}
    return Kernel(both, {float64: angles.is_moderate}, reduced=True)


sin_p = elementwise(
    "sin",
    np.sin,
    jvp=lambda x, y, t: mul(t, cos(x)),
    lower=stablehlo("sine"),
    kernel=of_angle(angles.sin),
    domains=MODERATE,
    traits=Traits(Work.SLOW, keeps_zero=True, summed=True),
)
cos_p = elementwise(
    "cos",
    np.cos,
    jvp=lambda x, y, t: mul(t, neg(sin(x))),
    lower=stablehlo("cosine"),
    kernel=of_angle(angles.cos),
    domains=MODERATE,
    traits=Traits(Work.SLOW, keeps_zero=False, summed=True),
)
tan_p = elementwise(
    "tan",
    np.tan,
    jvp=lambda x, y, t: mul(t, add(square(y), 1.0)),
    lower=stablehlo("tan"),
    kernel=of_angle(angles.tan),
    domains=Domain(-1.4, 1.4),
    traits=Traits(Work.SLOW, keeps_zero=True, summed=True),
)
asin_p = elementwise(
    "asin",
    np.arcsin,
    jvp=lambda x, y, t: mul(t, rsqrt(one_minus_square(x))),
    lower=chlo("asin"),
    kernel=Kernel.of(arcs.asin, float32, float64),
    domains=UNIT,
    traits=Traits(keeps_zero=True),
)
acos_p = elementwise(
    "acos",
    np.arccos,
    jvp=lambda x, y, t: mul(t, neg(rsqrt(one_minus_square(x)))),
    lower=chlo("acos"),
    kernel=Kernel.of(arcs.acos, float32, float64),
    domains=UNIT,
    traits=Traits(keeps_zero=False),
)


def complex_tanh(x: Array, y: Array) -> Array:
    """tanh(x) = y; where the real part of x is 0, so is that of y."""
    return make_complex(select(eq(real(x), 0.0), real(x), real(y)), imag(y))


atan_p = elementwise(
    "atan",
    np.arctan,
    jvp=lambda x, y, t: div(t, add(square(x), 1.0)),
    lower=chlo("atan"),
    domains=MODERATE,
    costly=large,
    traits=Traits(keeps_zero=True),
)
atan2_p = elementwise(
    "atan2",
    base.arctan2,
    operands=2,
    jvp=(
        lambda x, y, z, t: mul(t, div(y, add(square(x), square(y)))),
        lambda x, y, z, t: mul(t, neg(div(x, add(square(x), square(y))))),
    ),
    lower=stablehlo("atan2"),
    kernel=Kernel.of(arcs.atan2, float32, float64),
    domains=MODERATE,
    traits=Traits(Work.SLOW),
)
sinh_p = elementwise(
    "sinh",
    np.sinh,
    jvp=lambda x, y, t: mul(t, cosh(x)),
    lower=chlo("sinh"),
    kernel=Kernel.of(hyperbolic.sinh, float32, float64),
    domains=MODERATE,
    costly=large,
    traits=Traits(Work.SLOW, keeps_zero=True),
)
cosh_p = elementwise(
    "cosh",
    np.cosh,
    jvp=lambda x, y, t: mul(t, sinh(x)),
    lower=chlo("cosh"),
    kernel=Kernel.of(hyperbolic.cosh, float32, float64),
    domains=MODERATE,
    costly=large,
    traits=Traits(Work.SLOW, keeps_zero=False),
)
tanh_p = elementwise(
    "tanh",
    np.tanh,
    jvp=lambda x, y, t: mul(t, one_minus_square(y)),
    lower=amended(stablehlo("tanh"), complex_tanh),
    domains=MODERATE,
    costly=large,
    traits=Traits(Work.SLOW, keeps_zero=True, summed=True),
)


def asinh_jvp(x: Array, y: Array, t: Array) -> Array:
    """t r / √((x r)² + r²), which is t / √(x² + 1) for whatever r is.

    It is 1 / |x| for a large x, so that no square overflows before the result is 0.
    """
    if is_complex(x.dtype):
        return div(t, cosh(y))
    most = 0.5 * math.sqrt(float(finfo(x.dtype).max))
    r = div(1.0, clamp(1.0, magnitude(x), most))
    return mul(t, mul(r, rsqrt(add(square(mul(x, r)), square(r)))))


asinh_p = elementwise(
    "asinh",
    np.arcsinh,
    jvp=asinh_jvp,
    lower=chlo("asinh"),
    kernel=Kernel.of(hyperbolic.asinh, float64),
    domains=Domain(-100, 100, special=(0.0,)),
    costly=large,
    traits=Traits(keeps_zero=True),
)
acosh_p = elementwise(
    "acosh",
    np.arccosh,
    jvp=lambda x, y, t: mul(t, mul(rsqrt(sub(x, 1.0)), rsqrt(add(x, 1.0)))),
    lower=chlo("acosh"),
    kernel=Kernel.of(hyperbolic.acosh, float64),
    domains=Domain(1.01, 100, special=(1.0,)),
    costly=large,
    traits=Traits(keeps_zero=False),
)
atanh_p = elementwise(
    "atanh",
    np.arctanh,
    jvp=lambda x, y, t: div(t, one_minus_square(x)),
    lower=chlo("atanh"),
    kernel=Kernel.of(hyperbolic.atanh, float32, float64),
    domains=UNIT,
    costly=large,
    traits=Traits(keeps_zero=True),
)


def sin(x: object, *, accuracy: Accuracy = None) -> Array:
    """The sine of x in radians.

    Args:
        x: a float or complex array or scalar.
        accuracy: the tolerance asked of the compiler, a `lax.Tolerance` or
            `lax.AccuracyMode`; None for its own. On CPUs and GPUs there is one
            implementation, so it changes nothing.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` holds integers or booleans, or `accuracy` is something else.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.sin(vnp.array([0.0, vnp.pi / 6, vnp.inf])).round(3)
    Array([0. , 0.5, nan], dtype=float32)
    """
    return rounded(sin_p, x, accuracy)


def cos(x: object, *, accuracy: Accuracy = None) -> Array:
    """The cosine of x in radians.

    Args:
        x: a float or complex array or scalar.
        accuracy: the tolerance asked of the compiler, a `lax.Tolerance` or
            `lax.AccuracyMode`; None for its own. On CPUs and GPUs there is one
            implementation, so it changes nothing.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` holds integers or booleans, or `accuracy` is something else.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.cos(vnp.array([0.0, vnp.pi / 3, vnp.pi])).round(3)
    Array([ 1. ,  0.5, -1. ], dtype=float32)
    """
    return rounded(cos_p, x, accuracy)


def tan(x: object, *, accuracy: Accuracy = None) -> Array:
    """The tangent of x in radians.

    Args:
        x: a float or complex array or scalar.
        accuracy: the tolerance asked of the compiler, a `lax.Tolerance` or
            `lax.AccuracyMode`; None for its own. On CPUs and GPUs there is one
            implementation, so it changes nothing.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` holds integers or booleans, or `accuracy` is something else.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.tan(vnp.array([0.0, vnp.pi / 4, -vnp.pi / 4])).round(3)
    Array([ 0.,  1., -1.], dtype=float32)
    """
    return rounded(tan_p, x, accuracy)


def asin(x: object) -> Array:
    """The angle in [-π/2, π/2] whose sine is x; NaN for real x outside [-1, 1].

    Args:
        x: a float or complex array or scalar.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` holds integers or booleans.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.asin(vnp.array([0.0, 1.0, 2.0])).round(3)
    Array([0.   , 1.571,   nan], dtype=float32)
    """
    return asin_p.call(NO_PARAMS, x)


def acos(x: object) -> Array:
    """The angle in [0, π] whose cosine is x; NaN for real x outside [-1, 1].

    Args:
        x: a float or complex array or scalar.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` holds integers or booleans.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.acos(vnp.array([1.0, -1.0, 2.0])).round(3)
    Array([0.   , 3.142,   nan], dtype=float32)
    """
    return acos_p.call(NO_PARAMS, x)


def atan(x: object) -> Array:
    """The angle in [-π/2, π/2] whose tangent is x.

    Args:
        x: a float or complex array or scalar.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` holds integers or booleans.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.atan(vnp.array([-vnp.inf, 0.0, 1.0])).round(3)
    Array([-1.571,  0.   ,  0.785], dtype=float32)
    """
    return atan_p.call(NO_PARAMS, x)


def atan2(x: object, y: object) -> Array:
    """The angle in [-π, π] of the point with ordinate x and abscissa y.

    Args:
        x, y: float or complex numbers of the same dtype: arrays of the same shape,
            where a size of 1 goes with any other, or scalars. A Python scalar takes the
            dtype of the array beside it.

    Returns:
        An array of the operands' dtype, in the shape to which their sizes of 1 grow.

    Raises:
        TypeError: dtypes differ or are of integers or booleans, or the shapes do not
            fit.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.atan2(vnp.array([1.0, 0.0, -0.0]), vnp.array([1.0, -1.0, -1.0])).round(3)
    Array([ 0.785,  3.142, -3.142], dtype=float32)
    """
    return atan2_p.call(NO_PARAMS, *alike(x, y))


def sinh(x: object) -> Array:
    """(exp(x) - exp(-x)) / 2.

    Args:
        x: a float or complex array or scalar.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` holds integers or booleans.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.sinh(vnp.array([-1.0, 0.0, 100.0])).round(3)
    Array([-1.175,  0.   ,    inf], dtype=float32)
    """
    return sinh_p.call(NO_PARAMS, x)


def cosh(x: object) -> Array:
    """(exp(x) + exp(-x)) / 2.

    Args:
        x: a float or complex array or scalar.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` holds integers or booleans.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.cosh(vnp.array([-1.0, 0.0, 1.0])).round(3)
    Array([1.543, 1.   , 1.543], dtype=float32)
    """
    return cosh_p.call(NO_PARAMS, x)


def tanh(x: object, *, accuracy: Accuracy = None) -> Array:
    """sinh(x) / cosh(x).

    Args:
        x: a float or complex array or scalar.
        accuracy: the tolerance asked of the compiler, a `lax.Tolerance` or
            `lax.AccuracyMode`; None for its own. On CPUs and GPUs there is one
            implementation, so it changes nothing.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` holds integers or booleans, or `accuracy` is something else.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.tanh(vnp.array([-vnp.inf, 0.5, 100.0])).round(3)
    Array([-1.   ,  0.462,  1.   ], dtype=float32)
    """
    return rounded(tanh_p, x, accuracy)


def asinh(x: object) -> Array:
    """The number whose hyperbolic sine is x.

    Args:
        x: a float or complex array or scalar.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` holds integers or booleans.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.asinh(vnp.array([-1e30, 0.0, 1.0])).round(3)
    Array([-69.771,   0.   ,   0.881], dtype=float32)
    """
    return asinh_p.call(NO_PARAMS, x)


def acosh(x: object) -> Array:
    """The nonnegative number whose hyperbolic cosine is x; NaN for real x below 1.

    Args:
        x: a float or complex array or scalar.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` holds integers or booleans.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.acosh(vnp.array([0.5, 1.0, 2.0])).round(3)
    Array([  nan, 0.   , 1.317], dtype=float32)
    """
    return acosh_p.call(NO_PARAMS, x)


def atanh(x: object) -> Array:
    """The number whose hyperbolic tangent is x; NaN for real x outside [-1, 1].

    Args:
        x: a float or complex array or scalar.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` holds integers or booleans.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.atanh(vnp.array([-1.0, 0.5, 2.0])).round(3)
    Array([ -inf, 0.549,   nan], dtype=float32)
    """
    return atanh_p.call(NO_PARAMS, x)


ROWS: Rows = (
    sin_p,
    cos_p,
    tan_p,
    asin_p,
    acos_p,
    atan_p,
    atan2_p,
    sinh_p,
    cosh_p,
    tanh_p,
    asinh_p,
    acosh_p,
    atanh_p,
)
