"""`jax.core` and `jax.extend.core`: programs and their parts, by JAX's names."""

from collections.abc import Sequence
from typing import Any

from verax.backend.eager.interpreter import EagerInterpreter as EvalTrace
from verax.ir.avals import ShapedArray as ShapedArray
from verax.ir.jaxpr import ClosedJaxpr as PlainClosedJaxpr, Jaxpr, Literal, Var
from verax.jax.overlays.interpreters import (
    Trace as Trace,
    Tracer as Tracer,
    TraceTag as TraceTag,
    full_lower as full_lower,
    set_current_trace as set_current_trace,
    take_current_trace as take_current_trace,
)
from verax.jax.overlays.xla import Handlers
from verax.jax.primitives import Primitive as Primitive
from verax.rules.values.constants import aval_of
from verax.rules.values.state import STATE

__all__ = [
    "AbstractValue",
    "Atom",
    "ClosedJaxpr",
    "DropVar",
    "EvalTrace",
    "Primitive",
    "ShapedArray",
    "Trace",
    "TraceTag",
    "Tracer",
    "Value",
    "find_top_trace",
    "full_lower",
    "get_aval",
    "get_opaque_trace_state",
    "pytype_aval_mappings",
    "set_current_trace",
    "take_current_trace",
    "trace_state_clean",
]

AbstractValue = ShapedArray
Atom = Var | Literal
Value = Any
pytype_aval_mappings = Handlers()


class AllClosed(type):
    """Makes `isinstance(x, ClosedJaxpr)` true of jaxprs without constants too."""

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, (Jaxpr, PlainClosedJaxpr))


class ClosedJaxpr(metaclass=AllClosed):
    """A program with its constants; those in params have none, as all that run."""

    def __new__(cls, jaxpr: Jaxpr, consts: Sequence[object] = ()) -> Any:
        return PlainClosedJaxpr(jaxpr, tuple(consts))


class CurrentTrace:
    """The trace that is current in this thread."""

    @property
    def trace(self) -> Any:
        """The trace that operations ask."""
        return STATE.interpreter


trace_ctx = CurrentTrace()


class DropVar:
    """A result that nothing reads, in JAX's programs; here, it is a variable too."""

    def __init__(self, *_: object) -> None:
        raise NotImplementedError("results that nothing reads are variables (Var)")


def trace_state_clean() -> bool:
    """Whether operations are computed, and no axis is named around."""
    return STATE.interpreter.immediate and not STATE.axes


class TraceContext:
    """The traces around a call: equal where they are the same."""

    def __init__(self) -> None:
        self.interpreter = STATE.interpreter

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TraceContext) and other.interpreter is self.interpreter

    def __hash__(self) -> int:
        return id(self.interpreter)


def get_opaque_trace_state(convention: str = "") -> TraceContext:
    """A value that compares equal while the same function is being traced."""
    return TraceContext()


def get_aval(x: object) -> ShapedArray:
    """The type of a value."""
    return aval_of(x)


def find_top_trace(args: Sequence[object]) -> Any:
    """The trace of the first tracer among the arguments, or of none of them."""
    out = [x._trace for x in args if isinstance(x, Tracer)]
    return out[0] if out else STATE.interpreter
