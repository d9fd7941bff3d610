"""Floor 6: the logistic function, its inverse, and its form over many classes.

One idea: each is written in a form whose value and gradient stay accurate towards the
ends of its domain::

    logit(p)                       # log p / (1 - p), whose derivative has no quotient
"""

from collections.abc import Sequence

from verax.api.custom.jvp import custom_jvp
from verax.backend.eager.composites import remembered
from verax.ir.dtypes import is_complex
from verax.nn import reductions
from verax.numpy.arguments.arguments import (
    ArrayLike,
    Axis,
)
from verax.ops.elementwise import exp_log
from verax.ops.elementwise.arith import div, mul, neg, sub
from verax.ops.elementwise.exp_log import log, log1p
from verax.rules.values.array import Array
from verax.scipy.special.arguments import inexact


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
    out: Array = inverse_of_logistic(*inexact("logit", x))
    return out


@custom_jvp
def inverse_of_logistic(p: Array) -> Array:
    """`logit`; of complex numbers a difference, since the quotient may turn."""
    if is_complex(p.dtype):
        return sub(log(p), log1p(neg(p)))
    return log(div(p, sub(1.0, p)))


@inverse_of_logistic.defjvp
def logit_tangent(
    primals: Sequence[Array], tangents: Sequence[Array]
) -> tuple[Array, Array]:
    """One over p (1 - p), infinite at both ends."""
    (p,) = primals
    return inverse_of_logistic(p), div(tangents[0], mul(p, sub(1.0, p)))
