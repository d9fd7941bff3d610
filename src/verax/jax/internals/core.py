"""`jax._src.core`."""

from collections.abc import Sequence
from typing import Any

from verax.api.config.caches import typeof as typeof
from verax.core import ShapedArray as ShapedArray
from verax.extend.core import (
    JaxprEqn as JaxprEqn,
    no_effects as no_effects,
    unsafe_get_axis_names_DO_NOT_USE as axis_names,
)
from verax.jax.internals.functions.util import (
    safe_map as safe_map,
    safe_zip as safe_zip,
)
from verax.jax.overlays.core import (
    AbstractValue as AbstractValue,
    Atom as Atom,
    ClosedJaxpr as ClosedJaxpr,
    DropVar as DropVar,
    EvalTrace as EvalTrace,
    Primitive as Primitive,
    Trace as Trace,
    Tracer as Tracer,
    TraceTag as TraceTag,
    Value as Value,
    find_top_trace as find_top_trace,
    full_lower as full_lower,
    get_aval as get_aval,
    get_opaque_trace_state as get_opaque_trace_state,
    pytype_aval_mappings as pytype_aval_mappings,
    set_current_trace as set_current_trace,
    take_current_trace as take_current_trace,
    trace_ctx as trace_ctx,
    trace_state_clean as trace_state_clean,
)

__all__ = ["typeof"]


class JaxprEqnContext:
    """The settings under which an equation was written: equations hold them here."""

    def __init__(self, *_: object, **__: object) -> None:
        pass


def definitely_equal(x: object, y: object) -> bool:
    """Whether two sizes are equal whatever their symbols stand for."""
    return bool(x is y or x == y)


def definitely_equal_shape(first: Sequence[object], second: Sequence[object]) -> bool:
    """Whether two shapes are equal whatever their symbols stand for."""
    return len(first) == len(second) and all(map(definitely_equal, first, second))


def physical_aval(aval: ShapedArray) -> ShapedArray:
    """The type of the words that represent a value."""
    return aval


def get_referent(x: object) -> object:
    """What a value stands for: itself."""
    return x


def get_axis_env() -> Any:
    """The names of axes around; for their sizes see `jax.lax.axis_size`."""
    return axis_names()
