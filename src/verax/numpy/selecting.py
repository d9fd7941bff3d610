"""Floor 6: values by the first condition that holds, and functions by pieces.

One idea: a chain of conditions is a chain of `where`, written from its end::

    select([x < 0, x < 1], [-x, x], default=1.0)
    piecewise(x, [x < 0, x >= 0], [lambda x: -x, 1.0])
"""

from collections.abc import Callable, Sequence
from typing import Any

from verax.api.vectorize import vmap
from verax.ir.dtypes import bool_
from verax.numpy.arguments import ArrayLike, as_array, promote
from verax.numpy.creation import asarray
from verax.numpy.searching import as_condition, choose
from verax.numpy.shapes import broadcast_to, ravel, reshape
from verax.ops.convert import convert
from verax.rules.array import Array


def select(
    condlist: Sequence[ArrayLike],
    choicelist: Sequence[ArrayLike],
    default: ArrayLike = 0,
) -> Array:
    """The elements of the choice whose condition is the first to hold, or `default`.

    Raises:
        ValueError: there are no conditions, or not as many choices.
    """
    if not condlist:
        raise ValueError("select: condlist has no conditions")
    if len(condlist) != len(choicelist):
        raise ValueError(
            f"select: {len(condlist)} conditions for {len(choicelist)} choices"
        )
    conditions = [as_condition("select", condition) for condition in condlist]
    *choices, found = promote("select", *choicelist, default)
    for condition, choice in zip(conditions[::-1], choices[::-1], strict=True):
        found = choose(condition, choice, found)
    return as_array("select", found)


def piecewise(
    x: ArrayLike,
    condlist: Any,
    funclist: Sequence[ArrayLike | Callable[..., Any]],
    *args: Any,
    **kw: Any,
) -> Array:
    """The function or constant of `funclist` for the last condition that holds.

    One entry more than there are conditions is for elements where none holds, which
    otherwise become 0. Functions see scalars and are vectorised; all are computed for
    every element. The result has the dtype of `x`.

    Raises:
        ValueError: there are neither as many functions as conditions nor one more.
    """
    array = as_array("piecewise", x)
    conditions = [asarray(condition, dtype=bool_) for condition in condlist]
    pieces = list(funclist)
    if len(pieces) not in (len(conditions), len(conditions) + 1):
        raise ValueError(
            f"piecewise: {len(pieces)} functions for {len(conditions)} conditions; "
            "give as many, or one more for where none holds"
        )
    rest = pieces.pop() if len(pieces) > len(conditions) else 0
    found = piece(rest, array, args, kw)
    for condition, function in zip(conditions, pieces, strict=True):
        found = choose(condition, piece(function, array, args, kw), found)
    return found


def piece(
    function: ArrayLike | Callable[..., Any],
    x: Array,
    args: tuple[Any, ...],
    kw: dict[str, Any],
) -> Array:
    """One function of all elements, or a constant, in the type of `x`."""
    if not callable(function):
        value = convert(as_array("piecewise", function), x.dtype)
        return broadcast_to(value, x.shape)
    inner: Callable[..., Any] = function

    def of_scalar(value: Array) -> Array:
        return as_array("piecewise", inner(value, *args, **kw))

    return convert(reshape(vmap(of_scalar)(ravel(x)), x.shape), x.dtype)
