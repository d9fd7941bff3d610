"""Floor 2: `scan` split in what is known now and what waits.

One idea: the known loop stacks what the later one needs, but not what is the same in
every step (computed once, outside) and not rows that it merely read::

    known:  consts, carry, xs      -> carry, ys, stacked residuals
    later:  residuals, tangents    -> tangents
"""

from collections.abc import Callable, Sequence
from itertools import repeat

from attrs import evolve, frozen

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Jaxpr
from verax.ir.meshes import explicit_on
from verax.ir.records import ReprMixin
from verax.ops.calls.call import Halves, forced_split, inlined, positions
from verax.ops.control.scan_params import ScanParams, cut
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
from verax.rules.rows.row import Engine, Known, Linear, Split, Tangent
from verax.rules.values.array import Array

type Bind = Callable[..., tuple[Array, ...]]


@frozen(repr=False)
class Later(ReprMixin):
    """The loop that waits: its params, which results it gives, and its operands.

    Residuals are values that no step changes, initial values of carries, and stacks.
    """

    params: ScanParams
    mask: Mask
    invariants: tuple[Array, ...]
    begun: tuple[Array, ...]
    stacks: tuple[Array, ...]
    started: Mask
    consts: int

    def operands[T](self, residuals: Sequence[T], unknown: Sequence[T]) -> list[T]:
        """Residuals and unknown operands as operands of the loop."""
        invariants, begun, stacks = cut(
            (len(self.invariants), len(self.begun), len(self.stacks)), residuals
        )
        consts, carry, xs = cut(
            (
                self.consts,
                sum(self.started),
                len(unknown) - self.consts - sum(self.started),
            ),
            unknown,
        )
        return [*invariants, *consts, *merged(self.started, carry, begun), *stacks, *xs]


def carried(engine: Engine, p: ScanParams, unknown: Mask) -> Mask:
    """The carries that are unknown in some step."""
    consts, carry, xs = p.parts(unknown)

    def step(mask: Mask) -> Mask:
        return engine.split(p.jaxpr, (*consts, *mask, *xs))[2][: p.num_carry]

    return fixpoint(tuple(carry), step)


def in_parts(
    engine: Engine, bind: Bind, p: ScanParams, args: Sequence[Known]
) -> tuple[list[Array], Later]:
    """The known results, computed by a loop that is bound here, and the later loop."""
    unknown = unknowns(args)
    mask = carried(engine, p, unknown)
    consts, started, xs = p.parts(unknown)
    inner = (*consts, *mask, *xs)
    waiting = engine.split(p.jaxpr, inner)[2]
    out_mask = (*mask, *waiting[p.num_carry :])
    half = forced_split(engine, p.jaxpr, inner, out_mask)
    known = [
        knowns(others(flags, part))
        for flags, part in zip((consts, mask, xs), p.parts(args), strict=True)
    ]
    invariant, invariants, outs, stacks = known_loop(engine, bind, p, half, known)
    later = body_of_later(half, invariant, sum(consts), sum(mask))
    begun = knowns(chosen(mask, p.parts(args)[1]))
    linear = [
        chosen(flags, part)
        for flags, part in zip((consts, started, xs), p.parts(p.linear), strict=True)
    ]
    params = ScanParams(
        later,
        p.length,
        (
            *[False] * len(invariants),
            *linear[0],
            *[False] * sum(mask),
            *[False] * len(stacks),
            *linear[2],
        ),
        sum(mask),
        len(invariants) + sum(consts),
        p.reverse,
        p.unroll,
    )
    return outs, Later(
        params,
        out_mask,
        tuple(invariants),
        tuple(begun),
        tuple(stacks),
        tuple(chosen(mask, started)),
        sum(consts),
    )


def known_loop(
    engine: Engine,
    bind: Bind,
    p: ScanParams,
    half: Halves,
    known: Sequence[Sequence[Array]],
) -> tuple[Mask, list[Array], list[Array], list[Array]]:
    """Run the known part: (which residuals are invariant, these, results, stacks)."""
    consts, carry, xs = known
    count = len(half.first.outvars) - half.count
    if half.first.effects:
        return loop_with_effects(bind, p, half, count, known)
    varying = (*[False] * len(consts), *[True] * (len(carry) + len(xs)))
    moving = engine.split(half.first, varying)[2][count:]
    inner = forced_split(engine, half.first, varying, (*[True] * count, *moving))
    once = inlined(inner.first, consts)
    total = len(moving) - sum(moving)
    invariants, saved = once[:total], once[total:]
    outs, stacks = stacked(bind, p, inner.second, count, saved, carry, xs)
    return tuple([not flag for flag in moving]), invariants, outs, stacks


