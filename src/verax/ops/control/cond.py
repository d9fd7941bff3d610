"""Floor 2: `cond`, the choice of one program out of several by an index.

One idea: the choice commutes with every transformation, so each rule rewrites the
branches and makes them alike. Under vmap a batched index gives `cond_lanes`, which
means one `cond` for each batch element and is rewritten as such; only where it is run
do all branches run, and each batch element keeps the results of its own, so that what
the others make of it, a NaN, reaches neither values nor derivatives. A sequential
choice, or one with effects, becomes a loop over the batch elements instead::

    c = cond[branches=({ lambda ; a. ... }, { lambda ; a. ... })] index a
"""

from collections.abc import Sequence
from itertools import repeat
from random import Random

import numpy as np
from attrs import evolve

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import int32
from verax.ir.effects import CHECKS
from verax.ir.jaxpr import Jaxpr
from verax.ir.walk import source
from verax.ops.calls.call import (
    Halves,
    batched_results,
    blank,
    common_types,
    elements,
    forced_batch,
    forced_jvp,
    forced_split,
    inlined,
    positions,
    waiting,
    width_of,
    with_inputs,
)
from verax.ops.calls.callbacks import for_all_parts
from verax.ops.control.cond_params import (
    CondLanesParams,
    CondParams,
    PlatformIndexParams,
    choice_for,
    cond_typing,
    evaluate_cond,
    evaluate_lanes,
    lower_cond,
    lower_lanes,
    mapped_operands,
)
from verax.ops.control.scan import one_by_one
from verax.ops.elementwise.select import select_n
from verax.ops.structure.shape import at_front, broadcast, broadcast_in_dim, move_axis
from verax.rules.rows.bodies import (
    Role,
    Through,
    Values,
    flat,
    grouped,
    plain,
    types_of,
)
from verax.rules.rows.builder import program
from verax.rules.rows.infer import (
    Mask,
    arrays_of,
    chosen,
    cotangents,
    either,
    filled,
    knowns,
    live,
    merged,
    nonzeros,
    others,
    unknowns,
)
from verax.rules.rows.row import (
    Axis,
    Engine,
    Known,
    Linear,
    MissingRule,
    Row,
    Rows,
    Sample,
    Split,
    Tangent,
    Traits,
    Work,
    Zero,
    as_typed,
    no_flops,
)
from verax.rules.values.array import Array
from verax.rules.values.conversions import ShardingTypeError

# -----------------------------------------------------------------------------
# Where the branches of a split `cond` keep their residuals.
#
# Only one branch runs, so residuals of one type share a place, what a branch
# does not fill holds anything, and an operand that is saved as it is needs no place::
#
#     plan = slots.plan(half)           # for each residual: an operand, or a place


type Plan = list[tuple[bool, int]]


class Slots:
    """Places for the residuals of all branches; branches share places of one type.

    `forwarded` are the known operands that a branch saves as they are.
    """

    def __init__(self) -> None:
        self.types: list[ShapedArray] = []
        self.forwarded: dict[int, None] = {}

    def plan(self, half: Halves) -> Plan:
        """For each residual of a branch: whether it is an operand, and its place."""
        inputs, taken, plan = positions(half.first), set[int](), []
        for atom in half.residuals():
            if atom in inputs:
                self.forwarded[inputs[atom]] = None
                plan.append((True, inputs[atom]))
                continue
            place = self.free(atom.aval, taken)  # type: ignore[attr-defined]  # an atom
            taken.add(place)
            plan.append((False, place))
        return plan

    def free(self, aval: ShapedArray, taken: set[int]) -> int:
        """A place of this type that the branch does not use yet."""
        for i, result in enumerate(self.types):
            if result is aval and i not in taken:
                return i
        self.types.append(aval)
        return len(self.types) - 1

    def first(self, half: Halves, plan: Plan) -> Jaxpr:
        """The known part of a branch: its results, then something for each place."""
        count = len(half.first.outvars) - half.count

        def body(*xs: Array) -> Sequence[object]:
            outs = inlined(half.first, xs)
            places = {
                place: x
                for (is_input, place), x in zip(plan, outs[count:], strict=True)
                if not is_input
            }
            rest = [places.get(i) for i in range(len(self.types))]
            return outs[:count] + [
                blank(aval) if x is None else x
                for x, aval in zip(rest, self.types, strict=True)
            ]

        return program(half.first.in_avals, body)

    def second(self, half: Halves, plan: Plan) -> Jaxpr:
        """The rest of a branch, on forwarded operands, places, unknown operands."""
        order = list(self.forwarded)
        count, total = len(order), len(order) + len(self.types)

        def body(*xs: Array) -> Sequence[object]:
            saved = [
                xs[order.index(place)] if is_input else xs[count + place]
                for is_input, place in plan
            ]
            return inlined(half.second, [*saved, *xs[total:]])

        avals = half.first.in_avals
        unknown = half.second.in_avals[half.count :]
        return program([*[avals[i] for i in order], *self.types, *unknown], body)


