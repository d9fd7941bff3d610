"""From the derivatives of a curve to those of a function along it.

The table of rules does the work; here terms are brought into the form of the arguments,
divided by factorials, and those of the result are put back::

    jet(f, (x,), [[dx, ddx]])       # propagate(TAYLOR, f, (x,), (dx,), (ddx / 2,))
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, final

import numpy as np

from verax import lax, numpy as vnp
from verax.api.trees.pytrees import tree_flatten, tree_map, tree_unflatten
from verax.experimental.jet.closed_forms import TAYLOR
from verax.extend import Propagation, propagate
from verax.ir.dtypes import is_inexact
from verax.rules.values.array import Array
from verax.rules.values.sizes import ShapeError
from verax.rules.values.typed import shown


@final
class ZeroSeries:
    """The type of `zero_series`."""

    __module__ = "verax.experimental.jet"

    def __repr__(self) -> str:
        return "zero_series"


@final
class ZeroTerm:
    """The type of `zero_term`."""

    __module__ = "verax.experimental.jet"

    def __repr__(self) -> str:
        return "zero_term"


zero_series: Final = ZeroSeries()
"""Stands for the terms of an argument that does not depend on the variable."""
zero_term: Final = ZeroTerm()
"""Stands for a term that is zero."""


def fact(n: Any) -> Array:
    """The factorial of a number, or of each element of an array.

    >>> fact(4)
    Array(24., dtype=float32, weak_type=True)
    """
    return lax.exp(lax.lgamma(n + 1.0))


def jet(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    series: Sequence[Any],
    factorial_scaled: bool = True,
    *,
    rules: Propagation = TAYLOR,
) -> tuple[Any, Any]:
    """The derivatives of a function along a curve, up to any order.

    The curve is x(t), and `series` has its derivatives at t = 0; those of fun(x(t))
    come back. Loops and branches are allowed, and so are derivatives, batches and
    compilation of the result.

    Args:
        fun: a function of arrays, or of trees of them.
        primals: the arguments of `fun`: the curve at t = 0.
        series: for each argument the derivatives of order 1, 2, ...: a sequence of
            values of its shape (numbers stand for arrays of them; arguments that are
            trees have trees as terms), of one length for all. `zero_term` stands for a
            term that is zero, and `zero_series` for all terms of an argument. An
            argument of integers or booleans is constant: its terms are not read.
        factorial_scaled: if False, terms are the coefficients of t, t^2, ..., that is
            the derivatives divided by the factorial of their order.
        rules: what primitives do to series; `rules | {my_p: rule}` adds to them, see
            `verax.extend.Propagation`. `DERIVED` has no closed forms.

    Returns:
        the result at t = 0, and the same tree in which a list of terms stands for each
        array.

    Raises:
        ValueError: arguments have different numbers of terms, or a term has another
            structure or shape than its argument.
        MissingRule: a primitive has no derivative.

    References: A. Griewank, A. Walther, Evaluating Derivatives, 2008, chapter 13; J.
    Bettencourt, M. Johnson, D. Duvenaud, Taylor-mode automatic differentiation for
    higher-order derivatives, 2019.

    >>> import verax.numpy as vnp
    >>> y, (first, second) = jet(vnp.exp, (0.0,), [[2.0, 0.0]])
    >>> float(y), float(first), float(second)
    (1.0, 2.0, 4.0)
    """
    primals, series = tuple(primals), tuple(series)
    order = order_of(primals, series)
    scales = [1.0] * order
    if factorial_scaled:
        scales = [float(factor) for factor in np.cumprod(np.arange(1.0, order + 1))]
    args = tree_map(as_real, primals)
    columns = [
        tuple(
            [coefficients(args, terms, i, k, scale) for i, terms in enumerate(series)]
        )
        for k, scale in enumerate(scales)
    ]
    value, *rest = propagate(rules, fun, args, *columns)
    return value, terms_of(value, rest, scales)


def order_of(primals: tuple[Any, ...], series: tuple[Any, ...]) -> int:
    """How many terms each argument has.

    Raises:
        ValueError: they differ, or there are not as many series as arguments.
    """
    if len(primals) != len(series):
        raise ValueError(
            f"jet takes a sequence of terms for each argument: {len(series)} are given "
            f"for {len(primals)} arguments"
        )
    lengths = [len(x) for x in series if not isinstance(x, ZeroSeries)]
    if len(set(lengths)) > 1:
        raise ValueError(
            "jet terms have inconsistent lengths for different arguments: "
            f"{', '.join(map(str, lengths))}"
        )
    return lengths[0] if lengths else 0


def as_real(x: Any) -> Any:
    """A Python integer is a number on a curve; arrays of integers are constant."""
    return float(x) if type(x) is int else x


def coefficients(
    args: tuple[Any, ...], terms: Any, place: int, k: int, scale: float
) -> Any:
    """Term k of an argument, of its shape and dtype and divided by `scale`.

    Raises:
        ValueError: it has another structure or shape.
    """
    leaves, tree = tree_flatten(args[place])
    term = zero_term if isinstance(terms, ZeroSeries) else terms[k]
    if isinstance(term, ZeroTerm):
        return tree_unflatten(tree, [None] * len(leaves))
    name = f"term {k} for argument {place}"
    try:
        given = tree.flatten_up_to(term)
    except ValueError as error:
        raise ValueError(
            f"{name} does not have the structure of the argument, {tree}: {error}"
        ) from error
    found: list[Array | None] = []
    for y, t in zip(leaves, given, strict=True):
        dtype, shape = vnp.result_type(y), vnp.shape(y)
        if not is_inexact(dtype) or isinstance(t, ZeroTerm):
            found.append(None)
            continue
        t = as_real(t)
        if not fits(vnp.shape(t), shape):
            raise ShapeError(
                f"{name} has the shape {vnp.shape(t)}, which does not fit the "
                f"argument, {shown(y)}"
            )
        same = vnp.result_type(t) == dtype
        full = vnp.broadcast_to(vnp.asarray(t, None if same else dtype), shape)
        found.append(full if scale == 1.0 else full / scale)
    return tree_unflatten(tree, found)


def fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether an array of `shape` broadcasts to the shape `wanted`."""
    pairs = zip(reversed(shape), reversed(wanted), strict=False)
    return len(shape) <= len(wanted) and all([n in (1, m) for n, m in pairs])


def terms_of(value: Any, rest: Sequence[Any], scales: Sequence[float]) -> Any:
    """The tree of a result, with a list of terms for each array."""
    leaves, tree = tree_flatten(value)
    rows = [tree.flatten_up_to(part) for part in rest]
    rows += [[None] * len(leaves)] * (len(scales) - len(rows))
    outs = [
        [scaled(y, row[i], scale) for row, scale in zip(rows, scales, strict=True)]
        for i, y in enumerate(leaves)
    ]
    return tree_unflatten(tree, outs)


def scaled(y: Any, term: Array | None, scale: float) -> Array:
    """A coefficient of a result times `scale`; what is not there is zero."""
    if term is not None:
        return term if scale == 1.0 else term * scale
    if is_inexact(vnp.result_type(y)):
        return vnp.zeros_like(y)
    return vnp.zeros(vnp.shape(y))
