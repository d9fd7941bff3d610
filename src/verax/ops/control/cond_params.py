"""Floor 2: the params of a `cond`, its type, and its text in StableHLO.

One idea: a choice for each batch element holds the branches of one batch element, so
that its rules are those of a single choice; only sizes and which operands differ are
kept beside::

    CondLanesParams(branches, lanes=(8,), mapped=(True, False))
"""

from collections.abc import Sequence
from itertools import accumulate, chain
from math import prod
from typing import Self

import numpy as np
from attrs import evolve, field, frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import int32, stored_dtype
from verax.ir.effects import Effect, is_ordered
from verax.ir.jaxpr import Jaxpr, Params
from verax.ir.meshes import explicit_on, terms_of
from verax.ir.records import QUIET
from verax.ir.walk import walk
from verax.ops.calls.call import (
    Batcher,
    forced_batch,
    inlined,
    same_types,
    stored_shape,
)
from verax.ops.calls.keeping import Types
from verax.ops.control.while_params import WhileParams
from verax.ops.elementwise.bits import bitwise_or
from verax.ops.elementwise.compare import eq, ge, lt
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.ops.indexing.dynamic_slice import dynamic_index_in_dim
from verax.ops.reductions.reduce import argmax, reduce_max
from verax.ops.structure.create import zeros
from verax.ops.structure.shape import broadcast_in_dim, reshape
from verax.rules.rows.builder import program
from verax.rules.rows.emitter import Emitter, Operand, Region, compared
from verax.rules.rows.infer import Mask
from verax.rules.rows.row import Engine, MissingRule, NDArray
from verax.rules.values.array import Array

type Platforms = tuple[tuple[str, ...] | None, ...]
"""For each of some choices its platforms; None for all that are not named."""


@frozen(eq=False, repr=False)
class PlatformIndexParams(Params):
    """The choices, one of which is that of the platform."""

    platforms: Platforms


def choice_for(platforms: Platforms, platform: str) -> int:
    """The number of the choice for a platform.

    Raises:
        MissingRule: there is none.

    >>> choice_for((("cpu",), ("cuda", "rocm"), None), "rocm")
    1
    """
    for i, names in enumerate(platforms):
        if names is None or platform in names:
            return i
    known = ", ".join([name for names in platforms for name in names or ()])
    raise MissingRule(
        f"translation rule of platform_dependent not found for platform {platform}: it "
        f"has functions for {known or 'no platform'}, but is needed on {platform}; "
        f"pass one for it ({platform}=...), or a default"
    )


@frozen(eq=False, repr=False)
class CondParams(Params):
    """The programs to choose from; they have the same input and result types.

    Under vmap with an index for each batch element, a `sequential` choice is made for
    one element after another, and only the branch that it takes runs. A choice by the
    platform says in `platforms` which branches are for which; its index is a
    `platform_index` of the same, and each platform gets only its own branch.
    """

    branches: tuple[Jaxpr, ...]
    sequential: bool = field(default=False, kw_only=True, metadata=QUIET)
    platforms: Platforms | None = field(default=None, kw_only=True, metadata=QUIET)

    @property
    def effects(self) -> frozenset[Effect]:
        return self.shifted_effects(*[1] * len(self.branches))

    @property
    def in_avals(self) -> tuple[ShapedArray, ...]:
        """The types of every branch's operands."""
        return self.branches[0].in_avals

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        """The types of every branch's results."""
        return self.branches[0].out_avals

    def handing_out(self, bodies: Sequence[Jaxpr], kept: Sequence[Types]) -> Self:
        """See `Keeping.handing_out`: a slot for each branch, zeros but for one."""
        count = len(self.branches[0].outvars)

        def wide(i: int) -> Jaxpr:
            def branch(*xs: Array) -> Sequence[object]:
                outs = inlined(bodies[i], xs)
                slots = [
                    outs[count:] if i == j else map(zeros, types)
                    for j, types in enumerate(kept)
                ]
                return [*outs[:count], *chain(*slots)]

            return program(self.in_avals, branch)

        return evolve(self, branches=tuple(map(wide, range(len(bodies)))))

    def taking_back(self, bodies: Sequence[Jaxpr], kept: Sequence[Types]) -> Self:
        """See `Keeping.taking_back`: each branch reads its own slot."""
        types, own = (*self.in_avals, *chain(*kept)), len(self.in_avals)
        ends = list(accumulate(map(len, kept), initial=own))

        def wide(i: int) -> Jaxpr:
            def branch(*xs: Array) -> Sequence[object]:
                return inlined(bodies[i], [*xs[:own], *xs[ends[i] : ends[i + 1]]])

            return program(types, branch)

        return evolve(self, branches=tuple(map(wide, range(len(bodies)))))


