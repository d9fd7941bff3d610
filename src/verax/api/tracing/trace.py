"""Floor 5: from Python callables to jaxprs.

One idea: call the function once on tracers and keep what the builder wrote. What the
function closes over from an outer trace becomes a leading input::

    traced = trace(f, tree, avals, "jit")
    traced.jaxpr, traced.captured, traced.out_tree
"""

import gc
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from time import perf_counter
from types import MappingProxyType
from typing import Final

from attrs import frozen

from verax.api.tracing.apply import enclosing_scope
from verax.api.tracing.concrete_values import oracle_for
from verax.api.tracing.wrapping import Describe, function_name, name_and_line
from verax.backend import pytrees
from verax.backend.arrays.concrete import ConcreteArray
from verax.backend.pytrees import PyTreeDef, tree_holds
from verax.backend.runtime.metrics import RECORDER
from verax.ir.avals import ShapedArray, is_reference
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.ir.reports.check import check_jaxpr
from verax.ir.walk import hoist
from verax.rules.rows.builder import Builder, Staged, Tracer, outlives
from verax.rules.rows.infer import inferred
from verax.rules.rows.leaks import abandoned, left_behind
from verax.rules.values.constants import HOST_VALUES, aval_of
from verax.rules.values.conversions import SHOWN, NotYetAnArray, shown
from verax.rules.values.memo import ByFunction
from verax.rules.values.state import STATE, Context, current_context, interpreting

EMPTY: Mapping[int, object] = MappingProxyType({})
SHARED = 256
"""The number of traces that are kept for one function."""
ARRAYS = (Tracer, ConcreteArray)


@frozen(eq=False, repr=False)
class Traced(ReprMixin):
    """A traced function: its jaxpr takes the captured tracers, then the leaves."""

    jaxpr: Jaxpr
    captured: tuple[Staged, ...]
    out_tree: PyTreeDef
    seconds: float = 0.0
    refs: bool = False
    """Whether it takes, or closes over, mutable references."""

    @cached_property
    def opened(self) -> "Opened":
        """The function as a part of an equation: see `Opened`."""
        from verax.ops.hoisting import as_operands

        closed = hoist(self.jaxpr, as_operands)
        if not closed.consts:
            return Opened(self.jaxpr, self.captured, self.out_tree)
        inner = closed.jaxpr
        invars = (*inner.constvars, *inner.invars)
        jaxpr = Jaxpr((), invars, inner.eqns, inner.outvars)
        return Opened(jaxpr, (*closed.consts, *self.captured), self.out_tree)


@frozen(eq=False, repr=False)
class Opened(ReprMixin):
    """A traced function whose jaxpr holds no array: it takes `captured`, then leaves.

    What it captured are arrays and tracers of traces around it. As operands of the
    equation that holds the jaxpr, other arrays need no new program, and memos of the
    equation keep no array alive.
    """

    jaxpr: Jaxpr
    captured: tuple[object, ...]
    out_tree: PyTreeDef

    @property
    def captured_avals(self) -> tuple[ShapedArray, ...]:
        """The types of what the function captured."""
        return self.jaxpr.in_avals[: len(self.captured)]

    @property
    def reads_tracers(self) -> bool:
        """Whether the function captured tracers."""
        return any([isinstance(x, Staged) for x in self.captured])


def trace(
    fun: Callable[..., object],
    in_tree: PyTreeDef,
    avals: Sequence[ShapedArray],
    purpose: str,
    *,
    describe: Describe | None = None,
    values: Sequence[object | None] | None = None,
    held: Mapping[int, object] = EMPTY,
    differentiates: bool = False,
    passes: bool = False,
    lifts: bool = False,
) -> Traced:
    """Trace `fun(*args, **kwargs)`, where `in_tree` is the structure of both.

    `held` are leaves, by number, that the function gets as they are. `values`, the
    arguments themselves, let Python branch on what it computes from them alone; None
    stands for an argument without a value, such as a tracer. A trace `differentiates`
    if its arguments get tangents. One that `passes` references may return those that it
    takes. One that `lifts` has every array among its constants, where others have the
    values of arrays without dimensions.

    Raises:
        IllTyped: the jaxpr breaks a rule of the language, and `enable_checks` is on.
        TypeError: an output is not an array.
        LeakedTracer: the function uses a tracer that it must not, or leaves one behind
            while `check_tracer_leaks` is on.
    """
    started = perf_counter()
    builder = Builder(purpose, enclosing_scope())
    builder.describe, builder.lifts = describe, lifts
    builder.differentiates = differentiates
    if values is not None:
        builder.oracle = oracle_for(builder, values, differentiates)
        builder.releases = True
    on = gc.isenabled()
    try:
        gc.disable()  # as `paused` does, in a third of the time
        with interpreting(builder):
            jaxpr, captured, out_tree = recorded(
                fun, in_tree, avals, builder, held, passes
            )
    finally:
        builder.alive = False
        builder.oracle = None  # it knows the builder: a cycle for the collector
        if on:
            gc.enable()
    if STATE.check_tracer_leaks:
        check_left_behind(builder, fun)
    seconds = perf_counter() - started
    if STATE.enable_checks:
        check_jaxpr(jaxpr, inferred)
    RECORDER.record_all(traces=1, trace_seconds=seconds, equations=len(jaxpr.eqns))
    if (observer := STATE.context.observer) is not None:
        around = [(x.builder, x.atom) for x in captured]
        observer.traced(jaxpr, function_name(fun), seconds, builder, describe, around)
    if not builder.refs:
        return Traced(jaxpr, captured, out_tree, seconds)
    from verax.api.tracing.reference_checks import has_references

    return Traced(jaxpr, captured, out_tree, seconds, has_references(jaxpr))


