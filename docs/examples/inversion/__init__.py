"""Inverses of programs, with the logarithms of their determinants.

One idea: to invert a program is to solve its equations for the inputs, one at a time:
an equation whose operands are known gives its result, and one whose result is known
gives the operand that is missing. That is elimination, so the determinant of the whole
is the product of the pivots, the derivatives of results by the operands solved for::

    x, log_det = inverse(flow, like=y)(y)       # log |det dx/dy|
    y, log_det = with_log_det(flow)(x)          # log |det dy/dx|

So a flow is written once, forwards, with coupling layers and loops over layers. Pivots
of elementwise rows come from their jvp, so such a rule is one line. References: Dinh,
Sohl-Dickstein, Bengio, Density estimation using Real NVP (2017); Lao et al., Oryx.
"""

from collections.abc import Callable
from typing import Any

import verax
import verax.numpy as vnp
from docs.examples.inversion.elimination import Inverses, NotInvertible, inverted
from docs.examples.inversion.table import INVERSES, elementwise
from verax import Array
from verax.extend import Opened, opened, run

__all__ = ["INVERSES", "NotInvertible", "elementwise", "inverse", "with_log_det"]


def inverse(
    fun: Callable[[Any], Any], like: Any, table: Inverses = INVERSES
) -> Callable[[Any], tuple[Any, Array]]:
    """The inverse of a bijection, which gives x and log |det dx/dy| as well.

    Args:
        fun: of one pytree of arrays; what it closes over is taken as known.
        like: arrays (or a tree of them) of the types of its argument.

    Raises:
        NotInvertible: when called, if the equations cannot be solved one by one.

    >>> x, log_det = inverse(lambda x: 2 * vnp.exp(x) + 1, like=0.0)(3.0)
    >>> float(x), round(float(log_det), 4)
    (0.0, -0.6931)
    """

    def inverted_fun(y: Any) -> tuple[Any, Array]:
        opening = opened(fun, (like,), purpose="inverse")
        leaves, tree = verax.tree.flatten(like)
        known = opening.operands[: opening.captured]
        unknown = (False,) * len(known) + (True,) * len(leaves)
        jaxpr = inverted(opening.jaxpr, unknown, table)
        typed = checked(y, opening)
        *actual, log_det = run(jaxpr, [*known, *typed])
        return verax.tree.unflatten(tree, actual), -log_det

    return inverted_fun


def checked(y: Any, opening: Opened) -> list[Array]:
    """The leaves of a result, in the types that the function gives.

    Raises:
        TypeError: it has another structure or shape.
    """
    leaves, tree = verax.tree.flatten(y)
    avals = opening.jaxpr.out_avals
    shapes, due = list(map(vnp.shape, leaves)), [aval.shape for aval in avals]
    if tree != opening.out_tree or shapes != due:
        raise TypeError(
            f"the inverse takes what the function gives, {opening.out_tree} with "
            f"shapes {due}, not {tree} with shapes {shapes}"
        )
    ends = zip(leaves, avals, strict=True)
    return [vnp.asarray(leaf, aval.dtype) for leaf, aval in ends]


def with_log_det(
    fun: Callable[[Any], Any], table: Inverses = INVERSES
) -> Callable[[Any], tuple[Any, Array]]:
    """A bijection that gives log |det dy/dx| beside its result.

    >>> y, log_det = with_log_det(lambda x: 2 * x)(vnp.ones(3))
    >>> round(float(log_det), 4)
    2.0794
    """

    def paired(x: Any) -> tuple[Any, Array]:
        y = fun(x)
        return y, -inverse(fun, x, table)(y)[1]

    return paired
