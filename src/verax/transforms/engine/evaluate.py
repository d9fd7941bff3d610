"""Floor 3: the reference interpreter, equation by equation in NumPy.

One idea: a program means what its rows' `evaluate` columns compute, in order; every
other way of running it is held to this one::

    (y,) = evaluate(engine, jaxpr, (np.float32(0.5),))
"""

from collections.abc import Mapping, Sequence

import numpy as np

from verax.ir.avals import AbstractRef, ShapedArray
from verax.ir.dtypes import stored_dtype
from verax.ir.jaxpr import Eqn, Jaxpr, Literal, Var
from verax.rules.rows.row import Engine, NDArray, missing
from verax.rules.values.array import Array

type Env = Sequence[NDArray] | Mapping[int, NDArray]
"""Values by the number of their variable."""


def evaluate(engine: Engine, jaxpr: Jaxpr, args: Sequence[NDArray]) -> list[NDArray]:
    """The outputs of `jaxpr` on NumPy arrays of its input types.

    Contract: the result has the types `jaxpr.out_avals`; arguments are not changed.

    Raises:
        TypeError: the number of arguments or one of their types is wrong.
        MissingRule: a primitive has no evaluate rule.
    """
    check_arguments(jaxpr, args)
    env = list(args)
    for eqn in jaxpr.eqns:
        env += evaluate_eqn(engine, eqn, env)
    return [read(a, env) for a in jaxpr.outvars]


def evaluate_eqn(engine: Engine, eqn: Eqn, env: Env) -> list[NDArray]:
    """The results of one equation, in the dtypes that its variables promise.

    Floating-point errors are ignored; what the user's functions do is up to them.
    """
    row = engine.rules[eqn.primitive]
    if row.evaluate is None:
        raise missing(
            row, "evaluate", f"give its row evaluate=...; met at {eqn.source}"
        )
    operands = [read(a, env) for a in eqn.invars]
    if row.hosted or next(eqn.params.subjaxprs(), None) is not None:
        outs = row.evaluate(engine, eqn.params, operands)
    else:
        with np.errstate(all="ignore"):
            outs = row.evaluate(engine, eqn.params, operands)
    return [as_typed(out, var.aval) for out, var in zip(outs, eqn.outvars, strict=True)]


def read(atom: Var | Literal, env: Env) -> NDArray:
    return env[atom.index] if type(atom) is Var else literal_value(atom)


def literal_value(literal: Var | Literal) -> NDArray:
    """The NumPy value of a literal in the dtype of its type."""
    assert isinstance(literal, Literal)
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
