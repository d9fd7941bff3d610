"""Floor 6: values by index, by the first condition that holds, functions by pieces.

One idea: a chain of conditions is a chain of `where`, written from its end, and an
index takes from the stack of the choices::

    choose(i, [a, b, c], mode="clip")
    select([x < 0, x < 1], [-x, x], default=1.0)
    piecewise(x, [x < 0, x >= 0], [lambda x: -x, 1.0])
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from verax.api.vmap import vmap
from verax.ir.dtypes import bool_, is_integer
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    broadcast_shapes_of,
    no_out,
    promote,
    with_weak_type,
)
from verax.numpy.creation.creation import asarray
from verax.numpy.indexing.take import take_along_axis
from verax.numpy.searching.where_nonzero import as_condition, mixed, within
from verax.numpy.shaping.joining import stack
from verax.numpy.shaping.shapes import broadcast_to, ravel, reshape
from verax.ops.elementwise.convert import convert
from verax.rules.values.array import Array


def choose(
    a: ArrayLike,
    choices: Array | np.ndarray | Sequence[ArrayLike],
    out: None = None,
    mode: str = "raise",
) -> Array:
    """At each place the element of `choices[a]`; `a` and the choices broadcast.

    Indices out of bounds are an error with the mode "raise", count on around with
    "wrap", and mean the first or the last choice with "clip".

    Raises:
        ValueError: `a` holds no integers, there is no choice or no such mode, or an
            index is out of bounds.
        AbstractValueError: `a` is traced and the mode is "raise".

    >>> import verax.numpy as jnp
    >>> jnp.choose(jnp.array([1, 0]), [jnp.array([1, 2]), 10]).tolist()
    [10, 2]
    """
    no_out("choose", out)
    places = as_array("choose", a)
    if not is_integer(places.dtype):
        raise ValueError(f"choose: the indices a must be integers, not {places.aval}")
    rows = list(choices)
    if not rows:
        raise ValueError("choose: choices must not be empty")
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(
            f"choose: mode must be 'raise', 'wrap' or 'clip', not {mode!r}"
        )
    inside = within("choose", places, len(rows), mode)
    full = broadcast_shapes_of("choose", [inside.shape, *map(np.shape, rows)])
    pile = stack([broadcast_to(row, full) for row in promote("choose", *rows)])
    found = take_along_axis(pile, broadcast_to(inside, (1, *full)), 0)[0]
    return with_weak_type(found, False)


def select(
    condlist: Sequence[ArrayLike],
    choicelist: Sequence[ArrayLike],
    default: ArrayLike = 0,
) -> Array:
    """The elements of the choice whose condition is the first to hold, or `default`.

    Raises:
        ValueError: there are no conditions, or another number of choices.
    """
    if not condlist:
        raise ValueError("select: condlist must not be empty")
    if len(condlist) != len(choicelist):
        raise ValueError(
            "select: condlist and choicelist must have the same length, not "
            f"{len(condlist)} and {len(choicelist)}"
        )
    conditions = [as_condition("select", condition) for condition in condlist]
    *choices, found = promote("select", *choicelist, default)
    for condition, choice in zip(conditions[::-1], choices[::-1], strict=True):
        found = mixed(condition, choice, found)
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
        ValueError: the number of functions is neither that of conditions nor one more.
    """
    array = as_array("piecewise", x)
    conditions = [asarray(condition, dtype=bool_) for condition in condlist]
    pieces = list(funclist)
    if len(pieces) not in (len(conditions), len(conditions) + 1):
        raise ValueError(
            f"piecewise: got {len(pieces)} functions for {len(conditions)} "
            "conditions; pass as many, or one more for where no condition holds"
        )
    rest = pieces.pop() if len(pieces) > len(conditions) else 0
    found = piece(rest, array, args, kw)
    for condition, function in zip(conditions, pieces, strict=True):
        found = mixed(condition, piece(function, array, args, kw), found)
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
