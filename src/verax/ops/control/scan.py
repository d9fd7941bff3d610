"""Floor 2: `scan`, a loop of known length over the rows of arrays.

One idea: a loop is its body, so each rule rewrites the body once, after finding out by
a fixpoint which carries take part (have a tangent, are batched, unknown or used); the
program never grows with the length::

    c ys = scan[jaxpr={ lambda ; const carry x. let ... in (carry, y) } ...] const c xs
"""

from collections.abc import Callable, Sequence

import numpy as np
from attrs import evolve

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import stored_dtype
from verax.ir.jaxpr import Params
from verax.ir.meshes import terms_of
from verax.ops.calls.call import (
    batched_results,
    carried,
    elements,
    flags_of,
    forced_batch,
    forced_jvp,
    inlined,
    same_types,
    stored_shape,
    width_of,
    with_inputs,
    with_state_carried,
)
from verax.ops.control.scan_params import (
    ScanParams,
    cut,
    in_order,
    in_turns,
    lower_scan,
)
from verax.ops.control.scan_rules import Bind, split_scan, transpose_scan
from verax.ops.structure.shape import at_front, move_axis
from verax.rules.rows.bodies import (
    Role,
    Through,
    Types,
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
    filled,
    fixpoint,
    live,
    merged,
    nonzeros,
    others,
)
from verax.rules.rows.row import (
    Axis,
    DceRule,
    Engine,
    EvaluateRule,
    Known,
    LowerRule,
    NDArray,
    Row,
    Rows,
    Split,
    Tangent,
    Traits,
    TypeRule,
    Work,
    as_typed,
)
from verax.rules.values.array import Array
from verax.rules.values.conversions import ShardingTypeError

# -----------------------------------------------------------------------------
# Rows whose rules write their own primitive again.
#
# A loop and its variant with a memory plan share their rules, so a rule is not tied to
# a row: it is given `bind`, which writes another equation of the row's own kind::
#
#     scan_p = loop_row("scan", ScanParams, jvp=jvp_scan, batch=batch_scan, ...)


type LoopJvp[P] = Callable[
    [Engine, Bind, P, Sequence[Array], Sequence[Tangent]],
    tuple[Sequence[Array], Sequence[Tangent]],
]
type LoopTranspose[P] = Callable[
    [Engine, Bind, P, Sequence[Tangent], Sequence[Known]], Sequence[Tangent | None]
]
type LoopBatch[P] = Callable[
    [Engine, Bind, P, int, Sequence[Array], Sequence[Axis]],
    tuple[Sequence[Array], Sequence[Axis]],
]
type LoopThread[P] = Callable[[Through, Bind, P, Values], Values]
type LoopSplit[P] = Callable[[Engine, Bind, P, Sequence[Known]], Split]


def loop_row[P: Params](
    name: str,
    kind: type[P],
    *,
    typing: TypeRule[P],
    evaluate: EvaluateRule[P],
    jvp: LoopJvp[P],
    transpose: LoopTranspose[P],
    batch: LoopBatch[P],
    lower: LowerRule[P],
    split: LoopSplit[P],
    dce: DceRule[P],
    thread: LoopThread[P],
) -> Row[P]:
    """A compiled row; the rules that write loops get `bind` after the engine."""

    def bind(p: P, *args: Array) -> tuple[Array, ...]:
        return row.bind(p, *args)

    row: Row[P] = Row(
        name,
        kind,
        typing=typing,
        evaluate=evaluate,
        jvp=lambda engine, p, xs, ts: jvp(engine, bind, p, xs, ts),
        transpose=lambda engine, p, cts, args: transpose(engine, bind, p, cts, args),
        batch=lambda engine, p, size, args, axes: batch(
            engine, bind, p, size, args, axes
        ),
        lower=lower,
        split=lambda engine, p, args: split(engine, bind, p, args),
        dce=dce,
        thread=lambda through, p, values: thread(through, bind, p, values),
        traits=Traits(Work.BLOCK, loop=True),
        compiled=True,
        multiple_results=True,
        sharding=as_typed,
    )
    return row


# -----------------------------------------------------------------------------
# `scan`, a loop of known length over the rows of arrays.


def row_type(x: ShapedArray) -> ShapedArray:
    """The type of one row."""
    return x.element()


