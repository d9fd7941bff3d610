"""Floor 5: the derivative of a function at a point, to be pushed or pulled.

One idea: it is the linear steps of the trace, on values or on atoms of a trace around;
reverse mode goes through them backwards, and a tangent program is written only for
those who ask for one::

    at, outs, linear = linearized(f, (x,), "vjp", has_aux=False)
    cotangents, mask = linear.pulled([one])
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final

from attrs import evolve, frozen

from verax.api.tracing.apply import (
    COMPUTING,
    ENGINE,
    apply,
    as_array,
    as_arrays,
    current_builder,
    is_observed,
    observed,
    typed_atoms,
)
from verax.ir.jaxpr import Jaxpr, Literal, consts_of
from verax.ir.records import ReprMixin
from verax.rules.rows.builder import Builder, Tracer
from verax.rules.rows.row import MissingRule
from verax.rules.values.state import current_context
from verax.transforms.engine.derivatives import (
    Step,
    Steps,
    backward_types,
    identity_of,
    linearize_into,
    pull_back,
    tangent_program,
    transpose,
    transpose_into,
)
from verax.transforms.public import hoist

type Mask = tuple[bool, ...]

NO_OPERANDS: Final[Mapping[int, int]] = MappingProxyType({})


@frozen(eq=False, repr=False)
class LinearPart(ReprMixin):
    """The derivative of a program at a point.

    Attributes:
        nonzero: which outputs have a tangent.
        given: the tangent program and its residuals, if it was written already.
        steps: else the linear steps, on values, or on the atoms of `builder`.
        builder: the trace to which they belong.
        operands: the number of each operand, by its identity; none unless they were
            asked for.
    """

    nonzero: Mask
    given: tuple[Jaxpr, tuple[Any, ...]] | None
    steps: Steps[Any] | None = None
    builder: Builder | None = None
    operands: Mapping[int, int] = NO_OPERANDS

    @property
    def places(self) -> tuple[int | None, ...]:
        """For each saved value, which operand it is; None for any other."""
        saved = [] if self.steps is None else self.steps.saved
        return tuple([self.operands.get(identity_of(x)) for x in saved])

    @cached_property
    def program(self) -> tuple[Jaxpr, tuple[Any, ...]]:
        """The tangent program, and its residuals, which are its first inputs."""
        if self.given is not None:
            return self.given
        assert self.steps is not None
        saved = self.steps.saved
        owner = self.builder
        residuals = saved if owner is None else owner.tracers(saved)
        return tangent_program(ENGINE, self.steps), tuple(residuals)

    def parted(self) -> tuple[Jaxpr, tuple[Any, ...]]:
        """`program`, with the arrays that it captured among the residuals, in front.

        So no array is left in it, and programs that differ in these alone are equal.
        """
        tangent, residuals = self.program
        if not tangent.used_consts:
            return tangent, residuals
        closed = hoist(tangent)
        free = closed.jaxpr
        invars = (*free.constvars, *free.invars)
        constants = [as_array(value) for value in closed.consts]
        return Jaxpr((), invars, free.eqns, free.outvars), (*constants, *residuals)

    @property
    def tangent(self) -> Jaxpr:
        """(residuals, tangents) to tangents, linear in the tangents."""
        return self.program[0]

    @property
    def residuals(self) -> tuple[Any, ...]:
        """What the derivative needs of the point."""
        return self.program[1]

    @property
    def linear_inputs(self) -> Mask:
        """Which inputs of the tangent program are tangents."""
        count = len(self.residuals)
        return (False,) * count + (True,) * (len(self.tangent.invars) - count)

    def transposed(self, given: Mask, cts: Sequence[object]) -> tuple[Any, Mask]:
        """Cotangents of the inputs, and of which, by way of the tangent program.

        `cts` are the cotangents of the outputs that `given` marks among those that
        have a tangent.
        """
        tangent, linear = self.tangent, self.linear_inputs
        args, builder = [*self.residuals, *cts], current_builder()
        atoms = typed_atoms(args, backward_types(tangent, linear, given))
        if builder is None or atoms is None or is_observed():
            jaxpr, mask = observed(
                "transpose", tangent, lambda p: transpose(ENGINE, p, linear, given)
            )
            return apply(jaxpr, args), mask
        with builder.undone_on_error():
            out, mask = transpose_into(ENGINE, builder, tangent, linear, given, atoms)
        return builder.tracers(out), mask

    def pulled(self, given: Mask, cts: Sequence[object]) -> tuple[Any, Mask]:
        """`transposed`, step by step where that can be done."""
        steps, builder = self.steps, current_builder()
        if steps is None or any([step.tangent.effects for step in steps.steps]):
            return self.transposed(given, cts)
        try:
            if builder is not None:
                return self.pulled_into(builder, steps, given, cts)
            if self.builder is None:
                out, mask = pull_back(
                    ENGINE, COMPUTING, steps, given, [as_array(ct) for ct in cts]
                )
                return as_arrays(out), mask
        except MissingRule:
            pass  # the program knows the line that the message names
        return self.transposed(given, cts)

    def pulled_for(
        self, given: Mask, cts: Sequence[object], due: Sequence[bool]
    ) -> tuple[Any, Mask]:
        """`pulled`, of which only the `due` cotangents are computed."""
        if all(due):
            return self.pulled(given, cts)
        tangent, linear = self.tangent, self.linear_inputs
        jaxpr, mask = observed(
            "transpose", tangent, lambda p: transpose(ENGINE, p, linear, given)
        )
        used = [w for w, flag in zip(due, mask, strict=True) if flag]
        slim, needed = ENGINE.dce(jaxpr, tuple(used))
        args = zip([*self.residuals, *cts], needed, strict=True)
        arrays = apply(slim, [x for x, flag in args if flag])
        return arrays, tuple([m and w for m, w in zip(mask, due, strict=True)])

    def pulled_into(
        self, builder: Builder, steps: Steps[Any], given: Mask, cts: Sequence[object]
    ) -> tuple[Any, Mask]:
        """`pulled`, written into a trace."""
        pairs = zip(steps.results, given, strict=True)
        atoms = typed_atoms(cts, [aval for (_, aval), flag in pairs if flag])
        if atoms is None:
            return self.transposed(given, cts)
        with builder.undone_on_error():
            if self.builder is not builder:
                steps = brought(builder, steps, self.builder)
            out, mask = pull_back(ENGINE, builder, steps, given, atoms)
        return builder.tracers(out), mask


def brought(builder: Builder, steps: Steps[Any], owner: Builder | None) -> Steps[Any]:
    """Steps on values, or on atoms of the trace `owner`, as steps on atoms here."""
    here = {
        identity_of(x): builder.atom(x if owner is None else Tracer(owner, x))
        for x in steps.saved
    }

    def moved(step: Step[Any]) -> Step[Any]:
        saved = [x if type(x) is Literal else here[identity_of(x)] for x in step.saved]
        return step._replace(saved=tuple(saved))

    return evolve(steps, steps=[moved(step) for step in steps.steps])


def operands_of(jaxpr: Jaxpr, ins: Sequence[object]) -> dict[int, int]:
    """The numbers of the inputs of `jaxpr`, by their identity.

    What the linear steps save was made while the inputs were there, so none of it has
    the identity of another object, even when an input is gone.
    """
    known = {identity_of(x): i for i, x in enumerate(ins) if type(x) is not Literal}
    # Not `used_consts`: to keep them takes longer, and nobody asks this program again.
    for const in consts_of(jaxpr.eqns, jaxpr.outvars):
        known.pop(id(const.literal.value), None)  # the function closed over it, too
    return known


def linear_part(
    jaxpr: Jaxpr, active: Mask, args: Sequence[object], first: int | None = None
) -> tuple[Sequence[Any], LinearPart]:
    """The outputs of `jaxpr` on `args`, and its derivative there in `active` inputs.

    The derivative knows which of its residuals are operands, counted from `first`.
    """
    builder = current_builder()
    if builder is None:
        values = [as_array(x) for x in args]
        results, steps, nonzero = linearize_into(
            ENGINE, COMPUTING, jaxpr, active, values
        )
        known = NO_OPERANDS if first is None else operands_of(jaxpr, values[first:])
        return as_arrays(results), LinearPart(nonzero, None, steps, None, known)
    observer = current_context().observer
    atoms = None if observer else typed_atoms(args, jaxpr.in_avals)
    if atoms is None:

        def make(program: Jaxpr) -> tuple[Jaxpr, Jaxpr, Mask]:
            return ENGINE.linearize(program, active)

        forward, tangent, nonzero = (
            observer.part("linearize", jaxpr, make) if observer else make(jaxpr)
        )
        outs = apply(forward, args)
        count = len(jaxpr.outvars)
        return outs[:count], LinearPart(nonzero, (tangent, tuple(outs[count:])))
    with builder.undone_on_error():
        written, saved, nonzero = linearize_into(ENGINE, builder, jaxpr, active, atoms)
    known = NO_OPERANDS if first is None else operands_of(jaxpr, atoms[first:])
    return builder.tracers(written), LinearPart(nonzero, None, saved, builder, known)
