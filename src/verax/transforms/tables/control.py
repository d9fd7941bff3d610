"""Floor 3: rules of calls, loops and branches for custom tables.

One idea: what an equation with a program inside does to parts is what its program does
to them, so these rules rewrite the program with the table itself and agree on which
carries and results have parts; no program grows with the length of a loop::

    Propagation("taylor", CONTROL, fill=fill) | {sin_p: rule}

`CONTROL` has the calls, loops and branches. `INSIDE` takes functions with derivatives
or batching rules of the user's own for what they compute, as evaluation does.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from attrs import evolve

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Jaxpr, Primitive
from verax.ops.calls.call import CallParams, jit_p
from verax.ops.calls.checkpoint import checkpoint_p
from verax.ops.control.cond import cond_p
from verax.ops.control.cond_params import CondParams
from verax.ops.control.scan import scan_p
from verax.ops.control.scan_params import ScanParams
from verax.ops.control.while_ import while_p
from verax.ops.control.while_params import WhileParams
from verax.ops.custom.jvp import custom_jvp_call_p
from verax.ops.custom.vjp import custom_vjp_call_p
from verax.ops.custom.vmap import custom_vmap_call_p
from verax.ops.elementwise.convert import convert
from verax.rules.rows.masks import Mask, fixpoint
from verax.rules.rows.row import MissingRule
from verax.rules.rows.writing import program
from verax.rules.values.array import Array
from verax.transforms.tables.propagation import (
    Parts,
    Propagation,
    Rule,
    Types,
    flat,
    grouped,
    plain,
    types_of,
)

type Values = Sequence[Parts]


def call_rule(walk: Propagation, p: CallParams, values: Values) -> Values:
    jaxpr, types = walk.program(p.jaxpr, map(types_of, values))
    return grouped(types, jit_p.bind(evolve(p, jaxpr=jaxpr), *flat(values)))


def inside_rule(walk: Propagation, p: Any, values: Values) -> Values:
    """An equation that means its jaxpr, written in place."""
    return walk(p.jaxpr, values)


def width_of(values: Values) -> int:
    """How many parts a value has that is touched."""
    return max([1, *map(len, values)])


def row_types(parts: Parts) -> Types:
    """The types of one row of the parts."""
    return tuple([None if x is None else row_type(x.aval) for x in parts])


def row_type(aval: ShapedArray) -> ShapedArray:
    return aval.element()


def as_due(walk: Propagation, parts: Parts, due: Types) -> Parts:
    """The parts in the types that a carry or a common result has."""
    if len(due) == 1 and not plain(parts):
        raise MissingRule("a value with parts stands where a plain value is required")
    full = parts if len(due) == 1 else walk.fill(parts, len(due))
    return tuple(
        [
            None if x is None or t is None else convert(x, t.dtype, t.weak_type)
            for x, t in zip(full, due, strict=True)
        ]
    )


def changed(
    walk: Propagation, jaxpr: Jaxpr, types: Sequence[Types], due: Sequence[Types | None]
) -> Jaxpr:
    """The program on parts, with results of the types `due`, where those are given."""

    def body(*xs: Array) -> list[Array]:
        outs = walk(jaxpr, grouped(types, xs))
        return flat(
            [
                parts if t is None else as_due(walk, parts, t)
                for parts, t in zip(outs, due, strict=True)
            ]
        )

    return program(flat(types), body)


def carried(
    walk: Propagation,
    carry: Values,
    width: int,
    touched: Callable[[Sequence[Types]], Iterable[Types]],
) -> list[Parts]:
    """The carries at the start, filled where a step gives parts to them.

    `touched` maps the types of carries to those that a step makes of them.
    """

    def filled(mask: Mask) -> list[Parts]:
        return [
            walk.fill(parts, width) if flag else parts
            for parts, flag in zip(carry, mask, strict=True)
        ]

    def step(mask: Mask) -> list[bool]:
        types = [types_of(parts) for parts in filled(mask)]
        return [not plain(found) for found in touched(types)]

    return filled(fixpoint(tuple([not plain(c) for c in carry]), step))


def scan_rule(walk: Propagation, p: ScanParams, values: Values) -> Values:
    """A loop over the rows of all parts; a carry has all of its parts or is plain."""
    consts, carry, xs = p.parts(values)
    fixed, rows = list(map(types_of, consts)), list(map(row_types, xs))

    def results(types: Sequence[Types]) -> tuple[list[Types], list[Types]]:
        return p.results(walk.program(p.jaxpr, (*fixed, *types, *rows))[1])

    start = carried(walk, carry, width_of(values), lambda types: results(types)[0])
    due = list(map(types_of, start))
    ys = results(due)[1]
    types = (*fixed, *due, *rows)
    operands = [*flat(consts), *flat(start), *flat(xs)]
    params = evolve(
        p,
        jaxpr=changed(walk, p.jaxpr, types, [*due, *ys]),
        linear=(False,) * len(operands),
        num_carry=len(flat(start)),
        num_consts=len(flat(consts)),
    )
    return grouped([*due, *ys], scan_p.bind(params, *operands))


def while_rule(walk: Propagation, p: WhileParams, values: Values) -> Values:
    """A loop on all parts, as long as the predicate holds, which must be plain."""
    cond_consts, body_consts, carry = p.parts(values)
    before, fixed = list(map(types_of, cond_consts)), list(map(types_of, body_consts))
    start = carried(
        walk,
        carry,
        width_of(values),
        lambda types: walk.program(p.body_jaxpr, (*fixed, *types))[1],
    )
    due = list(map(types_of, start))
    params = WhileParams(
        changed(walk, p.body_jaxpr, (*fixed, *due), due),
        len(flat(fixed)),
        changed(walk, p.cond_jaxpr, (*before, *due), [(p.cond_jaxpr.out_avals[0],)]),
        len(flat(before)),
        sequential=p.sequential,
    )
    operands = [*flat(cond_consts), *flat(body_consts), *flat(start)]
    return grouped(due, while_p.bind(params, *operands))


def cond_rule(walk: Propagation, p: CondParams, values: Values) -> Values:
    """A choice by an index, which must be plain, between branches on all parts."""
    index, *operands = values
    if not plain(index):
        raise MissingRule("the index of a cond must be a plain value, but it has parts")
    types = list(map(types_of, operands))
    found = [walk.program(branch, types)[1] for branch in p.branches]
    width = max([1, *map(len, operands), *[len(t) for outs in found for t in outs]])
    due: list[Types] = []
    for outs in zip(*found, strict=True):
        full = [t for t in outs if len(t) == width and None not in t]
        if all(map(plain, outs)):
            due.append(outs[0])
        elif full:
            due.append(full[0])
        else:
            due.append(filled_types(walk, outs, width))
    branches = tuple([changed(walk, branch, types, due) for branch in p.branches])
    params = evolve(p, branches=branches)
    return grouped(due, cond_p.bind(params, *flat([index]), *flat(operands)))


def filled_types(walk: Propagation, outs: Sequence[Types], width: int) -> Types:
    """The types of all parts of a result that has some."""
    some = max(outs, key=len)
    found: list[Types] = []

    def body(*xs: Array) -> list[Array]:
        parts = walk.fill(grouped([some], xs)[0], width)
        found.append(types_of(parts))
        return flat([parts])

    program(flat([some]), body)
    return found[0]


CONTROL: Mapping[Primitive, Rule[Any]] = MappingProxyType(
    {jit_p: call_rule, scan_p: scan_rule, while_p: while_rule, cond_p: cond_rule}
)
INSIDE: Mapping[Primitive, Rule[Any]] = MappingProxyType(
    dict.fromkeys(
        (custom_jvp_call_p, custom_vjp_call_p, custom_vmap_call_p, checkpoint_p),
        inside_rule,
    )
)
