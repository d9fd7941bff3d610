"""Floor 5: the standard engine, and running a jaxpr under whatever is current.

One idea: after the rewriting there is one way on, `apply`: under a trace the equations
are written into it, else they are computed::

    outs = apply(jaxpr, args)
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

import numpy as np
from attrs import frozen

from verax.backend.arrays.concrete import ConcreteArray, fresh
from verax.backend.eager.interpreter import eager_interpreter
from verax.ir.avals import ShapedArray, is_reference
from verax.ir.dtypes import stored_dtype
from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Literal, Params, Primitive, Source
from verax.ir.records import ReprMixin
from verax.ir.walk import interpret
from verax.rules.rows.builder import Builder, Scope, Staged
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.conversions import ConcretizationTypeError
from verax.rules.values.state import (
    STATE,
    ElementError,
    Interpreter,
    current_context,
    interpreting,
)
from verax.transforms.engine.engine import STANDARD
from verax.transforms.engine.templates import Writer

type Value = Array | Literal


ENGINE = STANDARD


EAGER = eager_interpreter(ENGINE, None)


def current_builder() -> Builder | None:
    """The builder of the innermost trace of this thread, if there is one."""
    interpreter = STATE.interpreter
    return interpreter if isinstance(interpreter, Builder) else None


def is_tracing() -> bool:
    """Whether operations belong to a trace, which may be one of a program's own."""
    return isinstance(STATE.interpreter, Scope)


def check_has_values(name: str, function: str, outside: str) -> None:
    """Raise ConcretizationTypeError inside a trace.

    `outside` says how transformations go around what needs values.
    """
    if current_builder() is not None:
        raise ConcretizationTypeError(
            f"{name} of {function} was called in a function that is being traced, "
            f"where there are no values yet; put it outside: {outside}"
        )


def apply(jaxpr: Jaxpr, args: Sequence[object]) -> Sequence[Array]:
    """The outputs of `jaxpr` on arguments of its input types."""
    builder = current_builder()
    if builder is not None:
        return builder.call(jaxpr, args)
    return bound(jaxpr, args)


def bound(jaxpr: Jaxpr, args: Sequence[object]) -> Sequence[Array]:
    """The outputs of `jaxpr`, whose equations are bound one by one on what there is.

    So the arguments may be of other types than the inputs, if the equations take them.
    """
    outs = interpret(jaxpr, args, bound_eqn, literal_array)
    return [as_array(x) for x in outs]


def bound_eqn(eqn: Eqn, operands: Sequence[object]) -> Sequence[Array]:
    """The results of `eqn`, bound on these operands."""
    try:
        return STATE.interpreter.bind(eqn.primitive, eqn.params, operands)
    except ElementError as error:
        raise error.at(eqn) from None


class Computing:
    """A writer that computes: what templates write, on values, under what is current.

    A transformation of concrete values runs as it goes, without a program. Literals
    stand for themselves until an operation, or `as_arrays`, makes arrays of them.
    """

    def copy(self, eqn: Eqn, values: Sequence[Value], /) -> Sequence[Array]:
        """The results of `eqn` on these operands."""
        return bound_eqn(eqn, as_arrays(values))

    def inline(
        self, jaxpr: Jaxpr, values: Sequence[Value], source: Source | None = None, /
    ) -> Sequence[Array]:
        """The outputs of `jaxpr`; errors say `source` instead of its own lines."""
        script = jaxpr.script
        env = [*as_arrays(script.literals), *as_arrays(values)]
        bind = STATE.interpreter.bind
        for primitive, params, one, pick, _, own in script.steps:
            ins = pick(env) if one is None else (env[one],)
            try:
                env += bind(primitive, params, ins)
            except ElementError as error:
                raise error.at(Eqn(primitive, params, (), (), source or own)) from None
        return [env[i] for i in script.outs]


COMPUTING = Computing()


def as_arrays(values: Sequence[Value]) -> list[Array]:
    """Values as arrays: literals become such, on the device where they are."""
    return [literal_array(x) if isinstance(x, Literal) else x for x in values]


def typed_atoms(
    args: Sequence[object], avals: Sequence[ShapedArray]
) -> list[Atom] | None:
    """The atoms of arguments in the current trace, if their types are exactly these.

    A transformation then writes there at once what it makes of a program; otherwise it
    makes a program of these types, for `apply`.
    """
    builder = current_builder()
    if builder is None:
        return None
    atoms = [builder.atom(x) for x in args]
    same = [atom.aval is aval for atom, aval in zip(atoms, avals, strict=True)]
    return atoms if all(same) else None


