"""Floor 3: linearization.

One idea: in the jvp of an equation, what does not depend on a tangent is the residual
part, and what does is the linear part. Splitting the template once gives both::

    forward:  inputs -> outputs, residuals
    tangent:  residuals, tangents -> tangents of outputs, linear in the tangents
"""

from collections.abc import Sequence
from typing import NamedTuple

from attrs import frozen

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import (
    Atom,
    Eqn,
    Jaxpr,
    Literal,
    Params,
    Primitive,
    Source,
    Var,
)
from verax.ir.records import ReprMixin
from verax.ir.walk import beside, read
from verax.rules.rows.builder import Builder, program, write_here
from verax.rules.rows.masks import Mask, merged
from verax.rules.rows.row import Engine, MissingRule
from verax.rules.values.array import Array
from verax.rules.values.memo import Unshared, memo, recall
from verax.rules.values.state import Context, current_context
from verax.transforms.engine.partial_eval import split
from verax.transforms.engine.templates import (
    TEMPLATES,
    Avals,
    Writer,
    Written,
    coerce,
    jvp_template,
    located,
    types,
)


@frozen(repr=False)
class Linearized(ReprMixin):
    """An equation linearized: see the contract of `linearize`."""

    forward: Jaxpr
    tangent: Jaxpr
    nonzero: Mask


@memo(TEMPLATES, holder="params")
def linear_template(
    context: Context,
    engine: Engine,
    primitive: Primitive,
    params: Params,
    avals: Avals,
    nonzero: Mask,
) -> Linearized:
    """The jvp template of an equation, split into residual and linear part."""
    template, out_mask = recall(
        jvp_template, params, context, engine, primitive, params, avals, nonzero
    )
    unknown = (False,) * len(avals) + (True,) * sum(nonzero)
    forward, tangent, waiting = split(engine, template, unknown)
    count = len(template.outvars) - sum(out_mask)
    if any(waiting[:count]):
        raise TypeError(f"the jvp rule of {primitive} mixes tangents into its results")
    constant = [not flag for flag in waiting[count:]]
    if any(constant):
        tangent = with_constant_tangents(forward, tangent, waiting[count:], count)
    return Linearized(forward, tangent, out_mask)


def with_constant_tangents(
    forward: Jaxpr, tangent: Jaxpr, waiting: Mask, count: int
) -> Jaxpr:
    """Tangents that depend on no tangent (zeros made by a rule) become residuals.

    They follow the `count` results among the outputs of `forward` already.
    """
    constants = len(waiting) - sum(waiting)
    avals = forward.out_avals[count : count + constants]

    def body(*xs: Array) -> Sequence[Array]:
        outs = write_here(tangent, *xs[constants:])
        return merged(waiting, outs, xs[:constants])

    return program((*avals, *tangent.in_avals), body, "linearize")


class Step[V: Written](NamedTuple):
    """The linear part of one equation: on what it works, where its results go.

    `saved` are residuals and literals. Tangents have numbers of their own: those of the
    inputs, then those of results.
    """

    tangent: Jaxpr
    saved: tuple[V, ...]
    operands: tuple[int, ...]
    results: tuple[int, ...]
    source: Source


@frozen(eq=False, repr=False)
class Steps[V: Written](ReprMixin):
    """The derivative of a program at a point, equation by equation.

    Attributes:
        steps: those that the outputs need, in order.
        avals: the types of the tangents that go in; they have the first numbers.
        wanted: the number and the type of each tangent that comes out.
        count: how many tangents there are.
    """

    steps: Sequence[Step[V]]
    avals: Sequence[ShapedArray]
    wanted: Sequence[tuple[int, ShapedArray]]
    count: int

    @property
    def saved(self) -> list[V]:
        """The residuals, each once."""
        saved = [x for step in self.steps for x in step.saved]
        found = {identity_of(x): x for x in saved if type(x) is not Literal}
        return list(found.values())


def identity_of(x: object) -> int:
    """What tells residuals apart: to hash a variable takes longer."""
    return x.index if type(x) is Var else id(x)


