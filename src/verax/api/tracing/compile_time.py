"""Floor 5: computing within a trace: what is known now, apart from what is not.

An operation on values alone is computed; one with a tracer among its operands belongs
to the trace around::

    with interpreting(CompileTime(STATE.eager, STATE.interpreter)):
        scale = float(numpy.sum(numpy.arange(3)))    # a number
        y = x + scale                                # an equation of the trace of x
"""

from collections.abc import Callable, Sequence
from typing import ClassVar

from attrs import frozen

from verax.ir.jaxpr import Params, Primitive
from verax.ir.records import ReprMixin
from verax.rules.rows.builder import Scope, Staged
from verax.rules.values.array import Array
from verax.rules.values.state import STATE, Interpreter, interpreting


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
