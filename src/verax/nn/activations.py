"""Floor 6: activation functions, each a few elementwise equations.

One idea: where a formula overflows or has no derivative on one side, the operand is
replaced before the formula, not its result after, so that gradients stay finite::

    elu(x) = x                           where x is positive
             alpha (exp(min(x, 0)) - 1)  elsewhere
"""

import math

import numpy as np

from verax.backend.eager.composites import remembered
from verax.ir.dtypes import (
    INEXACT_SET,
    bool_,
    is_inexact,
    is_unsigned,
)
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    broadcast_together,
    canonical_axis,
    inexact_array,
    promote_inexact,
    promote_numeric,
)
from verax.numpy.elementwise.transcendental import logaddexp
from verax.ops.elementwise import arith, trig
from verax.ops.elementwise.arith import add, div, integer_pow, mul, neg
from verax.ops.elementwise.compare import ge, gt, le, lt
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import exp, expm1, log, log1p, logistic, sqrt, square
from verax.ops.elementwise.select import clamp, select
from verax.ops.special.erf_gamma import erfc
from verax.ops.structure.joining import split
from verax.rules.values.array import Array

# -----------------------------------------------------------------------------
# What the functions of `verax.nn` take: floats, whatever they are given.
#
# An activation is mathematics on floats, so integers and Python numbers become
# floats before its first equation::
#
#     inexact("silu", 3)             # an array of float32


def inexact(name: str, x: ArrayLike) -> Array:
    """The first argument of `name` as a float or complex array.

    Raises:
        TypeError: it is neither an array nor a scalar.
    """
    if isinstance(x, Array) and x.aval.dtype in INEXACT_SET:
        return x
    return inexact_array(name, x)


def beside_float(name: str, x: ArrayLike) -> Array:
    """The first argument of `name` as a float array, a weak one of an integer.

    That is the type of a sum with a Python float.

    Raises:
        TypeError: it is neither an array nor a scalar.
    """
    if isinstance(x, Array) and x.aval.dtype in INEXACT_SET:
        return x
    return inexact_pair(name, x, 0.0)[0]


def numeric(name: str, x: ArrayLike) -> Array:
    """The first argument of `name` as an array of numbers, weak ones of booleans.

    That is the type of its maximum with a Python integer.

    Raises:
        TypeError: it is neither an array nor a scalar.
    """
    if isinstance(x, Array) and x.aval.dtype != bool_:
        return x
    return as_array(name, promote_numeric(name, x, 0)[0])


