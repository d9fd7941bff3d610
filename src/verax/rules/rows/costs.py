"""Floor 1: what equations cost: floating-point operations and bytes.

One estimate for each primitive, from types alone, before any compiler joins loops: a
multiplication in a product of matrices or a convolution counts two operations, what
works element by element one for each element, a loop what its body does times its
trips. What moves data costs bytes alone::

    Costs().of(eqn)        # Cost(flops=2048.0, bytes=512.0)
"""

from typing import Final

from attrs import frozen

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import NO_PARAMS, Eqn, Jaxpr
from verax.ir.records import ReprMixin
from verax.rules.rows.row import Avals, traits_of, unknown_flops


@frozen(repr=False)
class Cost(ReprMixin):
    """Operations and bytes; None where they are not known."""

    flops: float | None
    bytes: float | None


UNKNOWN: Final = Cost(None, None)


def trips(eqn: Eqn) -> float | None:
    """The number of runs of an equation's programs; None if only values say."""
    length: int | None = getattr(eqn.params, "length", None)
    if length is None:
        return None if traits_of(eqn.primitive).loop else 1.0
    return float(length)


def is_choice(eqn: Eqn) -> bool:
    """Whether one of the programs in an equation runs."""
    return hasattr(eqn.params, "branches")


def holds_programs(eqn: Eqn) -> bool:
    """Whether programs run with the equation."""
    if eqn.params is NO_PARAMS or traits_of(eqn.primitive).flops is not None:
        return False
    return any([True for _ in eqn.params.subjaxprs(aside=False)])


class Costs:
    """The costs of equations; those of programs inside are summed up once."""

    def __init__(self) -> None:
        self.known: dict[int, Cost] = {}

    def of(self, eqn: Eqn) -> Cost:
        """The cost of one run of an equation."""
        ins = [a.aval for a in eqn.invars]
        outs = [v.aval for v in eqn.outvars]
        if any([aval.symbolic for aval in (*ins, *outs)]):
            return UNKNOWN
        if holds_programs(eqn):
            return self.of_programs(eqn)
        return Cost(flops_of(eqn, ins, outs), bytes_moved(eqn))

    def of_programs(self, eqn: Eqn) -> Cost:
        """The sum over the programs inside, or the largest one; loops for each trip.

        A loop of unknown length counts once.
        """
        result = [self.of_program(p) for p in eqn.params.subjaxprs(aside=False)]
        known, together = trips(eqn), max if is_choice(eqn) else sum
        times = 1.0 if known is None else known
        flops = [cost.flops or 0.0 for cost in result]
        moved = [cost.bytes or 0.0 for cost in result]
        return Cost(times * together(flops), times * together(moved))

    def of_program(self, jaxpr: Jaxpr) -> Cost:
        """The sum over the equations of a program."""
        entry = self.known.get(id(jaxpr))
        if entry is None:
            costs = [self.of(eqn) for eqn in jaxpr.eqns]
            entry = self.known[id(jaxpr)] = Cost(
                sum([cost.flops or 0.0 for cost in costs]),
                sum([cost.bytes or 0.0 for cost in costs]),
            )
        return entry


def flops_of(eqn: Eqn, ins: Avals, outs: Avals) -> float | None:
    """The operations of an equation without programs inside.

    A row that does not count them is elementwise if its types say that it may be.
    """
    count = traits_of(eqn.primitive).flops
    if count is unknown_flops:
        return None
    if count is not None:
        flops = count(eqn.params, ins, outs) if outs and ins else 0.0
        return None if flops is None else float(flops)
    shapes = {aval.shape for aval in (*ins, *outs) if aval.shape}
    if outs and ins and len(shapes) <= 1 and len({out.shape for out in outs}) == 1:
        return float(outs[0].size)
    return None


def bytes_moved(eqn: Eqn) -> float:
    """The bytes that an equation reads and writes, each operand once."""
    traits = traits_of(eqn.primitive)
    if traits.view:
        return 0.0
    operands = list({id(a): a.aval for a in eqn.invars}.values())
    ins = [bytes_of(aval) for aval in operands]
    outs = sum([bytes_of(v.aval) for v in eqn.outvars])
    if traits.reads_part and ins:
        return float(2 * outs + sum(ins[1:]))
    if traits.writes_part is not None and ins:
        return float(sum(ins[1:]) + bytes_of(eqn.invars[traits.writes_part].aval))
    return float(sum(ins) + outs)


def bytes_of(aval: ShapedArray) -> int:
    """The bytes of an array of this type; 0 where a size is not known."""
    if aval.symbolic:
        return 0
    return int(aval.size * aval.dtype.itemsize)
