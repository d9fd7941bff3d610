"""Floor 3: splitting a program in what is known now and what waits; linearization.

One idea: in the jvp of an equation, what does not depend on a tangent is the residual
part, and what does is the linear part. Splitting the template once gives both::

    forward:  inputs -> outputs, residuals
    tangent:  residuals, tangents -> tangents of outputs, linear in the tangents
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from attrs import frozen

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import (
    UNKNOWN_SOURCE,
    Atom,
    Eqn,
    Jaxpr,
    Params,
    Primitive,
    Source,
    Var,
)
from verax.rules.builder import Builder, Tracer, renumber
from verax.rules.row import Engine, Known, Linear, MissingRule
from verax.rules.state import interpreting
from verax.transforms.jvp import coerce
from verax.transforms.templates import (
    TEMPLATES,
    Avals,
    Mask,
    jvp_template,
    located,
    types,
)


class Residuals:
    """The inputs of a later program that stand for atoms of an earlier one."""

    def __init__(self, later: Builder) -> None:
        self.later = later
        self.table: dict[Atom, Atom] = {}

    def of(self, atom: Atom) -> Atom:
        """What stands for `atom` later: literals stand for themselves."""
        if type(atom) is not Var:
            return atom
        found = self.table.get(atom)
        if found is None:
            found = self.table[atom] = self.later.input(atom.aval).atom
        return found

    def close(self, outvars: Sequence[Atom], own: Sequence[Atom]) -> Jaxpr:
        """The later program: residuals first, then its `own` inputs."""
        jaxpr, _ = self.later.close(outvars)
        order = [*self.table.values(), *own]
        return renumber(jaxpr, [v for v in order if isinstance(v, Var)])


def split(engine: Engine, jaxpr: Jaxpr, unknown: Mask) -> tuple[Jaxpr, Jaxpr, Mask]:
    """Partial evaluation: the program of the known inputs, and the rest of it.

    Contract: the first jaxpr maps the known inputs to the known outputs, then
    residuals; the second maps residuals, then the unknown inputs, to the unknown
    outputs; the mask tells which outputs are unknown. Running both is running `jaxpr`.
    """
    known, later = Builder("split"), Builder("split")
    residuals = Residuals(later)
    env: list[tuple[bool, Atom]] = []
    for var, flag in zip(jaxpr.invars, unknown, strict=True):
        env.append((flag, (later if flag else known).input(var.aval).atom))
    own = [atom for flag, atom in env if flag]
    for eqn in jaxpr.eqns:
        env += split_eqn(engine, eqn, known, residuals, env)
    outs = [env[a.index] if type(a) is Var else (False, a) for a in jaxpr.outvars]
    second = residuals.close([a for flag, a in outs if flag], own)
    first, _ = known.close(
        [*[a for flag, a in outs if not flag], *residuals.table.keys()]
    )
    return first, second, tuple(flag for flag, _ in outs)


def split_eqn(
    engine: Engine,
    eqn: Eqn,
    known: Builder,
    residuals: Residuals,
    env: Sequence[tuple[bool, Atom]],
) -> list[tuple[bool, Atom]]:
    """Write one equation in the program where it belongs, or in both."""
    ins = [env[a.index] if type(a) is Var else (False, a) for a in eqn.invars]
    if not any(flag for flag, _ in ins):
        return [(False, a) for a in known.copy(eqn, tuple([a for _, a in ins]))]
    row = engine.rules[eqn.primitive]
    if row.split is None:
        operands = tuple([a if flag else residuals.of(a) for flag, a in ins])
        return [(True, a) for a in residuals.later.copy(eqn, operands)]
    args: list[Known] = [
        Linear(a.aval) if flag else Tracer(known, a) for flag, a in ins
    ]
    with interpreting(known):
        parts = row.split(engine, eqn.params, args)
    later = residuals.later
    saved = later.tracers([residuals.of(known.atom(r)) for r in parts.residuals])
    waiting = later.tracers([a for flag, a in ins if flag])
    with interpreting(later):
        finished = iter(parts.finish(saved, waiting))
    return [
        (True, later.atom(next(finished))) if x is None else (False, known.atom(x))
        for x in parts.known
    ]


@frozen
class Linearized:
    """An equation linearized: see the contract of `linearize`."""

    forward: Jaxpr
    tangent: Jaxpr
    nonzero: Mask


@lru_cache(maxsize=TEMPLATES)
def linear_template(
    engine: Engine, primitive: Primitive, params: Params, avals: Avals, nonzero: Mask
) -> Linearized:
    """The jvp template of an equation, split into residual and linear part."""
    template, out_mask = jvp_template(engine, primitive, params, avals, nonzero)
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
    known = iter(forward.outvars[count:])
    builder = Builder("linearize", source=UNKNOWN_SOURCE)
    constants = [next(known) for flag in waiting if not flag]
    inputs = [builder.input(a.aval).atom for a in constants]
    atoms = [builder.input(v.aval).atom for v in tangent.invars]
    outs, extra = iter(builder.inline(tangent, atoms)), iter(inputs)
    results = [next(outs) if flag else next(extra) for flag in waiting]
    return builder.close(results)[0]


class Step(NamedTuple):
    """The linear part of one equation: on what it works, where its results go.

    Tangents have numbers of their own: those of the inputs, then those of results.
    """

    tangent: Jaxpr
    saved: tuple[Atom, ...]
    operands: tuple[int, ...]
    results: tuple[int, ...]
    source: Source


class Tape:
    """The forward program under construction, and the linear steps so far."""

    def __init__(
        self, engine: Engine, forward: Builder, ins: Sequence[Atom], nonzero: Mask
    ) -> None:
        self.engine = engine
        self.forward = forward
        self.primals = list(ins)
        self.count = 0
        self.steps: list[Step] = []
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
        ins = tuple([primals[a.index] if type(a) is Var else a for a in invars])
        ts = [tangents[a.index] if type(a) is Var else None for a in invars]
        live = tuple([t for t in ts if t is not None])
        if not live:
            primals += self.forward.copy(eqn, ins)
            tangents += [None] * len(eqn.outvars)
            return
        mask = tuple([t is not None for t in ts])
        try:
            parts = linear_template(
                self.engine, eqn.primitive, eqn.params, types(invars), mask
            )
        except MissingRule as error:
            raise located(error, eqn) from error
        source = eqn.source.derived("jvp")
        found = self.forward.inline(parts.forward, ins, source=source)
        count = len(eqn.outvars)
        primals += found[:count]
        pushed = [self.number() if flag else None for flag in parts.nonzero]
        tangents += pushed
        results = tuple([t for t in pushed if t is not None])
        self.steps.append(
            Step(parts.tangent, tuple(found[count:]), live, results, source)
        )

    def live_steps(self, wanted: Sequence[int | None]) -> list[Step]:
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
    ins = [forward.input(v.aval).atom for v in jaxpr.invars]
    outs, saved, second, mask = linearize_into(engine, forward, jaxpr, nonzero, ins)
    return forward.close([*outs, *saved])[0], second, mask


def linearize_into(
    engine: Engine, forward: Builder, jaxpr: Jaxpr, nonzero: Mask, ins: Sequence[Atom]
) -> tuple[list[Atom], list[Var], Jaxpr, Mask]:
    """`linearize`, whose first program is written into `forward` on atoms of its types.

    Returns the outputs there, the residuals, the second program, and the mask.
    """
    tape = Tape(engine, forward, ins, nonzero)
    for eqn in jaxpr.eqns:
        tape.write(eqn)
    primals, tangents = tape.primals, tape.tangents
    outs = [primals[a.index] if type(a) is Var else a for a in jaxpr.outvars]
    wanted = [tangents[a.index] if type(a) is Var else None for a in jaxpr.outvars]
    steps = tape.live_steps(wanted)
    # By the index: to hash a variable takes longer.
    stored = {a.index: a for s in steps for a in s.saved if type(a) is Var}
    saved = list(stored.values())
    avals = [
        v.aval.tangent() for v, flag in zip(jaxpr.invars, nonzero, strict=True) if flag
    ]
    pairs = [
        (t, a.aval.tangent())
        for t, a in zip(wanted, jaxpr.outvars, strict=True)
        if t is not None
    ]
    second = tangent_program(engine, steps, saved, avals, pairs, tape.count)
    return outs, saved, second, tuple(t is not None for t in wanted)


def tangent_program(
    engine: Engine,
    steps: Sequence[Step],
    saved: Sequence[Var],
    avals: Avals | Sequence[ShapedArray],
    wanted: Sequence[tuple[int, ShapedArray]],
    count: int,
) -> Jaxpr:
    """The linear steps as a program of residuals, then tangents of types `avals`."""
    builder = Builder("linearize")
    stored = {a.index: builder.input(a.aval).atom for a in saved}
    env: list[Atom | None] = [None] * count
    for i, aval in enumerate(avals):
        env[i] = builder.input(aval).atom
    for step in steps:
        ins = [stored[a.index] if type(a) is Var else a for a in step.saved]
        ins += [env[t] for t in step.operands]  # type: ignore[misc]  # made before
        outs = builder.inline(step.tangent, ins, source=step.source)
        for t, atom in zip(step.results, outs, strict=True):
            env[t] = atom
    outs = [env[t] for t, _ in wanted]  # type: ignore[misc]  # every one is made
    live = [
        coerce(engine, builder, atom, aval)
        for atom, (_, aval) in zip(outs, wanted, strict=True)
    ]
    return builder.close(live)[0]