def check_left_behind(builder: Builder, fun: Callable[..., object]) -> None:
    """Raise LeakedTracer for tracers that are held, and mean nothing, after a trace."""
    left = [x for x in left_behind(builder, fun, Tracer) if not outlives(x)]
    if left:
        raise abandoned(function_name(fun), left)


TRACES: Final = ByFunction[Traced]()
"""The traces of functions, by what else decides about them."""


def shared_trace(
    fun: Callable[..., object],
    in_tree: PyTreeDef,
    avals: Sequence[ShapedArray],
    purpose: str,
    *,
    owner: object = None,
    describe: Describe | None = None,
) -> Traced:
    """`trace`, once for each function, types and context, as long as `fun` lives.

    `owner` is the user's function, if `fun` was made for this call: then `purpose` and
    the types must say all else that decides about what `fun` does.

    What captures outer tracers is traced each time, and so is what holds functions of
    the user's, which might hold `fun`.
    """
    store = TRACES.of(fun if owner is None else owner)
    context = current_context()
    key = (purpose, in_tree, context, *avals)
    entry = store.get(key)
    if entry is None:
        entry = trace(fun, in_tree, avals, purpose, describe=describe)
        if is_shared(entry, in_tree, context):
            if len(store) >= SHARED:
                store.clear()
            store[key] = entry
    return entry


def is_shared(traced: Traced, in_tree: PyTreeDef, context: Context) -> bool:
    """Whether later calls may find a trace."""
    if traced.captured or context.fresh or STATE.check_tracer_leaks:
        return False
    if tree_holds(in_tree) or tree_holds(traced.out_tree):
        return False
    return not traced.jaxpr.holds_functions


def recorded(
    fun: Callable[..., object],
    in_tree: PyTreeDef,
    avals: Sequence[ShapedArray],
    builder: Builder,
    held: Mapping[int, object],
    passes: bool,
) -> tuple[Jaxpr, tuple[Staged, ...], PyTreeDef]:
    """Records `fun` in `builder`; no variable here outlives the call."""
    tracers = [builder.input(aval) for aval in avals]
    given = [held.get(i, x) for i, x in enumerate(tracers)] if held else tracers
    args, kwargs = in_tree.unflatten(given)
    del tracers, given
    out = fun(*args, **kwargs)
    leaves, out_tree = pytrees.flatten(out)
    check_outputs(fun, out, leaves, passes, builder.purpose)
    if STATE.xla_metadata:
        from verax.ops.calls.metadata import told

        builder.eqns[:] = told(builder.eqns, STATE.xla_metadata)
    jaxpr, captured = builder.finish(leaves)
    if builder.refs:
        from verax.transforms.references import without_own

        jaxpr = without_own(jaxpr)
    return jaxpr, captured, out_tree


def check_outputs(
    fun: Callable[..., object],
    out: object,
    leaves: Sequence[object],
    passes: bool,
    purpose: str,
) -> None:
    """Raise TypeError with the place in the output of what is not an array."""
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, ARRAYS):
            continue
        try:
            aval_of(leaf)
        except TypeError as error:
            if is_reference(leaf):
                from verax.api.tracing.reference_checks import is_input, returned

                if passes and is_input(leaf):
                    continue
                raise returned(fun, leaf) from None
            path, _ = pytrees.flatten_with_path(out)[0][i]
            raise TypeError(no_result(fun, leaf, path, purpose)) from error


def no_result(
    fun: Callable[..., object], leaf: object, path: Sequence[object], purpose: str
) -> str:
    """The message about an output that is not an array."""
    place = "".join(map(str, path))
    at = f" at output component {place}" if place else ""
    what = "Output from batched function" if purpose == "vmap" else "function"
    why = "only arrays and scalars can be returned"
    if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
        why = f"A {type(leaf).__name__} does not have a value, and {why}"
    return (
        f"{what} {name_and_line(fun, ' at {}')} returned a value of type "
        f"{type(leaf).__name__}{at}, which is not a valid JAX type: "
        f"{shown(leaf, SHOWN)}. {why[0].upper()}{why[1:]}"
    )


def leaf_avals(leaves: Sequence[object], describe: Describe) -> list[ShapedArray]:
    """The types of argument leaves.

    Raises:
        TypeError: a leaf is not an array; the message says which.
    """
    avals = []
    for i, leaf in enumerate(leaves):
        try:
            avals.append(aval_of(leaf))
        except TypeError as error:
            if not is_reference(leaf):
                raise misplaced(describe()[i], leaf, error) from None
            from verax.api.tracing.reference_checks import reference_aval

            avals.append(reference_aval(leaves, i, describe))
    return avals


SHORT: Final = 32
"""Of a value so many characters are shown where its type and place are said, too."""


def misplaced(where: str, leaf: object, error: TypeError) -> TypeError:
    """The error for a leaf that is not an array, with its place: `argument x of f`."""
    kind = NotYetAnArray if isinstance(error, NotYetAnArray) else TypeError
    path, of, name = where.removeprefix("argument ").rpartition(" of ")
    if not (of and where.startswith("argument ")):
        return kind(f"{where}: {error}")
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    if isinstance(shape, tuple) and not isinstance(leaf, HOST_VALUES):
        return kind(
            f"Argument '{path}' of shape {dtype}[{','.join(map(str, shape))}] of type "
            f"{type(leaf)} is not a valid JAX type: it stands for an array in "
            f"verax.eval_shape and lower, but {name} takes values"
        )
    said, invalid, why = str(error).partition(" is not a valid JAX type")
    if invalid:  # its type has been said
        said = shown(leaf, SHORT)
    return kind(
        f"Error interpreting argument to {name} as an abstract array. The problematic "
        f"value is of type {type(leaf)} and was passed to the function at path {path}: "
        f"{said}{invalid}{why}"
    )