def scan_typing(p: ScanParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    consts, carry, xs = p.parts(avals)
    for x in xs:
        if not x.shape or x.shape[0] != p.length:
            raise TypeError(
                f"scan of {p.length} steps takes arrays whose first dimension has "
                f"that size, not {x}"
            )
    for x in (*xs, *p.results(p.jaxpr.out_avals)[1]):
        if terms_of(x.explicit).unreduced:  # XLA loses sight of them in the stack
            raise ShardingTypeError(
                f"scan takes and returns no rows of what is unreduced, as {x} is: make "
                "the sums first, with verax.sharding.reshard"
            )
    given = (*consts, *carry, *map(row_type, xs))
    if not same_types(p.jaxpr.in_avals, given):
        raise TypeError(f"the body of scan takes {p.jaxpr.in_avals}, not {given}")
    carry_out, ys = p.results(p.jaxpr.out_avals)
    if not same_types(carry_out, carry):
        raise TypeError(
            f"the body of scan takes carries {carry} but returns {carry_out}"
        )
    return [*carry_out, *[y.stacked(p.length) for y in ys]]


def evaluate_scan(
    engine: Engine, p: ScanParams, args: Sequence[NDArray]
) -> Sequence[NDArray]:
    consts, carry, xs = p.parts(args)
    ys = [
        np.zeros((p.length, *stored_shape(y)), stored_dtype(y.dtype))
        for y in p.results(p.jaxpr.out_avals)[1]
    ]
    steps = range(p.length)
    for i in reversed(steps) if p.reverse else steps:
        rows = [np.asarray(x[i]) for x in xs]
        carry, result = p.results(engine.evaluate(p.jaxpr, [*consts, *carry, *rows]))
        for y, row in zip(ys, result, strict=True):
            y[i] = row
    return [*carry, *ys]


def jvp_scan[P: ScanParams](
    engine: Engine,
    bind: Bind,
    p: P,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    consts, carry, xs = p.parts(primals)
    t_consts, t_carry, t_xs = p.parts(tangents)
    fixed, moving = nonzeros(t_consts), nonzeros(t_xs)

    def pushed(mask: Mask) -> Mask:
        return engine.jvp(p.jaxpr, (*fixed, *mask, *moving))[1]

    mask = fixpoint(nonzeros(t_carry), lambda m: pushed(m)[: p.num_carry])
    out_mask = (*mask, *pushed(mask)[p.num_carry :])
    jaxpr = forced_jvp(engine, p.jaxpr, (*fixed, *mask, *moving), out_mask)
    given = arrays_of(engine, mask, t_carry, [x.aval for x in carry])
    counts = (len(consts), len(carry), len(xs), sum(fixed), len(given), sum(moving))
    body = program(
        in_turns(counts, jaxpr.in_avals),
        lambda *args: out_turns(p, mask, inlined(jaxpr, in_order(counts, args))),
    )
    both = [*consts, *live(t_consts)], [*carry, *given], [*xs, *live(t_xs)]
    linear = [
        flag
        for primal, tangent in zip(
            p.parts(p.linear), (sum(fixed), len(given), sum(moving)), strict=True
        )
        for flag in (*primal, *[True] * tangent)
    ]
    params = evolve(
        p,
        jaxpr=body,
        linear=tuple(linear),
        num_carry=len(both[1]),
        num_consts=len(both[0]),
    )
    outs = bind(params, *both[0], *both[1], *both[2])
    return separated(p, mask, out_mask, outs)


def out_turns[T](p: ScanParams, mask: Mask, outs: Sequence[T]) -> list[T]:
    """(carries, rows, their tangents) with the tangents of carries by the carries."""
    count = len(p.jaxpr.outvars)
    tangents, moved = outs[count:], sum(mask)
    carry, ys = p.results(outs[:count])
    return [*carry, *tangents[:moved], *ys, *tangents[moved:]]


def separated(
    p: ScanParams, mask: Mask, out_mask: Mask, outs: Sequence[Array]
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """Results and tangents of a loop whose body ends in `out_turns`."""
    rows = len(p.jaxpr.outvars) - p.num_carry
    carry, t_carry, ys, t_ys = cut(
        (p.num_carry, sum(mask), rows, sum(out_mask) - sum(mask)), outs
    )
    results = [*carry, *ys]
    avals = [x.aval for x in results]
    return results, filled(out_mask, [*t_carry, *t_ys], avals)


def batch_scan(
    engine: Engine,
    bind: Bind,
    p: ScanParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """Carries that are the same for all elements stay one."""
    consts, carry, xs = p.parts(args)
    fixed, start, rows = p.parts(axes)
    # The dimension of the batch may not be that of the steps.
    xs = [
        move_axis(x, 0, 1) if axis == 0 else x for x, axis in zip(xs, rows, strict=True)
    ]
    inner = [None if axis is None else max(axis - 1, 0) for axis in rows]

    def axes_of(mask: Mask) -> tuple[Axis, ...]:
        return (*fixed, *[0 if flag else None for flag in mask], *inner)

    def compute(mask: Mask) -> Mask:
        return batched_results(engine, p.jaxpr, size, axes_of(mask))

    begun = tuple([axis is not None for axis in start])
    mask = fixpoint(begun, lambda m: compute(m)[: p.num_carry])
    out_mask = (*mask, *compute(mask)[p.num_carry :])
    jaxpr = forced_batch(engine, p.jaxpr, size, axes_of(mask), out_mask)
    given = [
        at_front(x, axis, size) if flag else x
        for x, axis, flag in zip(carry, start, mask, strict=True)
    ]
    outs = bind(evolve(p, jaxpr=jaxpr), *consts, *given, *xs)
    first, rest = p.results(out_mask)
    return outs, [
        *[0 if flag else None for flag in first],
        *[1 if flag else None for flag in rest],
    ]


def dce_scan[P: ScanParams](engine: Engine, p: P, used: Mask) -> tuple[P, Mask, Mask]:
    expected, ys = p.results(used)

    def needed(mask: Mask) -> Mask:
        return engine.dce(p.jaxpr, (*mask, *ys))[1]

    mask = fixpoint(tuple(expected), lambda m: p.parts(needed(m))[1])
    jaxpr, has = engine.dce(p.jaxpr, (*mask, *ys))
    consts, _, xs = p.parts(has)
    kept = (*consts, *mask, *xs)
    params = evolve(
        p,
        jaxpr=with_inputs(jaxpr, has, kept, p.jaxpr.in_avals),
        linear=tuple(chosen(kept, p.linear)),
        num_carry=sum(mask),
        num_consts=sum(consts),
    )
    return params, kept, (*mask, *ys)


def thread_scan(through: Through, bind: Bind, p: ScanParams, values: Values) -> Values:
    """A loop over the rows of all parts; a carry has all of its parts or is plain."""
    consts, carry, xs = p.parts(values)
    fixed = list(map(types_of, consts))
    rows = [elements(types_of(x)) for x in xs]

    def results(types: Sequence[Types]) -> tuple[list[Types], list[Types]]:
        return p.results(through.outputs(0, (*fixed, *types, *rows)))

    start = carried(through, carry, width_of(values), lambda types: results(types)[0])
    due = list(map(types_of, start))
    ys = results(due)[1]
    state = through.enter(Role.STEP)
    jaxpr = through.program(0, Role.STEP, (*fixed, *due, *rows), [*due, *ys])
    counts = len(flat(fixed)), len(flat(due)), len(state)
    end = sum(counts[:2])
    flags = flags_of([*consts, *start, *xs], p.linear)
    params = evolve(
        p,
        jaxpr=with_state_carried(jaxpr, *counts),
        linear=(*flags[:end], *[False] * len(state), *flags[end:]),
        num_carry=counts[1] + counts[2],
        num_consts=counts[0],
    )
    outs = bind(params, *flat(consts), *flat(start), *state, *flat(xs))
    moved, last, stacks = cut((counts[1], counts[2], len(flat(ys))), outs)
    through.leave(Role.STEP, last)
    return grouped([*due, *ys], [*moved, *stacks])


def scanning[P: ScanParams](
    name: str,
    kind: type[P],
    split: LoopSplit[P],
    transpose: LoopTranspose[P],
) -> Row[P]:
    """The row of a loop over rows, which differs in how it is run backwards."""
    return loop_row(
        name,
        kind,
        typing=scan_typing,
        evaluate=evaluate_scan,
        jvp=jvp_scan,
        transpose=transpose,
        batch=batch_scan,
        lower=lower_scan,
        split=split,
        dce=dce_scan,
        thread=thread_scan,
    )


scan_p = scanning("scan", ScanParams, split_scan, transpose_scan)

ROWS: Rows = (scan_p,)


# -----------------------------------------------------------------------------
# Vmap of an equation as a loop over the batch elements, one after another.
#
# A scan whose body is the equation on the operands of one element. A choice
# in it stays a choice, so only the branch that a batch element takes runs, and effects
# happen in the order of the batch elements::
#
#     ys = scan[jaxpr={ lambda ; x. let y = cond[...] x in (y,) } length=8 ...] xs


def one_by_one(
    call: Callable[..., Sequence[Array]],
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """The results of `call` for each of `size` batch elements, in their order.

    `call` binds the equation to operands of one element. This is a whole batch rule: a
    row whose equations must not run side by side ends its own with it::

        return one_by_one(lambda *xs: row.bind(p, *xs), size, args, axes)
    """
    mapped = [axis is not None for axis in axes]
    fixed = others(mapped, args)
    rows = [
        move_axis(x, axis, 0)
        for x, axis in zip(args, axes, strict=True)
        if axis is not None
    ]
    count = len(fixed)
    types = [*[x.aval for x in fixed], *[row_type(x.aval) for x in rows]]
    lane = program(types, lambda *xs: call(*merged(mapped, xs[count:], xs[:count])))
    linear = (False,) * len(types)
    params = ScanParams(lane, size, linear, 0, count, False, 1)
    outs = scan_p.bind(params, *fixed, *rows)
    return outs, [0] * len(outs)