# -----------------------------------------------------------------------------
# `cond`, the choice of one program out of several by an index.


def bind_like(
    p: CondParams,
    branches: Sequence[Jaxpr],
    index: Array,
    operands: Sequence[object],
    mapped: Sequence[bool],
) -> tuple[Array, ...]:
    """Other branches under the same index; if batched, with these operands mapped."""
    if isinstance(p, CondLanesParams):
        lanes = evolve(p, branches=tuple(branches), mapped=tuple(mapped))
        return cond_lanes_p.bind(lanes, index, *operands)
    return cond_p.bind(evolve(p, branches=tuple(branches)), index, *operands)


def jvp_cond(
    engine: Engine,
    p: CondParams,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    index, *operands = primals
    nonzero = nonzeros(tangents[1:])
    mask = either(*[engine.jvp(b, nonzero)[1] for b in p.branches])
    branches = [forced_jvp(engine, b, nonzero, mask) for b in p.branches]
    mapped = mapped_operands(p)
    both = (*mapped, *chosen(nonzero, mapped))
    outs = bind_like(p, branches, index, [*operands, *live(tangents[1:])], both)
    results = outs[: len(mask)]
    return results, filled(mask, outs[len(mask) :], [x.aval for x in results])


def check_varies_as(index: Array, x: Linear) -> None:
    """Raise unless a cotangent can be summed over the devices that take a branch.

    Inside of a branch that only some of them take, they cannot meet.

    Raises:
        ShardingTypeError: the operand is the same on all devices, the choice is not.
    """
    if extra := tuple(sorted(index.aval.vma - x.aval.vma)):
        raise ShardingTypeError(
            f"a choice (cond, switch, or a loop of bounded steps) that differs between "
            f"devices along {extra} is differentiated in {x.aval}, which they all have "
            f"alike: cast it before, by verax.lax.pcast(..., {extra}, to='varying')"
        )


def transpose_cond(
    engine: Engine, p: CondParams, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    index, *operands = args
    if isinstance(index, Linear):
        raise TypeError("cond is not linear in its index")
    for x in operands:
        if isinstance(x, Linear):
            check_varies_as(index, x)
    linear, nonzero = unknowns(operands), nonzeros(cts)
    avals = p.in_avals
    due = cotangents(chosen(linear, avals))
    rewritten = [engine.transpose(b, linear, nonzero) for b in p.branches]
    mask = either(*[flags for _, flags in rewritten])

    def alike(jaxpr: Jaxpr, has: Mask) -> Jaxpr:
        def body(*xs: Array) -> Sequence[object]:
            out = filled(has, inlined(jaxpr, xs), due)
            return arrays_of(engine, mask, out, due)

        return jaxpr if has == mask else program(jaxpr.in_avals, body)

    mapped = mapped_operands(p)
    given = arrays_of(engine, nonzero, cts, cotangents(p.out_avals))
    branches = [alike(jaxpr, has) for jaxpr, has in rewritten]
    flags = (*others(linear, mapped), *[True] * len(given))
    live = iter(bind_like(p, branches, index, [*knowns(operands), *given], flags))
    extra = tuple(range(index.ndim))
    results = iter(mask)

    def pulled(x: Linear, is_mapped: bool) -> Tangent:
        if not next(results):
            return Zero(x.aval)
        ct = next(live)
        return ct if is_mapped or not extra else engine.core.reduce_sum(ct, extra)

    return [
        None,
        *[
            pulled(x, flag) if isinstance(x, Linear) else None
            for x, flag in zip(operands, mapped, strict=True)
        ],
    ]


def batch_cond(
    engine: Engine,
    p: CondParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """The same choice for all elements, or a choice for each."""
    index, *operands = args
    place, *places = axes
    if place is not None and p.platforms is not None:
        # The platform is one for all, whatever has made a batch of its number.
        index, place = platform_index_p.call(PlatformIndexParams(p.platforms)), None
    if place is not None:
        meets = engine.axis is not None and engine.axis.name in p.named_axes
        if not meets:
            p = for_all_parts(engine, p)
        if not meets and (p.sequential or not p.effects <= CHECKS):
            return one_by_one(lambda *xs: cond_p.bind(p, *xs), size, args, axes)
        front = move_axis(index, place, 0)
        if meets:
            return batch_meeting(engine, p, size, front, operands, places)
        return batch_index(p, size, front, operands, places)
    lanes, mapped = index.ndim, mapped_operands(p)
    if lanes:
        # Lanes come first in mapped operands, then the dimension of this batch.
        operands = [
            x if axis is None else move_axis(x, axis, lanes if flag else 0)
            for x, axis, flag in zip(operands, places, mapped, strict=True)
        ]
        places = [None if axis is None else 0 for axis in places]
    inner = tuple(places)
    expected = either(*[batched_results(engine, b, size, inner) for b in p.branches])
    branches = [forced_batch(engine, b, size, inner, expected) for b in p.branches]
    outs = bind_like(p, branches, index, operands, mapped)
    return outs, [lanes if flag else None for flag in expected]


def batch_meeting(
    engine: Engine,
    p: CondParams,
    size: int,
    index: Array,
    operands: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """A choice for each element whose branches let all elements meet: all branches run.

    Raises:
        NotImplementedError: the index differs along an inner map as well.
    """
    if index.ndim > 1:
        raise NotImplementedError(
            f"cond: a branch uses the axis {engine.axis and engine.axis.name!r}, and "
            "the index differs along it and along an inner mapped axis; move the "
            "collective out of the branches, or use where"
        )
    every = (True,) * len(p.out_avals)
    runs = [
        inlined(forced_batch(engine, b, size, tuple(axes), every), operands)
        for b in p.branches
    ]
    outs = []
    for aval, *cases in zip(p.out_avals, *runs, strict=True):
        which = broadcast_in_dim(index, (size, *aval.shape), (0,))
        outs.append(select_n(which, *cases))
    return outs, [0] * len(outs)


def batch_index(
    p: CondParams,
    size: int,
    index: Array,
    operands: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """Each element its own choice: one more batch dimension."""
    inner = index.shape[1:]
    passed = (None,) * len(p.out_avals) if inner else forwarded(p.branches, axes)
    moved, mapped = [], []
    for x, axis, flag in zip(operands, axes, mapped_operands(p), strict=True):
        mapped.append(flag or axis is not None)
        if axis is None:
            moved.append(broadcast(x, (size,)) if flag else x)
            continue
        front = move_axis(x, axis, 0)
        moved.append(front if flag else spread(front, inner))
    live = [i is None for i in passed]
    branches = tuple(
        [evolve(b, outvars=tuple(chosen(live, b.outvars))) for b in p.branches]
    )
    params = CondLanesParams(branches, index.shape, tuple(mapped))
    result = iter(cond_lanes_p.bind(params, index, *moved))
    outs = [next(result) if i is None else operands[i] for i in passed]
    return outs, [0 if i is None else None for i in passed]


def forwarded(
    branches: Sequence[Jaxpr], axes: Sequence[Axis]
) -> tuple[int | None, ...]:
    """For each output the operand that all branches return, if it is not batched."""
    rows = [[source(b, atom) for atom in b.outvars] for b in branches]
    return tuple(
        [
            first
            if first is not None and axes[first] is None and set(rest) <= {first}
            else None
            for first, *rest in zip(*rows, strict=True)
        ]
    )


def spread(x: Array, lanes: Shape) -> Array:
    """`x`, repeated over inner batch dimensions behind its first."""
    for size in reversed(lanes):
        x = move_axis(at_front(x, None, size), 0, 1)
    return x


def split_cond(engine: Engine, p: CondParams, args: Sequence[Known]) -> Split:
    """Two choices by one index: what is known now, and the rest on what was saved."""
    index, *operands = args
    if isinstance(index, Linear):
        return waiting(
            args,
            len(p.out_avals),
            lambda i, *xs: bind_like(p, p.branches, i, xs, mapped_operands(p)),
        )
    unknown, mapped = unknowns(operands), mapped_operands(p)
    mask = either(*[engine.split(b, unknown)[2] for b in p.branches])
    halves = [forced_split(engine, b, unknown, mask) for b in p.branches]
    slots = Slots()
    plans = [slots.plan(half) for half in halves]
    pairs = list(zip(halves, plans, strict=True))
    known = knowns(operands)
    flags = others(unknown, mapped)
    count = len(mask) - sum(mask)
    outs: tuple[Array, ...] = ()
    first = [slots.first(half, plan) for half, plan in pairs]
    if count or slots.types or any(jaxpr.effects for jaxpr in first):
        outs = bind_like(p, first, index, known, flags)
    second = [slots.second(half, plan) for half, plan in pairs]
    order = list(slots.forwarded)
    later = [flags[i] for i in order] + [True] * len(slots.types)

    def finish(
        residuals: Sequence[Array], operands: Sequence[Array]
    ) -> Sequence[Array]:
        choice, *saved = residuals
        both = (*later, *chosen(unknown, mapped))
        return bind_like(p, second, choice, [*saved, *operands], both)

    return Split(
        tuple(merged(mask, repeat(None), outs[:count])),
        (index, *[known[i] for i in order], *outs[count:]),
        finish,
    )


def dce_cond(
    engine: Engine, p: CondParams, used: Mask
) -> tuple[CondParams, Mask, Mask]:
    slim = [engine.dce(b, used) for b in p.branches]
    needed = either(*[flags for _, flags in slim])
    avals = p.in_avals
    branches = tuple([with_inputs(b, has, needed, avals) for b, has in slim])
    if not isinstance(p, CondLanesParams):
        return evolve(p, branches=branches), (True, *needed), used
    mapped = tuple(chosen(needed, p.mapped))
    return evolve(p, branches=branches, mapped=mapped), (True, *needed), used


def draw_platform_index(random: Random) -> Sample[PlatformIndexParams]:
    choices = random.choice(((None,), (("tpu",), None), (("tpu",), ("cpu", "cuda"))))
    return Sample(PlatformIndexParams(choices), ())


platform_index_p: Row[PlatformIndexParams] = Row(
    "platform_index",
    PlatformIndexParams,
    typing=lambda p, avals: (ShapedArray((), int32),),
    # NumPy runs on the processor.
    evaluate=lambda engine, p, xs: (np.array(choice_for(p.platforms, "cpu"), int32),),
    lower=lambda e, p, xs, outs: (
        e.constant(choice_for(p.platforms, e.platform), outs[0]),
    ),
    draw=draw_platform_index,
    domains=(),
    traits=Traits(flops=no_flops),
)


def thread_cond(through: Through, p: CondParams, values: Values) -> Values:
    """A choice between branches on all parts; its index is plain."""
    index, *operands = values
    if not plain(index):
        raise MissingRule("the index of a cond must be a plain value, but it has parts")
    lanes = p.lanes if isinstance(p, CondLanesParams) else ()
    mapped = mapped_operands(p)
    types = [
        elements(types_of(x), len(lanes)) if flag else types_of(x)
        for x, flag in zip(operands, mapped, strict=True)
    ]
    numbers = range(len(p.branches))
    results = [through.outputs(number, types) for number in numbers]
    width = max(width_of(operands), *map(width_of, results))
    due = common_types(through, results, width)
    branches = [through.program(i, Role.BRANCH, types, due) for i in numbers]
    state = through.enter(Role.BRANCH)
    flags = [
        flag
        for parts, flag in zip(operands, mapped, strict=True)
        for _ in flat([parts])
    ]
    outs = bind_like(
        p,
        branches,
        flat([index])[0],
        [*flat(operands), *state],
        [*flags, *[False] * len(state)],
    )
    count = len(flat(due))
    through.leave(Role.BRANCH, outs[count:], lanes)
    return grouped(due, outs[:count])


cond_p: Row[CondParams] = Row(
    "cond",
    CondParams,
    typing=cond_typing,
    evaluate=evaluate_cond,
    jvp=jvp_cond,
    transpose=transpose_cond,
    batch=batch_cond,
    lower=lower_cond,
    split=split_cond,
    dce=dce_cond,
    thread=thread_cond,
    compiled=True,
    multiple_results=True,
    sharding=as_typed,
    traits=Traits(Work.BLOCK),
)
cond_lanes_p: Row[CondLanesParams] = Row(
    "cond_lanes",
    CondLanesParams,
    typing=cond_typing,
    evaluate=evaluate_lanes,
    jvp=jvp_cond,
    transpose=transpose_cond,
    batch=batch_cond,
    lower=lower_lanes,
    split=split_cond,
    dce=dce_cond,  # type: ignore[arg-type]  # a batch stays a batch
    thread=thread_cond,
    compiled=True,
    multiple_results=True,
    sharding=as_typed,
)

ROWS: Rows = (platform_index_p, cond_p, cond_lanes_p)
