"""Programs and their parts under the names of `jax.extend.core` (floor 6).

A transformation of your own reads jaxprs and calls them again::

    for eqn in jaxpr.eqns:
        inner = jaxprs_in_params(eqn.params)

>>> import verax
>>> closed = verax.make_jaxpr(verax.jit(lambda x: x + 1))(1.0)
>>> [str(sub.out_avals[0]) for sub in subjaxprs(closed.jaxpr)]
['~f32[]']
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from verax.core import jaxpr_as_fun
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import tangent_dtype as primal_dtype_to_tangent_dtype
from verax.ir.effects import Effect
from verax.ir.jaxpr import (
    UNKNOWN_SOURCE,
    Atom,
    ClosedJaxpr,
    Eqn as JaxprEqn,
    Jaxpr,
    Literal,
    Params,
    Primitive,
    Source,
    Var,
)
from verax.ir.reports import check
from verax.rules.rows.builder import Tracer
from verax.rules.rows.infer import inferred
from verax.rules.values.constants import aval_of
from verax.rules.values.state import STATE

__all__ = [
    "ClosedJaxpr",
    "Effect",
    "Jaxpr",
    "JaxprEqn",
    "JaxprTypeError",
    "Literal",
    "Primitive",
    "Var",
    "check_jaxpr",
    "concrete_or_error",
    "jaxpr_as_fun",
    "jaxprs_in_params",
    "mapped_aval",
    "new_jaxpr_eqn",
    "no_effects",
    "nonempty_axis_env_DO_NOT_USE",
    "primal_dtype_to_tangent_dtype",
    "subjaxprs",
    "unmapped_aval",
    "unsafe_am_i_under_a_jit_DO_NOT_USE",
    "unsafe_get_axis_names_DO_NOT_USE",
    "valid_jaxtype",
]

JaxprTypeError = check.IllTyped

no_effects: frozenset[Effect] = frozenset()


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Raise unless every equation has the types that its primitive says.

    Raises:
        TypeError, ValueError: one does not; the message names it.
    """
    check.check_jaxpr(jaxpr, inferred)


def new_jaxpr_eqn(
    invars: Sequence[Atom],
    outvars: Sequence[Var],
    primitive: Primitive,
    params: Params,
    effects: Iterable[Effect] = no_effects,
    source_info: Source | None = None,
) -> JaxprEqn:
    """An equation: `outvars = primitive[params] invars`.

    Args:
        params: the parameters, of the class that the primitive takes; their programs
            decide about the effects of the equation.
        effects: those that the equation must have.
        source_info: the line that it comes from.

    Raises:
        TypeError: `params` are of another class.
        ValueError: `params` do not cause one of the effects.

    >>> import verax
    >>> eqn = verax.make_jaxpr(verax.numpy.sin)(1.0).jaxpr.eqns[0]
    >>> new_jaxpr_eqn(eqn.invars, eqn.outvars, eqn.primitive, eqn.params) == eqn
    True
    """
    if not isinstance(params, primitive.params):
        raise TypeError(
            f"{primitive.name} takes {primitive.params.__name__}, not {params!r}"
        )
    source = UNKNOWN_SOURCE if source_info is None else source_info
    eqn = JaxprEqn(primitive, params, tuple(invars), tuple(outvars), source)
    absent = frozenset(effects) - eqn.effects
    if absent:
        raise ValueError(
            f"an equation of {primitive.name} has the effects {set(eqn.effects)}, "
            f"without {set(absent)}"
        )
    return eqn


def concrete_or_error(
    force: Callable[..., object] | None, val: object, context: str = ""
) -> object:
    """`force(val)`, or `val` if `force` is None, of what has a value.

    Args:
        context: what messages say the value is for.

    Raises:
        ConcretizationTypeError: `val` is a tracer without a value.

    >>> concrete_or_error(int, 3.0, "the number of steps")
    3
    """
    if isinstance(val, Tracer):
        val = val.concrete(context or "a value that is known while tracing")
    return val if force is None else force(val)


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


def valid_jaxtype(x: object) -> bool:
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
