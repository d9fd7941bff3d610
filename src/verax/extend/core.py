"""Programs and their parts under the names of `jax.extend.core` (floor 6).

A transformation of your own reads jaxprs and calls them again::

    for eqn in jaxpr.eqns:
        inner = jaxprs_in_params(eqn.params)

>>> import verax
>>> closed = verax.make_jaxpr(verax.jit(lambda x: x + 1))(1.0)
>>> [str(sub.out_avals[0]) for sub in subjaxprs(closed.jaxpr)]
['~f32[]']
"""

from collections.abc import Iterator
from typing import Any

from verax.core import jaxpr_as_fun
from verax.ir import check
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import tangent_dtype as primal_dtype_to_tangent_dtype
from verax.ir.effects import Effect
from verax.ir.jaxpr import (
    ClosedJaxpr,
    Eqn as JaxprEqn,
    Jaxpr,
    Literal,
    Params,
    Primitive,
    Var,
)
from verax.rules.rows.infer import inferred
from verax.rules.values.constants import aval_of
from verax.rules.values.state import STATE

__all__ = [
    "ClosedJaxpr",
    "Effect",
    "Jaxpr",
    "JaxprEqn",
    "Literal",
    "Primitive",
    "Var",
    "check_jaxpr",
    "jaxpr_as_fun",
    "jaxprs_in_params",
    "mapped_aval",
    "no_effects",
    "nonempty_axis_env_DO_NOT_USE",
    "primal_dtype_to_tangent_dtype",
    "subjaxprs",
    "unmapped_aval",
    "unsafe_am_i_under_a_jit_DO_NOT_USE",
    "unsafe_get_axis_names_DO_NOT_USE",
    "valid_jaxtype",
]

no_effects: frozenset[Effect] = frozenset()


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Raise unless every equation has the types that its primitive says.

    Raises:
        TypeError, ValueError: one does not; the message names it.
    """
    check.check_jaxpr(jaxpr, inferred)


def jaxprs_in_params(params: Params) -> tuple[Jaxpr, ...]:
    """The programs that the parameters of an equation hold."""
    return tuple(params.subjaxprs())


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The programs that the equations hold, not those inside them."""
    for eqn in jaxpr.eqns:
        yield from jaxprs_in_params(eqn.params)


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of one element of a batch along `axis`.

    Raises:
        ValueError: the dimension has another size.

    >>> import numpy as np
    >>> print(mapped_aval(3, 1, ShapedArray((2, 3), np.dtype(np.float32))))
    f32[2]
    """
    if axis is None:
        return aval
    if aval.shape[axis] != size:
        raise ValueError(f"dimension {axis} of {aval} does not have the size {size}")
    place = axis % aval.ndim
    return aval.with_shape((*aval.shape[:place], *aval.shape[place + 1 :]))


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of a batch of `size` elements along `axis`.

    >>> import numpy as np
    >>> print(unmapped_aval(3, 1, ShapedArray((2,), np.dtype(np.float32))))
    f32[2,3]
    """
    if axis is None:
        return aval
    place = axis % (aval.ndim + 1)
    return aval.with_shape((*aval.shape[:place], size, *aval.shape[place:]))


def valid_jaxtype(x: Any) -> bool:
    """Whether functions of verax take `x`: an array, tracer or scalar."""
    try:
        aval_of(x)
    except TypeError:
        return False
    return True


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:  # JAX's name
    """Whether operations are being recorded instead of computed."""
    return not STATE.interpreter.immediate


def unsafe_get_axis_names_DO_NOT_USE() -> list[str]:  # JAX's name
    """The named axes in scope."""
    return [name for name, _ in STATE.axes]


def nonempty_axis_env_DO_NOT_USE() -> bool:  # JAX's name
    """Whether there are named axes in scope."""
    return bool(STATE.axes)
