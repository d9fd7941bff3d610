"""Long sums in loops: with what is rounded off, or in a wider type.

One idea: a sum of many terms is rounded with each of them. A loop that only adds to a
carry carries what has been rounded off as well (Kahan, "Further remarks on reducing
truncation errors", 1965; the error of one addition after Knuth, "The Art of Computer
Programming" 2, 4.2.2); a carry of 16 bits is float32 between the steps. Sums and
products of arrays need no rule, since they are added up in float32 as they are::

    t = t + x    ->    y = x + c;  s = t + y;  c = what s lacks of t + y;  t = s

These are rules for whole equations, whatever the loop does besides.
"""

from collections.abc import Sequence

import numpy as np
from attrs import evolve, frozen

import verax.lax as lax
import verax.numpy as vnp
from verax.ir.atoms import Atom, Literal, Var
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float32, is_float
from verax.ir.jaxpr import Eqn, Jaxpr, Params
from verax.ir.records import ReprMixin
from verax.ops.calls.call import inlined
from verax.ops.control.scan import scan_p
from verax.ops.control.scan_params import ScanParams
from verax.ops.control.while_ import while_p
from verax.ops.control.while_params import WhileParams
from verax.ops.elementwise.arith import add_p, sub_p
from verax.ops.elementwise.convert import convert, convert_element_type_p
from verax.rewrites.applying import chosen, floats
from verax.rules.rows.builder import program
from verax.rules.values.array import Array
from verax.transforms.memory.storage import flat
from verax.transforms.patterns.rewrite_rules import Operand, Rewrite, rewrite

SHORT = 16
"""Floats with no more bits than this are for storing, not for adding up."""


def is_short(aval: ShapedArray) -> bool:
    """Whether an array has floats of no more than 16 bits."""
    dtype = aval.dtype
    return (
        is_float(dtype) and isinstance(dtype, np.dtype) and 8 * dtype.itemsize <= SHORT
    )


# -----------------------------------------------------------------------------
# Which carries of a loop are sums.


@frozen(eq=False, repr=False)
class Sum(ReprMixin):
    """A carry that is added to: its number, the equation, the term and its sign."""

    number: int
    eqn: Eqn
    term: Atom
    minus: bool

    @property
    def total(self) -> Var:
        """The carry after the step."""
        return self.eqn.outvars[0]


def sums_of(body: Jaxpr, consts: int, carried: int) -> list[Sum]:
    """The carries to which each step adds something, and that nothing compensates."""
    makers = {v.index: eqn for eqn in body.eqns for v in eqn.outvars}
    out = []
    for number in range(carried):
        carry, after = body.invars[consts + number], body.outvars[number]
        eqn = None if isinstance(after, Literal) else makers.get(after.index)
        if eqn is None or not is_float(carry.aval.dtype):
            continue
        known = sum_at(number, eqn, carry)
        if known is not None and not is_compensated(body, consts, carried, known):
            out.append(known)
    return out


def sum_at(number: int, eqn: Eqn, carry: Var) -> Sum | None:
    """The sum that an equation makes of a carry, if it does."""
    if eqn.primitive is add_p:
        left, right = eqn.invars
        if left == carry and right != carry:
            return Sum(number, eqn, right, minus=False)
        if right == carry and left != carry:
            return Sum(number, eqn, left, minus=False)
    elif eqn.primitive is sub_p:
        left, right = eqn.invars
        if left == carry and right != carry:
            return Sum(number, eqn, right, minus=True)
    return None


def is_compensated(body: Jaxpr, consts: int, carried: int, known: Sum) -> bool:
    """Whether a carry that comes of the new sum less the old one is in the term."""
    reached = reached_from(
        body, gaps_of(body, body.invars[consts + known.number], known)
    )
    later = [
        body.invars[consts + k]
        for k in range(carried)
        if index_of(body.outvars[k]) in reached
    ]
    return index_of(known.term) in reached_from(body, later)


def gaps_of(body: Jaxpr, carry: Var, known: Sum) -> list[Var]:
    """The differences of the new sum and the old one."""
    both = {carry.index, known.total.index}
    return [
        eqn.outvars[0]
        for eqn in body.eqns
        if eqn.primitive is sub_p and {index_of(a) for a in eqn.invars} == both
    ]


