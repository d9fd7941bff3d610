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
from verax.ir.dtypes import (
    bool_,
    is_integer,
)
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

    Args:
        a: an array or scalar of integers.
        choices: a sequence of arrays and scalars, or an array whose first dimension
            counts them.
        out: only None, since arrays are immutable.
        mode: what an index out of bounds does: "raise" makes it an error, "wrap" counts
            on around, and "clip" takes the first or the last choice.

    Returns:
        The elements, in the common dtype of the choices, and of the shape to which they
        and `a` broadcast.

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
    array = take_along_axis(pile, broadcast_to(inside, (1, *full)), 0)[0]
    return with_weak_type(array, False)


def select(
    condlist: Sequence[ArrayLike],
    choicelist: Sequence[ArrayLike],
    default: ArrayLike = 0,
) -> Array:
    """The elements of the choice whose condition is the first to hold, or `default`.

    Args:
        condlist: a sequence of conditions, arrays that are true where they are not
            zero.
        choicelist: a sequence of arrays or scalars, one for each condition.
        default: an array or scalar for where no condition holds.

    Returns:
        The elements, in the common dtype of the choices and the default, and of the
        shape to which all broadcast.

    Raises:
        ValueError: there are no conditions, or another number of choices, or shapes do
            not broadcast.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([-4, 1, 2, 9])
    >>> vnp.select([x < 0, x < 2], [-x, 10 * x], default=100).tolist()
    [4, 10, 100, 100]
    """
    if not condlist:
        raise ValueError("select: condlist must not be empty")
    if len(condlist) != len(choicelist):
        raise ValueError(
            "select: condlist and choicelist must have the same length, not "
            f"{len(condlist)} and {len(choicelist)}"
        )
    conditions = [as_condition("select", condition) for condition in condlist]
    *choices, array = promote("select", *choicelist, default)
    for condition, choice in zip(conditions[::-1], choices[::-1], strict=True):
        array = mixed(condition, choice, array)
    return as_array("select", array)


def piecewise(
    x: ArrayLike,
    condlist: Array | np.ndarray | Sequence[ArrayLike],
    funclist: Sequence[ArrayLike | Callable[..., object]],
    *args: object,
    **kw: object,
) -> Array:
    """The function or constant of `funclist` for the last condition that holds.

    Functions see scalars and are vectorised; all are computed for every element.

    Args:
        x: an array or scalar.
        condlist: a sequence of conditions that broadcast with `x`, or an array whose
            first dimension counts them.
        funclist: a function or constant for each condition, and maybe one more for
            where none holds, which otherwise gives 0.
        *args: what each function takes after the element.
        **kw: what each function takes by keyword.

    Returns:
        The values, converted to the dtype of `x`, so that for integers fractions are
        cut off; of the shape to which `x` and the conditions broadcast.

    Raises:
        ValueError: the number of functions is neither that of conditions nor one more.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([-2.0, 0.5, 3.0])
    >>> vnp.piecewise(x, [x < 0, x > 1], [lambda v: -v, 1.0, lambda v: v * v])
    Array([2.  , 0.25, 1.  ], dtype=float32)
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
    out = piece(rest, array, args, kw)
    for condition, function in zip(conditions, pieces, strict=True):
        out = mixed(condition, piece(function, array, args, kw), out)
    return out


def piece(
    function: ArrayLike | Callable[..., object],
    x: Array,
    args: tuple[object, ...],
    kw: dict[str, object],
) -> Array:
    """One function of all elements, or a constant, in the type of `x`."""
    if not callable(function):
        value = convert(as_array("piecewise", function), x.dtype)
        return broadcast_to(value, x.shape)
    inner: Callable[..., Any] = function

    def of_scalar(value: Array) -> Array:
        return as_array("piecewise", inner(value, *args, **kw))

    return convert(reshape(vmap(of_scalar)(ravel(x)), x.shape), x.dtype)
