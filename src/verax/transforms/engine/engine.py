"""Floor 3: the engine: all transformations under one rule table, and evaluation.

One idea: rules of higher-order primitives recurse through the engine they are given,
so a table chosen at the top holds in every nested jaxpr, and rewrites of nested jaxprs
are memoised because jaxprs hash by structure::

    engine = StandardEngine(RuleTable(), core)
    engine.jvp(jaxpr, (True, False))
"""

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import numpy as np
from attrs import evolve, frozen

from verax.ir.avals import AbstractRef, ShapedArray
from verax.ir.dtypes import stored_dtype
from verax.ir.jaxpr import Eqn, Jaxpr, Literal
from verax.ir.records import ReprMixin
from verax.ir.walk import interpret
from verax.ops.core import CORE
from verax.rules.programs.derived import standard
from verax.rules.rows.infer import Mask
from verax.rules.rows.row import (
    Axis,
    BatchAxis,
    CoreOps,
    Engine,
    NDArray,
    RuleTable,
    missing,
)
from verax.rules.values.array import Array
from verax.rules.values.memo import memo, pure, recall
from verax.rules.values.state import Context, current_context
from verax.transforms.engine.derivatives import jvp, linearize, transpose
from verax.transforms.engine.partial_eval import dce, split
from verax.transforms.engine.vmap import batch

# -----------------------------------------------------------------------------
# The reference interpreter, equation by equation in NumPy.
#
# A program means what its rows' `evaluate` columns compute, in order; every
# other way of running it is held to this one::
#
#     (y,) = evaluate(engine, jaxpr, (np.float32(0.5),))


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


REWRITES = 1 << 12


@frozen(eq=False, repr=False)
class StandardEngine(ReprMixin):
    """The transformations of this floor under the table `rules`."""

    __module__ = "verax.transforms"

    transient: ClassVar[bool] = False

    rules: RuleTable
    core: CoreOps
    axis: BatchAxis | None = None

    def evaluate(self, jaxpr: Jaxpr, args: Sequence[NDArray]) -> list[NDArray]:
        return evaluate(self, jaxpr, args)

    def jvp(self, jaxpr: Jaxpr, nonzero: Mask) -> tuple[Jaxpr, Mask]:
        return recall(nested_jvp, jaxpr, current_context(), self, jaxpr, nonzero)

    def linearize(self, jaxpr: Jaxpr, nonzero: Mask) -> tuple[Jaxpr, Jaxpr, Mask]:
        return linearize(self, jaxpr, nonzero)

    def transpose(
        self, jaxpr: Jaxpr, linear: Mask, nonzero: Mask
    ) -> tuple[Jaxpr, Mask]:
        return recall(
            nested_transpose, jaxpr, current_context(), self, jaxpr, linear, nonzero
        )

    def batch(
        self, jaxpr: Jaxpr, size: int, axes: tuple[Axis, ...]
    ) -> tuple[Jaxpr, tuple[Axis, ...]]:
        return recall(nested_batch, jaxpr, current_context(), self, jaxpr, size, axes)

    def split(self, jaxpr: Jaxpr, unknown: Mask) -> tuple[Jaxpr, Jaxpr, Mask]:
        return recall(nested_split, jaxpr, current_context(), self, jaxpr, unknown)

    def dce(self, jaxpr: Jaxpr, used: Mask) -> tuple[Jaxpr, Mask]:
        return recall(nested_dce, jaxpr, current_context(), self, jaxpr, used)


@memo(REWRITES)
def nested_jvp(
    context: Context, engine: StandardEngine, jaxpr: Jaxpr, nonzero: Mask
) -> tuple[Jaxpr, Mask]:
    """`jvp`, remembered for programs inside of programs; so are those that follow."""
    return jvp(engine, jaxpr, nonzero)


@memo(REWRITES)
def nested_transpose(
    context: Context, engine: StandardEngine, jaxpr: Jaxpr, linear: Mask, nonzero: Mask
) -> tuple[Jaxpr, Mask]:
    return transpose(engine, jaxpr, linear, nonzero)


@memo(REWRITES)
def nested_batch(
    context: Context,
    engine: StandardEngine,
    jaxpr: Jaxpr,
    size: int,
    axes: tuple[Axis, ...],
) -> tuple[Jaxpr, tuple[Axis, ...]]:
    return batch(engine, jaxpr, size, axes)


@memo(REWRITES)
def nested_split(
    context: Context, engine: StandardEngine, jaxpr: Jaxpr, unknown: Mask
) -> tuple[Jaxpr, Jaxpr, Mask]:
    return split(engine, jaxpr, unknown)


@memo(REWRITES)
def nested_dce(
    context: Context, engine: StandardEngine, jaxpr: Jaxpr, used: Mask
) -> tuple[Jaxpr, Mask]:
    return dce(engine, jaxpr, used)


@pure(REWRITES)
def over_axis(engine: StandardEngine, axis: BatchAxis) -> StandardEngine:
    """The engine while the dimension that is added is `axis`; one for each axis."""
    return evolve(engine, axis=axis)


# -----------------------------------------------------------------------------
# The engine of the standard table, which every entry point shares.
#
# Rewrites are memoised for each engine, so there is one for the library's own
# rows, and a research table makes another::
#
#     STANDARD.jvp(jaxpr, (True,))
#     StandardEngine(standard | my_rows, CORE)


STANDARD = StandardEngine(standard, CORE)
"""The transformations under the table of the library."""
