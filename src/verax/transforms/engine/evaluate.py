"""Floor 3: the reference interpreter, equation by equation in NumPy.

One idea: a program means what its rows' `evaluate` columns compute, in order; every
other way of running it is held to this one::

    (y,) = evaluate(engine, jaxpr, (np.float32(0.5),))
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from verax.ir.avals import AbstractRef, ShapedArray
from verax.ir.dtypes import stored_dtype
from verax.ir.jaxpr import Eqn, Jaxpr, Literal
from verax.ir.walk import interpret
from verax.rules.rows.row import Engine, NDArray, missing
from verax.rules.values.array import Array


def evaluate(engine: Engine, jaxpr: Jaxpr, args: Sequence[NDArray]) -> list[NDArray]:
    """The outputs of `jaxpr` on NumPy arrays of its input types.

    Contract: the result has the types `jaxpr.out_avals`; arguments are not changed.

    Raises:
        TypeError: the number of arguments or one of their types is wrong.
        MissingRule: a primitive has no evaluate rule.
    """
    check_arguments(jaxpr, args)
    return interpret(jaxpr, args, partial(evaluate_eqn, engine), literal_value)


def evaluate_eqn(engine: Engine, eqn: Eqn, operands: list[NDArray]) -> list[NDArray]:
    """The results of one equation, in the dtypes that its variables promise.

    Floating-point errors are ignored; what the user's functions do is up to them.
    """
    row = engine.rules[eqn.primitive]
    if row.evaluate is None:
        raise missing(
            row, "evaluate", f"give its row evaluate=...; met at {eqn.source}"
        )
    if row.hosted or next(eqn.params.subjaxprs(), None) is not None:
        outs = row.evaluate(engine, eqn.params, operands)
    else:
        with np.errstate(all="ignore"):
            outs = row.evaluate(engine, eqn.params, operands)
    return [as_typed(out, var.aval) for out, var in zip(outs, eqn.outvars, strict=True)]


def literal_value(literal: Literal) -> NDArray:
    """The NumPy value of a literal in the dtype of its type."""
    return as_typed(literal.value, literal.aval)


def as_typed(value: object, aval: ShapedArray) -> NDArray:
    """`value` as a NumPy array of `aval`'s dtype."""
    dtype = stored_dtype(aval.dtype)
    array = value.stored() if isinstance(value, Array) else np.asarray(value)
    if array.dtype == dtype:
        return array
    if type(aval) is AbstractRef:
        return value  # type: ignore[return-value]  # what stands for a reference
    with np.errstate(all="ignore"):  # what is too large is infinite
        return array.astype(dtype)


def check_arguments(jaxpr: Jaxpr, args: Sequence[NDArray]) -> None:
    """Raise TypeError unless `args` have the number and the types of the inputs."""
    if len(args) != len(jaxpr.invars):
        raise TypeError(
            f"the program takes {len(jaxpr.invars)} arguments, but got {len(args)}"
        )
    for i, (var, x) in enumerate(zip(jaxpr.invars, args, strict=True)):
        if x.shape != var.aval.shape or x.dtype != stored_dtype(var.aval.dtype):
            raise TypeError(f"argument {i} is {x.dtype}{list(x.shape)}, not {var.aval}")
