"""Floor 2: `while`, a loop that runs until its predicate fails.

One idea: as in `scan`, a fixpoint finds out which carries take part, then the body is
rewritten once. Lanes that have ended keep their carry by a choice, whatever the body
makes of them, so no NaN comes out of them; how long the loop runs is known only while
it runs, so it has no transpose::

    c = while[cond_jaxpr={ lambda ; c. ... } body_jaxpr={ lambda ; c. ... } ...] c
"""

from collections.abc import Sequence

from attrs import evolve

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import int32
from verax.ir.effects import CHECKS
from verax.ir.jaxpr import Jaxpr
from verax.ir.walk import map_subjaxprs
from verax.ops.calls.call import (
    batched_results,
    carried,
    flags_of,
    forced_batch,
    forced_jvp,
    inlined,
    waiting,
    width_of,
    with_inputs,
)
from verax.ops.calls.callbacks import for_all_parts, silenced
from verax.ops.control.cond import cond_p
from verax.ops.control.cond_params import CondParams
from verax.ops.control.scan import LoopSplit, LoopTranspose, loop_row, one_by_one
from verax.ops.control.scan_params import cut
from verax.ops.control.scan_rules import Bind
from verax.ops.control.while_params import (
    WhileParams,
    evaluate_while,
    linear_flags,
    lower_while,
    while_typing,
)
from verax.ops.elementwise.select import select
from verax.ops.reductions.reduce import reduce_or
from verax.ops.structure.create import zeros
from verax.ops.structure.shape import at_front, broadcast_in_dim
from verax.rules.rows.bodies import (
    Role,
    Through,
    Values,
    flat,
    grouped,
    types_of,
)
from verax.rules.rows.builder import program
from verax.rules.rows.infer import (
    Mask,
    arrays_of,
    chosen,
    either,
    filled,
    fixpoint,
    knowns,
    live,
    merged,
    nonzeros,
    unknowns,
)
from verax.rules.rows.row import (
    Axis,
    Engine,
    IrreversibleLoop,
    Known,
    Linear,
    MissingRule,
    Row,
    Rows,
    Split,
    Tangent,
)
from verax.rules.values.array import Array
from verax.rules.values.state import STATE


def on_more(jaxpr: Jaxpr, extra: Sequence[ShapedArray]) -> Jaxpr:
    """The predicate on carries that it does not look at."""
    if not extra:
        return jaxpr
    count = len(jaxpr.invars)
    return program((*jaxpr.in_avals, *extra), lambda *xs: inlined(jaxpr, xs[:count]))


