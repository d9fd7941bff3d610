"""Floor 3: outlining: runs of equations that occur again are written once, and called.

A network of equal blocks becomes a program of calls of one block, whether it was
written as a loop in Python or with `jit` around the block; so its compiler has one
block to work on::

    { lambda ; a. let b = sin a; c = exp b; d = sin c; e = exp d in (e,) }
    { lambda ; a. let b = jit[name=f jaxpr=...] a; c = jit[name=f jaxpr=...] b in (c,) }

Equations are equal here if primitive, params and types are; `repeats` finds the runs,
and `blocks` writes them.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter, is_
from typing import Final

import numpy as np
from attrs import evolve, frozen
from pyrsistent import pvector

from verax.ir.jaxpr import (
    NO_PARAMS,
    Atom,
    Eqn,
    Jaxpr,
    Params,
    Primitive,
    equation,
)
from verax.ir.records import ReprMixin
from verax.ir.walk import map_subjaxprs
from verax.ops.calls.call import CallParams, Metadata, NamedCall, jit_p
from verax.rules.guards import paused
from verax.rules.rows.builder import renumber
from verax.rules.rows.row import traits_of
from verax.rules.values.memo import pure, recall
from verax.transforms.engine.partial_eval import variables
from verax.transforms.passes.blocks import (
    Block,
    Marks,
    Part,
    may_stream,
    part_of,
    repeating,
    streams,
)

OUTLINED: Final = 1 << 10

# What tells XLA not to write a function where it is called.
STAYS: Final = Metadata((("inlineable", "false"),))

primitive_of: Final = attrgetter("primitive")
params_of: Final = attrgetter("params")


@frozen(repr=False)
class Limits(ReprMixin):
    """The limits from which a run is worth a function.

    Attributes:
        least: how many equations it has.
        saved: how many equations less the program has, if they are written once.
        streams: whether a value must flow through the calls, from each to the next.
    """

    least: int = 24
    saved: int = 96
    streams: bool = False


EVERYTHING: Final = Limits()
PAYING: Final = Limits(streams=True)
"""For XLA on CPUs: smaller ones cost at run time what they save while compiling."""
INSIDE: Final = Limits(streams=True, saved=384)
"""The same for bodies, which run more often than they are compiled."""


def outline(jaxpr: Jaxpr, limits: Limits = EVERYTHING) -> Jaxpr:
    """The program with runs of equations that repeat as calls, nested jaxprs included.

    Contract: inputs, output types, values and effects are kept. Compiled, a result may
    differ in its last place where XLA would have joined operations of two blocks.
    """
    return recall(outlined, jaxpr, jaxpr, limits)


@pure(OUTLINED)
def outlined(jaxpr: Jaxpr, limits: Limits) -> Jaxpr:
    """`outline`, without its memo."""
    eqns = list(jaxpr.eqns)
    nested = with_subjaxprs(eqns, lambda inner: outline(inner, limits))
    written, _ = outlined_eqns(nested, jaxpr.outvars, limits, variables(jaxpr))
    return with_eqns(jaxpr, written)


def with_eqns(jaxpr: Jaxpr, eqns: Sequence[Eqn]) -> Jaxpr:
    """The program with other equations for the same outputs."""
    if len(eqns) == len(jaxpr.eqns) and all(map(is_, eqns, jaxpr.eqns)):
        return jaxpr
    return renumber(evolve(jaxpr, eqns=pvector(eqns)), jaxpr.invars)


def outlined_eqns(
    eqns: list[Eqn], outvars: Sequence[Atom], limits: Limits, size: int
) -> tuple[list[Eqn], int]:
    """The equations of a program with outputs `outvars`, those of runs as calls.

    What they hold is outlined already. The variables, of which there are `size`, keep
    their numbers; the second result is how many there are then.
    """
    inside = kept_calls(eqns, limits)
    if limits.streams and not may_stream(inside):
        return inside, size
    if not worth(inside, limits):
        return inside, size
    inside = joined(inside, outvars)
    part = part_of(inside, outvars, limits.least)
    free = np.ones(len(inside), bool)
    blocks: list[Block] = []
    while repeat := part.repeats.best(free, limits.saved):
        if limits.streams:
            repeat = part.repeats.completed(repeat, free, part.light)
        for start, stop in repeat.spans:
            free[start:stop] = False
        block = Block(part, repeat)
        if block.streams or not limits.streams:
            blocks.append(block)
    return with_calls(part, blocks, limits, size) if blocks else (inside, size)


def joined(eqns: Sequence[Eqn], outvars: Sequence[Atom]) -> list[Eqn]:
    """The equations without products, loops and the like that equal an earlier one.

    XLA would join them, but not across the calls that they become parts of: the
    gradient at one place, written twice, would be computed twice. What is light stays,
    or blocks that share a mask would not be equal; so does what stands behind a barrier
    of its own, such as the second computation of a checkpoint.
    """
    ends = {*outvars}
    first: dict[tuple[Primitive, Params, tuple[Atom, ...]], Eqn] = {}
    same: dict[Atom, Atom] = {}
    gone: dict[Atom, Atom] = {}
    out: list[Eqn] = []
    for eqn in eqns:
        traits = traits_of(eqn.primitive)
        if not traits.marker and (eqn.params is NO_PARAMS or not eqn.effects):
            ins = tuple([same.get(a, a) for a in eqn.invars])
            before = first.setdefault((eqn.primitive, eqn.params, ins), eqn)
            if before is not eqn:
                equal: dict[Atom, Atom] = {}
                equal.update(zip(eqn.outvars, before.outvars, strict=True))
                same |= equal
                if traits.stored and ends.isdisjoint(equal):
                    gone |= equal
                    continue
        ins = tuple([gone.get(a, a) for a in eqn.invars]) if gone else eqn.invars
        if ins != eqn.invars:
            eqn = equation(eqn.primitive, eqn.params, ins, eqn.outvars, eqn.source)
        out.append(eqn)
    return out


def with_kept_calls(
    eqns: Sequence[Eqn],
    outvars: Sequence[Atom],
    calls: str,
    size: int,
) -> tuple[list[Eqn], int]:
    """The equations with calls for what repeats, by the option `calls`: auto or keep.

    Jaxprs that they hold are outlined, too. There are `size` variables; the second
    result is how many there are then.
    """
    limits = PAYING if calls == "auto" else EVERYTHING
    with paused():
        inside = INSIDE if limits is PAYING else limits
        nested = with_subjaxprs(eqns, lambda inner: outline(inner, inside))
        return outlined_eqns(nested, outvars, limits, size)


def worth(eqns: Sequence[Eqn], limits: Limits) -> bool:
    """Whether enough of the equations look as if they repeated, at a glance."""
    count = len(eqns)
    if count < limits.saved + limits.least:
        return False
    names = np.fromiter(map(id, map(primitive_of, eqns)), np.int64, count)
    return repeating(names, limits.least) + limits.least >= limits.saved


def with_subjaxprs(eqns: Sequence[Eqn], rewrite: Callable[[Jaxpr], Jaxpr]) -> list[Eqn]:
    """The equations with the jaxprs that they hold rewritten.

    Of a call whose program is made when it runs, that program is rewritten.
    """
    changed: dict[int, Params] = {}
    held = [*map(params_of, eqns)]
    for params in dict(zip(map(id, held), held, strict=True)).values():
        if type(params).transient is not False:
            written = params.written() if isinstance(params, NamedCall) else params
            result = map_subjaxprs(written, rewrite, aside=False)
            if result is not written:
                changed[id(params)] = result
    if not changed:
        return list(eqns)
    return [
        eqn
        if id(eqn.params) not in changed
        else equation(
            eqn.primitive,
            changed[id(eqn.params)],
            eqn.invars,
            eqn.outvars,
            eqn.source,
        )
        for eqn in eqns
    ]


def kept_calls(eqns: list[Eqn], limits: Limits) -> list[Eqn]:
    """The equations, in which calls that pay say that they shall stay calls."""
    calls: dict[Params, list[Eqn]] = {}
    for eqn in eqns:
        if eqn.primitive is jit_p:
            calls.setdefault(eqn.params, []).append(eqn)
    kept: dict[Params, CallParams] = {}
    for params, result in calls.items():
        assert isinstance(params, CallParams)
        plain = params.metadata is None and not params.effects
        if plain and is_kept(params.jaxpr, result, limits):
            kept[params] = evolve(params, metadata=STAYS)
    if not kept:
        return eqns
    return [
        eqn
        if eqn.primitive is not jit_p or eqn.params not in kept
        else equation(jit_p, kept[eqn.params], eqn.invars, eqn.outvars, eqn.source)
        for eqn in eqns
    ]


def is_kept(jaxpr: Jaxpr, calls: Sequence[Eqn], limits: Limits) -> bool:
    """Whether calls of a program are within the limits."""
    size = len(jaxpr.eqns)
    if size < limits.least or (len(calls) - 1) * size < limits.saved:
        return False
    if not limits.streams:
        return True
    return streams(jaxpr, [e.invars for e in calls], [e.outvars for e in calls])


def with_calls(
    part: Part, blocks: Sequence[Block], limits: Limits, size: int
) -> tuple[list[Eqn], int]:
    """The equations, in their order, with calls of the blocks.

    There were `size` variables; the second result is how many there are.
    """
    read = read_with(part, blocks)
    blocks = [block.trimmed(read, limits.saved) for block in blocks]
    read = read_with(part, blocks)
    left: list[Eqn | None] = list(part.eqns)
    for block in blocks:
        results = block.results(read)
        params = CallParams("block", block.jaxpr(results), asked=False, metadata=STAYS)
        outs = block.outs(results, size)
        size += block.lacking
        spans = zip(block.repeat.spans, block.interfaces, outs, strict=True)
        for (start, stop), ins, made in spans:
            source = part.eqns[start].source
            call = equation(jit_p, params, ins, made, source)
            left[start:stop] = [call] + [None] * (stop - start - 1)
    return [eqn for eqn in left if eqn is not None], size


def read_with(part: Part, blocks: Sequence[Block]) -> Marks:
    """The variables that outputs, calls of the blocks and other equations read."""
    free = np.ones(len(part.eqns), bool)
    for block in blocks:
        for start, stop in block.repeat.spans:
            free[start:stop] = False
    read = part.ends | part.marked(part.read[np.repeat(free, np.diff(part.first))])
    for block in blocks:
        read |= block.reads
    return read