def inexact_pair(name: str, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """Two arguments as floats of the same dtype and, unless `y` is a scalar, shape.

    Raises:
        TypeError: one of them is neither an array nor a scalar.
        ValueError: their shapes do not broadcast together.
    """
    first, second = broadcast_together(name, promote_inexact(name, x, y))
    return as_array(name, first), as_array(name, second, 1)


# -----------------------------------------------------------------------------
# Activation functions, each a few elementwise equations.


SELU_ALPHA = 1.6732632423543772
SELU_SCALE = 1.0507009873554805


def identity(x: ArrayLike) -> Array:
    """x itself, as an array.

    Args:
        x: an array or scalar.

    Returns:
        The same values, with the shape and dtype of `x`.

    >>> from verax import nn
    >>> nn.identity(3)
    Array(3, dtype=int32, weak_type=True)
    """
    return as_array("identity", x)


def number(x: Array, value: int) -> int | float:
    """An integer as a Python number of the kind of x: exact, and weak if x is."""
    return float(value) if is_inexact(x.dtype) else value


@remembered
def relu(x: ArrayLike) -> Array:
    """max(x, 0); the derivative at 0 is 0.

    Args:
        x: an array or scalar of real numbers; booleans become integers.

    Returns:
        The shape and dtype of `x`: integers stay integers.

    >>> import verax
    >>> verax.grad(verax.nn.relu)(0.0)
    Array(0., dtype=float32, weak_type=True)
    >>> verax.nn.relu(verax.numpy.array([-2, 3]))
    Array([0, 3], dtype=int32)
    """
    x = numeric("relu", x)
    zero = number(x, 0)
    return select(le(x, zero), zero, x)


@remembered
def relu6(x: ArrayLike) -> Array:
    """min(max(x, 0), 6); the derivative at 0 and at 6 is 0.

    Args:
        x: an array or scalar of real numbers; integers become floats.

    Returns:
        The shape and dtype of `x`; a weak float for integers.

    >>> import verax.numpy as vnp
    >>> from verax import nn
    >>> nn.relu6(vnp.array([-1.0, 3.0, 9.0]))
    Array([0., 3., 6.], dtype=float32)
    """
    return clamp(0.0, beside_float("relu6", x), 6.0)


@remembered
def sigmoid(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x)).

    Args:
        x: an array or scalar, real or complex; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers.

    >>> import verax.numpy as vnp
    >>> from verax import nn
    >>> nn.sigmoid(vnp.array([-1000.0, 0.0, 1000.0]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    return logistic(inexact("sigmoid", x))


@remembered
def softplus(x: ArrayLike) -> Array:
    """log(1 + exp(x)), which is x for large x.

    Args:
        x: an array or scalar, real or complex; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers.

    >>> import verax
    >>> verax.nn.softplus(1000.0)
    Array(1000., dtype=float32, weak_type=True)
    """
    return logaddexp(inexact("softplus", x), 0.0)


def sparse_plus(x: ArrayLike) -> Array:
    """0 below -1, x above 1, and (x + 1)² / 4 between.

    Args:
        x: an array or scalar of real numbers; integers become floats.

    Returns:
        The shape and dtype of `x`; a weak float for integers.

    >>> import verax.numpy as vnp
    >>> from verax import nn
    >>> nn.sparse_plus(vnp.array([-2.0, 0.0, 1.0, 3.0]))
    Array([0.  , 0.25, 1.  , 3.  ], dtype=float32)
    """
    x = beside_float("sparse_plus", x)
    between = square(add(clamp(-1.0, x, 1.0), 1.0))
    return select(ge(x, 1.0), x, mul(between, 0.25))


def sparse_sigmoid(x: ArrayLike) -> Array:
    """The derivative of `sparse_plus`: 0 below -1, 1 above 1, (x + 1) / 2 between.

    Args:
        x: an array or scalar of real numbers; integers become floats.

    Returns:
        The shape and dtype of `x`; a weak float for integers.

    >>> import verax
    >>> verax.nn.sparse_sigmoid(verax.numpy.array([-2.0, 0.0, 3.0]))
    Array([0. , 0.5, 1. ], dtype=float32)
    >>> verax.grad(verax.nn.sparse_plus)(0.0).item()
    0.5
    """
    x = add(beside_float("sparse_sigmoid", x), 1.0)
    return mul(arith.min(arith.max(x, 0.0), 2.0), 0.5)


@remembered
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """(x + √(x² + b)) / 2, a smooth relu without exponentials.

    Args:
        x: an array or scalar; integers become floats.
        b: how wide the bend at 0 is, not negative; it broadcasts with `x`. With the
            default, 4, the value at 0 is 1; with 0 the function is relu.

    Returns:
        The shape to which both broadcast and the dtype to which they promote; floats
        for integers.

    >>> import verax.numpy as vnp
    >>> from verax import nn
    >>> x = vnp.array([-1.5, 0.0, 1.5])
    >>> nn.squareplus(x), nn.squareplus(x, 0)
    (Array([0.5, 1. , 2. ], dtype=float32), Array([0. , 0. , 1.5], dtype=float32))
    """
    x, b = inexact_pair("squareplus", x, b)
    return mul(add(x, sqrt(add(square(x), b))), 0.5)


@remembered
def soft_sign(x: ArrayLike) -> Array:
    """x / (|x| + 1).

    Args:
        x: an array or scalar, real or complex; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers. NaN at infinities.

    >>> import verax.numpy as vnp
    >>> from verax import nn
    >>> nn.soft_sign(vnp.array([-3.0, 0.0, 1.0]))
    Array([-0.75,  0.  ,  0.5 ], dtype=float32)
    """
    x = inexact("soft_sign", x)
    return div(x, convert(add(arith.abs(x), 1.0), x.dtype, x.weak_type))


@remembered
def silu(x: ArrayLike) -> Array:
    """x sigmoid(x), also called swish; least near -1.28, where it is about -0.28.

    Args:
        x: an array or scalar, real or complex; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers.

    >>> import verax.numpy as vnp
    >>> from verax import nn
    >>> nn.silu(vnp.array([-20.0, -1.278, 0.0, 20.0])).round(2)
    Array([-0.  , -0.28,  0.  , 20.  ], dtype=float32)
    """
    x = inexact("silu", x)
    return mul(x, logistic(x))


swish = silu


@remembered
def mish(x: ArrayLike) -> Array:
    """x tanh(softplus(x)).

    Misra, "Mish: a self regularized non-monotonic activation function", 2019.

    Args:
        x: an array or scalar, real or complex; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers.

    >>> import verax.numpy as vnp
    >>> from verax import nn
    >>> nn.mish(vnp.array([-30.0, -1.0, 0.0, 30.0])).round(3)
    Array([-0.   , -0.303,  0.   , 30.   ], dtype=float32)
    """
    x = inexact("mish", x)
    return mul(x, trig.tanh(softplus(x)))


@remembered
def log_sigmoid(x: ArrayLike) -> Array:
    """log(sigmoid(x)), accurate for large |x|.

    Args:
        x: an array or scalar, real or complex; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers.

    >>> import verax.numpy as vnp
    >>> from verax import nn
    >>> vnp.log(nn.sigmoid(-1000.0)).item(), nn.log_sigmoid(-1000.0).item()
    (-inf, -1000.0)
    """
    return neg(softplus(neg(inexact("log_sigmoid", x))))


@remembered
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x where it is positive, and alpha (exp(x) - 1) elsewhere.

    Args:
        x: an array or scalar of real numbers; integers become floats.
        alpha: minus the limit at -∞; it broadcasts with `x`. By default 1.

    Returns:
        The shape to which both broadcast and the dtype to which they promote; floats
        for integers.

    >>> import verax.numpy as vnp
    >>> from verax import nn
    >>> nn.elu(vnp.array([-100.0, 0.0, 2.0]), 0.5)
    Array([-0.5,  0. ,  2. ], dtype=float32)
    """
    x, alpha = inexact_pair("elu", x, alpha)
    positive = gt(x, 0.0)
    return select(positive, x, mul(alpha, expm1(select(positive, 0.0, x))))


@remembered
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """max(x, 0) + alpha (exp(min(x, 0) / alpha) - 1).

    Unlike that of `elu`, its derivative is continuous at 0 for every alpha. Barron,
    "Continuously differentiable exponential linear units", 2017.

    Args:
        x: an array or scalar; integers become floats.
        alpha: minus the limit at -∞, and the scale of the exponential; it broadcasts
            with `x`. By default 1.

    Returns:
        The shape to which both broadcast and the dtype to which they promote; floats
        for integers.

    >>> import verax
    >>> verax.nn.celu(verax.numpy.array([-100.0, 0.0, 2.0]), 0.5)
    Array([-0.5,  0. ,  2. ], dtype=float32)
    >>> verax.grad(verax.nn.celu)(-1e-9, 0.5).item()
    1.0
    """
    x, alpha = inexact_pair("celu", x, alpha)
    curved = mul(alpha, expm1(div(arith.min(x, 0.0), alpha)))
    return add(arith.max(x, 0.0), curved)


@remembered
def selu(x: ArrayLike) -> Array:
    """`elu` with the scale and alpha of self-normalizing networks.

    Klambauer et al., "Self-normalizing neural networks", 2017.

    Args:
        x: an array or scalar of real numbers; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers.

    >>> import verax.numpy as vnp
    >>> from verax import nn
    >>> nn.selu(vnp.array([-100.0, 0.0, 1.0])).round(3)
    Array([-1.758,  0.   ,  1.051], dtype=float32)
    """
    return mul(elu(x, SELU_ALPHA), SELU_SCALE)


@remembered
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 0.01) -> Array:
    """x where it is not negative, and negative_slope x elsewhere.

    Args:
        x: an array or scalar of real numbers; booleans become integers.
        negative_slope: the slope below 0; it broadcasts with `x`. By default 0.01.

    Returns:
        The shape to which both broadcast, in the dtype to which they promote: integers
        become floats unless the slope is one too.

    >>> import verax.numpy as vnp
    >>> from verax import nn
    >>> x = vnp.array([-100, 0, 1])
    >>> nn.leaky_relu(x).tolist(), nn.leaky_relu(x, 2).tolist()
    ([-1.0, 0.0, 1.0], [-200, 0, 1])
    """
    x, slope = broadcast_together(
        "leaky_relu", promote_numeric("leaky_relu", x, negative_slope)
    )
    x = as_array("leaky_relu", x)
    return select(ge(x, number(x, 0)), x, mul(slope, x))


@remembered
def hard_tanh(x: ArrayLike) -> Array:
    """min(max(x, -1), 1); the derivative at -1 and at 1 is 1.

    Args:
        x: an array or scalar of real numbers; booleans become integers.

    Returns:
        The shape and dtype of `x`: integers stay integers.

    >>> import verax
    >>> verax.nn.hard_tanh(verax.numpy.array([-3.0, 0.5, 5.0]))
    Array([-1. ,  0.5,  1. ], dtype=float32)
    >>> verax.grad(verax.nn.hard_tanh)(1.0).item()
    1.0
    """
    x = numeric("hard_tanh", x)
    one = number(x, 1)
    below = x if is_unsigned(x.dtype) else select(lt(x, -one), -one, x)
    return select(gt(x, one), one, below)


@remembered
def hard_sigmoid(x: ArrayLike) -> Array:
    """relu6(x + 3) / 6.

    Args:
        x: an array or scalar of real numbers; integers become floats.

    Returns:
        The shape and dtype of `x`; a weak float for integers.

    >>> import verax.numpy as vnp
    >>> from verax import nn
    >>> nn.hard_sigmoid(vnp.array([-4.0, 0.0, 1.5, 4.0]))
    Array([0.  , 0.5 , 0.75, 1.  ], dtype=float32)
    """
    return div(clamp(0.0, add(beside_float("hard_sigmoid", x), 3.0), 6.0), 6.0)


@remembered
def hard_silu(x: ArrayLike) -> Array:
    """x hard_sigmoid(x), also called hard swish.

    Args:
        x: an array or scalar of real numbers; integers become floats.

    Returns:
        The shape and dtype of `x`; a weak float for integers.

    >>> import verax.numpy as vnp
    >>> from verax import nn
    >>> nn.hard_silu(vnp.array([-4.0, -1.5, 0.0, 4.0]))
    Array([-0.   , -0.375,  0.   ,  4.   ], dtype=float32)
    """
    x = beside_float("hard_silu", x)
    return mul(x, hard_sigmoid(x))


hard_swish = hard_silu


def tanh(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent.

    Args:
        x: an array or scalar, real or complex; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers.

    >>> import verax.numpy as vnp
    >>> from verax import nn
    >>> nn.tanh(vnp.array([-100, 0, 100]))
    Array([-1.,  0.,  1.], dtype=float32)
    """
    return trig.tanh(inexact("tanh", x))


@remembered
def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """x Φ(x), where Φ is the distribution function of the normal distribution.

    Hendrycks and Gimpel, "Gaussian Error Linear Units".

    Args:
        x: an array or scalar; integers become floats. Complex only where `approximate`
            is true.
        approximate: by default Φ(x) is taken as
            1/2 (1 + tanh(√(2/π) (x + 0.044715 x³))); with False it is exact.

    Returns:
        The shape and dtype of `x`; floats for integers. The dtype is not weak.

    >>> import verax.numpy as vnp
    >>> from verax import nn
    >>> x = vnp.array([-1.0, 0.0, 1.0])
    >>> nn.gelu(x).round(4), nn.gelu(x, approximate=False).round(4)
    (Array([-0.1588,  0.    ,  0.8412], dtype=float32),
     Array([-0.1587,  0.    ,  0.8413], dtype=float32))
    """
    x = inexact("gelu", x)
    x = convert(x, x.dtype)  # a number's gelu is no longer a weak one
    if not approximate:
        return mul(mul(x, 0.5), erfc(mul(x, -float(np.sqrt(0.5)))))
    inner = mul(add(x, mul(integer_pow(x, 3), 0.044715)), float(np.sqrt(2 / np.pi)))
    return mul(x, mul(add(trig.tanh(inner), 1.0), 0.5))


@remembered
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The first half of x along `axis` times the sigmoid of the second half.

    Args:
        x: an array, real or complex; integers become floats.
        axis: the dimension to halve, of even size; by default the last.

    Returns:
        The dtype of `x`, floats for integers, and its shape with half the size along
        `axis`.

    Raises:
        ValueError: there is no such dimension, or its size is odd.

    >>> import verax.numpy as vnp
    >>> from verax import nn
    >>> nn.glu(vnp.array([1.0, 2.0, 0.0, -1000.0]))
    Array([0.5, 0. ], dtype=float32)
    """
    x = inexact("glu", x)
    place = canonical_axis("glu", axis, x.ndim)
    size = x.shape[place]
    if size % 2:
        raise ValueError(
            f"glu needs an even size along axis {axis}, but {x.aval} has {size}"
        )
    first, second = split(x, (size // 2,) * 2, place)
    return mul(first, logistic(second))


@remembered
def log1mexp(x: ArrayLike) -> Array:
    """log(1 - exp(-x)) for x > 0, accurate for small and large x.

    Mächler, "Accurately computing log(1 - exp(-|a|))": expm1 up to log 2, then log1p.

    Args:
        x: an array or scalar of real numbers; integers become floats.

    Returns:
        The shape and dtype of `x`; floats for integers. -inf at 0, NaN below.

    >>> import verax.numpy as vnp
    >>> from verax import nn
    >>> x = vnp.array([1e-10, 1.0, 50.0])
    >>> vnp.log(1 - vnp.exp(-x)).round(3)
    Array([  -inf, -0.459,  0.   ], dtype=float32)
    >>> nn.log1mexp(x)
    Array([-2.3025850e+01, -4.58675...e-01, -1.92874...e-22], dtype=float32)
    """
    x = inexact("log1mexp", x)
    beyond = gt(x, math.log(2))
    near = log(neg(expm1(neg(x))))
    far = log1p(neg(exp(neg(select(beyond, x, 1.0)))))
    return select(beyond, far, near)
