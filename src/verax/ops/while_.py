"""Floor 2: `while`, a loop that runs until its predicate fails.

One idea: as in `scan`, a fixpoint finds out which carries take part, then the body is
rewritten once. Lanes that have ended keep their carry by a choice, whatever the body
makes of them, so no NaN comes out of them; how long the loop runs is known only while
it runs, so it has no transpose::

    c = while[cond_jaxpr={ lambda ; c. ... } body_jaxpr={ lambda ; c. ... } ...] c
"""

from collections.abc import Sequence
from typing import Any

from attrs import evolve

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Jaxpr
from verax.ops.choose import select
from verax.ops.programs import (
    Mask,
    batched_results,
    chosen,
    either,
    filled,
    fixpoint,
    forced_batch,
    forced_jvp,
    inlined,
    instantiated,
    live,
    merged,
    nonzeros,
    program,
    unknowns,
    waiting,
    with_inputs,
)
from verax.ops.reduce import reduce_or
from verax.ops.scan_params import cut
from verax.ops.sequential import one_by_one
from verax.ops.shape import at_front, broadcast_in_dim
from verax.ops.while_params import (
    WhileParams,
    evaluate_while,
    lower_while,
    while_typing,
)
from verax.rules.array import Array
from verax.rules.row import (
    Axis,
    Engine,
    Known,
    Linear,
    MissingRule,
    Row,
    Split,
    Tangent,
)


def on_more(jaxpr: Jaxpr, extra: Sequence[ShapedArray]) -> Jaxpr:
    """The predicate on carries that it does not look at."""
    if not extra:
        return jaxpr
    count = len(jaxpr.invars)
    return program((*jaxpr.in_avals, *extra), lambda *xs: inlined(jaxpr, xs[:count]))


