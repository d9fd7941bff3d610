"""Floor 2: `scan` split in what is known now and what waits.

One idea: the known loop stacks what the later one needs, but not what is the same in
every step (computed once, outside) and not rows that it merely read::

    known:  consts, carry, xs      -> carry, ys, stacked residuals
    later:  residuals, tangents    -> tangents
"""

from collections.abc import Callable, Sequence
from itertools import repeat

from attrs import evolve, frozen

from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.ops.calls.subjaxprs import Halves, forced_split, inlined, positions
from verax.ops.control.scan_params import ScanParams, cut
from verax.rules.rows.builder import program
from verax.rules.rows.infer import (
    Mask,
    chosen,
    fixpoint,
    knowns,
    merged,
    others,
    unknowns,
)
from verax.rules.rows.row import Engine, Known, Split
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
    """Which carries are unknown in some step."""
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
