"""Floor 3: derivatives of a jaxpr: pushed forward, linearized, transposed, pulled back.

One idea: beside every variable stands its tangent, or nothing where it is zero::

    { lambda ; a. let b = sin a in (b,) }
    { lambda ; a t. let b = sin a; c = cos a; d = mul t c in (b, d) }
"""

from collections.abc import Sequence
from typing import NamedTuple

from attrs import frozen

from verax.ir.avals import ShapedArray
from verax.ir.effects import SHOWN
from verax.ir.jaxpr import (
    NO_PARAMS,
    UNKNOWN_SOURCE,
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
from verax.rules.rows.infer import Mask, merged
from verax.rules.rows.row import Engine, MissingRule
from verax.rules.values.array import Array
from verax.rules.values.conversions import NotAnArray, NotLinear
from verax.rules.values.memo import memo, recall
from verax.rules.values.state import Context, current_context
from verax.transforms.engine.partial_eval import split
from verax.transforms.engine.templates import (
    TEMPLATES,
    Avals,
    Writer,
    Written,
    added,
    coerce,
    jvp_template,
    located,
    transpose_template,
    types,
)


def jvp(engine: Engine, jaxpr: Jaxpr, nonzero: Mask) -> tuple[Jaxpr, Mask]:
    """The program that pushes tangents forward.

    Contract: inputs are those of `jaxpr`, then a tangent for each input that `nonzero`
    marks; outputs are those of `jaxpr`, then a tangent for each output that the
    returned mask marks. The tangents of the others are zero. Values and effects of
    the primal program are kept.
    """
    builder = Builder("jvp")
    ins = builder.input_atoms(pushed_types(jaxpr, nonzero))
    pushed = jvp_into(engine, builder, jaxpr, nonzero, ins)
    return builder.close(pushed[0])[0], pushed[1]


def pushed_types(jaxpr: Jaxpr, nonzero: tuple[bool, ...]) -> list[ShapedArray]:
    """The types of the inputs of the program that pushes tangents forward."""
    active = zip(jaxpr.invars, nonzero, strict=True)
    return [*jaxpr.in_avals, *[v.aval.tangent() for v, flag in active if flag]]


def jvp_into[V: Written](
    engine: Engine,
    writer: Writer[V],
    jaxpr: Jaxpr,
    nonzero: tuple[bool, ...],
    ins: Sequence[V],
) -> tuple[list[V | Literal], tuple[bool, ...]]:
    """`jvp`, written, or run, by `writer` on what has the types `pushed_types`."""
    count = len(jaxpr.invars)
    context = current_context()
    primals, given = list(ins[:count]), iter(ins[count:])
    tangents: list[V | None] = [next(given) if active else None for active in nonzero]
    for eqn in jaxpr.eqns:
        jvp_eqn(context, engine, writer, eqn, primals, tangents)
    pushed = beside(jaxpr.outvars, tangents)
    live = [
        coerce(engine, writer, t, a.aval.tangent())
        for t, a in zip(pushed, jaxpr.outvars, strict=True)
        if t is not None
    ]
    outs = [*read(jaxpr.outvars, primals), *live]
    return outs, tuple([t is not None for t in pushed])


def jvp_eqn[V: Written](
    context: Context,
    engine: Engine,
    writer: Writer[V],
    eqn: Eqn,
    primals: list[V],
    tangents: list[V | None],
) -> None:
    """Write one equation and its tangent, if any operand has one."""
    ins = read(eqn.invars, primals)
    ts = beside(eqn.invars, tangents)
    live = [t for t in ts if t is not None]
    if not live:
        primals += writer.copy(eqn, ins)
        tangents += [None] * len(eqn.outvars)
        return
    mask = tuple([t is not None for t in ts])
    primitive, params, avals = eqn.primitive, eqn.params, types(eqn.invars)
    try:
        key = (context, engine, primitive, params, avals, mask)
        # A frame less for each level of nested programs than `recall` alone.
        template, out_mask = (
            recall(jvp_template, params, *key)
            if params.transient
            else jvp_template(*key)
        )
    except MissingRule as error:
        raise located(error, eqn) from error
    outs = writer.inline(template, [*ins, *live], eqn.source.derived("jvp"))
    count = len(eqn.outvars)
    primals += outs[:count]
    rest = iter(outs[count:])
    tangents += [next(rest) if flag else None for flag in out_mask]


# -----------------------------------------------------------------------------
# Linearization.
#
# In the jvp of an equation, what does not depend on a tangent is the residual
# part, and what does is the linear part. Splitting the template once gives both::
#
#     forward:  inputs -> outputs, residuals
#     tangent:  residuals, tangents -> tangents of outputs, linear in the tangents


@frozen(repr=False)
class Linearized(ReprMixin):
    """An equation linearized: see the contract of `linearize`."""

    forward: Jaxpr
    tangent: Jaxpr
    nonzero: Mask


@memo(TEMPLATES)
def linear_template(
    context: Context,
    engine: Engine,
    primitive: Primitive,
    params: Params,
    avals: Avals,
    nonzero: Mask,
) -> Linearized:
    """The jvp template of an equation, split into residual and linear part."""
    key = (context, engine, primitive, params, avals, nonzero)
    template, out_mask = (
        recall(jvp_template, params, *key) if params.transient else jvp_template(*key)
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
        results: the number and the type of each tangent that comes out.
        count: how many tangents there are.
    """

    steps: Sequence[Step[V]]
    avals: Sequence[ShapedArray]
    results: Sequence[tuple[int, ShapedArray]]
    count: int

    @property
    def saved(self) -> list[V]:
        """The residuals, each once."""
        saved = [x for step in self.steps for x in step.saved]
        out = {identity_of(x): x for x in saved if type(x) is not Literal}
        return list(out.values())


def identity_of(x: object) -> int:
    """The identity of a residual: to hash a variable takes longer."""
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
            key = (self.context, self.engine, primitive, params, avals, mask)
            parts = (
                recall(linear_template, params, *key)
                if params.transient
                else linear_template(*key)
            )
        except MissingRule as error:
            raise located(error, eqn) from error
        source = eqn.source.derived("jvp")
        result = self.forward.inline(parts.forward, ins, source)
        count = len(eqn.outvars)
        primals += result[:count]
        pushed = [self.number() if flag else None for flag in parts.nonzero]
        tangents += pushed
        results = tuple([t for t in pushed if t is not None])
        self.steps.append(
            Step(parts.tangent, tuple(result[count:]), live, results, source)
        )

    def live_steps(self, expected: Sequence[int | None]) -> list[Step[V]]:
        """The steps that the wanted tangents need, in order."""
        needed = [False] * self.count
        for t in expected:
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
    expected = beside(jaxpr.outvars, tape.tangents)
    avals = [
        v.aval.tangent() for v, flag in zip(jaxpr.invars, nonzero, strict=True) if flag
    ]
    pairs = [
        (t, a.aval.tangent())
        for t, a in zip(expected, jaxpr.outvars, strict=True)
        if t is not None
    ]
    steps = Steps(tape.live_steps(expected), avals, pairs, tape.count)
    outs = read(jaxpr.outvars, tape.primals)
    return outs, steps, tuple([t is not None for t in expected])


def tangent_program[V: Written](engine: Engine, derivative: Steps[V]) -> Jaxpr:
    """The linear steps as a program of the residuals, then the tangents that go in."""
    builder = Builder("linearize")
    stored = {identity_of(x): builder.input_atom(x.aval) for x in derivative.saved}
    env: dict[int, Atom] = {
        i: builder.input_atom(a) for i, a in enumerate(derivative.avals)
    }
    for step in derivative.steps:
        ins: list[Atom] = [
            x if isinstance(x, Literal) else stored[identity_of(x)] for x in step.saved
        ]
        ins += [env[t] for t in step.operands]
        outs = builder.inline(step.tangent, ins, step.source)
        for t, atom in zip(step.results, outs, strict=True):
            env[t] = atom
    outs = [env[t] for t, _ in derivative.results]
    live = [
        coerce(engine, builder, atom, aval)
        for atom, (_, aval) in zip(outs, derivative.results, strict=True)
    ]
    return builder.close(live)[0]


# -----------------------------------------------------------------------------
# Transposition: a program that is linear in some inputs, run backwards.
#
# The cotangents of a variable add up over its uses, so walk the equations in
# reverse and hand each what its results have gathered::
#
#     { lambda ; a t. let b = mul t a in (b,) }     linear in t
#     { lambda ; a c. let d = mul c a in (d,) }


def transpose(
    engine: Engine, jaxpr: Jaxpr, linear: Mask, nonzero: Mask
) -> tuple[Jaxpr, Mask]:
    """The program that pulls cotangents back.

    Contract: `linear` marks the inputs in which `jaxpr` is linear, `nonzero` the
    outputs whose cotangent is given. Inputs are the others of `jaxpr`, then those
    cotangents; outputs are the cotangents of the linear inputs that the returned mask
    marks, in the types of their inputs' cotangents. The other ones are zero.

    Raises:
        MissingRule: an equation on a linear operand has no transpose rule.
    """
    builder = Builder("transpose")
    ins = builder.input_atoms(backward_types(jaxpr, linear, nonzero))
    live, mask = transpose_into(engine, builder, jaxpr, linear, nonzero, ins)
    return builder.close(live)[0], mask


def backward_types(jaxpr: Jaxpr, linear: Mask, nonzero: Mask) -> list[ShapedArray]:
    """The types of the inputs of the transposed program."""
    known = zip(jaxpr.invars, linear, strict=True)
    given = zip(jaxpr.outvars, nonzero, strict=True)
    return [
        *[v.aval for v, flag in known if not flag],
        *[a.aval.cotangent() for a, flag in given if flag],
    ]


def transpose_into(
    engine: Engine,
    builder: Builder,
    jaxpr: Jaxpr,
    linear: Mask,
    nonzero: Mask,
    ins: Sequence[Atom],
) -> tuple[list[Atom], Mask]:
    """`transpose`, written into `builder` on atoms of the types `backward_types`."""
    given = iter(ins)
    env: list[Atom | None] = [None if flag else next(given) for flag in linear]
    cts = [next(given) if flag else None for flag in nonzero]
    gathered = backwards(engine, builder, jaxpr, env, cts)
    results = [
        (gathered[v.index], v)
        for v, flag in zip(jaxpr.invars, linear, strict=True)
        if flag
    ]
    live = [
        coerce(engine, builder, ct, v.aval.cotangent())
        for ct, v in results
        if ct is not None
    ]
    return live, tuple(ct is not None for ct, _ in results)


def backwards(
    engine: Engine,
    builder: Builder,
    jaxpr: Jaxpr,
    env: list[Atom | None],
    cts: Sequence[Atom | None],
) -> Sequence[Atom | None]:
    """The cotangent of each variable, as far as it has one, from those of the outputs.

    `env` has the inputs in which `jaxpr` is not linear, and None for the others. Where
    no output has a cotangent, all are zeros that were pulled back to it.
    """
    backward = [eqn for eqn in jaxpr.eqns if not write_known(builder, eqn, env)]
    gathered: list[Atom | None] = [None] * len(env)
    for atom, ct in zip(jaxpr.outvars, cts, strict=True):
        gather(engine, builder, gathered, atom, ct, env)
    context = current_context()
    zeros: set[int] = set()
    if not any([ct is not None for ct in cts]):
        zeros = {atom.index for atom in jaxpr.outvars if type(atom) is Var}
    for eqn in reversed(backward):
        transpose_eqn(context, engine, builder, eqn, env, gathered, zeros)
    return gathered


def write_known(builder: Builder, eqn: Eqn, env: list[Atom | None]) -> bool:
    """Write an equation that has no linear operand; say whether it was one."""
    ins = read(eqn.invars, env)
    known = [a for a in ins if a is not None]
    if len(known) < len(ins):
        env += [None] * len(eqn.outvars)
        return False
    env += builder.copy(eqn, known)
    return True


def gather(
    engine: Engine,
    builder: Builder,
    gathered: list[Atom | None],
    atom: Atom,
    ct: Atom | None,
    env: list[Atom | None],
    source: Source | None = None,
) -> None:
    """Add a cotangent to what the variable has so far; `source` is that of the sum."""
    if ct is None or type(atom) is not Var or env[atom.index] is not None:
        return
    gathered[atom.index] = added(engine, builder, gathered[atom.index], ct, source)


def refuse_effects(eqn: Eqn) -> None:
    """Raise if leaving `eqn` out loses more than a look at values never computed."""
    if eqn.params is not NO_PARAMS and not SHOWN.issuperset(eqn.effects):
        raise MissingRule(
            f"{eqn.primitive.name} has effects and depends on linear inputs, whose "
            f"values reverse mode does not compute; met at {eqn.source}"
        )


def is_asked(eqn: Eqn, zeros: set[int]) -> bool:
    """Whether an equation without cotangents is pulled back all the same.

    One that is not hands the zeros that it was given to its operands.
    """
    if not zeros or zeros.isdisjoint([v.index for v in eqn.outvars]):
        return False
    if not eqn.params.answers_zeros:
        zeros.update([a.index for a in eqn.invars if type(a) is Var])
    return eqn.params.answers_zeros


def transpose_eqn(
    context: Context,
    engine: Engine,
    builder: Builder,
    eqn: Eqn,
    env: list[Atom | None],
    gathered: list[Atom | None],
    zeros: set[int],
) -> None:
    """Pull the cotangents of one equation back to its linear operands.

    `zeros` are the variables that an equation which had cotangents gave none.
    """
    invars, outvars = eqn.invars, eqn.outvars
    cts = [gathered[v.index] for v in outvars]
    live = [ct for ct in cts if ct is not None]
    if not live:
        refuse_effects(eqn)
        if not is_asked(eqn, zeros):
            return
    ins = read(invars, env)
    others = [a for a in ins if a is not None]
    linear = tuple([a is None for a in ins])
    if len(live) == len(cts):
        nonzero, out_types = (True,) * len(live), types(live)
    else:
        nonzero = tuple([ct is not None for ct in cts])
        out_types = tuple(
            [
                v.aval.cotangent() if ct is None else ct.aval
                for v, ct in zip(outvars, cts, strict=True)
            ]
        )
    primitive, params, avals = eqn.primitive, eqn.params, types(invars)
    try:
        key = (context, engine, primitive, params, avals, linear, nonzero, out_types)
        template, mask = (
            recall(transpose_template, params, *key)
            if params.transient
            else transpose_template(*key)
        )
    except MissingRule as error:
        raise located(error, eqn) from error
    except (NotAnArray, NotLinear) as error:
        # The rule asked a linear operand for its value.
        raise MissingRule(
            f"{eqn.primitive.name} is not linear in the operands that depend on the "
            f"inputs, at {eqn.source}; only a linear function has a transpose"
        ) from error
    source = eqn.source.derived("transpose")
    result = iter(builder.inline(template, [*others, *live], source))
    operands = [a for a, flag in zip(invars, linear, strict=True) if flag]
    for atom, flag in zip(operands, mask, strict=True):
        if flag:
            # The sums of cotangents come from this equation, too.
            gather(engine, builder, gathered, atom, next(result), env, source)
        elif type(atom) is Var:
            zeros.add(atom.index)


# -----------------------------------------------------------------------------
# Reverse mode on the linear steps of a program, each by template.
#
# The linear part of an equation is a small program that many equations share, so it is
# transposed once, and the backward pass is one template for each step; neither a
# tangent program nor its transpose is written::
#
#     outs, steps, mask = linearize_into(engine, builder, jaxpr, (True,), ins)
#     cotangents, _ = pull_back(engine, builder, steps, (True,), [one])


type Types = tuple[ShapedArray | None, ...]


@memo(TEMPLATES)
def backward_template(
    context: Context, engine: Engine, tangent: Jaxpr, saved: int, cts: Types
) -> tuple[Jaxpr, Mask]:
    """(residuals, cotangents) to cotangents of the other inputs, and of which.

    `tangent` is linear in all but the first `saved` inputs, and `cts` are the types of
    the cotangents of its outputs, None for those that are zero.
    """
    builder = Builder("transpose", source=UNKNOWN_SOURCE)
    count = len(tangent.invars)
    known = builder.input_atoms(tangent.in_avals[:saved])
    given = [None if aval is None else builder.input_atom(aval) for aval in cts]
    env = [*known, *[None] * (count - saved)]
    out = backwards(engine, builder, tangent, env, given)[saved:count]
    jaxpr, _ = builder.close([ct for ct in out if ct is not None])
    return jaxpr, tuple([ct is not None for ct in out])


def pull_back[V: Written](
    engine: Engine,
    writer: Writer[V],
    derivative: Steps[V],
    given: Mask,
    cts: Sequence[V],
) -> tuple[list[V], Mask]:
    """The cotangents of the tangents that go in, from those of some that come out.

    `given` marks the tangents that have one; of those that the returned mask does not
    mark it is zero. The steps have no effects. A step with no cotangents but zeros is
    pulled back where its transpose `answers_zeros`.

    Raises:
        MissingRule: a step has no transpose rule; the message has no line.
    """
    context = current_context()
    result: list[V | None] = [None] * derivative.count
    live_outs = zip(derivative.results, given, strict=True)
    numbers = [number for (number, _), flag in live_outs if flag]
    for number, ct in zip(numbers, cts, strict=True):
        result[number] = added(engine, writer, result[number], ct, None)
    zeros: set[int] = set()
    for step in reversed(derivative.steps):
        outs = [result[t] for t in step.results]
        live = [ct for ct in outs if ct is not None]
        if not live:
            if not zeros or zeros.isdisjoint(step.results):
                continue
            if not any([eqn.params.answers_zeros for eqn in step.tangent.eqns]):
                zeros.update(step.operands)
                continue
        avals = tuple([None if ct is None else ct.aval for ct in outs])
        tangent, count = step.tangent, len(step.saved)
        key = (context, engine, tangent, count, avals)
        template, mask = (
            recall(backward_template, tangent, *key)
            if tangent.transient
            else backward_template(*key)
        )
        source = step.source.derived("transpose")
        pulled = iter(writer.inline(template, (*step.saved, *live), source))
        for number, flag in zip(step.operands, mask, strict=True):
            if flag:
                result[number] = added(
                    engine, writer, result[number], next(pulled), source
                )
            else:
                zeros.add(number)
    results = list(zip(result, derivative.avals, strict=False))
    live_ins = [
        coerce(engine, writer, ct, a.cotangent()) for ct, a in results if ct is not None
    ]
    return live_ins, tuple([ct is not None for ct, _ in results])