def index_of(atom: Atom) -> int:
    """The number of a variable; none of a constant."""
    return atom.index if isinstance(atom, Var) else -1


def reached_from(body: Jaxpr, start: Sequence[Var]) -> set[int]:
    """The variables that depend on some."""
    reached = {v.index for v in start}
    for eqn in body.eqns:
        if reached and any(index_of(a) in reached for a in eqn.invars):
            reached.update([v.index for v in eqn.outvars])
    return reached


# -----------------------------------------------------------------------------
# Loops with compensated sums, or with wider ones.


@frozen(eq=False, repr=False)
class Summing(ReprMixin):
    """The body of a loop and its sums; the new one carries a value more for each.

    What is carried for a sum is its total and what that lacks, in the type of the carry
    itself, or, of short floats, the total in float32 alone.
    """

    body: Jaxpr
    consts: int
    carried: int
    sums: tuple[Sum, ...]

    @property
    def extra(self) -> list[ShapedArray]:
        """The types of the values that are carried besides."""
        return [s.total.aval for s in self.sums if not is_short(s.total.aval)]

    def outside(self, carry: Sequence[Array]) -> list[Array]:
        """The carries as they are between steps, from those of the old loop."""
        out = list(carry)
        for s in self.sums:
            if is_short(s.total.aval):
                out[s.number] = convert(out[s.number], float32)
        zeros = [typed(vnp.zeros(a.shape, a.dtype), a) for a in self.extra]
        return [*out, *zeros]

    def inside(self, carry: Sequence[Array]) -> list[Array]:
        """The carries of the old loop, from those between steps."""
        out = list(carry[: self.carried])
        for s in self.sums:
            out[s.number] = typed(out[s.number], s.total.aval)
        return out

    def step(self, args: Sequence[Array]) -> list[Array]:
        """The outputs of the new body."""
        first, last = self.consts, self.consts + self.carried
        extra = len(self.extra)
        between = args[first : last + extra]
        given = [*args[:first], *self.inside(between), *args[last + extra :]]
        body = self.body
        asked = (*body.outvars, *[s.term for s in self.sums])
        outs = inlined(Jaxpr(body.constvars, body.invars, body.eqns, asked), given)
        terms = outs[len(body.outvars) :]
        results = list(outs[: len(body.outvars)])
        rests = iter(between[self.carried :])
        lacking = []
        for s, term in zip(self.sums, terms, strict=True):
            old = between[s.number]
            change = typed(-term if s.minus else term, old.aval)
            if is_short(s.total.aval):
                results[s.number] = old + change
                continue
            total, rest = compensated(old, change, next(rests))
            lacking.append(typed(rest, old.aval))
            for k, atom in enumerate(body.outvars):
                if atom == s.total:
                    results[k] = typed(total, old.aval)
        return [*results[: self.carried], *lacking, *results[self.carried :]]


def compensated(old: Array, change: Array, rest: Array) -> tuple[Array, Array]:
    """The sum of a total, a term and what was rounded off; what is rounded off now."""
    # What is infinite is so for good, and the rest of it NaN.
    more = change + vnp.where(vnp.isfinite(rest), rest, 0)
    total = old + more
    part = total - old
    lost = (old - (total - part)) + (more - part)
    return total, lost


def typed(x: Array, aval: ShapedArray) -> Array:
    """x with the type of another value, weak or not; scalars are spread."""
    if x.shape != aval.shape:
        x = vnp.broadcast_to(x, aval.shape)
    return convert(x, aval.dtype, aval.weak_type)


def summing_scan(p: ScanParams) -> Summing | None:
    """The sums of a `scan`; None if there are none, or it is known to be linear."""
    if any(p.linear):
        return None
    body = flat(p.jaxpr)
    sums = [s for s in sums_of(body, p.num_consts, p.num_carry) if not wider(body, s)]
    if not sums:
        return None
    return Summing(body, p.num_consts, p.num_carry, tuple(sums))


def summing_while(p: WhileParams) -> Summing | None:
    """The sums of a `while`; None if there are none."""
    body = flat(p.body_jaxpr)
    carried = len(p.carry)
    sums = sums_of(body, p.body_nconsts, carried)
    sums = [s for s in sums if not wider(body, s)]
    return Summing(body, p.body_nconsts, carried, tuple(sums)) if sums else None