def jvp_while(
    engine: Engine,
    bind: Bind,
    p: WhileParams,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    cond_consts, body_consts, carry = p.parts(primals)
    _, t_consts, t_carry = p.parts(tangents)
    fixed = nonzeros(t_consts)
    mask = fixpoint(
        nonzeros(t_carry), lambda m: engine.jvp(p.body_jaxpr, (*fixed, *m))[1]
    )
    jaxpr = forced_jvp(engine, p.body_jaxpr, (*fixed, *mask), mask)
    counts = (len(body_consts), sum(fixed), len(carry), sum(mask))

    def body(*xs: Array) -> Sequence[object]:
        consts, t_consts, carry, t_carry = cut(counts, xs)
        return inlined(jaxpr, [*consts, *carry, *t_consts, *t_carry])

    primal_types, tangent_types = cut(
        (len(primals) - len(cond_consts), sum(fixed) + sum(mask)), jaxpr.in_avals
    )
    types = [
        *primal_types[: len(body_consts)],
        *tangent_types[: sum(fixed)],
        *primal_types[len(body_consts) :],
        *tangent_types[sum(fixed) :],
    ]
    given = arrays_of(engine, mask, t_carry, [x.aval for x in carry])
    flags = linear_flags(p, len(primals))
    for_cond, for_body, moving = p.parts(flags)
    params = evolve(
        p,
        body_jaxpr=program(types, body),
        body_nconsts=len(body_consts) + sum(fixed),
        cond_jaxpr=on_more(p.cond_jaxpr, [t.aval for t in given]),
    ).with_linear(
        (
            *for_cond,
            *for_body,
            *[True] * sum(fixed),
            *moving,
            *[True] * sum(mask),
        )
    )
    outs = bind(params, *cond_consts, *body_consts, *live(t_consts), *carry, *given)
    return outs[: len(carry)], filled(mask, outs[len(carry) :], p.carry)


def transpose_while(
    engine: Engine,
    bind: Bind,
    p: WhileParams,
    cts: Sequence[Tangent],
    args: Sequence[Known],
) -> Sequence[Tangent | None]:
    raise IrreversibleLoop(
        "Reverse-mode differentiation does not work for lax.while_loop, nor for "
        "lax.fori_loop with bounds that are not known while tracing, since the number "
        "of steps to store is unknown. Give the loop a bound (such as "
        "max_steps=1000), or use scan, fori_loop with Python integers as bounds, or "
        "forward mode (jvp, jacfwd)"
    )


def batch_while(
    engine: Engine,
    bind: Bind,
    p: WhileParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """Carries that are the same for all elements stay one, if all end together.

    A sequential loop, or one with effects other than checks, whose elements end at
    different times runs for one after another.
    """
    cond_consts, body_consts, carry = p.parts(args)
    cond_axes, body_axes, start = p.parts(axes)

    def axes_of(mask: Mask) -> tuple[Axis, ...]:
        return tuple([0 if flag else None for flag in mask])

    def apart(mask: Mask) -> bool:
        """Whether elements end at different times."""
        inner = (*cond_axes, *axes_of(mask))
        return batched_results(engine, p.cond_jaxpr, size, inner)[0]

    def step(mask: Mask) -> Mask:
        inner = (*body_axes, *axes_of(mask))
        out = batched_results(engine, p.body_jaxpr, size, inner)
        return either(out, changed) if apart(mask) else out

    before = p.body_jaxpr.invars[p.body_nconsts :]
    pairs = zip(p.body_jaxpr.outvars, before, strict=True)
    changed = tuple([out != var for out, var in pairs])
    mask = fixpoint(tuple([axis is not None for axis in start]), step)
    lanes = apart(mask)
    if lanes and (p.sequential or not p.effects <= CHECKS):
        alone = for_all_parts(engine, p)
        return one_by_one(lambda *xs: bind(alone, *xs), size, args, axes)
    cond = forced_batch(
        engine, p.cond_jaxpr, size, (*cond_axes, *axes_of(mask)), (lanes,)
    )
    given = [
        at_front(x, axis, size) if flag else x
        for x, axis, flag in zip(carry, start, mask, strict=True)
    ]
    inner = (*body_axes, *axes_of(mask))
    if lanes:
        body = lanes_body(engine, p, size, inner, mask)
        params = until_all_end(p, cond, body)
        going = inlined(cond, [*cond_consts, *given])
        outs = bind(params, *cond_consts, *body_consts, *going, *given)[1:]
    else:
        body = forced_batch(engine, p.body_jaxpr, size, inner, mask)
        params = evolve(p, body_jaxpr=body, cond_jaxpr=cond)
        outs = bind(params, *cond_consts, *body_consts, *given)
    return outs, axes_of(mask)


def until_all_end(p: WhileParams, cond: Jaxpr, body: Jaxpr) -> WhileParams:
    """A loop until all batch elements have ended; the first carry says which go on.

    `cond` is the predicate of all batch elements, `body` the step on (which go on,
    constants, carries).
    """
    count = len(p.carry)
    counts = (p.cond_nconsts, p.body_nconsts, 1, count)

    def step(*xs: Array) -> Sequence[object]:
        for_cond, for_body, on, before = cut(counts, xs)
        after = inlined(body, [*on, *for_body, *before])
        return [*inlined(cond, [*for_cond, *after]), *after]

    for_cond, carry = cut((p.cond_nconsts, count), cond.in_avals)
    (on,), for_body, _ = cut((1, p.body_nconsts, count), body.in_avals)
    flags = linear_flags(p, sum(counts) - 1)
    consts = p.cond_nconsts + p.body_nconsts
    return evolve(
        p,
        body_jaxpr=program([*for_cond, *for_body, on, *carry], step),
        body_nconsts=consts,
        cond_jaxpr=program([on, *carry], lambda on, *rest: [reduce_or(on, (0,))]),
        cond_nconsts=0,
    ).with_linear((*flags[:consts], False, *flags[consts:]))


def lanes_body(
    engine: Engine, p: WhileParams, size: int, axes: tuple[Axis, ...], mask: Mask
) -> Jaxpr:
    """The step over all batch elements; those that have ended stay as before.

    Where the loop may run backwards, the step is a choice for each batch element: the
    cotangent of a batch element that has ended goes around the step, not through it
    times zero. The same holds of checks: what the step makes of an element that has
    ended is not checked.
    """
    consts, carry = cut((p.body_nconsts, len(mask)), p.body_jaxpr.in_avals)
    on = p.cond_jaxpr.out_avals[0]
    if p.reversible or p.body_jaxpr.effects or STATE.checking:

        def chosen_step(on: Array, *xs: Array) -> Sequence[object]:
            before = xs[len(consts) :]
            index = engine.core.convert(on, int32)
            slim = chosen_outputs(p.body_jaxpr, mask)
            unchanged = program(
                slim.in_avals, lambda *ys: alike(engine, ys[len(consts) :], mask, slim)
            )
            branches = (unchanged, slim)
            after = iter(cond_p.bind(CondParams(branches), index, *xs))
            return [
                next(after) if flag else x for x, flag in zip(before, mask, strict=True)
            ]

        choice = program([on, *consts, *carry], chosen_step)
        return forced_batch(engine, choice, size, (0, *axes), mask)
    body = forced_batch(engine, p.body_jaxpr, size, axes, mask)

    def step(on: Array, *xs: Array) -> Sequence[object]:
        pairs = zip(inlined(body, xs), xs[len(consts) :], mask, strict=True)
        return [keep(on, new, old) if flag else new for new, old, flag in pairs]

    return program([on.stacked(size, 0), *body.in_avals], step)


def chosen_outputs(jaxpr: Jaxpr, mask: Mask) -> Jaxpr:
    """The program of the outputs that the mask marks, on all inputs."""
    return evolve(jaxpr, outvars=tuple(chosen(mask, jaxpr.outvars)))


def alike(
    engine: Engine, carry: Sequence[Array], mask: Mask, jaxpr: Jaxpr
) -> list[Array]:
    """The marked carries in the types of the outputs of `jaxpr`."""
    return [
        engine.core.convert(x, aval.dtype, aval.weak_type) if x.aval != aval else x
        for x, aval in zip(chosen(mask, carry), jaxpr.out_avals, strict=True)
    ]


def keep(going: Array, new: Array, old: Array) -> Array:
    """The new values in batch elements that go on, the old ones in the others."""
    return select(broadcast_in_dim(going, new.shape, (0,)), new, old)


def split_while[P: WhileParams](
    engine: Engine, bind: Bind, p: P, args: Sequence[Known]
) -> Split:
    """The known carries now; later the whole loop again, for the others."""
    unknown = unknowns(args)
    cond_consts, body_consts, start = p.parts(unknown)

    def step(mask: Mask) -> Mask:
        return engine.split(p.body_jaxpr, (*body_consts, *mask))[2]

    mask = fixpoint(tuple(start), step)
    ends = (*cond_consts, *mask)
    if all(mask) or engine.split(p.cond_jaxpr, ends)[2][0]:
        return waiting(args, len(mask), lambda *xs: bind(p, *xs))
    expected = tuple([not flag for flag in mask])
    slim, needed, _ = dce_while(engine, p, expected)
    given = chosen(needed, args)
    if p.effects and any(isinstance(x, Linear) for x in given):
        return waiting(args, len(mask), lambda *xs: bind(p, *xs))
    again = repeated(p)
    kept = p.parts(needed)[2]
    places = [i for i, flag in enumerate(kept) if flag]
    # An unknown operand is needed by its place alone, such as that of a call which does
    # not read it: the known carries do not depend on what it is.
    result = bind(slim, *[zeros(x.aval) if isinstance(x, Linear) else x for x in given])
    outs = dict(zip(places, result, strict=True))

    def finish(
        residuals: Sequence[Array], operands: Sequence[Array]
    ) -> Sequence[Array]:
        whole = bind(again, *merged(unknown, operands, residuals))
        return chosen(mask, whole)

    return Split(
        tuple([None if flag else outs[i] for i, flag in enumerate(mask)]),
        tuple(knowns(args)),
        finish,
    )


def repeated[P: WhileParams](p: P) -> P:
    """The loop as it is computed again: effects have happened the first time."""
    again = map_subjaxprs(p, silenced, aside=False)
    if again.effects:
        raise MissingRule(
            "while_loop with an io_callback inside cannot be linearized: the "
            "callback's results of every step would have to be saved, and their "
            "number is known only at run time. Use scan, or forward mode (jvp, jacfwd)"
        )
    return again


def dce_while[P: WhileParams](engine: Engine, p: P, used: Mask) -> tuple[P, Mask, Mask]:
    """The carries that the predicate, the wanted ones, or these in turn, need."""
    cond, for_cond = engine.dce(p.cond_jaxpr, (True,))
    start = either(used, for_cond[p.cond_nconsts :])

    def step(mask: Mask) -> Mask:
        return engine.dce(p.body_jaxpr, mask)[1][p.body_nconsts :]

    mask = fixpoint(start, step)
    body, for_body = engine.dce(p.body_jaxpr, mask)
    cond_consts = for_cond[: p.cond_nconsts]
    body_consts = for_body[: p.body_nconsts]
    params = evolve(
        p,
        body_jaxpr=with_inputs(
            body, for_body, (*body_consts, *mask), p.body_jaxpr.in_avals
        ),
        body_nconsts=sum(body_consts),
        cond_jaxpr=with_inputs(
            cond, for_cond, (*cond_consts, *mask), p.cond_jaxpr.in_avals
        ),
        cond_nconsts=sum(cond_consts),
    )
    kept = (*cond_consts, *body_consts, *mask)
    flags = linear_flags(p, len(kept))
    return params.with_linear(tuple(chosen(kept, flags))), kept, mask


def thread_while(
    through: Through, bind: Bind, p: WhileParams, values: Values
) -> Values:
    """A loop on all parts; the predicate is plain, and may change the state.

    If it does, what it says is one more carry, so that it runs as often as before.
    """
    consts, fixed, carry = p.parts(values)
    inner = list(map(types_of, fixed))
    start = carried(
        through,
        carry,
        width_of(values),
        lambda types: through.outputs(0, (*inner, *types)),
    )
    due = list(map(types_of, start))
    before = list(map(types_of, consts))
    step = through.program(0, Role.STEP, (*inner, *due), due)
    go_type = p.cond_jaxpr.out_avals[0]
    test = through.program(1, Role.TEST, (*before, *due), [(go_type,)])
    state = through.enter(Role.STEP)
    c, b, n = len(flat(before)), len(flat(inner)), len(flat(due))
    operands = [*flat(consts), *flat(fixed), *flat(start), *state]
    own = flags_of([*consts, *fixed, *start], linear_flags(p, len(values)))
    flags = [*own, *[False] * len(state)]
    asked = through.tells(1)
    if asked:

        def body(*ins: Array) -> Sequence[object]:
            outs = inlined(step, [*ins[c : c + b], *ins[c + b + 1 :]])
            go, *told = inlined(test, [*ins[:c], *outs])
            return [go, *outs[:n], *told]

        told = inlined(test, [*operands[:c], *operands[c + b :]])
        moving = (go_type, *step.in_avals[b:])
        params = evolve(
            p,
            body_jaxpr=program([*test.in_avals[:c], *step.in_avals[:b], *moving], body),
            body_nconsts=c + b,
            cond_jaxpr=program(moving, lambda go, *rest: [go]),
            cond_nconsts=0,
        )
        operands = [*operands[: c + b], told[0], *flat(start), *told[1:]]
        flags = [*flags[: c + b], False, *flags[c + b :]]
    else:
        params = evolve(
            p, body_jaxpr=step, body_nconsts=b, cond_jaxpr=test, cond_nconsts=c
        )
    outs = bind(params.with_linear(tuple(flags)), *operands)
    outs = outs[1:] if asked else outs
    through.leave(Role.STEP, outs[n:])
    return grouped(due, outs[:n])


def looping[P: WhileParams](
    name: str,
    kind: type[P],
    split: LoopSplit[P],
    transpose: LoopTranspose[P],
) -> Row[P]:
    """The row of a loop with a predicate, which differs in how it is run backwards."""
    return loop_row(
        name,
        kind,
        typing=while_typing,
        evaluate=evaluate_while,
        jvp=jvp_while,
        transpose=transpose,
        batch=batch_while,
        lower=lower_while,
        split=split,
        dce=dce_while,
        thread=thread_while,
    )


while_p = looping("while", WhileParams, split_while, transpose_while)

ROWS: Rows = (while_p,)