def jvp_while(
    engine: Engine,
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
    given = [
        instantiated(engine, t, x.aval)
        for t, x, flag in zip(t_carry, carry, mask, strict=True)
        if flag
    ]
    params = evolve(
        p,
        body_jaxpr=program(types, body),
        body_nconsts=len(body_consts) + sum(fixed),
        cond_jaxpr=on_more(p.cond_jaxpr, [t.aval for t in given]),
    )
    outs = while_p.bind(
        params, *cond_consts, *body_consts, *live(t_consts), *carry, *given
    )
    return outs[: len(carry)], filled(mask, outs[len(carry) :], p.carry)


def transpose_while(
    engine: Engine, p: WhileParams, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    raise MissingRule(
        "reverse-mode differentiation does not go through while_loop, nor through "
        "fori_loop with bounds that are not known while tracing, since the number of "
        "steps to store is not known. Use scan, or fori_loop with bounds that are "
        "Python integers, or forward mode (jvp, jacfwd)"
    )


def batch_while(
    engine: Engine,
    p: WhileParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """Carries that are the same for all elements stay one, if all end together.

    A sequential loop, or one with effects, whose elements end at different times runs
    for one after another.
    """
    cond_consts, body_consts, carry = p.parts(args)
    cond_axes, body_axes, start = p.parts(axes)

    def places(mask: Mask) -> tuple[Axis, ...]:
        return tuple([0 if flag else None for flag in mask])

    def apart(mask: Mask) -> bool:
        """Whether elements end at different times."""
        inner = (*cond_axes, *places(mask))
        return batched_results(engine, p.cond_jaxpr, size, inner)[0]

    def step(mask: Mask) -> Mask:
        inner = (*body_axes, *places(mask))
        found = batched_results(engine, p.body_jaxpr, size, inner)
        return either(found, changed) if apart(mask) else found

    changed = tuple(
        [
            out != var
            for out, var in zip(
                p.body_jaxpr.outvars,
                p.body_jaxpr.invars[p.body_nconsts :],
                strict=True,
            )
        ]
    )
    mask = fixpoint(tuple([axis is not None for axis in start]), step)
    if (p.sequential or p.effects) and apart(mask):
        return one_by_one(lambda *xs: while_p.bind(p, *xs), size, args, axes)
    body = forced_batch(engine, p.body_jaxpr, size, (*body_axes, *places(mask)), mask)
    lanes = apart(mask)
    cond = forced_batch(
        engine, p.cond_jaxpr, size, (*cond_axes, *places(mask)), (lanes,)
    )
    given = [
        at_front(x, axis, size) if flag else x
        for x, axis, flag in zip(carry, start, mask, strict=True)
    ]
    if not lanes:
        params = evolve(p, body_jaxpr=body, cond_jaxpr=cond)
        outs = list(while_p.bind(params, *cond_consts, *body_consts, *given))
    else:
        outs = while_lanes(cond, body, mask, cond_consts, body_consts, given)
    return outs, places(mask)


def while_lanes(
    cond: Jaxpr,
    body: Jaxpr,
    mask: Mask,
    cond_consts: Sequence[Array],
    body_consts: Sequence[Array],
    carry: Sequence[Array],
) -> list[Array]:
    """A loop until every lane has ended; it carries which lanes go on."""
    (going,) = inlined(cond, [*cond_consts, *carry])
    consts = (*cond_consts, *body_consts)
    counts = (len(cond_consts), len(body_consts), 1, len(carry))

    def step(*xs: Array) -> Sequence[object]:
        for_cond, for_body, (on,), before = cut(counts, xs)
        after = [
            keep(on, new, old) if flag else new
            for new, old, flag in zip(
                inlined(body, [*for_body, *before]), before, mask, strict=True
            )
        ]
        return [*inlined(cond, [*for_cond, *after]), *after]

    types = [x.aval for x in (going, *carry)]
    params = WhileParams(
        program([*[x.aval for x in consts], *types], step),
        len(consts),
        program(types, lambda on, *rest: [reduce_or(on, (0,))]),
        0,
    )
    return list(while_p.bind(params, *consts, going, *carry)[1:])


def keep(going: Array, new: Array, old: Array) -> Array:
    """The new values in lanes that go on, the old ones in the others."""
    return select(broadcast_in_dim(going, new.shape, (0,)), new, old)


def split_while(engine: Engine, p: WhileParams, args: Sequence[Known]) -> Split:
    """The known carries now; later the whole loop again, for the others."""
    unknown = unknowns(args)
    cond_consts, body_consts, start = p.parts(unknown)

    def step(mask: Mask) -> Mask:
        return engine.split(p.body_jaxpr, (*body_consts, *mask))[2]

    mask = fixpoint(tuple(start), step)
    ends = (*cond_consts, *mask)
    if all(mask) or engine.split(p.cond_jaxpr, ends)[2][0]:
        return waiting(args, len(mask), lambda *xs: while_p.bind(p, *xs))
    wanted = tuple([not flag for flag in mask])
    slim, needed, _ = dce_while(engine, p, wanted)
    if any(isinstance(x, Linear) for x in chosen(needed, args)):
        return waiting(args, len(mask), lambda *xs: while_p.bind(p, *xs))
    known = [x for x in args if isinstance(x, Array)]
    operands = [x for x in chosen(needed, args) if isinstance(x, Array)]
    kept = p.parts(needed)[2]
    outs = dict(
        zip(
            [i for i, flag in enumerate(kept) if flag],
            while_p.bind(slim, *operands),
            strict=True,
        )
    )

    def finish(
        residuals: Sequence[Array], operands: Sequence[Array]
    ) -> Sequence[Array]:
        whole = while_p.bind(p, *merged(unknown, operands, residuals))
        return chosen(mask, whole)

    return Split(
        tuple([None if flag else outs[i] for i, flag in enumerate(mask)]),
        tuple(known),
        finish,
    )


def dce_while(
    engine: Engine, p: WhileParams, used: Mask
) -> tuple[WhileParams, Mask, Mask]:
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
    return params, (*cond_consts, *body_consts, *mask), mask


while_p: Row[WhileParams] = Row(
    "while",
    WhileParams,
    typing=while_typing,
    evaluate=evaluate_while,
    jvp=jvp_while,
    transpose=transpose_while,
    batch=batch_while,
    lower=lower_while,
    split=split_while,
    dce=dce_while,
    compiled=True,
)

ROWS: tuple[Row[Any], ...] = (while_p,)