class Tape[V: Written]:
    """The outputs of a program and its linear steps, as far as it has been written."""

    def __init__(
        self, engine: Engine, forward: Writer[V], ins: Sequence[V], nonzero: Mask
    ) -> None:
        self.context = current_context()
        self.engine = engine
        self.forward = forward
        self.primals = list(ins)
        self.count = 0
        self.steps: list[Step[V]] = []
        self.tangents: list[int | None] = [
            self.number() if active else None for active in nonzero
        ]

    def number(self) -> int:
        """The number of a new tangent."""
        self.count += 1
        return self.count - 1

    def write(self, eqn: Eqn) -> None:
        """Write one equation forward, and keep its linear part as a step."""
        primals, tangents = self.primals, self.tangents
        invars = eqn.invars
        ins = read(invars, primals)
        ts = beside(invars, tangents)
        live = tuple([t for t in ts if t is not None])
        if not live:
            primals += self.forward.copy(eqn, ins)
            tangents += [None] * len(eqn.outvars)
            return
        mask = tuple([t is not None for t in ts])
        primitive, params, avals = eqn.primitive, eqn.params, types(invars)
        try:
            parts = linear_template(
                self.context, self.engine, primitive, params, avals, mask
            )
        except Unshared as kept:
            parts = kept.result
        except MissingRule as error:
            raise located(error, eqn) from error
        source = eqn.source.derived("jvp")
        found = self.forward.inline(parts.forward, ins, source)
        count = len(eqn.outvars)
        primals += found[:count]
        pushed = [self.number() if flag else None for flag in parts.nonzero]
        tangents += pushed
        results = tuple([t for t in pushed if t is not None])
        self.steps.append(
            Step(parts.tangent, tuple(found[count:]), live, results, source)
        )

    def live_steps(self, wanted: Sequence[int | None]) -> list[Step[V]]:
        """The steps that the wanted tangents need, in order."""
        needed = [False] * self.count
        for t in wanted:
            if t is not None:
                needed[t] = True
        kept = []
        for step in reversed(self.steps):
            if any([needed[t] for t in step.results]) or step.tangent.effects:
                kept.append(step)
                for t in step.operands:
                    needed[t] = True
        return kept[::-1]


def linearize(engine: Engine, jaxpr: Jaxpr, nonzero: Mask) -> tuple[Jaxpr, Jaxpr, Mask]:
    """The program and its derivative, apart.

    Contract: the first jaxpr maps the inputs to the outputs, then residuals; the
    second maps residuals, then a tangent for each input that `nonzero` marks, to the
    tangents of the outputs that the returned mask marks, and is linear in the
    tangents. Residuals that nothing uses are not stored.
    """
    forward = Builder("linearize")
    ins = forward.input_atoms(jaxpr.in_avals)
    outs, steps, mask = linearize_into(engine, forward, jaxpr, nonzero, ins)
    saved = steps.saved
    second = tangent_program(engine, steps)
    return forward.close([*outs, *saved])[0], second, mask


def linearize_into[V: Written](
    engine: Engine, forward: Writer[V], jaxpr: Jaxpr, nonzero: Mask, ins: Sequence[V]
) -> tuple[list[V | Literal], Steps[V], Mask]:
    """`linearize` on `ins`, whose first program is written, or run, by `forward`.

    Returns the outputs there, the derivative, and the mask.
    """
    tape = Tape(engine, forward, ins, nonzero)
    for eqn in jaxpr.eqns:
        tape.write(eqn)
    wanted = beside(jaxpr.outvars, tape.tangents)
    avals = [
        v.aval.tangent() for v, flag in zip(jaxpr.invars, nonzero, strict=True) if flag
    ]
    pairs = [
        (t, a.aval.tangent())
        for t, a in zip(wanted, jaxpr.outvars, strict=True)
        if t is not None
    ]
    steps = Steps(tape.live_steps(wanted), avals, pairs, tape.count)
    outs = read(jaxpr.outvars, tape.primals)
    return outs, steps, tuple([t is not None for t in wanted])


def tangent_program[V: Written](engine: Engine, derivative: Steps[V]) -> Jaxpr:
    """The linear steps as a program of the residuals, then the tangents that go in."""
    builder = Builder("linearize")
    stored = {identity_of(x): builder.input_atom(x.aval) for x in derivative.saved}
    env: list[Atom | None] = [None] * derivative.count
    for i, aval in enumerate(derivative.avals):
        env[i] = builder.input_atom(aval)
    for step in derivative.steps:
        ins: list[Atom] = [
            x if isinstance(x, Literal) else stored[identity_of(x)] for x in step.saved
        ]
        ins += [env[t] for t in step.operands]  # type: ignore[misc]  # made before
        outs = builder.inline(step.tangent, ins, step.source)
        for t, atom in zip(step.results, outs, strict=True):
            env[t] = atom
    outs = [env[t] for t, _ in derivative.wanted]  # type: ignore[misc]  # every one is made
    live = [
        coerce(engine, builder, atom, aval)
        for atom, (_, aval) in zip(outs, derivative.wanted, strict=True)
    ]
    return builder.close(live)[0]