@frozen(eq=False, repr=False)
class CondLanesParams(CondParams):
    """A choice for each batch element: index and results begin with the shape `lanes`.

    `mapped` marks the operands that begin with those dimensions too.
    """

    lanes: Shape
    mapped: Mask

    def taking_back(self, bodies: Sequence[Jaxpr], kept: Sequence[Types]) -> Self:
        """See `Keeping.taking_back`: what is kept is so for each element."""
        mapped = (*self.mapped, *[True] * sum(map(len, kept)))
        return evolve(super().taking_back(bodies, kept), mapped=mapped)


def mapped_operands(p: CondParams) -> Mask:
    """Flags of the operands that differ between batch elements."""
    if isinstance(p, CondLanesParams):
        return p.mapped
    return (False,) * len(p.in_avals)


def cond_typing(p: CondParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    index, *operands = avals
    lanes = p.lanes if isinstance(p, CondLanesParams) else ()
    if index.dtype != int32 or index.shape != lanes:
        raise TypeError(
            f"cond takes an int32 index of shape {lanes}, not {index}; convert it "
            "(verax.lax.convert_element_type)"
        )
    if not p.branches:
        raise TypeError("cond takes at least one branch")
    count = len(lanes)
    given = tuple(
        [
            x.with_shape(x.shape[count:]) if flag else x
            for x, flag in zip(operands, mapped_operands(p), strict=True)
        ]
    )
    for branch in p.branches:
        if not same_types(branch.in_avals, given):
            raise TypeError(f"a branch of cond takes {branch.in_avals}, not {given}")
        if not same_types(branch.out_avals, p.out_avals):
            raise TypeError(
                f"branches of cond return {p.out_avals} and {branch.out_avals}; they "
                "must return the same types"
            )
    return [over_lanes(index, a) for a in p.out_avals]


def over_lanes(index: ShapedArray, aval: ShapedArray) -> ShapedArray:
    """The type of a result for each batch element, split as their indices are."""
    out = aval.with_shape((*index.shape, *aval.shape))
    known = index.explicit or aval.explicit
    if known is None:
        return out
    front, back = (
        ((),) * x.ndim if x.explicit is None else x.explicit.splits
        for x in (index, aval)
    )
    terms = terms_of(aval.explicit)
    return out.with_explicit(explicit_on(known.mesh, (*front, *back), terms))


# -----------------------------------------------------------------------------
# `cond` computed: by the reference interpreter, and compiled.
#
# One index runs one branch; an index for each batch element runs all of them
# over all batch elements, and each batch element keeps the results of its own. Loops in
# a branch end when they have ended for the elements that take it::
#
#     %c = "stablehlo.case"(%index) ({ ... }, { ... })


def branch_of(p: CondParams, index: NDArray) -> Jaxpr:
    """The branch that an index means: outside of the range, the last, as in XLA."""
    if p.platforms is not None:
        return p.branches[choice_for(p.platforms, "cpu")]  # where NumPy runs
    i = int(index)
    return p.branches[i if 0 <= i < len(p.branches) else -1]


def evaluate_cond(
    engine: Engine, p: CondParams, xs: Sequence[NDArray]
) -> Sequence[NDArray]:
    return engine.evaluate(branch_of(p, xs[0]), xs[1:])


def evaluate_lanes(
    engine: Engine, p: CondLanesParams, xs: Sequence[NDArray]
) -> Sequence[NDArray]:
    index, *operands = xs
    outs = [
        np.zeros((*p.lanes, *stored_shape(a)), stored_dtype(a.dtype))
        for a in p.out_avals
    ]
    for lane in np.ndindex(*p.lanes):
        args = [
            np.asarray(x[lane]) if flag else x
            for x, flag in zip(operands, p.mapped, strict=True)
        ]
        values = engine.evaluate(branch_of(p, index[lane]), args)
        for out, value in zip(outs, values, strict=True):
            out[lane] = value
    return outs


def lower_cond(
    e: Emitter, p: CondParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    index, *operands = xs
    if p.platforms is not None:
        return e.inline(p.branches[choice_for(p.platforms, e.platform)], operands)
    if len(p.branches) == 1:
        return e.inline(p.branches[0], operands)

    def region(branch: Jaxpr) -> tuple[tuple[ShapedArray, ...], Region]:
        return (), lambda _: e.inline(branch, operands)

    regions = [region(b) for b in p.branches]
    op = e.threaded if is_ordered(p.effects) else e.op
    return op("stablehlo.case", (index,), outs, regions)


def widened(batcher: Batcher, p: CondLanesParams, branch: Jaxpr) -> Jaxpr:
    """A branch over all batch elements."""
    axes = tuple([0 if flag else None for flag in p.mapped])
    expected = (True,) * len(branch.outvars)
    for size in reversed(p.lanes):
        branch = forced_batch(batcher, branch, size, axes, expected)
    return branch


def lower_lanes(
    e: Emitter, p: CondLanesParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """All branches, the results of which are chosen element by element."""
    if 0 in p.lanes:
        return e.inline(program([], lambda: [zeros(aval) for aval in outs]), ())
    index, *operands = xs
    *rest, last = [
        branch_of_takers(e, p, i, xs, outs)
        if has_while(branch)
        else e.inline(widened(e, p, branch), operands)
        for i, branch in enumerate(p.branches)
    ]
    out = list(last)
    for i, branch in enumerate(rest):
        here = compared(e, index, "EQ", e.constant(i, index.aval))
        for k, aval in enumerate(outs):
            if branch[k] is out[k]:
                continue
            shape = stored_shape(aval)
            which = e.broadcast(here, shape, tuple(range(len(p.lanes))))
            (out[k],) = e.op("stablehlo.select", (which, branch[k], out[k]), (aval,))
    return out


def has_while(branch: Jaxpr) -> bool:
    """Whether it depends on values how long the branch runs, and if it ends at all."""
    return any(isinstance(eqn.params, WhileParams) for _, eqn in walk(branch))


def branch_of_takers(
    e: Emitter,
    p: CondLanesParams,
    number: int,
    xs: Sequence[Operand],
    outs: Sequence[ShapedArray],
) -> Sequence[Operand]:
    """A branch whose loops need not end for the elements that do not take it.

    Those elements run it on the operands of one that does, and it is skipped where no
    element takes it.
    """
    avals = [x.aval for x in xs]
    stand_in = program(avals, lambda *ys: operands_of_takers(p, number, *ys))
    taken, *operands = e.inline(stand_in, xs)
    nothing = program([], lambda: [zeros(aval) for aval in outs])
    branch = widened(e, p, p.branches[number])
    regions: list[tuple[tuple[ShapedArray, ...], Region]] = [
        ((), lambda _: e.inline(nothing, ())),
        ((), lambda _: e.inline(branch, operands)),
    ]
    return e.op("stablehlo.case", (taken,), outs, regions)


def operands_of_takers(
    p: CondLanesParams, number: int, index: Array, *operands: Array
) -> list[Array]:
    """1 if an element takes the branch, else 0; and its operands for those that do not.

    As in `branch_of`, the last branch is also taken by indices out of range.
    """
    last, rank = len(p.branches) - 1, len(p.lanes)
    if number < last:
        here = eq(index, number)
    else:
        here = bitwise_or(lt(index, 0), ge(index, last))
    count = prod(p.lanes)
    flat = convert(reshape(here, (count,)), int32)
    first = argmax(flat, 0, int32)
    results = [reduce_max(flat, (0,))]
    for x, flag in zip(operands, p.mapped, strict=True):
        if not flag:
            results.append(x)
            continue
        rows = reshape(x, (count, *x.shape[rank:]))
        taker = dynamic_index_in_dim(rows, first, 0, keepdims=False)
        which = broadcast_in_dim(here, x.shape, tuple(range(rank)))
        other = broadcast_in_dim(taker, x.shape, tuple(range(rank, x.ndim)))
        results.append(select(which, x, other))
    return results
