"""Floor 5: the stages of a function with references, which is compiled on values.

The program takes what references hold before and returns what they hold after; those
that the function closes over belong to it, as arrays do::

    step.lower(ref).compile()(ref)    # ref holds what the step writes
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from attrs import evolve, field, frozen

from verax.api.stages.compilation import Compilation, start_compiling
from verax.api.stages.interfaces import Interface
from verax.api.stages.stages import Compiled, Lowered, OptionsByName, Traced
from verax.api.tracing.reference_checks import (
    check_closed_over,
    held,
    reference_aval,
)
from verax.api.tracing.trace import Traced as TracedFunction
from verax.backend import pytrees
from verax.backend.eager.single_op import OPTIONS
from verax.backend.programs.placement import Placement, Places, place_of, placement_of
from verax.backend.pytrees import PyTreeDef, result_tree
from verax.backend.runtime.client import Device
from verax.ir.avals import AbstractRef
from verax.rules.rows.builder import Staged
from verax.rules.rows.leaks import leaked
from verax.rules.values.reference import Ref
from verax.transforms.references import Discharged, runnable


@frozen(eq=False, repr=False)
class Whole:
    """The function as its user calls it: its arguments, and what it closes over.

    The program has outputs for what operands `written` hold at the end.
    """

    interface: Interface
    captured: tuple[object, ...]
    written: tuple[int, ...]

    def operands(self, leaves: Sequence[object], tree: PyTreeDef) -> list[Any]:
        """The operands: what the function captured, then the checked leaves of a call.

        Raises:
            TypeError: the structure or a type is another one, or a leaf is a reference
                and should not be, or the other way round.
            ValueError: a reference is passed twice, or was frozen.
        """
        interface, names = self.interface, self.interface.names
        inner = [getattr(aval, "inner_aval", aval) for aval in interface.in_avals]
        values = held(leaves)
        evolve(interface, in_avals=tuple(inner)).check(values, tree)
        for i, (leaf, due) in enumerate(zip(leaves, interface.in_avals, strict=True)):
            if isinstance(leaf, Ref) != isinstance(due, AbstractRef):
                kind = "a reference" if isinstance(due, AbstractRef) else "an array"
                raise TypeError(
                    f"{names()[i]} must be {kind}, as when {interface.name} was "
                    f"compiled ({due}), not {leaf!r}"
                )
            if isinstance(leaf, Ref):
                reference_aval(leaves, i, names)
        check_closed_over(self, leaves, names)
        return [*self.captured, *leaves]


@frozen(eq=False, repr=False)
class TracedOnReferences(Traced):
    """A traced function with references."""

    __module__ = "verax.stages"

    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> Lowered:
        """See `Traced.lower`."""
        return lowered_on_values(self, lowering_platforms)


def lowered_on_values(stage: Traced, platforms: Sequence[str] | None) -> Lowered:
    """The module of a function that takes references or closes over some."""
    flat, whole = on_values(stage)
    lowered = flat.lower(lowering_platforms=platforms)
    return LoweredOnValues(flat.interface, lowered.module, flat, whole=whole)


def start_on_values(stage: Traced) -> Compilation:
    """Begin to compile the program that a call of such a function runs."""
    flat, whole = on_values(stage)
    # With the options with which `run_stateful` compiles it.
    flat = evolve(flat, options=OPTIONS, keep_unused=True)
    return start_compiling(flat, partial(CompiledOnValues, whole=whole))


def on_values(stage: Traced) -> tuple[Traced, Whole]:
    """The function on values, and as its user calls it.

    Raises:
        LeakedTracer: the function closes over a tracer of an outer trace.
    """
    opened = stage.traced.opened
    for x in opened.captured:
        if isinstance(x, Staged):
            raise leaked(x)
    out = runnable(opened.jaxpr)
    jaxpr, count = out.jaxpr, len(out.jaxpr.in_avals)
    donated = tuple([i in out.written for i in range(count)])
    out_tree = pytrees.flatten((0,) * len(jaxpr.outvars))[1]
    interface = Interface(
        stage.interface.callee,
        pytrees.flatten(((0,) * count, {}))[1],
        jaxpr.in_avals,
        donated,
        out_tree,
        jaxpr.out_avals,
    )
    flat = Traced(
        interface,
        TracedFunction(jaxpr, (), out_tree),
        stage.options,
        True,
        donated,
        placement_on_values(stage, out),
    )
    return flat, Whole(stage.interface, opened.captured, out.written)


def placement_on_values(stage: Traced, discharged: Discharged) -> Placement | None:
    """The placement of the program; what references hold stays where it was."""
    captured = held(stage.traced.opened.captured)
    own = stage.placement
    if own is None:
        rest = discharged.jaxpr.in_avals[len(captured) :]
        own = placement_of(discharged.jaxpr, [*captured, *rest])
        return own and evolve(own, outs=with_finals(own, discharged, len(own.outs)))
    ins = (*map(place_of, captured), *own.ins)
    own = evolve(own, ins=ins)
    return evolve(own, outs=with_finals(own, discharged, len(own.outs)))


def with_finals(own: Placement, discharged: Discharged, count: int) -> Places:
    """The places of what references hold, and after them those of the outputs."""
    shown = min(count, len(discharged.jaxpr.outvars) - len(discharged.written))
    return (*[own.ins[i] for i in discharged.written], *own.outs[:shown])


@frozen(eq=False, repr=False)
class LoweredOnValues(Lowered):
    """A lowered function with references: the module is on values."""

    __module__ = "verax.stages"

    whole: Whole = field(kw_only=True)

    def compile(
        self,
        compiler_options: OptionsByName | None = None,
        *,
        device_assignment: Sequence[Device] | None = None,
    ) -> Compiled:
        """See `Lowered.compile`."""
        out = super().compile(compiler_options, device_assignment=device_assignment)
        return CompiledOnValues(out.interface, out.program, out.jaxpr, whole=self.whole)


@frozen(eq=False, repr=False)
class CompiledOnValues(Compiled):
    """A compiled function with references."""

    __module__ = "verax.stages"

    whole: Whole = field(kw_only=True)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """See `Compiled.__call__`; references hold what was written."""
        leaves, tree = pytrees.flatten((args, kwargs))
        interface = self.whole.interface
        operands = self.whole.operands(leaves, tree)
        values = held(operands)
        for i in self.whole.written:
            values[i] = operands[i].unshared()
        outs = super().__call__(*values)
        count = len(self.whole.written)
        for i, value in zip(self.whole.written, outs[:count], strict=True):
            operands[i].value, operands[i].shared = value, False
        return result_tree(interface.out_tree, outs[count:])