def wider(body: Jaxpr, known: Sum) -> bool:
    """Whether a sum has short terms in a wide type already."""
    return any(
        eqn.primitive is convert_element_type_p
        and is_short(eqn.invars[0].aval)
        and eqn.outvars[0] == known.term
        for eqn in body.eqns
    )


def sums_in_scan(*xs: Operand, params: Params) -> bool:
    """Whether a loop adds to a carry."""
    return type(params) is ScanParams and summing_scan(params) is not None


def sums_in_while(*xs: Operand, params: Params) -> bool:
    """Whether a loop of unknown length adds to a carry."""
    return type(params) is WhileParams and summing_while(params) is not None


@rewrite(
    lambda t, xs: lax.scan(lambda t, x: (t + x, None), t, xs)[0],
    whole=True,
    where=sums_in_scan,
    types=[("f32[]", "f32[40]"), ("f16[]", "f16[40]")],
    ulps=4,
    domain=(0.1, 10),
    weak=((1e7, [0.3, 0.1, 0.4]),),
    gain=0.5,
)
def sum_in_a_loop(*xs: Array, params: ScanParams) -> tuple[object, ...]:
    known = summing_scan(params)
    assert known is not None, "the guard has asked"
    consts, carry, rows = params.parts(xs)
    between = known.outside(carry)
    given = [*params.parts(params.jaxpr.in_avals)[0]]
    given += [x.aval for x in between]
    given += params.parts(params.jaxpr.in_avals)[2]
    body = program(given, lambda *args: known.step(args))
    extra = len(between) - len(carry)
    new = evolve(
        params,
        jaxpr=body,
        num_carry=len(between),
        linear=(False,) * (len(xs) + extra),
    )
    outs = list(scan_p.bind(new, *consts, *between, *rows))
    return (*known.inside(outs[: len(between)]), *outs[len(between) :])


def counted(t: Array, x: Array) -> tuple[int | Array, Array]:
    """A `while` that adds x to t, a hundred times."""
    return lax.while_loop(lambda c: c[0] < 100, lambda c: (c[0] + 1, c[1] + x), (0, t))


@rewrite(
    counted,
    whole=True,
    where=sums_in_while,
    types=[("f32[]", "f32[]"), ("f16[]", "f16[]")],
    ulps=4,
    domain=(0.5, 2),
    weak=((1e5, 0.01),),
    gain=1,
)
def sum_in_a_while(*xs: Array, params: WhileParams) -> tuple[object, ...]:
    known = summing_while(params)
    assert known is not None, "the guard has asked"
    for_test, for_body, carry = params.parts(xs)
    between = known.outside(carry)
    types = [x.aval for x in between]
    tested = params.cond_jaxpr.in_avals[: len(for_test)]
    stepped = params.body_jaxpr.in_avals[: len(for_body)]

    def more(*args: Array) -> Sequence[Array]:
        first = len(for_test)
        given = [*args[:first], *known.inside(args[first:])]
        return inlined(params.cond_jaxpr, given)

    new = evolve(
        params,
        cond_jaxpr=program([*tested, *types], more),
        body_jaxpr=program([*stepped, *types], lambda *args: known.step(args)),
    )
    outs = list(while_p.bind(new, *for_test, *for_body, *between))
    return tuple(known.inside(outs))


# -----------------------------------------------------------------------------
# What was added is there already.


def undoes(x: Operand, y: Operand) -> bool:
    """Whether the term is a plain one, and has not what an earlier sum lacked."""
    compensates = y.primitive == "add" and any(chosen(z) for z in y.operands)
    return floats(x, y) and x.shape == y.shape and not compensates


@rewrite(
    lambda x, y: (x + y) - x,
    where=undoes,
    ulps=4,
    domain=(0.1, 10),
    weak=((3e5, 1e-2),),
    gain=1.5,
)
def undone_sum(x: Array, y: Array) -> Array:
    return y


@rewrite(
    lambda x, y: (x - y) - x,
    where=undoes,
    ulps=4,
    domain=(0.1, 10),
    weak=((3e5, 1e-2),),
    gain=1.5,
)
def undone_difference(x: Array, y: Array) -> Array:
    return -y


SUMS: tuple[Rewrite, ...] = (
    sum_in_a_loop,
    sum_in_a_while,
)
UNDONE: tuple[Rewrite, ...] = (undone_sum, undone_difference)