def is_observed() -> bool:
    """Whether somebody sees what transformations make: then they make programs."""
    return current_context().observer is not None


def observed[E](
    name: str, jaxpr: Jaxpr, make: Callable[[Jaxpr], tuple[Jaxpr, E]]
) -> tuple[Jaxpr, E]:
    """The program that `make` makes of `jaxpr`, seen by whoever observes the trace."""
    observer = current_context().observer
    return make(jaxpr) if observer is None else observer.rewrite(name, jaxpr, make)


def rewritten[E](
    name: str,
    jaxpr: Jaxpr,
    args: Sequence[object],
    avals: Callable[[], Sequence[ShapedArray]],
    into: Callable[[Writer[Any], Sequence[Any]], tuple[Sequence[Any], E]],
    program: Callable[[Jaxpr], tuple[Jaxpr, E]],
) -> tuple[Sequence[Array], E]:
    """Applies the rewrite `name` of `jaxpr` to `args`; returns its remarks, too.

    Values are computed as the rewrite goes, by `into`. Under a trace it writes there,
    if the arguments have just its input types `avals`; else `program` is applied, as
    where it is observed.
    """
    builder = current_builder()
    if builder is not None and is_observed():
        made, notes = observed(name, jaxpr, program)
        return apply(made, args), notes
    if builder is None:
        outs, notes = into(COMPUTING, [as_array(x) for x in args])
        return as_arrays(outs), notes
    atoms = typed_atoms(args, avals())
    if atoms is None:
        made, notes = program(jaxpr)
        return apply(made, args), notes
    with builder.undone_on_error():
        outs, notes = into(builder, atoms)
    return builder.tracers(outs), notes


def literal_array(literal: Literal) -> Array:
    """The value of a literal, which keeps its type, weakness included."""
    if isinstance(literal.value, Array):
        return literal.value
    return as_typed_array(literal.value, literal.aval)


def as_array(x: object) -> Array:
    """An operand as an array: Python scalars and NumPy arrays are converted."""
    if isinstance(x, Array):
        return x
    if is_reference(x):  # an operand as it is
        return cast(Array, x)
    return as_typed_array(x, aval_of(x))


def as_typed_array(x: object, aval: ShapedArray) -> ConcreteArray:
    """A copy of a Python or NumPy value as an array of type `aval`."""
    return fresh(np.array(x, stored_dtype(aval.dtype)), aval)


# -----------------------------------------------------------------------------
# Computing within a trace: what is known now, apart from what is not.
#
# An operation on values alone is computed; one with a tracer among its operands belongs
# to the trace around::
#
#     with interpreting(CompileTime(STATE.eager, STATE.interpreter)):
#         scale = float(numpy.sum(numpy.arange(3)))    # a number
#         y = x + scale                                # an equation of the trace of x


@frozen(eq=False, repr=False)
class CompileTime(ReprMixin):
    """The interpreter of `ensure_compile_time_eval`."""

    immediate: ClassVar[bool] = True

    eager: Interpreter
    outer: Interpreter

    def bind(
        self, primitive: Primitive, params: Params, args: Sequence[object]
    ) -> tuple[Array, ...]:
        """The results of `primitive`, computed or written into the trace around."""
        if not has_tracers(args):
            return self.eager.bind(primitive, params, args)
        with interpreting(self.outer):
            return self.outer.bind(primitive, params, args)


def has_tracers(values: Sequence[object]) -> bool:
    """Whether one of the values is a tracer."""
    return any([isinstance(x, Staged) for x in values])


def trace_around(
    values: Sequence[object], captured: Callable[[], Sequence[object]]
) -> Interpreter | None:
    """The interpreter of the trace around a compile-time block, for calls that need it.

    They pass tracers, or the function that they call has `captured` some.
    """
    interpreter = STATE.interpreter
    if not isinstance(interpreter, CompileTime):
        return None
    return interpreter.outer if has_tracers(values) or captured() else None


def enclosing_scope() -> Scope | None:
    """The innermost trace, also one around a compile-time block."""
    interpreter = STATE.interpreter
    if isinstance(interpreter, CompileTime):
        interpreter = interpreter.outer
    return interpreter if isinstance(interpreter, Scope) else None