def loop_with_effects(
    bind: Bind,
    p: ScanParams,
    half: Halves,
    count: int,
    known: Sequence[Sequence[Array]],
) -> tuple[Mask, list[Array], list[Array], list[Array]]:
    """`known_loop` with nothing moved out of the loop except what is constant."""
    consts, carry, xs = known
    place = positions(half.first)
    residuals = half.residuals()
    fixed = [place.get(a, len(consts)) for a in residuals]
    invariant = tuple([i < len(consts) for i in fixed])
    outvars = half.first.outvars
    body = evolve(
        half.first, outvars=(*outvars[:count], *others(invariant, outvars[count:]))
    )
    outs, stacks = stacked(bind, p, body, count, consts, carry, xs)
    return invariant, [consts[i] for i in chosen(invariant, fixed)], outs, stacks


def stacked(
    bind: Bind,
    p: ScanParams,
    jaxpr: Jaxpr,
    count: int,
    consts: Sequence[Array],
    carry: Sequence[Array],
    xs: Sequence[Array],
) -> tuple[list[Array], list[Array]]:
    """The results of the known loop, and its varying residuals as stacks.

    Rows of an operand, and rows that are a result anyway, are not stacked again.
    """
    place = positions(jaxpr)
    first_row = len(consts) + len(carry)
    ys = {atom: i for i, atom in enumerate(jaxpr.outvars[:count]) if i >= len(carry)}
    residuals = jaxpr.outvars[count:]
    made = [a not in ys and place.get(a, -1) < first_row for a in residuals]

    def body(*args: Array) -> Sequence[object]:
        outs = inlined(jaxpr, args)
        return [*outs[:count], *chosen(made, outs[count:])]

    slim = program(jaxpr.in_avals, body)
    operands = (*consts, *carry, *xs)
    params = ScanParams(
        slim,
        p.length,
        (False,) * len(operands),
        len(carry),
        len(consts),
        p.reverse,
        p.unroll,
    )
    runs = slim.outvars or slim.effects
    outs = list(bind(params, *operands)) if runs else []
    fresh = iter(outs[count:])
    stacks = [
        next(fresh) if flag else outs[ys[a]] if a in ys else xs[place[a] - first_row]
        for a, flag in zip(residuals, made, strict=True)
    ]
    return outs[:count], stacks


def body_of_later(half: Halves, invariant: Mask, consts: int, carry: int) -> Jaxpr:
    """`half.second` on invariants, constants, carries, stacks, rows."""
    avals = half.second.in_avals
    saved, own = avals[: half.count], avals[half.count :]
    rows = len(own) - consts - carry
    fixed = sum(invariant)
    types = [
        *chosen(invariant, saved),
        *own[: consts + carry],
        *others(invariant, saved),
        *own[consts + carry :],
    ]
    counts = (fixed, consts + carry, half.count - fixed, rows)

    def body(*xs: Array) -> Sequence[object]:
        constant, first, varying, last = cut(counts, xs)
        residuals = merged(invariant, constant, varying)
        return inlined(half.second, [*residuals, *first, *last])

    return program(types, body)


def split_scan(
    engine: Engine, bind: Bind, p: ScanParams, args: Sequence[Known]
) -> Split:
    """A loop now and a loop later."""
    outs, later = in_parts(engine, bind, p, args)

    def finish(
        residuals: Sequence[Array], operands: Sequence[Array]
    ) -> Sequence[Array]:
        return bind(later.params, *later.operands(residuals, operands))

    return Split(
        tuple(merged(later.mask, repeat(None), outs)),
        (*later.invariants, *later.begun, *later.stacks),
        finish,
    )


# -----------------------------------------------------------------------------
# `scan` transposed.
#
# The transposed loop goes the other way; its carries are the cotangents of the
# carries and the sums of the cotangents of the constants::
#
#     { c' = a c + b x }    backwards:    { ct_b += ct x; ct = ct a }


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
    arrays = transpose_linear(engine, bind, later.params, due, operands)
    pulled = chosen(unknowns(operands), arrays)
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
        out = engine.transpose(p.jaxpr, linear, (*mask, *given))[1]
        return cut((sum(fixed), len(carry), sum(rows)), out)

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
        self, args: Sequence[Known], result: Sequence[Sequence[Array]]
    ) -> list[Tangent | None]:
        """The cotangents of all operands; None for those that are known."""
        consts, carry, xs = self.p.parts([x.aval for x in args])
        cts = [
            *merged(
                self.fixed,
                filled(self.to_consts, result[0], chosen(self.fixed, consts)),
                repeat(None),
            ),
            *filled(self.mask, result[1], carry),
            *merged(
                self.rows,
                filled(self.to_rows, result[2], chosen(self.rows, xs)),
                repeat(None),
            ),
        ]
        return for_unknowns(args, cts)
