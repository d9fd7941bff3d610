"""Floor 2: `scan` transposed.

One idea: the transposed loop goes the other way; its carries are the cotangents of the
carries and the sums of the cotangents of the constants::

    { c' = a c + b x }    backwards:    { ct_b += ct x; ct = ct a }
"""

from collections.abc import Sequence
from itertools import repeat

from attrs import frozen

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Jaxpr
from verax.ir.meshes import explicit_on
from verax.ir.records import ReprMixin
from verax.ops.calls.subjaxprs import inlined
from verax.ops.control.scan_params import ScanParams, cut
from verax.ops.control.scan_partial_eval import Bind, carried, in_parts
from verax.rules.rows.builder import program
from verax.rules.rows.infer import (
    Mask,
    arrays_of,
    chosen,
    cotangents,
    filled,
    fixpoint,
    for_unknowns,
    instantiated,
    knowns,
    merged,
    nonzeros,
    others,
    unknowns,
)
from verax.rules.rows.row import Engine, Known, Linear, Tangent
from verax.rules.values.array import Array


def transpose_scan(
    engine: Engine,
    bind: Bind,
    p: ScanParams,
    cts: Sequence[Tangent],
    args: Sequence[Known],
) -> Sequence[Tangent | None]:
    """The loop that is linear in its operands, run backwards.

    Carries that are not a part of the linear program are computed first. A carry that
    is part of it but begins with a known value begins with zero, else the program would
    not be linear.
    """
    unknown = unknowns(args)
    if all(carried(engine, p, unknown)):
        return transpose_linear(engine, bind, p, cts, args)
    _, later = in_parts(engine, bind, p, args)
    linear: list[Known] = [x for x in args if isinstance(x, Linear)]
    saved: list[Known] = [*later.invariants, *later.begun, *later.stacks]
    operands = later.operands(saved, linear)
    due = chosen(later.mask, cts)
    found = transpose_linear(engine, bind, later.params, due, operands)
    pulled = chosen(unknowns(operands), found)
    return merged(unknown, pulled, repeat(None))


def transpose_linear(
    engine: Engine,
    bind: Bind,
    p: ScanParams,
    cts: Sequence[Tangent],
    args: Sequence[Known],
) -> Sequence[Tangent | None]:
    """`transpose_scan` where all carries are linear."""
    consts, carry, xs = p.parts(args)
    fixed, rows = unknowns(consts), unknowns(xs)
    ct_carry, ct_ys = p.results(cts)
    linear = (*fixed, *[True] * len(carry), *rows)
    given = nonzeros(ct_ys)

    def pulled(mask: Mask) -> list[list[bool]]:
        found = engine.transpose(p.jaxpr, linear, (*mask, *given))[1]
        return cut((sum(fixed), len(carry), sum(rows)), found)

    mask = fixpoint(nonzeros(ct_carry), lambda m: pulled(m)[1])
    backward = Backward(engine, p, fixed, rows, mask, given, *map(tuple, pulled(mask)))
    known = knowns(consts), knowns(xs)
    sums = [
        engine.core.zeros(aval.cotangent())
        for aval in chosen(backward.to_consts, backward.linear_consts)
    ]
    begun = arrays_of(engine, mask, ct_carry, cotangents(p.parts(p.jaxpr.in_avals)[1]))
    rows_out = p.results(p.jaxpr.out_avals)[1]
    stacks = arrays_of(engine, given, ct_ys, cotangents(rows_out))
    operands = [*known[0], *sums, *begun, *known[1], *stacks]
    params = ScanParams(
        backward.body(),
        p.length,
        (False,) * len(operands),
        len(sums) + len(begun),
        len(known[0]),
        not p.reverse,
        p.unroll,
    )
    outs = bind(params, *operands)
    return backward.results(
        args, cut((len(sums), len(begun), sum(backward.to_rows)), outs)
    )


def sums_made(engine: Engine, ct: Array) -> Array:
    """A row of cotangents, its sums made: loops stack no terms."""
    explicit = ct.aval.explicit
    if explicit is None or not explicit.terms.unreduced:
        return ct
    whole = explicit_on(explicit.mesh, explicit.splits)
    return engine.core.reshard(ct, whole, explicit.mesh)


@frozen(repr=False)
class Backward(ReprMixin):
    """The backward loop: which operands are linear, which cotangents are not zero.

    `fixed` and `rows` mark linear constants and arrays of rows; `mask` and `given`
    results whose cotangent is not zero; `to_consts`, `to_carry` and `to_rows` the
    linear operands that a step gives a cotangent.
    """

    engine: Engine
    p: ScanParams
    fixed: Mask
    rows: Mask
    mask: Mask
    given: Mask
    to_consts: Mask
    to_carry: Mask
    to_rows: Mask

    @property
    def linear_consts(self) -> list[ShapedArray]:
        return chosen(self.fixed, self.p.parts(self.p.jaxpr.in_avals)[0])

    def body(self) -> Jaxpr:
        """Known constants, sums, cotangents; known rows, cotangents of rows."""
        engine, p = self.engine, self.p
        consts, carry, xs = p.parts(p.jaxpr.in_avals)
        linear = (*self.fixed, *[True] * len(carry), *self.rows)
        step, _ = engine.transpose(p.jaxpr, linear, (*self.mask, *self.given))
        summed = cotangents(chosen(self.to_consts, chosen(self.fixed, consts)))
        carry = cotangents(carry)
        moving = chosen(self.mask, carry)
        types = [
            others(self.fixed, consts),
            summed,
            moving,
            others(self.rows, xs),
            cotangents(chosen(self.given, p.results(p.jaxpr.out_avals)[1])),
        ]
        counts = [len(part) for part in types]
        found_counts = (sum(self.to_consts), sum(self.to_carry), sum(self.to_rows))

        def body(*args: Array) -> Sequence[object]:
            known, sums, cts, rows, given = cut(counts, args)
            outs = inlined(step, [*known, *rows, *cts, *given])
            to_consts, to_carry, to_rows = cut(found_counts, outs)
            added = [
                instantiated(engine, engine.core.add(x, y), aval)
                for x, y, aval in zip(sums, to_consts, summed, strict=True)
            ]
            pulled = chosen(self.mask, filled(self.to_carry, to_carry, carry))
            after = [
                instantiated(engine, ct, aval)
                for ct, aval in zip(pulled, moving, strict=True)
            ]
            return [*added, *after, *[sums_made(engine, ct) for ct in to_rows]]

        return program([aval for part in types for aval in part], body)

    def results(
        self, args: Sequence[Known], found: Sequence[Sequence[Array]]
    ) -> list[Tangent | None]:
        """The cotangents of all operands; None for those that are known."""
        consts, carry, xs = self.p.parts([x.aval for x in args])
        cts = [
            *merged(
                self.fixed,
                filled(self.to_consts, found[0], chosen(self.fixed, consts)),
                repeat(None),
            ),
            *filled(self.mask, found[1], carry),
            *merged(
                self.rows,
                filled(self.to_rows, found[2], chosen(self.rows, xs)),
                repeat(None),
            ),
        ]
        return for_unknowns(args, cts)
