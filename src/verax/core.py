"""Floor 6: programs and tracers, under the names of `jax.core` and `jax.extend.core`.

One idea: a jaxpr can be called again, with its constants and arguments, on values and
under a trace::

    closed = verax.make_jaxpr(f)(x)
    eval_jaxpr(closed.jaxpr, closed.consts, x)
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from verax.api.inspect.make_jaxpr import (
    ensure_compile_time_eval as ensure_compile_time_eval,
)
from verax.api.tracing.apply import apply, bound
from verax.ir.avals import ShapedArray as ShapedArray, larger_size, smaller_size
from verax.ir.jaxpr import (
    ClosedJaxpr as ClosedJaxpr,
    Jaxpr as Jaxpr,
    Literal as Literal,
    Var as Var,
)
from verax.rules.rows.builder import Tracer as Tracer
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.sizes import as_size
from verax.rules.values.state import STATE, interpreting

__all__ = [
    "AbstractValue",
    "ClosedJaxpr",
    "Jaxpr",
    "Literal",
    "ShapedArray",
    "Tracer",
    "Var",
    "ensure_compile_time_eval",
    "eval_context",
    "eval_jaxpr",
    "jaxpr_as_fun",
    "max_dim",
    "min_dim",
]

AbstractValue = ShapedArray
"""The class of all types: there are only those of arrays."""


def eval_context() -> AbstractContextManager[None]:
    """A block outside of all traces: operations on values are computed.

    An operation on a tracer is an error there; in `ensure_compile_time_eval` it belongs
    to the trace around.

    >>> import verax
    >>> with eval_context():
    ...     print(verax.numpy.sin(0.0))
    0.0
    """
    return interpreting(STATE.eager)


def max_dim(d1: int, d2: int) -> int:
    """The larger of two sizes of dimensions, whichever that is if they are symbolic.

    >>> max_dim(2, 3)
    3
    """
    return larger_size(as_size(d1), as_size(d2))


def min_dim(d1: int, d2: int) -> int:
    """The smaller of two sizes of dimensions, whichever that is if they are symbolic.

    >>> min_dim(2, 3)
    2
    """
    return smaller_size(as_size(d1), as_size(d2))


def eval_jaxpr(
    jaxpr: Jaxpr | ClosedJaxpr,
    consts: Sequence[object],
    *args: object,
    propagate_source_info: bool = True,
) -> list[Array]:
    """The outputs of `jaxpr`, whose constvars stand for `consts`.

    Those of a `ClosedJaxpr` are its own, unless `consts` has some.

    Under a trace the equations are written into it; otherwise they are computed one by
    one. Arguments of other types than the inputs have are passed to the equations,
    whose parameters stay as they are. Equations always know the lines of the program
    that they are from, whatever `propagate_source_info` says.

    Raises:
        TypeError: there are too few or too many operands, or an equation does not take
            what it gets.

    >>> import verax, verax.numpy as vnp
    >>> closed = verax.make_jaxpr(lambda x: vnp.sin(x) * 2)(1.0)
    >>> eval_jaxpr(closed.jaxpr, closed.consts, 0.0)
    [Array(0., dtype=float32, weak_type=True)]
    """
    if isinstance(jaxpr, ClosedJaxpr):
        return eval_jaxpr(jaxpr.jaxpr, consts or jaxpr.consts, *args)
    given = (*consts, *args)
    due = (*jaxpr.constvars, *jaxpr.invars)
    if len(given) != len(due):
        raise TypeError(
            f"eval_jaxpr: the program has {len(jaxpr.constvars)} constvars and "
            f"{len(jaxpr.invars)} inputs, but got {len(consts)} constants and "
            f"{len(args)} arguments"
        )
    for x, var in zip(given, due, strict=True):
        aval = aval_of(x)
        if (aval.shape, aval.dtype) != (var.aval.shape, var.aval.dtype):
            return list(bound(jaxpr, given))
    return list(apply(jaxpr, given))


def jaxpr_as_fun(closed: ClosedJaxpr) -> Callable[..., list[Array]]:
    """A program as a function of its arguments, which returns a list of its outputs.

    >>> import verax
    >>> double = jaxpr_as_fun(verax.make_jaxpr(lambda x: x * 2)(1.0))
    >>> verax.grad(lambda x: double(x)[0])(3.0)
    Array(2., dtype=float32, weak_type=True)
    """
    return lambda *args: eval_jaxpr(closed.jaxpr, closed.consts, *args)
